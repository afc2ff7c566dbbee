/* Contacts in chosen cases: numbers one can work out in the head, poses where no normal or no
 * unique point exists, wildly unequal shapes, ways through touching. */
#include "geometry_scenes.h"

static int is_finite_contact(const contact_point *c, const contact_point_derivative *d) {
  double sum = c->dist + vec3_dot(c->pos, c->pos) + vec3_dot(c->normal, c->normal);
  for (int i = 0; i < 6; ++i) {
    sum += fabs(d->dist[i]);
  }
  for (int i = 0; i < 18; ++i) {
    sum += fabs(d->pos[i]) + fabs(d->normal[i]);
  }
  return isfinite(sum);
}

/* Both orders: contacts and derivatives finite, normals unit, distance as given. */
static void check_degenerate(shape a, shape b, double dist, const char *name) {
  for (int swap = 0; swap < 2; ++swap) {
    shape *first = swap ? &b : &a, *second = swap ? &a : &b;
    contact_point contacts[CONTACTS_PER_PAIR_MAX];
    const int count = shapes_collide(placed(first), placed(second), INFINITY, contacts);
    double nearest = INFINITY;
    CHECK_SAY(count > 0, "%s", name);
    for (int i = 0; i < count; ++i) {
      contact_point_derivative derivative;
      shapes_collide_derivative(placed(first), placed(second), contacts + i, &derivative);
      CHECK_SAY(is_finite_contact(contacts + i, &derivative), "%s", name);
      CHECK_SAY(fabs(vec3_norm(contacts[i].normal) - 1.0) < 1e-14, "%s", name);
      nearest = fmin(nearest, contacts[i].dist);
    }
    CHECK_SAY(fabs(nearest - dist) < 4e-15, "%s: %.17g, not %.17g", name, nearest, dist);
  }
}

static void check_degenerate_cases(void) {
  const shape ball = shape_make(QD_SPHERE, 0.25, 0, 0);
  shape box = shape_make(QD_BOX, 1.0, 0.5, 2.0), corner = ball;
  check_degenerate(ball, ball, -0.5, "equal centres");
  check_degenerate(shape_make(QD_SPHERE, 0.0, 0, 0), shape_make(QD_SPHERE, 0.0, 0, 0), 0.0,
                   "two points");
  check_degenerate(ball, box, -0.75, "centre of a box");
  vec3_set(corner.placed.pos, 1.0, 0.5, 2.0);
  check_degenerate(corner, box, -0.25, "centre on a box vertex");
  vec3_set(corner.placed.pos, 1.0, 0.5, 0.3);
  check_degenerate(corner, box, -0.25, "centre on a box edge");
  vec3_set(corner.placed.pos, 1.0, 0.1, 0.3);
  check_degenerate(corner, box, -0.25, "centre on a box face");
  vec3_set(corner.placed.pos, 1.0 + 1e-300, 0.5 + 1e-200, 0.3);
  check_degenerate(corner, box, -0.25, "centre within rounding of a box edge");
  check_degenerate(ball, shape_make(QD_BOX, 0.0, 1.0, 1.0), -0.25, "plate of no thickness");
  check_degenerate(ball, shape_make(QD_CAPSULE, 0.5, 1.0, 0), -0.75, "centre on a capsule's axis");
  check_degenerate(ball, shape_make(QD_CAPSULE, 0.5, 0.0, 0), -0.75, "capsule of no length");
  shape rod = shape_make(QD_CAPSULE, 0.25, 1.0, 0), other = rod;
  check_degenerate(rod, rod, -0.5, "equal capsules");
  vec3_set(other.placed.pos, 0, 0, 2.0);
  check_degenerate(rod, other, -0.5, "capsules end in end");
  vec3_set(other.placed.pos, 0, 0, 2.5);
  check_degenerate(rod, other, 0.0, "capsules end to end");
  vec3_set(other.placed.pos, 0, 0, 1.9999999);
  check_degenerate(rod, other, -0.5, "collinear capsules, hardly overlapping");
  vec3_set(other.placed.pos, 0.5, 0, 2.0);
  check_degenerate(rod, other, 0.0, "parallel capsules, overlapping in one point");
  other = shape_make(QD_CAPSULE, 0.25, 1e-9, 0);
  vec3_set(other.placed.pos, 0.5, 0, 0.3);
  check_degenerate(rod, other, 0.0, "parallel capsule of hardly any length");
  other = shape_make(QD_CAPSULE, 0.25, 0.0, 0);
  check_degenerate(other, other, -0.5, "two capsules of no length");
  check_degenerate(rod, other, -0.5, "capsule of no length on an axis");
  other = rod;
  const double turn[3] = {1.5707963267948966, 0, 0}, zero[3] = {0, 0, 0};
  shape_move(&other, turn, zero, zero);
  check_degenerate(rod, other, -0.5, "crossing axes");
  vec3_set(other.placed.pos, 0, 1.0, 0);
  check_degenerate(rod, other, -0.5, "end on the other's axis");
  check_degenerate(box, rod, -0.75, "capsule in the middle of a box");
  check_degenerate(box, box, -1.0, "equal boxes");
  other = box;
  vec3_set(other.placed.pos, 2.0, 1.0, 4.0);
  check_degenerate(box, other, 0.0, "vertex on vertex");
  vec3_set(other.placed.pos, 2.0, 1.0, 0.0);
  check_degenerate(box, other, 0.0, "edge along edge");
  vec3_set(other.placed.pos, 2.0, 0.0, 0.0);
  check_degenerate(box, other, 0.0, "face on equal face");
  vec3_set(rod.placed.pos, 1.25, 0.0, 0.0);
  check_degenerate(box, rod, 0.0, "capsule along a face");
  vec3_set(rod.placed.pos, 1.0, 0.5, 0.0);
  check_degenerate(box, rod, -0.25, "capsule along an edge, axis on it");
  vec3_set(rod.placed.pos, 1.0, 0.5, 3.0);
  check_degenerate(box, rod, -0.25, "end of a capsule on a vertex");
  shape can = shape_make(QD_CYLINDER, 0.5, 1.0, 0), egg = shape_make(QD_ELLIPSOID, 1.0, 2.0, 0.5);
  check_degenerate(shape_make(QD_PLANE, 0, 0, 0), can, -1.0, "cylinder standing in a plane");
  check_degenerate(shape_make(QD_PLANE, 0, 0, 0), egg, -0.5, "ellipsoid in a plane");
  check_degenerate(ball, egg, -0.75, "centre of an ellipsoid");
  check_degenerate(ball, shape_make(QD_ELLIPSOID, 1.0, 1.0, 1.0), -1.25, "centre of a ball");
  check_degenerate(ball, shape_make(QD_ELLIPSOID, 1.0, 2.0, 1.0), -1.25, "two shortest axes");
  check_degenerate(ball, can, -0.75, "centre of a cylinder");
  corner = ball;
  vec3_set(corner.placed.pos, 0.5, 0.0, 1.0);
  check_degenerate(corner, can, -0.25, "centre on a rim");
  vec3_set(corner.placed.pos, 0.0, 0.0, 0.5);
  check_degenerate(corner, egg, -0.25, "centre on an ellipsoid");
  check_degenerate(shape_make(QD_PLANE, 0, 0, 0), box, -2.0, "box in a plane");
  check_degenerate(shape_make(QD_PLANE, 0, 0, 0), shape_make(QD_CAPSULE, 0.25, 0.0, 0), -0.25,
                   "plane and capsule of no length");
}

static void check_degenerate_convex(void) {
  const double turn[3] = {1.5707963267948966, 0, 0}, zero[3] = {0, 0, 0};
  const shape can = shape_make(QD_CYLINDER, 0.5, 1.0, 0);
  const shape egg = shape_make(QD_ELLIPSOID, 1.0, 2.0, 0.5);
  shape rod = shape_make(QD_CAPSULE, 0.25, 1.0, 0);
  shape other_can = can, block = shape_make(QD_BOX, 2.0, 2.0, 1.0), long_egg = egg;
  check_degenerate(can, can, -1.0, "equal cylinders");
  check_degenerate(egg, egg, -1.0, "equal ellipsoids");
  check_degenerate(can, rod, -0.75, "capsule on a cylinder's axis");
  check_degenerate(egg, rod, -1.25, "capsule in the middle of an ellipsoid");
  check_degenerate(can, egg, -1.5, "ellipsoid in the middle of a cylinder");
  check_degenerate(block, can, -2.0, "cylinder in the middle of a box");
  check_degenerate(block, egg, -1.5, "ellipsoid in the middle of a box");
  vec3_set(other_can.placed.pos, 0.0, 0.0, 2.0);
  check_degenerate(can, other_can, 0.0, "cylinders end to end");
  vec3_set(other_can.placed.pos, 1.0, 0.0, 0.0);
  check_degenerate(can, other_can, 0.0, "cylinders side by side");
  vec3_set(other_can.placed.pos, 1.0, 0.0, 2.0);
  check_degenerate(can, other_can, 0.0, "rim on rim");
  vec3_set(other_can.placed.pos, 0.0, 0.0, 2.0);
  check_degenerate(block, other_can, 0.0, "cylinder standing on a box");
  vec3_set(other_can.placed.pos, 2.0, 0.0, 2.0);
  check_degenerate(block, other_can, 0.0, "cylinder standing half over an edge");
  vec3_set(other_can.placed.pos, 2.5, 0.0, 2.0);
  check_degenerate(block, other_can, 0.0, "cylinder standing beside an edge");
  shape_move(&other_can, turn, zero, zero);
  vec3_set(other_can.placed.pos, 0.3, 0.2, 1.5);
  check_degenerate(block, other_can, 0.0, "cylinder lying on a box");
  vec3_set(other_can.placed.pos, 0.0, 0.0, 1.5);
  check_degenerate(can, other_can, 0.0, "cylinder lying on a cylinder's cap");
  vec3_set(other_can.placed.pos, 1.0, 0.0, 0.0);
  check_degenerate(can, other_can, 0.0, "cylinders crossed");
  vec3_set(rod.placed.pos, 0.75, 0.0, 0.0);
  check_degenerate(can, rod, 0.0, "capsule beside a cylinder");
  vec3_set(rod.placed.pos, 0.0, 0.0, 2.25);
  check_degenerate(can, rod, 0.0, "capsule standing on a cylinder");
  vec3_set(long_egg.placed.pos, 0.0, 0.0, 1.5);
  check_degenerate(block, long_egg, 0.0, "ellipsoid on a box");
  check_degenerate(can, long_egg, 0.0, "ellipsoid on a cylinder");
  vec3_set(long_egg.placed.pos, 0.0, 0.0, 1.0);
  check_degenerate(egg, long_egg, 0.0, "ellipsoid on an ellipsoid");
  vec3_set(rod.placed.pos, 0.0, 0.0, 1.75);
  check_degenerate(egg, rod, 0.0, "capsule standing on an ellipsoid");
}

/* Sizes over sixteen decades, quarter steps, eighth turns and hardly off them: whatever the contact
 * is there, it is finite, with a unit normal, and so is its derivative. */
static void check_wild_cases(void) {
  const double zero[3] = {0.0, 0.0, 0.0};
  for (int scene = 0; scene < 40000; ++scene) {
    const int *types = PAIR_TYPES[scene % PAIR_COUNT], swap = scene / PAIR_COUNT % 2;
    shape s[2];
    for (int k = 0; k < 2; ++k) {
      double size[3], turn[3] = {0.0, 0.0, 0.0};
      for (int i = 0; i < 3; ++i) {
        size[i] = uniform(0, 1) < 0.4 ? 0.25 * ceil(uniform(0, 4)) : log_uniform(1e-8, 1e8);
      }
      const int type = types[k ^ swap];
      if (type == QD_CAPSULE && uniform(0, 1) < 0.1) {
        size[1] = 0.0;
      }
      s[k] = shape_make(type, size[0], size[1], size[2]);
      turn[(int)uniform(0, 3)] = 0.78539816339744831 * floor(uniform(0, 8));
      turn[0] += uniform(0, 1) < 0.5 ? 0.0 : log_uniform(1e-16, 1.0);
      if (type != QD_SPHERE) {
        shape_move(&s[k], turn, zero, zero);
      }
      for (int i = 0; i < 3; ++i) {
        const double at = uniform(-1, 1);
        s[k].placed.pos[i] = at < -0.3 ? 0.0 : at < 0.3 ? floor(10.0 * at) * 0.25 : at * size[i];
      }
    }
    contact_point contacts[CONTACTS_PER_PAIR_MAX];
    const int count = shapes_collide(placed(&s[0]), placed(&s[1]), INFINITY, contacts);
    CHECK_SAY(count > 0 && count <= CONTACTS_PER_PAIR_MAX, "%d", count);
    for (int i = 0; i < count; ++i) {
      contact_point_derivative derivative;
      shapes_collide_derivative(placed(&s[0]), placed(&s[1]), contacts + i, &derivative);
      CHECK_SAY(is_finite_contact(contacts + i, &derivative) &&
                    fabs(vec3_norm(contacts[i].normal) - 1.0) < 1e-12,
                "%s %s scene %d", TYPE_NAME[s[0].placed.type], TYPE_NAME[s[1].placed.type], scene);
    }
  }
}

static double nearest_distance(shape *a, shape *b) {
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  const int count = shapes_collide(placed(a), placed(b), INFINITY, contacts);
  double nearest = INFINITY;
  for (int i = 0; i < count; ++i) {
    nearest = fmin(nearest, contacts[i].dist);
  }
  return nearest;
}

/* B drawn out of A along the normal: n stays a direction that parts them by as much, and nothing
 * can gain more than the way, so the distance grows by exactly the way: through touching, too. */
static void check_through_touching(void) {
  static const double AFTER[] = {-1e-3, -1e-6, -1e-9, -1e-12, -1e-15, 0.0,
                                 1e-15, 1e-12, 1e-9,  1e-6,   1e-3,   0.3};
  for (int k = 0; k < PAIR_COUNT; ++k) {
    const int type_a = PAIR_TYPES[k][0], type_b = PAIR_TYPES[k][1];
    const int capped = type_a == QD_CYLINDER || type_b == QD_CYLINDER;
    for (int scene = 0; scene < 300; ++scene) {
      shape a, b;
      contact_point contacts[CONTACTS_PER_PAIR_MAX];
      random_scene(type_a, type_b, 1.0, &a, &b);
      const int count = shapes_collide(placed(&a), placed(&b), INFINITY, contacts);
      int first = 0;
      for (int i = 1; i < count; ++i) {
        first = contacts[i].dist < contacts[first].dist ? i : first;
      }
      const double dist = contacts[first].dist;
      if (!(dist < -2e-3)) {
        continue;
      }
      for (int i = 0; i < 12; ++i) {
        shape moved = b;
        vec3_axpy(moved.placed.pos, AFTER[i] - dist, contacts[first].normal);
        const double error = nearest_distance(&a, &moved) - AFTER[i];
        CHECK_SAY(fabs(error) < (capped ? 1e-9 : 1e-12), "%s %s at %g: off by %g",
                  TYPE_NAME[type_a], TYPE_NAME[type_b], AFTER[i], error);
      }
    }
  }
}

/* Numbers one can work out in the head. */
static void check_known_values(void) {
  contact_point c[CONTACTS_PER_PAIR_MAX];
  shape plane = shape_make(QD_PLANE, 0, 0, 0), box = shape_make(QD_BOX, 1.0, 2.0, 3.0);
  vec3_set(box.placed.pos, 0.0, 0.0, 2.5);
  CHECK_SAY(shapes_collide(placed(&plane), placed(&box), 0.0, c) == 4, "four vertices");
  for (int k = 0; k < 4; ++k) {
    CHECK_SAY(c[k].feature == k && c[k].dist == -0.5 && c[k].normal[2] == 1.0, "vertex %d", k);
    CHECK_SAY(c[k].pos[0] == (k & 1 ? 1.0 : -1.0) && c[k].pos[1] == (k & 2 ? 2.0 : -2.0) &&
                  c[k].pos[2] == -0.25,
              "vertex %d", k);
  }
  CHECK_SAY(shapes_collide(placed(&box), placed(&plane), 0.0, c) == 4 && c[0].normal[2] == -1.0,
            "exchanged");
  shape rod = shape_make(QD_CAPSULE, 0.5, 2.0, 0);
  const double turn[3] = {1.5707963267948966, 0, 0}, zero[3] = {0, 0, 0};
  shape_move(&rod, turn, zero, zero);
  vec3_set(rod.placed.pos, 0.0, 0.0, 0.5);
  CHECK_SAY(shapes_collide(placed(&plane), placed(&rod), 1e-9, c) == 2, "both ends");
  shape lying = shape_make(QD_CAPSULE, 0.25, 1.0, 0);
  memcpy(lying.placed.rot, rod.placed.rot, sizeof lying.placed.rot);
  vec3_set(lying.placed.pos, 0.0, 1.5, 1.2);
  CHECK_SAY(shapes_collide(placed(&rod), placed(&lying), 0.0, c) == 2, "ends of the overlap");
  CHECK_SAY(fabs(fabs(c[0].pos[1] - c[1].pos[1]) - 1.5) < 1e-15, "y from 0.5 to 2: %g %g",
            c[0].pos[1], c[1].pos[1]);
  CHECK_SAY(fabs(c[0].dist + 0.05) < 1e-15 && fabs(c[1].dist + 0.05) < 1e-15, "depth");
  CHECK_SAY(qd_shape_pair_supported(QD_BOX, QD_SPHERE) &&
                qd_shape_pair_supported(QD_SPHERE, QD_BOX),
            "order");
  CHECK_SAY(!qd_shape_pair_supported(QD_PLANE, QD_PLANE) && !qd_shape_pair_supported(-1, QD_BOX) &&
                !qd_shape_pair_supported(QD_BOX, QD_SHAPE_TYPE_COUNT),
            "unsupported");
}

/* Manifolds one can work out in the head. */
static void check_known_manifolds(void) {
  contact_point c[CONTACTS_PER_PAIR_MAX];
  const double turn[3] = {1.5707963267948966, 0, 0}, zero[3] = {0, 0, 0};
  shape plane = shape_make(QD_PLANE, 0, 0, 0);
  /* a cube over the corner of another: four contacts over a square of one */
  shape cube = shape_make(QD_BOX, 1.0, 1.0, 1.0), upper = cube;
  vec3_set(upper.placed.pos, 1.0, 1.0, 1.75);
  CHECK_SAY(shapes_collide(placed(&cube), placed(&upper), 0.0, c) == 4, "corner over corner");
  for (int k = 0; k < 4; ++k) {
    CHECK_SAY(c[k].dist == -0.25 && c[k].normal[2] == 1.0 && fabs(c[k].pos[2] - 0.875) < 1e-15,
              "depth %g", c[k].dist);
    CHECK_SAY((c[k].pos[0] == 0.0 || c[k].pos[0] == 1.0) &&
                  (c[k].pos[1] == 0.0 || c[k].pos[1] == 1.0),
              "square %g %g", c[k].pos[0], c[k].pos[1]);
  }
  /* turned by 45 degrees about z over the middle: an octagon */
  const double eighth[3] = {0.0, 0.0, 0.78539816339744831};
  vec3_set(upper.placed.pos, 0.0, 0.0, 2.25);
  shape_move(&upper, eighth, upper.placed.pos, zero);
  CHECK_SAY(shapes_collide(placed(&cube), placed(&upper), 1.0, c) == 8, "octagon");
  for (int k = 0; k < 8; ++k) {
    CHECK_SAY(c[k].dist == 0.25 && fabs(hypot(c[k].pos[0], c[k].pos[1]) - 1.0823922) < 1e-7,
              "octagon %g", hypot(c[k].pos[0], c[k].pos[1]));
  }
  /* a cylinder of radius 1/2 standing: six points of its rim; lying: both ends of its side */
  shape can = shape_make(QD_CYLINDER, 0.5, 2.0, 0);
  vec3_set(can.placed.pos, 0.0, 0.0, 2.0);
  CHECK_SAY(shapes_collide(placed(&plane), placed(&can), 1e-9, c) == 6, "standing");
  for (int k = 0; k < 6; ++k) {
    CHECK_SAY(c[k].dist == 0.0 && fabs(hypot(c[k].pos[0], c[k].pos[1]) - 0.5) < 1e-15, "rim");
  }
  shape_move(&can, turn, zero, zero);
  vec3_set(can.placed.pos, 0.0, 0.0, 0.5);
  CHECK_SAY(shapes_collide(placed(&plane), placed(&can), 1e-9, c) == 2, "lying");
  CHECK_SAY(fabs(c[0].pos[1] * c[1].pos[1] + 4.0) < 1e-14, "ends %g %g", c[0].pos[1], c[1].pos[1]);
  /* the same on a box */
  shape table = shape_make(QD_BOX, 5.0, 5.0, 1.0);
  vec3_set(table.placed.pos, 0.0, 0.0, -1.0);
  CHECK_SAY(shapes_collide(placed(&table), placed(&can), 1e-9, c) == 2, "lying on a box");
  shape_move(&can, turn, zero, zero);
  vec3_set(can.placed.pos, 0.0, 0.0, 2.0);
  CHECK_SAY(shapes_collide(placed(&table), placed(&can), 1e-9, c) == 6, "standing on a box");
  shape puck = shape_make(QD_CYLINDER, 0.5, 0.25, 0), other_puck = puck;
  vec3_set(other_puck.placed.pos, 0.5, 0.0, 0.5);
  const int lens = shapes_collide(placed(&puck), placed(&other_puck), 1e-9, c);
  CHECK_SAY(lens >= 3, "cylinder half over a cylinder: %d", lens);
  for (int k = 0; k < lens; ++k) {
    CHECK_SAY(fabs(c[k].dist) < 1e-15 && hypot(c[k].pos[0], c[k].pos[1]) < 0.5 + 1e-12 &&
                  hypot(c[k].pos[0] - 0.5, c[k].pos[1]) < 0.5 + 1e-12,
              "in the lens of both caps");
  }
  /* side by side, ends at z = 0 and 1/4: both ends of the overlap */
  shape wheel = puck, post = shape_make(QD_CYLINDER, 0.5, 1.0, 0);
  vec3_set(post.placed.pos, 1.0, 0.0, 1.0);
  shape pole = shape_make(QD_CAPSULE, 0.5, 1.0, 0), beam = shape_make(QD_BOX, 0.25, 0.25, 1.0);
  const double diagonal = 0.5 + sqrt(0.125);
  vec3_set(pole.placed.pos, 0.0, 1.0, 1.0);
  shape_move(&beam, eighth, zero, zero);
  vec3_set(beam.placed.pos, -diagonal, 0.0, 1.0);
  shape *const beside[3] = {&post, &pole, &beam};
  for (int i = 0; i < 3; ++i) {
    const int ends = shapes_collide(placed(&wheel), placed(beside[i]), 1e-9, c);
    CHECK_SAY(ends == 2, "%d contacts beside a cylinder", ends);
    CHECK_SAY(fabs(c[0].dist) < 1e-15 && fabs(c[1].dist) < 1e-15, "%g %g", c[0].dist, c[1].dist);
    CHECK_SAY(fabs(c[0].pos[2]) < 1e-15 && fabs(c[1].pos[2] - 0.25) < 1e-15, "ends %g %g",
              c[0].pos[2], c[1].pos[2]);
  }
  vec3_set(pole.placed.pos, -diagonal + 0.5 + sqrt(0.125), 0.0, 2.0);
  CHECK_SAY(shapes_collide(placed(&beam), placed(&pole), 1e-9, c) == 2, "capsule along an edge");
}

/* A ball of 1e-7 m on a face, an edge and a vertex of a box of 0.1 m, a metre from the origin. */
static void check_tiny_sphere(void) {
  shape box = shape_make(QD_BOX, 0.1, 0.1, 0.1), ball = shape_make(QD_SPHERE, 1e-7, 0, 0);
  vec3_set(box.placed.pos, 1.0, 1.0, 1.0);
  for (int outside = 1; outside <= 3; ++outside) {
    const double gap = 0.7e-7;
    double normal[3] = {0.0, 0.0, 0.0};
    for (int i = 0; i < 3; ++i) {
      normal[i] = i < outside ? 1.0 / sqrt((double)outside) : 0.0;
      ball.placed.pos[i] = 1.0 + (i < outside ? 0.1 + gap * normal[i] : 0.03);
    }
    contact_point c;
    CHECK_SAY(shapes_collide(placed(&box), placed(&ball), 0.0, &c) == 1, "touching");
    CHECK_SAY(fabs(c.dist + 0.3e-7) < 1e-15, "%.17g", c.dist);
    CHECK_SAY(vec3_error(c.normal, normal) < 1e-8, "%g", vec3_error(c.normal, normal));
  }
}

/* A centre moving through a box's surface: distance has slope one, the normal stays on a face. */
static void check_continuity(void) {
  for (int scene = 0; scene < 500; ++scene) {
    shape box = random_shape(QD_BOX, 1.0), ball = shape_make(QD_SPHERE, 0.1, 0, 0);
    double y[3], normal[3], previous = 0.0;
    const int axis = scene % 3;
    const double sign = scene % 2 ? 1.0 : -1.0;
    for (int i = 0; i < 3; ++i) {
      y[i] = uniform(-0.9, 0.9) * box.size[i];
    }
    mat3_column(normal, box.placed.rot, axis);
    vec3_scale(normal, normal, sign);
    for (int k = -5; k <= 5; ++k) {
      contact_point c;
      y[axis] = sign * (box.size[axis] + 1e-4 * k);
      mat3_mul_vec(ball.placed.pos, box.placed.rot, y);
      vec3_add(ball.placed.pos, ball.placed.pos, box.placed.pos);
      CHECK_SAY(shapes_collide(placed(&box), placed(&ball), INFINITY, &c) == 1, "contact");
      CHECK_SAY(vec3_error(c.normal, normal) < 1e-14, "normal");
      CHECK_SAY(k == -5 || fabs(c.dist - previous - 1e-4) < 1e-14, "slope");
      CHECK_SAY(fabs(c.dist - (1e-4 * k - 0.1)) < 1e-14, "distance");
      previous = c.dist;
    }
  }
}

int main(void) {
  check_known_values();
  check_known_manifolds();
  check_degenerate_cases();
  check_degenerate_convex();
  check_wild_cases();
  check_through_touching();
  check_tiny_sphere();
  check_continuity();
  random_state = 5707828431237413620u; /* a polytope of these was expanded for ever */
  check_wild_cases();
  return check_report();
}
