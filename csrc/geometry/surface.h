/* The surface of a shape near one point: how far the closest point moves when the normal rotates.
 * This is all that closest points of two convex shapes need, both for values (Newton's method) and
 * for derivatives. */
#ifndef QD_GEOMETRY_SURFACE_H
#define QD_GEOMETRY_SURFACE_H

#include "geometry/collide.h"

/* Features by type of shape. Plane, sphere, ellipsoid: 0. Capsule: 0 lower end, 1 side, 2 upper
 * end. Box: 13 + sum of s_i 3^i with s_i the sign of coordinate i if it is at its bound, else 0
 * (face, edge, vertex). Mesh: see mesh_surface.h. Cylinder: the following. */
enum {
  CYLINDER_SIDE = 0,
  CYLINDER_LOWER_CAP,
  CYLINDER_UPPER_CAP,
  CYLINDER_LOWER_RIM,
  CYLINDER_UPPER_RIM
};
enum { SURFACE_FEATURE_COUNT = 1 << 24 }; /* larger than any feature */

/* The contact feature of closest points on these two features. */
static inline contact_feature closest_feature(int feature_a, int feature_b) {
  return feature_a + (contact_feature)SURFACE_FEATURE_COUNT * feature_b;
}

/* A point of the surface and its outward normal, in the frame of the shape. */
typedef struct surface_point {
  int feature;
  double x[3];
  double n[3];
} surface_point;

/* Along each of two directions (unit, perpendicular to n and to each other), the feature allows
 * changes (dx, dn) that are multiples of (move length, turn): (R, 1) for a radius of curvature R,
 * (0, 1) for a vertex, (1, 0) for a face. */
typedef struct local_surface {
  double axis[2][3]; /* world */
  double move[2];
  double turn[2];
} local_surface;

/* Sum of the sizes that the type uses; for a mesh its bounding radius. */
double shape_extent(const placed_shape *shape);
/* The unit of length for `move` of two shapes. Arbitrary if neither has a size (a point on a
 * plane). */
static inline double closest_length(const placed_shape *a, const placed_shape *b) {
  const double length = shape_extent(a) + shape_extent(b);
  return length > 1e-100 ? length : 1.0;
}
/* Largest distance of the surface from the planes of its features; positive for meshes whose
 * polygons are not flat. */
double shape_roughness(const placed_shape *shape);

/* The surface around a point. length: the unit of `move`, about the size of the shapes. */
void surface_compute(local_surface *out, const placed_shape *shape, const surface_point *point,
                     double length);

/* The feature at a point near the surface. Coordinates within the tolerance of a bound count as at
 * the bound. */
int surface_classify(const placed_shape *shape, const double x[3], double tolerance);

/* The feature of a face, with faces numbered as in face_manifold.h. Box: 2 axis + (1 if positive);
 * cylinder: 0 lower cap, 1 upper cap; mesh: index of the polygon. */
int surface_face(const placed_shape *shape, int face);

/* Moves point and normal back onto the feature after a step. */
void surface_retract(const placed_shape *shape, surface_point *point);

/* Changes to the neighbouring feature if the point has left its feature or the normal has left the
 * feature's normal cone. Returns 1 if it changed. */
int surface_cross(const placed_shape *shape, surface_point *point);

/* Converts a point and normal from the world to the frame of the shape. */
void surface_point_place(surface_point *out, const placed_shape *shape, const double x[3],
                         const double n[3], int feature);

/* The linear map of closest points: from the rotation of the normal and the tangential offset of
 * the points (in units of length), both in the axes t1 and t2, to steps of the points on the
 * surfaces of A and B. */
typedef struct closest_system {
  double tangent[2][3];
  double inverse[16]; /* (4, 4): columns turn_1, turn_2, offset_1, offset_2; rows A_1 A_2 B_1 B_2 */
} closest_system;

/* n from A into B (world, unit); gap in units of the surfaces' length. Points or normals that are
 * not unique (parallel faces and lines) do not move. */
void closest_system_compute(closest_system *out, const local_surface *a, const local_surface *b,
                            const double n[3], double gap);

/* The derivative of the contact of two closest points on these features. */
void closest_derivative(const placed_shape *a, const placed_shape *b, int feature_a, int feature_b,
                        const contact_point *contact, contact_point_derivative *out);
/* The same with respect to sizes: (3) of A, then (3) of B. */
void closest_size_derivative(const placed_shape *a, const placed_shape *b, int feature_a,
                             int feature_b, const contact_point *contact,
                             contact_point_derivative *out);

#endif
