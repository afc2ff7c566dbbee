#include "numerics/cones.h"

#include <math.h>

#include "numerics/lanes.h"

#define EDGE 1e-16    /* smallest relative distance to the boundary that is taken for real */
#define OUTSIDE 1e-13 /* farther out than this is not rounding */

/* Lanes of cones are independent: plain loops over c that the compiler turns into vector code. */

/* Largest of count (a multiple of four) numbers and floor; NaN never wins, finiteness is checked
 * elsewhere. */
LANES_INLINE double largest(const double *restrict a, int count, double floor) {
  double part[LANE_COUNT] = {floor, floor, floor, floor};
  for (int c = 0; c < count; c += LANE_COUNT)
    for (int lane = 0; lane < LANE_COUNT; ++lane)
      part[lane] = a[c + lane] > part[lane] ? a[c + lane] : part[lane];
  const double low = part[0] > part[1] ? part[0] : part[1];
  const double high = part[2] > part[3] ? part[2] : part[3];
  return low > high ? low : high;
}

LANES_INLINE void clear(double *a, int count) {
  for (int c = 0; c < count; ++c) a[c] = 0.0;
}

/* sum += x_1 y_1 + .. over the rows behind the first */
LANES_INLINE void add_tail_dot(const cone_group *group, const double *restrict x,
                               const double *restrict y, double *restrict sum) {
  const int lanes_used = group->padded;
  for (int i = 1; i < group->dim; ++i)
    for (int c = 0; c < lanes_used; ++c) sum[c] += x[i * lanes_used + c] * y[i * lanes_used + c];
}

/* ------------------------------------------------------------ scaling */

LANES_INLINE int scale_orthant(cone_product *product, const cone_group *group, const double *slack,
                               const double *dual) {
  const double *restrict s = slack + group->slot, *restrict z = dual + group->slot;
  double *restrict point = product->point + group->slot;
  double *restrict norm = product->point_norm + group->cone;
  double *restrict forward = product->scaling.diagonal + group->cone;
  double *restrict backward = product->inverse.diagonal + group->cone;
  double outside = 0.0;
  for (int c = 0; c < group->padded; ++c) {
    outside += (s[c] > 0.0 && z[c] > 0.0) ? 0.0 : 1.0;
    const double root_s = sqrt(s[c]), root_z = sqrt(z[c]);
    point[c] = root_s * root_z;
    norm[c] = point[c];
    forward[c] = root_z / root_s;
    backward[c] = root_s / root_z;
  }
  return outside == 0.0;
}

/* Scaled point of a Lorentz cone, after the passes below have filled the scratch with
 *   0: |s_1|^2, 1: |z_1|^2, 2: s_1'z_1; gamma = sqrt((1 + s^'z^) / 2) of the normalised pair.
 * w = (s^ + J z^) / (2 gamma), W^2 s.t. W^2 z = s; W^-1 has eigenvalues (w_0 -+ |w_1|) / eta along
 * (1, +-w_1/|w_1|) and 1/eta across, eta = (det s / det z)^(1/4). The point has
 * v_0 = gamma, v_1 = ((gamma + s^_0) z^_1 + (gamma + z^_0) s^_1) / (s^_0 + z^_0 + 2 gamma), times
 * (det s det z)^(1/4): no differences of nearly equal numbers (Vandenberghe, cvxopt's cone
 * programs). */
LANES_INLINE int scale_lorentz(cone_product *product, const cone_group *group, const double *slack,
                               const double *dual) {
  const int n = group->padded, at = group->cone;
  const double *restrict s = slack + group->slot, *restrict z = dual + group->slot;
  double *restrict ss = product->scratch[0] + at, *restrict zz = product->scratch[1] + at;
  double *restrict sz = product->scratch[2] + at, *restrict ww = product->scratch[3] + at;
  double *restrict ps = product->scratch[4] + at, *restrict pz = product->scratch[5] + at;
  double *restrict u = product->scaling.u + group->slot;
  double *restrict point = product->point + group->slot;
  double *restrict norm = product->point_norm + at;
  double *restrict fd = product->scaling.diagonal + at, *restrict fc = product->scaling.cross + at;
  double *restrict ft = product->scaling.tangent + at, *restrict bd =
                                                           product->inverse.diagonal + at;
  double *restrict bc = product->inverse.cross + at, *restrict bt = product->inverse.tangent + at;
  clear(ss, n);
  clear(zz, n);
  clear(sz, n);
  clear(ww, n);
  add_tail_dot(group, s, s, ss);
  add_tail_dot(group, z, z, zz);
  add_tail_dot(group, s, z, sz);
  double outside = 0.0;
  for (int c = 0; c < n; ++c) {
    /* steps may round a point onto the boundary, hence the floors */
    const double s2 = s[c] * s[c], z2 = z[c] * z[c], det_s = s2 - ss[c], det_z = z2 - zz[c];
    outside +=
        (s[c] > 0.0 && z[c] > 0.0 && det_s > -OUTSIDE * s2 && det_z > -OUTSIDE * z2) ? 0.0 : 1.0;
    const double root_s = sqrt(det_s > EDGE * s2 ? det_s : EDGE * s2);
    const double root_z = sqrt(det_z > EDGE * z2 ? det_z : EDGE * z2);
    const double both = 1.0 / (root_s * root_z), rs = both * root_z, rz = both * root_s;
    const double product_of_units = (s[c] * z[c] + sz[c]) * both; /* >= 1, but for rounding */
    const double gamma = sqrt(0.5 + 0.5 * (product_of_units > 1.0 ? product_of_units : 1.0));
    const double half = 0.5 / gamma, forward = sqrt(root_z * rs), size = forward * root_s;
    const double divided = size / (s[c] * rs + z[c] * rz + 2.0 * gamma);
    norm[c] = size;
    point[c] = size * gamma;
    ps[c] = rs * (gamma + z[c] * rz) * divided;
    pz[c] = rz * (gamma + s[c] * rs) * divided;
    ss[c] = rs * half;
    zz[c] = rz * half;
    ft[c] = forward; /* 1 / eta */
    bt[c] = size * rz;
    sz[c] = s[c] * ss[c] + z[c] * zz[c];
  }
  for (int i = 1; i < group->dim; ++i)
    for (int c = 0; c < n; ++c) {
      const double si = s[i * n + c], zi = z[i * n + c], wi = si * ss[c] - zi * zz[c];
      point[i * n + c] = ps[c] * si + pz[c] * zi;
      u[i * n + c] = wi;
      ww[c] += wi * wi;
    }
  for (int c = 0; c < n; ++c) {
    /* W^-1 = [w_0, -w_1'; -w_1, I + w_1 w_1'/(1 + w_0)] / eta: diagonal w_0 / eta, cross -|w_1| /
     * eta */
    const double size = sqrt(ww[c]);
    fd[c] = sz[c] * ft[c];
    fc[c] = -size * ft[c];
    bd[c] = sz[c] * bt[c];
    bc[c] = size * bt[c];
    ww[c] = size > 0.0 ? 1.0 / size : 0.0;
  }
  for (int i = 1; i < group->dim; ++i)
    for (int c = 0; c < n; ++c) u[i * n + c] *= ww[c];
  return outside == 0.0;
}

QD_CLONES
int cones_scale(cone_product *product, const double *slack, const double *dual) {
  int inside = 1;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind == GROUP_ORTHANT)
      inside &= scale_orthant(product, group, slack, dual);
    else if (group->kind == GROUP_LORENTZ)
      inside &= scale_lorentz(product, group, slack, dual);
  }
  return inside;
}

QD_CLONES
void cones_apply(const cone_product *product, const cone_operator *A, const double *x, double *y) {
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    const int n = group->padded, at = group->cone;
    const double *restrict d = A->diagonal + at, *restrict xg = x + group->slot;
    double *restrict yg = y + group->slot;
    if (group->kind != GROUP_LORENTZ) {
      for (int c = 0; c < n; ++c) yg[c] = d[c] * xg[c];
      continue;
    }
    const double *restrict cross = A->cross + at, *restrict tangent = A->tangent + at;
    const double *restrict u = A->u + group->slot;
    double *restrict t = product->scratch[0] + at, *restrict q = product->scratch[1] + at;
    clear(t, n);
    add_tail_dot(group, u, xg, t);
    for (int c = 0; c < n; ++c) {
      yg[c] = d[c] * xg[c] + cross[c] * t[c];
      q[c] = cross[c] * xg[c] + (d[c] - tangent[c]) * t[c];
    }
    for (int i = 1; i < group->dim; ++i)
      for (int c = 0; c < n; ++c) yg[i * n + c] = tangent[c] * xg[i * n + c] + u[i * n + c] * q[c];
  }
}

/* ------------------------------------------------------------ right-hand sides */

QD_CLONES
void cones_correct(cone_product *product, double shift, const double *ds, const double *dz,
                   double *p) {
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    const int n = group->padded, at = group->cone;
    double *restrict out = p + group->slot;
    if (group->kind == GROUP_EQUALITY) {
      clear(out, n);
      continue;
    }
    const double *restrict v = product->point + group->slot;
    const double *restrict norm = product->point_norm + at;
    const double *restrict target = product->target + at, *restrict weight = product->weight + at;
    const double *restrict a = ds ? ds + group->slot : product->weight;
    const double *restrict b = ds ? dz + group->slot : product->weight;
    const double second = ds ? 1.0 : 0.0;
    if (group->kind == GROUP_ORTHANT) {
      if (ds)
        for (int c = 0; c < n; ++c)
          out[c] = (target[c] + shift * weight[c] - a[c] * b[c]) / v[c] - v[c];
      else
        for (int c = 0; c < n; ++c) out[c] = (target[c] + shift * weight[c]) / v[c] - v[c];
      continue;
    }
    /* v^-1 = J v / det; v^-1 o r: first = (v_0 r_0 - v_1'r_1) / det, rest = (r_1 - first v_1) /
     * v_0, with r = ds o dz */
    double *restrict r0 = product->scratch[0] + at, *restrict vr = product->scratch[1] + at;
    double *restrict aim = product->scratch[2] + at, *restrict inverse = product->scratch[3] + at;
    clear(r0, n);
    clear(vr, n);
    if (ds)
      for (int i = 1; i < group->dim; ++i)
        for (int c = 0; c < n; ++c) {
          r0[c] += a[i * n + c] * b[i * n + c];
          vr[c] += v[i * n + c] * (a[c] * b[i * n + c] + b[c] * a[i * n + c]);
        }
    for (int c = 0; c < n; ++c) {
      const double per_det = 1.0 / (norm[c] * norm[c]);
      const double head = ds ? r0[c] + a[c] * b[c] : 0.0;
      aim[c] = (target[c] + shift * weight[c]) * per_det;
      r0[c] = (v[c] * head - vr[c]) * per_det;
      inverse[c] = second / v[c];
      out[c] = aim[c] * v[c] - v[c] - r0[c];
    }
    for (int i = 1; i < group->dim; ++i)
      for (int c = 0; c < n; ++c) {
        const double vi = v[i * n + c];
        double value = -aim[c] * vi - vi;
        if (ds) value -= (a[c] * b[i * n + c] + b[c] * a[i * n + c] - r0[c] * vi) * inverse[c];
        out[i * n + c] = value;
      }
  }
}

void cones_aim(cone_product *product, double *p) { cones_correct(product, 0.0, NULL, NULL, p); }

/* ------------------------------------------------------------ step to the boundary and measures */

/* Lorentz: with v = norm (v^), the boundary is at 1 / (|r_1| - r_0), r the direction in the frame
 * where v^ is e: r_0 = v^'J d / norm, r_1 = (d_1 - (v^'J d + d_0) / (v^_0 + 1) v^_1) / norm. */
LANES_INLINE double lorentz_rate(const cone_product *product, const cone_group *group,
                                 const double *direction) {
  const int n = group->padded, at = group->cone;
  const double *restrict v = product->point + group->slot, *restrict d = direction + group->slot;
  const double *restrict norm = product->point_norm + at;
  double *restrict vd = product->scratch[0] + at, *restrict size = product->scratch[1] + at;
  double *restrict head = product->scratch[2] + at, *restrict factor = product->scratch[3] + at;
  clear(vd, n);
  clear(size, n);
  add_tail_dot(group, v, d, vd);
  for (int c = 0; c < n; ++c) {
    const double per = 1.0 / norm[c];
    head[c] = (v[c] * d[c] - vd[c]) * per;
    factor[c] = (head[c] + d[c]) / (v[c] * per + 1.0) * per;
  }
  for (int i = 1; i < group->dim; ++i)
    for (int c = 0; c < n; ++c) {
      const double r = d[i * n + c] - factor[c] * v[i * n + c];
      size[c] += r * r;
    }
  for (int c = 0; c < n; ++c) size[c] = (sqrt(size[c]) - head[c]) / norm[c];
  return largest(size, n, 0.0);
}

QD_CLONES
double cones_step(cone_product *product, const double *d, double limit) {
  double rate = 1.0 / limit;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    double r = 0.0;
    if (group->kind == GROUP_ORTHANT) {
      const double *restrict v = product->point + group->slot, *restrict x = d + group->slot;
      double *restrict rates = product->scratch[0] + group->cone;
      for (int c = 0; c < group->padded; ++c) rates[c] = -x[c] / v[c];
      r = largest(rates, group->padded, 0.0);
    } else if (group->kind == GROUP_LORENTZ) {
      r = lorentz_rate(product, group, d);
    }
    rate = r > rate ? r : rate;
  }
  return 1.0 / rate;
}

QD_CLONES
double cones_gap(const cone_product *product, const double *slack, const double *dual) {
  double sum = 0.0;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind == GROUP_EQUALITY) continue;
    const double *restrict weight = product->weight + group->cone;
    for (int i = 0; i < group->dim; ++i) {
      const double *restrict s = slack + group->slot + i * group->padded;
      const double *restrict z = dual + group->slot + i * group->padded;
      double part[LANE_COUNT] = {0.0, 0.0, 0.0, 0.0};
      for (int c = 0; c < group->padded; c += LANE_COUNT)
        for (int lane = 0; lane < LANE_COUNT; ++lane)
          part[lane] += weight[c + lane] * (s[c + lane] * z[c + lane]);
      sum += (part[0] + part[1]) + (part[2] + part[3]);
    }
  }
  return sum;
}

QD_CLONES
double cones_deviation(const cone_product *product, const double *slack, const double *dual,
                       double floor, double relative) {
  double worst = 0.0;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind == GROUP_EQUALITY) continue;
    const int n = group->padded, at = group->cone;
    const double *restrict s = slack + group->slot, *restrict z = dual + group->slot;
    const double *restrict target = product->target + at, *restrict weight = product->weight + at;
    double *restrict head = product->scratch[0] + at, *restrict rest = product->scratch[1] + at;
    clear(rest, n);
    for (int c = 0; c < n; ++c) head[c] = s[c] * z[c] - target[c];
    for (int i = 1; i < group->dim; ++i)
      for (int c = 0; c < n; ++c) {
        const double t = s[c] * z[i * n + c] + z[c] * s[i * n + c];
        head[c] += s[i * n + c] * z[i * n + c];
        rest[c] += t * t;
      }
    for (int c = 0; c < n; ++c) {
      const double scale = relative * target[c] > floor ? relative * target[c] : floor;
      head[c] = weight[c] * sqrt(head[c] * head[c] + rest[c]) / scale;
    }
    worst = largest(head, n, worst);
  }
  return worst;
}

QD_CLONES
double cones_violation(const cone_product *product, const double *w) {
  double worst = -HUGE_VAL;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind == GROUP_EQUALITY) continue;
    const int n = group->padded;
    const double *restrict x = w + group->slot;
    double *restrict size = product->scratch[0] + group->cone;
    clear(size, n);
    add_tail_dot(group, x, x, size);
    for (int c = 0; c < group->count; ++c) {
      const double out = sqrt(size[c]) - x[c];
      worst = out > worst ? out : worst;
    }
  }
  return worst;
}

QD_CLONES
int cones_hold(const cone_product *product, const double *w) {
  double outside = 0.0;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind == GROUP_EQUALITY) continue;
    const double *restrict x = w + group->slot;
    double *restrict size = product->scratch[0] + group->cone;
    clear(size, group->padded);
    add_tail_dot(group, x, x, size);
    for (int c = 0; c < group->count; ++c) {
      const double square = x[c] * x[c];
      outside += x[c] >= 0.0 && square - size[c] >= -OUTSIDE * square ? 0.0 : 1.0;
    }
  }
  return outside == 0.0;
}
