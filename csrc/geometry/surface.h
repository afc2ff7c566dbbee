/* The local surface of a shape around one point, for closest points: how far the closest point
 * moves when the normal rotates. Closest points of two convex shapes need nothing else, for values
 * by Newton's method and for derivatives. Floor: geometry. */
#ifndef QD_GEOMETRY_SURFACE_H
#define QD_GEOMETRY_SURFACE_H

#include "geometry/collide.h"

/* Features, by type of shape. Plane, sphere, ellipsoid: 0. Capsule: 0 lower end, 1 side, 2 upper
 * end. Box: 13 + sum of s_i 3^i, s_i the sign of coordinate i if it is at its bound, else 0 (face,
 * edge, vertex). Mesh: see mesh_surface.h. Cylinder: the following. */
enum {
  CYLINDER_SIDE = 0,
  CYLINDER_LOWER_CAP,
  CYLINDER_UPPER_CAP,
  CYLINDER_LOWER_RIM,
  CYLINDER_UPPER_RIM
};
enum { SURFACE_FEATURE_COUNT = 1 << 24 }; /* all are smaller */

/* Of the closest points of two shapes. */
static inline contact_feature closest_feature(int feature_a, int feature_b) {
  return feature_a + (contact_feature)SURFACE_FEATURE_COUNT * feature_b;
}

/* A point of the surface and an outward normal there, in the frame of the shape. */
typedef struct surface_point {
  int feature;
  double x[3];
  double n[3];
} surface_point;

/* In each of two directions (unit, normal to n and to each other) the allowed pairs (dx, dn) of the
 * feature are multiples of (move length, turn): a radius of curvature R is (R, 1), a vertex (0, 1),
 * a face (1, 0). */
typedef struct local_surface {
  double axis[2][3]; /* world */
  double move[2];
  double turn[2];
} local_surface;

/* Sum of the sizes that the type uses; for a mesh its radius. */
double shape_extent(const placed_shape *shape);
/* The unit of move for two shapes: any will do where neither has a size, a point on a plane. */
static inline double closest_length(const placed_shape *a, const placed_shape *b) {
  const double length = shape_extent(a) + shape_extent(b);
  return length > 1e-100 ? length : 1.0;
}
/* Largest distance of the surface from that of its features: for meshes whose polygons are not
 * flat. */
double shape_roughness(const placed_shape *shape);

/* The surface around a point. length: the unit of move, of the size of the shapes. */
void surface_compute(local_surface *out, const placed_shape *shape, const surface_point *point,
                     double length);

/* The feature at a point near the surface; coordinates within the tolerance of a bound count as at
 * the bound. */
int surface_classify(const placed_shape *shape, const double x[3], double tolerance);

/* The feature of a face, numbered as in face_manifold.h: box 2 axis + positive, cylinder 0 lower, 1
 * upper cap, mesh polygon. */
int surface_face(const placed_shape *shape, int face);

/* Moves a point and normal back onto the feature after a step. */
void surface_retract(const placed_shape *shape, surface_point *point);

/* If the point has left its feature, or the normal has left the feature's normal cone, changes to
 * the neighbour. Returns 1 if it did. */
int surface_cross(const placed_shape *shape, surface_point *point);

/* World to shape and back. */
void surface_point_place(surface_point *out, const placed_shape *shape, const double x[3],
                         const double n[3], int feature);

/* The linear map of closest points: (twist of the normal, tangential offset of the points, in
 * units of length, both in the axes t1 t2) -> steps of A's and B's surface. */
typedef struct closest_system {
  double tangent[2][3];
  double inverse[16]; /* (4, 4): columns turn_1, turn_2, offset_1, offset_2; rows A_1 A_2 B_1 B_2 */
} closest_system;

/* n from A into B (world, unit), gap in units of the length of the surfaces. Points or normals that
 * are not unique (parallel faces and lines) stay. */
void closest_system_compute(closest_system *out, const local_surface *a, const local_surface *b,
                            const double n[3], double gap);

/* The derivative of the contact of two closest points with these features. */
void closest_derivative(const placed_shape *a, const placed_shape *b, int feature_a, int feature_b,
                        const contact_point *contact, contact_point_derivative *out);
/* The same with respect to sizes: (3) of A, (3) of B. */
void closest_size_derivative(const placed_shape *a, const placed_shape *b, int feature_a,
                             int feature_b, const contact_point *contact,
                             contact_point_derivative *out);

#endif
