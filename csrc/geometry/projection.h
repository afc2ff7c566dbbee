/* Projection of a point onto a core (point, line or face): the closest point, the normal and their
 * derivatives. A shape with round skin is a core plus a radius, so most pairs use this file. */
#ifndef QD_GEOMETRY_PROJECTION_H
#define QD_GEOMETRY_PROJECTION_H

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/collide.h"

/* Directions in which the closest point x of the core may move within the feature. */
typedef enum core_freedom { CORE_POINT = 0, CORE_LINE = 1, CORE_FACE = 2 } core_freedom;

/* Closest point x = c - gap normal of a core to a point c. */
typedef struct core_projection {
  double normal[3]; /* unit, from the core to c */
  double gap;       /* signed distance of c from the core; negative inside a solid core */
  double curvature; /* 1 / gap if the normal rotates as c moves; 0 on faces and where the normal is
                       arbitrary (c on the core) */
  core_freedom freedom; /* of x */
  double axis[3];       /* unit direction in which x is free; CORE_LINE only */
} core_projection;

/* Added to the relative tolerance of core_touch_distance. Keeps squares of gaps above the subnormal
 * numbers. */
#define TOUCH_ABSOLUTE 1e-140

/* At distances below this from a core of the given size, rounding errors dominate the direction of
 * c - x. */
static inline double core_touch_distance(double size) {
  return SUM_ROUNDING * size + TOUCH_ABSOLUTE;
}

/* Sets normal, gap and curvature from the difference c - x. `spare`: normal if the difference is
 * zero to rounding. */
static inline void projection_set_normal(core_projection *out, const double difference[3],
                                         const double spare[3], double size) {
  out->gap = vec3_norm(difference);
  if (out->gap > core_touch_distance(size)) {
    out->curvature = 1.0 / out->gap;
    vec3_scale(out->normal, difference, out->curvature);
  } else {
    out->gap = 0.0;
    out->curvature = 0.0;
    vec3_copy(out->normal, spare);
  }
}

/* Core: the point x. spare (unit): the normal if c equals x, to rounding of lengths of `size`. */
static inline void project_on_point(core_projection *out, const double x[3], const double c[3],
                                    const double spare[3], double size) {
  double difference[3];
  vec3_sub(difference, c, x);
  out->freedom = CORE_POINT;
  projection_set_normal(out, difference, spare, size);
}

/* Core: the line through o along axis (unit). spare (unit, perpendicular to axis): as above. */
void project_on_line(core_projection *out, const double o[3], const double axis[3],
                     const double c[3], const double spare[3], double size);

/* Contact of a core with skin radius_a and a ball of radius radius_b about c. */
static inline void round_contact(contact_point *out, const core_projection *projection,
                                 const double c[3], double radius_a, double radius_b, int feature) {
  const double lever = 0.5 * (projection->gap - radius_a + radius_b);
  out->dist = projection->gap - radius_a - radius_b;
  out->feature = feature;
  vec3_copy(out->normal, projection->normal);
  vec3_copy(out->pos, c);
  vec3_axpy(out->pos, -lever, projection->normal);
}

/* Derivative of round_contact if the core belongs to A and c to B. */
void round_contact_derivative(contact_point_derivative *out, const core_projection *projection,
                              double radius_a, double radius_b);

/* The contact with A and B exchanged. */
void contact_point_exchange(contact_point *contact);
/* In: derivative of the exchanged contact for the twist of A relative to B. Out: derivative of the
 * contact with this normal (from A into B) for the twist of B relative to A. */
void contact_point_derivative_exchange(contact_point_derivative *derivative,
                                       const double normal[3]);
/* Exchanges A and B in a derivative with respect to sizes. */
void size_derivative_exchange(contact_point_derivative *derivative);

#endif
