/* Like capsule_capsule.c, for all shapes with a straight line. At angle zero the closest points are
 * anywhere in the overlap, at small angles at one of its ends. Each end of the overlap is a pair of
 * features (end, line) whose closest-point conditions Newton's method solves. These conditions do
 * not require that n is in the normal cone of the end. */
#include "geometry/pairs/line_manifold.h"

#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"
#include "geometry/meshes/mesh_surface.h"
#include "qdsim.h"

typedef struct line {
  double axis[3], center[3], half; /* world, relative to A's centre */
  double radius;                   /* of the skin around it */
  int side, end[2];                /* features */
} line;

/* The edge of a box farthest along n and almost perpendicular to n. Returns 0 if there is none, or
 * if a face is as far. */
static int box_line(line *out, const placed_shape *box, const double n[3]) {
  static const int PLACE[3] = {1, 3, 9};
  double y[3];
  int along = -1;
  mat3_tmul_vec(y, box->rot, n);
  for (int i = 0; i < 3; ++i) {
    if (fabs(y[i]) < PARALLEL_SINE) {
      if (along >= 0) {
        return 0;
      }
      along = i;
    }
  }
  if (along < 0) {
    return 0;
  }
  out->side = 13;
  vec3_set(out->center, 0.0, 0.0, 0.0);
  for (int i = 0; i < 3; ++i) {
    double axis[3];
    mat3_column(axis, box->rot, i);
    if (i == along) {
      vec3_copy(out->axis, axis);
      continue;
    }
    const int sign = y[i] < 0.0 ? -1 : 1;
    vec3_axpy(out->center, sign * box->size[i], axis);
    out->side += sign * PLACE[i];
  }
  out->half = box->size[along];
  out->radius = 0.0;
  out->end[0] = out->side - PLACE[along];
  out->end[1] = out->side + PLACE[along];
  return 1;
}

/* The edge at a mesh's support vertex along n that is almost perpendicular to n. Returns 0 if there
 * is not exactly one. */
static int mesh_line(line *out, const placed_shape *shape, const double n[3]) {
  const convex_mesh *m = shape->mesh;
  double y[3], middle[3];
  int found = -1;
  mat3_tmul_vec(y, shape->rot, n);
  const int support = mesh_support(m, y);
  for (int k = m->fan_start[support]; k < m->fan_start[support + 1]; ++k) {
    if (fabs(vec3_dot(m->edge_axis + 3 * m->fan[k], y)) < PARALLEL_SINE) {
      if (found >= 0) {
        return 0;
      }
      found = m->fan[k];
    }
  }
  if (found < 0) {
    return 0;
  }
  const int *end = m->edge_vertex + 2 * found;
  out->half = 0.5 * m->edge_length[found];
  mat3_mul_vec(out->axis, shape->rot, m->edge_axis + 3 * found);
  vec3_add(middle, m->vertex + 3 * end[0], m->vertex + 3 * end[1]);
  vec3_scale(middle, middle, 0.5);
  mat3_mul_vec(out->center, shape->rot, middle);
  out->radius = 0.0;
  out->side = mesh_edge_feature(m, found);
  out->end[0] = end[0];
  out->end[1] = end[1];
  return 1;
}

/* n: outward normal of the shape. */
static int shape_line(line *out, const placed_shape *shape, const double n[3]) {
  if (shape->type == QD_BOX) {
    return box_line(out, shape, n);
  }
  if (shape->type == QD_MESH) {
    return mesh_line(out, shape, n);
  }
  if (shape->type != QD_CAPSULE && shape->type != QD_CYLINDER) {
    return 0;
  }
  mat3_column(out->axis, shape->rot, 2);
  vec3_set(out->center, 0.0, 0.0, 0.0);
  out->radius = shape->size[0];
  out->half = shape->size[1];
  const int capsule = shape->type == QD_CAPSULE;
  out->side = capsule ? 1 : CYLINDER_SIDE;
  out->end[0] = capsule ? 0 : CYLINDER_LOWER_RIM;
  out->end[1] = capsule ? 2 : CYLINDER_UPPER_RIM;
  return out->half > 0.0 && fabs(vec3_dot(out->axis, n)) < PARALLEL_SINE;
}

/* The surface point at a coordinate of the line; n outward. */
static void line_point(double x[3], const line *l, double coordinate, const double n[3],
                       double sign) {
  vec3_copy(x, l->center);
  vec3_axpy(x, coordinate, l->axis);
  vec3_axpy(x, sign * l->radius, n);
}

int line_manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                  contact_point out[2]) {
  convex_pair pair;
  line la = {.half = 0.0}, lb = la;
  double minus[3], cross[3], d[3];
  const double *n = closest->normal;
  vec3_scale(minus, n, -1.0);
  if (!shape_line(&la, a, n) || !shape_line(&lb, b, minus)) {
    return 0;
  }
  vec3_cross(cross, la.axis, lb.axis);
  if (!(vec3_norm(cross) < PARALLEL_SINE)) {
    return 0;
  }
  convex_pair_init(&pair, a, b);
  vec3_add(lb.center, lb.center, pair.d);
  vec3_sub(d, lb.center, la.center);
  const double cosine = vec3_dot(la.axis, lb.axis), same_way = cosine > 0.0 ? 1.0 : -1.0;
  const double middle = vec3_dot(d, la.axis), reach = lb.half * fabs(cosine);
  const double low = fmax(-la.half, middle - reach), high = fmin(la.half, middle + reach);
  if (!(high - low > SLIGHT * pair.size)) {
    return 0;
  }
  for (int k = 0; k < 2; ++k) {
    const double side = k == 0 ? -1.0 : 1.0, at = k == 0 ? low : high;
    const int a_ends = side * (middle + side * reach) >= la.half;
    const int b_end = side * same_way > 0.0;
    const int feature[2] = {a_ends ? la.end[k] : la.side, a_ends ? lb.side : lb.end[b_end]};
    convex_witness start = {.gap = 0.0};
    vec3_copy(start.n, n);
    line_point(start.x[0], &la, at, n, 1.0);
    line_point(start.x[1], &lb, (at - middle) * same_way, n, -1.0);
    if (!closest_on_features(&pair, &start, feature, out + k)) {
      return 0;
    }
  }
  return 2;
}
