/* Random pairs of shapes near contact, for the geometry tests. */
#ifndef QD_TESTS_GEOMETRY_SCENES_H
#define QD_TESTS_GEOMETRY_SCENES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quat.h"
#include "base/vec3.h"
#include "check.h"
#include "geometry/collide.h"
#include "qdsim.h"

/* A check that prints what it was about. */
#define CHECK_SAY(condition, ...)                                                                  \
  do {                                                                                             \
    const int check_before = check_failures;                                                       \
    CHECK(condition);                                                                              \
    if (check_failures > check_before && check_failures <= 20) {                                   \
      fprintf(stderr, "  ");                                                                       \
      fprintf(stderr, __VA_ARGS__);                                                                \
      fprintf(stderr, " (scene %llu)\n", (unsigned long long)scene_state);                         \
    }                                                                                              \
  } while (0)

static uint64_t random_state = 1;
/* random_state where the scene began: with it the scene can be made again. */
static uint64_t scene_state = 1;

/* Other scenes: QD_TEST_SEED=2 test_geometry_pairs */
__attribute__((constructor)) static void seed_from_environment(void) {
  const char *seed = getenv("QD_TEST_SEED");
  random_state = seed ? strtoull(seed, NULL, 10) : 1;
}

static inline double uniform(double low, double high) {
  random_state = random_state * 6364136223846793005u + 1442695040888963407u;
  uint64_t x = random_state;
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 32;
  return low + (high - low) * ((double)(x >> 11) / 9007199254740992.0);
}

static inline double log_uniform(double low, double high) {
  return exp(uniform(log(low), log(high)));
}

static inline void random_unit(double out[3]) {
  double norm;
  do {
    vec3_set(out, uniform(-1, 1), uniform(-1, 1), uniform(-1, 1));
    norm = vec3_norm(out);
  } while (norm > 1.0 || norm < 0.1);
  vec3_scale(out, out, 1.0 / norm);
}

static inline void random_rotation(double rot[9]) {
  double axis[3];
  random_unit(axis);
  vec3_scale(axis, axis, uniform(0.0, 3.1));
  rotation_exp(rot, axis);
}

typedef struct shape {
  placed_shape placed;
  double size[3];
} shape;

/* A shape that owns its size: set the pointer after every copy. */
static const placed_shape *placed(shape *s) {
  s->placed.size = s->size;
  return &s->placed;
}

static inline shape shape_make(int type, double s0, double s1, double s2) {
  shape s;
  memset(&s, 0, sizeof s);
  s.placed.type = type;
  vec3_set(s.size, s0, s1, s2);
  s.placed.rot[0] = s.placed.rot[4] = s.placed.rot[8] = 1.0;
  if (type == QD_SPHERE) {
    s.placed.rot[0] = s.placed.rot[1] = NAN; /* nothing may read it */
  }
  return s;
}

static inline shape random_shape(int type, double scale) {
  shape s = shape_make(type, scale * log_uniform(0.05, 1.0), scale * log_uniform(0.05, 1.0),
                       scale * log_uniform(0.05, 1.0));
  if (type != QD_SPHERE) {
    random_rotation(s.placed.rot);
  }
  vec3_set(s.placed.pos, scale * uniform(-1, 1), scale * uniform(-1, 1), scale * uniform(-1, 1));
  return s;
}

static inline double skin(const shape *s) {
  return s->placed.type == QD_SPHERE || s->placed.type == QD_CAPSULE ? s->size[0] : 0.0;
}

/* Moves b so that its nearest contact with a is at this distance, as far as the normal leads there.
 */
static inline void shape_approach(shape *a, shape *b, double dist) {
  contact_point contacts[CONTACTS_PER_PAIR_MAX];
  const int count = shapes_collide(placed(a), placed(b), INFINITY, contacts);
  int nearest = 0;
  for (int i = 1; i < count; ++i) {
    nearest = contacts[i].dist < contacts[nearest].dist ? i : nearest;
  }
  vec3_axpy(b->placed.pos, dist - contacts[nearest].dist, contacts[nearest].normal);
}

static inline void scene_begin(void) { scene_state = random_state; }

/* A pair near contact: penetrating to a part of the smallest size, touching or apart. */
static inline void random_scene(int type_a, int type_b, double scale, shape *a, shape *b) {
  scene_begin();
  *a = random_shape(type_a, scale);
  *b = random_shape(type_b, scale);
  double offset[3];
  random_unit(offset);
  vec3_axpy(b->placed.pos, 2.0 * scale, offset);
  const double depth = fmax(skin(a) + skin(b), 0.05 * scale);
  shape_approach(a, b, uniform(-0.8, 1.0) * depth);
}

static const char *const TYPE_NAME[] = {"plane",    "sphere",    "capsule", "box",
                                        "cylinder", "ellipsoid", "mesh"};
static const int PAIR_TYPES[][2] = {
    {QD_PLANE, QD_SPHERE},       {QD_PLANE, QD_CAPSULE},      {QD_PLANE, QD_BOX},
    {QD_SPHERE, QD_SPHERE},      {QD_SPHERE, QD_CAPSULE},     {QD_SPHERE, QD_BOX},
    {QD_CAPSULE, QD_CAPSULE},    {QD_CAPSULE, QD_BOX},        {QD_BOX, QD_BOX},
    {QD_PLANE, QD_CYLINDER},     {QD_PLANE, QD_ELLIPSOID},    {QD_SPHERE, QD_CYLINDER},
    {QD_SPHERE, QD_ELLIPSOID},   {QD_CAPSULE, QD_CYLINDER},   {QD_BOX, QD_CYLINDER},
    {QD_CYLINDER, QD_CYLINDER},  {QD_CAPSULE, QD_ELLIPSOID},  {QD_BOX, QD_ELLIPSOID},
    {QD_CYLINDER, QD_ELLIPSOID}, {QD_ELLIPSOID, QD_ELLIPSOID}};
enum { PAIR_COUNT = sizeof PAIR_TYPES / sizeof PAIR_TYPES[0] };

/* x <- pivot + R (x - pivot) + shift for a shape */
static inline void shape_move(shape *s, const double rotation[3], const double pivot[3],
                              const double shift[3]) {
  double R[9], arm[3], turned[3], rot[9];
  rotation_exp(R, rotation);
  vec3_sub(arm, s->placed.pos, pivot);
  mat3_mul_vec(turned, R, arm);
  vec3_add(s->placed.pos, pivot, turned);
  vec3_add(s->placed.pos, s->placed.pos, shift);
  mat3_mul(rot, R, s->placed.rot);
  memcpy(s->placed.rot, rot, sizeof rot);
}

static inline const contact_point *find_feature(const contact_point *contacts, int count,
                                                contact_feature feature) {
  for (int i = 0; i < count; ++i) {
    if (contacts[i].feature == feature) {
      return contacts + i;
    }
  }
  return NULL;
}

/* How far B is from A along a unit vector. */
typedef double separation_function(const shape *a, const shape *b, const double n[3]);

/* The largest separation that random directions reach, each improved by a random search: a bound
 * from below of the signed distance. */
static inline double searched_separation(const shape *a, const shape *b,
                                         separation_function *separation) {
  double best_of_all = -INFINITY;
  for (int start = 0; start < 10; ++start) {
    double n[3], width = 0.5;
    random_unit(n);
    double best = separation(a, b, n);
    for (int k = 0; k < 40; ++k) {
      double other[3], turn[3];
      random_unit(turn);
      vec3_copy(other, n);
      vec3_axpy(other, width, turn);
      vec3_normalize(other);
      const double value = separation(a, b, other);
      if (value > best) {
        best = value;
        vec3_copy(n, other);
      } else {
        width *= 0.9;
      }
    }
    best_of_all = fmax(best_of_all, best);
  }
  return best_of_all;
}

/* Where the normal of closest points is a face's to this angle the contacts have the face's, and to
 * the second one beside round caps, which polygons stand for (closest_and_manifold.c: ALIGNED and
 * CAP_ALIGNED are their 1 - cosine). */
static const double FACE_TILT = 1.01e-5, CAP_TILT = 1.01e-3;

/* Directions n + u axis[0] + v axis[1]. */
typedef struct tilt_search {
  const shape *a, *b;
  separation_function *separation;
  double n[3], axis[2][3];
} tilt_search;

static inline double separation_at(const tilt_search *t, double u, double v) {
  double n[3];
  vec3_copy(n, t->n);
  vec3_axpy(n, u, t->axis[0]);
  vec3_axpy(n, v, t->axis[1]);
  vec3_normalize(n);
  return t->separation(t->a, t->b, n);
}

/* The largest over v, of all u where across is set, by thirds: the separation is concave in n, and
 * n is of length one to the square of the tilt. */
static inline double largest_tilted(const tilt_search *t, double tilt, int across, double u) {
  double low = -tilt, high = tilt, best = -INFINITY;
  for (int k = 0; k < 45; ++k) {
    const double x[2] = {low + (high - low) / 3.0, high - (high - low) / 3.0};
    double value[2];
    for (int i = 0; i < 2; ++i) {
      value[i] = across ? largest_tilted(t, tilt, 0, x[i]) : separation_at(t, u, x[i]);
      best = fmax(best, value[i]);
    }
    *(value[0] < value[1] ? &low : &high) = value[0] < value[1] ? x[0] : x[1];
  }
  return best;
}

/* The separation along n, or where that falls short of enough the largest within this tilt of n. */
static inline double separation_beside(const shape *a, const shape *b, const double n[3],
                                       double tilt, double enough,
                                       separation_function *separation) {
  tilt_search t = {.a = a, .b = b, .separation = separation};
  const double along = separation(a, b, n);
  if (along >= enough) {
    return along;
  }
  const int least = fabs(n[0]) < fabs(n[1]) ? (fabs(n[0]) < fabs(n[2]) ? 0 : 2)
                                            : (fabs(n[1]) < fabs(n[2]) ? 1 : 2);
  vec3_copy(t.n, n);
  vec3_set(t.axis[0], least == 0, least == 1, least == 2);
  vec3_axpy(t.axis[0], -n[least], n);
  vec3_normalize(t.axis[0]);
  vec3_cross(t.axis[1], n, t.axis[0]);
  return fmax(along, largest_tilted(&t, tilt, 1, 0.0));
}

static inline double vec3_error(const double a[3], const double b[3]) {
  double difference[3];
  vec3_sub(difference, a, b);
  return vec3_norm(difference);
}

/* Two capsules nearly side by side, the same way or opposite, overlapping. Tilted (every second
 * scene) ends are closest; turned about the normal the axes cross. */
static inline void side_by_side_scene(int scene, double angle, shape *a, shape *b) {
  scene_begin();
  const double nowhere[3] = {0.0, 0.0, 0.0};
  double turn[3], side[3], along[3];
  *a = random_shape(QD_CAPSULE, 1.0);
  *b = random_shape(QD_CAPSULE, 1.0);
  mat3_column(side, a->placed.rot, 0);
  mat3_column(along, a->placed.rot, 2);
  memcpy(b->placed.rot, a->placed.rot, sizeof b->placed.rot);
  vec3_copy(b->placed.pos, a->placed.pos);
  vec3_axpy(b->placed.pos, uniform(0.3, 1.2) * (a->size[0] + b->size[0]), side);
  vec3_axpy(b->placed.pos, uniform(-0.9, 0.9) * (a->size[1] + b->size[1]), along);
  if (scene % 4 >= 2) {
    vec3_scale(turn, side, 3.14159265358979323846);
    shape_move(b, turn, b->placed.pos, nowhere);
  }
  if (scene % 2) {
    random_unit(turn);
  } else {
    vec3_copy(turn, side);
  }
  vec3_scale(turn, turn, angle);
  shape_move(b, turn, b->placed.pos, nowhere);
}

#endif
