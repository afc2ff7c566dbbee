/* A polygon lies in the surface of equal pressure, or in a triangle of a rigid body. It ends at
 * faces of the cells of both bodies, and each face moves with its body. Let u be the velocity of
 * the surface along its normal n, and s the velocity of its edges within the surface. For a fixed
 * field f,
 *   d integral f dA = integral u df/dn dA + integral over the edges of f s.
 * All functions are linear on the polygon, so the rules below are exact. */
#include "geometry/pressure_fields/polygon_change.h"

#include "base/rounding.h"
#include "base/vec3.h"

/* Six relative motions of the first body, and the change of its modulus. */
#define MOTIONS 7
/* Relative to a polygon's size: shorter edges are negligible. */
#define SHORT_EDGE 1e-4

typedef struct face {
  double normal[3], offset;
  int side;
} face;

typedef struct state {
  const qd_patch_polygon *polygon;
  const double *vertex, *about;
  int soft[2];
  double middle[3]; /* centroid */
  double slope[3];  /* gradient of the pressure that is integrated */
  double pressure;  /* at `middle` */
  double stiffness; /* |difference of the gradients| */
  double size, most;
  face face[8];
  int faces;
  double d_force[MOTIONS], d_first[MOTIONS][3]; /* about the centre of pressure */
} state;

static double pressure_at(const state *s, const double x[3]) {
  return s->pressure + vec3_dot_sub(s->slope, x, s->middle);
}

/* Velocity of the first body's material at x in motion k. */
static void velocity_at(double v[3], const state *s, int k, const double x[3]) {
  double axis[3] = {0.0, 0.0, 0.0}, arm[3];
  axis[k % 3] = k < 6 ? 1.0 : 0.0;
  if (k >= 3) {
    vec3_copy(v, axis);
    return;
  }
  vec3_sub(arm, x, s->about);
  vec3_cross(v, axis, arm);
}

/* Rate of the first body's pressure at a fixed point. */
static double pressure_rate(const state *s, int k, const double v[3], double pressure) {
  return k == 6 ? pressure : -vec3_dot(s->polygon->gradient_a, v);
}

/* Velocity of the surface along its normal. */
static double surface_speed(const state *s, int k, const double v[3], double pressure) {
  if (!s->soft[0]) {
    return vec3_dot(v, s->polygon->normal);
  }
  return s->soft[1] ? pressure_rate(s, k, v, pressure) / s->stiffness : 0.0;
}

/* ---------------------------------------------------------------- faces at its edges */

static void add_face(state *s, const field_side *side, int index, const field_plane *plane) {
  face *out = s->face + s->faces++;
  mat3_mul_vec(out->normal, side->rot, plane->normal);
  out->offset = plane->offset + vec3_dot(out->normal, side->pos);
  out->side = index;
}

static void add_cell(state *s, const field_side *side, int index, const field_cell *cell) {
  for (int i = 0; i < cell->inner_planes; ++i) {
    add_face(s, side, index, cell->plane + i);
  }
}

static void add_triangle(state *s, const field_side *side, int index, const field_triangle *t) {
  for (int i = 0; i < 3; ++i) {
    field_plane plane;
    double edge[3];
    vec3_sub(edge, t->corner[(i + 1) % 3], t->corner[i]);
    vec3_cross(plane.normal, edge, t->normal);
    vec3_normalize(plane.normal);
    plane.offset = vec3_dot(plane.normal, t->corner[i]);
    add_face(s, side, index, &plane);
  }
}

static void list_faces(state *s, const field_side side[2]) {
  const int element[2] = {s->polygon->element_a, s->polygon->element_b};
  s->faces = 0;
  for (int i = 0; i < 2; ++i) {
    const qd_field *field = side[i].field;
    if (field->kind == QD_FIELD_RIGID) {
      add_triangle(s, side + i, i, field->triangle + element[i]);
    } else if (field->kind == QD_FIELD_SOFT) {
      add_cell(s, side + i, i, field->cell + element[i]);
    }
  }
}

static double distance_of(const face *f, const double *a, const double *b) {
  return fmax(fabs(vec3_dot(f->normal, a) - f->offset), fabs(vec3_dot(f->normal, b) - f->offset));
}

/* The face that contains an edge; *both: 1 if faces of both bodies contain it. */
static const face *face_of(const state *s, const double *a, const double *b, int *both) {
  const face *found = NULL;
  double least = INFINITY, other = INFINITY;
  for (int i = 0; i < s->faces; ++i) {
    const double distance = distance_of(s->face + i, a, b);
    if (distance < least) {
      other = found != NULL && found->side != s->face[i].side ? least : other;
      least = distance;
      found = s->face + i;
    } else if (found != NULL && found->side != s->face[i].side) {
      other = fmin(other, distance);
    }
  }
  *both = other <= CALLERS_ROUNDING * s->size;
  return found;
}

/* ---------------------------------------------------------------- integrals */

static void add_moment(state *s, int k, double weight, double force, const double x[3]) {
  double arm[3];
  vec3_sub(arm, x, s->polygon->centre);
  s->d_force[k] += weight * force;
  vec3_axpy(s->d_first[k], weight * force, arm);
}

static void add_point(state *s, const double x[3], double weight) {
  const double *n = s->polygon->normal, p = pressure_at(s, x), steep = vec3_dot(n, s->slope);
  for (int k = 0; k < MOTIONS; ++k) {
    double v[3];
    velocity_at(v, s, k, x);
    const double u = surface_speed(s, k, v, p);
    const double rate = s->soft[1] ? 0.0 : pressure_rate(s, k, v, p);
    add_moment(s, k, weight, rate + u * steep, x);
    vec3_axpy(s->d_first[k], weight * p * u, n);
  }
}

/* Integral over the area by a rule of degree two on the triangles of the fan. */
static void add_inside(state *s) {
  const double *n = s->polygon->normal, *origin = s->vertex;
  for (int i = 2; i < s->polygon->vertex_count; ++i) {
    const double *corner[3] = {origin, s->vertex + 3 * (i - 1), s->vertex + 3 * i};
    double a[3], b[3], cross[3];
    vec3_sub(a, corner[1], origin);
    vec3_sub(b, corner[2], origin);
    vec3_cross(cross, a, b);
    const double weight = fabs(vec3_dot(cross, n)) / 6.0;
    for (int k = 0; k < 3; ++k) {
      double x[3];
      vec3_add(x, corner[k], corner[(k + 1) % 3]);
      vec3_scale(x, x, 0.5);
      add_point(s, x, weight);
    }
  }
}

/* Integral over an edge by Simpson's rule; nu: outward normal of the edge in the polygon's
 * plane. */
static void add_edge_on(state *s, const face *on, const double *a, const double *b,
                        const double nu[3], double length) {
  static const double WEIGHT[3] = {1.0 / 6.0, 4.0 / 6.0, 1.0 / 6.0};
  const double along = vec3_dot(on->normal, nu), upright = vec3_dot(on->normal, s->polygon->normal);
  for (int i = 0; i < 3; ++i) {
    double x[3];
    for (int j = 0; j < 3; ++j) {
      x[j] = a[j] + 0.5 * i * (b[j] - a[j]);
    }
    const double p = pressure_at(s, x);
    for (int k = 0; k < MOTIONS; ++k) {
      double v[3];
      velocity_at(v, s, k, x);
      const double u = surface_speed(s, k, v, p);
      const double with = on->side == 0 ? vec3_dot(on->normal, v) : 0.0;
      add_moment(s, k, WEIGHT[i] * length, p * (with - u * upright) / along, x);
    }
  }
}

static int add_edge(state *s, const double *a, const double *b, double turn) {
  double edge[3], nu[3];
  int both;
  vec3_sub(edge, b, a);
  const double length = vec3_norm(edge);
  const double p = fmax(fabs(pressure_at(s, a)), fabs(pressure_at(s, b)));
  if (!(length > 0.0) || p <= NEGLIGIBLE * s->most) {
    return 1;
  }
  const int counts = length > SHORT_EDGE * s->size;
  vec3_cross(nu, edge, s->polygon->normal);
  vec3_scale(nu, nu, turn);
  vec3_normalize(nu);
  const face *on = face_of(s, a, b, &both);
  if (on == NULL || !(fabs(vec3_dot(on->normal, nu)) > HALF_DIGITS)) {
    return !counts;
  }
  add_edge_on(s, on, a, b, nu, length);
  return !(both && counts);
}

/* 1 or -1: orientation of the corners, which may be reversed if the bodies were exchanged. */
static double turn_of(const state *s) {
  double sum[3] = {0.0, 0.0, 0.0};
  for (int i = 2; i < s->polygon->vertex_count; ++i) {
    double a[3], b[3];
    vec3_sub(a, s->vertex + 3 * (i - 1), s->vertex);
    vec3_sub(b, s->vertex + 3 * i, s->vertex);
    vec3_add_cross(sum, 1.0, a, b);
  }
  return vec3_dot(sum, s->polygon->normal) < 0.0 ? -1.0 : 1.0;
}

/* ---------------------------------------------------------------- the whole */

/* Centroid of the polygon, where the pressure equals its mean. */
static void find_middle(state *s) {
  const int count = s->polygon->vertex_count;
  double area = 0.0, weighted[3] = {0.0, 0.0, 0.0};
  for (int i = 2; i < count; ++i) {
    double a[3], b[3], cross[3];
    vec3_sub(a, s->vertex + 3 * (i - 1), s->vertex);
    vec3_sub(b, s->vertex + 3 * i, s->vertex);
    vec3_cross(cross, a, b);
    const double part = vec3_dot(cross, s->polygon->normal);
    area += part;
    vec3_add(a, a, b);
    vec3_axpy(weighted, part / 3.0, a);
  }
  vec3_scale(weighted, weighted, area != 0.0 ? 1.0 / area : 0.0);
  vec3_add(s->middle, s->vertex, weighted);
  s->size = s->most = 0.0;
  s->pressure = s->polygon->pressure;
  for (int i = 0; i < count; ++i) {
    double arm[3];
    vec3_sub(arm, s->vertex + 3 * i, s->middle);
    s->size = fmax(s->size, vec3_norm(arm));
    s->most = fmax(s->most, fabs(pressure_at(s, s->vertex + 3 * i)));
  }
}

static void normal_change(double dn[3], const state *s, int k) {
  const double *n = s->polygon->normal, *g = s->polygon->gradient_a;
  double axis[3] = {0.0, 0.0, 0.0}, change[3];
  axis[k % 3] = k < 3 ? 1.0 : 0.0;
  vec3_set(dn, 0.0, 0.0, 0.0);
  if (!s->soft[0]) {
    vec3_cross(dn, axis, n);
  } else if (s->soft[1]) {
    vec3_cross(change, g, axis);
    vec3_axpy(change, k == 6 ? -1.0 : 0.0, g);
    vec3_reject(dn, change, n);
    vec3_scale(dn, dn, 1.0 / s->stiffness);
  }
}

int field_polygon_change(double by[POLYGON_NUMBERS * POLYGON_BY], const qd_patch_polygon *polygon,
                         const double *vertex, const field_side side[2], const double about[3]) {
  const double force = polygon->area * polygon->pressure;
  double difference[3];
  int regular = 1;
  state s = {.polygon = polygon, .vertex = vertex, .about = about};
  for (int i = 0; i < 2; ++i) {
    s.soft[i] = field_is_soft(side[i].field);
  }
  vec3_copy(s.slope, s.soft[1] ? polygon->gradient_b : polygon->gradient_a);
  vec3_sub(difference, polygon->gradient_b, polygon->gradient_a);
  s.stiffness = vec3_norm(difference);
  memset(by, 0, POLYGON_NUMBERS * POLYGON_BY * sizeof(double));
  if (!(force > 0.0)) {
    return 1;
  }
  find_middle(&s);
  list_faces(&s, side);
  add_inside(&s);
  const double turn = turn_of(&s);
  for (int i = 0; i < polygon->vertex_count; ++i) {
    const int next = i + 1 < polygon->vertex_count ? i + 1 : 0;
    regular &= add_edge(&s, vertex + 3 * i, vertex + 3 * next, turn);
  }
  for (int k = 0; k < MOTIONS; ++k) {
    double numbers[POLYGON_NUMBERS];
    vec3_scale(numbers, s.d_first[k], 1.0 / force);
    normal_change(numbers + 3, &s, k);
    numbers[6] = s.d_force[k];
    for (int i = 0; i < POLYGON_NUMBERS; ++i) {
      by[POLYGON_BY * i + k] = k < 6 || s.soft[0] ? numbers[i] : 0.0;
    }
  }
  for (int i = 0; i < POLYGON_NUMBERS && s.soft[1]; ++i) { /* both moduli scale the force */
    by[POLYGON_BY * i + 7] = (i == 6 ? force : 0.0) - by[POLYGON_BY * i + 6];
  }
  return regular;
}
