/* A convex mesh as closest points see it: the cases of surface.h. Floor: geometry. */
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
/* The inverse, or -1 where the feature is of another kind. */
static inline int mesh_feature_edge(const convex_mesh *m, int feature) {
  const int edge = feature - m->vertex_count;
  return edge >= 0 && edge < m->edge_count ? edge : -1;
}
static inline int mesh_feature_polygon(const convex_mesh *m, int feature) {
  const int polygon = feature - m->vertex_count - m->edge_count;
  return polygon >= 0 ? polygon : -1;
}

/* How far vertices elsewhere stand out of the planes about a feature. */
double mesh_feature_slack(const convex_mesh *m, int feature);

/* The feature at a point near the surface. */
int mesh_classify(const convex_mesh *m, const double x[3], double tolerance);
/* Puts point and normal on the feature. */
void mesh_retract(const convex_mesh *m, int feature, double x[3], double n[3]);
/* The neighbour to which a point or normal has gone over, or the feature itself. */
int mesh_cross(const convex_mesh *m, int feature, const double x[3], const double n[3]);

#endif
