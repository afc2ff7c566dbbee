#include "mechanics/missed_pairs.h"

#include <math.h>

/* Squared smallest distance of B's centre from A's while both move in a straight line. */
static double closest_approach(const placed_shape *a0, const placed_shape *b0,
                               const placed_shape *a1, const placed_shape *b1) {
  double from[3], to[3], way[3];
  vec3_sub(from, b0->pos, a0->pos);
  vec3_sub(to, b1->pos, a1->pos);
  vec3_sub(way, to, from);
  const double length = vec3_dot(way, way), along = -vec3_dot(from, way);
  if (along <= 0.0) {
    return vec3_dot(from, from);
  }
  return along >= length ? vec3_dot(to, to) : vec3_dot(from, from) - along * along / length;
}

/* Bounds that never meet rule a pair out. A plane's bounds are its half space: only where B's
 * centre comes to lie below it can anything have met. */
static int bounds_met(const qd_model *model, const collision *c, int a, int b) {
  const int plane = model->geom_type[a] == QD_PLANE ? a : b, other = plane == a ? b : a;
  if (model->geom_type[plane] == QD_PLANE) {
    double up[3], offset[3];
    mat3_column(up, c->next[plane].rot, 2);
    vec3_sub(offset, c->next[other].pos, c->next[plane].pos);
    return vec3_dot(up, offset) <= model->geom_radius[other];
  }
  const double reach = model->geom_radius[a] + model->geom_radius[b];
  return closest_approach(c->shape + a, c->shape + b, c->next + a, c->next + b) <= reach * reach;
}

/* Penetration at the end, or a normal that has turned round: one shape came out on the other side.
 */
static int passed(const qd_model *model, const collision *c, int pair) {
  contact_point before[CONTACTS_PER_PAIR_MAX], after[CONTACTS_PER_PAIR_MAX];
  const int a = model->pair_geom[2 * pair], b = model->pair_geom[2 * pair + 1];
  if (!bounds_met(model, c, a, b)) {
    return 0;
  }
  const int after_count = shapes_collide(c->next + a, c->next + b, INFINITY, after);
  for (int i = 0; i < after_count; ++i) {
    if (after[i].dist < 0.0) {
      return 1;
    }
  }
  const int before_count = shapes_collide(c->shape + a, c->shape + b, INFINITY, before);
  return before_count > 0 && after_count > 0 && vec3_dot(before[0].normal, after[0].normal) < 0.0;
}

int missed_pairs_find(collision *c, const qd_model *model, kinematics *k, const double *q_next,
                      int add) {
  int count = 0;
  if (c->left_out == 0) {
    return 0;
  }
  kinematics_compute(model, q_next, k);
  collision_place_shapes(c->next, model, k);
  broad_phase_on_the_way(&c->broad, model, c->shape, c->next);
  for (int pair = 0; (pair = broad_phase_next(&c->broad, model, pair)) < model->pair_count;
       ++pair) {
    if (!c->counts[pair] && passed(model, c, pair)) {
      ++count;
      if (add) {
        collision_add_pair(c, model, pair, INFINITY);
        c->left_out -= !c->counts[pair];
        c->counts[pair] = 1; /* also a pair that gave no contact: it is not asked again */
      }
    }
  }
  return count;
}
