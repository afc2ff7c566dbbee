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
  double steepness;           /* |gradient| */
  double least, most;         /* pressure in it, Pa */
  double corner[4][3];
  field_plane plane[4];          /* faces, outwards; those where the pressure is zero come last */
  int plane_count, inner_planes; /* the first inner_planes are not where the pressure is zero */
  int across[4];                 /* corner across from each face */
  int element;                   /* which tetrahedron it is, as they are given */
} field_cell;

/* A tetrahedron cut by a plane has up to 4 corners, each further plane adds one. */
#define POLYGON_MOST 9

typedef struct field_polygon {
  int count;
  double corner[POLYGON_MOST][3];
} field_polygon;

/* The part in a tetrahedron of a plane from which its corners have such heights; count 0 if there
 * is none. Corners run anticlockwise about the way up. A plane in which a face lies belongs to the
 * cell above it: corners at height 0 count as below. */
void polygon_slice(field_polygon *out, const double corner[4][3], const double height[4]);

/* Cuts off what is outside of a plane. */
void polygon_clip(field_polygon *polygon, const field_plane *plane);

/* Integrals over a polygon. */
typedef struct polygon_moments {
  double area;
  double first[3];  /* of x */
  double second[6]; /* of x x': xx, xy, xz, yy, yz, zz */
} polygon_moments;

/* About the first corner; normal: unit, of the polygon. */
void polygon_integrate(polygon_moments *out, const field_polygon *polygon, const double normal[3]);
/* From moments about a point to those about the origin. */
void polygon_moments_shift(polygon_moments *moments, const double from[3]);

#endif
