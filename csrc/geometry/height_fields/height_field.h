/* Height fields: the solid between a bottom plane and a triangulated surface over a grid.
 * Immutable, shared by all geometries with the same field.
 *
 * Grid points stand at x = -half[0] + column step[0], y = -half[1] + row step[1]. Each cell has two
 * triangles, on either side of the diagonal from (column, row) to (column + 1, row + 1), as in
 * MuJoCo. The sides of the solid are vertical; its bottom is the plane z = bottom. */
#ifndef QD_GEOMETRY_HEIGHT_FIELD_H
#define QD_GEOMETRY_HEIGHT_FIELD_H

#include "geometry/collide.h"
#include "qdsim.h"

struct height_field {
  int row_count, column_count; /* at least 2 */
  double half[2];
  double step[2], diagonal; /* of a cell, m */
  double bottom, highest;   /* z, m */
  double steepest;          /* largest slope of a face */
  double *height;           /* (row_count, column_count) z */
};

/* Copies the heights. NULL if memory is exhausted. */
height_field *height_field_create(const double *height, int row_count, int column_count,
                                  const double half[2], double bottom);
void height_field_destroy(height_field *field);

/* Index of the cell along an axis (0: column, 1: row) that contains a coordinate, or of the nearest
 * one. */
int height_field_cell(const height_field *field, int axis, double x);
/* z of the surface at a point of the footprint. */
double height_field_height(const height_field *field, double x, double y);

/* ---------------------------------------------------------------- parts */

/* Parts that other shapes can touch: planes of faces, edges and vertices. The code of a part is
 * kind + PART_KINDS index. For grid parts, index is that of a grid point, row column_count +
 * column, at which the cell or the edge begins. For sides it is 0 -x, 1 +x, 2 -y, 3 +y, 4 bottom.
 * For the frame it is 0 to 3 for vertical edges at the corners, 4 to 7 for edges of the bottom, and
 * 8 to 11 for corners of the bottom. */
typedef enum part_kind {
  PART_LEFT_FACE,  /* the cell's triangle at +y of its diagonal */
  PART_RIGHT_FACE, /* the cell's triangle at -y of its diagonal */
  PART_EDGE_X,     /* to the next column */
  PART_EDGE_Y,     /* to the next row */
  PART_EDGE_XY,    /* to both: along the diagonal */
  PART_VERTEX,     /* the grid point itself */
  PART_SIDE,       /* a plane */
  PART_FRAME,      /* an edge or a vertex of the frame */
  PART_KINDS
} part_kind;

static inline int hfield_part_code(part_kind kind, int index) {
  return (int)kind + PART_KINDS * index;
}

/* A face; (column, row) is the grid point at which its cell begins. */
typedef struct hfield_face {
  int column, row;
  part_kind kind;
} hfield_face;

/* dz/dx and dz/dy of a face; the second function returns z of its plane at (x, y). */
void hfield_face_slopes(double slope[2], const height_field *field, int column, int row,
                        part_kind face);
double hfield_plane_height(const height_field *field, int column, int row, const double slope[2],
                           double x, double y);

/* The faces that meet at an existing edge; the one at greater y (of PART_EDGE_Y: at greater x)
 * comes first. Returns their number, which is 1 at the rim. */
int hfield_edge_faces(hfield_face faces[2], const height_field *field, int column, int row,
                      part_kind edge);

enum { PART_DIRECTIONS_MAX = 7 };

/* A part as a convex shape: a plane, a capsule of radius zero or a sphere of radius zero. */
typedef struct hfield_part {
  placed_shape shape;
  double size[3];
  double from[3], to[3]; /* edge: its ends; otherwise `from` is a point of the part */
  int is_edge;
  /* Directions from the part into the solid. A vector is a normal of the solid at the part if it
   * has no positive component along any of them; for an edge or a vertex these are the vectors
   * between the normals of its faces. */
  int direction_count;
  double direction[PART_DIRECTIONS_MAX][3];
} hfield_part;

/* Places the part in the frame of the field. out->shape.size points into out. Directions are filled
 * for edges and vertices only. */
void hfield_part_place(hfield_part *out, const height_field *field, int part);

/* 0 if the surface is flat or concave along the edge or at the point: then whatever touches it
 * there also touches its faces. Also 0 if there is no such edge. */
int hfield_part_stands_out(const height_field *field, int part);

/* A feature of contacts with a part, for feature_contact, which returns the complete feature with
 * the contact. */
contact_feature height_field_feature(int part);

/* The face through which the straight segment between two points enters the solid from above, or
 * -1. */
int height_field_entered(const height_field *field, const double from[3], const double to[3]);
/* Largest height of that segment above the surface; -infinity if it is never over the footprint. */
double height_field_emerged(const height_field *field, const double from[3], const double to[3]);

#endif
