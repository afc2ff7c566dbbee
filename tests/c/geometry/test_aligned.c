/* Pairs of shapes whose axes are parallel, to rounding or almost: standing, lying and upside down,
 * turned to any yaw about the common normal, tilted by 0 and 1e-17 to 1e-6, on planes and shapes
 * tilted in the world. Directions found as a difference of vectors that cancel are noise there.
 *
 * The witness is the support function: the signed distance is the largest separation over all
 * directions, so the nearest contact must have the separation along its own normal, and no
 * direction may have more. */
#include "mesh_scenes.h"

enum { YAWS = 3000, TILTS = 14 };

#define PI 3.14159265358979323846
#define PI_2 1.57079632679489661923

typedef struct solid {
  shape shape;
  const hull *hull; /* of a mesh */
} solid;

static const placed_shape *solid_placed(solid *s) { return placed(&s->shape); }

/* max of n.x over the points x of a solid, from its centre, in closed form */
static double reach(const solid *s, const double n[3]) {
  double y[3], height = -INFINITY;
  const double *size = s->shape.size;
  if (s->shape.placed.type == QD_SPHERE) {
    return size[0];
  }
  mat3_tmul_vec(y, s->shape.placed.rot, n);
  switch (s->shape.placed.type) {
  case QD_PLANE:
    return hypot(y[0], y[1]) < 1e-14 && y[2] > 0.0 ? 0.0 : INFINITY;
  case QD_CAPSULE:
    return size[0] + size[1] * fabs(y[2]);
  case QD_BOX:
    return size[0] * fabs(y[0]) + size[1] * fabs(y[1]) + size[2] * fabs(y[2]);
  case QD_CYLINDER:
    return size[0] * hypot(y[0], y[1]) + size[1] * fabs(y[2]);
  case QD_ELLIPSOID:
    return vec3_norm((double[3]){size[0] * y[0], size[1] * y[1], size[2] * y[2]});
  default:
    for (int i = 0; i < s->hull->vertex_count; ++i) {
      height = fmax(height, vec3_dot(y, s->hull->vertex + 3 * i));
    }
    return height;
  }
}

static double separation(const solid *a, const solid *b, const double n[3]) {
  double minus[3], d[3];
  vec3_scale(minus, n, -1.0);
  vec3_sub(d, b->shape.placed.pos, a->shape.placed.pos);
  return vec3_dot(n, d) - reach(a, n) - reach(b, minus);
}

/* The largest separation near a direction. */
static double separation_near(const solid *a, const solid *b, const double n[3]) {
  double best = separation(a, b, n);
  for (double width = 0.3; width > 1e-9; width *= 0.5) {
    double turn[3], other[3];
    random_unit(turn);
    vec3_copy(other, n);
    vec3_axpy(other, width, turn);
    vec3_normalize(other);
    best = fmax(best, separation(a, b, other));
  }
  return best;
}

static double solid_size(const solid *s) {
  const double *size = s->shape.size;
  return s->shape.placed.type == QD_MESH     ? s->shape.placed.mesh->radius
         : s->shape.placed.type == QD_SPHERE ? size[0]
                                             : size[0] + size[1] + size[2];
}

static solid solid_make(int type, const hull *h, convex_mesh *mesh) {
  solid s = {
      shape_make(type, log_uniform(0.02, 1.0), log_uniform(0.02, 1.0), log_uniform(0.02, 1.0)), h};
  s.shape.placed.mesh = mesh;
  if (type == QD_PLANE || type == QD_MESH) {
    vec3_set(s.shape.size, 0.0, 0.0, 0.0);
  } else if (type != QD_BOX && type != QD_ELLIPSOID) {
    s.shape.size[2] = 0.0;
    s.shape.size[1] = type == QD_SPHERE ? 0.0 : s.shape.size[1];
  }
  return s;
}

/* rot <- R rot, R the rotation by this vector: as bodies turn, by quaternions. */
static void turn_by(double rot[9], const double vector[3]) {
  double R[9], turned[9];
  rotation_exp(R, vector);
  mat3_mul(turned, R, rot);
  memcpy(rot, turned, sizeof turned);
}

/* One of the shape's axes upwards, then a yaw, then a tilt. */
static void stand(solid *s, int pose, double yaw, const double tilt[3]) {
  static const double UP[6][3] = {{0.0, 0.0, 0.0},   {PI_2, 0.0, 0.0}, {-PI_2, 0.0, 0.0},
                                  {0.0, -PI_2, 0.0}, {0.0, PI_2, 0.0}, {PI_2, 0.0, 0.0}};
  const double half_turn[3] = {PI, 0.0, 0.0}, about[3] = {0.0, 0.0, yaw};
  if (s->shape.placed.type == QD_SPHERE) {
    return;
  }
  turn_by(s->shape.placed.rot, pose == 5 ? half_turn : UP[pose]);
  turn_by(s->shape.placed.rot, about);
  turn_by(s->shape.placed.rot, tilt);
}

/* A point lies in a solid as far as a few directions can tell: how far it is out of it. */
static double out_of(const solid *s, const double x[3], const double n[3]) {
  double arm[3], most = -INFINITY;
  vec3_sub(arm, x, s->shape.placed.pos);
  for (int k = 0; k < 12; ++k) {
    double along[3];
    random_unit(along);
    vec3_normalize(along);
    if (k < 2) {
      vec3_scale(along, n, k ? -1.0 : 1.0);
    } else if (s->shape.placed.type != QD_SPHERE && k < 8) {
      mat3_column(along, s->shape.placed.rot, k % 3);
      vec3_scale(along, along, k < 5 ? 1.0 : -1.0);
    }
    if (s->shape.placed.type == QD_PLANE) {
      mat3_column(along, s->shape.placed.rot, 2);
    }
    most = fmax(most, vec3_dot(along, arm) - reach(s, along));
  }
  return most;
}

static void check_contact(const solid *a, const solid *b, const contact_point *c, double tolerance,
                          const char *name) {
  double on_a[3], on_b[3];
  vec3_copy(on_a, c->pos);
  vec3_copy(on_b, c->pos);
  vec3_axpy(on_a, -0.5 * c->dist, c->normal);
  vec3_axpy(on_b, 0.5 * c->dist, c->normal);
  const double outside = fmax(out_of(a, on_a, c->normal), out_of(b, on_b, c->normal));
  CHECK_SAY(fabs(vec3_norm(c->normal) - 1.0) < 1e-14, "%s", name);
  CHECK_SAY(outside < tolerance, "%s: a witness is %g outside", name, outside);
}

static void check_derivative(solid *a, solid *b, const contact_point *c, double size,
                             const char *name) {
  contact_point_derivative d, sizes;
  double sum = 0.0;
  shapes_collide_derivative(solid_placed(a), solid_placed(b), c, &d);
  shapes_size_derivative(solid_placed(a), solid_placed(b), c, &sizes);
  for (int j = 0; j < 6; ++j) {
    sum += fabs(d.dist[j]) / (j < 3 ? size : 1.0) + fabs(sizes.dist[j]);
  }
  for (int i = 0; i < 18; ++i) {
    sum += fabs(d.pos[i]) + fabs(d.normal[i]) + fabs(sizes.pos[i]) + fabs(sizes.normal[i]);
  }
  CHECK_SAY(isfinite(sum), "%s", name);
}

static int is_mesh(const solid *s) { return s->shape.placed.type == QD_MESH; }

static double roughness(const solid *s) {
  return is_mesh(s) ? s->shape.placed.mesh->roughness : 0.0;
}

static void check_pair(solid *a, solid *b, double tilt, const char *name) {
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  const double size = fmin(a->shape.placed.type == QD_PLANE ? INFINITY : solid_size(a),
                           b->shape.placed.type == QD_PLANE ? INFINITY : solid_size(b));
  const double sum = solid_size(a) + solid_size(b);
  /* and corners of round caps and faces of a mesh may stand for closest points */
  const double coarse = is_mesh(a) || is_mesh(b) ? 1e-4 : 0.0;
  const double rough = roughness(a) + roughness(b);
  const double tolerance = 2e-10 * sum + (3.0 * tilt + coarse) * size + 2.0 * rough;
  const int count = shapes_collide(solid_placed(a), solid_placed(b), INFINITY, contacts);
  int first = 0;
  CHECK_SAY(count > 0, "%s", name);
  for (int i = 0; i < count; ++i) {
    first = contacts[i].dist < contacts[first].dist ? i : first;
    check_contact(a, b, contacts + i, 1e-7 * sum + tilt * size + rough, name);
    check_derivative(a, b, contacts + i, size, name);
  }
  const contact_point *nearest = contacts + first;
  /* a face's normal is the nearest contact's to the tilt, which the whole of the other may feel */
  const double reached = separation(a, b, nearest->normal);
  CHECK_SAY(fabs(reached - nearest->dist) < tolerance + tilt * sum,
            "%s, tilt %g: %g along the normal, not %g", name, tilt, reached, nearest->dist);
  double best = separation_near(a, b, nearest->normal);
  for (int k = 0; k < 12; ++k) {
    double n[3];
    const shape *axes = k < 6 ? &a->shape : &b->shape;
    if (axes->placed.type != QD_SPHERE) {
      mat3_column(n, axes->placed.rot, k % 3);
      vec3_scale(n, n, k % 6 < 3 ? 1.0 : -1.0);
      best = fmax(best, separation_near(a, b, n));
    }
  }
  CHECK_SAY(fabs(best - nearest->dist) < tolerance, "%s, tilt %g: %g found, %g given", name, tilt,
            best, nearest->dist);
  CHECK_SAY(shapes_collide(solid_placed(a), solid_placed(b), best + tolerance, contacts) > 0,
            "%s, tilt %g: none within %g", name, tilt, best);
}

/* B above A at a small gap, its centre over A's, beside it or anywhere over it. */
static void place_above(const solid *a, solid *b, int how, double gap, double size) {
  const double up[3] = {0.0, 0.0, 1.0}, down[3] = {0.0, 0.0, -1.0};
  double *x = b->shape.placed.pos;
  vec3_set(x, 0.0, 0.0, reach(a, up) + reach(b, down) + gap);
  if (how % 3 == 1) {
    x[0] = uniform(-0.5, 0.5) * size;
  } else if (how % 3 == 2) {
    x[0] = uniform(-2.0, 2.0) * size;
    x[1] = uniform(-2.0, 2.0) * size;
  }
}

static void check_aligned(int type_a, int type_b, const hull *hulls, convex_mesh **meshes) {
  char name[64];
  for (int k = 0; k < YAWS; ++k) {
    const int swap = k % 2, pick_a = k % 3, pick_b = k / 3 % 3;
    solid a = solid_make(type_a, hulls + pick_a, meshes[pick_a]);
    solid b = solid_make(type_b, hulls + pick_b, meshes[pick_b]);
    const double none[3] = {0.0, 0.0, 0.0}, zero[3] = {0.0, 0.0, 0.0};
    double tilt[3] = {0.0, 0.0, 0.0};
    const int grade = k / 7 % TILTS;
    const double angle = grade < 2 ? 0.0 : pow(10.0, grade - 19.0);
    random_unit(tilt);
    tilt[2] = 0.0;
    vec3_normalize(tilt);
    vec3_scale(tilt, tilt, angle);
    if (k % 5 == 0 && type_a == type_b) { /* equal faces */
      b = a;
    }
    stand(&a, type_a == QD_PLANE ? 0 : k / 11 % 6, grade == 0 ? 0.0 : uniform(-PI, PI), none);
    stand(&b, k / 13 % 6, grade == 0 ? PI_2 * (k % 4) : uniform(-PI, PI), tilt);
    const double size = fmin(type_a == QD_PLANE ? INFINITY : solid_size(&a), solid_size(&b));
    const double gaps[4] = {0.0, 1e-3 * size, -1e-3 * size, uniform(-1e-2, 0.1) * size};
    place_above(&a, &b, k / 17, gaps[k / 2 % 4], size);
    if (k % 4 > 1) { /* the whole scene tilted and moved */
      double turn[3], shift[3];
      random_unit(turn);
      random_unit(shift);
      vec3_scale(turn, turn, uniform(0.0, 3.0));
      shape_move(&a.shape, turn, zero, shift);
      shape_move(&b.shape, turn, zero, shift);
    }
    snprintf(name, sizeof name, "%s %s %d", TYPE_NAME[swap ? type_b : type_a],
             TYPE_NAME[swap ? type_a : type_b], k);
    check_pair(swap ? &b : &a, swap ? &a : &b, angle, name);
  }
}

/* A small solid on the flat top of a large one, away from its rim, slightly tilted and spun about
 * its own axis: the distance is the height of its lowest point, to a ten-thousandth of the small
 * one where its cap takes part as a polygon, and so does not jump as it spins. */
static void check_small_on_large(solid *large, int type, const hull *h, convex_mesh *mesh) {
  const double up[3] = {0.0, 0.0, 1.0}, down[3] = {0.0, 0.0, -1.0};
  for (int scene = 0; scene < 60; ++scene) {
    solid first = solid_make(type, h, mesh);
    vec3_scale(first.shape.size, first.shape.size, log_uniform(1e-3, 0.3));
    const double small = is_mesh(&first) ? first.shape.placed.mesh->radius : first.shape.size[0];
    const double coarse = type == QD_BOX ? 1e-9 : 1.01e-4 * small;
    const double angle = log_uniform(1e-7, 1e-2), way = uniform(-PI, PI);
    const double tilt[3] = {angle * cos(way), angle * sin(way), 0.0};
    const double x = uniform(-0.3, 0.3), y = uniform(-0.3, 0.3), gap = uniform(0.0, 0.01) * small;
    double last = NAN;
    for (int k = 0; k < 90; ++k) {
      contact_point contacts[CONTACTS_PER_PAIR_MAX];
      solid b = first;
      double nearest = INFINITY;
      stand(&b, 0, 0.01 * k, tilt);
      const double below = reach(&b, down);
      vec3_set(b.shape.placed.pos, x, y, reach(large, up) + below + gap);
      const int swap = scene % 2;
      const int count = shapes_collide(solid_placed(swap ? &b : large),
                                       solid_placed(swap ? large : &b), INFINITY, contacts);
      for (int i = 0; i < count; ++i) {
        nearest = fmin(nearest, contacts[i].dist);
      }
      CHECK_SAY(fabs(nearest - gap) < coarse, "%s on %s, tilt %g: %g of its size off",
                TYPE_NAME[type], TYPE_NAME[large->shape.placed.type], angle,
                (nearest - gap) / small);
      CHECK_SAY(!(fabs(nearest - last) > 1.1 * coarse), "%s on %s: jumps by %g", TYPE_NAME[type],
                TYPE_NAME[large->shape.placed.type], (nearest - last) / small);
      last = nearest;
    }
  }
}

static void check_sizes(void) {
  static hull hulls[3];
  solid can = solid_make(QD_CYLINDER, NULL, NULL);
  vec3_set(can.shape.size, 1.0, 0.5, 0.0);
  prism_hull(hulls, 24, 1.0, 0.5);
  prism_hull(hulls + 1, 40, 1.0, 0.5); /* more corners than it may clip with */
  prism_hull(hulls + 2, 24, 0.01, 0.02);
  convex_mesh *meshes[3] = {hull_mesh(hulls), hull_mesh(hulls + 1), hull_mesh(hulls + 2)};
  for (int k = 0; k < 3; ++k) {
    solid large = k < 2 ? solid_make(QD_MESH, hulls + k, meshes[k]) : can;
    for (int small = 0; small < 3; ++small) {
      const int type = small == 0 ? QD_CYLINDER : small == 1 ? QD_BOX : QD_MESH;
      check_small_on_large(&large, type, hulls + 2, meshes[2]);
    }
  }
  for (int i = 0; i < 3; ++i) {
    convex_mesh_destroy(meshes[i]);
  }
}

int main(void) {
  static hull hulls[3];
  convex_mesh *meshes[3];
  box_hull(hulls, 0.3, 0.5, 0.2);
  prism_hull(hulls + 1, 24, 0.4, 0.3);
  sphere_hull(hulls + 2, 2, 0.3);
  for (int i = 0; i < 3; ++i) {
    meshes[i] = hull_mesh(hulls + i);
  }
  for (int a = QD_PLANE; a <= QD_MESH; ++a) {
    for (int b = a == QD_PLANE ? QD_SPHERE : a; b <= QD_MESH; ++b) {
      const int before = check_failures;
      check_aligned(a, b, hulls, meshes);
      printf("%s %s: %d failed\n", TYPE_NAME[a], TYPE_NAME[b], check_failures - before);
    }
  }
  for (int i = 0; i < 3; ++i) {
    convex_mesh_destroy(meshes[i]);
  }
  check_sizes();
  return check_report();
}
