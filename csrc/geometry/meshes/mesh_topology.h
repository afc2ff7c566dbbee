/* Adjacency of a mesh's triangles, and borders of sets of triangles. Used while a mesh is built. */
#ifndef QD_GEOMETRY_MESH_TOPOLOGY_H
#define QD_GEOMETRY_MESH_TOPOLOGY_H

#include "qdsim.h"

/* Half-edge h runs along side h % 3 of face h / 3, from its corner h % 3 to the next one. */
typedef struct mesh_topology {
  int vertex_count, face_count;
  double *vertex; /* (vertex_count, 3) only those that a face names, in the given order */
  int *face;      /* (face_count, 3) */
  int *out_start; /* (vertex_count + 1) */
  int *out;       /* (3 face_count) half-edges sorted by start vertex, then by end vertex */
  int *twin;      /* (3 face_count) the opposite half-edge */
  int region_count;
  int *region; /* (face_count) the set that contains each face */
} mesh_topology;

static inline int half_edge_from(const mesh_topology *t, int h) { return t->face[h]; }
static inline int half_edge_next(int h) { return h % 3 == 2 ? h - 2 : h + 1; }
static inline int half_edge_to(const mesh_topology *t, int h) { return t->face[half_edge_next(h)]; }

/* Copies the mesh and checks that it is one closed surface without handles. Free it also after a
 * failure. */
qd_status mesh_topology_create(mesh_topology *t, const double *vertex, int vertex_count,
                               const int32_t *face, int face_count, const char **reason, int *at);
void mesh_topology_free(mesh_topology *t);

/* The half-edge before this one on the border of its region. */
int region_border_before(const mesh_topology *t, int h);

/* Finds the sides of the regions. A side is a maximal run of a region's border along one neighbour.
 * *start (region_count + 1) is allocated; first (3 face_count): the first half-edge of each side. A
 * region that is not a polygon with at least three sides, each along a different neighbour, is
 * split into its faces; this changes region and region_count. QD_BAD_ARGUMENT if even this
 * fails. */
qd_status mesh_topology_sides(mesh_topology *t, int **start, int *first, int *side_count);

#endif
