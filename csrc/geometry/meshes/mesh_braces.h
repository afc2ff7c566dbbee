/* What bumpy faces of meshes stand on. Used while a mesh is built. Floor: geometry. */
#ifndef QD_GEOMETRY_MESH_BRACES_H
#define QD_GEOMETRY_MESH_BRACES_H

#include "geometry/meshes/mesh.h"

/* scratch: (polygon_count + vertex_count). */
void mesh_fill_braces(convex_mesh *m, int *scratch);

#endif
