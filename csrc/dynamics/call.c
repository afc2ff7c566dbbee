/* A whole step: checks of the arguments, and the result of a step that failed. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/trace.h"
#include "dynamics/bounces.h"
#include "dynamics/step.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"

static int input_is_finite(const qd_step_input *in, const qd_model *model) {
  return all_finite(in->q, model->nq) && all_finite(in->u, model->nu) &&
         (in->v == NULL || all_finite(in->v, model->nv)) &&
         (in->tau == NULL || all_finite(in->tau, model->nv)) &&
         (in->wrench == NULL || all_finite(in->wrench, QD_WRENCH * model->body.count)) &&
         (in->bristle == NULL || all_finite(in->bristle, QD_BRISTLES * model->pair.soft_count)) &&
         (in->mocap == NULL || all_finite(in->mocap, QD_POSE * model->mocap_count));
}

static void clear(double *numbers, int count) {
  if (numbers != NULL) {
    memset(numbers, 0, (size_t)count * sizeof(double));
  }
}

/* The result of a step that failed: nothing moves. */
static qd_status fail(const qd_model *model, const qd_step_input *input, qd_step_result *result,
                      qd_status status) {
  memmove(result->q_next, input->q, (size_t)model->nq * sizeof(double));
  for (int dof = 0; result->v_next != NULL && dof < model->nv; ++dof) {
    result->v_next[dof] = input->v != NULL ? input->v[dof] : 0.0;
  }
  clear(result->delta, model->nv);
  clear(result->limit_force, model->nv);
  clear(result->constraint_force, model->constraint.count * QD_CONSTRAINT_FORCE);
  clear(result->tendon_force, model->tendon.count);
  clear(result->bristle, model->pair.soft_count * QD_BRISTLES);
  clear(result->actuator_force, 2 * model->nu);
  result->info.status = status;
  return status;
}

qd_status step_compute(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                       const qd_step_input *input, const step_columns *kept,
                       qd_step_result *result) {
  step_result_reset(result);
  if (!options_make_sense(options, model)) {
    return fail(model, input, result, QD_BAD_ARGUMENT);
  }
  if (!input_is_finite(input, model)) {
    return fail(model, input, result, QD_NOT_FINITE);
  }
  w->problem.effort = (effort){0, 0, 0};
  trace_clear(result->trace);
  kinematics_compute(model, input->q, input->mocap, &w->kinematics);
  const step_call call = {model, w, options, input, kept, result};
  w->attempts = 0;
  qd_status status = bounces_solve(&call);
  if (status == QD_OK) {
    status = integration_finish(&call);
  }
  result->info.iterations = w->problem.effort.iterations;
  result->info.factorizations = w->problem.effort.factorizations;
  result->info.tries = w->problem.effort.tries;
  return status == QD_OK ? QD_OK : fail(model, input, result, status);
}

qd_status qd_step(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                  const qd_step_input *input, qd_step_result *result) {
  return step_compute(model, workspace, options, input, NULL, result);
}
