/* Newton steps of linear-quadratic optimal control by Riccati recursion on z = (x, previous u).
 *
 * Let V be the value function of stage t + 1. z_{t+1} has the parts F_t (u, x) (the state) and u
 * (the previous input). One stage is then the quadratic H = F'VF in (u, x, w), w the previous
 * input, plus the stage's cost. Eliminating u by the Cholesky factor U'U of Huu leaves V_t = Hzz -
 * Y'Y, Y = U^-T Huz. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/ocp/qp.h"

/* C (m, n) += sign X'Y for X (K, m) and Y (K, n); m and n are whole lanes. */
LANES_INLINE void add_tile(double *C, size_t ldc, const double *X, size_t ldx, const double *Y,
                           size_t ldy, size_t K, double sign, size_t columns) {
  lanes sum[4][2];
  for (int i = 0; i < 4; ++i) {
    sum[i][0] = sum[i][1] = (lanes){0.0, 0.0, 0.0, 0.0};
  }
  if (columns == 2 * LANE_COUNT) {
    for (size_t k = 0; k < K; ++k) {
      const lanes y0 = LANES_OF(Y + k * ldy), y1 = LANES_OF(Y + k * ldy + LANE_COUNT);
      for (int i = 0; i < 4; ++i) {
        const double x = X[k * ldx + (size_t)i];
        sum[i][0] += x * y0;
        sum[i][1] += x * y1;
      }
    }
  } else {
    for (size_t k = 0; k < K; ++k) {
      const lanes y0 = LANES_OF(Y + k * ldy);
      for (int i = 0; i < 4; ++i) {
        sum[i][0] += X[k * ldx + (size_t)i] * y0;
      }
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (size_t j = 0; j < columns; j += LANE_COUNT) {
      LANES_AT(C + (size_t)i * ldc + j) += sign * sum[i][j / LANE_COUNT];
    }
  }
}

LANES_INLINE void add_products(double *C, size_t ldc, const double *X, size_t ldx, size_t m,
                               const double *Y, size_t ldy, size_t n, size_t K, double sign) {
  for (size_t i = 0; i < m; i += 4) {
    size_t j = 0;
    for (; j + 2 * LANE_COUNT <= n; j += 2 * LANE_COUNT) {
      add_tile(C + i * ldc + j, ldc, X + i, ldx, Y + j, ldy, K, sign, 2 * LANE_COUNT);
    }
    if (j < n) {
      add_tile(C + i * ldc + j, ldc, X + i, ldx, Y + j, ldy, K, sign, LANE_COUNT);
    }
  }
}

LANES_INLINE void add_scaled(double *out, const double *in, double factor, size_t count) {
  for (size_t j = 0; j < count; j += LANE_COUNT) {
    LANES_AT(out + j) += factor * LANES_OF(in + j);
  }
}

LANES_INLINE double dot(const double *a, const double *b, size_t count) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  for (size_t j = 0; j < count; j += LANE_COUNT) {
    sum += LANES_OF(a + j) * LANES_OF(b + j);
  }
  return lanes_sum(&sum);
}

/* Replaces the rows [Huu Hux Huw] by [U Y] through elimination, four rows at a time. */
LANES_INLINE int eliminate(double *G, size_t up, size_t gp) {
  for (size_t first = 0; first < up; first += 4) {
    add_products(G + first * gp + first, gp, G + first, gp, 4, G + first, gp, gp - first, first,
                 -1.0);
    for (size_t k = first; k < first + 4; ++k) {
      double *row = G + k * gp;
      const double pivot = row[k];
      if (!(pivot > 0.0) || !(pivot < HUGE_VAL)) {
        return 0;
      }
      const double inverse = 1.0 / sqrt(pivot);
      for (size_t j = first; j < gp; j += LANE_COUNT) {
        LANES_AT(row + j) *= inverse;
      }
      row[k] = inverse;
      for (size_t i = k + 1; i < first + 4; ++i) {
        add_scaled(G + i * gp + first, row + first, -row[i], gp - first);
      }
    }
  }
  return 1;
}

/* Adds the cost and barrier of the state after stage t to V. */
LANES_INLINE void value_begin(const qd_ocp_workspace *w, size_t t, double *V) {
  const size_t zp = w->zp, lp = w->lp, live = (size_t)w->live_count;
  const double *Q = w->Q + t * live * lp, *weight = w->bounds[OCP_X].weight + t * w->xp;
  for (size_t i = 0; i < live; ++i) {
    for (size_t j = 0; j < lp; ++j) {
      V[i * zp + j] += Q[i * lp + j];
    }
    V[i * zp + i] += weight[i];
  }
}

LANES_INLINE void stage_inputs(qd_ocp_workspace *w, size_t t, double *G) {
  const size_t up = w->up, gp = w->gp, fp = w->fp, dead = (size_t)w->dead_count;
  const double *R = w->R + t * up * up, *S = w->S + t * up * up;
  const double *u_weight = w->bounds[OCP_U].weight + t * up;
  const double *d_weight = w->bounds[OCP_D].weight + t * up;
  for (size_t i = 0; i < up; ++i) {
    double *row = G + i * gp;
    for (size_t j = 0; j < up; ++j) {
      row[j] += R[i * up + j] + S[i * up + j];
      row[fp + j] = -S[i * up + j];
    }
    row[i] += u_weight[i] + d_weight[i];
    row[fp + i] -= d_weight[i];
  }
  if (dead == 0) {
    return;
  }
  const double *B = w->B_dead + t * dead * up, *Q = w->Q_dead + t * w->dp;
  const double *x_weight = w->bounds[OCP_X].weight + t * w->xp + w->lp;
  for (size_t k = 0; k < dead; ++k) {
    const double factor = Q[k] + x_weight[k];
    for (size_t j = 0; j < up; j += LANE_COUNT) {
      LANES_AT(w->scaled + k * up + j) = factor * LANES_OF(B + k * up + j);
    }
  }
  add_products(G, gp, w->scaled, up, up, B, up, up, dead, 1.0);
}

LANES_INLINE int factor_stage(qd_ocp_workspace *w, size_t t) {
  const size_t up = w->up, lp = w->lp, zp = w->zp, fp = w->fp, gp = w->gp;
  const size_t live = (size_t)w->live_count;
  const double *F = w->F + t * live * fp;
  double *V = w->V, *VF = w->VF, *G = w->G + t * up * gp;
  memset(VF, 0, zp * fp * sizeof *VF);
  for (size_t i = 0; i < zp; ++i) {
    memcpy(VF + i * fp, V + i * zp + lp, up * sizeof *VF);
  }
  add_products(VF, fp, V, zp, zp, F, fp, fp, live, 1.0);
  for (size_t i = 0; i < up; ++i) {
    memcpy(G + i * gp, VF + (lp + i) * fp, fp * sizeof *G);
  }
  add_products(G, gp, F, fp, up, VF, fp, fp, live, 1.0);
  stage_inputs(w, t, G);
  if (!eliminate(G, up, gp)) {
    return 0;
  }
  if (t == 0) {
    return 1;
  }
  const double *S = w->S + t * up * up, *d_weight = w->bounds[OCP_D].weight + t * up;
  memset(V, 0, zp * zp * sizeof *V);
  for (size_t i = 0; i < up; ++i) {
    memcpy(V + (lp + i) * zp + lp, S + i * up, up * sizeof *V);
    V[(lp + i) * zp + lp + i] += d_weight[i];
  }
  add_products(V, zp, F + up, fp, lp, VF + up, fp, lp, live, 1.0);
  /* Rounding makes F'VF slightly unsymmetric, and repeated products A'(.)A accumulate this part,
   * which no feedback damps. */
  for (size_t i = 1; i < lp; ++i) {
    for (size_t j = 0; j < i; ++j) {
      V[j * zp + i] = V[i * zp + j];
    }
  }
  add_products(V, zp, G + up, gp, zp, G + up, gp, zp, up, -1.0);
  value_begin(w, t - 1, V);
  return 1;
}

QD_MULTIVERSION int ocp_factor(qd_ocp_workspace *w) {
  memset(w->V, 0, w->zp * w->zp * sizeof *w->V);
  value_begin(w, (size_t)w->T - 1, w->V);
  for (size_t t = (size_t)w->T; t-- > 0;) {
    if (!factor_stage(w, t)) {
      return 0;
    }
  }
  return 1;
}

/* ------------------------------------------------------------ vectors */

/* |a|, infinite for NaN */
LANES_INLINE double not_nan(double a) { return fabs(a) < HUGE_VAL ? fabs(a) : HUGE_VAL; }

/* p of the stage before from v of this stage: gradients by x, for live states, and by w. */
LANES_INLINE void pass_on(const qd_ocp_workspace *w, const double *gx, const double *v, double *p) {
  const size_t up = w->up, lp = w->lp, xp = w->xp;
  for (size_t j = 0; j < lp; ++j) {
    p[j] = v[up + j] + gx[j];
  }
  for (size_t j = lp; j < xp; ++j) {
    p[j] = gx[j];
  }
  memcpy(p + xp, v + w->fp, up * sizeof *p);
}

/* y_t = U^-T (gradient by u_t), from the last stage to the first. p_t is the gradient of the cost
 * to go under the feedback of the factors, so it does not grow with unstable dynamics. With p as
 * costates, the residuals of the optimality conditions, in `found`, are U'y for u_t and Y'y for
 * z_t. */
LANES_INLINE void backward(qd_ocp_workspace *w, ocp_stationarity *found, double *costate) {
  const size_t up = w->up, lp = w->lp, zp = w->zp, fp = w->fp, gp = w->gp, xp = w->xp;
  const size_t live = (size_t)w->live_count, dead = (size_t)w->dead_count, T = (size_t)w->T;
  const double *gx = w->bounds[OCP_X].gradient, *gu = w->bounds[OCP_U].gradient;
  const double *gd = w->bounds[OCP_D].gradient;
  double *p = w->p, *v = w->v; /* p: (x, w) of the next stage; v: (u, x, w) */
  memcpy(p, gx + (T - 1) * xp, xp * sizeof *p);
  memset(p + xp, 0, up * sizeof *p);
  for (size_t t = T; t-- > 0;) {
    const double *F = w->F + t * live * fp, *B = w->B_dead + t * dead * up;
    const double *G = w->G + t * up * gp;
    double *y = w->y + t * up;
    if (costate) {
      memcpy(costate + t * xp, p, xp * sizeof *p);
    }
    memset(v, 0, fp * sizeof *v);
    for (size_t k = 0; k < live; ++k) {
      add_scaled(v, F + k * fp, p[k], fp);
    }
    for (size_t k = 0; k < dead; ++k) {
      add_scaled(v, B + k * up, p[lp + k], up);
    }
    if (found) {
      found->scale = larger(max_norm(v, (int)up), found->scale);
    }
    for (size_t j = 0; j < up; ++j) {
      v[j] += p[xp + j] + gu[t * up + j] + gd[t * up + j];
    }
    for (size_t j = 0; j < up; ++j) {
      v[fp + j] = -gd[t * up + j];
    }
    if (found) {
      found->scale = larger(max_norm(gu + t * up, (int)up), found->scale);
      found->scale = larger(max_norm(gd + t * up, (int)up), found->scale);
      found->largest = larger(max_norm_or_infinity(v, (int)up), found->largest);
      memcpy(w->z, v + up, zp * sizeof *v);
    }
    for (size_t k = 0; k < up; ++k) { /* rows below and (x, w) at once */
      const double *row = G + k * gp;
      const size_t from = k / LANE_COUNT * LANE_COUNT;
      const double value = v[k] * row[k];
      add_scaled(v + from, row + from, -value, gp - from);
      y[k] = value;
    }
    if (t == 0) {
      break;
    }
    if (found) {
      for (size_t j = 0; j < zp; ++j) {
        found->largest = larger(not_nan(v[up + j] - w->z[j]), found->largest);
      }
    }
    pass_on(w, gx + (t - 1) * xp, v, p);
  }
}

/* du = -U^-1 (y + Y z), y may be NULL */
LANES_INLINE void feedback(const qd_ocp_workspace *w, size_t t, const double *y, const double *z,
                           double *du) {
  const size_t up = w->up;
  const double *G = w->G + t * up * w->gp;
  memset(du, 0, up * sizeof *du);
  for (size_t i = up; i-- > 0;) {
    const double *row = G + i * w->gp;
    const size_t from = i / LANE_COUNT * LANE_COUNT;
    const double rest = dot(row + from, du + from, up - from); /* du[i] is still zero */
    du[i] = -((y ? y[i] : 0.0) + dot(row + up, z, w->zp) + rest) * row[i];
  }
}

QD_MULTIVERSION void ocp_newton_step(qd_ocp_workspace *w) {
  const size_t up = w->up, lp = w->lp, zp = w->zp, fp = w->fp, xp = w->xp;
  const size_t live = (size_t)w->live_count, dead = (size_t)w->dead_count, T = (size_t)w->T;
  backward(w, NULL, NULL);
  double *z = w->z, *ux = w->v; /* z: (live x, w); ux: (u, x) */
  memset(z, 0, zp * sizeof *z);
  for (size_t t = 0; t < T; ++t) {
    const double *F = w->F + t * live * fp, *B = w->B_dead + t * dead * up;
    double *x = w->bounds[OCP_X].step + t * xp, *u = w->bounds[OCP_U].step + t * up;
    double *d = w->bounds[OCP_D].step + t * up;
    feedback(w, t, w->y + t * up, z, u);
    memcpy(ux, u, up * sizeof *ux);
    memcpy(ux + up, z, lp * sizeof *ux);
    memset(x, 0, xp * sizeof *x);
    for (size_t k = 0; k < live; ++k) {
      x[k] = dot(F + k * fp, ux, fp);
    }
    for (size_t k = 0; k < dead; ++k) {
      x[lp + k] = dot(B + k * up, u, up);
    }
    for (size_t j = 0; j < up; ++j) {
      d[j] = u[j] - z[lp + j];
    }
    memcpy(z, x, lp * sizeof *z);
    memcpy(z + lp, u, up * sizeof *z);
  }
}

QD_MULTIVERSION void ocp_roll_out(qd_ocp_workspace *w, int with_feedback) {
  const size_t up = w->up, lp = w->lp, zp = w->zp, fp = w->fp, xp = w->xp, T = (size_t)w->T;
  const size_t live = (size_t)w->live_count, dead = (size_t)w->dead_count;
  const double *before_x = w->x_first, *before_u = w->u_before;
  double *z = w->z, *du = w->p;
  memset(z, 0, zp * sizeof *z);
  for (size_t t = 0; t < T; ++t) {
    const double *F = w->F + t * live * fp, *B = w->B_dead + t * dead * up, *c = w->c + t * xp;
    double *u = w->bounds[OCP_U].value + t * up;
    double *x = w->bounds[OCP_X].value + t * xp, *d = w->bounds[OCP_D].value + t * up;
    if (with_feedback) {
      feedback(w, t, NULL, z, du);
      for (size_t j = 0; j < up; ++j) {
        u[j] += du[j];
      }
      memcpy(z + lp, du, up * sizeof *du);
    }
    memcpy(w->v, u, up * sizeof *w->v);
    memcpy(w->v + up, before_x, lp * sizeof *w->v);
    for (size_t k = 0; k < live; ++k) {
      const double value = c[k] + dot(F + k * fp, w->v, fp);
      z[k] = value - x[k];
      x[k] = value;
    }
    for (size_t k = 0; k < dead; ++k) {
      x[lp + k] = c[lp + k] + dot(B + k * up, u, up);
    }
    for (size_t j = 0; j < up; ++j) {
      d[j] = u[j] - before_u[j];
    }
    before_x = x;
    before_u = u;
  }
}

QD_MULTIVERSION ocp_stationarity ocp_residual(qd_ocp_workspace *w, double *costate) {
  ocp_stationarity found = {0.0, 0.0, 0.0};
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    ocp_bounds *b = &w->bounds[kind];
    for (size_t i = 0; i < b->count; ++i) {
      b->gradient[i] = b->cost[i];
    }
    if (!b->is_bounded) {
      continue;
    }
    for (size_t i = 0; i < b->count; ++i) {
      b->gradient[i] += b->dual[1][i] - b->dual[0][i];
    }
  }
  backward(w, &found, costate);
  return found;
}

QD_MULTIVERSION void ocp_cost_gradient(qd_ocp_workspace *w) {
  const size_t up = w->up, lp = w->lp, xp = w->xp, T = (size_t)w->T;
  const size_t live = (size_t)w->live_count;
  for (size_t t = 0; t < T; ++t) {
    const double *x = w->bounds[OCP_X].value + t * xp, *u = w->bounds[OCP_U].value + t * up;
    const double *d = w->bounds[OCP_D].value + t * up;
    double *gx = w->bounds[OCP_X].cost + t * xp, *gu = w->bounds[OCP_U].cost + t * up;
    double *gd = w->bounds[OCP_D].cost + t * up;
    memcpy(gx, w->linear[OCP_X] + t * xp, xp * sizeof *gx);
    memcpy(gu, w->linear[OCP_U] + t * up, up * sizeof *gu);
    memcpy(gd, w->linear[OCP_D] + t * up, up * sizeof *gd);
    for (size_t k = 0; k < live; ++k) {
      gx[k] += dot(w->Q + (t * live + k) * lp, x, lp);
    }
    for (size_t k = 0; k < w->dp; ++k) {
      gx[lp + k] += w->Q_dead[t * w->dp + k] * x[lp + k];
    }
    for (size_t k = 0; k < up; ++k) {
      gu[k] += dot(w->R + (t * up + k) * up, u, up);
      gd[k] += dot(w->S + (t * up + k) * up, d, up);
    }
  }
}

double ocp_objective(const qd_ocp_workspace *w) {
  /* 1/2 y'Wy + l'y = 1/2 y'(Wy + l) + 1/2 l'y */
  double sum = 0.0;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    const ocp_bounds *b = &w->bounds[kind];
    for (size_t i = 0; i < b->count; ++i) {
      sum += 0.5 * b->value[i] * (b->cost[i] + w->linear[kind][i]);
    }
  }
  return sum;
}

double ocp_given_force(const qd_ocp_workspace *w) {
  const size_t T = (size_t)w->T, live = (size_t)w->live_count, dead = (size_t)w->dead_count;
  double effect = max_norm(w->B_dead, (int)(T * dead * w->up));
  for (size_t row = 0; row < T * live; ++row) {
    effect = larger(max_norm(w->F + row * w->fp, (int)w->up), effect);
  }
  const ocp_bounds *b = w->bounds;
  const double x = max_norm(w->linear[OCP_X], (int)b[OCP_X].count) * effect;
  const double u = max_norm(w->linear[OCP_U], (int)b[OCP_U].count);
  return larger(larger(x, u), max_norm(w->linear[OCP_D], (int)b[OCP_D].count));
}

/* Derivative of the Lagrangian by one element: cost and multipliers. */
LANES_INLINE double slope(const ocp_bounds *b, size_t i, int with_cost) {
  double sum = with_cost ? b->cost[i] : 0.0;
  if (b->is_bounded) {
    sum += b->dual[1][i] - b->dual[0][i];
  }
  return sum;
}

QD_MULTIVERSION ocp_stationarity ocp_lagrangian(qd_ocp_workspace *w, int with_cost) {
  const size_t up = w->up, lp = w->lp, fp = w->fp, xp = w->xp, T = (size_t)w->T;
  const size_t live = (size_t)w->live_count, dead = (size_t)w->dead_count;
  const ocp_bounds *bx = &w->bounds[OCP_X], *bu = &w->bounds[OCP_U], *bd = &w->bounds[OCP_D];
  ocp_stationarity found = {0.0, 0.0, 0.0};
  double *p = w->p, *v = w->v;
  memset(v, 0, (up + lp) * sizeof *v);
  for (size_t t = T; t-- > 0;) {
    const double *F = w->F + t * live * fp, *B = w->B_dead + t * dead * up;
    for (size_t j = 0; j < lp; ++j) {
      p[j] = v[up + j] + slope(bx, t * xp + j, with_cost);
    }
    for (size_t j = lp; j < xp; ++j) {
      p[j] = slope(bx, t * xp + j, with_cost);
    }
    memset(v, 0, (up + lp) * sizeof *v);
    for (size_t k = 0; k < live; ++k) {
      add_scaled(v, F + k * fp, p[k], fp);
    }
    for (size_t k = 0; k < dead; ++k) {
      add_scaled(v, B + k * up, p[lp + k], up);
    }
    for (size_t j = 0; j < up; ++j) {
      const double own = slope(bu, t * up + j, with_cost) + slope(bd, t * up + j, with_cost);
      const double after = t + 1 < T ? slope(bd, (t + 1) * up + j, with_cost) : 0.0;
      const double residual = fabs(v[j] + own - after);
      found.scale = larger(larger(fabs(v[j]), found.scale), larger(fabs(own), fabs(after)));
      found.largest = larger(residual, found.largest);
      found.sum += residual;
    }
  }
  if (!(found.sum < HUGE_VAL)) {
    found.largest = HUGE_VAL; /* NaN fails all comparisons above */
  }
  return found;
}
