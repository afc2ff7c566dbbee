/* Bounds of the optimal control problem: slacks, multipliers and their part of the interior point
 * method, element by element.
 *
 * Side 0: value - bound - slack = 0; side 1: bound - value - slack = 0. Newton's equations for one
 * of them, with s = slack, z = dual, e = +1 or -1 for the side, and the residual rho:
 *   ds = e dy + rho,   dz = (target - product)/s - z/s ds - z. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/ocp/qp.h"

/* One side of a kind that has a bound, with arrays of ocp_bounds; sign is e. */
typedef struct bound_side {
  double sign;
  size_t count;
  const double *value, *step;
  const double *has, *bound;
  double *slack, *dual, *slack_step, *dual_step, *product;
} bound_side;

/* Visits the lower and upper bounds of every kind that has any:
 * for (int at = 0; side_next(&s, w, &at);) */
LANES_INLINE int side_next(bound_side *s, const qd_ocp_workspace *w, int *at) {
  while (*at < 2 * OCP_KINDS && !w->bounds[*at / 2].is_bounded) {
    *at += 2;
  }
  if (*at >= 2 * OCP_KINDS) {
    return 0;
  }
  const ocp_bounds *b = &w->bounds[*at / 2];
  const int k = (*at)++ % 2;
  *s = (bound_side){.sign = k == 0 ? 1.0 : -1.0,
                    .count = b->count,
                    .value = b->value,
                    .step = b->step,
                    .has = b->has[k],
                    .bound = b->bound[k],
                    .slack = b->slack[k],
                    .dual = b->dual[k],
                    .slack_step = b->slack_step[k],
                    .dual_step = b->dual_step[k],
                    .product = b->product[k]};
  return 1;
}

LANES_INLINE double room_of(const bound_side *s, size_t i) {
  return s->sign * (s->value[i] - s->bound[i]);
}

LANES_INLINE double residual_of(const bound_side *s, size_t i) {
  return s->has[i] * (room_of(s, i) - s->slack[i]);
}

/* Limit on half of a box over the distance of its nearer side from zero, or over the data scale if
 * that is larger. In wider boxes, inputs start that distance inside the bounds instead of in the
 * middle. */
static const double lopsided = 100.0;

static double nearer(double a, double b) {
  a = fabs(a);
  b = fabs(b);
  return b > 0.0 && (b < a || a == 0.0) ? b : a;
}

double ocp_bounds_nearest(const qd_ocp_workspace *w) {
  double nearest = 0.0;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    for (int side = 0; side < 2; ++side) {
      const ocp_bounds *b = &w->bounds[kind];
      for (size_t i = 0; i < b->count; ++i) {
        nearest = nearer(nearest, b->given[side][i]);
      }
    }
  }
  return nearest < HUGE_VAL ? larger(nearest, ocp_data_scale(w)) : ocp_data_scale(w);
}

size_t ocp_bounds_select(qd_ocp_workspace *w, double reach) {
  size_t left_out = 0;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    ocp_bounds *b = &w->bounds[kind];
    b->is_bounded = 0;
    for (int side = 0; side < 2; ++side) {
      for (size_t i = 0; i < b->count; ++i) {
        const double given = b->given[side][i];
        const int is_bound = fabs(given) < HUGE_VAL, takes_part = is_bound && fabs(given) <= reach;
        b->has[side][i] = takes_part ? 1.0 : 0.0;
        b->bound[side][i] = takes_part ? given : 0.0;
        b->slack[side][i] = 1.0;
        b->dual[side][i] = b->product[side][i] = 0.0;
        b->is_bounded |= takes_part;
        left_out += (size_t)(is_bound && !takes_part);
      }
    }
    if (!b->is_bounded) {
      memset(b->weight, 0, b->count * sizeof *b->weight);
    }
  }
  return left_out;
}

int ocp_bounds_hold(const qd_ocp_workspace *w) {
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    const ocp_bounds *b = &w->bounds[kind];
    for (size_t i = 0; i < b->count; ++i) {
      if ((b->has[0][i] == 0.0 && !(b->value[i] >= b->given[0][i])) ||
          (b->has[1][i] == 0.0 && !(b->value[i] <= b->given[1][i]))) {
        return 0;
      }
    }
  }
  return 1;
}

double ocp_bounds_values(const qd_ocp_workspace *w) {
  double most = 0.0;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    most = larger(max_norm(w->bounds[kind].value, (int)w->bounds[kind].count), most);
  }
  return most;
}

int ocp_bounds_are_finite(const qd_ocp_workspace *w) {
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    if (!all_finite(w->bounds[kind].value, (int)w->bounds[kind].count)) {
      return 0;
    }
  }
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    if (!all_finite(s.slack, (int)s.count) || !all_finite(s.dual, (int)s.count)) {
      return 0;
    }
  }
  return 1;
}

void ocp_bounds_start_inputs(qd_ocp_workspace *w) {
  const double data = ocp_data_scale(w);
  ocp_bounds *b = &w->bounds[OCP_U];
  for (size_t i = 0; i < b->count; ++i) {
    b->value[i] = w->u_before[i % b->stride];
  }
  if (!b->is_bounded) {
    return;
  }
  for (size_t i = 0; i < b->count; ++i) {
    const int low = b->has[0][i] > 0.0, high = b->has[1][i] > 0.0;
    const double l = b->bound[0][i], u = b->bound[1][i];
    const double near = larger(nearer(l, u), data), half = 0.5 * (u - l);
    const double inset = low && high ? (half > lopsided * near ? near : half) : 0.0;
    if (low) {
      b->value[i] = larger(b->value[i], l + inset);
    }
    if (high) {
      b->value[i] = smaller(b->value[i], u - inset);
    }
  }
}

double ocp_data_scale(const qd_ocp_workspace *w) {
  const double scale = larger(max_norm(w->x_first, (int)w->xp), max_norm(w->u_before, (int)w->up));
  return larger(max_norm(w->c, w->T * (int)w->xp), scale);
}

double ocp_bounds_scale(const qd_ocp_workspace *w) {
  double scale = ocp_data_scale(w);
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    scale = larger(max_norm(s.bound, (int)s.count), scale);
  }
  return scale > 0.0 ? scale : 1.0;
}

void ocp_bounds_clear_duals(qd_ocp_workspace *w) {
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    memset(s.dual, 0, s.count * sizeof *s.dual);
  }
}

void ocp_bounds_start(qd_ocp_workspace *w, double unit, double dual) {
  const double least = 0.05 * unit;
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    for (size_t i = 0; i < s.count; ++i) {
      const int has = s.has[i] > 0.0;
      s.slack[i] = has ? larger(room_of(&s, i), least) : 1.0;
      s.dual[i] = has ? dual : 0.0;
    }
  }
}

QD_MULTIVERSION ocp_gap ocp_bounds_gap(const qd_ocp_workspace *w) {
  ocp_gap gap = {0.0, 0.0, 0.0, 0.0, 0.0, 0};
  double count = 0.0;
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    for (size_t i = 0; i < s.count; ++i) {
      const double product = s.slack[i] * s.dual[i];
      gap.mean += product;
      gap.largest = larger(product, gap.largest);
      const double residual = fabs(residual_of(&s, i));
      gap.residual = larger(residual, gap.residual);
      gap.beyond_rounding = larger(residual - SUM_ROUNDING * fabs(s.bound[i]), gap.beyond_rounding);
      gap.largest_dual = larger(s.dual[i], gap.largest_dual);
      count += s.has[i];
    }
  }
  gap.count = (size_t)count;
  if (gap.count > 0) {
    gap.mean /= count;
  }
  return gap;
}

QD_MULTIVERSION void ocp_bounds_weights(qd_ocp_workspace *w) {
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    ocp_bounds *b = &w->bounds[kind];
    if (!b->is_bounded) {
      continue;
    }
    for (size_t i = 0; i < b->count; ++i) {
      b->weight[i] = b->dual[0][i] / b->slack[0][i] + b->dual[1][i] / b->slack[1][i];
    }
  }
}

QD_MULTIVERSION void ocp_bounds_gradient(qd_ocp_workspace *w, double target, int with_products) {
  const double corrected = with_products ? 1.0 : 0.0;
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    const ocp_bounds *b = &w->bounds[kind];
    memcpy(b->gradient, b->cost, b->count * sizeof *b->gradient);
  }
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    double *gradient = w->bounds[(at - 1) / 2].gradient;
    for (size_t i = 0; i < s.count; ++i) {
      const double aim = target * s.has[i] - corrected * s.product[i];
      const double pull = aim - s.dual[i] * residual_of(&s, i);
      gradient[i] -= s.sign * pull / s.slack[i];
    }
  }
}

QD_MULTIVERSION double ocp_bounds_follow(qd_ocp_workspace *w, double target, int with_products) {
  const double corrected = with_products ? 1.0 : 0.0;
  double fastest = 1.0; /* 1 / the longest step */
  bound_side side;
  for (int at = 0; side_next(&side, w, &at);) {
    double worst = 1.0;
    for (size_t i = 0; i < side.count; ++i) {
      const double s = side.slack[i], z = side.dual[i], has = side.has[i];
      const double ds = has * side.sign * side.step[i] + residual_of(&side, i);
      const double aim = target * has - corrected * side.product[i];
      const double dz = (aim - z * ds) / s - z;
      side.slack_step[i] = ds;
      side.dual_step[i] = dz;
      worst = larger(-ds / s, worst);
      worst = larger(-dz / z, worst);
    }
    fastest = larger(worst, fastest);
  }
  return 1.0 / fastest;
}

QD_MULTIVERSION void ocp_bounds_products(qd_ocp_workspace *w) {
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    for (size_t i = 0; i < s.count; ++i) {
      s.product[i] = s.slack_step[i] * s.dual_step[i];
    }
  }
}

QD_MULTIVERSION double ocp_bounds_gap_after(const qd_ocp_workspace *w, double length) {
  double sum = 0.0, count = 0.0;
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    for (size_t i = 0; i < s.count; ++i) {
      sum += (s.slack[i] + length * s.slack_step[i]) * (s.dual[i] + length * s.dual_step[i]);
      count += s.has[i];
    }
  }
  return count > 0.0 ? sum / count : 0.0;
}

QD_MULTIVERSION void ocp_bounds_move(qd_ocp_workspace *w, double length) {
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    const ocp_bounds *b = &w->bounds[kind];
    for (size_t i = 0; i < b->count; ++i) {
      b->value[i] += length * b->step[i];
    }
  }
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    for (size_t i = 0; i < s.count; ++i) {
      s.slack[i] += length * s.slack_step[i];
      s.dual[i] += length * s.dual_step[i];
    }
  }
}

double ocp_bounds_certificate(const qd_ocp_workspace *w) {
  double sum = 0.0;
  bound_side s;
  for (int at = 0; side_next(&s, w, &at);) {
    for (size_t i = 0; i < s.count; ++i) {
      sum -= s.dual[i] * room_of(&s, i);
    }
  }
  return sum;
}
