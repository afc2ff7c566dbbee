/* Which parts of two bodies may meet: a descent through both of their trees at once. */
#include "geometry/fields/field.h"

#include "base/vec3.h"

/* A tree of n parts is log2(n) deep; a descent keeps one pair for each level of either. */
#define STACK 160
/* Boxes that are apart by less than this share of their size may overlap. */
#define ROOM 1e-12

/* 1: as given; -1: exchanged; 0: no surface between such bodies. */
static int sides(qd_field_kind a, qd_field_kind b) {
  const int a_first = a == QD_FIELD_RIGID ? b == QD_FIELD_SOFT || b == QD_FIELD_SOFT_SPACE
                                          : a == QD_FIELD_SOFT && b != QD_FIELD_RIGID;
  const int b_first = b == QD_FIELD_RIGID ? a == QD_FIELD_SOFT || a == QD_FIELD_SOFT_SPACE
                                          : b == QD_FIELD_SOFT && a != QD_FIELD_RIGID;
  return a_first ? 1 : -b_first;
}

int qd_field_pair_supported(qd_field_kind a, qd_field_kind b) { return sides(a, b) != 0; }

qd_status field_pair_init(field_pair *pair, const qd_field *a, const qd_field *b,
                          const double scale[2], const double R[9], const double t[3]) {
  const int side = sides(a->kind, b->kind);
  if (side == 0) {
    return QD_BAD_ARGUMENT;
  }
  pair->is_exchanged = side < 0;
  pair->first = side > 0 ? a : b;
  pair->second = side > 0 ? b : a;
  pair->scale[0] = scale[side < 0];
  pair->scale[1] = scale[side > 0];
  if (side > 0) {
    memcpy(pair->R, R, sizeof pair->R);
    vec3_copy(pair->t, t);
    return QD_OK;
  }
  for (int i = 0; i < 3; ++i) {
    mat3_column(pair->R + 3 * i, R, i);
  }
  mat3_tmul_vec(pair->t, R, t);
  vec3_scale(pair->t, pair->t, -1.0);
  return QD_OK;
}

void field_cell_move(field_moved *out, const field_pair *pair, const field_cell *cell) {
  for (int i = 0; i < 4; ++i) {
    mat3_mul_vec(out->corner[i], pair->R, cell->corner[i]);
    vec3_add(out->corner[i], out->corner[i], pair->t);
  }
  mat3_mul_vec(out->gradient, pair->R, cell->gradient);
  vec3_scale(out->gradient, out->gradient, pair->scale[0]);
  out->offset = pair->scale[0] * cell->offset - vec3_dot(out->gradient, pair->t);
}

typedef struct search {
  const field_pair *pair;
  double reach[9]; /* |R| */
  int balanced;
  field_visit visit;
  void *context;
} search;

static int pressures_differ(const search *s, const field_box *a, const field_box *b) {
  const double *scale = s->pair->scale;
  return a->most * scale[0] < b->least * scale[1] || b->most * scale[1] < a->least * scale[0];
}

/* By the axes of both boxes. */
static int are_apart(const search *s, const field_box *a, const field_box *b) {
  if (s->balanced && pressures_differ(s, a, b)) {
    return 1;
  }
  const double *R = s->pair->R, *t = s->pair->t, *reach = s->reach;
  double way[3];
  for (int k = 0; k < 3; ++k) {
    way[k] = vec3_dot(R + 3 * k, a->centre) + t[k] - b->centre[k];
    if (fabs(way[k]) > b->half[k] + vec3_dot(reach + 3 * k, a->half)) {
      return 1;
    }
  }
  for (int k = 0; k < 3; ++k) {
    const double along = R[k] * way[0] + R[3 + k] * way[1] + R[6 + k] * way[2];
    if (fabs(along) > a->half[k] + reach[k] * b->half[0] + reach[3 + k] * b->half[1] +
                          reach[6 + k] * b->half[2]) {
      return 1;
    }
  }
  return 0;
}

static void descend_both(const search *s) {
  const field_node *first = s->pair->first->node, *second = s->pair->second->node;
  int stack[STACK][2], count = 1;
  stack[0][0] = 0;
  stack[0][1] = 0;
  while (count > 0) {
    --count;
    const int i = stack[count][0], j = stack[count][1];
    const field_node *a = first + i, *b = second + j;
    if (are_apart(s, &a->box, &b->box)) {
      continue;
    }
    if (a->second < 0 && b->second < 0) {
      s->visit(s->context, s->pair->first->part + a->part, s->pair->second->part + b->part);
      continue;
    }
    const int split_b = a->second < 0 || (b->second >= 0 && b->size > a->size);
    stack[count][0] = split_b ? i : a->second;
    stack[count++][1] = split_b ? b->second : j;
    stack[count][0] = split_b ? i : i + 1;
    stack[count++][1] = split_b ? j + 1 : j;
  }
}

/* Whether a box lies above the half space z <= 0, or has other pressures than that has there. */
static int is_above(const search *s, const field_box *box) {
  const field_pair *pair = s->pair;
  const double middle = vec3_dot(pair->R + 6, box->centre) + pair->t[2];
  const double reach = vec3_dot(s->reach + 6, box->half);
  if (middle > reach) {
    return 1;
  }
  if (!s->balanced || pair->second->kind == QD_FIELD_RIGID_SPACE || pair->first->triangle) {
    return !field_is_soft(pair->second) && s->balanced && middle < -reach;
  }
  const double slope = -pair->second->cell->gradient[2] * pair->scale[1];
  return slope * (reach - middle) < box->least * pair->scale[0] ||
         -slope * (middle + reach) > box->most * pair->scale[0];
}

static void descend_one(const search *s) {
  const field_node *nodes = s->pair->first->node;
  int stack[STACK], count = 1;
  stack[0] = 0;
  while (count > 0) {
    const int i = stack[--count];
    const field_node *node = nodes + i;
    if (is_above(s, &node->box)) {
      continue;
    }
    if (node->second < 0) {
      s->visit(s->context, s->pair->first->part + node->part, s->pair->second->part);
      continue;
    }
    stack[count++] = node->second;
    stack[count++] = i + 1;
  }
}

void field_pairs_visit(const field_pair *pair, int balanced, field_visit visit, void *context) {
  search s = {.pair = pair, .balanced = balanced, .visit = visit, .context = context};
  for (int k = 0; k < 9; ++k) {
    s.reach[k] = fabs(pair->R[k]) + ROOM;
  }
  if (field_is_space(pair->second)) {
    descend_one(&s);
  } else {
    descend_both(&s);
  }
}
