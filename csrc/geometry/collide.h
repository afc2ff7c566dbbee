/* Contacts of two shapes and their derivatives. This file uses shapes and poses only, no bodies and
 * no solver. */
#ifndef QD_GEOMETRY_COLLIDE_H
#define QD_GEOMETRY_COLLIDE_H

#include <stdint.h>

#include "geometry/meshes/mesh.h"

#define CONTACTS_PER_PAIR_MAX QD_CONTACTS_PER_PAIR_MAX

/* Identifies the parts of the two shapes that are in contact. Contacts with the same value belong
 * to the same smooth branch. */
typedef int64_t contact_feature;

typedef struct point_cloud point_cloud;   /* cloud.h */
typedef struct height_field height_field; /* height_field.h */

/* A shape placed in the world. */
typedef struct placed_shape {
  int type;           /* a qd_shape_type */
  const double *size; /* (3), as geom_size of qd_model_spec */
  double pos[3];      /* world */
  double rot[9];      /* row-major, columns are the shape's axes in the world; unused for spheres */
  const convex_mesh *mesh;     /* of QD_MESH: pos is its centroid */
  const point_cloud *cloud;    /* of QD_CLOUD: pos is the centre of its bounding box */
  const height_field *heights; /* of QD_HFIELD */
} placed_shape;

/* 1 if contacts of the shape belong to single parts of it: points of a cloud, or faces, edges and
 * vertices of a height field. While the shapes move, other parts may come within the margin. */
static inline int shape_is_in_parts(int type) { return type == QD_CLOUD || type == QD_HFIELD; }

typedef struct contact_point {
  double dist;      /* signed distance, negative in penetration, m */
  double pos[3];    /* midway between the two witness points, world */
  double normal[3]; /* unit, from A into B, world */
  contact_feature feature;
} contact_point;

/* Derivatives with respect to the twist (omega, v) of B relative to A: A is fixed, a point x of B
 * moves with v + omega x (x - pos), where pos is the contact point. World axes. The members name
 * the rows. */
typedef struct contact_point_derivative {
  double dist[6];
  double pos[18];    /* (3, 6) */
  double normal[18]; /* (3, 6) */
} contact_point_derivative;

/* Fills out[] (CONTACTS_PER_PAIR_MAX) with the contacts of dist <= margin; returns their number. */
int shapes_collide(const placed_shape *a, const placed_shape *b, double margin, contact_point *out);

/* The contact of one point of a cloud or one part of a height field, at any distance. `feature`
 * comes from shapes_collide for these shapes, perhaps at other poses. At least one shape is a cloud
 * or a height field. */
void feature_contact(const placed_shape *a, const placed_shape *b, contact_feature feature,
                     contact_point *out);

/* Derivative of a contact returned by shapes_collide for the same a and b. Where it does not exist
 * (parallel faces, equal centres), the documented choice of the pair function; never NaN. */
void shapes_collide_derivative(const placed_shape *a, const placed_shape *b,
                               const contact_point *contact, contact_point_derivative *out);

/* The same with respect to the sizes of the shapes, (3) of A then (3) of B, at fixed poses. Exact
 * within a feature. A mesh has no size; the size of a cloud is the radius of its points. */
void shapes_size_derivative(const placed_shape *a, const placed_shape *b,
                            const contact_point *contact, contact_point_derivative *out);

#endif
