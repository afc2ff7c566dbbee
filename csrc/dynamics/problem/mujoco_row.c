#include "dynamics/problem/mujoco_row.h"

#include <math.h>

#include "qdsim/steps.h"

/* MuJoCo's bounds of impedances and R. */
#define LEAST_IMPEDANCE 1e-4
#define LEAST_R 1e-15

static double clip(double x) { return fmin(fmax(x, LEAST_IMPEDANCE), 1.0 - LEAST_IMPEDANCE); }

/* Two power functions that meet at the midpoint. */
double mujoco_impedance(double *slope, const double solimp[5], double depth) {
  const double least = clip(solimp[0]), most = clip(solimp[1]), middle = clip(solimp[3]);
  const double width = fmax(solimp[2], 0.0), power = fmax(solimp[4], 1.0);
  *slope = 0.0;
  if (width <= LEAST_R || least == most) {
    return 0.5 * (least + most);
  }
  const double x = fmax(-depth, 0.0) / width;
  if (x >= 1.0) {
    return most;
  }
  double y = x, by_x = 1.0;
  if (power > 1.0 && x <= middle) {
    y = x * pow(x / middle, power - 1.0);
    by_x = power * pow(x / middle, power - 1.0);
  } else if (power > 1.0) {
    const double left = (1.0 - x) / (1.0 - middle);
    y = 1.0 - (1.0 - x) * pow(left, power - 1.0);
    by_x = power * pow(left, power - 1.0);
  }
  *slope = depth < 0.0 ? -by_x * (most - least) / width : 0.0;
  return least + y * (most - least);
}

double mujoco_regularisation(double *slope, double d, double d_slope, double weight) {
  const double R = fmax((1.0 - d) / d * weight, LEAST_R);
  *slope = R > LEAST_R ? -d_slope / (d * d) * weight : 0.0;
  return R;
}

/* a = h B and k = h^2 K d after bounding, with their slopes. */
typedef struct strengths {
  double a, k;
  double a_by_depth, k_by_depth, a_by_h, k_by_h;
} strengths;

static strengths strengths_of(const mujoco_reference *of, double d, double by_depth, double h) {
  const int bounded = of->kind & QD_REFERENCE_TIMES, implicit = of->kind & QD_REFERENCE_IMPLICIT;
  strengths s = {.a = h * of->B, .k = h * h * of->K * d};
  s.k_by_depth = h * h * of->K * by_depth;
  s.a_by_h = of->B;
  s.k_by_h = 2.0 * h * of->K * d;
  if (bounded && implicit && s.k > 1.0) {
    s.a /= sqrt(s.k);
    s = (strengths){.a = s.a, .k = 1.0, .a_by_depth = -0.5 * s.a * by_depth / d};
  } else if (bounded && !implicit && s.a * clip(of->solimp[1]) > 1.0) {
    const double most = 1.0 / clip(of->solimp[1]); /* of the largest d */
    const double k = s.k * (most / s.a) * (most / s.a);
    s = (strengths){.a = most, .k = k, .k_by_depth = k * by_depth / d};
  }
  return s;
}

void mujoco_row_compute(mujoco_row *out, mujoco_row *by_depth, mujoco_row *by_h,
                        const mujoco_reference *of, double depth, double h) {
  double d_slope, R_slope;
  const double d = mujoco_impedance(&d_slope, of->solimp, depth);
  const double R = mujoco_regularisation(&R_slope, d, d_slope, of->weight);
  const strengths s = strengths_of(of, d, d_slope, h);
  const int implicit = of->kind & QD_REFERENCE_IMPLICIT;
  const double share = implicit ? 1.0 / (1.0 + s.a + s.k) : 1.0;
  out->in_time = implicit ? -h * share : h * (s.a - 1.0);
  out->spring = s.k * share;
  out->compliance = h * h * R * share;
  if (by_depth != NULL) {
    const double share_slope = implicit ? -share * share * (s.a_by_depth + s.k_by_depth) : 0.0;
    by_depth->in_time = implicit ? -h * share_slope : h * s.a_by_depth;
    by_depth->spring = s.k_by_depth * share + s.k * share_slope;
    by_depth->compliance = h * h * (R_slope * share + R * share_slope);
  }
  if (by_h != NULL) {
    const double share_slope = implicit ? -share * share * (s.a_by_h + s.k_by_h) : 0.0;
    by_h->in_time = implicit ? -share - h * share_slope : s.a - 1.0 + h * s.a_by_h;
    by_h->spring = s.k_by_h * share + s.k * share_slope;
    by_h->compliance = 2.0 * h * R * share + h * h * R * share_slope;
  }
}

void mujoco_row_change(double change[3], const mujoco_reference *of, double depth, double h,
                       double speed, double force) {
  mujoco_row now, by_depth, by_h;
  mujoco_row_compute(&now, &by_depth, &by_h, of, depth, h);
  change[0] =
      now.spring + by_depth.spring * depth + by_depth.in_time * speed + by_depth.compliance * force;
  change[1] = now.in_time;
  change[2] = by_h.spring * depth + by_h.in_time * speed + by_h.compliance * force;
}
