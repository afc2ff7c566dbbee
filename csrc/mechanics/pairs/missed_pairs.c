#include "mechanics/pairs/missed_pairs.h"

#include <math.h>

#include "base/rounding.h"
#include "geometry/height_fields/height_field.h"
#include "geometry/relative.h"

/* Squared smallest distance between the centres of A and B while both move in straight lines. */
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

/* 0 if the bounds of the shapes never touch. A plane's bound is its half space, which must meet the
 * other shape's bounding sphere at the end. */
static int bounds_met(const qd_model *model, const collision *c, int a, int b) {
  const int plane = model->geom.type[a] == QD_PLANE ? a : b, other = plane == a ? b : a;
  if (model->geom.type[plane] == QD_PLANE) {
    double up[3];
    mat3_column(up, c->next[plane].rot, 2);
    return vec3_dot_sub(up, c->next[other].pos, c->next[plane].pos) <= model->geom.radius[other];
  }
  const double reach = model->geom.radius[a] + model->geom.radius[b];
  return closest_approach(c->shape + a, c->shape + b, c->next + a, c->next + b) <= reach * reach;
}

static int is_in_parts(const collision *c, int a, int b) {
  return shape_is_in_parts(c->shape[a].type) || shape_is_in_parts(c->shape[b].type);
}

static int has_field(const collision *c, int a, int b) {
  return c->shape[a].type == QD_HFIELD || c->shape[b].type == QD_HFIELD;
}

/* The face of a height field through which the other shape's centre enters the solid, or -1. */
static int face_entered(const collision *c, int a, int b) {
  const int field = c->shape[a].type == QD_HFIELD ? a : b, other = field == a ? b : a;
  const placed_shape from = relative_shape(c->shape + other, c->shape + field);
  const placed_shape to = relative_shape(c->next + other, c->next + field);
  return height_field_entered(c->shape[field].heights, from.pos, to.pos);
}

/* 1 if the normal of a contact has reversed since q; for a cloud, of the same point's contact. */
static int turned_round(const collision *c, int a, int b, const contact_point *after) {
  contact_point before[CONTACTS_PER_PAIR_MAX], moved;
  const int count = shapes_collide(c->shape + a, c->shape + b, INFINITY, before);
  if (!is_in_parts(c, a, b)) {
    return count > 0 && vec3_dot(before[0].normal, after->normal) < 0.0;
  }
  for (int i = 0; i < count; ++i) {
    feature_contact(c->next + a, c->next + b, before[i].feature, &moved);
    if (vec3_dot(before[i].normal, moved.normal) < 0.0) {
      return 1;
    }
  }
  return 0;
}

/* 1 if the shapes penetrate at the end, or if a normal has reversed because one shape passed
 * through. For height fields, whose normals do not reverse, 1 if the centre entered the solid. */
static int passed(const qd_model *model, const collision *c, int pair) {
  contact_point after[CONTACTS_PER_PAIR_MAX];
  const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
  const int is_field = has_field(c, a, b);
  if (!bounds_met(model, c, a, b)) {
    return 0;
  }
  const int count = shapes_collide(c->next + a, c->next + b, is_field ? 0.0 : INFINITY, after);
  for (int i = 0; i < count; ++i) {
    if (after[i].dist < 0.0) {
      return 1;
    }
  }
  return is_field ? face_entered(c, a, b) >= 0 : count > 0 && turned_round(c, a, b, after);
}

/* An unlisted part counts as missed beyond this depth relative to the smaller shape, */
#define PART_DEPTH 1e-4
/* and beyond this multiple of the depth of listed parts, which penetrate because the motion is
 * curved. */
#define PART_DEEPER 2.0

static int is_listed(const collision *c, int pair, contact_feature feature) {
  for (int i = 0; i < c->count && i < c->capacity; ++i) {
    if (c->contact[i].pair == pair && c->feature[i] == feature) {
      return 1;
    }
  }
  return 0;
}

/* Adds the contact of a feature at q. Returns 0 if it cannot be a contact of the step: it is
 * already listed, or it penetrates by more than `allowed`, like the plane of a face that a shape
 * has passed. */
static int add_part(collision *c, const qd_model *model, int pair, contact_feature feature,
                    double allowed, int add) {
  const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
  contact_point here;
  feature_contact(c->shape + a, c->shape + b, feature, &here);
  if (is_listed(c, pair, here.feature) || !(here.dist >= -allowed)) {
    return 0;
  }
  if (add) {
    collision_add_contact(c, model, pair, &here);
  }
  return 1;
}

/* Parts of a cloud or a height field that were not listed at q and that the step penetrates, in a
 * pair that is listed. Returns 1 if there are any. Each round adds a part, so the rounds end. */
static int find_parts(collision *c, const qd_model *model, int pair, int add) {
  contact_point after[CONTACTS_PER_PAIR_MAX];
  int missed[CONTACTS_PER_PAIR_MAX], found = 0;
  const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
  const double size = fmin(model->geom.radius[a], model->geom.radius[b]);
  const int is_field = has_field(c, a, b), face = is_field ? face_entered(c, a, b) : -1;
  double allowed = PART_DEPTH * size;
  if (face >= 0 && add_part(c, model, pair, height_field_feature(face), allowed, add)) {
    return 1;
  }
  const int count = shapes_collide(c->next + a, c->next + b, -allowed, after);
  for (int i = 0; i < count; ++i) {
    missed[i] = !is_listed(c, pair, after[i].feature);
    allowed = missed[i] ? allowed : fmax(allowed, -PART_DEEPER * after[i].dist);
  }
  for (int i = 0; i < count; ++i) {
    if (missed[i] && after[i].dist < -allowed) {
      found |= add_part(c, model, pair, after[i].feature, is_field ? allowed : INFINITY, add);
    }
  }
  return found;
}

/* The same for a pair that is not in the list. */
static int find_pair(collision *c, const qd_model *model, int pair, int add) {
  const int found = passed(model, c, pair);
  if (found && add) {
    const int *geom = model->pair.geom + 2 * pair;
    if (!has_field(c, geom[0], geom[1]) || !find_parts(c, model, pair, add)) {
      collision_add_pair(c, model, pair, INFINITY);
    }
    c->left_out -= !c->counts[pair];
    c->counts[pair] = 1; /* also without a contact, so that it is not tested again */
  }
  return found;
}

/* ---------------------------------------------------------------- which pairs can be missed */

/* Largest distance, on the way from q along delta, of any point that a joint carries from the
 * joint's anchor (of a sphere: of its centre). Sums arms and slides along the path. A free joint
 * rotates its body about the origin. */
static void find_reach(collision *c, const qd_model *model, const double *q, const double *delta) {
  memset(c->reach, 0, (size_t)model->body.count * sizeof(double));
  for (int i = 0; i < model->geom.count; ++i) {
    double *reach = c->reach + model->geom.body[i];
    /* a sphere that rotates about its centre does not move */
    const double radius = model->geom.type[i] == QD_SPHERE ? 0.0 : model->geom.radius[i];
    const double own = model->geom.arm[i] + radius;
    *reach = own > *reach ? own : *reach;
  }
  for (int b = model->body.count - 1; b > 0; --b) {
    double far = c->reach[b];
    for (int j = model->body.joint_start[b + 1] - 1; j >= model->body.joint_start[b]; --j) {
      c->joint_reach[j] = far;
      far += model->joint.type[j] == QD_SLIDE
                 ? fabs(q[model->joint.q[j]] - model->joint.ref[j]) + fabs(delta[model->joint.v[j]])
                 : model->joint.arm[j];
    }
    double *reach = c->reach + model->body.parent[b];
    far += model->body.arm[b];
    *reach = far > *reach ? far : *reach;
  }
}

static double joint_travel(const collision *c, const qd_model *model, int joint,
                           const double *delta) {
  const double *d = delta + model->joint.v[joint];
  const int type = model->joint.type[joint];
  if (type == QD_SLIDE) {
    return fabs(d[0]);
  }
  const double straight = type == QD_FREE ? vec3_norm(d) : 0.0;
  const double turn = type == QD_HINGE ? fabs(d[0]) : vec3_norm(type == QD_FREE ? d + 3 : d);
  /* an infinite plane that does not rotate is unchanged */
  return straight + (turn > 0.0 ? turn * c->joint_reach[joint] : 0.0);
}

/* Upper bounds of the distance that shapes of each body move. Joints move one after the other, and
 * each carries a point along a chord no longer than its angle times the point's distance. */
static void find_travel(collision *c, const qd_model *model, const double *delta) {
  c->travel[0] = 0.0;
  for (int b = 1; b < model->body.count; ++b) {
    double travel = c->travel[model->body.parent[b]];
    for (int j = model->body.joint_start[b]; j < model->body.joint_start[b + 1]; ++j) {
      travel += joint_travel(c, model, j, delta) * (1.0 + CALLERS_ROUNDING);
    }
    c->travel[b] = travel;
  }
}

/* An unlisted pair was farther apart than its range, or than its bounds. If the two shapes together
 * travel less than this, a plane still separates them: they neither touched nor changed sides. */
static int can_be_missed(const collision *c, const qd_model *model, int pair, double margin) {
  const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
  const double own = model->pair.margin[pair], range = margin > own ? margin : own;
  const double both = c->travel[model->geom.body[a]] + c->travel[model->geom.body[b]];
  return !c->counts[pair] && !(both < range) && !collision_out_of_range(c, model, a, b, both);
}

/* The first pair that can be missed, by a quick test; pair_count if there is none. In models
 * without a pair table, the marked pairs then include all that can. */
static int first_to_ask(collision *c, const qd_model *model, double margin) {
  double longest = 0.0;
  for (int b = 1; b < model->body.count; ++b) {
    longest = c->travel[b] > longest ? c->travel[b] : longest;
  }
  if (c->left_out == 0 || 2.0 * longest < margin) {
    return model->pair.count;
  }
  int pair = 0;
  if (!model->pair.table.in_use) { /* otherwise there are too many to test each */
    broad_phase_in_reach(&c->broad, model, c->shape, c->travel);
    while ((pair = broad_phase_next(&c->broad, model, pair)) < model->pair.count &&
           !can_be_missed(c, model, pair, margin)) {
      ++pair;
    }
  }
  return pair;
}

int missed_pairs_find(collision *c, const qd_model *model, const double *q, const double *delta,
                      const double *mocap, double margin, kinematics *next, const double *q_next,
                      int add) {
  int count = 0;
  if (c->left_out == 0 && model->pair.probed_count == 0) {
    return 0;
  }
  find_reach(c, model, q, delta);
  find_travel(c, model, delta);
  const int first = model->pair.probed_count == 0 ? first_to_ask(c, model, margin) : 0;
  if (first == model->pair.count) {
    return 0;
  }
  kinematics_compute(model, q_next, mocap, next);
  collision_place_shapes(c->next, model, next);
  if (model->pair.table.in_use || model->pair.probed_count > 0) {
    broad_phase_on_the_way(&c->broad, model, c->shape, c->next);
  } else {
    broad_phase_keep_met(&c->broad, model, c->shape, c->next);
  }
  for (int pair = first; (pair = broad_phase_next(&c->broad, model, pair)) < model->pair.count;
       ++pair) {
    if (can_be_missed(c, model, pair, margin)) {
      count += find_pair(c, model, pair, add);
    } else if (c->counts[pair] && model->pair.probed_count > 0 &&
               is_in_parts(c, model->pair.geom[2 * pair], model->pair.geom[2 * pair + 1])) {
      count += find_parts(c, model, pair, add);
    }
  }
  return count;
}
