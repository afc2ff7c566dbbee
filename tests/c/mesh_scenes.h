/* Convex meshes for tests: boxes, prisms, geodesic spheres, hulls of a few random points. */
#ifndef QD_TESTS_MESH_SCENES_H
#define QD_TESTS_MESH_SCENES_H

#include <stdlib.h>

#include "geometry_scenes.h"

typedef struct hull {
  int vertex_count, face_count;
  double vertex[3 * 2562];
  int32_t face[3 * 5120];
} hull;

/* Every triangle with all other points behind it; for points in general position. */
static inline void hull_of_points(hull *h) {
  h->face_count = 0;
  for (int i = 0; i < h->vertex_count; ++i) {
    for (int j = i + 1; j < h->vertex_count; ++j) {
      for (int k = j + 1; k < h->vertex_count; ++k) {
        double u[3], v[3], n[3], d[3];
        int above = 0, below = 0;
        vec3_sub(u, h->vertex + 3 * j, h->vertex + 3 * i);
        vec3_sub(v, h->vertex + 3 * k, h->vertex + 3 * i);
        vec3_cross(n, u, v);
        for (int m = 0; m < h->vertex_count; ++m) {
          if (m != i && m != j && m != k) {
            vec3_sub(d, h->vertex + 3 * m, h->vertex + 3 * i);
            above += vec3_dot(n, d) > 0.0;
            below += vec3_dot(n, d) <= 0.0;
          }
        }
        if (above == 0 || below == 0) {
          int32_t *face = h->face + 3 * h->face_count++;
          face[0] = i;
          face[1] = above == 0 ? j : k;
          face[2] = above == 0 ? k : j;
        }
      }
    }
  }
}

static inline void box_hull(hull *h, double x, double y, double z) {
  static const int QUAD[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4},
                                 {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
  h->vertex_count = 8;
  h->face_count = 12;
  for (int i = 0; i < 8; ++i) {
    vec3_set(h->vertex + 3 * i, i & 1 ? x : -x, i & 2 ? y : -y, i & 4 ? z : -z);
  }
  for (int q = 0; q < 6; ++q) {
    const int32_t face[6] = {QUAD[q][0], QUAD[q][1], QUAD[q][2],
                             QUAD[q][0], QUAD[q][2], QUAD[q][3]};
    memcpy(h->face + 6 * q, face, sizeof face);
  }
}

/* An upright prism with a regular polygon of n corners. */
static inline void prism_hull(hull *h, int n, double radius, double half) {
  h->vertex_count = 2 * n;
  h->face_count = 0;
  for (int i = 0; i < n; ++i) {
    const double angle = 2.0 * 3.14159265358979323846 * i / n;
    for (int k = 0; k < 2; ++k) {
      vec3_set(h->vertex + 3 * (2 * i + k), radius * cos(angle), radius * sin(angle),
               k ? half : -half);
    }
    const int next = 2 * ((i + 1) % n);
    const int32_t side[6] = {2 * i, next, next + 1, 2 * i, next + 1, 2 * i + 1};
    memcpy(h->face + 3 * h->face_count, side, sizeof side);
    h->face_count += 2;
    if (i >= 1 && i < n - 1) {
      const int32_t caps[6] = {0, next, 2 * i, 1, 2 * i + 1, next + 1};
      memcpy(h->face + 3 * h->face_count, caps, sizeof caps);
      h->face_count += 2;
    }
  }
}

static inline int32_t middle_vertex(hull *h, int32_t i, int32_t j, double radius) {
  double x[3];
  vec3_add(x, h->vertex + 3 * i, h->vertex + 3 * j);
  vec3_normalize(x);
  vec3_scale(x, x, radius);
  for (int k = 0; k < h->vertex_count; ++k) {
    if (vec3_dot(x, h->vertex + 3 * k) > (1.0 - 1e-12) * radius * radius) {
      return k;
    }
  }
  vec3_copy(h->vertex + 3 * h->vertex_count, x);
  return h->vertex_count++;
}

/* An octahedron whose faces are quartered level times (at most 4), all corners on the sphere. */
static inline void sphere_hull(hull *h, int level, double radius) {
  static const int32_t FACE[24] = {0, 2, 4, 2, 1, 4, 1, 3, 4, 3, 0, 4,
                                   2, 0, 5, 1, 2, 5, 3, 1, 5, 0, 3, 5};
  h->vertex_count = 6;
  h->face_count = 8;
  memset(h->vertex, 0, 18 * sizeof(double));
  for (int i = 0; i < 6; ++i) {
    h->vertex[3 * i + i / 2] = i % 2 ? -radius : radius;
  }
  memcpy(h->face, FACE, sizeof FACE);
  for (int k = 0; k < level; ++k) {
    for (int f = h->face_count - 1; f >= 0; --f) {
      const int32_t a = h->face[3 * f], b = h->face[3 * f + 1], c = h->face[3 * f + 2];
      const int32_t ab = middle_vertex(h, a, b, radius), bc = middle_vertex(h, b, c, radius);
      const int32_t ca = middle_vertex(h, c, a, radius);
      const int32_t parts[12] = {a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca};
      memcpy(h->face + 12 * f, parts, sizeof parts);
    }
    h->face_count *= 4;
  }
}

/* Random points near a sphere, stretched: of four of them the hull may be flat. */
static inline void random_points(hull *h, int count, double scale) {
  double stretch[3];
  for (int i = 0; i < 3; ++i) {
    stretch[i] = scale * log_uniform(0.2, 1.0);
  }
  h->vertex_count = count;
  for (int i = 0; i < count; ++i) {
    random_unit(h->vertex + 3 * i);
    vec3_normalize(h->vertex + 3 * i);
    for (int k = 0; k < 3; ++k) {
      h->vertex[3 * i + k] *= stretch[k];
    }
  }
  hull_of_points(h);
}

static inline int is_solid(const hull *h) {
  convex_mesh *mesh;
  const char *reason;
  int at;
  const qd_status status =
      convex_mesh_create(&mesh, h->vertex, h->vertex_count, h->face, h->face_count, &reason, &at);
  if (status == QD_OK) {
    convex_mesh_destroy(mesh);
  }
  return status == QD_OK;
}

static inline void random_hull(hull *h, int count, double scale) {
  do {
    random_points(h, count, scale);
  } while (!is_solid(h));
}

/* The mesh of a hull; ends the program where it cannot be made. */
static inline convex_mesh *hull_mesh(const hull *h) {
  convex_mesh *mesh;
  const char *reason;
  int at;
  const qd_status status =
      convex_mesh_create(&mesh, h->vertex, h->vertex_count, h->face, h->face_count, &reason, &at);
  if (status != QD_OK) {
    fprintf(stderr, "mesh: %s (face %d)\n", reason ? reason : "?", at);
    exit(1);
  }
  return mesh;
}

#endif
