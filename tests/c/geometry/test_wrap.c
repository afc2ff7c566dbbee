/* Strings around spheres and cylinders: where they touch by what makes a string taut (tangents and
 * geodesics outside, equal angles inside, no shorter way beside it), and derivatives against
 * fourth-order central differences. */
#include "geometry/wrap.h"

#include "check.h"
#include "geometry_scenes.h"

enum { TRIALS = 4000 };

typedef struct string {
  wrap_shape shape;
  double end[2][3], side[3];
  int has_side;
} string;

static string random_string(int is_cylinder, int side_kind) {
  string s = {.shape = {.radius = uniform(0.1, 0.6), .is_cylinder = is_cylinder}};
  for (int i = 0; i < 3; ++i) {
    s.shape.centre[i] = uniform(-0.5, 0.5);
    s.shape.axis[i] = uniform(-1.0, 1.0);
    s.end[0][i] = s.shape.centre[i] + uniform(-1.0, 1.0);
    s.end[1][i] = s.shape.centre[i] + uniform(-1.0, 1.0);
    s.side[i] = s.shape.centre[i] + (side_kind == 2 ? 0.1 : 2.0) * s.shape.radius * uniform(-1, 1);
    s.shape.front[i] = uniform(-1.0, 1.0);
  }
  vec3_normalize(s.shape.axis);
  s.has_side = side_kind > 0;
  return s;
}

static int run(wrap_course *out, const string *s) {
  return wrap_compute(out, &s->shape, s->end[0], s->end[1], s->has_side ? s->side : NULL);
}

static double whole_length(const wrap_course *course, const string *s) {
  double length = course->length, line[3];
  for (int k = 0; k < 2; ++k) {
    vec3_sub(line, course->touch[k], s->end[k]);
    length += vec3_norm(line);
  }
  return length;
}

/* From the centre, or from the axis. */
static void outward_at(double out[3], const wrap_shape *around, const double point[3]) {
  vec3_sub(out, point, around->centre);
  if (around->is_cylinder) {
    vec3_axpy(out, -vec3_dot(out, around->axis), around->axis);
  }
}

static void check_taut(const wrap_course *course, const string *s) {
  double line[2][3], outward[2][3], way[3];
  for (int k = 0; k < 2; ++k) {
    vec3_sub(line[k], course->touch[k], s->end[k]);
    vec3_normalize(line[k]);
    outward_at(outward[k], &s->shape, course->touch[k]);
    CHECK_NEAR(vec3_norm(outward[k]), s->shape.radius, 1e-14);
    vec3_normalize(outward[k]);
  }
  if (course->turn == 0) { /* both lines pull along the normal together */
    vec3_add(way, line[0], line[1]);
    CHECK(vec3_dot(way, outward[0]) <= 0.0);
    vec3_cross(way, way, outward[0]);
    CHECK_NEAR(vec3_norm(way), 0.0, 1e-12);
    return;
  }
  for (int k = 0; k < 2; ++k) { /* both lines go on along the surface: about the normal, and up */
    const double pitch = vec3_dot(line[k], course->normal);
    CHECK_NEAR(vec3_dot(line[k], outward[k]), 0.0, 1e-7); /* a tangent's length is a root */
    vec3_cross(way, course->normal, outward[k]);
    CHECK_NEAR((k == 0 ? 1.0 : -1.0) * course->turn * vec3_dot(line[k], way),
               sqrt(1.0 - pitch * pitch), 1e-12);
  }
  CHECK_NEAR(vec3_dot(line[0], course->normal), -vec3_dot(line[1], course->normal), 1e-12);
}

/* From inside: no other point of the surface near the one that it touches makes it shorter. */
static void check_shortest(const wrap_course *course, const string *s) {
  for (int i = 0; course->turn == 0 && i < 8; ++i) {
    wrap_course moved = *course;
    double outward[3];
    for (int j = 0; j < 3; ++j) {
      moved.touch[0][j] += uniform(-0.05, 0.05) * s->shape.radius;
    }
    outward_at(outward, &s->shape, moved.touch[0]);
    vec3_axpy(moved.touch[0], s->shape.radius / vec3_norm(outward) - 1.0, outward);
    vec3_copy(moved.touch[1], moved.touch[0]);
    CHECK(whole_length(&moved, s) >= whole_length(course, s) - 1e-14);
  }
}

/* Everything that has a derivative: both points, and the length. */
static void values(double out[7], const wrap_course *course, const string *s) {
  vec3_copy(out, course->touch[0]);
  vec3_copy(out + 3, course->touch[1]);
  out[6] = whole_length(course, s);
}

/* By one number; 0 where the stencil leaves the branch. */
static int quotient(double out[7], const string *s, const wrap_course *course, double *number,
                    double step) {
  static const double OFFSET[4] = {-2.0, -1.0, 1.0, 2.0};
  static const double WEIGHT[4] = {1.0 / 12.0, -2.0 / 3.0, 2.0 / 3.0, -1.0 / 12.0};
  const double start = *number;
  int same = 1;
  memset(out, 0, 7 * sizeof(double));
  for (int k = 0; k < 4; ++k) {
    wrap_course there;
    double at[7];
    *number = start + OFFSET[k] * step;
    same = same && run(&there, s) && there.turn == course->turn &&
           fabs(there.angle - course->angle) < 0.5;
    for (int i = 0; same && i < 7; ++i) {
      values(at, &there, s);
      out[i] += WEIGHT[k] / step * at[i];
    }
  }
  *number = start;
  return same;
}

static double worst;

static void compare(const double got[7], const double expected[7]) {
  double scale = 1.0;
  for (int i = 0; i < 7; ++i) {
    scale = fmax(scale, fabs(expected[i]));
  }
  for (int i = 0; i < 7; ++i) {
    worst = fmax(worst, fabs(got[i] - expected[i]) / scale);
    CHECK_NEAR(got[i] / scale, expected[i] / scale, 1e-7);
  }
}

/* Returns how many derivatives were compared. */
static int check_slopes(const wrap_course *course, string *s) {
  wrap_slope slope;
  int count = 0;
  double expected[7], got[7], line[3], outward[3];
  for (int k = 0; k < 2; ++k) { /* roots and their derivatives: not beside the surface */
    outward_at(outward, &s->shape, s->end[k]);
    if (vec3_norm(outward) < 1.15 * s->shape.radius) {
      return 0;
    }
  }
  wrap_differentiate(&slope, course, &s->shape, s->end[0], s->end[1]);
  const double step = 2e-4 * s->shape.radius;
  for (int e = 0; e < 2; ++e) {
    vec3_sub(line, s->end[e], course->touch[e]);
    vec3_normalize(line);
    for (int j = 0; j < 3; ++j) {
      if (quotient(expected, s, course, &s->end[e][j], step)) {
        for (int i = 0; i < 6; ++i) {
          got[i] = slope.by_end[i / 3][e][3 * (i % 3) + j];
        }
        got[6] = line[j];
        compare(got, expected);
        ++count;
      }
    }
  }
  if (quotient(expected, s, course, &s->shape.radius, step)) {
    vec3_copy(got, slope.by_radius[0]);
    vec3_copy(got + 3, slope.by_radius[1]);
    got[6] = slope.length_by_radius;
    compare(got, expected);
    ++count;
  }
  return count;
}

static void test_random(int is_cylinder, int side_kind) {
  int wraps = 0, compared = 0;
  worst = 0.0;
  for (int i = 0; i < TRIALS; ++i) {
    string s = random_string(is_cylinder, side_kind);
    wrap_course course;
    if (run(&course, &s)) {
      ++wraps;
      check_taut(&course, &s);
      check_shortest(&course, &s);
      compared += check_slopes(&course, &s);
    }
  }
  printf("cylinder %d side %d: %d wraps, %d derivatives, worst %.2g\n", is_cylinder, side_kind,
         wraps, compared, worst);
  CHECK(wraps > TRIALS / 20);
  CHECK(compared > wraps);
}

/* Over a pulley by a half turn, and one straight line beside it. */
static void test_closed_forms(void) {
  string s = {.shape = {.centre = {0.0, 0.0, 0.0},
                        .axis = {0.0, 0.0, 1.0},
                        .front = {1.0, 0.0, 0.0},
                        .radius = 0.5}};
  wrap_course course;
  for (int is_cylinder = 0; is_cylinder < 2; ++is_cylinder) {
    s.shape.is_cylinder = is_cylinder;
    vec3_set(s.end[0], -0.5, -1.0, 0.0);
    vec3_set(s.end[1], 0.5, -1.0, 0.0);
    vec3_set(s.side, 0.0, 1.0, 0.0);
    s.has_side = 0;
    CHECK(!run(&course, &s));
    s.has_side = 1;
    CHECK(run(&course, &s));
    CHECK_NEAR(course.angle, acos(-1.0), 1e-14);
    CHECK_NEAR(whole_length(&course, &s), 2.0 + 0.5 * acos(-1.0), 1e-14);
    vec3_set(s.side, 0.1, 0.2, 0.0); /* inside: to the middle and back */
    CHECK(run(&course, &s));
    CHECK_NEAR(course.touch[0][0], 0.0, 1e-14);
    CHECK_NEAR(course.touch[0][1], -0.5, 1e-14);
    CHECK_NEAR(whole_length(&course, &s), 2.0 * hypot(0.5, 0.5), 1e-14);
    vec3_set(s.end[1], -0.5, -1.0, 0.0); /* both ends in one place */
    CHECK(run(&course, &s));
    CHECK_NEAR(course.length, 0.0, 0.0);
    CHECK_NEAR(whole_length(&course, &s), 2.0 * (hypot(0.5, 1.0) - 0.5), 1e-14);
  }
}

/* Ends in the centre, inside, on the surface; a radius of zero: no numbers that are none. */
static void test_degenerate(void) {
  static const double PLACES[][3] = {{0.0, 0.0, 0.0}, {0.1, 0.0, 0.0},  {0.5, 0.0, 0.0},
                                     {0.0, 0.0, 2.0}, {-2.0, 0.0, 0.0}, {2.0, 0.0, 0.0},
                                     {0.0, 0.5, 1.0}, {1.0, 0.0, 0.0},  {-0.5, 0.0, 0.0}};
  enum { COUNT = sizeof PLACES / sizeof *PLACES };
  for (int i = 0; i < COUNT * COUNT * COUNT * 4; ++i) {
    string s = {.shape = {.axis = {0.0, 0.0, 1.0},
                          .front = {1.0, 0.0, 0.0},
                          .radius = (i & 1) ? 0.5 : 0.0}};
    wrap_course course;
    wrap_slope slope;
    s.shape.is_cylinder = (i >> 1) & 1;
    vec3_copy(s.end[0], PLACES[i / 4 % COUNT]);
    vec3_copy(s.end[1], PLACES[i / 4 / COUNT % COUNT]);
    vec3_copy(s.side, PLACES[i / 4 / COUNT / COUNT]);
    for (s.has_side = 0; s.has_side < 2; ++s.has_side) {
      if (run(&course, &s)) {
        wrap_differentiate(&slope, &course, &s.shape, s.end[0], s.end[1]);
        CHECK(isfinite(whole_length(&course, &s)));
        for (int k = 0; k < 36; ++k) {
          CHECK(isfinite(slope.by_end[k / 18][k / 9 % 2][k % 9]));
        }
        CHECK(isfinite(vec3_norm(slope.by_radius[0]) + vec3_norm(slope.by_radius[1])));
        CHECK(isfinite(slope.length_by_radius));
      }
    }
  }
}

int main(void) {
  for (int is_cylinder = 0; is_cylinder < 2; ++is_cylinder) {
    for (int side_kind = 0; side_kind < 3; ++side_kind) {
      test_random(is_cylinder, side_kind);
    }
  }
  test_closed_forms();
  test_degenerate();
  return check_report();
}
