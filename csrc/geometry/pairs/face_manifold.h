/* Contacts of a flat or straight part of one shape over a face of another: what keeps boxes and
 * cylinders standing on faces and lying on their sides. Floor: geometry. */
#ifndef QD_GEOMETRY_FACE_MANIFOLD_H
#define QD_GEOMETRY_FACE_MANIFOLD_H

#include "geometry/collide.h"

enum { FACE_MANIFOLD_CAPACITY = MESH_SIDES_MAX + 2 * MESH_OUTLINE_MAX };

/* Closest points on the rim of a cap count as held by its six fixed points if these are as close to
 * this part of the radius, or of the other shape where that is smaller: up to a tilt of some 1e-3.
 * Nearer to standing the closest point runs round the rim, and a contact that comes and goes there
 * makes smoothed steps jump. */
#define CAP_COVERED 1e-4

/* Features of these contacts have the first bit, and the second where the pair's second shape owns
 * the face; smaller ones are free for others. */
#define FACE_MANIFOLD_FEATURE ((contact_feature)1 << 61)
#define FACE_MANIFOLD_EXCHANGED ((contact_feature)1 << 60)

/* The face of a plane, box, cylinder or mesh (there: at its support) whose normal is closest to
 * direction (world, outward): its index, or -1 for shapes without faces. */
int face_towards(const placed_shape *shape, const double direction[3]);
/* Its outward normal in the world. */
void face_normal(double normal[3], const placed_shape *shape, int face);

/* Vertices of the part of other (box and mesh: face, capsule: axis, cylinder: cap or lowest line,
 * nothing else) that looks against the face, clipped to the face's sides. dist and normal are along
 * the normal of the face. Fills out (FACE_MANIFOLD_CAPACITY), returns their number; normals point
 * from owner into other. */
int face_manifold(const placed_shape *owner, int face, const placed_shape *other,
                  contact_point *out);
/* How far such a contact may be from the closest points and still stand for them, because it is a
 * corner of a polygon that lacks some of the round face it takes part for; 0 where it lacks none.
 */
double face_manifold_coarseness(const placed_shape *owner, const placed_shape *other,
                                contact_feature feature);
/* What of the other's size is round skin about its part: a capsule's radius. */
double face_manifold_skin(const placed_shape *other);
/* Derivative of such a contact. */
void face_manifold_derivative(const placed_shape *owner, const placed_shape *other,
                              const contact_point *contact, contact_point_derivative *out);

/* The same by sizes: (3) of the owner, (3) of the other. */
void face_manifold_size_derivative(const placed_shape *owner, const placed_shape *other,
                                   const contact_point *contact, contact_point_derivative *out);

/* Keeps limit of the contacts (FACE_MANIFOLD_CAPACITY at most): the nearest ones, as many as said,
 * then again and again the one farthest from those kept, the first of equals; in their order.
 * Returns how many there are. */
int contacts_reduce(contact_point *contacts, int count, int limit, int nearest);

/* Fills out (CONTACTS_PER_PAIR_MAX) with the contact of the closest points and the manifold of a
 * face almost normal to it, if there is one: all of dist <= margin. The closest points are left out
 * where the manifold is as close. */
int closest_and_manifold(const placed_shape *a, const placed_shape *b, const contact_point *closest,
                         int feature_a, int feature_b, double margin, contact_point *out);

#endif
