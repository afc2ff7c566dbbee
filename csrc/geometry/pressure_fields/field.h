/* Bodies with a pressure field, or rigid surfaces that press into one. */
#ifndef QD_GEOMETRY_FIELDS_FIELD_H
#define QD_GEOMETRY_FIELDS_FIELD_H

#include "geometry/pressure_fields/cell.h"

#include "base/lanes.h"
#include "qdsim.h"

/* A triangle of a rigid surface, with its outside. */
typedef struct field_triangle {
  double corner[3][3], normal[3];
} field_triangle;

/* A box, and the pressures in it. */
typedef struct field_box {
  double centre[3], half[3];
  double least, most; /* Pa */
} field_box;

/* A tetrahedron that is longer than wide is cut along its pressure, as seen from the search alone:
 * most of the balls' tetrahedra reach from the surface to the centre, where all boxes meet. What
 * has a pressure from <= p < until belongs to this part; the first and the last have no end. */
typedef struct field_part {
  field_box box;
  double from, until;
  int element;
} field_part;

/* Four boxes side by side, each around some parts. */
typedef struct field_node {
  lanes_anywhere centre[3], half[3]; /* an empty lane: half is -infinity */
  lanes_anywhere least, most;
  int below[LANE_COUNT]; /* index of a node, or ~ that of the only part */
} field_node;
/* A box in the first lane, nothing in the others. */
void field_node_fill(field_node *node, const field_box *box);

struct qd_field {
  qd_field_kind kind;
  int element_count, part_count, node_count;
  field_cell *cell;         /* of soft bodies (element_count; 1 of a half space) */
  field_triangle *triangle; /* of rigid surfaces (element_count) */
  field_part *part;         /* (part_count) */
  field_box whole;          /* around all parts */
  double radius;            /* of a ball about its centre, m */
  double reach;             /* largest coordinate of a corner, m; 0 of a half space */
  field_node *node;         /* (node_count) at most part_count, the root first; none of a half
                               space */
};

static inline int field_is_soft(const qd_field *field) {
  return field->kind == QD_FIELD_SOFT || field->kind == QD_FIELD_SOFT_SPACE;
}

static inline int field_is_space(const qd_field *field) {
  return field->kind == QD_FIELD_SOFT_SPACE || field->kind == QD_FIELD_RIGID_SPACE;
}

/* Vertices of an element of such a field, as they are given. */
static inline int field_corners(qd_field_kind kind) { return kind == QD_FIELD_SOFT ? 4 : 3; }

/* Into how many parts an element is cut, at most FIELD_PARTS. */
#define FIELD_PARTS 12
int field_part_number(const qd_field *field, int element);
/* Fills parts and nodes of a field whose elements are there; order (part_count) is scratch. */
void field_tree_build(qd_field *field, int *order);

/* A body in the world. */
typedef struct field_placed {
  const qd_field *field;
  double scale; /* its pressures are this multiple of what it was made with; of a rigid side 1 */
  double rot[9], pos[3];
} field_placed;

/* Two bodies in the order in which the search takes them: a rigid surface is first, a half space is
 * second. */
typedef struct field_pair {
  const qd_field *first, *second;
  double R[9], t[3]; /* from the frame of the first to that of the second */
  double scale[2];
  int is_exchanged; /* first is the caller's b */
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
void field_cell_move(field_moved *out, const field_pair *pair, const field_cell *cell);
void field_triangle_move(field_moved *out, const field_pair *pair, const field_triangle *t);

/* An element of the first body with a part of the second: they may overlap and, if balanced, have
 * the same pressure. All calls for one element come one after the other. */
typedef void (*field_visit)(void *context, int first, const field_moved *moved,
                            const field_part *second);
void field_pairs_visit(const field_pair *pair, int balanced, field_visit visit, void *context);
/* A triangle of the first body, swept along an axis of the second one's frame without end, with a
 * part of the second that it may sweep through. */
void field_sweeps_visit(const field_pair *pair, const double way[3], field_visit visit,
                        void *context);
/* What a triangle sweeps lies below four planes. 1: the triangle looks ahead, -1: back, 0: neither.
 */
int field_sweep_planes(field_plane plane[4], const field_moved *moved, const double way[3]);

/* Room for a patch's polygons, and for their corners. */
typedef struct patch_room {
  qd_patch_polygon *polygon;
  double *vertex; /* (vertices, 3) */
  int polygons, vertices;
} patch_room;

/* What is kept of a patch that may have more. */
static inline int polygons_kept(const qd_patch *patch, const patch_room *room) {
  return patch->polygon_count < room->polygons ? patch->polygon_count : room->polygons;
}

static inline int vertices_kept(const qd_patch *patch, const patch_room *room) {
  return patch->vertex_count <= room->vertices ? patch->vertex_count : 0;
}

qd_status field_patch_placed(const field_placed *a, const field_placed *b,
                             const qd_patch_options *options, qd_patch *patch,
                             const patch_room *room);
/* To other axes: R x + t. */
void field_patch_turn(qd_patch *patch, const patch_room *room, const double R[9],
                      const double t[3]);
/* The sides, exchanged. */
void field_patch_exchange(qd_patch *patch, const patch_room *room);

/* Least depth over which pressure goes from zero to the largest, or (half spaces) to 1 Pa, m;
 * infinite of rigid ones. */
double field_depth(const qd_field *field);

qd_status field_energy_placed(const field_placed *a, const field_placed *b, double *energy);

#endif
