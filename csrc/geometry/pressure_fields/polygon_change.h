/* Derivatives of a patch's polygon with respect to the motion of the two bodies. */
#ifndef QD_GEOMETRY_FIELDS_POLYGON_CHANGE_H
#define QD_GEOMETRY_FIELDS_POLYGON_CHANGE_H

#include "geometry/pressure_fields/field.h"

/* A side of a patch: its field and the pose of the field's frame in the frame of the patch. */
typedef struct field_side {
  const qd_field *field;
  double rot[9], pos[3];
} field_side;

/* Rows of the derivative: centre of pressure (3), normal (3), force. */
#define POLYGON_NUMBERS 7
/* Columns of the derivative: rotation of the first body relative to the second about a point (3),
 * translation of that point (3), logarithms of the first and of the second modulus. */
#define POLYGON_BY 8

/* by: (POLYGON_NUMBERS, POLYGON_BY), in axes that move with the second body. vertex: the corners of
 * the polygon, (3) each. Returns 0 if the derivative does not exist: an edge lies on faces of both
 * bodies, or on a face in the plane of the polygon. */
int field_polygon_change(double by[POLYGON_NUMBERS * POLYGON_BY], const qd_patch_polygon *polygon,
                         const double *vertex, const field_side side[2], const double about[3]);

#endif
