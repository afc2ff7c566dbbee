#include "runtime/sample.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "mechanics/applied.h"

static int has_parameters(const qd_batch_input *input) {
  for (int i = 0; i < QD_PARAMETER_COUNT; ++i) {
    if (input->parameter[i] != NULL) {
      return 1;
    }
  }
  return 0;
}

step_job step_job_of(const qd_model *model, const qd_step_options *options,
                     const qd_batch_input *input) {
  return (step_job){
      .model = model,
      .options = options,
      .input = input,
      .with_parameters = has_parameters(input),
  };
}

qd_status sample_read(const step_job *job, participant *p, int64_t i, int64_t t, const double *q,
                      const double *v) {
  const qd_model *model = job->model;
  const qd_batch_input *in = job->input;
  const size_t nv = (size_t)model->nv, nw = QD_WRENCH * (size_t)model->body.count;
  if (v != NULL) {
    memcpy(p->v, v, nv * sizeof(double));
  }
  memcpy(p->u, in->u + i * in->u_stride + t * in->u_step, (size_t)model->nu * sizeof(double));
  if (in->tau != NULL) {
    memcpy(p->tau, in->tau + i * in->tau_stride + t * in->tau_step, nv * sizeof(double));
  }
  if (in->wrench != NULL) {
    memcpy(p->wrench, in->wrench + i * in->wrench_stride + t * in->wrench_step,
           nw * sizeof(double));
  }
  int joint;
  if (in->mocap != NULL) {
    const double *mocap = in->mocap + i * in->mocap_stride + t * in->mocap_step;
    const qd_status status = qd_mocap_normalize(model, mocap, p->mocap, &joint);
    if (status != QD_OK) {
      memmove(p->q, q, (size_t)model->nq * sizeof(double));
      return status;
    }
  }
  const qd_status status = qd_normalize(model, q, p->q, &joint);
  if (status != QD_OK) {
    memmove(p->q, q, (size_t)model->nq * sizeof(double));
  }
  return status; /* qd_step checks the other inputs */
}

void sample_read_bristles(participant *p, const qd_model *model, const double *bristle) {
  const size_t size = QD_BRISTLES * (size_t)model->pair.soft_count * sizeof(double);
  if (bristle != NULL) {
    memcpy(p->bristle, bristle, size);
  } else {
    memset(p->bristle, 0, size);
  }
}

static int result_is_finite(const qd_model *model, const qd_step_result *result) {
  return all_finite(result->q_next, model->nq) && all_finite(result->delta, model->nv) &&
         all_finite(result->limit_force, model->nv) &&
         all_finite(result->constraint_force, QD_CONSTRAINT_FORCE * model->constraint.count) &&
         all_finite(result->tendon_force, model->tendon.count);
}

void numbers_fill(double *numbers, int64_t count, double value) {
  for (int64_t i = 0; numbers != NULL && i < count; ++i) {
    numbers[i] = value;
  }
}

qd_status sample_distances(participant *p, const qd_model *model, const double *q, double margin,
                           double *distance) {
  int joint, needed = 0;
  qd_status status = qd_normalize(model, q, p->q, &joint);
  if (status != QD_OK) {
    return status;
  }
  do {
    status = qd_pair_distances(model, p->workspace, p->q, margin, distance, &needed);
  } while (status == QD_OUT_OF_CAPACITY &&
           (status = qd_workspace_reserve(model, p->workspace, needed)) == QD_OK);
  return status;
}

int derivative_size(const qd_model *model, int argument) {
  return model->nv * qd_argument_size(model, argument);
}

void sample_leave_failed(const qd_model *model, const participant *p, qd_step_result *result,
                         double *const *derivative) {
  memmove(result->q_next, p->q, (size_t)model->nq * sizeof(double));
  if (result->v_next != NULL) {
    memmove(result->v_next, p->v, (size_t)model->nv * sizeof(double));
  }
  if (result->bristle != NULL) {
    memcpy(result->bristle, p->bristle,
           QD_BRISTLES * (size_t)model->pair.soft_count * sizeof(double));
  }
  numbers_fill(result->delta, model->nv, 0.0);
  numbers_fill(result->limit_force, model->nv, 0.0);
  numbers_fill(result->constraint_force, QD_CONSTRAINT_FORCE * model->constraint.count, 0.0);
  numbers_fill(result->tendon_force, model->tendon.count, 0.0);
  numbers_fill(result->actuator_force, 2 * (int64_t)model->nu, 0.0);
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    numbers_fill(derivative[k], derivative_size(model, k), NAN);
  }
  result->derivative_exact = 0;
}

const qd_model *sample_model(const step_job *job, participant *p, int64_t i) {
  const qd_batch_input *in = job->input;
  if (!job->with_parameters) {
    return job->model;
  }
  const double *values[QD_PARAMETER_COUNT];
  for (int k = 0; k < QD_PARAMETER_COUNT; ++k) {
    const int known =
        in->parameter[k] == NULL || (in->parameter_stride[k] == 0 && p->variant_is_set);
    values[k] = known ? NULL : in->parameter[k] + i * in->parameter_stride[k];
  }
  model_variant_set(p->variant, values);
  p->variant_is_set = 1;
  return model_variant_model(p->variant);
}

/* One attempt, with the same calls as single steps: with the step's own A and B if no other
 * derivative is wanted. */
static qd_status step_try(const step_job *job, participant *p, const qd_model *model,
                          const qd_step_input *input, qd_step_result *result,
                          double *const *derivative) {
  if (!job->with_derivative) {
    return qd_step(model, p->workspace, job->options, input, result);
  }
  if (job->by_more) {
    return qd_differentiate(model, p->workspace, job->options, input, result);
  }
  return qd_linearize(model, p->workspace, job->options, input, result, derivative[QD_BY_Q],
                      derivative[QD_BY_U]);
}

/* Pullbacks of the step that qd_differentiate left in the workspace. */
static qd_status pull_back(const step_job *job, participant *p, const qd_model *model,
                           const qd_step_input *input, const qd_step_result *result,
                           double *const *derivative) {
  qd_vjp(model, p->workspace, job->options, input, result, model->nv, NULL, NULL, derivative);
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    if (derivative[k] != NULL && !all_finite(derivative[k], derivative_size(model, k))) {
      return QD_NUMERICAL_TROUBLE;
    }
  }
  return QD_OK;
}

const qd_step_start *sample_start(const step_job *job, int64_t i) {
  const qd_batch_input *in = job->input;
  return in->start != NULL ? in->start + i * in->start_stride : NULL;
}

qd_status sample_step(const step_job *job, participant *p, const qd_model *model,
                      const qd_step_start *start, qd_step_result *result,
                      double *const *derivative) {
  const qd_step_input input = {.q = p->q,
                               .v = job->options->dynamic ? p->v : NULL,
                               .u = p->u,
                               .tau = job->input->tau != NULL ? p->tau : NULL,
                               .wrench = job->input->wrench != NULL ? p->wrench : NULL,
                               .mocap = job->input->mocap != NULL ? p->mocap : NULL,
                               .bristle = result->bristle != NULL ? p->bristle : NULL,
                               .start = start};
  qd_status status;
  do {
    status = step_try(job, p, model, &input, result, derivative);
  } while (status == QD_OUT_OF_CAPACITY &&
           (status = qd_workspace_reserve(model, p->workspace, result->contact_count)) == QD_OK);
  if (status == QD_OK && !result_is_finite(model, result)) {
    status = QD_NUMERICAL_TROUBLE;
  }
  return status == QD_OK && job->by_more ? pull_back(job, p, model, &input, result, derivative)
                                         : status;
}

qd_status sample_record(const step_job *job, const qd_step_options *options, const participant *p,
                        const qd_model *model, const qd_step_start *start, taped_step *s) {
  const qd_batch_input *in = job->input;
  memcpy(s->q, p->q, (size_t)model->nq * sizeof(double));
  memcpy(s->v, p->v, (size_t)model->nv * sizeof(double));
  memcpy(s->u, p->u, (size_t)model->nu * sizeof(double));
  if (in->tau != NULL) {
    memcpy(s->tau, p->tau, (size_t)model->nv * sizeof(double));
  }
  if (in->wrench != NULL) {
    memcpy(s->wrench, p->wrench, QD_WRENCH * (size_t)model->body.count * sizeof(double));
  }
  if (in->mocap != NULL) {
    memcpy(s->mocap, p->mocap, QD_POSE * (size_t)model->mocap_count * sizeof(double));
  }
  s->input = (qd_step_input){.q = s->q,
                             .v = options->dynamic ? s->v : NULL,
                             .u = s->u,
                             .tau = in->tau != NULL ? s->tau : NULL,
                             .wrench = in->wrench != NULL ? s->wrench : NULL,
                             .mocap = in->mocap != NULL ? s->mocap : NULL,
                             .start = start};
  qd_status status;
  do {
    status = qd_differentiate(model, s->workspace, options, &s->input, &s->result);
  } while (status == QD_OUT_OF_CAPACITY &&
           (status = qd_workspace_reserve(model, s->workspace, s->result.contact_count)) == QD_OK);
  s->input.start = NULL; /* its arrays may change before the products */
  return status == QD_OK && !result_is_finite(model, &s->result) ? QD_NUMERICAL_TROUBLE : status;
}

void sample_note_failure(participant *p, int64_t i, int64_t step, qd_status status,
                         const qd_step_result *result) {
  qd_batch_failure *f = &p->failure;
  if (f->sample >= 0 && f->sample < i) {
    return;
  }
  *f = (qd_batch_failure){.sample = i,
                          .step = step,
                          .status = status,
                          .info = result->info,
                          .row_count = result->row_count,
                          .contact_count = result->contact_count,
                          .missed_pairs = result->missed_pairs};
  f->info.status = status;
  f->culprit_count = result->culprit_count;
  memcpy(f->culprit, result->culprit, sizeof f->culprit);
}
