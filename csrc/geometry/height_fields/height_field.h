/* Height fields: a solid between a bottom and a surface of triangles over a grid. Immutable, shared
 * by every geometry that shows the field. Floor: geometry.
 *
 * Points of the grid stand at x = -half[0] + column step[0], y = -half[1] + row step[1]; two
 * triangles a cell, on either side of the diagonal from (column, row) to (column + 1, row + 1), as
 * in MuJoCo. The solid's sides are vertical, its bottom is the plane z = bottom. */
#ifndef QD_GEOMETRY_HEIGHT_FIELD_H
#define QD_GEOMETRY_HEIGHT_FIELD_H

#include "geometry/collide.h"
#include "qdsim.h"

/* Points of a grid at most: their parts are numbered within a contact's feature. */
enum { HEIGHT_FIELD_POINTS_MAX = 1 << 22 };

struct height_field {
  int row_count, column_count; /* at least 2 */
  double half[2];
  double step[2], diagonal; /* of a cell */
  double bottom, highest;   /* z */
  double steepest;          /* slope of a face */
  double *height;           /* (row_count, column_count) z */
};

/* A copy. NULL if memory is exhausted. */
height_field *height_field_create(const double *height, int row_count, int column_count,
                                  const double half[2], double bottom);
void height_field_destroy(height_field *field);

/* The cell along an axis (0: column, 1: row) that a coordinate is in, or the nearest one. */
int height_field_cell(const height_field *field, int axis, double x);
/* z of the surface over a point of the footprint. */
double height_field_height(const height_field *field, double x, double y);

/* ---------------------------------------------------------------- parts */

/* What other shapes touch: planes of faces, edges and vertices. A part is kind + PART_KINDS index,
 * its index that of a grid point (row column_count + column), from which cells and edges begin, or
 * that of a side (0 -x, 1 +x, 2 -y, 3 +y, 4 bottom) or of the frame (edges: 0 to 3 upright at the
 * corners, 4 to 7 about the bottom; 8 to 11 the bottom's corners). */
typedef enum part_kind {
  PART_LEFT_FACE,  /* the cell's triangle at +y of its diagonal */
  PART_RIGHT_FACE, /* and at -y */
  PART_EDGE_X,     /* to the next column */
  PART_EDGE_Y,     /* to the next row */
  PART_EDGE_XY,    /* to both: the diagonal */
  PART_VERTEX,     /* the point itself */
  PART_SIDE,       /* a plane */
  PART_FRAME,      /* an edge or a vertex */
  PART_KINDS
} part_kind;

static inline int hfield_part_code(part_kind kind, int index) {
  return (int)kind + PART_KINDS * index;
}

/* A face by the point that its cell begins at. */
typedef struct hfield_face {
  int column, row;
  part_kind kind;
} hfield_face;

/* dz/dx and dz/dy of a face, and z of its plane. */
void hfield_face_slopes(double slope[2], const height_field *field, int column, int row,
                        part_kind face);
double hfield_plane_height(const height_field *field, int column, int row, const double slope[2],
                           double x, double y);

/* The faces that meet at an edge that there is: that at its greater y (of PART_EDGE_Y x) first.
 * Returns their number: 1 at the rim. */
int hfield_edge_faces(hfield_face faces[2], const height_field *field, int column, int row,
                      part_kind edge);

enum { PART_DIRECTIONS_MAX = 7 };

/* A part as a convex shape: a plane, a capsule or a sphere of no radius. */
typedef struct hfield_part {
  placed_shape shape;
  double size[3];
  double from[3], to[3]; /* of an edge its ends, else from: a point of the part */
  int is_edge;
  /* Directions from the part into the solid. A normal is one of the solid's at the part if it leads
   * along none of them: of all normals of an edge or a vertex those between its faces. */
  int direction_count;
  double direction[PART_DIRECTIONS_MAX][3];
} hfield_part;

/* In the field's frame. out->shape.size points into out. Directions: of edges and vertices only. */
void hfield_part_place(hfield_part *out, const height_field *field, int part);

/* 0 where the surface lies flat or hollow along an edge or at a point: nothing touches it there
 * that does not touch its faces. A negative step: no such edge. */
int hfield_part_stands_out(const height_field *field, int part);

/* A feature of contacts with a part, for feature_contact (which says the one that there is). */
contact_feature height_field_feature(int part);

/* The face that the straight way from a point to another enters the solid by from above, or -1. */
int height_field_entered(const height_field *field, const double from[3], const double to[3]);
/* How high over the surface that way comes; -infinity where it is never over the footprint. */
double height_field_emerged(const height_field *field, const double from[3], const double to[3]);

#endif
