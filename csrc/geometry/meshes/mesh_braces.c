/* The hull of a scanned flat face consists of many triangles that differ by a few degrees. A body
 * standing on the lowest triangle would rock to the next one and penetrate the ground meanwhile. So
 * each polygon stores the outermost vertices, in eight directions, of the connected polygons that
 * face the same way to about six degrees. */
#include "geometry/meshes/mesh_braces.h"
#include "base/rounding.h"

#include <math.h>

#include "base/vec3.h"

/* Cosine of normals that face the same way, as for opposite faces in closest_and_manifold.c. */
static const double SAME_WAY = 0.995;
enum { POLYGONS_MOST = 128, CORNERS_MOST = 512, DIRECTIONS = MESH_BRACES_MAX };

/* Finds connected polygons that face the same way as the first, nearest first; includes the first.
 * stamp: marks of visited polygons. */
static int gather(const convex_mesh *m, int polygon, int *found, int *stamp) {
  int count = 1;
  found[0] = polygon;
  stamp[polygon] = polygon + 1;
  for (int i = 0; i < count; ++i) {
    for (int k = m->side_start[found[i]]; k < m->side_start[found[i] + 1]; ++k) {
      const int *pair = m->edge_polygon + 2 * m->side_edge[k];
      const int other = pair[0] == found[i] ? pair[1] : pair[0];
      if (stamp[other] != polygon + 1 && count < POLYGONS_MOST &&
          vec3_dot(m->normal + 3 * other, m->normal + 3 * polygon) > SAME_WAY) {
        stamp[other] = polygon + 1;
        found[count++] = other;
      }
    }
  }
  return count;
}

/* The corners of these polygons, each once. stamp: marks of vertices; no old mark equals `mark`. */
static int corners_of(const convex_mesh *m, const int *polygon, int count, int *corner, int *stamp,
                      int mark) {
  int corner_count = 0;
  for (int i = 0; i < count; ++i) {
    for (int k = m->side_start[polygon[i]]; k < m->side_start[polygon[i] + 1]; ++k) {
      const int vertex = m->side_vertex[k];
      if (stamp[vertex] != mark && corner_count < CORNERS_MOST) {
        stamp[vertex] = mark;
        corner[corner_count++] = vertex;
      }
    }
  }
  return corner_count;
}

static int farthest_of(const convex_mesh *m, const int *vertex, int count,
                       const double direction[3]) {
  int best = -1;
  double height = -INFINITY;
  for (int i = 0; i < count; ++i) {
    const double other = vec3_dot(direction, m->vertex + 3 * vertex[i]);
    if (other > height + CALLERS_ROUNDING * m->radius) {
      height = other;
      best = vertex[i];
    }
  }
  return best;
}

static int holds(const int *values, int count, int value) {
  int found = 0;
  for (int i = 0; i < count; ++i) {
    found |= values[i] == value;
  }
  return found;
}

void mesh_fill_braces(convex_mesh *m, int *scratch) {
  static const double ROOT = 0.70710678118654752;
  static const double AROUND[DIRECTIONS][2] = {{1.0, 0.0},    {ROOT, ROOT}, {0.0, 1.0},
                                               {-ROOT, ROOT}, {-1.0, 0.0},  {-ROOT, -ROOT},
                                               {0.0, -1.0},   {ROOT, -ROOT}};
  int found[POLYGONS_MOST], corner[CORNERS_MOST];
  int *polygon_stamp = scratch, *vertex_stamp = scratch + m->polygon_count;
  memset(scratch, 0, (size_t)(m->polygon_count + m->vertex_count) * sizeof(int));
  for (int p = 0; p < m->polygon_count; ++p) {
    const int begin = m->side_start[p], sides = m->side_start[p + 1] - begin;
    const int count = gather(m, p, found, polygon_stamp);
    if (count == 1) {
      continue;
    }
    const int corner_count = corners_of(m, found, count, corner, vertex_stamp, p + 1);
    const double *u = m->side_normal + 3 * begin;
    int *brace = m->brace + MESH_BRACES_MAX * p;
    double v[3], d[3];
    vec3_cross(v, m->normal + 3 * p, u);
    for (int k = 0; k < DIRECTIONS; ++k) {
      vec3_scale(d, u, AROUND[k][0]);
      vec3_axpy(d, AROUND[k][1], v);
      const int vertex = farthest_of(m, corner, corner_count, d);
      if (!holds(m->side_vertex + begin, sides, vertex) &&
          !holds(brace, m->brace_count[p], vertex)) {
        brace[m->brace_count[p]++] = vertex;
      }
    }
  }
}
