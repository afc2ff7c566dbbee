/* The reference of a row, and how it and R change with the row's position.
 *
 * Explicit, with MuJoCo's K, B, impedance d and its slope d': damping = B, spring = K d, drift = 1,
 * and R is proportional to (1 - d) / d. The integrator "discrete" takes velocity and position at
 * the end of the step: with s = 1 / (1 + h B + h^2 K d), damping = (1 - s) / h, spring = s K d,
 * drift = s, and R has the factor s. Where K d reaches its bound 1 / h^2, K is proportional to 1 /
 * d and B to d^(-1/2). Source: MuJoCo, Computation, "Constraint model" and "Discrete". */
#include "mujoco/parts.h"

/* K d is at its bound if h^2 K d differs from 1 by less than this. */
static const double AT_BOUND = 1e-12;

mj_law mj_row_law(const qd_mj *mj, int row) {
  const double *KBIP = mj->efc_KBIP + 4 * row;
  const double K = KBIP[0], B = KBIP[1], d = KBIP[2], slope = KBIP[3];
  mj_law law = {.damping = B, .spring = K * d, .drift = 1.0, .spring_slope = K * slope};
  law.shrinks = slope / (d * (1.0 - d));
  if (mj->integrator != MJ_DISCRETE) {
    return law;
  }
  const double h = mj->timestep, k = h * h * K * d;
  const int bounded = fabs(k - 1.0) < AT_BOUND;
  const double B_slope = bounded ? -0.5 * B * slope / d : 0.0;
  const double spring_slope = bounded ? 0.0 : K * slope;
  const double s = 1.0 / (1.0 + h * B + k);
  const double s_slope = -s * s * (h * B_slope + h * h * spring_slope);
  law.damping = (1.0 - s) / h;
  law.damping_slope = -s_slope / h;
  law.spring = s * K * d;
  law.spring_slope = s * spring_slope + s_slope * K * d;
  law.drift = s;
  law.drift_slope = s_slope;
  law.shrinks -= s_slope / s;
  return law;
}

double mj_law_slope(const mj_law *law, double pos, double speed) {
  return law->spring + law->spring_slope * pos + law->damping_slope * speed;
}
