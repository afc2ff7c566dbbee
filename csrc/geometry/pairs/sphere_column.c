#include "geometry/pairs/pairs.h"

const shape_pair SPHERE_COLUMN[QD_SHAPE_TYPE_COUNT] = {
    [QD_PLANE] = {plane_sphere_collide, plane_sphere_derivative,
                  closest_and_manifold_size_derivative},
    [QD_SPHERE] = {sphere_sphere_collide, sphere_sphere_derivative,
                   closest_and_manifold_size_derivative},
    [QD_CAPSULE] = {capsule_sphere_collide, capsule_sphere_derivative,
                    closest_and_manifold_size_derivative},
    [QD_BOX] = {box_sphere_collide, box_sphere_derivative, closest_and_manifold_size_derivative},
    [QD_CYLINDER] = {cylinder_sphere_collide, closest_and_manifold_derivative,
                     closest_and_manifold_size_derivative},
    [QD_ELLIPSOID] = {ellipsoid_sphere_collide, closest_and_manifold_derivative,
                      closest_and_manifold_size_derivative},
    [QD_MESH] = {mesh_sphere_collide, closest_and_manifold_derivative,
                 closest_and_manifold_size_derivative},
    [QD_HFIELD] = {height_field_convex_collide, height_field_convex_derivative,
                   height_field_convex_size_derivative},
};
