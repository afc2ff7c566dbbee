/* Convex meshes: what never changes about one, shared by every geometry that shows it. Floor:
 * geometry. */
#ifndef QD_GEOMETRY_MESH_H
#define QD_GEOMETRY_MESH_H

#include "qdsim.h"

enum {
  MESH_SIDES_MAX = 32,  /* sides of a polygon that clips others */
  MESH_OUTLINE_MAX = 8, /* corners of a polygon that is clipped */
  MESH_BRACES_MAX = 8,  /* vertices about a polygon that keep it from rocking */
  MESH_CELLS_MAX = 16   /* start cells along a side of the cube of directions */
};

/* A polyhedron. The frame is the geometry's, moved to the centroid. Triangles that lie in one plane
 * (to SLIGHT of the radius, mesh_build.c) are one polygon; edges are where two polygons meet,
 * straight from corner to corner. Polygons are counterclockwise seen from outside. */
typedef struct convex_mesh {
  double center[3]; /* of the frame, in the given frame: the centroid */
  double radius;    /* of the sphere about the centroid that holds all vertices */
  double lower[3];  /* of the box that holds all vertices */
  double upper[3];  /*   "  */
  double roughness; /* vertices lie this far behind the planes of their polygons, or nearer */
  int vertex_count, edge_count, polygon_count;
  double *vertex;      /* (vertex_count, 3) */
  int *neighbor_start; /* (vertex_count + 1) */
  int *neighbor;       /* vertices joined to each by an edge of the triangles, ascending */
  int *fan_start;      /* (vertex_count + 1) */
  int *fan;            /* edges that end at each vertex: none inside of polygons and of edges */
  int *some_polygon;   /* (vertex_count) one that the vertex lies in */
  int *edge_vertex;    /* (edge_count, 2) */
  int *edge_polygon;   /* (edge_count, 2) the one in which the edge runs first to second vertex,
                          and the other one */
  double *edge_axis;   /* (edge_count, 3) unit, first to second vertex */
  double *edge_length; /* (edge_count) */
  double *normal;      /* (polygon_count, 3) unit, outward */
  double *offset;      /* (polygon_count) > 0; normal.x <= offset for the polygon's corners */
  double *slack;       /* (polygon_count) how far the farthest vertex stands out of the plane */
  double *extent;      /* (polygon_count) of the circle about the middle of its corners */
  int *side_start;     /* (polygon_count + 1) */
  int *side_vertex;    /* first vertex of each side, in order */
  int *side_edge;      /* edge of each side */
  double *side_normal; /* of each side, (3): unit, in the polygon's plane, out of the polygon */
  double *side_level;  /* normal.x along it */
  int *clip_start;     /* (polygon_count + 1) at most MESH_SIDES_MAX of a polygon's corners */
  int *clip;           /*   " vertices */
  int *outline_start;  /* (polygon_count + 1) at most MESH_OUTLINE_MAX of a polygon's corners */
  int *outline;        /*   " vertices */
  int *brace_count;    /* (polygon_count) */
  int *brace;          /* (polygon_count, MESH_BRACES_MAX) the outermost vertices of the polygons
                          about each that face almost the same way: bumpy faces stand on them */
  int cells;           /* start cells along a side of the cube of directions, 0: none */
  int *cell_vertex;    /* (6, cells, cells) a vertex to start from */
  int *cell_polygon;   /* (6, cells, cells) a polygon to start from */
} convex_mesh;

/* A copy of the hull with everything else computed. faces: triangles, counterclockwise seen from
 * outside. Vertices that no face names are left out. On failure *reason says why, *face_index where
 * (-1: nowhere in particular). */
qd_status convex_mesh_create(convex_mesh **out, const double *vertex, int vertex_count,
                             const int32_t *face, int face_count, const char **reason,
                             int *face_index);
void convex_mesh_destroy(convex_mesh *mesh);

/* The vertex farthest along a direction (not zero, any length), of equals any; the same for the
 * same direction. */
int mesh_support(const convex_mesh *mesh, const double direction[3]);
/* The polygon that the ray from the centre through x leaves by. */
int mesh_polygon_behind(const convex_mesh *mesh, const double x[3]);
/* The polygon at a vertex whose normal is closest to direction (unit), the first of equals. */
int mesh_polygon_towards(const convex_mesh *mesh, int vertex, const double direction[3]);
/* The polygon of largest normal.x - offset - slack: the nearest one for points inside; excess is
 * without the slack. */
int mesh_polygon_nearest(const convex_mesh *mesh, const double x[3], double *excess);

#endif
