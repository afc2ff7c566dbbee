/* The table of shape pairs. Only this file knows the order of shapes in a pair; a new pair needs
 * one entry here and a file of its own. Order: planes and height fields come first, spheres and
 * clouds second; of two other shapes the later type comes first. */
#include "geometry/collide.h"

#include <assert.h>
#include <stddef.h>

#include "geometry/pairs/pairs.h"
#include "geometry/projection.h"
#include "qdsim.h"

/* Pairs of capsules, boxes, cylinders, ellipsoids and meshes without an entry of their own. */
static const shape_pair CONVEX_CONVEX = {convex_convex_collide, closest_and_manifold_derivative,
                                         closest_and_manifold_size_derivative};
static const shape_pair CONVEX_CLOUD = {convex_cloud_collide, convex_cloud_derivative,
                                        convex_cloud_size_derivative};
static const shape_pair CLOUD_CLOUD = {cloud_cloud_collide, cloud_cloud_derivative,
                                       cloud_cloud_size_derivative};

static const shape_pair FIELD_CONVEX = {height_field_convex_collide, height_field_convex_derivative,
                                        height_field_convex_size_derivative};

static const shape_pair PAIRS[QD_SHAPE_TYPE_COUNT][QD_SHAPE_TYPE_COUNT] = {
    [QD_PLANE][QD_CAPSULE] = {plane_capsule_collide, plane_capsule_derivative,
                              plane_capsule_size_derivative},
    [QD_PLANE][QD_BOX] = {plane_box_collide, plane_box_derivative, plane_box_size_derivative},
    [QD_PLANE][QD_CYLINDER] = {plane_cylinder_collide, closest_and_manifold_derivative,
                               closest_and_manifold_size_derivative},
    [QD_PLANE][QD_ELLIPSOID] = {plane_ellipsoid_collide, closest_and_manifold_derivative,
                                closest_and_manifold_size_derivative},
    [QD_PLANE][QD_MESH] = {plane_mesh_collide, closest_and_manifold_derivative,
                           closest_and_manifold_size_derivative},
    [QD_CAPSULE][QD_CAPSULE] = {capsule_capsule_collide, capsule_capsule_derivative,
                                capsule_capsule_size_derivative},
    [QD_BOX][QD_CAPSULE] = {block_block_collide, closest_and_manifold_derivative,
                            closest_and_manifold_size_derivative},
    [QD_BOX][QD_BOX] = {block_block_collide, closest_and_manifold_derivative,
                        closest_and_manifold_size_derivative},
};

/* NULL for two planes or height fields, which have no contacts, and for the other order. */
static const shape_pair *pair_of(int type_a, int type_b) {
  if (type_b == QD_CLOUD) {
    return type_a == QD_CLOUD ? &CLOUD_CLOUD : &CONVEX_CLOUD;
  }
  if (type_a == QD_HFIELD) {
    return QD_SPHERE <= type_b && type_b <= QD_MESH ? &FIELD_CONVEX : NULL;
  }
  const shape_pair *own = type_b == QD_SPHERE ? &SPHERE_COLUMN[type_a] : &PAIRS[type_a][type_b];
  if (own->collide) {
    return own;
  }
  return QD_CAPSULE <= type_b && type_b <= type_a && type_a <= QD_MESH ? &CONVEX_CONVEX : NULL;
}

static int is_shape_type(int type) { return type >= 0 && type < QD_SHAPE_TYPE_COUNT; }

int qd_shape_pair_supported(int type_a, int type_b) {
  return is_shape_type(type_a) && is_shape_type(type_b) &&
         (pair_of(type_a, type_b) || pair_of(type_b, type_a));
}

int shapes_collide(const placed_shape *a, const placed_shape *b, double margin,
                   contact_point *out) {
  assert(qd_shape_pair_supported(a->type, b->type));
  const shape_pair *straight = pair_of(a->type, b->type);
  if (straight) {
    return straight->collide(a, b, margin, out);
  }
  const shape_pair *exchanged = pair_of(b->type, a->type);
  if (!exchanged) {
    return 0;
  }
  const int count = exchanged->collide(b, a, margin, out);
  for (int i = 0; i < count; ++i) {
    contact_point_exchange(out + i);
  }
  return count;
}

void feature_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                     contact_point *out) {
  const int exchanged = pair_of(a->type, b->type) == NULL;
  const placed_shape *first = exchanged ? b : a, *second = exchanged ? a : b;
  pair_contact *contact = second->type == QD_CLOUD ? cloud_contact : height_field_contact;
  contact(first, second, feature, out);
  if (exchanged) {
    contact_point_exchange(out);
  }
}

/* Derivatives by the poses, or by the sizes. */
static void differentiate(const placed_shape *a, const placed_shape *b, int by_sizes,
                          const contact_point *contact, contact_point_derivative *out) {
  assert(qd_shape_pair_supported(a->type, b->type));
  const shape_pair *straight = pair_of(a->type, b->type);
  if (straight) {
    (by_sizes ? straight->size_derivative : straight->derivative)(a, b, contact, out);
    return;
  }
  const shape_pair *exchanged = pair_of(b->type, a->type);
  if (!exchanged) {
    *out = (contact_point_derivative){0};
    return;
  }
  contact_point other = *contact;
  contact_point_exchange(&other);
  (by_sizes ? exchanged->size_derivative : exchanged->derivative)(b, a, &other, out);
  if (by_sizes) {
    size_derivative_exchange(out);
  } else {
    contact_point_derivative_exchange(out, contact->normal);
  }
}

void shapes_collide_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out) {
  differentiate(a, b, 0, contact, out);
}

void shapes_size_derivative(const placed_shape *a, const placed_shape *b,
                            const contact_point *contact, contact_point_derivative *out) {
  differentiate(a, b, 1, contact, out);
}
