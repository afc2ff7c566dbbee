/* Finds the vertices on which bumpy faces of a mesh stand, while the mesh is built. */
#ifndef QD_GEOMETRY_MESH_BRACES_H
#define QD_GEOMETRY_MESH_BRACES_H

#include "geometry/meshes/mesh.h"

/* Fills brace_count and brace. scratch: (polygon_count + vertex_count). */
void mesh_fill_braces(convex_mesh *m, int *scratch);

#endif
