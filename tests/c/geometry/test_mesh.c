/* Convex meshes as data: polygons, edges, support points, and what is refused. */
#include "mesh_scenes.h"

static hull H;

/* What holds for every polyhedron. */
static void check_mesh(const convex_mesh *m) {
  CHECK(m->vertex_count > 0 && m->side_start[m->polygon_count] == 2 * m->edge_count);
  for (int p = 0; p < m->polygon_count; ++p) {
    const double *n = m->normal + 3 * p;
    CHECK_NEAR(vec3_norm(n), 1.0, 1e-14);
    for (int i = 0; i < m->vertex_count; ++i) {
      CHECK(vec3_dot(n, m->vertex + 3 * i) <= m->offset[p] + m->slack[p] + 1e-15 * m->radius);
    }
    const int begin = m->side_start[p], count = m->side_start[p + 1] - begin;
    CHECK(count >= 3);
    for (int k = 0; k < count; ++k) {
      const int edge = m->side_edge[begin + k], first = m->edge_polygon[2 * edge] == p ? 0 : 1;
      CHECK(m->edge_polygon[2 * edge + first] == p && m->edge_polygon[2 * edge + 1 - first] != p);
      CHECK(m->edge_vertex[2 * edge + first] == m->side_vertex[begin + k]);
      CHECK(m->edge_vertex[2 * edge + 1 - first] == m->side_vertex[begin + (k + 1) % count]);
      CHECK_NEAR(vec3_dot(n, m->vertex + 3 * m->side_vertex[begin + k]), m->offset[p],
                 m->roughness + 1e-15 * m->radius);
    }
  }
  int corners = 0;
  for (int i = 0; i < m->vertex_count; ++i) {
    const int count = m->fan_start[i + 1] - m->fan_start[i];
    CHECK(count == 0 || count >= 3);
    corners += count > 0;
    for (int k = m->fan_start[i]; k < m->fan_start[i + 1]; ++k) {
      CHECK(m->edge_vertex[2 * m->fan[k]] == i || m->edge_vertex[2 * m->fan[k] + 1] == i);
    }
  }
  CHECK(corners - m->edge_count + m->polygon_count == 2);
}

static void check_questions(const convex_mesh *m) {
  for (int trial = 0; trial < 500; ++trial) {
    double d[3], x[3], height = -INFINITY, ratio = -INFINITY, excess, largest = -INFINITY;
    random_unit(d);
    vec3_scale(d, d, log_uniform(1e-3, 1e3));
    if (trial % 4 == 0) { /* normal to a polygon: ties */
      vec3_copy(d, m->normal + 3 * (trial % m->polygon_count));
    }
    for (int i = 0; i < m->vertex_count; ++i) {
      height = fmax(height, vec3_dot(d, m->vertex + 3 * i));
    }
    const int best = mesh_support(m, d);
    CHECK_NEAR(vec3_dot(d, m->vertex + 3 * best), height, 1e-15 * vec3_norm(d) * m->radius);
    CHECK(mesh_support(m, d) == best);
    random_unit(x);
    vec3_scale(x, x, m->radius * uniform(0.0, 2.0));
    for (int p = 0; p < m->polygon_count; ++p) {
      ratio = fmax(ratio, vec3_dot(m->normal + 3 * p, x) / m->offset[p]);
      largest = fmax(largest, vec3_dot(m->normal + 3 * p, x) - m->offset[p] - m->slack[p]);
    }
    const int behind = mesh_polygon_behind(m, x);
    CHECK_NEAR(vec3_dot(m->normal + 3 * behind, x) / m->offset[behind], ratio, 1e-12 * ratio);
    const int nearest = mesh_polygon_nearest(m, x, &excess);
    CHECK_NEAR(excess - m->slack[nearest], largest, 1e-14 * m->radius);
  }
}

static void check_solids(void) {
  box_hull(&H, 0.3, 0.2, 0.1);
  for (int i = 0; i < 8; ++i) { /* anywhere */
    vec3_axpy(H.vertex + 3 * i, 1.0, (const double[3]){1.0, 2.0, 3.0});
  }
  convex_mesh *m = hull_mesh(&H);
  check_mesh(m);
  check_questions(m);
  CHECK(m->polygon_count == 6 && m->edge_count == 12);
  CHECK_NEAR(m->center[0], 1.0, 1e-15);
  CHECK_NEAR(m->center[1], 2.0, 1e-15);
  CHECK_NEAR(m->center[2], 3.0, 1e-15);
  CHECK_NEAR(m->radius, sqrt(0.14), 1e-15);
  CHECK_NEAR(m->upper[1], 0.2, 1e-15);
  convex_mesh_destroy(m);
  prism_hull(&H, 40, 1.0, 0.5);
  m = hull_mesh(&H);
  check_mesh(m);
  check_questions(m);
  CHECK(m->polygon_count == 42 && m->edge_count == 120);
  CHECK(m->clip_start[m->polygon_count] == 2 * MESH_SIDES_MAX + 40 * 4);
  CHECK(m->outline_start[m->polygon_count] == 2 * MESH_OUTLINE_MAX + 40 * 4);
  convex_mesh_destroy(m);
  for (int level = 0; level <= 4; ++level) {
    sphere_hull(&H, level, 0.7);
    m = hull_mesh(&H);
    check_mesh(m);
    check_questions(m);
    CHECK(m->vertex_count == 2 + (4 << 2 * level) && m->polygon_count == 8 << 2 * level);
    CHECK_NEAR(vec3_norm(m->center), 0.0, 1e-14);
    convex_mesh_destroy(m);
  }
  for (int trial = 0; trial < 100; ++trial) {
    random_hull(&H, 4 + trial % 25, log_uniform(1e-3, 1e3));
    m = hull_mesh(&H);
    check_mesh(m);
    check_questions(m);
    convex_mesh_destroy(m);
  }
}

/* Boxes in single precision, turned: planes to rounding, and still six polygons. */
static void check_single_precision(void) {
  for (int trial = 0; trial < 200; ++trial) {
    double rot[9], shift[3];
    box_hull(&H, log_uniform(0.02, 1.0), log_uniform(0.02, 1.0), 1.0);
    random_rotation(rot);
    random_unit(shift);
    for (int i = 0; i < 8; ++i) {
      double x[3];
      mat3_mul_vec(x, rot, H.vertex + 3 * i);
      for (int k = 0; k < 3; ++k) {
        H.vertex[3 * i + k] = (double)(float)(x[k] + shift[k]);
      }
    }
    convex_mesh *m = hull_mesh(&H);
    check_mesh(m);
    CHECK(m->polygon_count == 6);
    CHECK(m->roughness < 1e-6);
    convex_mesh_destroy(m);
  }
}

static void check_refused(const char *wanted) {
  convex_mesh *mesh;
  const char *reason = "";
  int at;
  CHECK(convex_mesh_create(&mesh, H.vertex, H.vertex_count, H.face, H.face_count, &reason, &at) !=
        QD_OK);
  CHECK_SAY(mesh == NULL && strstr(reason, wanted) != NULL, "%s / %s", wanted, reason);
}

static void check_bad_meshes(void) {
  box_hull(&H, 1.0, 1.0, 1.0);
  H.face[0] = 8;
  check_refused("no such vertex");
  box_hull(&H, 1.0, 1.0, 1.0);
  H.face[0] = -1;
  check_refused("no such vertex");
  box_hull(&H, 1.0, 1.0, 1.0);
  H.face[1] = H.face[0];
  check_refused("twice");
  box_hull(&H, 1.0, 1.0, 1.0);
  H.face_count = 11;
  check_refused("not closed");
  box_hull(&H, 1.0, 1.0, 1.0);
  memcpy(H.face + 36, H.face, 3 * sizeof(int32_t));
  H.face_count = 13;
  check_refused("an edge is that of another face");
  box_hull(&H, 1.0, 1.0, 1.0);
  H.face_count = 3;
  check_refused("four faces");
  box_hull(&H, 1.0, 1.0, 1.0);
  H.vertex[4] = NAN;
  check_refused("finite");
  box_hull(&H, 1.0, 1.0, 1.0);
  for (int f = 0; f < 12; ++f) {
    const int32_t other = H.face[3 * f + 1];
    H.face[3 * f + 1] = H.face[3 * f + 2];
    H.face[3 * f + 2] = other;
  }
  check_refused("counterclockwise");
  box_hull(&H, 1.0, 1.0, 1e-9);
  check_refused("flat");
  box_hull(&H, 0.0, 0.0, 0.0);
  check_refused("flat");
  sphere_hull(&H, 2, 1.0);
  vec3_scale(H.vertex + 30, H.vertex + 30, 0.9);
  check_refused("stand out");
  box_hull(&H, 1.0, 1.0, 1.0); /* a second one beside it */
  for (int i = 0; i < 8; ++i) {
    vec3_copy(H.vertex + 24 + 3 * i, H.vertex + 3 * i);
    H.vertex[24 + 3 * i] += 3.0;
  }
  for (int i = 0; i < 36; ++i) {
    H.face[36 + i] = H.face[i] + 8;
  }
  H.vertex_count = 16;
  H.face_count = 24;
  check_refused("pieces");
}

int main(void) {
  check_solids();
  check_single_precision();
  check_bad_meshes();
  return check_report();
}
