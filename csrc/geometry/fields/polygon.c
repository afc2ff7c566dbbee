#include "geometry/fields/cell.h"

#include "base/vec3.h"

static double height(const field_plane *plane, const double x[3]) {
  return vec3_dot(plane->normal, x) - plane->offset;
}

void cell_move(field_cell *out, const field_cell *cell, const double R[9], const double t[3]) {
  *out = *cell;
  mat3_mul_vec(out->gradient, R, cell->gradient);
  out->offset = cell->offset - vec3_dot(out->gradient, t);
  for (int i = 0; i < cell->plane_count; ++i) {
    mat3_mul_vec(out->plane[i].normal, R, cell->plane[i].normal);
    out->plane[i].offset = cell->plane[i].offset + vec3_dot(out->plane[i].normal, t);
  }
  if (cell->plane_count < 4) {
    return;
  }
  for (int i = 0; i < 4; ++i) {
    mat3_mul_vec(out->corner[i], R, cell->corner[i]);
    vec3_add(out->corner[i], out->corner[i], t);
  }
  for (int k = 0; k < 3; ++k) {
    out->low[k] = fmin(fmin(out->corner[0][k], out->corner[1][k]),
                       fmin(out->corner[2][k], out->corner[3][k]));
    out->high[k] = fmax(fmax(out->corner[0][k], out->corner[1][k]),
                        fmax(out->corner[2][k], out->corner[3][k]));
  }
}

/* Edges that a plane cuts when exactly the corners of the mask lie outside, in their order around
 * its normal; -1 behind the last. */
static const signed char CUT[16][5] = {
    {-1, -1, -1, -1, -1}, {0, 3, 2, -1, -1}, {0, 1, 4, -1, -1}, {4, 3, 2, 1, -1},
    {1, 2, 5, -1, -1},    {0, 3, 5, 1, -1},  {0, 2, 5, 4, -1},  {3, 5, 4, -1, -1},
    {3, 4, 5, -1, -1},    {4, 5, 2, 0, -1},  {1, 5, 3, 0, -1},  {1, 5, 2, -1, -1},
    {1, 2, 3, 4, -1},     {0, 4, 1, -1, -1}, {0, 2, 3, -1, -1}, {-1, -1, -1, -1, -1}};
static const signed char EDGE[6][2] = {{0, 1}, {1, 2}, {2, 0}, {0, 3}, {1, 3}, {2, 3}};

void polygon_slice(field_polygon *out, const field_cell *cell, const field_plane *plane) {
  double s[4];
  unsigned mask = 0;
  out->count = 0;
  for (unsigned i = 0; i < 4; ++i) {
    s[i] = height(plane, cell->corner[i]);
    mask |= (unsigned)(s[i] > 0.0) << i;
  }
  for (const signed char *cut = CUT[mask]; *cut >= 0; ++cut) {
    const int a = EDGE[*cut][0], b = EDGE[*cut][1];
    const double share = s[a] / (s[a] - s[b]);
    double *corner = out->corner[out->count++];
    vec3_sub(corner, cell->corner[b], cell->corner[a]);
    vec3_scale(corner, corner, share);
    vec3_add(corner, corner, cell->corner[a]);
  }
}

void polygon_clip(field_polygon *polygon, const field_plane *plane) {
  const int n = polygon->count;
  double s[POLYGON_MOST];
  int outside = 0;
  for (int i = 0; i < n; ++i) {
    s[i] = height(plane, polygon->corner[i]);
    outside += s[i] > 0.0;
  }
  if (outside == 0 || outside == n) {
    polygon->count = outside ? 0 : n;
    return;
  }
  field_polygon kept = {.count = 0};
  for (int i = 0; i < n && kept.count < POLYGON_MOST - 1; ++i) {
    const int j = i + 1 < n ? i + 1 : 0;
    if (!(s[i] > 0.0)) {
      vec3_copy(kept.corner[kept.count++], polygon->corner[i]);
    }
    if ((s[i] > 0.0) != (s[j] > 0.0)) {
      double *corner = kept.corner[kept.count++];
      vec3_sub(corner, polygon->corner[j], polygon->corner[i]);
      vec3_scale(corner, corner, s[i] / (s[i] - s[j]));
      vec3_add(corner, corner, polygon->corner[i]);
    }
  }
  *polygon = kept;
}

void polygon_integrate(polygon_moments *out, const field_polygon *polygon, const double normal[3]) {
  const double *origin = polygon->corner[0];
  double area = 0.0, first[3] = {0}, second[6] = {0}; /* about the first corner */
  for (int i = 1; i + 1 < polygon->count; ++i) {
    double a[3], b[3], cross[3], sum[3];
    vec3_sub(a, polygon->corner[i], origin);
    vec3_sub(b, polygon->corner[i + 1], origin);
    vec3_cross(cross, a, b);
    const double part = 0.5 * vec3_dot(cross, normal);
    vec3_add(sum, a, b);
    area += part;
    vec3_axpy(first, part / 3.0, sum);
    for (int j = 0, m = 0; j < 3; ++j) {
      for (int k = j; k < 3; ++k, ++m) {
        second[m] += part / 12.0 * (sum[j] * sum[k] + a[j] * a[k] + b[j] * b[k]);
      }
    }
  }
  out->area = area;
  for (int j = 0, m = 0; j < 3; ++j) {
    out->first[j] = first[j] + area * origin[j];
    for (int k = j; k < 3; ++k, ++m) {
      const double value =
          second[m] + first[j] * origin[k] + origin[j] * first[k] + area * origin[j] * origin[k];
      out->second[3 * j + k] = value;
      out->second[3 * k + j] = value;
    }
  }
}
