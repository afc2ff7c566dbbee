/* 3-vectors and row-major 3 x 3 matrices. The destination comes first; each comment is the
 * formula. */
#ifndef QD_BASE_VEC3_H
#define QD_BASE_VEC3_H

#include <math.h>
#include <string.h>

#define HALF_TURN 3.141592653589793

/* x limited to [-half, half] */
static inline double clamp(double x, double half) { return fmax(-half, fmin(half, x)); }

/* r = (x, y, z) */
static inline void vec3_set(double r[3], double x, double y, double z) {
  r[0] = x;
  r[1] = y;
  r[2] = z;
}

/* r = a */
static inline void vec3_copy(double r[3], const double a[3]) { memcpy(r, a, 3 * sizeof(double)); }

/* r = a + b */
static inline void vec3_add(double r[3], const double a[3], const double b[3]) {
  vec3_set(r, a[0] + b[0], a[1] + b[1], a[2] + b[2]);
}

/* r = a - b */
static inline void vec3_sub(double r[3], const double a[3], const double b[3]) {
  vec3_set(r, a[0] - b[0], a[1] - b[1], a[2] - b[2]);
}

/* r = s a */
static inline void vec3_scale(double r[3], const double a[3], double s) {
  vec3_set(r, s * a[0], s * a[1], s * a[2]);
}

/* r += s a */
static inline void vec3_axpy(double r[3], double s, const double a[3]) {
  r[0] += s * a[0];
  r[1] += s * a[1];
  r[2] += s * a[2];
}

/* a . b */
static inline double vec3_dot(const double a[3], const double b[3]) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* a . (b - c) */
static inline double vec3_dot_sub(const double a[3], const double b[3], const double c[3]) {
  return a[0] * (b[0] - c[0]) + a[1] * (b[1] - c[1]) + a[2] * (b[2] - c[2]);
}

/* r = a x b; r may be a or b */
static inline void vec3_cross(double r[3], const double a[3], const double b[3]) {
  vec3_set(r, a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
}

/* r += s a x b; r may be a or b */
static inline void vec3_add_cross(double r[3], double s, const double a[3], const double b[3]) {
  double product[3];
  vec3_cross(product, a, b);
  vec3_axpy(r, s, product);
}

/* r = a - (a . n) n, the part of a across the unit vector n; r may be a */
static inline void vec3_reject(double r[3], const double a[3], const double n[3]) {
  const double along = vec3_dot(a, n);
  vec3_set(r, a[0] - along * n[0], a[1] - along * n[1], a[2] - along * n[2]);
}

/* |a| */
static inline double vec3_norm(const double a[3]) { return sqrt(vec3_dot(a, a)); }

/* a /= |a|; returns the old |a|; a zero vector is unchanged */
static inline double vec3_normalize(double a[3]) {
  const double norm = vec3_norm(a);
  if (norm > 0.0) {
    vec3_scale(a, a, 1.0 / norm);
  }
  return norm;
}

/* r = R x; r must not be x */
static inline void mat3_mul_vec(double r[3], const double R[9], const double x[3]) {
  vec3_set(r, vec3_dot(R, x), vec3_dot(R + 3, x), vec3_dot(R + 6, x));
}

/* r = R' x; r must not be x */
static inline void mat3_tmul_vec(double r[3], const double R[9], const double x[3]) {
  vec3_set(r, R[0] * x[0] + R[3] * x[1] + R[6] * x[2], R[1] * x[0] + R[4] * x[1] + R[7] * x[2],
           R[2] * x[0] + R[5] * x[1] + R[8] * x[2]);
}

/* r = R x + p; r may be x or p */
static inline void mat3_mul_add(double r[3], const double R[9], const double x[3],
                                const double p[3]) {
  vec3_set(r, vec3_dot(R, x) + p[0], vec3_dot(R + 3, x) + p[1], vec3_dot(R + 6, x) + p[2]);
}

/* r = R' (x - p) */
static inline void mat3_tmul_sub(double r[3], const double R[9], const double x[3],
                                 const double p[3]) {
  double arm[3];
  vec3_sub(arm, x, p);
  mat3_tmul_vec(r, R, arm);
}

/* C = A B; C must not be A or B */
static inline void mat3_mul(double C[9], const double A[9], const double B[9]) {
  for (int i = 0; i < 3; ++i) {
    mat3_tmul_vec(C + 3 * i, B, A + 3 * i);
  }
}

/* r = column j of R */
static inline void mat3_column(double r[3], const double R[9], int j) {
  vec3_set(r, R[j], R[3 + j], R[6 + j]);
}

#endif
