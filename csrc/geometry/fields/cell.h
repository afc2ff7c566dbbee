/* Pieces of bodies with a pressure field, and the polygons that they cut out of each other.
 *
 * A field is linear in each of its cells: p(x) = gradient . x + offset. Where two fields balance
 * lies the surface on which they press (Elandt et al. 2019): a polygon for every pair of cells. */
#ifndef QD_GEOMETRY_FIELDS_CELL_H
#define QD_GEOMETRY_FIELDS_CELL_H

/* A plane with its outside: normal . x > offset. */
typedef struct field_plane {
  double normal[3], offset;
} field_plane;

/* A tetrahedron of a field, or a half space: one plane and no corners. */
typedef struct field_cell {
  double gradient[3], offset; /* of the pressure, Pa/m and Pa */
  field_plane plane[4];       /* faces, outwards; those where the pressure is zero come last */
  double corner[4][3];
  double low[3], high[3];        /* the box around it */
  double least, most;            /* pressure in it, Pa */
  int plane_count, inner_planes; /* the first inner_planes are not where the pressure is zero */
} field_cell;

/* A tetrahedron cut by a plane has up to 4 corners, each further plane adds one. */
#define POLYGON_MOST 9

typedef struct field_polygon {
  int count;
  double corner[POLYGON_MOST][3];
} field_polygon;

/* R x + t, all at once. */
void cell_move(field_cell *out, const field_cell *cell, const double R[9], const double t[3]);

/* The part of a plane (normal unit, to the left of whose winding is the outside) in a tetrahedron;
 * count 0 if there is none. A plane in which a face lies belongs to the cell on its inner side. */
void polygon_slice(field_polygon *out, const field_cell *cell, const field_plane *plane);

/* Cuts off what is outside of a plane. */
void polygon_clip(field_polygon *polygon, const field_plane *plane);

/* Integrals over a polygon. */
typedef struct polygon_moments {
  double area;
  double first[3];  /* of x */
  double second[9]; /* of x x' */
} polygon_moments;

/* normal: unit, of the polygon. */
void polygon_integrate(polygon_moments *out, const field_polygon *polygon, const double normal[3]);

#endif
