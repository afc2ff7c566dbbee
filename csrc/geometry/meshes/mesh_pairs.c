/* Meshes against planes and spheres; all other pairs are in convex_pairs.c.
 *
 * Choices: a mesh on a plane touches it with the corners (at most eight) of a polygon at its lowest
 * vertex, the one closest to parallel, and also with that vertex if it is not among them. A
 * sphere's centre inside a mesh is pushed out of the nearest face; the first of equals. */
#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/convex.h"
#include "geometry/meshes/mesh_surface.h"
#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "qdsim.h"

int plane_mesh_collide(const placed_shape *a, const placed_shape *b, double margin,
                       contact_point *out) {
  double down[3], local[3], x[3];
  contact_point closest;
  mat3_column(closest.normal, a->rot, 2);
  vec3_scale(down, closest.normal, -1.0);
  mat3_tmul_vec(local, b->rot, down);
  const int lowest = mesh_support(b->mesh, local);
  mat3_mul_add(x, b->rot, b->mesh->vertex + 3 * lowest, b->pos);
  closest.dist = vec3_dot_sub(closest.normal, x, a->pos);
  vec3_copy(closest.pos, x);
  vec3_axpy(closest.pos, -0.5 * closest.dist, closest.normal);
  return closest_and_manifold(a, b, &closest, 0, lowest, margin, out);
}

/* For a centre that is inside, or so near to the surface that its direction is rounding. */
static void leave_by_face(contact_point *out, const placed_shape *mesh, const placed_shape *ball,
                          int *feature) {
  double c[3], excess;
  mat3_tmul_sub(c, mesh->rot, ball->pos, mesh->pos);
  const int polygon = mesh_polygon_nearest(mesh->mesh, c, &excess);
  mat3_mul_vec(out->normal, mesh->rot, mesh->mesh->normal + 3 * polygon);
  out->dist = excess - ball->size[0];
  vec3_copy(out->pos, ball->pos);
  vec3_axpy(out->pos, -0.5 * (excess + ball->size[0]), out->normal);
  *feature = mesh_polygon_feature(mesh->mesh, polygon);
}

int mesh_sphere_collide(const placed_shape *a, const placed_shape *b, double margin,
                        contact_point *out) {
  /* a capsule of length zero: convex pairs have no spheres */
  const double size[3] = {b->size[0], 0.0, 0.0};
  placed_shape ball = {.type = QD_CAPSULE, .size = size, .rot = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
  convex_pair pair;
  convex_witness witness;
  int feature[2];
  vec3_copy(ball.pos, b->pos);
  convex_pair_init(&pair, a, &ball);
  if (!gjk_closest(&pair, WORKED_OUT, margin + b->size[0], &witness)) {
    leave_by_face(out, a, &ball, feature);
  } else if (witness.gap - b->size[0] > margin) {
    return 0;
  } else if (!closest_refine(&pair, &witness, out, feature)) {
    closest_take(&pair, &witness, out, feature);
  }
  out->feature = closest_feature(feature[0], 0);
  return out->dist <= margin;
}
