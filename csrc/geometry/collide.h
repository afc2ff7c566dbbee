/* Contacts of two shapes and their derivatives. This file uses shapes and poses only, no bodies and
 * no solver. */
#ifndef QD_GEOMETRY_COLLIDE_H
#define QD_GEOMETRY_COLLIDE_H

#include <stdint.h>

#include "geometry/meshes/mesh.h"

#define CONTACTS_PER_PAIR_MAX 8

/* The parts of the shapes that are in contact: contacts with the same value belong to the same
 * smooth branch. */
typedef int64_t contact_feature;

typedef struct point_cloud point_cloud;   /* cloud.h */
typedef struct height_field height_field; /* height_field.h */

/* A shape placed in the world. Floor: geometry. */
typedef struct placed_shape {
  int type;           /* a qd_shape_type */
  const double *size; /* (3) */
  double pos[3];      /* world */
  double rot[9]; /* row-major, columns are the shape's axes in the world; not read for spheres */
  const convex_mesh *mesh;     /* of QD_MESH: pos is its centroid */
  const point_cloud *cloud;    /* of QD_CLOUD: pos is the middle of its box */
  const height_field *heights; /* of QD_HFIELD */
} placed_shape;

/* Whether contacts of a shape are with some of its parts: points of a cloud, faces, edges and
 * vertices of a height field. Others may come into reach. */
static inline int shape_is_in_parts(int type) { return type == QD_CLOUD || type == QD_HFIELD; }

typedef struct contact_point {
  double dist;      /* signed distance, negative in penetration, m */
  double pos[3];    /* midway between the two witness points, world */
  double normal[3]; /* unit, from A into B, world */
  contact_feature feature;
} contact_point;

/* Derivatives with respect to the twist (omega, v) of B relative to A: A stands still, a point x of
 * B moves with v + omega x (x - pos), where pos is the contact point. World axes. Rows as named. */
typedef struct contact_point_derivative {
  double dist[6];
  double pos[18];    /* (3, 6) */
  double normal[18]; /* (3, 6) */
} contact_point_derivative;

/* Fills out[] (CONTACTS_PER_PAIR_MAX) with the contacts of dist <= margin, returns their number. */
int shapes_collide(const placed_shape *a, const placed_shape *b, double margin, contact_point *out);

/* The contact of one point of a cloud or one part of a height field, by a feature that
 * shapes_collide gave, wherever the two are now. At least one is a cloud or a field. */
void feature_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                     contact_point *out);

/* Derivative of a contact returned by shapes_collide for the same a and b. If it does not exist
 * (parallel faces, equal centres), the documented choice of the pair; never NaN. */
void shapes_collide_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out);

/* The same with respect to the shapes' sizes, (3) of A, (3) of B, both at rest. Exact within a
 * feature; a mesh has no size, that of a cloud is the radius of its points. */
void shapes_size_derivative(const placed_shape *a, const placed_shape *b,
                            const contact_point *contact, contact_point_derivative *out);

#endif
