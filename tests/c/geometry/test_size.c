/* Derivatives of contacts by the sizes of the shapes against fourth-order central differences: all
 * pairs in both orders at random, and stacks whose contacts are clipped faces and lines. */
#include "geometry/pairs/face_manifold.h"
#include "geometry_derivatives.h"

static const double TOLERANCE = 1e-6;

/* Of one size; 0 where a point of the stencil is on another branch. */
static int quotient_of(shape *a, const shape *b, const contact_point *contact, int j, double step,
                       double out[7]) {
  static const double OFFSET[4] = {-2.0, -1.0, 1.0, 2.0};
  static const double WEIGHT[4] = {1.0 / 12.0, -2.0 / 3.0, 2.0 / 3.0, -1.0 / 12.0};
  memset(out, 0, 7 * sizeof(double));
  for (int k = 0; k < 4; ++k) {
    contact_point contacts[CONTACTS_PER_PAIR_MAX];
    shape s[2] = {*a, *b};
    s[j / 3].size[j % 3] += OFFSET[k] * step;
    const int count = shapes_collide(placed(s), placed(s + 1), INFINITY, contacts);
    const contact_point *found = find_feature(contacts, count, contact->feature);
    if (!found || vec3_error(found->normal, contact->normal) > 0.1) {
      return 0;
    }
    out[0] += WEIGHT[k] / step * (found->dist - contact->dist);
    for (int i = 0; i < 3; ++i) {
      out[1 + i] += WEIGHT[k] / step * (found->pos[i] - contact->pos[i]);
      out[4 + i] += WEIGHT[k] / step * (found->normal[i] - contact->normal[i]);
    }
  }
  return 1;
}

static void compare(shape *a, shape *b, const contact_point *contact, tally *result,
                    int *manifold) {
  contact_point_derivative derivative;
  shapes_size_derivative(placed(a), placed(b), contact, &derivative);
  const double gap = fabs(contact->dist + skin(a) + skin(b));
  if (gap < 1e-3) {
    ++result->skipped;
    return;
  }
  const double length = fmin(gap, 0.05);
  double ample = 1.0;
  for (int k = 0; k < 18; ++k) {
    ample = fmax(ample, fmax(fabs(derivative.pos[k]), length * fabs(derivative.normal[k])));
  }
  *manifold += (contact->feature & FACE_MANIFOLD_FEATURE) != 0;
  const row_size rows = {{ample, ample, ample}, {1.0, 1.0, 1.0 / length}, 0};
  for (int j = 0; j < 6; ++j) {
    compare_direction(a, b, contact, &derivative, j, 1e-3 * length / ample, quotient_of, &rows,
                      result);
  }
}

static void compare_all(shape *a, shape *b, tally *result, int *manifold) {
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  const int count = shapes_collide(placed(a), placed(b), INFINITY, contacts);
  for (int i = 0; i < count; ++i) {
    compare(a, b, contacts + i, result, manifold);
  }
}

static void say(const char *what, int type_a, int type_b, const tally *t, int manifold) {
  printf("%s %-9s %-9s dist %.1e pos %.1e normal %.1e compared %d skipped %d manifold %d\n", what,
         TYPE_NAME[type_a], TYPE_NAME[type_b], t->error[0], t->error[1], t->error[2], t->compared,
         t->skipped, manifold);
  for (int k = 0; k < 3; ++k) {
    scene_state = t->scene[k];
    CHECK_SAY(t->error[k] < t->tolerance, "%s %s %s %d: %g", what, TYPE_NAME[type_a],
              TYPE_NAME[type_b], k, t->error[k]);
  }
  CHECK_SAY(5 * t->skipped < t->compared, "%d of %d skipped", t->skipped, t->compared);
}

static void check_random(int type_a, int type_b) {
  tally result = {.tolerance = TOLERANCE};
  int manifold = 0;
  for (int scene = 0; scene < 400; ++scene) {
    shape a, b;
    random_scene(type_a, type_b, 1.0, &a, &b);
    compare_all(&a, &b, &result, &manifold);
  }
  say("random", type_a, type_b, &result, manifold);
}

/* B stands or lies on A, almost flat, turned about the vertical and fixed_point. */
static void check_stacked(int type_a, int type_b) {
  tally result = {.tolerance = TOLERANCE};
  int manifold = 0;
  for (int scene = 0; scene < 400; ++scene) {
    const double quarter[3] = {0.0, 1.5707963267948966, 0.0}, zero[3] = {0.0, 0.0, 0.0};
    const double yaw[3] = {0.0, 0.0, uniform(-3.0, 3.0)};
    const double tilt[3] = {uniform(-0.03, 0.03), uniform(-0.03, 0.03), 0.0};
    shape a = shape_make(type_a, uniform(0.3, 0.6), uniform(0.3, 0.6), uniform(0.3, 0.6));
    shape b = shape_make(type_b, uniform(0.2, 0.5), uniform(0.2, 0.5), uniform(0.2, 0.5));
    if (type_b == QD_CAPSULE || (type_b == QD_CYLINDER && scene % 2)) {
      shape_move(&b, quarter, zero, zero);
    }
    shape_move(&b, yaw, zero, zero);
    shape_move(&b, tilt, zero, zero);
    vec3_set(b.placed.pos, uniform(-0.3, 0.3), uniform(-0.3, 0.3), 2.0);
    shape_approach(&a, &b, uniform(0.01, 0.03));
    compare_all(&a, &b, &result, &manifold);
    compare_all(&b, &a, &result, &manifold);
  }
  say("stacked", type_a, type_b, &result, manifold);
  CHECK_SAY(manifold > 500, "%d contacts of manifolds", manifold);
}

/* Scenes that failed once: ways out of a flat ellipsoid that are almost equally short, and one that
 * bends much within a step. */
static void check_found(void) {
  static const uint64_t STATES[] = {13875190524805536854u, 17364493392305027563u,
                                    17430183762108009262u};
  tally result = {.tolerance = TOLERANCE};
  int manifold = 0;
  for (int k = 0; k < 6; ++k) {
    shape a, b;
    random_state = STATES[k / 2];
    random_scene(k % 2 ? QD_BOX : QD_ELLIPSOID, k % 2 ? QD_ELLIPSOID : QD_BOX, 1.0, &a, &b);
    compare_all(&a, &b, &result, &manifold);
    compare_all(&b, &a, &result, &manifold);
  }
  say("found", QD_ELLIPSOID, QD_BOX, &result, manifold);
}

int main(void) {
  for (int k = 0; k < PAIR_COUNT; ++k) {
    for (int swap = 0; swap < 2; ++swap) {
      check_random(PAIR_TYPES[k][swap], PAIR_TYPES[k][1 - swap]);
    }
  }
  check_stacked(QD_BOX, QD_BOX);
  check_stacked(QD_BOX, QD_CAPSULE);
  check_stacked(QD_BOX, QD_CYLINDER);
  check_stacked(QD_CYLINDER, QD_BOX);
  check_stacked(QD_CYLINDER, QD_CYLINDER);
  check_stacked(QD_PLANE, QD_CYLINDER);
  check_found();
  return check_report();
}
