/* Finds elements of two bodies that may meet: elements of the first body that may meet the second
 * one at all are tested against the tree of the second. */
#include "base/rounding.h"
#include "geometry/pressure_fields/field.h"

#include "base/vec3.h"

/* A tree of n parts has depth log4(n); a descent keeps three nodes of each level. */
#define STACK 64
/* A tetrahedron has 4; a triangle has its own plane, the reverse, and one for each edge. */
#define PLANES 5

/* 1: the order is right; -1: exchange; 0: such bodies have no contact surface. */
static int sides(qd_field_kind a, qd_field_kind b) {
  const int a_first = a == QD_FIELD_RIGID ? b == QD_FIELD_SOFT || b == QD_FIELD_SOFT_SPACE
                                          : a == QD_FIELD_SOFT && b != QD_FIELD_RIGID;
  const int b_first = b == QD_FIELD_RIGID ? a == QD_FIELD_SOFT || a == QD_FIELD_SOFT_SPACE
                                          : b == QD_FIELD_SOFT && a != QD_FIELD_RIGID;
  return a_first ? 1 : -b_first;
}

int qd_field_pair_supported(qd_field_kind a, qd_field_kind b) { return sides(a, b) != 0; }

qd_status field_pair_init(field_pair *pair, const field_placed *a, const field_placed *b) {
  const int side = sides(a->field->kind, b->field->kind);
  if (side == 0) {
    return QD_BAD_ARGUMENT;
  }
  const field_placed *first = side > 0 ? a : b, *second = side > 0 ? b : a;
  double between[3], columns[9];
  pair->is_exchanged = side < 0;
  pair->first = first->field;
  pair->second = second->field;
  pair->scale[0] = first->scale;
  pair->scale[1] = second->scale;
  for (int i = 0; i < 3; ++i) {
    mat3_column(columns + 3 * i, second->rot, i);
  }
  mat3_mul(pair->R, columns, first->rot);
  vec3_sub(between, first->pos, second->pos);
  mat3_mul_vec(pair->t, columns, between);
  return QD_OK;
}

static void move_triangle(field_moved *out, const field_pair *pair, const field_triangle *t) {
  for (int i = 0; i < 3; ++i) {
    mat3_mul_add(out->corner[i], pair->R, t->corner[i], pair->t);
  }
  mat3_mul_vec(out->normal, pair->R, t->normal);
}

static void move_cell(field_moved *out, const field_pair *pair, const field_cell *cell) {
  for (int i = 0; i < 4; ++i) {
    mat3_mul_add(out->corner[i], pair->R, cell->corner[i], pair->t);
  }
  mat3_mul_vec(out->gradient, pair->R, cell->gradient);
  vec3_scale(out->gradient, out->gradient, pair->scale[0]);
  out->offset = pair->scale[0] * cell->offset - vec3_dot(out->gradient, pair->t);
}

/* An element of the first body in the frame of the second: its bounding box, planes below which it
 * lies, and its pressures. */
typedef struct region {
  double low[3], high[3];
  double normal[PLANES][3], size[PLANES][3], offset[PLANES]; /* size: |normal| */
  int plane_count;
  double gradient[3], steepness[3], at_origin, least, most;
} region;

typedef struct search {
  const field_pair *pair;
  double reach[9]; /* |R|, element by element */
  int balanced;
  field_visit visit;
  void *context;
} search;

/* ---------------------------------------------------------------- boxes of the first body */

/* Finds boxes of the first body that are separated from the box around the second body, by the axes
 * of both boxes or by their pressures. */
QD_MULTIVERSION static void boxes_apart(const search *s, const field_node *node, lane_bits *apart) {
  const double *R = s->pair->R, *t = s->pair->t, *reach = s->reach, *scale = s->pair->scale;
  const field_box *body = &s->pair->second->whole;
  lanes way[3];
  lane_bits out = {0};
  if (s->balanced) {
    out = (node->least * scale[0] > body->most * scale[1]) |
          (node->most * scale[0] < body->least * scale[1]);
  }
  for (int k = 0; k < 3; ++k) {
    const double *r = R + 3 * k, *m = reach + 3 * k;
    const lanes room =
        m[0] * node->half[0] + m[1] * node->half[1] + m[2] * node->half[2] + body->half[k];
    way[k] = r[0] * node->centre[0] + r[1] * node->centre[1] + r[2] * node->centre[2] +
             (t[k] - body->centre[k]);
    out |= (way[k] > room) | (-way[k] > room);
  }
  for (int k = 0; k < 3; ++k) {
    const lanes along = R[k] * way[0] + R[3 + k] * way[1] + R[6 + k] * way[2];
    const lanes room = node->half[k] + (reach[k] * body->half[0] + reach[3 + k] * body->half[1] +
                                        reach[6 + k] * body->half[2]);
    out |= (along > room) | (-along > room);
  }
  *apart = out;
}

/* Finds boxes above the half space z <= 0, or with pressures that do not occur there. If it is
 * rigid, only its surface counts: then also boxes below. */
QD_MULTIVERSION static void boxes_above(const search *s, const field_node *node, lane_bits *apart) {
  const field_pair *pair = s->pair;
  const double *r = pair->R + 6, *m = s->reach + 6;
  const lanes room = m[0] * node->half[0] + m[1] * node->half[1] + m[2] * node->half[2];
  const lanes middle =
      r[0] * node->centre[0] + r[1] * node->centre[1] + r[2] * node->centre[2] + pair->t[2];
  lane_bits out = middle > room;
  if (s->balanced && !field_is_soft(pair->second)) {
    out |= -middle > room;
  } else if (s->balanced && pair->first->cell) {
    const double slope = -pair->second->cell->gradient[2] * pair->scale[1];
    out |= (node->least * pair->scale[0] > slope * (room - middle)) |
           (node->most * pair->scale[0] < -slope * (middle + room));
  }
  *apart = out;
}

/* ---------------------------------------------------------------- one element of the first body */

static void region_plane_here(region *r, const field_plane *plane) {
  const int i = r->plane_count++;
  vec3_copy(r->normal[i], plane->normal);
  for (int k = 0; k < 3; ++k) {
    r->size[i][k] = fabs(plane->normal[k]) * (1.0 + NEGLIGIBLE);
  }
  r->offset[i] = plane->offset;
}

static void region_plane(region *r, const field_pair *pair, const field_plane *plane) {
  field_plane here;
  mat3_mul_vec(here.normal, pair->R, plane->normal);
  here.offset = plane->offset + vec3_dot(here.normal, pair->t);
  region_plane_here(r, &here);
}

static void region_box(region *r, double corner[][3], int corners) {
  for (int k = 0; k < 3; ++k) {
    double low = corner[0][k], high = low;
    for (int i = 1; i < corners; ++i) {
      low = corner[i][k] < low ? corner[i][k] : low;
      high = corner[i][k] > high ? corner[i][k] : high;
    }
    r->low[k] = low;
    r->high[k] = high;
  }
}

static void region_of_cell(region *r, const search *s, int element, field_moved *moved) {
  const field_pair *pair = s->pair;
  const field_cell *cell = pair->first->cell + element;
  move_cell(moved, pair, cell);
  region_box(r, moved->corner, 4);
  for (int i = 0; i < cell->plane_count; ++i) {
    region_plane(r, pair, cell->plane + i);
  }
  vec3_copy(r->gradient, moved->gradient);
  r->at_origin = moved->offset;
  for (int k = 0; k < 3; ++k) {
    r->steepness[k] = fabs(r->gradient[k]) * (1.0 + NEGLIGIBLE);
  }
  r->least = cell->least * pair->scale[0];
  r->most = cell->most * pair->scale[0];
  const double room = NEGLIGIBLE * r->most;
  r->least -= room;
  r->most += room;
}

/* Both sides of the triangle's plane, and planes through its edges. */
static void region_of_triangle(region *r, const search *s, int element, field_moved *moved) {
  const field_pair *pair = s->pair;
  const field_triangle *t = pair->first->triangle + element;
  field_plane plane = {.offset = vec3_dot(t->normal, t->corner[0])};
  move_triangle(moved, pair, t);
  region_box(r, moved->corner, 3);
  vec3_copy(plane.normal, t->normal);
  region_plane(r, pair, &plane);
  vec3_scale(plane.normal, plane.normal, -1.0);
  plane.offset = -plane.offset;
  region_plane(r, pair, &plane);
  for (int i = 0; i < 3; ++i) {
    double edge[3];
    vec3_sub(edge, t->corner[(i + 1) % 3], t->corner[i]);
    vec3_cross(plane.normal, edge, t->normal);
    plane.offset = vec3_dot(plane.normal, t->corner[i]);
    region_plane(r, pair, &plane);
  }
}

/* Finds boxes of the second body that do not meet the region, or in which the pressures of both
 * bodies cannot be equal. */
QD_MULTIVERSION static void boxes_outside(const region *r, const field_node *node, int by_pressure,
                                          double scale, lane_bits *apart) {
  const lanes x = node->centre[0], y = node->centre[1], z = node->centre[2];
  const lanes a = node->half[0], b = node->half[1], c = node->half[2];
  lane_bits out = (x - a > r->high[0]) | (x + a < r->low[0]);
  out |= (y - b > r->high[1]) | (y + b < r->low[1]);
  out |= (z - c > r->high[2]) | (z + c < r->low[2]);
  for (int i = 0; i < r->plane_count; ++i) {
    const double *n = r->normal[i], *m = r->size[i];
    out |= n[0] * x + n[1] * y + n[2] * z - r->offset[i] > m[0] * a + m[1] * b + m[2] * c;
  }
  if (by_pressure) {
    const double *g = r->gradient, *m = r->steepness;
    const lanes here = g[0] * x + g[1] * y + g[2] * z + r->at_origin;
    const lanes room = m[0] * a + m[1] * b + m[2] * c;
    const lanes least = node->least * scale, most = node->most * scale;
    out |= (here - room > most) | (here + room < least);
    out |= (most < r->least) | (least > r->most);
  }
  *apart = out;
}

int field_sweep_planes(field_plane plane[4], const field_moved *moved, const double way[3]) {
  const double along = vec3_dot(moved->normal, way);
  const double ahead = along > 0.0 ? 1.0 : -1.0;
  if (!(fabs(along) > SUM_ROUNDING)) {
    return 0;
  }
  vec3_scale(plane[0].normal, moved->normal, -ahead);
  plane[0].offset = vec3_dot(plane[0].normal, moved->corner[0]);
  for (int i = 0; i < 3; ++i) {
    double edge[3];
    vec3_sub(edge, moved->corner[(i + 1) % 3], moved->corner[i]);
    vec3_scale(edge, edge, ahead);
    vec3_cross(plane[1 + i].normal, edge, way);
    plane[1 + i].offset = vec3_dot(plane[1 + i].normal, moved->corner[i]);
  }
  return (int)ahead;
}

/* The region that a triangle sweeps; returns 0 if the triangle is parallel to the sweep. */
static int region_of_sweep(region *r, const search *s, int element, const double way[3],
                           field_moved *moved) {
  field_plane plane[4];
  move_triangle(moved, s->pair, s->pair->first->triangle + element);
  if (field_sweep_planes(plane, moved, way) == 0) {
    return 0;
  }
  region_box(r, moved->corner, 3);
  for (int k = 0; k < 3; ++k) {
    r->low[k] = way[k] < 0.0 ? -INFINITY : r->low[k];
    r->high[k] = way[k] > 0.0 ? INFINITY : r->high[k];
  }
  for (int i = 0; i < 4; ++i) {
    region_plane_here(r, plane + i);
  }
  return 1;
}

static void region_meets(const search *s, const region *r, int element, const field_moved *moved) {
  const qd_field *second = s->pair->second;
  const int by_pressure = s->balanced && s->pair->first->cell != NULL;
  int stack[STACK], count = 1;
  stack[0] = 0;
  while (count > 0) {
    const field_node *node = second->node + stack[--count];
    lane_bits apart;
    boxes_outside(r, node, by_pressure, s->pair->scale[1], &apart);
    for (int l = 0; l < LANE_COUNT; ++l) {
      if (!apart[l] && node->below[l] < 0) {
        s->visit(s->context, element, moved, second->part + ~node->below[l]);
      } else if (!apart[l]) {
        stack[count++] = node->below[l];
      }
    }
  }
}

/* An element of the first body against the tree of the second. */
static void element_meets(const search *s, int element) {
  region r = {.plane_count = 0};
  field_moved moved;
  if (s->pair->first->cell) {
    region_of_cell(&r, s, element, &moved);
  } else {
    region_of_triangle(&r, s, element, &moved);
  }
  region_meets(s, &r, element, &moved);
}

/* ---------------------------------------------------------------- the first body's tree */

static void are_apart(const search *s, const field_node *node, lane_bits *apart) {
  if (field_is_space(s->pair->second)) {
    boxes_above(s, node, apart);
  } else {
    boxes_apart(s, node, apart);
  }
}

/* 1 if an earlier part of the same element may meet the second body: each element is visited
 * once. */
static int was_taken(const search *s, const field_part *part) {
  for (const field_part *p = part; p->from > -INFINITY;) {
    --p;
    lane_bits apart;
    field_node alone;
    field_node_fill(&alone, &p->box);
    are_apart(s, &alone, &apart);
    if (!apart[0]) {
      return 1;
    }
  }
  return 0;
}

static void part_meets(const search *s, const field_part *part) {
  if (was_taken(s, part)) {
    return;
  }
  if (s->pair->second->node_count > 0) {
    element_meets(s, part->element);
    return;
  }
  field_moved moved;
  if (s->pair->first->cell) {
    move_cell(&moved, s->pair, s->pair->first->cell + part->element);
  } else {
    move_triangle(&moved, s->pair, s->pair->first->triangle + part->element);
  }
  s->visit(s->context, part->element, &moved, s->pair->second->part);
}

/* 1 if the bounding balls of two bodies do not meet. */
static int far_apart(const field_pair *pair) {
  const qd_field *first = pair->first, *second = pair->second;
  double way[3];
  mat3_mul_add(way, pair->R, first->whole.centre, pair->t);
  vec3_sub(way, way, second->whole.centre);
  const double reach = first->radius + second->radius;
  return !field_is_space(second) && vec3_dot(way, way) > reach * reach;
}

void field_pairs_visit(const field_pair *pair, int balanced, field_visit visit, void *context) {
  search s = {.pair = pair, .balanced = balanced, .visit = visit, .context = context};
  const qd_field *first = pair->first;
  if (far_apart(pair)) {
    return;
  }
  for (int k = 0; k < 9; ++k) {
    s.reach[k] = fabs(pair->R[k]) + NEGLIGIBLE;
  }
  int stack[STACK], count = 1;
  stack[0] = 0;
  while (count > 0) {
    const field_node *node = first->node + stack[--count];
    lane_bits apart;
    are_apart(&s, node, &apart);
    for (int l = 0; l < LANE_COUNT; ++l) {
      if (!apart[l] && node->below[l] < 0) {
        part_meets(&s, first->part + ~node->below[l]);
      } else if (!apart[l]) {
        stack[count++] = node->below[l];
      }
    }
  }
}

void field_sweeps_visit(const field_pair *pair, const double way[3], field_visit visit,
                        void *context) {
  const search s = {.pair = pair, .visit = visit, .context = context};
  for (int i = 0; i < pair->first->element_count; ++i) {
    region r = {.plane_count = 0};
    field_moved moved;
    if (region_of_sweep(&r, &s, i, way, &moved)) {
      region_meets(&s, &r, i, &moved);
    }
  }
}
