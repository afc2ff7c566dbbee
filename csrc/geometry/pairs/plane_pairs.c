/* Plane (A) against capsule and box. Contacts are at points fixed to B (ends, vertices), each a
 * ball of the skin's radius on a fixed face. Both ends of a capsule within the margin have
 * contacts; of a box the four lowest vertices. */
#include <math.h>
#include <stdbool.h>

#include "base/vec3.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "geometry/surface.h"

/* Ball of this radius about c, a point of B; the feature identifies the point. */
static int plane_point_contact(contact_point *out, const double normal[3], double height,
                               const double c[3], double radius, double margin, int feature) {
  if (!(height - radius <= margin)) {
    return 0;
  }
  core_projection projection = {.gap = height, .curvature = 0.0, .freedom = CORE_FACE};
  vec3_copy(projection.normal, normal);
  round_contact(out, &projection, c, 0.0, radius, feature);
  return 1;
}

static void plane_point_derivative(const placed_shape *plane, const contact_point *contact,
                                   double radius, contact_point_derivative *out) {
  core_projection projection = {
      .gap = contact->dist + radius, .curvature = 0.0, .freedom = CORE_FACE};
  mat3_column(projection.normal, plane->rot, 2);
  round_contact_derivative(out, &projection, 0.0, radius);
}

/* ---------------------------------------------------------------- capsule */

/* Features 0 and 1: lower and upper end. A capsule of length zero has one contact. */
int plane_capsule_collide(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *out) {
  const double half = b->size[1];
  double normal[3], axis[3], end[3];
  int count = 0;
  mat3_column(normal, a->rot, 2);
  mat3_column(axis, b->rot, 2);
  for (int upper = 0; upper < (half > 0.0 ? 2 : 1); ++upper) {
    vec3_copy(end, b->pos);
    vec3_axpy(end, upper ? half : -half, axis);
    count += plane_point_contact(out + count, normal, vec3_dot_sub(normal, end, a->pos), end,
                                 b->size[0], margin, upper);
  }
  return count;
}

void plane_capsule_derivative(const placed_shape *a, const placed_shape *b,
                              const contact_point *contact, contact_point_derivative *out) {
  plane_point_derivative(a, contact, b->size[0], out);
}

void plane_capsule_size_derivative(const placed_shape *a, const placed_shape *b,
                                   const contact_point *contact, contact_point_derivative *out) {
  closest_size_derivative(a, b, 0, contact->feature ? 2 : 0, contact, out);
}

/* ---------------------------------------------------------------- box */

/* Marks the four lowest of eight heights. Heights that differ by less than `tie` count as equal,
 * and the lower index wins, so that rounding does not change the set from step to step. */
static void mark_four_lowest(bool marked[8], const double height[8], double tie) {
  for (int i = 0; i < 8; ++i) {
    marked[i] = false;
  }
  for (int k = 0; k < 4; ++k) {
    int lowest = -1;
    for (int i = 0; i < 8; ++i) {
      if (!marked[i] && (lowest < 0 || height[i] < height[lowest] - tie)) {
        lowest = i;
      }
    }
    marked[lowest] = true;
  }
}

/* Feature: the vertex; bit i is set on the positive side of axis i. Contacts come in this order. */
int plane_box_collide(const placed_shape *a, const placed_shape *b, double margin,
                      contact_point *out) {
  double normal[3], edge[3][3], rise[3], height[8], reach = 0.0;
  bool marked[8];
  int count = 0;
  mat3_column(normal, a->rot, 2);
  const double middle = vec3_dot_sub(normal, b->pos, a->pos);
  for (int i = 0; i < 3; ++i) {
    mat3_column(edge[i], b->rot, i);
    vec3_scale(edge[i], edge[i], b->size[i]);
    rise[i] = vec3_dot(normal, edge[i]);
    reach += fabs(rise[i]);
  }
  if (!(middle - reach <= margin)) {
    return 0;
  }
  for (int k = 0; k < 8; ++k) {
    height[k] = middle;
    for (int i = 0; i < 3; ++i) {
      height[k] += (k >> i & 1) ? rise[i] : -rise[i];
    }
  }
  mark_four_lowest(marked, height, 1e-12 * reach);
  for (int k = 0; k < 8; ++k) {
    if (!marked[k]) {
      continue;
    }
    double vertex[3];
    vec3_copy(vertex, b->pos);
    for (int i = 0; i < 3; ++i) {
      vec3_axpy(vertex, (k >> i & 1) ? 1.0 : -1.0, edge[i]);
    }
    count += plane_point_contact(out + count, normal, height[k], vertex, 0.0, margin, k);
  }
  return count;
}

void plane_box_derivative(const placed_shape *a, const placed_shape *b,
                          const contact_point *contact, contact_point_derivative *out) {
  (void)b;
  plane_point_derivative(a, contact, 0.0, out);
}

void plane_box_size_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out) {
  const contact_feature code = contact->feature;
  const int vertex = 13 + (code & 1 ? 1 : -1) + (code & 2 ? 3 : -3) + (code & 4 ? 9 : -9);
  closest_size_derivative(a, b, 0, vertex, contact, out);
}
