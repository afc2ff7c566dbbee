/* How a polygon of a patch changes as the bodies that it lies between move. */
#ifndef QD_GEOMETRY_FIELDS_POLYGON_CHANGE_H
#define QD_GEOMETRY_FIELDS_POLYGON_CHANGE_H

#include "geometry/pressure_fields/field.h"

/* A side of a patch: its field, whose frame is there in the frame of the patch. */
typedef struct field_side {
  const qd_field *field;
  double rot[9], pos[3];
} field_side;

/* Centre of pressure (3), normal (3), force ... */
#define POLYGON_NUMBERS 7
/* ... by a turning of the first body against the second about a point (3), by a motion of that
 * point (3), and by the logarithm of the first one's modulus and the second one's. */
#define POLYGON_BY 8

/* by: (POLYGON_NUMBERS, POLYGON_BY), in axes that move with the second body. The polygon has its
 * corners from vertex on (3 each). Returns 0 where there is no derivative: an edge lies on faces of
 * both bodies, or on one that the polygon lies in. */
int field_polygon_change(double by[POLYGON_NUMBERS * POLYGON_BY], const qd_patch_polygon *polygon,
                         const double *vertex, const field_side side[2], const double about[3]);

#endif
