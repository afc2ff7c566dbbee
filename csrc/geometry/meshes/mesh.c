/* Questions to a convex mesh. A linear function has one hill on a convex polyhedron: from vertex to
 * better neighbour leads to the top. The start is looked up by direction, never remembered, so that
 * equal questions have equal answers. */
#include "geometry/meshes/mesh.h"
#include "base/rounding.h"

#include <math.h>

#include "base/vec3.h"

/* Up to here all vertices are looked at. */
enum { SCAN_MOST = 12 };

static int coordinate_cell(double x, double largest, int cells) {
  const int cell = (int)(0.5 * (x / largest + 1.0) * cells);
  return cell < 0 ? 0 : cell >= cells ? cells - 1 : cell;
}

/* The cell of the cube that a direction leaves by; cells > 0. */
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

/* n.x / offset is linear on the dual polyhedron, whose vertices are n / offset. */
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

/* Whether a vertex lies in the polygon's plane, as far as the hull's planes are known. */
static int lies_in(const convex_mesh *mesh, int vertex, int polygon) {
  const double height = vec3_dot(mesh->normal + 3 * polygon, mesh->vertex + 3 * vertex);
  return mesh->offset[polygon] - height <= 2.0 * mesh->roughness + mesh->slack[polygon];
}

/* Hulls of files have slivers along their edges, and a vertex that stands out of a large face by
 * rounding may have nothing but slivers about it: from there on, over edges, to the polygons whose
 * planes hold the vertex, too. */
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
