/* The table of shape pairs, and the only place that knows about order. A new pair is one entry here
 * and one file of its own; entries may be in either order of types, never in both. */
#include "geometry/collide.h"

#include <assert.h>
#include <stddef.h>

#include "geometry/pairs/face_manifold.h"
#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "qdsim.h"

typedef struct shape_pair {
  pair_collide collide;
  pair_derivative derivative;
} shape_pair;

static const shape_pair PAIRS[QD_SHAPE_TYPE_COUNT][QD_SHAPE_TYPE_COUNT] = {
    [QD_PLANE][QD_SPHERE] = {plane_sphere_collide, plane_sphere_derivative},
    [QD_PLANE][QD_CAPSULE] = {plane_capsule_collide, plane_capsule_derivative},
    [QD_PLANE][QD_BOX] = {plane_box_collide, plane_box_derivative},
    [QD_SPHERE][QD_SPHERE] = {sphere_sphere_collide, sphere_sphere_derivative},
    [QD_CAPSULE][QD_SPHERE] = {capsule_sphere_collide, capsule_sphere_derivative},
    [QD_CAPSULE][QD_CAPSULE] = {capsule_capsule_collide, capsule_capsule_derivative},
    [QD_BOX][QD_SPHERE] = {box_sphere_collide, box_sphere_derivative},
    [QD_BOX][QD_CAPSULE] = {block_block_collide, closest_and_manifold_derivative},
    [QD_BOX][QD_BOX] = {block_block_collide, closest_and_manifold_derivative},
    [QD_PLANE][QD_CYLINDER] = {plane_cylinder_collide, closest_and_manifold_derivative},
    [QD_PLANE][QD_ELLIPSOID] = {plane_ellipsoid_collide, closest_and_manifold_derivative},
    [QD_CYLINDER][QD_SPHERE] = {cylinder_sphere_collide, closest_and_manifold_derivative},
    [QD_ELLIPSOID][QD_SPHERE] = {ellipsoid_sphere_collide, closest_and_manifold_derivative},
    [QD_CYLINDER][QD_CAPSULE] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_CYLINDER][QD_BOX] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_CYLINDER][QD_CYLINDER] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_ELLIPSOID][QD_CAPSULE] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_ELLIPSOID][QD_BOX] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_ELLIPSOID][QD_CYLINDER] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_ELLIPSOID][QD_ELLIPSOID] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_PLANE][QD_MESH] = {plane_mesh_collide, closest_and_manifold_derivative},
    [QD_MESH][QD_SPHERE] = {mesh_sphere_collide, closest_and_manifold_derivative},
    [QD_MESH][QD_CAPSULE] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_MESH][QD_BOX] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_MESH][QD_CYLINDER] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_MESH][QD_ELLIPSOID] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_MESH][QD_MESH] = {convex_convex_collide, closest_and_manifold_derivative},
    [QD_PLANE][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_SPHERE][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_CAPSULE][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_BOX][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_CYLINDER][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_ELLIPSOID][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_MESH][QD_CLOUD] = {convex_cloud_collide, convex_cloud_derivative},
    [QD_CLOUD][QD_CLOUD] = {cloud_cloud_collide, cloud_cloud_derivative},
};

static int is_shape_type(int type) { return type >= 0 && type < QD_SHAPE_TYPE_COUNT; }

int qd_shape_pair_supported(int type_a, int type_b) {
  return is_shape_type(type_a) && is_shape_type(type_b) &&
         (PAIRS[type_a][type_b].collide != NULL || PAIRS[type_b][type_a].collide != NULL);
}

int shapes_collide(const placed_shape *a, const placed_shape *b, double margin,
                   contact_point *out) {
  assert(qd_shape_pair_supported(a->type, b->type));
  const pair_collide straight = PAIRS[a->type][b->type].collide;
  if (straight != NULL) {
    return straight(a, b, margin, out);
  }
  const pair_collide exchanged = PAIRS[b->type][a->type].collide;
  if (exchanged == NULL) {
    return 0;
  }
  const int count = exchanged(b, a, margin, out);
  for (int i = 0; i < count; ++i) {
    contact_point_exchange(out + i);
  }
  return count;
}

void shapes_collide_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out) {
  assert(qd_shape_pair_supported(a->type, b->type));
  const pair_derivative straight = PAIRS[a->type][b->type].derivative;
  if (straight != NULL) {
    straight(a, b, contact, out);
    return;
  }
  const pair_derivative exchanged = PAIRS[b->type][a->type].derivative;
  if (exchanged == NULL) {
    *out = (contact_point_derivative){0};
    return;
  }
  contact_point other = *contact;
  contact_point_exchange(&other);
  exchanged(b, a, &other, out);
  contact_point_derivative_exchange(out, contact->normal);
}

void shapes_size_derivative(const placed_shape *a, const placed_shape *b,
                            const contact_point *contact, contact_point_derivative *out) {
  if (PAIRS[a->type][b->type].collide != NULL) {
    pair_size_derivative(a, b, contact, out);
    return;
  }
  contact_point other = *contact;
  contact_point_exchange(&other);
  pair_size_derivative(b, a, &other, out);
  size_derivative_exchange(out);
}
