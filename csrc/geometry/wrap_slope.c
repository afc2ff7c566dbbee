/* Derivatives of a string's course. The length of the string is stationary in the points where it
 * touches. Their motion therefore does not change the length, only the directions. */
#include "base/vec3.h"
#include "geometry/wrap.h"

/* M += s a b' */
static void add_outer(double M[9], double s, const double a[3], const double b[3]) {
  for (int i = 0; i < 9; ++i) {
    M[i] += s * a[i / 3] * b[i % 3];
  }
}

/* M += s (x -> n x x) */
static void add_cross(double M[9], double s, const double n[3]) {
  const double skew[9] = {0.0, -n[2], n[1], n[2], 0.0, -n[0], -n[1], n[0], 0.0};
  for (int i = 0; i < 9; ++i) {
    M[i] += s * skew[i];
  }
}

static double inverse(double x) { return x > 0.0 ? 1.0 / x : 0.0; }

/* One end of a string that touches from outside, projected along the normal. */
typedef struct plane_end {
  double place[3], across[3];    /* p relative to the centre, n x p */
  double square, tangent, pulls; /* |p|^2, length T of the straight part, sign +-s (wrap.c) */
  double line[3];                /* unit, from the end to the contact point */
  double height;
} plane_end;

static void find_end(plane_end *out, const wrap_course *course, const wrap_shape *shape,
                     const double end[3], int k) {
  double touch[3];
  vec3_sub(out->place, end, shape->centre);
  out->height = vec3_dot(course->normal, out->place);
  vec3_axpy(out->place, -out->height, course->normal);
  vec3_cross(out->across, course->normal, out->place);
  out->square = vec3_dot(out->place, out->place);
  out->tangent = sqrt(fmax(0.0, out->square - shape->radius * shape->radius));
  out->pulls = k == 0 ? course->turn : -course->turn;
  vec3_sub(touch, course->touch[k], shape->centre);
  vec3_axpy(touch, -vec3_dot(course->normal, touch), course->normal);
  vec3_sub(out->line, touch, out->place);
  vec3_normalize(out->line);
}

/* t = (r^2 p + s r T n x p) / l^2 differentiated by p within a fixed plane, and by r. */
static void differentiate_tangent(double M[9], double by_radius[3], const plane_end *end,
                                  const double normal[3], double r) {
  const double l2 = end->square, T = end->tangent, s = end->pulls;
  static const double unit[3][3] = {{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}, {0.0, 0.0, 1.0}};
  for (int i = 0; i < 3; ++i) {
    add_outer(M, r * r / l2, unit[i], unit[i]);
  }
  add_outer(M, -r * r / l2, normal, normal);
  add_outer(M, -2.0 * r * r / (l2 * l2), end->place, end->place);
  add_cross(M, s * r * T / l2, normal);
  add_outer(M, s * r * (inverse(T) - 2.0 * T / l2) / l2, end->across, end->place);
  vec3_scale(by_radius, end->place, 2.0 * r / l2);
  vec3_axpy(by_radius, s * (T - r * r * inverse(T)) / l2, end->across);
}

/* The plane of a sphere rotates by dn = ((n.dr0) n x r1 - (n.dr1) n x r0) / |r0 x r1|. Each point
 * moves along n with the plane, and with its own end. */
static void turn_plane(wrap_slope *out, const plane_end end[2], const double normal[3], double r) {
  double both[3];
  vec3_cross(both, end[0].place, end[1].place);
  const double area = vec3_norm(both), dot = vec3_dot(end[0].place, end[1].place);
  for (int k = 0; k < 2; ++k) {
    const double l2 = end[k].square, scale = end[k].pulls * r * end[k].tangent / l2 * inverse(area);
    const double sign = k == 0 ? 1.0 : -1.0;
    add_outer(out->by_end[k][k], r * r / l2 - sign * scale * dot, normal, normal);
    add_outer(out->by_end[k][1 - k], sign * scale * l2, normal, normal);
  }
}

/* Heights on a cylinder: h0 + (h1 - h0) f with f = T0 / S and f = 1 - T1 / S, S = T0 + r angle +
 * T1. The directions of the straight parts give dS. */
static void move_heights(wrap_slope *out, const plane_end end[2], const wrap_course *course,
                         double r) {
  const double whole = end[0].tangent + r * course->angle + end[1].tangent;
  const double rise = end[1].height - end[0].height;
  for (int k = 0; k < 2; ++k) {
    const double sign = k == 0 ? 1.0 : -1.0, own = end[k].tangent / whole;
    const double at = k == 0 ? own : 1.0 - own, scale = sign * rise / whole;
    add_outer(out->by_end[k][0], 1.0 - at, course->normal, course->normal);
    add_outer(out->by_end[k][1], at, course->normal, course->normal);
    add_outer(out->by_end[k][k], scale * inverse(end[k].tangent), course->normal, end[k].place);
    for (int e = 0; e < 2; ++e) {
      add_outer(out->by_end[k][e], scale * own, course->normal, end[e].line);
    }
    vec3_axpy(out->by_radius[k], -scale * (r * inverse(end[k].tangent) + own * course->angle),
              course->normal);
  }
  out->length_by_radius = course->angle * whole / hypot(whole, rise);
}

static void differentiate_around(wrap_slope *out, const wrap_course *course,
                                 const wrap_shape *shape, const double *const ends[2]) {
  plane_end end[2];
  for (int k = 0; k < 2; ++k) {
    find_end(end + k, course, shape, ends[k], k);
    differentiate_tangent(out->by_end[k][k], out->by_radius[k], end + k, course->normal,
                          shape->radius);
  }
  out->length_by_radius = course->angle;
  if (shape->is_cylinder) {
    move_heights(out, end, course, shape->radius);
  } else {
    turn_plane(out, end, course->normal, shape->radius);
  }
}

/* The point t makes |t - a| + |t - b| stationary on the surface: with unit vectors u from the ends
 * to t and lengths d, g = sum u has no component along the surface's tangents E. If the ends move,
 * E' sum (I - u u') / d (dt - dend) + (curvature) = 0. With dt = E x this is H x = E' sum (I - u
 * u') / d dend, where H includes -g.outward / r along each curved direction. */
static void differentiate_inside(wrap_slope *out, const wrap_course *course,
                                 const wrap_shape *shape, const double *const ends[2]) {
  double outward[3], tangent[2][3], u[2][3], d[2], H[2][2] = {{0.0}}, pull[3] = {0.0},
                                                   by[2] = {0.0};
  vec3_sub(outward, course->touch[0], shape->centre);
  vec3_copy(tangent[1], course->normal);
  vec3_axpy(outward, -vec3_dot(tangent[1], outward), tangent[1]);
  vec3_normalize(outward);
  vec3_cross(tangent[0], tangent[1], outward);
  for (int e = 0; e < 2; ++e) {
    vec3_sub(u[e], course->touch[0], ends[e]);
    d[e] = vec3_normalize(u[e]);
    vec3_axpy(pull, 1.0, u[e]);
  }
  const double bend = -vec3_dot(pull, outward) / shape->radius;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      H[i][j] = i == j && !(i == 1 && shape->is_cylinder) ? bend : 0.0;
      for (int e = 0; e < 2; ++e) {
        const double along = vec3_dot(u[e], tangent[i]) * vec3_dot(u[e], tangent[j]);
        H[i][j] += ((i == j ? 1.0 : 0.0) - along) / d[e];
      }
    }
  }
  const double det = H[0][0] * H[1][1] - H[0][1] * H[1][0];
  for (int i = 0; i < 2; ++i) {
    /* row i of H^-1 E' */
    double row[3];
    vec3_scale(row, tangent[0], (i == 0 ? H[1][1] : -H[1][0]) / det);
    vec3_axpy(row, (i == 0 ? -H[0][1] : H[0][0]) / det, tangent[1]);
    for (int e = 0; e < 2; ++e) {
      double across[3];
      vec3_reject(across, row, u[e]);
      add_outer(out->by_end[0][e], 1.0 / d[e], tangent[i], across);
      by[i] -= vec3_dot(across, outward) / d[e];
    }
  }
  memcpy(out->by_end[1], out->by_end[0], sizeof out->by_end[0]);
  vec3_copy(out->by_radius[0], outward);
  vec3_axpy(out->by_radius[0], by[0], tangent[0]);
  vec3_axpy(out->by_radius[0], by[1], tangent[1]);
  vec3_copy(out->by_radius[1], out->by_radius[0]);
  out->length_by_radius = vec3_dot(pull, outward);
}

void wrap_differentiate(wrap_slope *out, const wrap_course *course, const wrap_shape *shape,
                        const double from[3], const double to[3]) {
  const double *const ends[2] = {from, to};
  memset(out, 0, sizeof *out);
  if (course->turn == 0) {
    differentiate_inside(out, course, shape, ends);
  } else {
    differentiate_around(out, course, shape, ends);
  }
}
