/* Closed forms for cylinder and ellipsoid against a plane and a sphere.
 *
 * Choices. A cylinder standing on a plane (axis within some 1e-3 of the normal, CAP_COVERED) has
 * only the six fixed points of its cap, since its lowest point runs around the rim. A sphere's
 * centre on a cylinder's axis, nearest to its side: the cylinder's first axis. Within rounding of a
 * rim: the side or cap that the centre is farthest outside of. A centre in the middle plane of an
 * ellipsoid, equally near to both sides of its shortest axis: the positive side. */
#include <math.h>

#include "base/vec3.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "geometry/surface.h"
#include "qdsim.h"

/* ---------------------------------------------------------------- plane */

static void plane_contact(contact_point *out, const placed_shape *plane, const double x[3]) {
  mat3_column(out->normal, plane->rot, 2);
  out->dist = vec3_dot_sub(out->normal, x, plane->pos);
  vec3_copy(out->pos, x);
  vec3_axpy(out->pos, -0.5 * out->dist, out->normal);
}

int plane_cylinder_collide(const placed_shape *a, const placed_shape *b, double margin,
                           contact_point *out) {
  double normal[3], local[3], lowest[3], x[3];
  contact_point closest;
  mat3_column(normal, a->rot, 2);
  mat3_tmul_vec(local, b->rot, normal);
  /* perpendicular to the axis, in the cylinder's frame: for a standing cylinder rounding decides
   * the direction, but the point is always on the rim */
  const double across = hypot(local[0], local[1]);
  const double scale = across > 0.0 ? -b->size[0] / across : 0.0;
  const double end = local[2] > 0.0 ? -1.0 : 1.0;
  vec3_set(lowest, across > 0.0 ? scale * local[0] : b->size[0], scale * local[1],
           end * b->size[1]);
  mat3_mul_add(x, b->rot, lowest, b->pos);
  plane_contact(&closest, a, x);
  return closest_and_manifold(a, b, &closest, 0,
                              end > 0.0 ? CYLINDER_UPPER_RIM : CYLINDER_LOWER_RIM, margin, out);
}

int plane_ellipsoid_collide(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out) {
  double normal[3], y[3], x[3];
  surface_point lowest = {.feature = 0};
  mat3_column(normal, a->rot, 2);
  mat3_tmul_vec(y, b->rot, normal);
  vec3_scale(lowest.n, y, -1.0);
  surface_retract(b, &lowest);
  mat3_mul_add(x, b->rot, lowest.x, b->pos);
  plane_contact(out, a, x);
  out->feature = 0;
  return out->dist <= margin;
}

/* ---------------------------------------------------------------- sphere */

/* Contact of a ball B at distance `gap` from the surface of A, with normal n in A's frame. */
static int ball_contact(contact_point *out, const placed_shape *a, const placed_shape *b,
                        const double n[3], double gap, int feature, double margin) {
  const double radius = b->size[0];
  if (!(gap - radius <= margin)) {
    return 0;
  }
  out->dist = gap - radius;
  out->feature = feature;
  mat3_mul_vec(out->normal, a->rot, n);
  vec3_copy(out->pos, b->pos);
  vec3_axpy(out->pos, -0.5 * (gap + radius), out->normal);
  return 1;
}

int cylinder_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                            contact_point *out) {
  double y[3], n[3] = {0.0, 0.0, 0.0};
  mat3_tmul_sub(y, a->rot, b->pos, a->pos);
  const double rho = hypot(y[0], y[1]), end = y[2] < 0.0 ? -1.0 : 1.0;
  const double out_of_side = rho - a->size[0], out_of_end = fabs(y[2]) - a->size[1];
  const int beside = rho > core_touch_distance(shape_extent(a)); /* not on the axis */
  const double u[2] = {beside ? y[0] / rho : 1.0, beside ? y[1] / rho : 0.0};
  const double corner = hypot(fmax(out_of_side, 0.0), fmax(out_of_end, 0.0));
  if (out_of_side > 0.0 && out_of_end > 0.0 && corner > core_touch_distance(shape_extent(a))) {
    vec3_set(n, out_of_side / corner * u[0], out_of_side / corner * u[1],
             end * out_of_end / corner);
    return ball_contact(out, a, b, n, corner, end < 0.0 ? CYLINDER_LOWER_RIM : CYLINDER_UPPER_RIM,
                        margin);
  }
  if (out_of_side > out_of_end) {
    vec3_set(n, u[0], u[1], 0.0);
    return ball_contact(out, a, b, n, out_of_side, CYLINDER_SIDE, margin);
  }
  n[2] = end;
  return ball_contact(out, a, b, n, out_of_end, end < 0.0 ? CYLINDER_LOWER_CAP : CYLINDER_UPPER_CAP,
                      margin);
}

/* The closest point x of the surface to y satisfies y = x + t D^-2 x, so x_i = a_i^2 y_i / (a_i^2 +
 * t). Here t > -(shortest a)^2 is the root of F = sum (a_i y_i / (a_i^2 + t))^2 - 1, which is
 * convex and decreasing. In s = t + shortest^2 the denominators are sums of positive numbers. At
 * s_0 = max (a_i |y_i| - a_i^2 + shortest^2) each term of F is at most one and one of them is one,
 * so Newton's method from s_0 increases to the root without passing it. If there is no root (y in
 * the middle plane, where the term of the shortest axis is 0/0), the point is straight above or
 * below. (Compare Eberly, "Distance from a point to an ellipse, an ellipsoid, or a
 * hyperellipsoid".) */
static void ellipsoid_project(const double size[3], const double y[3], double n[3], double x[3]) {
  const int shortest =
      size[0] <= size[1] ? (size[0] <= size[2] ? 0 : 2) : (size[1] <= size[2] ? 1 : 2);
  double excess[3], s = 0.0, middle = 0.0;
  for (int i = 0; i < 3; ++i) {
    excess[i] = (size[i] - size[shortest]) * (size[i] + size[shortest]);
    s = fmax(s, size[i] * fabs(y[i]) - excess[i]);
  }
  for (int iteration = 0; iteration < 100; ++iteration) {
    double F = -1.0, slope = 0.0;
    for (int i = 0; i < 3; ++i) {
      if (y[i] != 0.0) {
        const double term = size[i] * y[i] / (excess[i] + s);
        F += term * term;
        slope -= 2.0 * term * term / (excess[i] + s);
      }
    }
    const double next = s - F / slope;
    if (!(F > 0.0) || !(next > s)) {
      break;
    }
    s = next;
  }
  for (int i = 0; i < 3; ++i) {
    n[i] = y[i] != 0.0 ? y[i] / (excess[i] + s) : 0.0;
    middle += n[i] * size[i] * (n[i] * size[i]);
  }
  if (s == 0.0 && middle < 1.0) {
    n[shortest] = sqrt(1.0 - middle) / size[shortest];
  }
  vec3_normalize(n);
  double Dn[3] = {size[0] * n[0], size[1] * n[1], size[2] * n[2]};
  const double h = vec3_norm(Dn);
  vec3_set(x, size[0] * (Dn[0] / h), size[1] * (Dn[1] / h), size[2] * (Dn[2] / h));
}

int ellipsoid_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                             contact_point *out) {
  double y[3], n[3], x[3];
  mat3_tmul_sub(y, a->rot, b->pos, a->pos);
  ellipsoid_project(a->size, y, n, x);
  return ball_contact(out, a, b, n, vec3_dot_sub(n, y, x), 0, margin);
}
