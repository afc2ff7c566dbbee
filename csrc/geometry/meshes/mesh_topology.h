/* Which triangle of a mesh lies next to which, and the borders of sets of triangles. Used while a
 * mesh is built. Floor: geometry. */
#ifndef QD_GEOMETRY_MESH_TOPOLOGY_H
#define QD_GEOMETRY_MESH_TOPOLOGY_H

#include "qdsim.h"

/* Half-edge h runs along side h % 3 of face h / 3, from its corner h % 3 to the next one. */
typedef struct mesh_topology {
  int vertex_count, face_count;
  double *vertex; /* (vertex_count, 3) those that faces name, in their order */
  int *face;      /* (face_count, 3) */
  int *out_start; /* (vertex_count + 1) */
  int *out;       /* (3 face_count) half-edges by the vertex they leave, by the one they reach */
  int *twin;      /* (3 face_count) the half-edge that runs the other way */
  int region_count;
  int *region; /* (face_count) the set that each face is in */
} mesh_topology;

static inline int half_edge_from(const mesh_topology *t, int h) { return t->face[h]; }
static inline int half_edge_next(int h) { return h % 3 == 2 ? h - 2 : h + 1; }
static inline int half_edge_to(const mesh_topology *t, int h) { return t->face[half_edge_next(h)]; }

/* Copies and checks: a closed surface without handles, in one piece. To be freed in any case. */
qd_status mesh_topology_create(mesh_topology *t, const double *vertex, int vertex_count,
                               const int32_t *face, int face_count, const char **reason, int *at);
void mesh_topology_free(mesh_topology *t);

/* The half-edge before this one on the border of its region. */
int region_border_before(const mesh_topology *t, int h);

/* Sides of the regions: runs of border along one neighbour. (*start) (region_count + 1, allocated),
 * first (3 face_count): the half-edge that each side begins with. Regions that are no polygons of
 * three sides or more, each along another neighbour, fall apart into their faces; region and
 * region_count change. QD_BAD_ARGUMENT where even that does not help. */
qd_status mesh_topology_sides(mesh_topology *t, int **start, int *first, int *side_count);

#endif
