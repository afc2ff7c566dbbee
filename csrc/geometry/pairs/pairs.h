/* The pair functions of the table in collide.c. Each takes its shapes in the order that gives the
 * shorter formulas. */
#ifndef QD_GEOMETRY_PAIRS_H
#define QD_GEOMETRY_PAIRS_H

#include "geometry/collide.h"
#include "qdsim.h"

/* As shapes_collide, shapes_collide_derivative and shapes_size_derivative. */
typedef int pair_collide(const placed_shape *a, const placed_shape *b, double margin,
                         contact_point *out);
typedef void pair_derivative(const placed_shape *a, const placed_shape *b,
                             const contact_point *contact, contact_point_derivative *out);

/* Functions for a pair of shape types. */
typedef struct shape_pair {
  pair_collide *collide;
  pair_derivative *derivative;
  pair_derivative *size_derivative;
} shape_pair;

/* sphere_column.c: each type against a sphere or a point of a cloud; no entry for clouds. */
extern const shape_pair SPHERE_COLUMN[QD_SHAPE_TYPE_COUNT];

/* sphere_pairs.c */
pair_collide plane_sphere_collide, sphere_sphere_collide, capsule_sphere_collide,
    box_sphere_collide;
pair_derivative plane_sphere_derivative, sphere_sphere_derivative, capsule_sphere_derivative,
    box_sphere_derivative;

/* plane_pairs.c */
pair_collide plane_capsule_collide, plane_box_collide;
pair_derivative plane_capsule_derivative, plane_box_derivative;
pair_derivative plane_capsule_size_derivative, plane_box_size_derivative;

/* capsule_capsule.c */
pair_collide capsule_capsule_collide;
pair_derivative capsule_capsule_derivative, capsule_capsule_size_derivative;

/* block_pairs.c: two boxes, or a box and a capsule */
pair_collide block_block_collide;

/* convex_pairs.c: capsules, boxes, cylinders, ellipsoids and meshes */
pair_collide convex_convex_collide;

/* curved_pairs.c */
pair_collide plane_cylinder_collide, plane_ellipsoid_collide, cylinder_sphere_collide,
    ellipsoid_sphere_collide;

/* mesh_pairs.c */
pair_collide plane_mesh_collide, mesh_sphere_collide;

/* closest_and_manifold.c: contacts of closest points with features of surface.h, and of faces */
pair_derivative closest_and_manifold_derivative, closest_and_manifold_size_derivative;

/* height_field_pairs.c: against spheres, capsules, boxes, cylinders, ellipsoids and meshes */
pair_collide height_field_convex_collide;
pair_derivative height_field_convex_derivative, height_field_convex_size_derivative;

/* The contact of a feature, in the order of the table. Clouds: against convex shapes, height fields
 * or clouds. */
typedef void pair_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                          contact_point *out);
pair_contact height_field_contact, cloud_contact;

/* cloud_pairs.c */
pair_collide convex_cloud_collide, cloud_cloud_collide;
pair_derivative convex_cloud_derivative, cloud_cloud_derivative;
pair_derivative convex_cloud_size_derivative, cloud_cloud_size_derivative;

#endif
