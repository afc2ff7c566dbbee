/* The hull of a face that was measured, not drawn, is a heap of triangles that differ by a few
 * degrees. Standing on the one that is lowest, a body would rock to the next one and come through
 * the ground meanwhile. So every polygon knows the vertices farthest out, in eight directions,
 * among the polygons connected with it that face the same way to some six degrees. */
#include "geometry/mesh_braces.h"

#include <math.h>

#include "base/vec3.h"

/* As for faces that count as opposite (closest_and_manifold.c). */
static const double SAME_WAY = 0.995;
/* Of vertices that are as far out, relative to the radius, the first one found. */
static const double FARTHER = 1e-9;
enum { POLYGONS_MOST = 128, DIRECTIONS = 8 };

/* Polygons that face the same way as the first one, itself first, from near to far. stamp: marks of
 * polygons that were seen. */
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

/* Of the corners of these polygons the one farthest along a direction. */
static int farthest_corner(const convex_mesh *m, const int *polygon, int count,
                           const double direction[3]) {
  int best = -1;
  double height = -INFINITY;
  for (int i = 0; i < count; ++i) {
    for (int k = m->side_start[polygon[i]]; k < m->side_start[polygon[i] + 1]; ++k) {
      const double other = vec3_dot(direction, m->vertex + 3 * m->side_vertex[k]);
      if (other > height + FARTHER * m->radius) {
        height = other;
        best = m->side_vertex[k];
      }
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
  static const double EIGHTH = 0.78539816339744831;
  int found[POLYGONS_MOST], *stamp = scratch;
  for (int p = 0; p < m->polygon_count; ++p) {
    stamp[p] = 0;
  }
  for (int p = 0; p < m->polygon_count; ++p) {
    const int begin = m->side_start[p], sides = m->side_start[p + 1] - begin;
    const int count = gather(m, p, found, stamp);
    const double *u = m->side_normal + 3 * begin;
    int *brace = m->brace + MESH_BRACES_MAX * p;
    double v[3], d[3];
    vec3_cross(v, m->normal + 3 * p, u);
    for (int k = 0; k < DIRECTIONS && count > 1; ++k) {
      vec3_scale(d, u, cos(k * EIGHTH));
      vec3_axpy(d, sin(k * EIGHTH), v);
      const int corner = farthest_corner(m, found, count, d);
      if (!holds(m->side_vertex + begin, sides, corner) &&
          !holds(brace, m->brace_count[p], corner)) {
        brace[m->brace_count[p]++] = corner;
      }
    }
  }
}
