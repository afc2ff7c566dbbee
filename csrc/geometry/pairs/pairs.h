/* The pair functions behind the table in collide.c, each in the order of shapes that makes its
 * formulas short. Floor: geometry. */
#ifndef QD_GEOMETRY_PAIRS_H
#define QD_GEOMETRY_PAIRS_H

#include "geometry/collide.h"
#include "qdsim.h"

/* As shapes_collide, shapes_collide_derivative and shapes_size_derivative. */
typedef int pair_collide(const placed_shape *a, const placed_shape *b, double margin,
                         contact_point *out);
typedef void pair_derivative(const placed_shape *a, const placed_shape *b,
                             const contact_point *contact, contact_point_derivative *out);

/* What is known of two types of shapes. */
typedef struct shape_pair {
  pair_collide *collide;
  pair_derivative *derivative;
  pair_derivative *size_derivative;
} shape_pair;

/* sphere_column.c: each type against a sphere, which a cloud's points are, too; of clouds nothing.
 */
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

/* block_pairs.c: boxes and capsules, at least one box */
pair_collide block_block_collide;

/* convex_pairs.c: capsules, boxes, cylinders, ellipsoids and meshes */
pair_collide convex_convex_collide;

/* curved_pairs.c */
pair_collide plane_cylinder_collide, plane_ellipsoid_collide, cylinder_sphere_collide,
    ellipsoid_sphere_collide;

/* mesh_pairs.c */
pair_collide plane_mesh_collide, mesh_sphere_collide;

/* closest_and_manifold.c: of closest points with features of surface.h, and of faces over faces */
pair_derivative closest_and_manifold_derivative, closest_and_manifold_size_derivative;

/* height_field_pairs.c: against spheres, capsules, boxes, cylinders, ellipsoids and meshes */
pair_collide height_field_convex_collide;
pair_derivative height_field_convex_derivative, height_field_convex_size_derivative;

/* The contact of a feature, in the order of the table; of clouds against convex shapes or height
 * fields, or of two clouds. */
typedef void pair_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                          contact_point *out);
pair_contact height_field_contact, cloud_contact;

/* cloud_pairs.c */
pair_collide convex_cloud_collide, cloud_cloud_collide;
pair_derivative convex_cloud_derivative, cloud_cloud_derivative;
pair_derivative convex_cloud_size_derivative, cloud_cloud_size_derivative;

#endif
