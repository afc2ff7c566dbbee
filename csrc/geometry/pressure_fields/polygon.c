#include "geometry/pressure_fields/cell.h"

#include "base/vec3.h"

/* For each set (bit mask) of corners outside a plane: the edges that the plane cuts, in order
 * around its normal; -1 after the last. */
static const signed char CUT[16][5] = {
    {-1, -1, -1, -1, -1}, {0, 3, 2, -1, -1}, {0, 1, 4, -1, -1}, {4, 3, 2, 1, -1},
    {1, 2, 5, -1, -1},    {0, 3, 5, 1, -1},  {0, 2, 5, 4, -1},  {3, 5, 4, -1, -1},
    {3, 4, 5, -1, -1},    {4, 5, 2, 0, -1},  {1, 5, 3, 0, -1},  {1, 5, 2, -1, -1},
    {1, 2, 3, 4, -1},     {0, 4, 1, -1, -1}, {0, 2, 3, -1, -1}, {-1, -1, -1, -1, -1}};
static const signed char EDGE[6][2] = {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}};

/* The point of height 0 on the line from a to b, with heights s and t of different sign. */
static inline void crossing(double x[3], const double a[3], const double b[3], double s, double t) {
  const double share = s / (s - t);
  for (int k = 0; k < 3; ++k) {
    x[k] = a[k] + share * (b[k] - a[k]);
  }
}

void polygon_slice(field_polygon *out, const double corner[4][3], const double height[4]) {
  unsigned mask = 0;
  int count = 0;
  for (unsigned i = 0; i < 4; ++i) {
    mask |= (unsigned)(height[i] > 0.0) << i;
  }
  for (const signed char *cut = CUT[mask]; *cut >= 0; ++cut) {
    const int a = EDGE[*cut][0], b = EDGE[*cut][1];
    crossing(out->corner[count++], corner[a], corner[b], height[a], height[b]);
  }
  out->count = count;
}

void polygon_clip(field_polygon *polygon, const field_plane *plane) {
  const int n = polygon->count;
  double s[POLYGON_MOST];
  int outside = 0;
  for (int i = 0; i < n; ++i) {
    s[i] = vec3_dot(plane->normal, polygon->corner[i]) - plane->offset;
    outside += s[i] > 0.0;
  }
  if (outside == 0 || outside == n) {
    polygon->count = outside ? 0 : n;
    return;
  }
  double kept[POLYGON_MOST + 1][3];
  int count = 0;
  for (int i = 0; i < n && count < POLYGON_MOST; ++i) {
    const int j = i + 1 < n ? i + 1 : 0;
    if (!(s[i] > 0.0)) {
      vec3_copy(kept[count++], polygon->corner[i]);
    }
    if ((s[i] > 0.0) != (s[j] > 0.0)) {
      crossing(kept[count++], polygon->corner[i], polygon->corner[j], s[i], s[j]);
    }
  }
  polygon->count = count < POLYGON_MOST ? count : POLYGON_MOST;
  memcpy(polygon->corner, kept, (size_t)polygon->count * sizeof kept[0]);
}

void polygon_integrate(polygon_moments *out, const field_polygon *polygon, const double normal[3]) {
  const double *origin = polygon->corner[0];
  double a[3], b[3];
  *out = (polygon_moments){0};
  vec3_sub(b, polygon->corner[1], origin);
  for (int i = 2; i < polygon->count; ++i) {
    double cross[3], sum[3];
    vec3_copy(a, b);
    vec3_sub(b, polygon->corner[i], origin);
    vec3_cross(cross, a, b);
    const double part = 0.5 * vec3_dot(cross, normal);
    vec3_add(sum, a, b);
    out->area += part;
    vec3_axpy(out->first, part / 3.0, sum);
    for (int j = 0, m = 0; j < 3; ++j) {
      for (int k = j; k < 3; ++k, ++m) {
        out->second[m] += part / 12.0 * (sum[j] * sum[k] + a[j] * a[k] + b[j] * b[k]);
      }
    }
  }
}

void polygon_moments_shift(polygon_moments *moments, const double from[3]) {
  double *first = moments->first, *second = moments->second;
  double moved[3];
  vec3_copy(moved, first);
  vec3_axpy(moved, moments->area, from);
  for (int j = 0, m = 0; j < 3; ++j) {
    for (int k = j; k < 3; ++k, ++m) {
      second[m] += first[j] * from[k] + from[j] * moved[k];
    }
  }
  vec3_copy(first, moved);
}
