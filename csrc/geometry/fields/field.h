/* Bodies with a pressure field, or rigid surfaces that press into one. */
#ifndef QD_GEOMETRY_FIELDS_FIELD_H
#define QD_GEOMETRY_FIELDS_FIELD_H

#include "geometry/fields/cell.h"

#include "qdsim.h"

/* A triangle of a rigid surface, with its outside. */
typedef struct field_triangle {
  double corner[3][3], normal[3];
} field_triangle;

/* A box, and the pressures in it. */
typedef struct field_box {
  double low[3], high[3];
  double least, most; /* Pa */
} field_box;

/* A tetrahedron that is longer than wide is cut along its pressure, as seen from the search alone:
 * most of the balls' tetrahedra reach from the surface to the centre, where all boxes meet. */
typedef struct field_part {
  field_box box;
  int element;
  int first; /* part of the same element */
} field_part;

/* A box around some parts; its children lie behind it, or it has one part. */
typedef struct field_node {
  field_box box;
  int second; /* index of the second child, the first one is next to it; -1: a leaf */
  int part;   /* of a leaf */
} field_node;

struct qd_field {
  qd_field_kind kind;
  int element_count, part_count, node_count;
  field_cell *cell;         /* of soft bodies (element_count; 1 of a half space) */
  field_triangle *triangle; /* of rigid surfaces (element_count) */
  field_part *part;         /* (part_count) */
  field_node *node;         /* (2 part_count - 1), the root first; none of a half space */
};

/* Into how many parts an element is cut, at most FIELD_PARTS. */
#define FIELD_PARTS 12
int field_part_number(const qd_field *field, int element);
/* Fills parts and nodes of a field whose elements are there; order (part_count) is scratch. */
void field_tree_build(qd_field *field, int *order);

#endif
