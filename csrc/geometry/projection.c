/* Derivation. Let c be fixed to B, x(c) the closest point of A's core, n = (c - x)/gap, and P =
 * dx/dc the projector onto the directions in which x is free (0 for a point, e e' on a line along
 * e, I - n n' on a face). The core's skin has radius ra, the ball about c has radius rb:
 *
 *   dist = gap - ra - rb
 *   pos  = 1/2 ((x + ra n) + (c - rb n)),   so   c - pos = 1/2 (gap - ra + rb) n = lever n
 *
 * A twist (omega, v) of B about pos moves c by dc = v + omega x lever n. As P n = 0,
 *
 *   d dist = n.(dc - dx) = n.dc = n.v
 *   d n    = (I - n n')(dc - dx)/gap = N dc,   N = (I - P - n n')/gap
 *   d pos  = 1/2 (dx + dc + (ra - rb) dn) = 1/2 (I + P + (ra - rb) N) dc
 *
 * On a face N = 0, also for gap <= 0: the branch is smooth through the surface into the solid. If c
 * lies on a line or point core (gap = 0), the normal is arbitrary: it moves with A, and N := 0. */
#include "geometry/projection.h"

#include "base/vec3.h"

void project_on_line(core_projection *out, const double o[3], const double axis[3],
                     const double c[3], const double spare[3], double size) {
  double difference[3];
  vec3_sub(difference, c, o);
  /* twice: if c is almost on the line, the first subtraction leaves rounding errors along the
   * axis */
  vec3_axpy(difference, -vec3_dot(axis, difference), axis);
  vec3_axpy(difference, -vec3_dot(axis, difference), axis);
  out->freedom = CORE_LINE;
  vec3_copy(out->axis, axis);
  projection_set_normal(out, difference, spare, size);
}

/* row = (omega part, v part) of s.dc with dc = v + omega x lever n: s.(omega x n) = omega.(n x
 * s) */
static void point_motion_row(double row[6], const double s[3], double lever, const double n[3]) {
  vec3_cross(row, n, s);
  vec3_scale(row, row, lever);
  vec3_copy(row + 3, s);
}

void round_contact_derivative(contact_point_derivative *out, const core_projection *projection,
                              double radius_a, double radius_b) {
  const double *n = projection->normal, *e = projection->axis;
  const double lever = 0.5 * (projection->gap - radius_a + radius_b);
  point_motion_row(out->dist, n, 0.0, n);
  for (int i = 0; i < 3; ++i) {
    double N_row[3], pos_row[3];
    for (int j = 0; j < 3; ++j) {
      const double identity = i == j ? 1.0 : 0.0;
      const double tangential = identity - n[i] * n[j];
      double P = 0.0;
      if (projection->freedom == CORE_FACE) {
        P = tangential;
      } else if (projection->freedom == CORE_LINE) {
        P = e[i] * e[j];
      }
      N_row[j] = projection->curvature * (tangential - P);
      pos_row[j] = 0.5 * (identity + P + (radius_a - radius_b) * N_row[j]);
    }
    point_motion_row(out->normal + 6 * i, N_row, lever, n);
    point_motion_row(out->pos + 6 * i, pos_row, lever, n);
  }
}

void contact_point_exchange(contact_point *contact) {
  vec3_scale(contact->normal, contact->normal, -1.0);
}

/* A twist of B alone equals the same twist of both shapes, followed by the opposite twist of A
 * alone. The first changes dist by 0, pos by v and n by omega x n. The second changes them by minus
 * the given derivative, whose normal is -n:
 *   d dist = -d dist',  d pos = v - d pos',  d n = omega x n + d n' */
void contact_point_derivative_exchange(contact_point_derivative *derivative,
                                       const double normal[3]) {
  const double *n = normal;
  const double turn[9] = {0.0, n[2], -n[1], -n[2], 0.0, n[0], n[1], -n[0], 0.0};
  for (int j = 0; j < 6; ++j) {
    derivative->dist[j] = -derivative->dist[j];
  }
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 6; ++j) {
      derivative->pos[6 * i + j] = (j == 3 + i ? 1.0 : 0.0) - derivative->pos[6 * i + j];
    }
    vec3_add(derivative->normal + 6 * i, derivative->normal + 6 * i, turn + 3 * i);
  }
}

void size_derivative_exchange(contact_point_derivative *derivative) {
  contact_point_derivative d = *derivative;
  for (int j = 0; j < 6; ++j) {
    const int from = (j + 3) % 6;
    derivative->dist[j] = d.dist[from];
    for (int i = 0; i < 3; ++i) {
      derivative->pos[6 * i + j] = d.pos[6 * i + from];
      derivative->normal[6 * i + j] = -d.normal[6 * i + from];
    }
  }
}
