/* A taut string is straight where it is free and a geodesic where it touches.
 *
 * On a sphere it lies in the plane of its ends and the centre, with normal n = r0 x r1 / |r0 x r1|
 * (r0, r1: the ends relative to the centre). A cylinder's surface unrolls: seen along its axis n
 * the string wraps around a circle, and its height is proportional to the length of that plane
 * curve. Both are thus a plane problem between the projected ends p0 and p1, at distances l from
 * the centre.
 *
 * Outside, the string turns about n (turn s = 1 or -1). Its straight parts of lengths T = sqrt(l^2
 * - r^2) are tangents: t = (r^2 p +- s r T n x p) / l^2, + at the first end and - at the second.
 * Without a side, the straight line is used unless it meets the circle; then the shorter turn. With
 * a side, the line is used unless it meets the circle or passes on the other side; then the turn
 * whose midpoint of t0 and t1 is nearer to the side. Turns whose straight parts cross are excluded.
 *
 * Inside, the string touches at one point t, with equal angles a to the normal there (the shortest
 * path that meets the surface). With A = r / l0 and B = r / l1, the triangles of centre, end and t
 * have the angles asin(A sin a) and asin(B sin a) at the ends, hence a - asin(A sin a) and a -
 * asin(B sin a) at the centre. Their sum is the angle G between the ends:
 *
 *   F(a) = 2 a - asin(A sin a) - asin(B sin a) - G = 0.
 *
 * F is convex and increasing, and F(pi / 2) >= 0 unless the straight line meets the circle:
 * Newton's method from pi / 2 descends to the root. MuJoCo solves for sin a, to 1e-6. */
#include "geometry/wrap.h"

#include "base/rounding.h"
#include "base/vec3.h"

static const double TINY = 1e-15; /* smaller (squared) lengths are zero, as in MuJoCo */
enum { ITERATIONS = 100 };

/* ---------------------------------------------------------------- in the plane */

static double dot2(const double a[2], const double b[2]) { return a[0] * b[0] + a[1] * b[1]; }

static double cross2(const double a[2], const double b[2]) { return a[0] * b[1] - a[1] * b[0]; }

/* The point of the line from p to q nearest to the origin. Returns 0 if it is an end or if the line
 * has no length. */
static int nearest_on_line(double out[2], const double p[2], const double q[2]) {
  const double along[2] = {q[0] - p[0], q[1] - p[1]}, square = dot2(along, along);
  const double at = square > TINY ? -dot2(p, along) / square : 0.0;
  const double within = fmax(0.0, fmin(1.0, at));
  out[0] = p[0] + within * along[0];
  out[1] = p[1] + within * along[1];
  return at > 0.0 && at < 1.0;
}

static int lines_cross(const double p[2], const double p_end[2], const double q[2],
                       const double q_end[2]) {
  const double a[2] = {p_end[0] - p[0], p_end[1] - p[1]}, b[2] = {q_end[0] - q[0], q_end[1] - q[1]};
  const double between[2] = {q[0] - p[0], q[1] - p[1]}, both = cross2(a, b);
  if (fabs(both) < TINY) {
    return 0;
  }
  const double on_a = cross2(between, b) / both, on_b = cross2(between, a) / both;
  return on_a >= 0.0 && on_a <= 1.0 && on_b >= 0.0 && on_b <= 1.0;
}

/* Contact point of the tangent from p to the circle; from there the string turns positively (sign
 * 1) or negatively (-1). */
static void tangent_point(double out[2], const double p[2], double radius, double sign) {
  const double square = dot2(p, p), length = sqrt(fmax(0.0, square - radius * radius));
  out[0] = radius * (radius * p[0] - sign * length * p[1]) / square;
  out[1] = radius * (radius * p[1] + sign * length * p[0]) / square;
}

/* Ranks the two turns; the greater is better. side NULL: prefers the shorter turn. */
static double merit(double touch[2][2], const double p[2][2], const double *side) {
  const double middle[2] = {touch[0][0] + touch[1][0], touch[0][1] + touch[1][1]};
  if (lines_cross(p[0], touch[0], p[1], touch[1])) {
    return -INFINITY;
  }
  if (side == NULL) {
    return dot2(middle, middle); /* 4 r^2 minus the square of the chord */
  }
  const double length = sqrt(dot2(middle, middle));
  return length > TINY ? dot2(middle, side) / length : side[0];
}

/* Returns the turn about the circle and its angle; 0: the string is straight. side: a unit
 * vector. */
static int turn_around(double touch[2][2], double *angle, const double p[2][2], const double *side,
                       double radius) {
  double nearest[2], other[2][2];
  const double apart[2] = {p[1][0] - p[0][0], p[1][1] - p[0][1]}, square = radius * radius;
  if (dot2(p[0], p[0]) < square || dot2(p[1], p[1]) < square || dot2(apart, apart) < TINY) {
    return 0;
  }
  nearest_on_line(nearest, p[0], p[1]);
  if (dot2(nearest, nearest) > square && (side == NULL || dot2(nearest, side) >= 0.0)) {
    return 0;
  }
  for (int end = 0; end < 2; ++end) {
    const double sign = end == 0 ? 1.0 : -1.0;
    tangent_point(touch[end], p[end], radius, sign);
    tangent_point(other[end], p[end], radius, -sign);
  }
  const double positive = merit(touch, p, side), negative = merit(other, p, side);
  const int turn = negative > positive ? -1 : 1;
  if (fmax(positive, negative) == -INFINITY) {
    return 0;
  }
  if (turn < 0) {
    memcpy(touch, other, sizeof other);
  }
  *angle = atan2(turn * cross2(touch[0], touch[1]), dot2(touch[0], touch[1]));
  *angle += *angle < -CALLERS_ROUNDING ? 2.0 * HALF_TURN : 0.0;
  *angle = fmax(0.0, *angle);
  return turn;
}

/* Contact point of a string that touches from inside; returns 0 if the string is straight. */
static int touch_inside(double touch[2], const double p[2][2], double radius) {
  const double l[2] = {sqrt(dot2(p[0], p[0])), sqrt(dot2(p[1], p[1]))};
  double nearest[2];
  if (l[0] <= radius || l[1] <= radius) {
    return 0;
  }
  if (nearest_on_line(nearest, p[0], p[1]) && dot2(nearest, nearest) <= radius * radius) {
    return 0;
  }
  const double A = radius / l[0], B = radius / l[1], cross = cross2(p[0], p[1]);
  const double between = atan2(fabs(cross), dot2(p[0], p[1]));
  double a = 0.5 * HALF_TURN;
  for (int i = 0; i < ITERATIONS; ++i) {
    const double s = sin(a), c = cos(a);
    const double F = 2.0 * a - asin(A * s) - asin(B * s) - between;
    const double slope =
        2.0 - A * c / sqrt(1.0 - A * A * s * s) - B * c / sqrt(1.0 - B * B * s * s);
    const double next = a - F / slope;
    if (!(next < a)) {
      break;
    }
    a = next;
  }
  a = fmax(0.0, a);
  const double turned = a - asin(A * sin(a)), s = cross > 0.0 ? sin(turned) : -sin(turned);
  touch[0] = radius / l[0] * (cos(turned) * p[0][0] - s * p[0][1]);
  touch[1] = radius / l[0] * (cos(turned) * p[0][1] + s * p[0][0]);
  return 1;
}

/* ---------------------------------------------------------------- in space */

/* A unit vector perpendicular to r. */
static void any_across(double out[3], const double r[3]) {
  const double x = fabs(r[0]), y = fabs(r[1]), z = fabs(r[2]);
  vec3_set(out, 1.0, 1.0, 1.0);
  out[y > x && y > z ? 1 : (z > x && z > y ? 2 : 0)] = 0.0;
  vec3_cross(out, r, out);
  vec3_normalize(out);
}

/* The ends relative to the centre, and the plane: its normal, its first axis towards the first end,
 * and its second axis. Returns 0 if there is no plane. */
static int find_plane(double r[2][3], double normal[3], double axis[2][3], const wrap_shape *shape,
                      const double from[3], const double to[3]) {
  vec3_sub(r[0], from, shape->centre);
  vec3_sub(r[1], to, shape->centre);
  if (!(vec3_norm(r[0]) >= TINY && vec3_norm(r[1]) >= TINY && shape->radius >= TINY)) {
    return 0;
  }
  if (shape->is_cylinder) {
    vec3_copy(normal, shape->axis);
  } else {
    vec3_cross(normal, r[0], r[1]);
    if (vec3_normalize(normal) < TINY) {
      any_across(normal, r[0]);
    }
  }
  vec3_reject(axis[0], r[0], normal);
  if (vec3_normalize(axis[0]) == 0.0) {
    return 0;
  }
  vec3_cross(axis[1], normal, axis[0]);
  return 1;
}

/* The side's direction in the plane. Returns 0 if the side lies inside the surface. */
static int find_side(double out[2], double axis[2][3], const wrap_shape *shape,
                     const double side[3]) {
  double r[3];
  vec3_sub(r, side, shape->centre);
  const double distance = vec3_norm(r);
  out[0] = vec3_dot(axis[0], r);
  out[1] = vec3_dot(axis[1], r);
  const double length = sqrt(dot2(out, out));
  if (length < TINY) {
    const double *front = shape->is_cylinder ? shape->front : axis[0];
    out[0] = vec3_dot(axis[0], front);
    out[1] = vec3_dot(axis[1], front);
  } else {
    out[0] /= length;
    out[1] /= length;
  }
  return distance >= shape->radius;
}

/* Sets the heights of the two points on a cylinder, proportional to the length of the string before
 * them. */
static void add_heights(wrap_course *out, const wrap_shape *shape, double r[2][3], double p[2][2],
                        double touch[2][2]) {
  const double around = shape->radius * out->angle;
  double before[2], height[2];
  for (int i = 0; i < 2; ++i) {
    before[i] = hypot(p[i][0] - touch[i][0], p[i][1] - touch[i][1]);
    height[i] = vec3_dot(shape->axis, r[i]);
  }
  const double whole = before[0] + around + before[1], rise = height[1] - height[0];
  vec3_axpy(out->touch[0], height[0] + rise * before[0] / whole, shape->axis);
  vec3_axpy(out->touch[1], height[0] + rise * (before[0] + around) / whole, shape->axis);
  out->length = hypot(around, rise * around / whole);
}

int wrap_compute(wrap_course *out, const wrap_shape *shape, const double from[3],
                 const double to[3], const double *side) {
  double r[2][3], axis[2][3], p[2][2], at_side[2], touch[2][2];
  if (!find_plane(r, out->normal, axis, shape, from, to)) {
    return 0;
  }
  for (int i = 0; i < 4; ++i) {
    p[i / 2][i % 2] = vec3_dot(axis[i % 2], r[i / 2]);
  }
  out->angle = 0.0;
  out->turn = 0;
  if (side != NULL && !find_side(at_side, axis, shape, side)) {
    if (!touch_inside(touch[0], p, shape->radius)) {
      return 0;
    }
    memcpy(touch[1], touch[0], sizeof touch[0]);
  } else {
    out->turn = turn_around(touch, &out->angle, p, side != NULL ? at_side : NULL, shape->radius);
    if (out->turn == 0) {
      return 0;
    }
  }
  for (int i = 0; i < 2; ++i) {
    vec3_copy(out->touch[i], shape->centre);
    vec3_axpy(out->touch[i], touch[i][0], axis[0]);
    vec3_axpy(out->touch[i], touch[i][1], axis[1]);
  }
  out->length = shape->radius * out->angle;
  if (shape->is_cylinder) {
    add_heights(out, shape, r, p, touch);
  }
  return 1;
}
