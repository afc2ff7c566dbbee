/* Point clouds: the tree holds its points, the k nearest are those of a search through all points,
 * contacts and derivatives are those of the points as balls, and equal distances are settled the
 * same way wherever the shapes are. */
#include "geometry/clouds/cloud.h"
#include "geometry_scenes.h"
#include "mesh_scenes.h"

#include <stdlib.h>

enum { POINTS_MAX = 4000 };

static double points[3 * POINTS_MAX];

typedef enum cloud_kind {
  SURFACE,   /* of an ellipsoid */
  VOLUME,    /* of a box */
  FLAT,      /* a grid in a plane, turned */
  COLLINEAR, /* on a line */
  EQUAL,     /* all in one place */
  CLUSTERS,  /* each point many times */
  CLOUD_KIND_COUNT
} cloud_kind;

static void fill_points(cloud_kind kind, int count, double scale) {
  double rot[9], origin[3];
  random_rotation(rot);
  vec3_set(origin, uniform(-1, 1), uniform(-1, 1), uniform(-1, 1));
  const int side = (int)ceil(sqrt(count));
  for (int i = 0; i < count; ++i) {
    double x[3] = {0.0, 0.0, 0.0}, turned[3];
    if (kind == SURFACE) {
      random_unit(x);
      vec3_set(x, x[0], 0.5 * x[1], 0.3 * x[2]);
    } else if (kind == VOLUME) {
      vec3_set(x, uniform(-1, 1), uniform(-0.3, 0.3), uniform(-1, 1));
    } else if (kind == FLAT) {
      vec3_set(x, (double)(i % side) / side, (double)(i / side) / side, 0.0);
    } else if (kind == COLLINEAR) {
      x[0] = uniform(-1, 1);
    } else if (kind == CLUSTERS) {
      vec3_set(x, i % 3, i % 2, i % 5);
    }
    mat3_mul_vec(turned, rot, x);
    vec3_add(turned, turned, origin);
    vec3_scale(points + 3 * i, turned, scale);
  }
}

static shape cloud_shape(const point_cloud *cloud, double radius) {
  shape s = shape_make(QD_CLOUD, radius, 0.0, 0.0);
  s.placed.cloud = cloud;
  random_rotation(s.placed.rot);
  return s;
}

static convex_mesh *meshes[2]; /* of flat faces, and nearly round */

/* Of any type but clouds. */
static shape other_shape(int type) {
  shape s = random_shape(type, 1.0);
  s.placed.mesh = type == QD_MESH ? meshes[uniform(0.0, 1.0) < 0.5] : NULL;
  return s;
}

static void point_in_world(double out[3], const shape *s, int index) {
  double x[3];
  vec3_sub(x, points + 3 * index, s->placed.cloud->center);
  mat3_mul_vec(out, s->placed.rot, x);
  vec3_add(out, out, s->placed.pos);
}

static shape ball_of(const shape *s, int index) {
  shape ball = shape_make(QD_SPHERE, s->size[0], 0.0, 0.0);
  point_in_world(ball.placed.pos, s, index);
  return ball;
}

/* ---------------------------------------------------------------- the tree */

static void check_tree(const point_cloud *cloud, double scale) {
  const double room = 1e-12 * scale;
  char seen[POINTS_MAX] = {0}, ranked[POINTS_MAX] = {0};
  for (int i = 0; i < cloud->point_count; ++i) {
    double given[3];
    const int index = cloud->index[i];
    ++seen[index];
    ++ranked[cloud->rank[i]];
    vec3_add(given, cloud->point + 3 * i, cloud->center);
    CHECK(vec3_error(given, points + 3 * index) <= room);
    CHECK(cloud->place[index] == i && vec3_norm(cloud->point + 3 * i) <= cloud->extent);
    for (int k = 0; k < 3; ++k) {
      CHECK(fabs(cloud->point[3 * i + k]) <= cloud->half[k] + room);
    }
  }
  for (int i = 0; i < cloud->point_count; ++i) {
    CHECK(seen[i] == 1 && ranked[i] == 1);
  }
  for (int n = 0; n < cloud->node_count; ++n) {
    const cloud_node *node = cloud->node + n;
    for (int i = node->begin; i < node->end; ++i) {
      double d[3];
      vec3_sub(d, cloud->point + 3 * i, node->center);
      const double along = vec3_dot(d, node->normal);
      CHECK(fabs(along) <= node->thickness + room && node->rank <= cloud->rank[i]);
      vec3_axpy(d, -along, node->normal);
      CHECK(vec3_norm(d) <= node->radius + room);
    }
    if (node->second > 0) {
      CHECK(node[1].begin == node->begin && node[1].end == cloud->node[node->second].begin);
      CHECK(cloud->node[node->second].end == node->end);
    }
  }
  CHECK(cloud->node[0].begin == 0 && cloud->node[0].end == cloud->point_count);
}

static void test_trees(void) {
  static const int COUNTS[] = {1, 2, 8, 9, 17, 100, 1000, POINTS_MAX};
  for (int kind = 0; kind < CLOUD_KIND_COUNT; ++kind) {
    for (int i = 0; i < 8; ++i) {
      const double scale = i % 2 ? 1.0 : 1e-3;
      fill_points(kind, COUNTS[i], scale);
      point_cloud *cloud = point_cloud_create(points, COUNTS[i], 5);
      check_tree(cloud, 3.0 * scale);
      point_cloud_destroy(cloud);
    }
  }
}

/* ---------------------------------------------------------------- nearest points */

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The contacts of cloud b with a, against the distances of all points. */
static void check_nearest(shape *a, shape *b, int count, double margin, double scale) {
  contact_point found[CONTACTS_PER_PAIR_MAX], exchanged[CONTACTS_PER_PAIR_MAX];
  double distance[POINTS_MAX];
  const int k = b->placed.cloud->contact_count;
  int in_range = 0;
  const int n = shapes_collide(placed(a), placed(b), margin, found);
  for (int i = 0; i < count; ++i) {
    contact_point contact[CONTACTS_PER_PAIR_MAX];
    shape ball = ball_of(b, i);
    CHECK(shapes_collide(placed(a), placed(&ball), INFINITY, contact) == 1);
    distance[i] = contact->dist;
    in_range += contact->dist <= margin;
    const contact_point *same = find_feature(found, n, i);
    if (same != NULL) {
      CHECK_NEAR(same->dist, contact->dist, 1e-13 * scale);
      CHECK(vec3_error(same->pos, contact->pos) <= 1e-12 * scale);
      CHECK(vec3_error(same->normal, contact->normal) <= 1e-9);
    }
  }
  CHECK_SAY(n == (in_range < k ? in_range : k), "%d contacts, %d of k = %d in range", n, in_range,
            k);
  qsort(distance, (size_t)count, sizeof(double), compare_doubles);
  double own[CONTACTS_PER_PAIR_MAX];
  for (int i = 0; i < n; ++i) {
    own[i] = found[i].dist;
    CHECK(i == 0 || found[i].feature > found[i - 1].feature);
  }
  qsort(own, (size_t)n, sizeof(double), compare_doubles);
  for (int i = 0; i < n; ++i) {
    CHECK_SAY(fabs(own[i] - distance[i]) <= 1e-9 * scale, "%s: %d nearest: %g, expected %g",
              TYPE_NAME[a->placed.type], i, own[i], distance[i]);
  }
  CHECK(shapes_collide(placed(b), placed(a), margin, exchanged) == n);
  for (int i = 0; i < n; ++i) {
    CHECK(exchanged[i].dist == found[i].dist && exchanged[i].feature == found[i].feature);
    vec3_add(exchanged[i].normal, exchanged[i].normal, found[i].normal);
    CHECK(vec3_norm(exchanged[i].normal) == 0.0);
  }
}

static void test_nearest(void) {
  static const int COUNTS[] = {1, 3, 8, 30, 300, 2000};
  for (int kind = 0; kind < CLOUD_KIND_COUNT; ++kind) {
    for (int i = 0; i < 6; ++i) {
      fill_points(kind, COUNTS[i], 1.0);
      point_cloud *cloud = point_cloud_create(points, COUNTS[i], 1 + (kind + i) % 8);
      for (int type = QD_PLANE; type <= QD_MESH; ++type) {
        for (int repeat = 0; repeat < 6; ++repeat) {
          shape a = other_shape(type), b = cloud_shape(cloud, repeat % 2 ? 0.0 : 0.05);
          double offset[3];
          random_unit(offset);
          vec3_axpy(b.placed.pos, 3.0 * uniform(0.0, 1.0), offset);
          if (repeat >= 3) {
            shape_approach(&a, &b, uniform(-0.5, 0.1));
          }
          check_nearest(&a, &b, COUNTS[i], repeat % 3 ? INFINITY : uniform(-0.1, 0.2), 10.0);
        }
      }
      point_cloud_destroy(cloud);
    }
  }
}

/* ---------------------------------------------------------------- derivatives */

/* Central differences of the contact of one point, the cloud moved or the other shape. */
static int check_derivative(shape *a, shape *b, const contact_point *contact, double length) {
  contact_point_derivative derivative;
  const double step = 1e-5 * length;
  int compared = 0;
  shapes_collide_derivative(placed(a), placed(b), contact, &derivative);
  for (int j = 0; j < 6; ++j) {
    contact_point moved[2];
    int found = 1;
    for (int side = 0; side < 2; ++side) {
      double twist[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
      contact_point contacts[CONTACTS_PER_PAIR_MAX];
      shape turned = *b;
      twist[j] = side ? step : -step;
      shape_move(&turned, twist, contact->pos, twist + 3);
      const int count = shapes_collide(placed(a), placed(&turned), INFINITY, contacts);
      const contact_point *same = find_feature(contacts, count, contact->feature);
      found = found && same != NULL && vec3_error(same->normal, contact->normal) < 1e-3;
      moved[side] = same != NULL ? *same : *contact;
    }
    if (!found) {
      continue;
    }
    ++compared;
    CHECK_NEAR((moved[1].dist - moved[0].dist) / (2.0 * step), derivative.dist[j], 1e-6);
    for (int i = 0; i < 3; ++i) {
      CHECK_NEAR((moved[1].pos[i] - moved[0].pos[i]) / (2.0 * step), derivative.pos[6 * i + j],
                 1e-5);
      CHECK_NEAR((moved[1].normal[i] - moved[0].normal[i]) / (2.0 * step) * length,
                 derivative.normal[6 * i + j] * length, 1e-5);
    }
  }
  return compared;
}

static void test_derivatives(void) {
  int compared = 0;
  fill_points(SURFACE, 200, 1.0);
  point_cloud *cloud = point_cloud_create(points, 200, 5);
  fill_points(SURFACE, 200, 1.0);
  point_cloud *other = point_cloud_create(points, 200, 5);
  for (int type = QD_PLANE; type <= QD_CLOUD; ++type) {
    for (int repeat = 0; repeat < 40 && qd_shape_pair_supported(type, QD_CLOUD); ++repeat) {
      shape a = type == QD_CLOUD ? cloud_shape(other, 0.02) : other_shape(type);
      shape b = cloud_shape(cloud, repeat % 2 ? 0.0 : 0.05);
      vec3_set(b.placed.pos, 0.0, 0.0, 3.0);
      for (int round = 0; round < 3; ++round) { /* points of a cloud block each other */
        shape_approach(&a, &b, repeat % 4 < 2 ? -0.02 : 0.05);
      }
      shape *first = repeat % 3 ? &a : &b, *second = repeat % 3 ? &b : &a;
      contact_point contacts[CONTACTS_PER_PAIR_MAX];
      const int n = shapes_collide(placed(first), placed(second), INFINITY, contacts);
      for (int i = 0; i < n; ++i) {
        if (fabs(contacts[i].dist + skin(&a) + b.size[0]) > 1e-2) {
          compared += check_derivative(first, second, contacts + i, 1e-2);
        }
      }
    }
  }
  CHECK_SAY(compared > 2000, "%d directions compared", compared);
  point_cloud_destroy(cloud);
  point_cloud_destroy(other);
}

/* ---------------------------------------------------------------- equal distances */

/* A square grid lying on a plane: wherever both are, the same points are in contact, its corners
 * among them. */
static void test_ties(void) {
  fill_points(FLAT, 1600, 0.3);
  point_cloud *cloud = point_cloud_create(points, 1600, 8);
  contact_feature first[8];
  for (int repeat = 0; repeat < 50; ++repeat) {
    shape a = shape_make(QD_PLANE, 0.0, 0.0, 0.0), b = cloud_shape(cloud, 0.0);
    contact_point contacts[CONTACTS_PER_PAIR_MAX];
    double turn[9], normal[3], x[3], y[3], span[3];
    /* the grid's normal, from three of its points, is the plane's */
    point_in_world(x, &b, 39);
    point_in_world(y, &b, 1560);
    point_in_world(span, &b, 0);
    vec3_sub(x, x, span);
    vec3_sub(y, y, span);
    vec3_cross(normal, x, y);
    vec3_normalize(normal);
    vec3_normalize(x);
    vec3_cross(y, normal, x);
    for (int i = 0; i < 3; ++i) {
      vec3_set(turn + 3 * i, x[i], y[i], normal[i]);
    }
    memcpy(a.placed.rot, turn, sizeof turn);
    vec3_set(span, uniform(-1, 1), uniform(-1, 1), uniform(-1, 1));
    vec3_copy(a.placed.pos, span);
    vec3_copy(b.placed.pos, span);
    vec3_axpy(b.placed.pos, uniform(-1, 1), x);
    const int n = shapes_collide(placed(&a), placed(&b), 1e-9, contacts);
    CHECK(n == 8);
    for (int i = 0; i < n; ++i) {
      first[i] = repeat == 0 ? contacts[i].feature : first[i];
      CHECK(contacts[i].feature == first[i] && fabs(contacts[i].dist) < 1e-14);
    }
  }
  int corners = 0;
  for (int i = 0; i < 8; ++i) {
    corners += first[i] == 0 || first[i] == 39 || first[i] == 1560 || first[i] == 1599;
  }
  CHECK(corners == 4);
  point_cloud_destroy(cloud);
}

/* ---------------------------------------------------------------- two clouds */

static void test_two_clouds(void) {
  static double other[3 * POINTS_MAX];
  static double distance[300 * 200];
  for (int repeat = 0; repeat < 60; ++repeat) {
    const int count_a = repeat % 3 ? 300 : 1 + repeat % 7, count_b = repeat % 4 ? 200 : 5;
    fill_points(repeat % CLOUD_KIND_COUNT, count_a, 1.0);
    memcpy(other, points, sizeof other);
    point_cloud *cloud_a = point_cloud_create(points, count_a, 1 + repeat % 8);
    fill_points((repeat / 2) % CLOUD_KIND_COUNT, count_b, 0.5);
    point_cloud *cloud_b = point_cloud_create(points, count_b, 5);
    shape a = cloud_shape(cloud_a, 0.05), b = cloud_shape(cloud_b, repeat % 2 ? 0.0 : 0.1);
    contact_point found[CONTACTS_PER_PAIR_MAX];
    vec3_set(b.placed.pos, uniform(-2, 2), uniform(-2, 2), uniform(-1, 1));
    const double margin = repeat % 5 ? INFINITY : 0.3;
    const int n = shapes_collide(placed(&a), placed(&b), margin, found);
    int in_range = 0;
    for (int i = 0; i < count_a; ++i) {
      for (int j = 0; j < count_b; ++j) {
        double x[3], y[3], d[3];
        point_in_world(y, &b, j);
        vec3_sub(d, other + 3 * i, cloud_a->center);
        mat3_mul_vec(x, a.placed.rot, d);
        vec3_add(x, x, a.placed.pos);
        distance[i * count_b + j] = vec3_error(x, y) - a.size[0] - b.size[0];
        in_range += distance[i * count_b + j] <= margin;
      }
    }
    const int k = cloud_a->contact_count > 5 ? cloud_a->contact_count : 5;
    CHECK(n == (in_range < k ? in_range : k));
    qsort(distance, (size_t)(count_a * count_b), sizeof(double), compare_doubles);
    double own[CONTACTS_PER_PAIR_MAX];
    for (int i = 0; i < n; ++i) {
      own[i] = found[i].dist;
    }
    qsort(own, (size_t)n, sizeof(double), compare_doubles);
    for (int i = 0; i < n; ++i) {
      CHECK_NEAR(own[i], distance[i], 1e-10);
    }
    point_cloud_destroy(cloud_a);
    point_cloud_destroy(cloud_b);
  }
}

int main(void) {
  static hull h;
  random_hull(&h, 14, 0.6);
  meshes[0] = hull_mesh(&h);
  sphere_hull(&h, 3, 0.5);
  meshes[1] = hull_mesh(&h);
  test_trees();
  test_nearest();
  test_derivatives();
  test_ties();
  test_two_clouds();
  convex_mesh_destroy(meshes[0]);
  convex_mesh_destroy(meshes[1]);
  return check_report();
}
