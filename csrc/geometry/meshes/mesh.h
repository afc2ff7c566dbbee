/* Convex meshes: immutable data, shared by all geometries with the same mesh. */
#ifndef QD_GEOMETRY_MESH_H
#define QD_GEOMETRY_MESH_H

#include "qdsim.h"

enum {
  MESH_SIDES_MAX = 32,  /* limit on the sides of a polygon that clips others */
  MESH_OUTLINE_MAX = 8, /* limit on the corners of a polygon that is clipped */
  MESH_BRACES_MAX = 8,  /* limit on the vertices around a polygon that keep the mesh from rocking */
  MESH_CELLS_MAX = 16   /* limit on the start cells along a side of the cube of directions */
};

/* A polyhedron in the frame of the geometry, moved to the centroid. Triangles in one plane (to
 * SLIGHT of the radius, mesh_build.c) form one polygon. An edge lies where two polygons meet and is
 * straight from corner to corner. Corners run counterclockwise seen from outside. */
typedef struct convex_mesh {
  double center[3]; /* origin of the frame in the given frame: the centroid */
  double radius;    /* of the sphere about the centroid that contains all vertices */
  double lower[3];  /* bounding box of all vertices */
  double upper[3];  /* the same */
  double roughness; /* largest distance of a vertex behind the plane of its polygon */
  int vertex_count, edge_count, polygon_count;
  double *vertex;      /* (vertex_count, 3) */
  int *neighbor_start; /* (vertex_count + 1) */
  int *neighbor;       /* vertices that a triangle's edge joins to each vertex, ascending */
  int *fan_start;      /* (vertex_count + 1) */
  int *fan;            /* edges that end at each vertex; none inside a polygon or an edge */
  int *some_polygon;   /* (vertex_count) a polygon that contains the vertex */
  int *edge_vertex;    /* (edge_count, 2) */
  int *edge_polygon;   /* (edge_count, 2) the polygon whose border runs from the first to the second
                          vertex, and the other one */
  double *edge_axis;   /* (edge_count, 3) unit, from first to second vertex */
  double *edge_length; /* (edge_count) */
  double *normal;      /* (polygon_count, 3) unit, outward */
  double *offset;      /* (polygon_count) > 0; normal.x <= offset for the polygon's corners */
  double *slack;    /* (polygon_count) height of the highest vertex of the mesh above the plane */
  double *extent;   /* (polygon_count) radius of the circle about the mean of its corners */
  int *side_start;  /* (polygon_count + 1) */
  int *side_vertex; /* first vertex of each side, in order */
  int *side_edge;   /* edge of each side */
  double *side_normal; /* of each side, (3): unit, in the plane of the polygon, outward */
  double *side_level;  /* of each side: normal.x on it */
  int *clip_start;     /* (polygon_count + 1) start in `clip` */
  int *clip;           /* up to MESH_SIDES_MAX corners of each polygon */
  int *outline_start;  /* (polygon_count + 1) start in `outline` */
  int *outline;        /* up to MESH_OUTLINE_MAX corners of each polygon */
  int *brace_count;    /* (polygon_count) */
  int *brace; /* (polygon_count, MESH_BRACES_MAX) for bumpy faces: the outermost vertices of the
                 surrounding polygons with almost the same normal, on which the mesh can stand */
  int cells;  /* start cells along a side of the cube of directions; 0: none */
  int *cell_vertex;  /* (6, cells, cells) vertex at which mesh_support starts */
  int *cell_polygon; /* (6, cells, cells) polygon at which mesh_polygon_behind starts */
} convex_mesh;

/* Copies the hull and computes all other fields. faces: triangles, counterclockwise seen from
 * outside. Vertices without a face are left out. On failure *reason says why and *face_index where
 * (-1: no single face). */
qd_status convex_mesh_create(convex_mesh **out, const double *vertex, int vertex_count,
                             const int32_t *face, int face_count, const char **reason,
                             int *face_index);
void convex_mesh_destroy(convex_mesh *mesh);

/* Support vertex along a direction (nonzero, any length). Among equals it is arbitrary, but always
 * the same for the same direction. */
int mesh_support(const convex_mesh *mesh, const double direction[3]);
/* The polygon through which the ray from the centre through x leaves the mesh. */
int mesh_polygon_behind(const convex_mesh *mesh, const double x[3]);
/* Of the polygons at a vertex, the one whose normal is closest to direction (unit); the first of
 * equals. */
int mesh_polygon_towards(const convex_mesh *mesh, int vertex, const double direction[3]);
/* The polygon with the largest normal.x - offset - slack, which is the nearest one if x is inside.
 * *excess: normal.x - offset of this polygon. */
int mesh_polygon_nearest(const convex_mesh *mesh, const double x[3], double *excess);

#endif
