/* Convex meshes for the functions of surface.h. */
#ifndef QD_GEOMETRY_MESH_SURFACE_H
#define QD_GEOMETRY_MESH_SURFACE_H

#include "geometry/meshes/mesh.h"

/* Features: vertices, then edges, then polygons. */
static inline int mesh_edge_feature(const convex_mesh *m, int edge) {
  return m->vertex_count + edge;
}
static inline int mesh_polygon_feature(const convex_mesh *m, int polygon) {
  return m->vertex_count + m->edge_count + polygon;
}
/* The index of the edge or polygon, or -1 if the feature is of another kind. */
static inline int mesh_feature_edge(const convex_mesh *m, int feature) {
  const int edge = feature - m->vertex_count;
  return edge >= 0 && edge < m->edge_count ? edge : -1;
}
static inline int mesh_feature_polygon(const convex_mesh *m, int feature) {
  const int polygon = feature - m->vertex_count - m->edge_count;
  return polygon >= 0 ? polygon : -1;
}

/* Largest height of other vertices above the planes at a feature. */
double mesh_feature_slack(const convex_mesh *m, int feature);

/* The feature at a point near the surface. */
int mesh_classify(const convex_mesh *m, const double x[3], double tolerance);
/* Moves point and normal onto the feature. */
void mesh_retract(const convex_mesh *m, int feature, double x[3], double n[3]);
/* The neighbouring feature to which the point or the normal has moved, or the feature itself. */
int mesh_cross(const convex_mesh *m, int feature, const double x[3], const double n[3]);

#endif
