/* Contacts of convex meshes with every shape: optimal by a bound that knows nothing of the method,
 * equal to boxes where they are boxes, the same from either side and wherever they are, and their
 * derivatives. */
#include "geometry/convex.h"
#include "geometry/surface.h"
#include "geometry_derivatives.h"
#include "mesh_scenes.h"

static hull H;

enum { KIND_COUNT = 5, SINGLE_PRECISION = 5 };
static const char *const KIND[KIND_COUNT + 1] = {"box", "prism",  "round",
                                                 "few", "sphere", "single"};

/* A mesh of a kind; to be destroyed. */
static convex_mesh *random_mesh(int kind, double scale) {
  switch (kind) {
  case 0:
    box_hull(&H, scale * log_uniform(0.1, 1.0), scale * log_uniform(0.1, 1.0),
             scale * log_uniform(0.1, 1.0));
    break;
  case 1:
    prism_hull(&H, 3 + (int)uniform(0.0, 6.0), scale * log_uniform(0.1, 1.0),
               scale * log_uniform(0.1, 1.0));
    break;
  case 2:
    prism_hull(&H, 12 + (int)uniform(0.0, 60.0), scale * log_uniform(0.1, 1.0),
               scale * log_uniform(0.1, 1.0));
    break;
  case 3:
    random_hull(&H, 4 + (int)uniform(0.0, 16.0), scale);
    break;
  case SINGLE_PRECISION: { /* as files hold them: faces are flat to rounding */
    double rot[9];
    convex_mesh_destroy(random_mesh((int)uniform(0.0, 3.0), scale));
    random_rotation(rot);
    for (int i = 0; i < H.vertex_count; ++i) {
      double x[3];
      mat3_mul_vec(x, rot, H.vertex + 3 * i);
      for (int k = 0; k < 3; ++k) {
        H.vertex[3 * i + k] = (double)(float)x[k];
      }
    }
    break;
  }
  default:
    sphere_hull(&H, 2 + (int)uniform(0.0, 2.0), scale * log_uniform(0.1, 1.0));
  }
  return hull_mesh(&H);
}

static shape mesh_shape(const convex_mesh *mesh, double scale) {
  shape s = random_shape(QD_MESH, scale);
  s.placed.mesh = mesh;
  return s;
}

/* As random_scene. */
static void mesh_scene(const convex_mesh *mesh, int type_b, const convex_mesh *other, double scale,
                       shape *a, shape *b) {
  double offset[3];
  *a = mesh_shape(mesh, scale);
  *b = type_b == QD_MESH ? mesh_shape(other, scale) : random_shape(type_b, scale);
  random_unit(offset);
  vec3_axpy(b->placed.pos, 2.0 * scale, offset);
  shape_approach(a, b, uniform(-0.8, 1.0) * fmax(skin(b), 0.05 * scale));
}

/* Signed distance of x from a shape: a mesh's planes (a lower bound outside), others as spheres see
 * them. */
static double depth_at(shape *s, const double x[3]) {
  double difference[3], y[3], excess;
  if (s->placed.type == QD_MESH) {
    vec3_sub(difference, x, s->placed.pos);
    mat3_tmul_vec(y, s->placed.rot, difference);
    mesh_polygon_nearest(s->placed.mesh, y, &excess);
    return excess;
  }
  shape point = shape_make(QD_SPHERE, 1e-6, 0.0, 0.0);
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  vec3_copy(point.placed.pos, x);
  shapes_collide(placed(s), placed(&point), INFINITY, contacts);
  return contacts[0].dist + 1e-6;
}

/* How far B is from A along n. */
static double separation(const shape *a, const shape *b, const double n[3]) {
  convex_pair pair;
  double x_a[3], x_b[3];
  shape own = *a, ball = *b;
  if (b->placed.type == QD_SPHERE) { /* a capsule of no length */
    shape core = shape_make(QD_CAPSULE, ball.size[0], 0.0, 0.0);
    vec3_copy(core.placed.pos, ball.placed.pos);
    return separation(a, &core, n);
  }
  convex_pair_init(&pair, placed(&own), placed(&ball));
  return convex_support(&pair, n, x_a, x_b) - skin(a) - skin(b);
}

/* The largest separation over the normals of faces and the products of edges: of two overlapping
 * polyhedra the signed distance. */
static double polyhedra_separation(shape *a, shape *b) {
  const convex_mesh *m[2] = {a->placed.mesh, b->placed.mesh};
  const double *rot[2] = {a->placed.rot, b->placed.rot};
  double best = -INFINITY, n[3];
  for (int k = 0; k < 2; ++k) {
    for (int p = 0; p < m[k]->polygon_count; ++p) {
      mat3_mul_vec(n, rot[k], m[k]->normal + 3 * p);
      vec3_scale(n, n, k == 0 ? 1.0 : -1.0);
      best = fmax(best, separation(a, b, n));
    }
  }
  for (int i = 0; i < m[0]->edge_count; ++i) {
    for (int j = 0; j < m[1]->edge_count; ++j) {
      double local[3], world[2][3];
      for (int k = 0; k < 2; ++k) {
        const int *ends = m[k]->edge_vertex + 2 * (k == 0 ? i : j);
        vec3_sub(local, m[k]->vertex + 3 * ends[1], m[k]->vertex + 3 * ends[0]);
        vec3_normalize(local);
        mat3_mul_vec(world[k], rot[k], local);
      }
      vec3_cross(n, world[0], world[1]);
      if (vec3_normalize(n) > 1e-6) {
        best = fmax(best, separation(a, b, n));
        vec3_scale(n, n, -1.0);
        best = fmax(best, separation(a, b, n));
      }
    }
  }
  return best;
}

static int has_round_faces(const shape *s) {
  int any = s->placed.type == QD_CYLINDER;
  for (int p = 0; s->placed.type == QD_MESH && p < s->placed.mesh->polygon_count; ++p) {
    const int *start = s->placed.mesh->side_start + p;
    any |= start[1] - start[0] > MESH_OUTLINE_MAX;
  }
  return any;
}

/* Witness points in both shapes whose distance is the separation along the normal are closest
 * points; in penetration nothing separates them by less. Returns the excess over the exact depth.
 */
static void check_optimal(shape *a, shape *b, const char *kind, double scale, double *worst) {
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  const int type = b->placed.type;
  const int count = shapes_collide(placed(a), placed(b), INFINITY, contacts);
  CHECK_SAY(count > 0 && count <= CONTACTS_PER_PAIR_MAX, "%s %s: %d", kind, TYPE_NAME[type], count);
  int first = 0;
  for (int i = 0; i < count; ++i) {
    first = contacts[i].dist < contacts[first].dist ? i : first;
  }
  const contact_point *c = contacts + first;
  const int round = has_round_faces(a) || has_round_faces(b);
  const double rough = shape_roughness(placed(a)) + shape_roughness(placed(b));
  const double covered = (round ? 3e-4 : 2e-10) * scale + 2.0 * rough;
  if (type != QD_PLANE) {
    const double reached = separation_beside(a, b, c->normal, round ? CAP_TILT : FACE_TILT,
                                             c->dist - 0.9 * covered, separation);
    worst[0] = fmax(worst[0], round ? 0.0 : fabs(reached - c->dist) / scale);
    CHECK_SAY(fabs(reached - c->dist) < covered, "%s %s: %g along the normal, not %g", kind,
              TYPE_NAME[type], reached / scale, c->dist / scale);
  }
  for (int i = 0; i < count; ++i) {
    double on_a[3], on_b[3];
    vec3_copy(on_a, contacts[i].pos);
    vec3_copy(on_b, contacts[i].pos);
    vec3_axpy(on_a, -0.5 * contacts[i].dist, contacts[i].normal);
    vec3_axpy(on_b, 0.5 * contacts[i].dist, contacts[i].normal);
    const double out_of_a = depth_at(a, on_a), out_of_b = depth_at(b, on_b);
    CHECK_NEAR(vec3_norm(contacts[i].normal), 1.0, 1e-14);
    CHECK_SAY(fmax(out_of_a, out_of_b) < 1e-11 * scale + rough, "%s %s: witness out by %g %g", kind,
              TYPE_NAME[type], out_of_a / scale, out_of_b / scale);
  }
  if (type == QD_PLANE || c->dist > 0.0) {
    return;
  }
  const int small =
      type == QD_MESH && a->placed.mesh->edge_count * b->placed.mesh->edge_count < 3000;
  const double best = small ? polyhedra_separation(a, b) : searched_separation(a, b, separation);
  worst[1] = fmax(worst[1], (best - c->dist) / scale);
  CHECK_SAY(best <= c->dist + covered, "%s %s: %g found, %g given", kind, TYPE_NAME[type],
            best / scale, c->dist / scale);
}

static void check_scene(int kind, int type, int scene, double scale, double worst[2]) {
  shape a, b;
  scene_begin();
  convex_mesh *mesh = random_mesh(kind, scale);
  convex_mesh *other = type == QD_MESH ? random_mesh(scene % KIND_COUNT, scale) : NULL;
  mesh_scene(mesh, type, other, scale, &a, &b);
  check_optimal(&a, &b, KIND[kind], scale, worst);
  convex_mesh_destroy(mesh);
  convex_mesh_destroy(other);
}

static void check_values(int kind, int type, double scale) {
  double worst[2] = {0.0, 0.0};
  for (int scene = 0; scene < 300; ++scene) {
    check_scene(kind, type, scene, scale, worst);
  }
  printf("%-6s %-9s scale %-6g along the normal %.1e not deepest %.1e\n", KIND[kind],
         TYPE_NAME[type], scale, worst[0], worst[1]);
}

/* The axis of a capsule deep inside a thin disc of many corners, where most faces of the polytope
 * are slivers: the best of all faces and of all products of edges with the axis. */
static void check_thin_discs(void) {
  double worst = 0.0;
  for (int scene = 0; scene < 400; ++scene) {
    scene_begin();
    prism_hull(&H, 3 + scene % 50, 1.0, log_uniform(2e-3, 0.1));
    convex_mesh *mesh = hull_mesh(&H);
    shape a = mesh_shape(mesh, 1.0);
    shape b = shape_make(QD_CAPSULE, uniform(0.1, 0.5), uniform(0.5, 2.5), 0.0);
    contact_point contacts[CONTACTS_PER_PAIR_MAX];
    double offset[3], axis[3], best = -INFINITY, n[3];
    random_rotation(b.placed.rot);
    random_unit(offset);
    vec3_copy(b.placed.pos, a.placed.pos);
    vec3_axpy(b.placed.pos, 0.3, offset);
    const int count = shapes_collide(placed(&a), placed(&b), INFINITY, contacts);
    for (int p = 0; p < mesh->polygon_count; ++p) {
      mat3_mul_vec(n, a.placed.rot, mesh->normal + 3 * p);
      best = fmax(best, separation(&a, &b, n));
    }
    mat3_column(axis, b.placed.rot, 2);
    for (int e = 0; e < mesh->edge_count; ++e) {
      mat3_mul_vec(n, a.placed.rot, mesh->edge_axis + 3 * e);
      vec3_cross(n, n, axis);
      for (int k = 0; k < 2 && vec3_normalize(n) > 1e-6; ++k) {
        best = fmax(best, separation(&a, &b, n));
        vec3_scale(n, n, -1.0);
      }
    }
    if (best < -skin(&b)) { /* the axis is inside */
      double nearest = INFINITY;
      for (int i = 0; i < count; ++i) {
        nearest = fmin(nearest, contacts[i].dist);
      }
      worst = fmax(worst, fabs(best - nearest));
      CHECK_SAY(fabs(best - nearest) < 3e-4, "%d corners: %g, not %g", 3 + scene % 50, nearest,
                best);
    }
    convex_mesh_destroy(mesh);
  }
  printf("thin discs and capsules: %.1e\n", worst);
}

/* ---------------------------------------------------------------- boxes that are meshes */

static double nearest_dist(const contact_point *contacts, int count) {
  double nearest = INFINITY;
  for (int i = 0; i < count; ++i) {
    nearest = fmin(nearest, contacts[i].dist);
  }
  return nearest;
}

static void check_boxes(int type) {
  int same_count = 0;
  for (int scene = 0; scene < 500; ++scene) {
    shape box, b, as_mesh;
    contact_point of_box[CONTACTS_PER_PAIR_MAX], of_mesh[CONTACTS_PER_PAIR_MAX];
    random_scene(QD_BOX, type, 1.0, &box, &b);
    if (scene % 3 == 0 && type != QD_SPHERE) { /* side by side */
      memcpy(b.placed.rot, box.placed.rot, sizeof b.placed.rot);
      shape_approach(&box, &b, uniform(-0.02, 0.02));
    }
    box_hull(&H, box.size[0], box.size[1], box.size[2]);
    convex_mesh *mesh = hull_mesh(&H);
    as_mesh = box;
    as_mesh.placed.type = QD_MESH;
    as_mesh.placed.mesh = mesh;
    const int count = shapes_collide(placed(&box), placed(&b), INFINITY, of_box);
    const int other = shapes_collide(placed(&as_mesh), placed(&b), INFINITY, of_mesh);
    const double dist = nearest_dist(of_box, count), found = nearest_dist(of_mesh, other);
    CHECK_SAY(fabs(dist - found) < 1e-10, "%s: %g, not %g, of %d %d contacts", TYPE_NAME[type],
              found, dist, other, count);
    same_count += count == other;
    if (count == other) { /* the same contacts, in another order */
      for (int i = 0; i < count; ++i) {
        double least = INFINITY;
        for (int k = 0; k < count; ++k) {
          least = fmin(least, vec3_error(of_box[i].pos, of_mesh[k].pos) +
                                  vec3_error(of_box[i].normal, of_mesh[k].normal) +
                                  fabs(of_box[i].dist - of_mesh[k].dist));
        }
        CHECK_SAY(least < 1e-7 || type == QD_BOX || type == QD_PLANE || scene % 3 == 0, "%s: %g",
                  TYPE_NAME[type], least);
      }
    }
    convex_mesh_destroy(mesh);
  }
  printf("box as mesh, %s: as many contacts in %d of 500\n", TYPE_NAME[type], same_count);
}

/* ---------------------------------------------------------------- symmetry */

static void check_symmetry(int kind, int type) {
  for (int scene = 0; scene < 200; ++scene) {
    shape a, b;
    contact_point straight[CONTACTS_PER_PAIR_MAX], other[CONTACTS_PER_PAIR_MAX];
    scene_begin();
    convex_mesh *mesh = random_mesh(kind, 1.0);
    convex_mesh *second = type == QD_MESH ? random_mesh(scene % KIND_COUNT, 1.0) : NULL;
    mesh_scene(mesh, type, second, 1.0, &a, &b);
    const int count = shapes_collide(placed(&a), placed(&b), INFINITY, straight);
    int other_count = shapes_collide(placed(&b), placed(&a), INFINITY, other);
    CHECK_NEAR(nearest_dist(straight, count), nearest_dist(other, other_count), 1e-9);
    for (int i = 0; i < other_count && count == other_count && type != QD_MESH; ++i) {
      CHECK_SAY(vec3_error(straight[i].pos, other[i].pos) == 0.0, "%s", TYPE_NAME[type]);
      CHECK_NEAR(vec3_dot(straight[i].normal, other[i].normal), -1.0, 1e-14);
    }
    double turn[3], shift[3];
    const double pivot[3] = {0.0, 0.0, 0.0};
    random_unit(turn);
    random_unit(shift);
    vec3_scale(turn, turn, 2.0);
    shape_move(&a, turn, pivot, shift);
    if (b.placed.type == QD_SPHERE) { /* has no axes */
      memset(b.placed.rot, 0, sizeof b.placed.rot);
    }
    shape_move(&b, turn, pivot, shift);
    other_count = shapes_collide(placed(&a), placed(&b), INFINITY, other);
    CHECK_NEAR(nearest_dist(straight, count), nearest_dist(other, other_count), 1e-10);
    convex_mesh_destroy(mesh);
    convex_mesh_destroy(second);
  }
}

/* ---------------------------------------------------------------- derivatives */

static void compare_scene(int kind, int type, int scene, tally *result) {
  shape a, b;
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  scene_begin();
  convex_mesh *mesh = random_mesh(kind, 1.0);
  convex_mesh *other = type == QD_MESH ? random_mesh(scene % KIND_COUNT, 1.0) : NULL;
  mesh_scene(mesh, type, other, 1.0, &a, &b);
  const int swap = scene % 2;
  shape *first = swap ? &b : &a, *second = swap ? &a : &b;
  const int count = shapes_collide(placed(first), placed(second), INFINITY, contacts);
  for (int i = 0; i < count; ++i) {
    compare_derivative(first, second, contacts + i, 1.0, 0.1, result);
  }
  convex_mesh_destroy(mesh);
  convex_mesh_destroy(other);
}

static void check_tally(const tally *result, int kind, int type) {
  for (int k = 0; k < 3; ++k) {
    scene_state = result->scene[k];
    CHECK_SAY(result->error[k] < result->tolerance, "%s %s %d: %g", KIND[kind], TYPE_NAME[type], k,
              result->error[k]);
  }
}

static void check_derivatives(int kind, int type) {
  tally result = {.tolerance = 1e-6};
  for (int scene = 0; scene < 300; ++scene) {
    compare_scene(kind, type, scene, &result);
  }
  printf("%-6s %-9s derivative: dist %.1e pos %.1e normal %.1e compared %d skipped %d\n",
         KIND[kind], TYPE_NAME[type], result.error[0], result.error[1], result.error[2],
         result.compared, result.skipped);
  check_tally(&result, kind, type);
  CHECK_SAY(3 * result.skipped < result.compared, "%d skipped", result.skipped);
}

/* Scenes that failed once, in both orders. */
static void check_found(void) {
  static const struct {
    int kind, type;
    uint64_t state;
  } SCENES[] = {
      /* the triangles of a polygon tilt by rounding: one of them, or the polygon */
      {SINGLE_PRECISION, QD_CYLINDER, 13745293268569563572u},
      {SINGLE_PRECISION, QD_CYLINDER, 9676765189352440017u},
      {SINGLE_PRECISION, QD_ELLIPSOID, 5806446316362323180u},
      /* a tip 5e-8 beside the edge of a face */
      {1, QD_ELLIPSOID, 4298644383942234574u},
      /* faces that are parallel to a part of 1e-3 and 1e-5 rad */
      {3, QD_CYLINDER, 11355125522843339292u},
      {3, QD_MESH, 9135793433211245889u},
      /* two ways out that are equally short to 2e-8, and a flat one with a step that is too long */
      {4, QD_CYLINDER, 15844418071332543052u},
      {2, QD_ELLIPSOID, 1426509094858122677u},
  };
  for (size_t i = 0; i < sizeof SCENES / sizeof SCENES[0]; ++i) {
    for (int scene = 3; scene <= 8; scene += 5) { /* of two meshes: the same other one */
      tally result = {.tolerance = 1e-6};
      double worst[2] = {0.0, 0.0};
      random_state = SCENES[i].state;
      check_scene(SCENES[i].kind, SCENES[i].type, scene, 1.0, worst);
      random_state = SCENES[i].state;
      compare_scene(SCENES[i].kind, SCENES[i].type, scene, &result);
      check_tally(&result, SCENES[i].kind, SCENES[i].type);
    }
  }
}

int main(void) {
  static const int TYPES[] = {QD_PLANE,    QD_SPHERE,    QD_CAPSULE, QD_BOX,
                              QD_CYLINDER, QD_ELLIPSOID, QD_MESH};
  for (int i = 0; i < 7; ++i) {
    for (int kind = 0; kind < KIND_COUNT; ++kind) {
      check_values(kind, TYPES[i], 1.0);
      check_symmetry(kind, TYPES[i]);
      check_derivatives(kind, TYPES[i]);
    }
    check_values(SINGLE_PRECISION, TYPES[i], 1.0);
    check_derivatives(SINGLE_PRECISION, TYPES[i]);
    for (int k = 0; k < 2; ++k) {
      check_values(3, TYPES[i], k ? 1e-3 : 1e3);
    }
    if (TYPES[i] != QD_MESH) {
      check_boxes(TYPES[i]);
    }
  }
  check_thin_discs();
  check_found();
  return check_report();
}
