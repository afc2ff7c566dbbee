/* Contacts of a flat or straight part of one shape with a face of another. They keep boxes and
 * cylinders standing on faces and lying on their sides. */
#ifndef QD_GEOMETRY_FACE_MANIFOLD_H
#define QD_GEOMETRY_FACE_MANIFOLD_H

#include "geometry/collide.h"

enum { FACE_MANIFOLD_CAPACITY = MESH_SIDES_MAX + 2 * MESH_OUTLINE_MAX };

/* A closest point on the rim of a cap is left out if the cap's six fixed points are as close, to
 * this share of the radius (or of the other shape if that is smaller): for tilts up to about 1e-3.
 * Closer to upright, the closest point runs around the rim, and a contact that comes and goes there
 * makes smoothed steps jump. */
#define CAP_COVERED 1e-4

/* Features of these contacts have the first bit, and also the second if the pair's second shape
 * owns the face. Other contacts use smaller numbers. */
#define FACE_MANIFOLD_FEATURE ((contact_feature)1 << 61)
#define FACE_MANIFOLD_EXCHANGED ((contact_feature)1 << 60)

/* Index of the face of a plane, box, cylinder or mesh (for a mesh: at its support vertex) whose
 * normal is closest to direction (world, outward); -1 for shapes without faces. */
int face_towards(const placed_shape *shape, const double direction[3]);
/* Its outward normal in the world. */
void face_normal(double normal[3], const placed_shape *shape, int face);

/* Clips the part of `other` that faces the owner's face to the sides of the face, and returns its
 * vertices as contacts. The part is a face of a box or mesh, the axis of a capsule, or a cap or the
 * lowest line of a cylinder; other shapes have none. dist and normal are along the normal of the
 * face; normals point from owner into other. Fills out (FACE_MANIFOLD_CAPACITY), returns their
 * number. */
int face_manifold(const placed_shape *owner, int face, const placed_shape *other,
                  contact_point *out);
/* Distance by which such a contact may differ from the closest points and still replace them. It is
 * positive if the contact is a corner of a polygon inscribed in a round face, and 0 otherwise. */
double face_manifold_coarseness(const placed_shape *owner, const placed_shape *other,
                                contact_feature feature);
/* The part of other's size that is round skin around its part: a capsule's radius. */
double face_manifold_skin(const placed_shape *other);
/* Derivative of a contact of face_manifold. */
void face_manifold_derivative(const placed_shape *owner, const placed_shape *other,
                              const contact_point *contact, contact_point_derivative *out);

/* The same with respect to sizes: (3) of the owner, then (3) of the other. */
void face_manifold_size_derivative(const placed_shape *owner, const placed_shape *other,
                                   const contact_point *contact, contact_point_derivative *out);

/* Keeps `limit` of the contacts (at most FACE_MANIFOLD_CAPACITY): the `nearest` nearest ones, then
 * repeatedly the one farthest from those kept, the first of equals. Their order is kept. Returns
 * their number. */
int contacts_reduce(contact_point *contacts, int count, int limit, int nearest);

/* Fills out (CONTACTS_PER_PAIR_MAX) with the contact of the closest points, and with the manifold
 * of a face almost perpendicular to the contact normal if there is one; all with dist <= margin.
 * The closest points are left out if the manifold is as close. */
int closest_and_manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                         int feature_a, int feature_b, double margin, contact_point *out);

#endif
