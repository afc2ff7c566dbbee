/* Derivatives of a step along directions and back from cotangents: one solve with the factor of
 * qd_differentiate for four of them, without the matrices A and B. */
#include <math.h>
#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/friction_law.h"
#include "dynamics/step.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/retraction.h"
#include "numerics/conic/conic.h"

/* ---------------------------------------------------------------- the step and its factor */

qd_status qd_differentiate(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, qd_step_result *result) {
  const step_columns kept = {0, 0, 0, 0};
  qd_status status = step_compute(model, w, options, input, &kept, result);
  if (status != QD_OK) {
    return status;
  }
  const solved_step s = integration_program(model, w, options, input, result);
  status = derivatives_prepare(&s, result);
  if (status != QD_OK) {
    result->info.status = status;
    return status;
  }
  for (int i = 0; i < w->problem.islands.count; ++i) {
    result->derivative_exact &= pressure_derivative_prepare(&s, w->problem.islands.island + i);
  }
  return QD_OK;
}

/* ---------------------------------------------------------------- directions */

static void solve_forward(const solved_step *s, int count) {
  problem *p = &s->w->problem;
  const differential *d = &s->w->differential;
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    const conic_change change = {.count = count,
                                 .d_stationarity = d->four_r + one->variable * count,
                                 .d_slack = p->scratch.four_w + one->row * count,
                                 .d_equality = d->four_e + one->equality * count,
                                 .dx = d->four_x + one->variable * count};
    law_sensitivity_solve(p, one, 0, &change);
    pressure_derivative_correct(s, one, change.dx, count);
  }
}

void qd_jvp(const qd_model *model, qd_workspace *w, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *const tangent[QD_ARGUMENT_COUNT], double *out, double *v_out) {
  const solved_step s = integration_program(model, w, options, input, result);
  const solved_step end = integration_end(&s, result);
  const problem *p = &w->problem;
  differential *d = &w->differential;
  for (int first = 0; first < count; first += DIRECTIONS) {
    const int width = count - first < DIRECTIONS ? count - first : DIRECTIONS;
    const double *one[QD_ARGUMENT_COUNT];
    for (int k = 0; k < width; ++k) {
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = tangent[i] != NULL ? tangent[i] + (size_t)(first + k) * size : NULL;
      }
      if (w->integration.applies) { /* its r alone counts */
        pushforward_compute(&end, one, d->late_r + k, p->scratch.four_w + k, d->four_e + k, width);
      }
      pushforward_compute(&s, one, d->four_r + k, p->scratch.four_w + k, d->four_e + k, width);
    }
    solve_forward(&s, width);
    for (int k = 0; k < width; ++k) {
      const size_t at = (size_t)(first + k) * (size_t)model->nv;
      for (int j = 0; j < model->nv; ++j) {
        const int variable = p->variable_of_dof[j];
        d->by_delta[j] = variable >= 0 ? d->four_x[variable * width + k] : 0.0;
        d->masked[j] = tangent[QD_BY_Q] != NULL ? tangent[QD_BY_Q][at + (size_t)j] : 0.0;
        d->z[j] = variable >= 0 ? d->four_r[variable * width + k] : 0.0;
        d->by_q[j] = variable >= 0 ? d->late_r[variable * width + k] : 0.0;
      }
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = tangent[i] != NULL ? tangent[i] + (size_t)(first + k) * size : NULL;
      }
      integration_push(&end, one, d->z, d->by_q, d->by_delta);
      retraction_push(out + at, model, end.delta, d->masked, d->by_delta);
      const double dh = tangent[QD_BY_H] != NULL ? tangent[QD_BY_H][first + k] : 0.0;
      for (int j = 0; v_out != NULL && j < model->nv; ++j) { /* v_next = delta / h */
        v_out[at + (size_t)j] = (d->by_delta[j] - dh * end.delta[j] / options->h) / options->h;
      }
    }
  }
}

/* ---------------------------------------------------------------- cotangents */

/* y = row `index` of the cotangent, zero if there is none; or a unit vector */
static void cotangent_take(double *y, const double *cotangent, int unit, int index, int nv) {
  memset(y, 0, (size_t)nv * sizeof(double));
  if (cotangent != NULL) {
    memcpy(y, cotangent + (size_t)index * (size_t)nv, (size_t)nv * sizeof(double));
  } else if (unit) {
    y[index] = 1.0;
  }
}

/* The cotangents of a call of qd_vjp. */
typedef struct cotangents {
  const double *of_q, *of_v; /* (count, nv), NULL: zero; both NULL: unit vectors */
  int of_delta;              /* 1: unit vectors are cotangents of delta itself */
} cotangents;

/* four_r = -J_l' y of the free DOFs, then four_x = z, four_w = mu, four_e = nu; late_z */
static void solve_backward(const solved_step *s, const solved_step *end, const cotangents *y,
                           int first, int width) {
  problem *p = &s->w->problem;
  differential *d = &s->w->differential;
  const int nv = s->model->nv;
  for (int k = 0; k < width; ++k) {
    cotangent_take(d->z, y->of_q, y->of_v == NULL, first + k, nv);
    if (y->of_delta) {
      memcpy(d->by_delta, d->z, (size_t)nv * sizeof(double));
    } else {
      retraction_pull(d->masked, d->by_delta, s->model, end->delta, d->z);
    }
    for (int j = 0; y->of_v != NULL && j < nv; ++j) {
      d->by_delta[j] += y->of_v[(size_t)(first + k) * (size_t)nv + (size_t)j] / s->options->h;
    }
    integration_pull(end, d->by_delta, d->late_z + (size_t)k * (size_t)nv);
    pressure_derivative_correct_back(s, d->by_delta);
    for (int i = 0; i < p->n; ++i) {
      const int dof = p->dof_of_variable[i];
      d->four_r[i * width + k] = dof >= 0 ? -d->by_delta[dof] : 0.0;
    }
  }
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    const conic_change change = {.count = width,
                                 .d_stationarity = d->four_r + one->variable * width,
                                 .dx = d->four_x + one->variable * width,
                                 .d_dual = p->scratch.four_w + one->row * width,
                                 .d_dual_eq = d->four_e + one->equality * width};
    law_sensitivity_solve(p, one, 1, &change);
  }
}

/* gradient += derivatives of q_next and v_next by q and h at fixed delta. */
static void add_own_parts(const solved_step *s, const cotangents *y, int index,
                          double *const gradient[QD_ARGUMENT_COUNT]) {
  differential *d = &s->w->differential;
  const int nv = s->model->nv;
  if (gradient[QD_BY_Q] != NULL) {
    cotangent_take(d->z, y->of_q, y->of_v == NULL, index, nv);
    retraction_pull(d->masked, d->by_delta, s->model, s->delta, d->z);
    for (int j = 0; j < nv; ++j) {
      gradient[QD_BY_Q][j] += d->masked[j];
    }
  }
  for (int j = 0; gradient[QD_BY_H] != NULL && y->of_v != NULL && j < nv; ++j) {
    gradient[QD_BY_H][0] -= y->of_v[(size_t)index * (size_t)nv + (size_t)j] * s->delta[j] /
                            (s->options->h * s->options->h);
  }
}

/* The last stage of one cotangent. */
static void pull_end(const solved_step *end, const double *late_z,
                     double *const gradient[QD_ARGUMENT_COUNT]) {
  static const double none[1] = {0.0};
  if (end->w->integration.applies) {
    memcpy(end->w->differential.z, late_z, (size_t)end->model->nv * sizeof *late_z);
    pullback_add(end, none, none, 0, gradient);
    integration_pull_dampers(end, late_z, gradient);
  }
}

static void pull_back(const solved_step *s, const solved_step *end, const cotangents *y, int count,
                      double *const gradient[QD_ARGUMENT_COUNT]) {
  const qd_model *model = s->model;
  const problem *p = &s->w->problem;
  differential *d = &s->w->differential;
  for (int first = 0; first < count; first += DIRECTIONS) {
    const int width = count - first < DIRECTIONS ? count - first : DIRECTIONS;
    solve_backward(s, end, y, first, width);
    for (int k = 0; k < width; ++k) {
      double *one[QD_ARGUMENT_COUNT];
      for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
        const size_t size = (size_t)qd_argument_size(model, i);
        one[i] = gradient[i] != NULL ? gradient[i] + (size_t)(first + k) * size : NULL;
      }
      for (int j = 0; j < model->nv; ++j) {
        const int variable = p->variable_of_dof[j];
        const double late = d->late_z[(size_t)k * (size_t)model->nv + (size_t)j];
        d->z[j] = variable >= 0 ? d->four_x[variable * width + k] - late : 0.0;
      }
      pullback_clear(model, one);
      pullback_add(s, p->scratch.four_w + k, d->four_e + k, width, one);
      pull_end(end, d->late_z + (size_t)k * (size_t)model->nv, one);
      if (!y->of_delta) {
        add_own_parts(end, y, first + k, one);
      }
    }
  }
}

void qd_vjp(const qd_model *model, qd_workspace *w, const qd_step_options *options,
            const qd_step_input *input, const qd_step_result *result, int count,
            const double *cotangent, const double *v_cotangent,
            double *const gradient[QD_ARGUMENT_COUNT]) {
  const solved_step s = integration_program(model, w, options, input, result);
  const solved_step end = integration_end(&s, result);
  const cotangents y = {cotangent, v_cotangent, 0};
  pull_back(&s, &end, &y, count, gradient);
}

/* Rows of d delta -> rows of d v_next; they may share memory. */
static void velocity_rows(double *of_v, const solved_step *s, const double *by_delta,
                          int argument) {
  const int columns = qd_argument_size(s->model, argument);
  const double h = s->options->h;
  for (int j = 0; j < s->model->nv; ++j) {
    for (int c = 0; c < columns; ++c) {
      const double own = argument == QD_BY_H ? s->delta[j] / h : 0.0;
      of_v[j * columns + c] = (by_delta[j * columns + c] - own) / h;
    }
  }
}

void qd_jacobians(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                  const qd_step_input *input, const qd_step_result *result,
                  double *const of_q[QD_ARGUMENT_COUNT], double *const of_v[QD_ARGUMENT_COUNT]) {
  const solved_step s = integration_program(model, w, options, input, result);
  const solved_step end = integration_end(&s, result);
  const cotangents units = {NULL, NULL, 1};
  double *by_delta[QD_ARGUMENT_COUNT];
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    by_delta[i] = of_q[i] != NULL ? of_q[i] : of_v[i];
  }
  pull_back(&s, &end, &units, model->nv, by_delta);
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    if (of_v[i] != NULL) {
      velocity_rows(of_v[i], &end, by_delta[i], i);
    }
    if (of_q[i] != NULL) {
      retraction_apply_derivative(of_q[i], model, end.delta, qd_argument_size(model, i));
    }
  }
  if (of_q[QD_BY_Q] != NULL) {
    retraction_add_base_derivative(of_q[QD_BY_Q], model, end.delta);
  }
}
