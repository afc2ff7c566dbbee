/* Derivatives of contacts by the sizes of the shapes against fourth-order central differences: all
 * pairs in both orders at random, and stacks whose contacts are clipped faces and lines. */
#include "geometry/pairs/face_manifold.h"
#include "geometry_scenes.h"

typedef struct tally {
  double error[3]; /* largest error of dist, pos, normal rows */
  int compared, skipped, manifold;
} tally;

/* Of one size; 0 where a point of the stencil is on another branch. */
static int quotient_of(const shape *a, const shape *b, const contact_point *contact, int j,
                       double step, double out[7]) {
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

static void compare(shape *a, shape *b, const contact_point *contact, tally *result) {
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
  result->manifold += (contact->feature & FACE_MANIFOLD_FEATURE) != 0;
  for (int j = 0; j < 6; ++j) {
    double quotient[7];
    if (!quotient_of(a, b, contact, j, 1e-3 * length / ample, quotient)) {
      ++result->skipped;
      continue;
    }
    ++result->compared;
    result->error[0] = fmax(result->error[0], fabs(quotient[0] - derivative.dist[j]) / ample);
    for (int i = 0; i < 3; ++i) {
      result->error[1] =
          fmax(result->error[1], fabs(quotient[1 + i] - derivative.pos[6 * i + j]) / ample);
      result->error[2] = fmax(
          result->error[2], length / ample * fabs(quotient[4 + i] - derivative.normal[6 * i + j]));
    }
  }
}

static void compare_all(shape *a, shape *b, tally *result) {
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  const int count = shapes_collide(placed(a), placed(b), INFINITY, contacts);
  for (int i = 0; i < count; ++i) {
    compare(a, b, contacts + i, result);
  }
}

static void say(const char *what, int type_a, int type_b, const tally *t) {
  printf("%s %-9s %-9s dist %.1e pos %.1e normal %.1e compared %d skipped %d manifold %d\n", what,
         TYPE_NAME[type_a], TYPE_NAME[type_b], t->error[0], t->error[1], t->error[2], t->compared,
         t->skipped, t->manifold);
  for (int k = 0; k < 3; ++k) {
    CHECK_SAY(t->error[k] < 1e-6, "%s %s %s %d: %g", what, TYPE_NAME[type_a], TYPE_NAME[type_b], k,
              t->error[k]);
  }
  CHECK_SAY(5 * t->skipped < t->compared, "%d of %d skipped", t->skipped, t->compared);
}

static void check_random(int type_a, int type_b) {
  tally result = {{0.0, 0.0, 0.0}, 0, 0, 0};
  for (int scene = 0; scene < 400; ++scene) {
    shape a, b;
    random_scene(type_a, type_b, 1.0, &a, &b);
    compare_all(&a, &b, &result);
  }
  say("random", type_a, type_b, &result);
}

/* B stands or lies on A, almost flat, turned about the vertical and shifted. */
static void check_stacked(int type_a, int type_b) {
  tally result = {{0.0, 0.0, 0.0}, 0, 0, 0};
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
    compare_all(&a, &b, &result);
    compare_all(&b, &a, &result);
  }
  say("stacked", type_a, type_b, &result);
  CHECK_SAY(result.manifold > 500, "%d contacts of manifolds", result.manifold);
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
  return check_report();
}
