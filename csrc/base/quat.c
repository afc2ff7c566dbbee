#include "base/quat.h"

#include "base/vec3.h"

/* Below this angle, rad, the series is exact to rounding and the closed forms lose digits. */
#define SMALL_ANGLE 1e-4

void quat_mul(double q[4], const double a[4], const double b[4]) {
  const double w = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
  const double x = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
  const double y = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
  const double z = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
  q[0] = w;
  q[1] = x;
  q[2] = y;
  q[3] = z;
}

double quat_normalize(double q[4]) {
  const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (norm > 0.0) {
    for (int i = 0; i < 4; ++i) {
      q[i] /= norm;
    }
  }
  return norm;
}

void quat_to_mat3(double R[9], const double q[4]) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  R[0] = w * w + x * x - y * y - z * z;
  R[1] = 2.0 * (x * y - w * z);
  R[2] = 2.0 * (x * z + w * y);
  R[3] = 2.0 * (x * y + w * z);
  R[4] = w * w - x * x + y * y - z * z;
  R[5] = 2.0 * (y * z - w * x);
  R[6] = 2.0 * (x * z - w * y);
  R[7] = 2.0 * (y * z + w * x);
  R[8] = w * w - x * x - y * y + z * z;
}

void quat_exp(double q[4], const double theta[3]) {
  const double angle = vec3_norm(theta);
  const double half = 0.5 * angle;
  /* sin(half) / angle, by its series near zero */
  const double s = angle < SMALL_ANGLE ? 0.5 - angle * angle / 48.0 : sin(half) / angle;
  q[0] = cos(half);
  vec3_scale(q + 1, theta, s);
}

void quat_log(double theta[3], const double q[4]) {
  /* q and -q are the same rotation: take the one with angle <= pi */
  const double sign = q[0] < 0.0 ? -1.0 : 1.0;
  const double sine = vec3_norm(q + 1);
  const double cosine = sign * q[0];
  const double scale = sine < 0.5 * SMALL_ANGLE
                           ? 2.0 / cosine * (1.0 - sine * sine / (3.0 * cosine * cosine))
                           : 2.0 * atan2(sine, cosine) / sine;
  vec3_scale(theta, q + 1, sign * scale);
}

void rotation_exp(double R[9], const double theta[3]) {
  double q[4];
  quat_exp(q, theta);
  quat_to_mat3(R, q);
}

/* J = 1 + a [theta] + b [theta]^2 */
static void skew_polynomial(double J[9], const double theta[3], double a, double b) {
  const double x = theta[0], y = theta[1], z = theta[2];
  J[0] = 1.0 - b * (y * y + z * z);
  J[1] = b * x * y - a * z;
  J[2] = b * x * z + a * y;
  J[3] = b * x * y + a * z;
  J[4] = 1.0 - b * (x * x + z * z);
  J[5] = b * y * z - a * x;
  J[6] = b * x * z - a * y;
  J[7] = b * y * z + a * x;
  J[8] = 1.0 - b * (x * x + y * y);
}

void rotation_left_jacobian(double J[9], const double theta[3]) {
  /* J = I + (1 - cos t)/t^2 [theta] + (t - sin t)/t^3 [theta]^2 */
  const double t2 = vec3_dot(theta, theta);
  const double t = sqrt(t2);
  const int small = t < 1e-3; /* (t - sin t) / t^3 cancels: error 1e-16 / 1e-9 here */
  const double a = small ? 0.5 - t2 / 24.0 : (1.0 - cos(t)) / t2;
  const double b = small ? (1.0 - t2 / 20.0) / 6.0 : (t - sin(t)) / (t2 * t);
  skew_polynomial(J, theta, a, b);
}

/* b[0] = (1 - (t/2) cot(t/2)) / t^2, b[1] = (d b[0] / dt) / t */
static void cotangent_terms(double b[2], double t2) {
  if (t2 < 1e-2) { /* the closed form of b[1] cancels; relative errors: 1e-16, 1e-13 */
    b[0] = (1.0 + t2 / 60.0 * (1.0 + t2 / 42.0 * (1.0 + t2 / 40.0))) / 12.0;
    b[1] = (1.0 + t2 / 21.0 * (1.0 + 3.0 * t2 / 80.0)) / 360.0;
    return;
  }
  const double t = sqrt(t2), half = 0.5 * t, sine = sin(half), cotangent = cos(half) / sine;
  b[0] = (1.0 - half * cotangent) / t2;
  b[1] = (-0.5 * (cotangent - half / (sine * sine)) / t - 2.0 * b[0]) / t2;
}

/* out = [x] [y] + [y] [x] = x y' + y x' - 2 (x . y) 1 */
static double skew_products(const double x[3], const double y[3], int i, int j) {
  return x[i] * y[j] + y[i] * x[j] - (i == j ? 2.0 * vec3_dot(x, y) : 0.0);
}

void rotation_left_jacobian_change(double dJ[9], const double theta[3], const double dtheta[3]) {
  /* dJ = a [d] + b ([d][theta] + [theta][d]) + (theta . d) (a'/t [theta] + b'/t [theta]^2) */
  const double t2 = vec3_dot(theta, theta), along = vec3_dot(theta, dtheta);
  const double t = sqrt(t2);
  const int small = t < 3e-2; /* the closed forms cancel: error 1e-16 / t^4 */
  const double a =
      small ? 0.5 - t2 / 24.0 * (1.0 - t2 / 30.0 * (1.0 - t2 / 56.0)) : (1.0 - cos(t)) / t2;
  const double b = small ? (1.0 - t2 / 20.0 * (1.0 - t2 / 42.0 * (1.0 - t2 / 72.0))) / 6.0
                         : (t - sin(t)) / (t2 * t);
  const double by_a =
      small ? -1.0 / 12.0 + t2 / 180.0 * (1.0 - t2 * 3.0 / 112.0) : (sin(t) / t - 2.0 * a) / t2;
  const double by_b = small ? -1.0 / 60.0 + t2 / 1260.0 * (1.0 - t2 / 48.0) : (a - 3.0 * b) / t2;
  double skew[3];
  vec3_scale(skew, dtheta, a);
  vec3_axpy(skew, by_a * along, theta);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      dJ[3 * i + j] = b * skew_products(theta, dtheta, i, j) +
                      0.5 * by_b * along * skew_products(theta, theta, i, j);
    }
  }
  for (int i = 0; i < 3; ++i) {
    const int j = (i + 1) % 3, k = (i + 2) % 3;
    dJ[3 * k + j] += skew[i];
    dJ[3 * j + k] -= skew[i];
  }
}

void rotation_left_jacobian_inverse(double J[9], const double theta[3]) {
  /* J = 1 - [theta]/2 + (1 - (t/2) cot(t/2)) / t^2 [theta]^2 */
  const double t2 = vec3_dot(theta, theta);
  const double half = 0.5 * sqrt(t2);
  const double b =
      half < 1e-3 ? (1.0 + t2 / 60.0) / 12.0 : (1.0 - half * cos(half) / sin(half)) / t2;
  skew_polynomial(J, theta, -0.5, b);
}

void rotation_left_jacobian_inverse_slope(double D[9], const double theta[3], const double v[3]) {
  /* derivative of v - theta x v / 2 + b (theta (theta.v) - t^2 v) */
  const double t2 = vec3_dot(theta, theta), along = vec3_dot(theta, v);
  double b[2];
  cotangent_terms(b, t2);
  for (int i = 0; i < 3; ++i) {
    const double part = b[1] * (theta[i] * along - t2 * v[i]);
    for (int j = 0; j < 3; ++j) {
      D[3 * i + j] = part * theta[j] + b[0] * (theta[i] * v[j] - 2.0 * v[i] * theta[j]);
    }
    D[4 * i] += b[0] * along;
    const int j = (i + 1) % 3, k = (i + 2) % 3; /* [v] / 2 */
    D[3 * i + j] -= 0.5 * v[k];
    D[3 * i + k] += 0.5 * v[j];
  }
}
