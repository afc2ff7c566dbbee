/* Cells of bodies with a pressure field, and the polygons in which they intersect.
 *
 * A field is linear in each of its cells: p(x) = gradient . x + offset. The contact surface is
 * where the two fields are equal (Elandt et al. 2019): one polygon for each pair of cells. */
#ifndef QD_GEOMETRY_FIELDS_CELL_H
#define QD_GEOMETRY_FIELDS_CELL_H

/* A plane; normal . x > offset is outside. */
typedef struct field_plane {
  double normal[3], offset;
} field_plane;

/* A tetrahedron of a field, or a half space with one plane and no corners. */
typedef struct field_cell {
  double gradient[3], offset; /* of the pressure, Pa/m and Pa */
  double steepness;           /* |gradient| */
  double least, most;         /* smallest and largest pressure in it, Pa */
  double corner[4][3];
  field_plane plane[4];          /* faces with outward normals; those of zero pressure come last */
  int plane_count, inner_planes; /* the first inner_planes faces do not have zero pressure */
  int across[4];                 /* the corner opposite each face */
  int element;                   /* index of the given tetrahedron */
} field_cell;

/* A plane cuts a tetrahedron in a polygon of up to 4 corners; each further plane adds one. */
#define POLYGON_MOST 9

typedef struct field_polygon {
  int count;
  double corner[POLYGON_MOST][3];
} field_polygon;

/* The intersection of a plane with a tetrahedron whose corners have these heights above the plane;
 * count 0 if it is empty. Corners run anticlockwise about the upward normal. A plane that contains
 * a face belongs to the cell above it: corners at height 0 count as below. */
void polygon_slice(field_polygon *out, const double corner[4][3], const double height[4]);

/* Removes the part outside of a plane. */
void polygon_clip(field_polygon *polygon, const field_plane *plane);

/* Integrals over a polygon. */
typedef struct polygon_moments {
  double area;
  double first[3];  /* of x */
  double second[6]; /* of x x': xx, xy, xz, yy, yz, zz */
} polygon_moments;

/* About the first corner; normal: unit normal of the polygon. */
void polygon_integrate(polygon_moments *out, const field_polygon *polygon, const double normal[3]);
/* Shifts moments about the point `from` to the origin. */
void polygon_moments_shift(polygon_moments *moments, const double from[3]);

#endif
