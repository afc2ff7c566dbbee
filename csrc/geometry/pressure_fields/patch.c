/* The contact surface of two bodies: one polygon for each pair of cells, with its force and
 * stiffness (Elandt et al. 2019; docs/formulation.md).
 *
 * Elements of the first body are moved into the frame of the second. If the bodies were exchanged,
 * the result is exchanged at the end. Cells are cut into parts for the search; a polygon is kept
 * for the pair of parts that has the pressure at its centre. */
#include "base/rounding.h"
#include "geometry/pressure_fields/field.h"

#include <math.h>

#include "base/quat.h"
#include "base/rounding.h"
#include "base/vec3.h"

typedef struct query {
  field_pair pair;
  double filter; /* cosine of the largest angle between normal and gradient; -3: none */
  double near;   /* points closer than this coincide, m */
  int with_tangent;
  int ties; /* number of pairs whose fields are equal everywhere */
  qd_patch *patch;
  const patch_room *kept;
} query;

/* ---------------------------------------------------------------- one polygon */

typedef struct pressing {
  double normal[3];           /* of the polygon, into the second body */
  double first[3], second[3]; /* pressure gradients; for a rigid body its normal */
  double gradient[3], offset; /* of the pressure on the polygon */
  double steepness;           /* |gradient| */
  double stiffness;           /* |difference of the gradients|; 1 if one is a normal */
  double from, until;         /* range of pressures of the parts */
  int first_element, second_element;
} pressing;

/* tangent_add if `a` points along z, as for a half space. */
static void tangent_add_upright(double K[36], const polygon_moments *m, double a,
                                const double b[3]) {
  const double *s = m->second, *x = m->first;
  const double along[3] = {s[1], s[3], s[4]}, across[3] = {s[0], s[1], s[2]};
  double xb[3], yb[3], turn[3]; /* integrals of x (x cross b), y (x cross b) and x cross b */
  vec3_cross(xb, across, b);
  vec3_cross(yb, along, b);
  vec3_cross(turn, x, b);
  for (int j = 0; j < 3; ++j) {
    K[12 + j] += m->area * a * b[j];
    K[15 + j] += a * turn[j];
    K[18 + j] += x[1] * a * b[j];
    K[24 + j] -= x[0] * a * b[j];
    K[21 + j] += yb[j] * a;
    K[27 + j] -= xb[j] * a;
  }
}

/* K += integral of scale [a; x cross a] [b; x cross b]', in four blocks. */
static void tangent_add(double K[36], const polygon_moments *m, const double a[3],
                        const double b[3], double scale) {
  const double *s = m->second;
  if (a[0] == 0.0 && a[1] == 0.0) {
    tangent_add_upright(K, m, scale * a[2], b);
    return;
  }
  const double S[3][3] = {{s[0], s[1], s[2]}, {s[1], s[3], s[4]}, {s[2], s[4], s[5]}};
  double sa[3], xa[3], xb[3], P[3][3];
  vec3_scale(sa, a, scale);
  vec3_cross(xa, m->first, sa);
  vec3_cross(xb, m->first, b);
  for (int i = 0; i < 3; ++i) { /* rows of the integral of x (x cross b)' */
    vec3_cross(P[i], S[i], b);
  }
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 3; ++i) {
      K[6 * i + j] += m->area * sa[i] * b[j];
      K[6 * i + 3 + j] += sa[i] * xb[j];
      K[6 * (3 + i) + j] += xa[i] * b[j];
    }
    K[21 + j] += P[1][j] * sa[2] - P[2][j] * sa[1];
    K[27 + j] += P[2][j] * sa[0] - P[0][j] * sa[2];
    K[33 + j] += P[0][j] * sa[1] - P[1][j] * sa[0];
  }
}

static void polygon_store(query *q, const pressing *by, const field_polygon *polygon, double area,
                          double force, const double centre[3]) {
  qd_patch *patch = q->patch;
  const int index = patch->polygon_count++, first = patch->vertex_count;
  patch->vertex_count += polygon->count;
  if (index < q->kept->polygons) {
    qd_patch_polygon *out = q->kept->polygon + index;
    out->area = area;
    out->pressure = force / area;
    vec3_copy(out->centre, centre);
    vec3_copy(out->normal, by->normal);
    vec3_copy(out->gradient_a, by->first);
    vec3_copy(out->gradient_b, by->second);
    out->element_a = by->first_element;
    out->element_b = by->second_element;
    out->vertex_start = first;
    out->vertex_count = polygon->count;
  }
  if (patch->vertex_count <= q->kept->vertices) {
    memcpy(q->kept->vertex + 3 * (size_t)first, polygon->corner,
           (size_t)polygon->count * sizeof polygon->corner[0]);
  }
}

/* 1 if the cells are not cut into parts. */
static int is_whole(const pressing *by) { return by->from == -INFINITY && by->until == INFINITY; }

/* 1 if the pressure at the centre of a polygon is in the range of these parts. The polygon of two
 * cells has the same numbers for all their parts, so exactly one pair of parts keeps it. */
static int belongs(const pressing *by, const field_polygon *polygon) {
  double middle[3] = {0.0, 0.0, 0.0};
  if (is_whole(by)) {
    return 1;
  }
  for (int i = 0; i < polygon->count; ++i) {
    vec3_add(middle, middle, polygon->corner[i]);
  }
  const double pressure = vec3_dot(by->gradient, middle) / polygon->count + by->offset;
  return pressure >= by->from && pressure < by->until;
}

static void polygon_press(query *q, const pressing *by, const field_polygon *polygon) {
  polygon_moments m;
  const double *origin = polygon->corner[0];
  polygon_integrate(&m, polygon, by->normal);
  qd_patch *patch = q->patch;
  const double *g = by->gradient, *s = m.second;
  const double here = vec3_dot(g, origin) + by->offset;
  const double force = vec3_dot(g, m.first) + here * m.area;
  if (!(m.area > 0.0 && force > m.area * by->steepness * q->near)) {
    return; /* no area, or a pressure that is only rounding */
  }
  double weighted[3], centre[3], moment[3]; /* integral of p x about the first corner */
  vec3_set(weighted, s[0] * g[0] + s[1] * g[1] + s[2] * g[2],
           s[1] * g[0] + s[3] * g[1] + s[4] * g[2], s[2] * g[0] + s[4] * g[1] + s[5] * g[2]);
  vec3_axpy(weighted, here, m.first);
  vec3_scale(centre, weighted, 1.0 / force);
  vec3_add(centre, centre, origin);
  vec3_axpy(weighted, force, origin);
  vec3_cross(moment, weighted, by->normal);
  vec3_axpy(patch->force, force, by->normal);
  vec3_add(patch->moment, patch->moment, moment);
  vec3_add(patch->centre, patch->centre, weighted);
  patch->total_pressure += force;
  patch->area += m.area;
  polygon_store(q, by, polygon, m.area, force, centre);
  if (q->with_tangent) {
    polygon_moments_shift(&m, origin);
    tangent_add(patch->tangent, &m, by->second, by->first, -1.0 / by->stiffness);
  }
}

/* ---------------------------------------------------------------- pairs of elements */

static int is_wrong_way(const query *q, const double normal[3], const double gradient[3]) {
  return q->filter > -2.0 && vec3_dot(normal, gradient) < q->filter * vec3_norm(gradient);
}

/* Clips by a cell's inner planes, except the one in the plane of the polygon. */
static void clip_by_cell(field_polygon *polygon, const field_cell *cell, int in_plane) {
  for (int i = 0; i < cell->inner_planes && polygon->count >= 3; ++i) {
    if (cell->across[i] != in_plane) {
      polygon_clip(polygon, cell->plane + i);
    }
  }
}

/* Heights of the corners of a cell above a plane, rounded to zero below `room`. Returns 1 if the
 * plane does not cut the cell. A plane that contains a face belongs to the cell above it. */
static int passes_by(const double corner[4][3], const double normal[3], double offset, double room,
                     double height[4]) {
  int above = 0;
  for (int i = 0; i < 4; ++i) {
    const double h = vec3_dot(normal, corner[i]) - offset;
    height[i] = fabs(h) > room ? h : 0.0;
    above += height[i] > 0.0;
  }
  return above == 0 || above == 4;
}

/* The only corner outside the plane; -1 if more or fewer are. */
static int corner_above(const double height[4]) {
  int corner = -1, zeros = 0;
  for (int i = 0; i < 4; ++i) {
    zeros += height[i] == 0.0;
    corner = height[i] == 0.0 ? corner : i;
  }
  return zeros == 3 ? corner : -1;
}

/* 1 if the pressures at all corners of a polygon are outside the range of the parts. */
static int is_of_others(const pressing *by, const field_polygon *polygon) {
  int below = 0, above = 0;
  for (int i = 0; i < polygon->count && !is_whole(by); ++i) {
    const double pressure = vec3_dot(by->gradient, polygon->corner[i]) + by->offset;
    below += pressure < by->from;
    above += pressure >= by->until;
  }
  return below == polygon->count || above == polygon->count;
}

static void slice_and_press(query *q, const field_moved *moved, const double height[4],
                            const field_cell *second, int in_plane, pressing *by) {
  field_polygon polygon;
  polygon_slice(&polygon, moved->corner, height);
  if (polygon.count < 3 || is_of_others(by, &polygon)) {
    return;
  }
  clip_by_cell(&polygon, second, in_plane);
  if (polygon.count >= 3 && belongs(by, &polygon)) {
    polygon_press(q, by, &polygon);
  }
}

/* Takes the pressure of the polygon from the body with the smaller gradient, which is less
 * sensitive to the polygon's position. */
static void pressure_set(pressing *by, const field_moved *moved, double steepness,
                         const field_cell *second, double scale) {
  const int by_second = scale * second->steepness < steepness;
  vec3_copy(by->gradient, by_second ? by->second : by->first);
  by->offset = by_second ? scale * second->offset : moved->offset;
  by->steepness = by_second ? scale * second->steepness : steepness;
}

/* The plane in which two cells have equal pressure, clipped to both cells. */
static void soft_meets_soft(query *q, const field_cell *first, const field_moved *moved,
                            const field_cell *second, pressing *by) {
  const double *scale = q->pair.scale;
  double normal[3], height[4], heights[4] = {0.0};
  vec3_scale(by->second, second->gradient, scale[1]);
  vec3_sub(normal, by->second, moved->gradient);
  const double offset = moved->offset - scale[1] * second->offset;
  const double steepness = scale[0] * first->steepness;
  const double steepest = larger(steepness, scale[1] * second->steepness);
  const double room = steepest * q->near;
  by->stiffness = vec3_norm(normal);
  if (!(by->stiffness > HALF_DIGITS * steepest)) {
    q->ties += fabs(offset) <= HALF_DIGITS * scale[0] * first->most;
    return;
  }
  if ((second->plane_count == 4 && passes_by(second->corner, normal, offset, room, heights)) ||
      passes_by(moved->corner, normal, offset, room, height)) {
    return;
  }
  vec3_scale(by->normal, normal, 1.0 / by->stiffness);
  vec3_copy(by->first, moved->gradient);
  pressure_set(by, moved, steepness, second, scale[1]);
  if (q->filter > -2.0) {
    double toward[3];
    vec3_scale(toward, by->normal, -1.0);
    if (is_wrong_way(q, by->normal, by->second) || is_wrong_way(q, toward, by->first)) {
      return;
    }
  }
  slice_and_press(q, moved, height, second, corner_above(heights), by);
}

/* The plane z = 0 clipped to a cell of the first body; the second body is below it. */
static void soft_meets_rigid_space(query *q, const field_cell *first, const field_moved *moved,
                                   pressing *by) {
  double height[4];
  vec3_set(by->normal, 0.0, 0.0, -1.0);
  if (passes_by(moved->corner, by->normal, 0.0, q->near, height)) {
    return;
  }
  vec3_copy(by->first, moved->gradient);
  vec3_copy(by->second, by->normal);
  vec3_copy(by->gradient, moved->gradient);
  by->offset = moved->offset;
  by->steepness = q->pair.scale[0] * first->steepness;
  by->stiffness = 1.0;
  slice_and_press(q, moved, height, q->pair.second->cell, -1, by);
}

/* 1 if the triangle lies in a face of the cell. *owner: 1 if the triangle belongs to this cell; the
 * neighbouring cell sees the same face from the other side. */
static int lies_in_face(const field_moved *t, const field_plane *face, double room, int *owner) {
  for (int i = 0; i < 3; ++i) {
    if (fabs(vec3_dot(face->normal, t->corner[i]) - face->offset) > room) {
      return 0;
    }
  }
  *owner = vec3_dot(face->normal, t->normal) > 0.0;
  return 1;
}

/* The part of a rigid triangle inside a cell; count 0 if there is none. */
static void triangle_in_cell(field_polygon *polygon, const field_moved *t, const field_cell *cell,
                             double room) {
  polygon->count = 3;
  memcpy(polygon->corner, t->corner, 3 * sizeof t->corner[0]);
  for (int i = 0; i < cell->plane_count && polygon->count >= 3; ++i) {
    int owner = 1;
    if (!lies_in_face(t, cell->plane + i, room, &owner)) {
      polygon_clip(polygon, cell->plane + i);
    } else if (!owner) {
      polygon->count = 0;
    }
  }
}

static void triangle_meets_soft(query *q, const field_moved *t, const field_cell *cell,
                                pressing *by) {
  const double scale = q->pair.scale[1];
  vec3_scale(by->second, cell->gradient, scale);
  if (is_wrong_way(q, t->normal, by->second)) {
    return;
  }
  field_polygon polygon;
  triangle_in_cell(&polygon, t, cell, q->near);
  vec3_copy(by->gradient, by->second);
  by->offset = scale * cell->offset;
  by->steepness = scale * cell->steepness;
  if (polygon.count < 3 || !belongs(by, &polygon)) {
    return;
  }
  vec3_copy(by->normal, t->normal);
  vec3_scale(by->first, t->normal, -1.0);
  by->stiffness = 1.0;
  polygon_press(q, by, &polygon);
}

/* ---------------------------------------------------------------- pairs of parts */

static void elements_meet(void *context, int first, const field_moved *moved,
                          const field_part *second) {
  query *q = context;
  const field_pair *pair = &q->pair;
  const field_cell *cell = pair->second->cell + second->element;
  pressing by = {.first_element = pair->first->cell ? pair->first->cell[first].element : first,
                 .second_element = cell->element,
                 .from = second->from * pair->scale[1],
                 .until = second->until * pair->scale[1]};
  if (!pair->first->cell) {
    triangle_meets_soft(q, moved, cell, &by);
  } else if (pair->second->kind == QD_FIELD_RIGID_SPACE) {
    soft_meets_rigid_space(q, pair->first->cell + first, moved, &by);
  } else {
    soft_meets_soft(q, pair->first->cell + first, moved, cell, &by);
  }
}

/* ---------------------------------------------------------------- the whole patch */

/* The first component of largest magnitude, with its sign. */
static double leading(const double *x, int count) {
  double largest = 0.0;
  for (int i = 0; i < count; ++i) {
    largest = fmax(largest, fabs(x[i]));
  }
  for (int i = 0; i < count; ++i) {
    if (fabs(x[i]) > (1.0 - CALLERS_ROUNDING) * largest) {
      return x[i];
    }
  }
  return 0.0;
}

/* Index of the body that counts as stiffer if the fields are equal. If the bodies are exchanged,
 * the choice is exchanged too, so action equals reaction. */
static int stiffer(const field_pair *pair, double room) {
  const double *R = pair->R;
  double between[3];
  mat3_tmul_vec(between, R, pair->t);
  vec3_add(between, between, pair->t);
  if (vec3_norm(between) > room) {
    return leading(between, 3) < 0.0;
  }
  const double turn[3] = {R[7] - R[5], R[2] - R[6], R[3] - R[1]};
  return leading(turn, 3) < 0.0;
}

static void run(query *q) {
  *q->patch = (qd_patch){0};
  q->ties = 0;
  field_pairs_visit(&q->pair, 1, elements_meet, q);
  if (q->patch->total_pressure > 0.0) {
    vec3_scale(q->patch->centre, q->patch->centre, 1.0 / q->patch->total_pressure);
  }
}

qd_status field_patch_placed(const field_placed *a, const field_placed *b,
                             const qd_patch_options *options, qd_patch *patch,
                             const patch_room *room) {
  const qd_patch_options as_asked = options ? *options : (qd_patch_options){0};
  query q = {.filter = as_asked.filter_angle > 0.0 ? cos(as_asked.filter_angle) : -3.0,
             .with_tangent = !as_asked.without_tangent,
             .patch = patch,
             .kept = room};
  const qd_status status = field_pair_init(&q.pair, a, b);
  if (status != QD_OK) {
    return status;
  }
  q.near = CANCELLED * (vec3_norm(q.pair.t) + q.pair.first->reach + q.pair.second->reach);
  run(&q);
  if (q.ties > 0) {
    /* equal fields that overlap would give a surface with thickness */
    q.pair.scale[stiffer(&q.pair, CALLERS_ROUNDING * q.pair.first->reach)] *=
        1.0 + CALLERS_ROUNDING;
    run(&q);
  }
  if (patch->polygon_count > 0) {
    const field_placed *second = q.pair.is_exchanged ? a : b;
    if (q.pair.is_exchanged) {
      field_patch_exchange(patch, room);
    }
    field_patch_turn(patch, room, second->rot, second->pos);
  }
  return patch->polygon_count > room->polygons && room->polygons > 0 ? QD_OUT_OF_CAPACITY : QD_OK;
}

static void place(field_placed *out, const qd_field *field, const double pose[7]) {
  out->field = field;
  out->scale = 1.0;
  quat_to_mat3(out->rot, pose + 3);
  vec3_copy(out->pos, pose);
}

qd_status qd_field_patch(const qd_field *a, const qd_field *b, const double pose_a[7],
                         const double pose_b[7], const qd_patch_options *options, qd_patch *patch,
                         qd_patch_polygon *polygons, int polygon_capacity, double *vertices,
                         int vertex_capacity) {
  const patch_room room = {polygons, vertices, polygon_capacity, vertex_capacity};
  field_placed first, second;
  place(&first, a, pose_a);
  place(&second, b, pose_b);
  return field_patch_placed(&first, &second, options, patch, &room);
}

qd_status qd_field_energy(const qd_field *a, const qd_field *b, const double pose_a[7],
                          const double pose_b[7], double *energy) {
  field_placed first, second;
  place(&first, a, pose_a);
  place(&second, b, pose_b);
  return field_energy_placed(&first, &second, energy);
}
