/* Queries of a convex mesh. A linear function has one local maximum on a convex polyhedron: walking
 * to better neighbours leads to the support vertex. The start depends on the direction only, never
 * on earlier queries, so that equal queries have equal answers. */
#include "geometry/meshes/mesh.h"
#include "base/rounding.h"

#include <math.h>

#include "base/vec3.h"

/* Meshes with up to this many vertices are scanned completely. */
enum { SCAN_MOST = 12 };

static int coordinate_cell(double x, double largest, int cells) {
  const int cell = (int)(0.5 * (x / largest + 1.0) * cells);
  return cell < 0 ? 0 : cell >= cells ? cells - 1 : cell;
}

/* The cell of the cube of directions through which a direction leaves; cells > 0. */
static int direction_cell(const double d[3], int cells) {
  int axis = 0;
  for (int i = 1; i < 3; ++i) {
    axis = fabs(d[i]) > fabs(d[axis]) ? i : axis;
  }
  const double largest = fabs(d[axis]);
  if (!(largest > 0.0)) {
    return 0;
  }
  const int u = coordinate_cell(d[(axis + 1) % 3], largest, cells);
  const int v = coordinate_cell(d[(axis + 2) % 3], largest, cells);
  return ((2 * axis + (d[axis] > 0.0)) * cells + u) * cells + v;
}

static int scan_support(const convex_mesh *mesh, const double direction[3]) {
  int best = 0;
  double height = vec3_dot(direction, mesh->vertex);
  for (int i = 1; i < mesh->vertex_count; ++i) {
    const double other = vec3_dot(direction, mesh->vertex + 3 * i);
    if (other > height) {
      height = other;
      best = i;
    }
  }
  return best;
}

int mesh_support(const convex_mesh *mesh, const double direction[3]) {
  if (mesh->vertex_count <= SCAN_MOST) {
    return scan_support(mesh, direction);
  }
  int best = mesh->cells > 0 ? mesh->cell_vertex[direction_cell(direction, mesh->cells)] : 0,
      last = -1;
  double height = vec3_dot(direction, mesh->vertex + 3 * best);
  while (best != last) {
    last = best;
    for (int k = mesh->neighbor_start[last]; k < mesh->neighbor_start[last + 1]; ++k) {
      const int i = mesh->neighbor[k];
      const double other = vec3_dot(direction, mesh->vertex + 3 * i);
      if (other > height) {
        height = other;
        best = i;
      }
    }
  }
  return best;
}

/* Maximises n.x / offset, which is linear on the dual polyhedron with vertices n / offset. */
int mesh_polygon_behind(const convex_mesh *mesh, const double x[3]) {
  int best = mesh->cells > 0 ? mesh->cell_polygon[direction_cell(x, mesh->cells)] : 0, last = -1;
  double height = vec3_dot(mesh->normal + 3 * best, x) / mesh->offset[best];
  while (best != last) {
    last = best;
    for (int k = mesh->side_start[last]; k < mesh->side_start[last + 1]; ++k) {
      const int *pair = mesh->edge_polygon + 2 * mesh->side_edge[k];
      const int i = pair[0] == last ? pair[1] : pair[0];
      const double other = vec3_dot(mesh->normal + 3 * i, x) / mesh->offset[i];
      if (other > height) {
        height = other;
        best = i;
      }
    }
  }
  return best;
}

/* 1 if a vertex lies in the polygon's plane, within the accuracy of the planes. */
static int lies_in(const convex_mesh *mesh, int vertex, int polygon) {
  const double height = vec3_dot(mesh->normal + 3 * polygon, mesh->vertex + 3 * vertex);
  return mesh->offset[polygon] - height <= 2.0 * mesh->roughness + mesh->slack[polygon];
}

/* Hulls in files have slivers along their edges. A vertex that rounding lifts out of a large face
 * may touch only slivers: so the search continues over edges to all polygons whose planes contain
 * the vertex. */
int mesh_polygon_towards(const convex_mesh *mesh, int vertex, const double direction[3]) {
  int best = mesh->some_polygon[vertex], moved = 1;
  double cosine = vec3_dot(mesh->normal + 3 * best, direction);
  for (int k = mesh->fan_start[vertex]; k < mesh->fan_start[vertex + 1]; ++k) {
    for (int side = 0; side < 2; ++side) {
      const int i = mesh->edge_polygon[2 * mesh->fan[k] + side];
      const double other = vec3_dot(mesh->normal + 3 * i, direction);
      if (other > cosine + CALLERS_ROUNDING || (i < best && other > cosine - CALLERS_ROUNDING)) {
        cosine = other;
        best = i;
      }
    }
  }
  while (moved) {
    const int last = best;
    moved = 0;
    for (int k = mesh->side_start[last]; k < mesh->side_start[last + 1]; ++k) {
      const int *pair = mesh->edge_polygon + 2 * mesh->side_edge[k];
      const int i = pair[0] == last ? pair[1] : pair[0];
      const double other = vec3_dot(mesh->normal + 3 * i, direction);
      if (other > cosine + CALLERS_ROUNDING && lies_in(mesh, vertex, i)) {
        cosine = other;
        best = i;
        moved = 1;
      }
    }
  }
  return best;
}

int mesh_polygon_nearest(const convex_mesh *mesh, const double x[3], double *excess) {
  int best = 0;
  double height = -INFINITY;
  for (int i = 0; i < mesh->polygon_count; ++i) {
    const double other = vec3_dot(mesh->normal + 3 * i, x) - mesh->offset[i] - mesh->slack[i];
    if (other > height) {
      height = other;
      best = i;
    }
  }
  *excess = height + mesh->slack[best];
  return best;
}
