/* Sphere against plane, sphere, capsule and box. The sphere is B: its centre c is projected on A's
 * core. One contact each.
 *
 * Choices if the normal is not determined. Equal centres of spheres: world z (spheres have no
 * axes). Centre on a capsule's axis: the capsule's first axis. Centre inside a box: the face of
 * least depth, among equal ones the axis of lowest index, and the positive side for a centre in the
 * middle. Centre within rounding of a box edge or vertex: the face that it is farthest outside of.
 * Distances are continuous. */
#include <math.h>

#include "base/vec3.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"

/* ---------------------------------------------------------------- plane */

static void plane_project(core_projection *out, const placed_shape *plane, const double c[3]) {
  double difference[3];
  vec3_sub(difference, c, plane->pos);
  mat3_column(out->normal, plane->rot, 2);
  out->gap = vec3_dot(out->normal, difference);
  out->curvature = 0.0;
  out->freedom = CORE_FACE;
}

int plane_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                         contact_point *out) {
  core_projection projection;
  plane_project(&projection, a, b->pos);
  if (!(projection.gap - b->size[0] <= margin)) {
    return 0;
  }
  round_contact(out, &projection, b->pos, 0.0, b->size[0], 0);
  return 1;
}

void plane_sphere_derivative(const placed_shape *a, const placed_shape *b,
                             const contact_point *contact, contact_point_derivative *out) {
  core_projection projection;
  (void)contact;
  plane_project(&projection, a, b->pos);
  round_contact_derivative(out, &projection, 0.0, b->size[0]);
}

/* ---------------------------------------------------------------- sphere */

static void sphere_project(core_projection *out, const placed_shape *a, const placed_shape *b) {
  static const double up[3] = {0.0, 0.0, 1.0};
  project_on_point(out, a->pos, b->pos, up, a->size[0] + b->size[0]);
}

int sphere_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                          contact_point *out) {
  core_projection projection;
  sphere_project(&projection, a, b);
  if (!(projection.gap - a->size[0] - b->size[0] <= margin)) {
    return 0;
  }
  round_contact(out, &projection, b->pos, a->size[0], b->size[0], 0);
  return 1;
}

void sphere_sphere_derivative(const placed_shape *a, const placed_shape *b,
                              const contact_point *contact, contact_point_derivative *out) {
  core_projection projection;
  (void)contact;
  sphere_project(&projection, a, b);
  round_contact_derivative(out, &projection, a->size[0], b->size[0]);
}

/* ---------------------------------------------------------------- capsule */

/* Returns the feature: 0 lower end, 1 between the ends, 2 upper end. A capsule of length zero has
 * only a lower end. */
static int capsule_project(core_projection *out, const placed_shape *capsule, const double c[3],
                           double radius) {
  const double half = capsule->size[1];
  const double size = capsule->size[0] + half + radius;
  double axis[3], spare[3], end[3];
  mat3_column(axis, capsule->rot, 2);
  mat3_column(spare, capsule->rot, 0);
  const double along = vec3_dot_sub(axis, c, capsule->pos);
  if (fabs(along) < half) {
    project_on_line(out, capsule->pos, axis, c, spare, size);
    return 1;
  }
  const int upper = along >= half && half > 0.0;
  vec3_copy(end, capsule->pos);
  vec3_axpy(end, upper ? half : -half, axis);
  project_on_point(out, end, c, spare, size);
  return upper ? 2 : 0;
}

int capsule_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                           contact_point *out) {
  core_projection projection;
  const int feature = capsule_project(&projection, a, b->pos, b->size[0]);
  if (!(projection.gap - a->size[0] - b->size[0] <= margin)) {
    return 0;
  }
  round_contact(out, &projection, b->pos, a->size[0], b->size[0], feature);
  return 1;
}

void capsule_sphere_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out) {
  core_projection projection;
  (void)contact;
  capsule_project(&projection, a, b->pos, b->size[0]);
  round_contact_derivative(out, &projection, a->size[0], b->size[0]);
}

/* ---------------------------------------------------------------- box */

static const int AXIS_PLACE[3] = {1, 3, 9};

/* The closest face, from outside or inside. `excess` is the signed distance of c from it. */
static int box_project_face(core_projection *out, const placed_shape *box, int axis, double sign,
                            double excess) {
  mat3_column(out->normal, box->rot, axis);
  vec3_scale(out->normal, out->normal, sign);
  out->gap = excess;
  out->curvature = 0.0;
  out->freedom = CORE_FACE;
  return 13 + (sign > 0.0 ? 1 : -1) * AXIS_PLACE[axis];
}

/* Returns the feature: 13 + sum of s_i 3^i, with s_i = -1, 0, 1 the side on which coordinate i of c
 * lies outside the box; for a centre inside, the closest face only. */
static int box_project(core_projection *out, const placed_shape *box, const double c[3]) {
  double y[3], sign[3], excess[3], local[3] = {0.0, 0.0, 0.0};
  mat3_tmul_sub(y, box->rot, c, box->pos);
  int outside = 0, farthest = 0, inner_axis = 0, feature = 13;
  double square = 0.0;
  for (int i = 0; i < 3; ++i) {
    sign[i] = y[i] < 0.0 ? -1.0 : 1.0;
    excess[i] = fabs(y[i]) - box->size[i];
    farthest = excess[i] > excess[farthest] ? i : farthest;
    if (excess[i] > 0.0) {
      ++outside;
      square += excess[i] * excess[i];
      local[i] = sign[i] * excess[i];
      feature += (sign[i] > 0.0 ? 1 : -1) * AXIS_PLACE[i];
    } else {
      inner_axis = i;
    }
  }
  const double gap = sqrt(square);
  if (outside <= 1 || gap <= core_touch_distance(box->size[0] + box->size[1] + box->size[2])) {
    return box_project_face(out, box, farthest, sign[farthest], excess[farthest]);
  }
  out->gap = gap;
  out->curvature = 1.0 / gap;
  mat3_mul_vec(out->normal, box->rot, local);
  vec3_scale(out->normal, out->normal, out->curvature);
  out->freedom = outside == 2 ? CORE_LINE : CORE_POINT;
  mat3_column(out->axis, box->rot, inner_axis);
  return feature;
}

int box_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                       contact_point *out) {
  core_projection projection;
  const int feature = box_project(&projection, a, b->pos);
  if (!(projection.gap - b->size[0] <= margin)) {
    return 0;
  }
  round_contact(out, &projection, b->pos, 0.0, b->size[0], feature);
  return 1;
}

void box_sphere_derivative(const placed_shape *a, const placed_shape *b,
                           const contact_point *contact, contact_point_derivative *out) {
  core_projection projection;
  (void)contact;
  box_project(&projection, a, b->pos);
  round_contact_derivative(out, &projection, 0.0, b->size[0]);
}
