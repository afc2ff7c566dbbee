/* Six-vectors: twists (angular velocity, then linear velocity at the origin) and wrenches (moment
 * about the origin, then force). The destination comes first. */
#ifndef QD_MUJOCO_SPATIAL_H
#define QD_MUJOCO_SPATIAL_H

#include "base/vec3.h"

/* r = x */
static inline void six_copy(double r[6], const double x[6]) { memcpy(r, x, 6 * sizeof(double)); }

/* r += s x */
static inline void six_axpy(double r[6], double s, const double x[6]) {
  for (int i = 0; i < 6; ++i) {
    r[i] += s * x[i];
  }
}

/* x . y */
static inline double six_dot(const double x[6], const double y[6]) {
  return x[0] * y[0] + x[1] * y[1] + x[2] * y[2] + x[3] * y[3] + x[4] * y[4] + x[5] * y[5];
}

/* r = x cross y of two twists; r must not be x or y */
static inline void six_cross(double r[6], const double x[6], const double y[6]) {
  vec3_cross(r, x, y);
  vec3_cross(r + 3, x, y + 3);
  vec3_add_cross(r + 3, 1.0, x + 3, y);
}

/* r = change of the wrench w if it moves with x; r must not be w */
static inline void six_cross_wrench(double r[6], const double x[6], const double w[6]) {
  vec3_cross(r, x, w);
  vec3_add_cross(r, 1.0, x + 3, w + 3);
  vec3_cross(r + 3, x, w + 3);
}

/* r = velocity of the point p under the twist x */
static inline void six_velocity_at(double r[3], const double x[6], const double p[3]) {
  vec3_cross(r, x, p);
  vec3_axpy(r, 1.0, x + 3);
}

/* A rigid body's inertia about the origin, or the sum of several. */
typedef struct inertia10 {
  double mass;
  double moment[3]; /* mass times centre */
  double about[9];  /* (3, 3) inertia about the origin */
} inertia10;

/* r = I x: momentum of the twist x */
static inline void inertia_apply(double r[6], const inertia10 *inertia, const double x[6]) {
  mat3_mul_vec(r, inertia->about, x);
  vec3_add_cross(r, 1.0, inertia->moment, x + 3);
  vec3_cross(r + 3, x, inertia->moment);
  vec3_axpy(r + 3, inertia->mass, x + 3);
}

/* Inertia about another point, from which the present one is at t. */
static inline void inertia_shift(inertia10 *inertia, const double t[3]) {
  const double m = inertia->mass, *h = inertia->moment;
  const double more = 2.0 * vec3_dot(h, t) + m * vec3_dot(t, t);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      inertia->about[3 * i + j] -= t[i] * h[j] + h[i] * t[j] + m * t[i] * t[j];
    }
    inertia->about[4 * i] += more;
  }
  vec3_axpy(inertia->moment, m, t);
}

/* sum += one */
static inline void inertia_add(inertia10 *sum, const inertia10 *one) {
  sum->mass += one->mass;
  vec3_axpy(sum->moment, 1.0, one->moment);
  for (int i = 0; i < 9; ++i) {
    sum->about[i] += one->about[i];
  }
}

#endif
