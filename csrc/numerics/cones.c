#include "numerics/cones.h"

#include <math.h>

#include "base/lanes.h"
#include "base/rounding.h"

#define EDGE 1e-16 /* smallest relative distance to the boundary above rounding */

/* Kernels process four cones side by side, one per lane, in registers. Kernels of Lorentz cones
 * take the dimension as an argument: the compiler unrolls loops over the common, constant
 * dimensions. */
#define ROW(pointer, i) LANES_OF((pointer) + (size_t)(i) * (size_t)n + c)
#define ROW_AT(pointer, i) LANES_AT((pointer) + (size_t)(i) * (size_t)n + c)

/* sum of x_i y_i over the rows behind the first */
LANES_INLINE void tail_dot(lanes *sum, const double *x, const double *y, int dim, int n, int c) {
  lanes total = {0.0, 0.0, 0.0, 0.0};
  for (int i = 1; i < dim; ++i) {
    total += ROW(x, i) * ROW(y, i);
  }
  *sum = total;
}

LANES_INLINE double largest_lane(const lanes *a) {
  return larger(larger((*a)[0], (*a)[1]), larger((*a)[2], (*a)[3]));
}

/* ------------------------------------------------------------ scaling */

LANES_INLINE int scale_orthant(cone_product *product, const cone_group *group, const double *slack,
                               const double *dual) {
  const double *slacks = slack + group->slot, *duals = dual + group->slot;
  const int at = group->cone;
  lane_bits inside = {-1, -1, -1, -1};
  for (int c = 0; c < group->padded; c += LANE_COUNT) {
    const lanes s = LANES_OF(slacks + c), z = LANES_OF(duals + c);
    lanes root_s, root_z;
    inside &= (s > 0.0) & (z > 0.0);
    lanes_sqrt(&root_s, &s);
    lanes_sqrt(&root_z, &z);
    const lanes size = root_s * root_z, per = 1.0 / size;
    LANES_AT(product->point + group->slot + c) = size;
    LANES_AT(product->point_norm + at + c) = size;
    LANES_AT(product->scaling.diagonal + at + c) = z * per;
    LANES_AT(product->inverse.diagonal + at + c) = s * per;
  }
  return (inside[0] & inside[1] & inside[2] & inside[3]) != 0;
}

/* Nesterov-Todd scaling and scaled point of a Lorentz cone. With ss = |s_1|^2, zz = |z_1|^2, sz =
 * s_1'z_1, gamma = sqrt((1 + s^'z^) / 2) of the normalised pair, w = (s^ + J z^) / (2 gamma) and
 * W^2 z = s. W^-1 has the eigenvalues (w_0 -+ |w_1|) / eta along (1, +-w_1/|w_1|) and 1/eta across,
 * eta = (det s / det z)^(1/4). The point has v_0 = gamma, v_1 = ((gamma + s^_0) z^_1 + (gamma +
 * z^_0) s^_1) / (s^_0 + z^_0 + 2 gamma), times (det s det z)^(1/4), without differences of nearly
 * equal numbers (Vandenberghe, cvxopt's cone programs). */
LANES_INLINE int scale_lorentz(cone_product *product, const cone_group *group, const double *slack,
                               const double *dual, int dim) {
  const int n = group->padded, at = group->cone;
  const double *s = slack + group->slot, *z = dual + group->slot;
  double *u = product->scaling.u + group->slot, *point = product->point + group->slot;
  cone_operator *forward = &product->scaling, *backward = &product->inverse;
  lane_bits inside = {-1, -1, -1, -1};
  for (int c = 0; c < n; c += LANE_COUNT) {
    const lanes s0 = ROW(s, 0), z0 = ROW(z, 0), s2 = s0 * s0, z2 = z0 * z0;
    lanes ss, zz, sz, root_s, root_z, gamma, eta, norm, ww = {0.0, 0.0, 0.0, 0.0};
    tail_dot(&ss, s, s, dim, n, c);
    tail_dot(&zz, z, z, dim, n, c);
    tail_dot(&sz, s, z, dim, n, c);
    const lanes det_s = s2 - ss, det_z = z2 - zz, edge_s = EDGE * s2, edge_z = EDGE * z2;
    /* steps may round a point onto the boundary, hence the floors */
    inside &= (s0 > 0.0) & (z0 > 0.0) & (det_s > -CANCELLED * s2) & (det_z > -CANCELLED * z2);
    lanes_larger(&root_s, &det_s, &edge_s);
    lanes_larger(&root_z, &det_z, &edge_z);
    lanes_sqrt(&root_s, &root_s);
    lanes_sqrt(&root_z, &root_z);
    const lanes both = 1.0 / (root_s * root_z), rs = both * root_z, rz = both * root_s;
    const lanes one = {1.0, 1.0, 1.0, 1.0};
    lanes of_units = (s0 * z0 + sz) * both; /* >= 1, up to rounding */
    lanes_larger(&of_units, &of_units, &one);
    of_units = 0.5 + 0.5 * of_units;
    lanes_sqrt(&gamma, &of_units);
    eta = root_z * rs;
    lanes_sqrt(&eta, &eta); /* 1 / eta */
    const lanes half = 0.5 / gamma, size = eta * root_s, inverse_eta = size * rz;
    const lanes divided = size / (s0 * rs + z0 * rz + 2.0 * gamma);
    const lanes ps = rs * (gamma + z0 * rz) * divided, pz = rz * (gamma + s0 * rs) * divided;
    const lanes ws = rs * half, wz = rz * half, w0 = s0 * ws + z0 * wz;
    LANES_AT(product->point_norm + at + c) = size;
    ROW_AT(point, 0) = size * gamma;
    for (int i = 1; i < dim; ++i) {
      const lanes si = ROW(s, i), zi = ROW(z, i), wi = si * ws - zi * wz;
      ROW_AT(point, i) = ps * si + pz * zi;
      ROW_AT(u, i) = wi;
      ww += wi * wi;
    }
    /* W^-1 = [w_0, -w_1'; -w_1, I + w_1 w_1'/(1 + w_0)] / eta: diagonal w_0 / eta, cross -|w_1| /
     * eta */
    lanes_sqrt(&norm, &ww);
    LANES_AT(forward->diagonal + at + c) = w0 * eta;
    LANES_AT(forward->cross + at + c) = -norm * eta;
    LANES_AT(forward->tangent + at + c) = eta;
    LANES_AT(backward->diagonal + at + c) = w0 * inverse_eta;
    LANES_AT(backward->cross + at + c) = norm * inverse_eta;
    LANES_AT(backward->tangent + at + c) = inverse_eta;
    const lanes tiny = {1e-300, 1e-300, 1e-300, 1e-300}; /* no direction: u = 0 */
    lanes_larger(&norm, &norm, &tiny);
    const lanes per = 1.0 / norm;
    for (int i = 1; i < dim; ++i) {
      ROW_AT(u, i) *= per;
    }
  }
  return (inside[0] & inside[1] & inside[2] & inside[3]) != 0;
}

QD_MULTIVERSION
int cones_scale(cone_product *product, const double *slack, const double *dual) {
  int inside = 1;
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    if (group->kind <= GROUP_ENDS) {
      inside &= scale_orthant(product, group, slack, dual);
    } else if (group->kind == GROUP_LORENTZ && group->dim == 3) {
      inside &= scale_lorentz(product, group, slack, dual, 3);
    } else if (group->kind == GROUP_LORENTZ) {
      inside &= scale_lorentz(product, group, slack, dual, group->dim);
    }
  }
  return inside;
}

/* ------------------------------------------------------------ operators */

/* y = value, or y += factor value */
LANES_INLINE void put(double *y, const lanes *value, double factor, int add) {
  if (add) {
    LANES_AT(y) += factor * *value;
  } else {
    LANES_AT(y) = *value;
  }
}

/* A x for four cones */
LANES_INLINE void apply_lanes(const cone_group *group, const cone_operator *A, const double *x,
                              int c, double factor, double *y, int add, int dim) {
  const int n = group->padded, at = group->cone + c;
  const double *u = A->u + group->slot;
  const lanes d = LANES_OF(A->diagonal + at), cross = LANES_OF(A->cross + at);
  const lanes tangent = LANES_OF(A->tangent + at), along = LANES_OF(A->along + at);
  const lanes x0 = ROW(x, 0);
  lanes t;
  tail_dot(&t, u, x, dim, n, c);
  const lanes q = cross * x0 + (along - tangent) * t, first = d * x0 + cross * t;
  put(y + c, &first, factor, add);
  for (int i = 1; i < dim; ++i) {
    const lanes value = tangent * ROW(x, i) + ROW(u, i) * q;
    put(y + i * n + c, &value, factor, add);
  }
}

LANES_INLINE void apply_group(const cone_group *group, const cone_operator *A, const double *x,
                              double factor, double *y, int add) {
  const double *xg = x + group->slot;
  double *yg = y + group->slot;
  if (group->kind != GROUP_LORENTZ) {
    for (int c = 0; c < group->padded; c += LANE_COUNT) {
      const lanes value = LANES_OF(A->diagonal + group->cone + c) * LANES_OF(xg + c);
      put(yg + c, &value, factor, add);
    }
  } else if (group->dim == 3) {
    for (int c = 0; c < group->padded; c += LANE_COUNT) {
      apply_lanes(group, A, xg, c, factor, yg, add, 3);
    }
  } else {
    for (int c = 0; c < group->padded; c += LANE_COUNT) {
      apply_lanes(group, A, xg, c, factor, yg, add, group->dim);
    }
  }
}

QD_MULTIVERSION
void cones_apply(const cone_product *product, const cone_operator *A, const double *x, double *y) {
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    apply_group(group, A, x, 0.0, y, 0);
  }
}

QD_MULTIVERSION
void cones_add(const cone_product *product, const cone_operator *A, double factor, const double *x,
               double *y) {
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    apply_group(group, A, x, factor, y, 1);
  }
}

/* ------------------------------------------------------------ right-hand sides */

/* (target + shift) / v - v - ds o dz / v; `second`: with the last term */
LANES_INLINE void correct_orthant(const cone_product *product, const cone_group *group,
                                  double shift, const double *ds, const double *dz, double *p,
                                  int second) {
  const int at = group->cone;
  for (int c = 0; c < group->padded; c += LANE_COUNT) {
    const lanes v = LANES_OF(product->point + group->slot + c);
    lanes aim = LANES_OF(product->target + at + c) + shift * LANES_OF(product->weight + at + c);
    if (second) {
      aim -= LANES_OF(ds + group->slot + c) * LANES_OF(dz + group->slot + c);
    }
    LANES_AT(p + group->slot + c) = aim / v - v;
  }
}

/* v^-1 = J v / det; v^-1 o r: first = (v_0 r_0 - v_1'r_1) / det, rest = (r_1 - first v_1) / v_0,
 * with r = ds o dz */
LANES_INLINE void correct_lorentz(const cone_product *product, const cone_group *group,
                                  double shift, const double *ds, const double *dz, double *p,
                                  int second, int dim) {
  const int n = group->padded, at = group->cone;
  const double *v = product->point + group->slot;
  const double *a = second ? ds + group->slot : v, *b = second ? dz + group->slot : v;
  double *out = p + group->slot;
  for (int c = 0; c < n; c += LANE_COUNT) {
    const lanes v0 = ROW(v, 0), norm = LANES_OF(product->point_norm + at + c);
    const lanes per_det = 1.0 / (norm * norm), inverse = 1.0 / v0;
    const lanes aim =
        (LANES_OF(product->target + at + c) + shift * LANES_OF(product->weight + at + c)) * per_det;
    const lanes a0 = ROW(a, 0), b0 = ROW(b, 0);
    lanes first = {0.0, 0.0, 0.0, 0.0};
    if (second) {
      lanes head, vr = {0.0, 0.0, 0.0, 0.0};
      tail_dot(&head, a, b, dim, n, c);
      for (int i = 1; i < dim; ++i) {
        vr += ROW(v, i) * (a0 * ROW(b, i) + b0 * ROW(a, i));
      }
      first = (v0 * (head + a0 * b0) - vr) * per_det;
    }
    ROW_AT(out, 0) = aim * v0 - v0 - first;
    for (int i = 1; i < dim; ++i) {
      const lanes vi = ROW(v, i);
      lanes value = -aim * vi - vi;
      if (second) {
        value -= (a0 * ROW(b, i) + b0 * ROW(a, i) - first * vi) * inverse;
      }
      ROW_AT(out, i) = value;
    }
  }
}

LANES_INLINE void correct(const cone_product *product, double shift, const double *ds,
                          const double *dz, double *p, int second) {
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    if (group->kind >= GROUP_EQUALITY) {
      for (int c = 0; c < group->padded; ++c) {
        p[group->slot + c] = 0.0;
      }
    } else if (group->kind <= GROUP_ENDS) {
      correct_orthant(product, group, shift, ds, dz, p, second);
    } else if (group->dim == 3) {
      correct_lorentz(product, group, shift, ds, dz, p, second, 3);
    } else {
      correct_lorentz(product, group, shift, ds, dz, p, second, group->dim);
    }
  }
}

QD_MULTIVERSION
void cones_correct(cone_product *product, double shift, const double *ds, const double *dz,
                   double *p) {
  if (ds) {
    correct(product, shift, ds, dz, p, 1);
  } else {
    correct(product, shift, ds, dz, p, 0);
  }
}

/* ------------------------------------------------------------ step to the boundary and measures */

/* Raises the rate, 1 / step to the boundary, of Lorentz cones. With v = norm (v^), the boundary is
 * at 1 / (|r_1| - r_0), r the direction in the frame where v^ is e: r_0 = v^'J d / norm, r_1 = (d_1
 * - (v^'J d + d_0) / (v^_0 + 1) v^_1) / norm. */
LANES_INLINE void lorentz_rate(lanes *rate, const double *v, const double *d, const lanes *per,
                               int dim, int n, int c) {
  lanes vd, length, size = {0.0, 0.0, 0.0, 0.0};
  tail_dot(&vd, v, d, dim, n, c);
  const lanes d0 = ROW(d, 0), v0 = ROW(v, 0), head = (v0 * d0 - vd) * *per;
  const lanes factor = (head + d0) / (v0 * *per + 1.0) * *per;
  for (int i = 1; i < dim; ++i) {
    const lanes r = ROW(d, i) - factor * ROW(v, i);
    size += r * r;
  }
  lanes_sqrt(&length, &size);
  length = (length - head) * *per;
  lanes_larger(rate, &length, rate);
}

LANES_INLINE void lorentz_rates(const cone_product *product, const cone_group *group,
                                const double *ds, const double *dz, lanes *rate, int dim) {
  const int n = group->padded;
  const double *v = product->point + group->slot;
  for (int c = 0; c < n; c += LANE_COUNT) {
    const lanes per = 1.0 / LANES_OF(product->point_norm + group->cone + c);
    lorentz_rate(rate, v, ds + group->slot, &per, dim, n, c);
    lorentz_rate(rate, v, dz + group->slot, &per, dim, n, c);
  }
}

QD_MULTIVERSION
double cones_step(const cone_product *product, const double *ds, const double *dz, double limit) {
  const double least = 1.0 / limit;
  lanes rate = {least, least, least, least};
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    if (group->kind <= GROUP_ENDS) {
      for (int at = group->slot; at < group->slot + group->padded; at += LANE_COUNT) {
        const lanes per = -1.0 / LANES_OF(product->point + at);
        const lanes of_s = LANES_OF(ds + at) * per, of_z = LANES_OF(dz + at) * per;
        lanes_larger(&rate, &of_s, &rate);
        lanes_larger(&rate, &of_z, &rate);
      }
    } else if (group->kind == GROUP_LORENTZ && group->dim == 3) {
      lorentz_rates(product, group, ds, dz, &rate, 3);
    } else if (group->kind == GROUP_LORENTZ) {
      lorentz_rates(product, group, ds, dz, &rate, group->dim);
    }
  }
  return 1.0 / largest_lane(&rate);
}

QD_MULTIVERSION
double cones_gap(const cone_product *product, const double *slack, const double *dual) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    const double *s = slack + group->slot, *z = dual + group->slot;
    const int n = group->padded;
    if (group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = 0; c < n; c += LANE_COUNT) {
      lanes own = ROW(s, 0) * ROW(z, 0);
      for (int i = 1; i < group->dim; ++i) {
        own += ROW(s, i) * ROW(z, i);
      }
      sum += LANES_OF(product->weight + group->cone + c) * own;
    }
  }
  return lanes_sum(&sum);
}

double cones_target(const cone_product *product) {
  double sum = 0.0;
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    for (int c = group->cone; c < group->cone + group->count; ++c) {
      sum += group->kind < GROUP_EQUALITY ? product->weight[c] * product->target[c] : 0.0;
    }
  }
  return sum;
}

LANES_INLINE void deviation(const cone_product *product, const cone_group *group,
                            const double *slack, const double *dual, double floor, double relative,
                            lanes *worst, int dim) {
  const int n = group->padded, at = group->cone;
  const double *s = slack + group->slot, *z = dual + group->slot;
  for (int c = 0; c < n; c += LANE_COUNT) {
    const lanes s0 = ROW(s, 0), z0 = ROW(z, 0), target = LANES_OF(product->target + at + c);
    const lanes least = {floor, floor, floor, floor}, wanted = relative * target;
    lanes head = s0 * z0 - target, rest = {0.0, 0.0, 0.0, 0.0}, size, scale;
    for (int i = 1; i < dim; ++i) {
      const lanes si = ROW(s, i), zi = ROW(z, i), t = s0 * zi + z0 * si;
      head += si * zi;
      rest += t * t;
    }
    const lanes rounding = LAST_DIGITS * (s0 * z0);
    rest += head * head;
    lanes_sqrt(&size, &rest);
    lanes_larger(&scale, &wanted, &least);
    lanes_larger(&scale, &rounding, &scale);
    size = LANES_OF(product->weight + at + c) * size / scale;
    lanes_larger(worst, &size, worst);
  }
}

QD_MULTIVERSION
double cones_deviation(const cone_product *product, const double *slack, const double *dual,
                       double floor, double relative) {
  lanes worst = {0.0, 0.0, 0.0, 0.0};
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    if (group->kind >= GROUP_EQUALITY) {
      continue;
    }
    if (group->dim == 3) {
      deviation(product, group, slack, dual, floor, relative, &worst, 3);
    } else if (group->dim == 1) {
      deviation(product, group, slack, dual, floor, relative, &worst, 1);
    } else {
      deviation(product, group, slack, dual, floor, relative, &worst, group->dim);
    }
  }
  return largest_lane(&worst);
}

QD_MULTIVERSION
double cones_violation(const cone_product *product, const double *w) {
  double worst = -HUGE_VAL;
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    const int n = group->padded;
    const double *x = w + group->slot;
    if (group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = 0; c < n; c += LANE_COUNT) {
      lanes size;
      tail_dot(&size, x, x, group->dim, n, c);
      lanes_sqrt(&size, &size);
      size -= ROW(x, 0);
      for (int lane = 0; lane < LANE_COUNT && c + lane < group->count; ++lane) {
        worst = larger(size[lane], worst);
      }
    }
  }
  return worst;
}

QD_MULTIVERSION
int cones_hold(const cone_product *product, const double *w) {
  int held = 1;
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    const int n = group->padded;
    const double *x = w + group->slot;
    if (group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = 0; c < n; c += LANE_COUNT) {
      lanes size;
      tail_dot(&size, x, x, group->dim, n, c);
      const lanes square = ROW(x, 0) * ROW(x, 0);
      const lane_bits inside = (ROW(x, 0) >= 0.0) & (square - size >= -CANCELLED * square);
      for (int lane = 0; lane < LANE_COUNT && c + lane < group->count; ++lane) {
        held &= inside[lane] != 0;
      }
    }
  }
  return held;
}
