#include "geometry/meshes/mesh_surface.h"

#include <math.h>

#include "base/rounding.h"
#include "base/vec3.h"

static double edge_slack(const convex_mesh *m, int edge) {
  const int *pair = m->edge_polygon + 2 * edge;
  return fmax(m->slack[pair[0]], m->slack[pair[1]]);
}

double mesh_feature_slack(const convex_mesh *m, int feature) {
  const int edge = mesh_feature_edge(m, feature), polygon = mesh_feature_polygon(m, feature);
  if (polygon >= 0) {
    return m->slack[polygon];
  }
  if (edge >= 0) {
    return edge_slack(m, edge);
  }
  double slack = 0.0;
  for (int k = m->fan_start[feature]; k < m->fan_start[feature + 1]; ++k) {
    slack = fmax(slack, edge_slack(m, m->fan[k]));
  }
  return slack;
}

/* The edge of the polygon's side that x lies farthest outside of. */
static int farthest_side(const convex_mesh *m, int polygon, const double x[3], double *out_of) {
  int farthest = m->side_start[polygon];
  *out_of = -INFINITY;
  for (int k = m->side_start[polygon]; k < m->side_start[polygon + 1]; ++k) {
    const double excess = vec3_dot(m->side_normal + 3 * k, x) - m->side_level[k];
    if (excess > *out_of) {
      *out_of = excess;
      farthest = k;
    }
  }
  return m->side_edge[farthest];
}

/* The end (0 or 1) of an edge that x is beyond, or nearer to than tolerance; -1 for neither. */
static int edge_end(const convex_mesh *m, int edge, const double x[3], double tolerance) {
  const double t =
      vec3_dot_sub(m->edge_axis + 3 * edge, x, m->vertex + 3 * m->edge_vertex[2 * edge]);
  return t < tolerance ? 0 : t > m->edge_length[edge] - tolerance ? 1 : -1;
}

int mesh_classify(const convex_mesh *m, const double x[3], double tolerance) {
  const int polygon = mesh_polygon_behind(m, x);
  double out_of;
  const int edge = farthest_side(m, polygon, x, &out_of);
  if (out_of < -tolerance) {
    return mesh_polygon_feature(m, polygon);
  }
  const int end = edge_end(m, edge, x, tolerance);
  return end >= 0 ? m->edge_vertex[2 * edge + end] : mesh_edge_feature(m, edge);
}

void mesh_retract(const convex_mesh *m, int feature, double x[3], double n[3]) {
  const int edge = mesh_feature_edge(m, feature), polygon = mesh_feature_polygon(m, feature);
  if (polygon >= 0) {
    const double *normal = m->normal + 3 * polygon;
    vec3_axpy(x, m->offset[polygon] - vec3_dot(normal, x), normal);
    vec3_copy(n, normal);
  } else if (edge >= 0) {
    const double *first = m->vertex + 3 * m->edge_vertex[2 * edge];
    const double *along = m->edge_axis + 3 * edge;
    const double t = vec3_dot_sub(along, x, first);
    vec3_copy(x, first);
    vec3_axpy(x, t, along);
    vec3_axpy(n, -vec3_dot(n, along), along);
    vec3_normalize(n);
  } else {
    vec3_copy(x, m->vertex + 3 * feature);
    vec3_normalize(n);
  }
}

/* The polygon into whose normal cone n has moved from an edge, or -1. */
static int leave_edge(const convex_mesh *m, int edge, const double n[3]) {
  double inward[3], most = SUM_ROUNDING;
  int polygon = -1;
  const double *along = m->edge_axis + 3 * edge;
  for (int k = 0; k < 2; ++k) {
    const int p = m->edge_polygon[2 * edge + k];
    vec3_cross(inward, m->normal + 3 * p, along);
    const double lean = (k == 0 ? 1.0 : -1.0) * vec3_dot(n, inward);
    if (lean > most) {
      most = lean;
      polygon = p;
    }
  }
  return polygon;
}

/* The edge into whose normal cone n has moved farthest from a vertex, or -1. */
static int leave_vertex(const convex_mesh *m, int vertex, const double n[3]) {
  double most = SUM_ROUNDING;
  int edge = -1;
  for (int k = m->fan_start[vertex]; k < m->fan_start[vertex + 1]; ++k) {
    const int e = m->fan[k];
    const double lean =
        (m->edge_vertex[2 * e] == vertex ? 1.0 : -1.0) * vec3_dot(n, m->edge_axis + 3 * e);
    if (lean > most) {
      most = lean;
      edge = e;
    }
  }
  return edge;
}

int mesh_cross(const convex_mesh *m, int feature, const double x[3], const double n[3]) {
  const int edge = mesh_feature_edge(m, feature), polygon = mesh_feature_polygon(m, feature);
  if (polygon >= 0) {
    double out_of;
    const int side = farthest_side(m, polygon, x, &out_of);
    return out_of > 0.0 ? mesh_edge_feature(m, side) : feature;
  }
  if (edge >= 0) {
    const int end = edge_end(m, edge, x, 0.0);
    if (end >= 0) {
      return m->edge_vertex[2 * edge + end];
    }
    const int p = leave_edge(m, edge, n);
    return p >= 0 ? mesh_polygon_feature(m, p) : feature;
  }
  const int e = leave_vertex(m, feature, n);
  return e >= 0 ? mesh_edge_feature(m, e) : feature;
}
