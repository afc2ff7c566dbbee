/* Bodies with a pressure field, and rigid surfaces that press into them. */
#ifndef QD_GEOMETRY_FIELDS_FIELD_H
#define QD_GEOMETRY_FIELDS_FIELD_H

#include "geometry/pressure_fields/cell.h"

#include "base/lanes.h"
#include "qdsim.h"

/* A triangle of a rigid surface, with its outward normal. */
typedef struct field_triangle {
  double corner[3][3], normal[3];
} field_triangle;

/* A box and the range of pressures in it. */
typedef struct field_box {
  double centre[3], half[3];
  double least, most; /* Pa */
} field_box;

/* A part of an element, for the search only. Elongated tetrahedra are cut into layers of pressure:
 * most tetrahedra of a ball reach from the surface to the centre, where all boxes would overlap.
 * The part covers the pressures from <= p < until; the first and the last part are unbounded. */
typedef struct field_part {
  field_box box;
  double from, until;
  int element;
} field_part;

/* Four boxes in lanes, each around some parts. */
typedef struct field_node {
  lanes_anywhere centre[3], half[3]; /* half is -infinity in an empty lane */
  lanes_anywhere least, most;
  int below[LANE_COUNT]; /* index of a child node, or ~ index of a single part */
} field_node;
/* Puts a box into the first lane and empties the others. */
void field_node_fill(field_node *node, const field_box *box);

struct qd_field {
  qd_field_kind kind;
  int element_count, part_count, node_count;
  field_cell *cell;         /* of soft bodies (element_count; 1 of a half space) */
  field_triangle *triangle; /* of rigid surfaces (element_count) */
  field_part *part;         /* (part_count), grouped by element */
  field_box whole;          /* around all parts */
  double radius;            /* of a ball about its centre, m */
  double reach;             /* largest |coordinate| of a corner, m; 0 of a half space */
  field_node *node; /* (node_count) at most part_count, the root first; none for a half space */
};

static inline int field_is_soft(const qd_field *field) {
  return field->kind == QD_FIELD_SOFT || field->kind == QD_FIELD_SOFT_SPACE;
}

static inline int field_is_space(const qd_field *field) {
  return field->kind == QD_FIELD_SOFT_SPACE || field->kind == QD_FIELD_RIGID_SPACE;
}

/* Number of corners of an element of such a field. */
static inline int field_corners(qd_field_kind kind) { return kind == QD_FIELD_SOFT ? 4 : 3; }

/* Number of parts into which an element is cut, at most FIELD_PARTS. */
#define FIELD_PARTS 12
int field_part_number(const qd_field *field, int element);
/* Fills parts and nodes of a field whose elements are set; order (part_count) is scratch. */
void field_tree_build(qd_field *field, int *order);

/* A field with its pose in the world. */
typedef struct field_placed {
  const qd_field *field;
  double scale; /* factor on the given pressures; 1 for a rigid surface */
  double rot[9], pos[3];
} field_placed;

/* Two bodies in the order that the search needs: a rigid surface comes first, a half space
 * second. */
typedef struct field_pair {
  const qd_field *first, *second;
  double R[9], t[3]; /* from the frame of the first to that of the second */
  double scale[2];
  int is_exchanged; /* 1: `first` is the caller's b */
} field_pair;

/* QD_BAD_ARGUMENT for pairs that are not supported. */
qd_status field_pair_init(field_pair *pair, const field_placed *a, const field_placed *b);

/* An element of the first body in the frame of the second: a tetrahedron with its pressure, or a
 * triangle with its normal. */
typedef struct field_moved {
  double corner[4][3];
  double gradient[3], offset; /* scaled */
  double normal[3];
} field_moved;

/* Called with an element of the first body and a part of the second that may overlap and, if
 * balanced, have equal pressures. All calls for one element are consecutive. */
typedef void (*field_visit)(void *context, int first, const field_moved *moved,
                            const field_part *second);
void field_pairs_visit(const field_pair *pair, int balanced, field_visit visit, void *context);
/* As above for the prism that a triangle of the first body sweeps along an axis of the second
 * body's frame, without end, and the parts of the second body that it may meet. */
void field_sweeps_visit(const field_pair *pair, const double way[3], field_visit visit,
                        void *context);
/* The four planes that bound the swept prism. Returns 1 if the triangle's normal points along the
 * axis, -1 if against it, 0 if neither. */
int field_sweep_planes(field_plane plane[4], const field_moved *moved, const double way[3]);

/* Room for a patch's polygons, and for their corners. */
typedef struct patch_room {
  qd_patch_polygon *polygon;
  double *vertex; /* (vertices, 3) */
  int polygons, vertices;
} patch_room;

/* Number of polygons or vertices of a patch for which there was room. */
static inline int polygons_kept(const qd_patch *patch, const patch_room *room) {
  return patch->polygon_count < room->polygons ? patch->polygon_count : room->polygons;
}

static inline int vertices_kept(const qd_patch *patch, const patch_room *room) {
  return patch->vertex_count <= room->vertices ? patch->vertex_count : 0;
}

qd_status field_patch_placed(const field_placed *a, const field_placed *b,
                             const qd_patch_options *options, qd_patch *patch,
                             const patch_room *room);
/* Transforms a patch to other axes: R x + t. */
void field_patch_turn(qd_patch *patch, const patch_room *room, const double R[9],
                      const double t[3]);
/* Exchanges the two sides of a patch. */
void field_patch_exchange(qd_patch *patch, const patch_room *room);

/* Smallest depth over which the pressure rises from zero to its largest value, or to 1 Pa (half
 * spaces), m; infinite for rigid bodies. */
double field_depth(const qd_field *field);

qd_status field_energy_placed(const field_placed *a, const field_placed *b, double *energy);

#endif
