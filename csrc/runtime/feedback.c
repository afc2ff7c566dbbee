#include "runtime/feedback.h"

#include <math.h>
#include <string.h>

#include "mechanics/retraction.h"

/* y += A x, A (rows, columns) */
static void add_product(double *y, const double *A, const double *x, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      y[i] += A[i * columns + j] * x[j];
    }
  }
}

/* y += A' x, A (rows, columns) */
static void add_transposed_product(double *y, const double *A, const double *x, int rows,
                                   int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      y[j] += A[i * columns + j] * x[i];
    }
  }
}

void feedback_react(const rollout_job *job, participant *p, int64_t i, int64_t t) {
  const qd_model *model = job->steps.model;
  const qd_feedback *f = job->steps.input->feedback;
  const int nu = model->nu, nv = model->nv;
  const int64_t at = i * job->step_count + t;
  double *u = f->u + at * nu;
  qd_difference(model, p->q, f->q_nominal + t * model->nq, p->delta);
  add_product(p->u, f->x_gain + at * nu * nv, p->delta, nu, nv);
  if (f->v_gain != NULL) {
    for (int j = 0; j < nv; ++j) {
      p->delta[j] = p->v[j] - f->v_nominal[t * nv + j];
    }
    add_product(p->u, f->v_gain + at * nu * nv, p->delta, nu, nv);
  }
  if (f->u_gain != NULL) {
    add_product(p->u, f->u_gain + at * nu * nu, t > 0 ? u - nu : f->u_before, nu, nu);
  }
  for (int j = 0; j < nu; ++j) {
    p->u[j] = fmin(fmax(p->u[j], f->lower[at * nu + j]), f->upper[at * nu + j]);
  }
  memcpy(u, p->u, (size_t)nu * sizeof(double));
}

/* Sets derivatives of clipped commands to zero. */
static void drop_clipped(const qd_feedback *f, double *by_u, int64_t at, int nu) {
  for (int j = 0; j < nu; ++j) {
    const int64_t k = at * nu + j;
    if (!(f->u[k] > f->lower[k] && f->u[k] < f->upper[k])) {
      by_u[j] = 0.0;
    }
  }
}

void feedback_push(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q) {
  const qd_model *model = job->steps.model;
  const qd_feedback *f = job->steps.input->feedback;
  const int nu = model->nu, nv = model->nv;
  const int64_t at = i * job->step_count + t;
  qd_difference(model, q, f->q_nominal + t * model->nq, on->away);
  retraction_difference_push(on->change, model, on->away, on->cotangent);
  add_product(on->by_u, f->x_gain + at * nu * nv, on->change, nu, nv);
  if (f->v_gain != NULL) {
    add_product(on->by_u, f->v_gain + at * nu * nv, on->v_cotangent, nu, nv);
  }
  drop_clipped(f, on->by_u, at, nu);
}

void feedback_pull(const rollout_job *job, tape *on, int64_t i, int64_t t, const double *q) {
  const qd_model *model = job->steps.model;
  const qd_feedback *f = job->steps.input->feedback;
  const int nu = model->nu, nv = model->nv;
  const int64_t at = i * job->step_count + t;
  drop_clipped(f, on->by_u, at, nu);
  qd_difference(model, q, f->q_nominal + t * model->nq, on->away);
  memset(on->change, 0, (size_t)nv * sizeof(double));
  add_transposed_product(on->change, f->x_gain + at * nu * nv, on->by_u, nu, nv);
  retraction_difference_pull(on->moved, model, on->away, on->change);
  for (int j = 0; j < nv; ++j) {
    on->by_q[j] += on->moved[j];
  }
  if (f->v_gain != NULL) {
    add_transposed_product(on->by_v, f->v_gain + at * nu * nv, on->by_u, nu, nv);
  }
}
