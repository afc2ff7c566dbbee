/* Converts optimal control problems from the caller's arrays to the padded layout, and results
 * back. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/lanes.h"
#include "numerics/ocp/qp.h"

/* A box thinner than this, relative to its size or the nearest scale, is widened to it: the method
 * needs an interior. */
static const double thinnest = 2e-9;

static int is_zero(const double *a, size_t count, size_t step) {
  for (size_t i = 0; i < count; ++i) {
    if (a[i * step] != 0.0) {
      return 0;
    }
  }
  return 1;
}

/* A state is dead if it influences no state, no state influences it, and its cost is not coupled
 * with other states. */
static int is_dead(const qd_ocp_qp *problem, size_t j) {
  const size_t n = (size_t)problem->state_count;
  for (size_t t = 0; t < (size_t)problem->horizon; ++t) {
    const double *A = problem->A + t * n * n;
    if (!is_zero(A + j, n, n) || !is_zero(A + j * n, n, 1)) {
      return 0;
    }
    if (!problem->Q) {
      continue;
    }
    const double *row = problem->Q + (t * n + j) * n;
    if (!is_zero(row, j, 1) || !is_zero(row + j + 1, n - j - 1, 1)) {
      return 0;
    }
  }
  return 1;
}

static size_t padded(size_t count) { return (count + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT; }

static void lay_out_states(qd_ocp_workspace *w, const qd_ocp_qp *problem) {
  w->live_count = w->dead_count = 0;
  for (int j = 0; j < w->nx; ++j) {
    const int dead = is_dead(problem, (size_t)j);
    w->order[j] = dead ? -1 - w->dead_count++ : w->live_count++;
  }
  w->lp = padded((size_t)w->live_count);
  w->dp = padded((size_t)w->dead_count);
  w->up = padded((size_t)w->nu);
  for (int j = 0; j < w->nx; ++j) {
    if (w->order[j] < 0) {
      w->order[j] = (int)w->lp - 1 - w->order[j];
    }
  }
  w->xp = w->lp + w->dp;
  w->zp = w->lp + w->up;
  w->fp = w->up + w->lp;
  w->gp = w->fp + w->up;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    ocp_bounds *b = &w->bounds[kind];
    b->stride = kind == OCP_X ? w->xp : w->up;
    b->count = b->stride * (size_t)w->T;
  }
}

/* 1 if there is no NaN, and no number so large that products might overflow. */
static int finite(const double *a, size_t count) {
  return !a || max_norm_or_infinity(a, (int)count) <= QD_OCP_LARGEST;
}

static int problem_is_finite(const qd_ocp_qp *p) {
  const size_t T = (size_t)p->horizon, n = (size_t)p->state_count, m = (size_t)p->input_count;
  return finite(p->A, T * n * n) && finite(p->B, T * n * m) && finite(p->c, T * n) &&
         finite(p->x_first, n) && finite(p->u_before, m) && finite(p->Q, T * n * n) &&
         finite(p->q, T * n) && finite(p->R, T * m * m) && finite(p->r, T * m) &&
         finite(p->S, T * m * m) && finite(p->s, T * m);
}

/* Position of the caller's element i of a quantity among the padded ones. */
static size_t place(const qd_ocp_workspace *w, int kind, size_t i) {
  return kind == OCP_X ? (size_t)w->order[i] : i;
}

static size_t width(const qd_ocp_workspace *w, int kind) {
  return (size_t)(kind == OCP_X ? w->nx : w->nu);
}

/* Copies (T, width) to (T, stride); NULL gives zeros. */
static void load_rows(const qd_ocp_workspace *w, int kind, const double *from, double *to) {
  const size_t n = width(w, kind), stride = w->bounds[kind].stride;
  memset(to, 0, (size_t)w->T * stride * sizeof *to);
  if (!from) {
    return;
  }
  for (size_t t = 0; t < (size_t)w->T; ++t) {
    for (size_t i = 0; i < n; ++i) {
      to[t * stride + place(w, kind, i)] = from[t * n + i];
    }
  }
}

static void load_dynamics(qd_ocp_workspace *w, const qd_ocp_qp *problem) {
  const size_t n = (size_t)w->nx, m = (size_t)w->nu, T = (size_t)w->T;
  const size_t live = (size_t)w->live_count, dead = (size_t)w->dead_count;
  memset(w->F, 0, T * live * w->fp * sizeof *w->F);
  memset(w->B_dead, 0, T * dead * w->up * sizeof *w->B_dead);
  for (size_t t = 0; t < T; ++t) {
    for (size_t i = 0; i < n; ++i) {
      const size_t row = (size_t)w->order[i];
      const double *B = problem->B + (t * n + i) * m, *A = problem->A + (t * n + i) * n;
      if (row >= w->lp) {
        memcpy(w->B_dead + (t * dead + row - w->lp) * w->up, B, m * sizeof *B);
        continue;
      }
      double *F = w->F + (t * live + row) * w->fp;
      memcpy(F, B, m * sizeof *B);
      for (size_t j = 0; j < n; ++j) {
        if ((size_t)w->order[j] < w->lp) {
          F[w->up + (size_t)w->order[j]] = A[j];
        }
      }
    }
  }
  load_rows(w, OCP_X, problem->c, w->c);
  memset(w->x_first, 0, w->xp * sizeof *w->x_first);
  memset(w->u_before, 0, w->up * sizeof *w->u_before);
  for (size_t i = 0; i < n && problem->x_first; ++i) {
    w->x_first[w->order[i]] = problem->x_first[i];
  }
  for (size_t i = 0; i < m && problem->u_before; ++i) {
    w->u_before[i] = problem->u_before[i];
  }
}

static void load_costs(qd_ocp_workspace *w, const qd_ocp_qp *problem) {
  const size_t n = (size_t)w->nx, m = (size_t)w->nu, T = (size_t)w->T, up = w->up;
  const size_t live = (size_t)w->live_count;
  memset(w->Q, 0, T * live * w->lp * sizeof *w->Q);
  memset(w->Q_dead, 0, T * w->dp * sizeof *w->Q_dead);
  memset(w->R, 0, T * up * up * sizeof *w->R);
  memset(w->S, 0, T * up * up * sizeof *w->S);
  for (size_t t = 0; t < T; ++t) {
    for (size_t i = 0; i < n && problem->Q; ++i) {
      const double *Q = problem->Q + (t * n + i) * n;
      const size_t row = (size_t)w->order[i];
      if (row >= w->lp) {
        w->Q_dead[t * w->dp + row - w->lp] = Q[i];
        continue;
      }
      for (size_t j = 0; j < n; ++j) {
        if ((size_t)w->order[j] < w->lp) {
          w->Q[(t * live + row) * w->lp + (size_t)w->order[j]] = Q[j];
        }
      }
    }
    for (size_t i = 0; i < m; ++i) {
      const size_t to = (t * up + i) * up, from = (t * m + i) * m;
      if (problem->R) {
        memcpy(w->R + to, problem->R + from, m * sizeof *w->R);
      }
      if (problem->S) {
        memcpy(w->S + to, problem->S + from, m * sizeof *w->S);
      }
    }
    for (size_t i = m; i < up; ++i) {
      w->R[(t * up + i) * up + i] = 1.0;
    }
  }
  load_rows(w, OCP_X, problem->q, w->linear[OCP_X]);
  load_rows(w, OCP_U, problem->r, w->linear[OCP_U]);
  load_rows(w, OCP_D, problem->s, w->linear[OCP_D]);
}

static void clear_bounds(ocp_bounds *b) {
  const size_t bytes = b->count * sizeof(double);
  memset(b->weight, 0, bytes);
  for (int side = 0; side < 2; ++side) {
    double *zeros[] = {b->slack_step[side], b->dual_step[side], b->product[side]};
    for (size_t k = 0; k < sizeof zeros / sizeof *zeros; ++k) {
      memset(zeros[k], 0, bytes);
    }
    for (size_t i = 0; i < b->count; ++i) {
      b->given[side][i] = side == 0 ? -HUGE_VAL : HUGE_VAL;
    }
  }
}

static qd_status load_bounds(qd_ocp_workspace *w, int kind, const double *lower,
                             const double *upper) {
  ocp_bounds *b = &w->bounds[kind];
  const size_t n = width(w, kind);
  clear_bounds(b);
  for (size_t t = 0; t < (size_t)w->T; ++t) {
    for (size_t i = 0; i < n; ++i) {
      double l = lower ? lower[t * n + i] : -HUGE_VAL, u = upper ? upper[t * n + i] : HUGE_VAL;
      if (l != l || u != u) {
        return QD_NOT_FINITE;
      }
      if (l > u || l == HUGE_VAL || u == -HUGE_VAL) {
        return QD_INFEASIBLE;
      }
      if (l >= QD_OCP_LARGEST || u <= -QD_OCP_LARGEST) {
        return QD_NOT_FINITE;
      }
      if (l <= -QD_OCP_LARGEST) {
        l = -HUGE_VAL;
      }
      if (u >= QD_OCP_LARGEST) {
        u = HUGE_VAL;
      }
      const size_t at = t * b->stride + place(w, kind, i);
      b->given[0][at] = l;
      b->given[1][at] = u;
    }
  }
  return QD_OK;
}

/* Widens thin boxes so that they have an interior. */
static void open_boxes(qd_ocp_workspace *w) {
  const double near = ocp_bounds_nearest(w), unit = near > 0.0 ? near : 1.0;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    const ocp_bounds *b = &w->bounds[kind];
    for (size_t i = 0; i < b->count; ++i) {
      double *l = b->given[0] + i, *u = b->given[1] + i;
      const double room = thinnest * larger(larger(fabs(*l), fabs(*u)), unit);
      if (!(*u - *l < room)) {
        continue;
      }
      const double middle = 0.5 * (*l + *u);
      *l = middle - 0.5 * room;
      *u = middle + 0.5 * room;
    }
  }
}

qd_status ocp_load(qd_ocp_workspace *w, const qd_ocp_qp *problem) {
  if (!problem->A || !problem->B) {
    return QD_BAD_ARGUMENT;
  }
  if (!problem_is_finite(problem)) {
    return QD_NOT_FINITE;
  }
  lay_out_states(w, problem);
  load_dynamics(w, problem);
  load_costs(w, problem);
  qd_status status = load_bounds(w, OCP_X, problem->x_lower, problem->x_upper);
  if (status == QD_OK) {
    status = load_bounds(w, OCP_U, problem->u_lower, problem->u_upper);
  }
  if (status == QD_OK) {
    status = load_bounds(w, OCP_D, problem->d_lower, problem->d_upper);
  }
  if (status == QD_OK) {
    open_boxes(w);
  }
  return status;
}

/* ------------------------------------------------------------ results */

static void store_rows(const qd_ocp_workspace *w, int kind, const double *from, double *to) {
  const size_t n = width(w, kind), stride = w->bounds[kind].stride;
  for (size_t t = 0; t < (size_t)w->T; ++t) {
    for (size_t i = 0; i < n; ++i) {
      to[t * n + i] = from[t * stride + place(w, kind, i)];
    }
  }
}

static void store_duals(const qd_ocp_workspace *w, int kind, double *to) {
  if (!to) {
    return;
  }
  const ocp_bounds *b = &w->bounds[kind];
  const size_t n = width(w, kind);
  for (size_t t = 0; t < (size_t)w->T; ++t) {
    for (size_t i = 0; i < n; ++i) {
      const size_t at = t * b->stride + place(w, kind, i);
      to[t * n + i] = b->dual[1][at] - b->dual[0][at];
    }
  }
}

/* K = -U^-1 Y of the last factorisation; zero for dead states. */
QD_MULTIVERSION static void store_gains(const qd_ocp_workspace *w, const qd_ocp_solution *out) {
  const size_t n = (size_t)w->nx, m = (size_t)w->nu, up = w->up, gp = w->gp, zp = w->zp;
  double *K = w->VF; /* (up, zp) */
  for (size_t t = 0; t < (size_t)w->T; ++t) {
    const double *G = w->G + t * up * gp;
    for (size_t i = up; i-- > 0;) {
      const double *row = G + i * gp;
      double *to = K + i * zp;
      for (size_t j = 0; j < zp; ++j) {
        to[j] = -row[up + j];
      }
      for (size_t k = i + 1; k < up; ++k) {
        for (size_t j = 0; j < zp; ++j) {
          to[j] -= row[k] * K[k * zp + j];
        }
      }
      for (size_t j = 0; j < zp; ++j) {
        to[j] *= row[i];
      }
    }
    for (size_t i = 0; i < m; ++i) {
      for (size_t j = 0; out->x_gain && j < n; ++j) {
        const size_t at = (size_t)w->order[j];
        out->x_gain[(t * m + i) * n + j] = at < w->lp ? K[i * zp + at] : 0.0;
      }
      for (size_t j = 0; out->u_gain && j < m; ++j) {
        out->u_gain[(t * m + i) * m + j] = K[i * zp + w->lp + j];
      }
    }
  }
}

void ocp_store(const qd_ocp_workspace *w, const qd_ocp_qp *problem, const qd_ocp_solution *out) {
  const size_t n = (size_t)w->nx;
  for (size_t i = 0; i < n; ++i) {
    out->x[i] = problem->x_first ? problem->x_first[i] : 0.0;
  }
  store_rows(w, OCP_X, w->bounds[OCP_X].value, out->x + n);
  store_rows(w, OCP_U, w->bounds[OCP_U].value, out->u);
  store_duals(w, OCP_X, out->x_dual);
  store_duals(w, OCP_U, out->u_dual);
  store_duals(w, OCP_D, out->d_dual);
  if (out->x_gain || out->u_gain) {
    store_gains(w, out);
  }
  if (out->costate) {
    store_rows(w, OCP_X, w->bounds[OCP_X].step, out->costate);
  }
}
