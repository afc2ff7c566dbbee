#include "mechanics/pairs/collision.h"
#include "base/rounding.h"

#include <math.h>

void collision_lay_out(collision *c, const qd_model *model, int capacity, arena *a) {
  c->shape = arena_take(a, (size_t)model->geom.count * sizeof(placed_shape));
  c->next = arena_take(a, (size_t)model->geom.count * sizeof(placed_shape));
  ARENA_DOUBLES(a, (size_t)model->body.count, &c->reach, &c->travel);
  c->joint_reach = arena_doubles(a, (size_t)model->joint.count);
  c->counts = arena_take(a, (size_t)model->pair.count);
  c->contact = arena_take(a, (size_t)capacity * sizeof(qd_contact));
  c->feature = arena_take(a, (size_t)capacity * sizeof *c->feature);
  c->capacity = capacity;
  c->count = c->by_edges = 0;
  broad_phase_lay_out(&c->broad, model, a);
}

void collision_place_shapes(placed_shape *shapes, const qd_model *model, const kinematics *k) {
  for (int i = 0; i < model->geom.count; ++i) {
    const int body = model->geom.body[i];
    placed_shape *shape = shapes + i;
    shape->type = model->geom.type[i];
    shape->size = model->parameters.geom_size + 3 * i;
    shape->mesh = model->geom.mesh[i] >= 0 ? model->mesh[model->geom.mesh[i]] : NULL;
    shape->cloud = model->geom.cloud[i] >= 0 ? model->cloud[model->geom.cloud[i]] : NULL;
    shape->heights = model->geom.hfield[i] >= 0 ? model->hfield[model->geom.hfield[i]] : NULL;
    mat3_mul_add(shape->pos, k->body_rot + 9 * body, model->geom.pos + 3 * i,
                 k->body_pos + 3 * body);
    if (shape->type != QD_SPHERE) {
      mat3_mul(shape->rot, k->body_rot + 9 * body, model->geom.rot + 9 * i);
    }
  }
}

/* 1 if the other shape is farther than the margin above a plane. */
static int above_plane(const placed_shape *plane, const placed_shape *other, double radius,
                       double margin) {
  double up[3], d[3];
  vec3_sub(d, other->pos, plane->pos);
  mat3_column(up, plane->rot, 2);
  const double slack = NEGLIGIBLE * (fabs(d[0]) + fabs(d[1]) + fabs(d[2]) + radius + fabs(margin));
  return vec3_dot(up, d) - radius > margin + slack;
}

/* A lower bound of the distance, from bounding spheres and half spaces. */
static inline int out_of_range(const collision *c, const qd_model *model, int a, int b,
                               double margin) {
  const placed_shape *A = c->shape + a, *B = c->shape + b;
  const double radii = model->geom.radius[a] + model->geom.radius[b];
  const double reach = radii + margin + NEGLIGIBLE * (radii + fabs(margin));
  double d[3];
  vec3_sub(d, B->pos, A->pos);
  if (radii < INFINITY) {
    return reach < 0.0 || vec3_dot(d, d) > reach * reach;
  }
  if (A->type == QD_PLANE) {
    return above_plane(A, B, model->geom.radius[b], margin);
  }
  return B->type == QD_PLANE && above_plane(B, A, model->geom.radius[a], margin);
}

int collision_out_of_range(const collision *c, const qd_model *model, int a, int b, double margin) {
  return out_of_range(c, model, a, b, margin);
}

void contact_tangent_axis(double axis[3], const qd_model *model, const double n[3]) {
  if (model->planar && 1.0 - fabs(vec3_dot(n, model->planar_normal)) > SLIGHT) {
    vec3_copy(axis, model->planar_normal);
    return;
  }
  int least = 0;
  for (int i = 1; i < 3; ++i) {
    least = fabs(n[i]) < fabs(n[least]) ? i : least;
  }
  vec3_set(axis, 0.0, 0.0, 0.0);
  axis[least] = 1.0;
}

/* The body whose shape determines MuJoCo's tangent axis: a capsule on a plane. */
static int side_with_axis(const qd_model *model, const qd_contact *contact) {
  const int a = model->geom.type[contact->geom_a], b = model->geom.type[contact->geom_b];
  if (a == QD_PLANE && b == QD_CAPSULE) {
    return 1;
  }
  return a == QD_CAPSULE && b == QD_PLANE ? 0 : -1;
}

void mujoco_tangent_axis(tangent_axis *out, const collision *c, const qd_model *model,
                         const qd_contact *contact) {
  const double *n = contact->frame;
  double across[3];
  out->side = side_with_axis(model, contact);
  if (out->side >= 0) {
    const int geom = out->side == 0 ? contact->geom_a : contact->geom_b;
    mat3_column(out->axis, c->shape[geom].rot, 2);
    vec3_cross(across, out->axis, n);
    if (vec3_norm(across) > CALLERS_ROUNDING) {
      return;
    }
    out->side = -1;
  }
  const int y_is_far = fabs(n[1]) < 0.5;
  vec3_set(out->axis, 0.0, y_is_far, !y_is_far);
}

/* 1 if the contact uses MuJoCo's tangents. They are not used if they lie along our own. */
static int has_mujoco_tangents(tangent_axis *out, const collision *c, const qd_model *model,
                               const qd_contact *contact) {
  double own[3], t1[3];
  if (!c->by_edges || model->pair.edges[contact->pair] == 0) {
    return 0;
  }
  mujoco_tangent_axis(out, c, model, contact);
  contact_tangent_axis(own, model, contact->frame);
  vec3_cross(t1, out->axis, contact->frame);
  return out->side >= 0 || fabs(vec3_dot(own, t1)) > SLIGHT * vec3_norm(t1);
}

void contact_frame_axis(tangent_axis *out, const collision *c, const qd_model *model,
                        const qd_contact *contact) {
  if (!has_mujoco_tangents(out, c, model, contact)) {
    contact_tangent_axis(out->axis, model, contact->frame);
    out->side = -1;
  }
}

static void use_mujoco_tangents(const collision *c, const qd_model *model, qd_contact *contact) {
  double *frame = contact->frame;
  tangent_axis from;
  if (has_mujoco_tangents(&from, c, model, contact)) {
    vec3_cross(frame + 3, from.axis, frame);
    vec3_normalize(frame + 3);
    vec3_cross(frame + 6, frame, frame + 3);
  }
}

/* Tangent 1 by contact_tangent_axis; the product with a world axis has only two nonzero entries. */
static void fill_tangents(double frame[9], const qd_model *model) {
  const double x = frame[0], y = frame[1], z = frame[2];
  const double ax = fabs(x), ay = fabs(y), az = fabs(z);
  double axis[3];
  if (model->planar) {
    contact_tangent_axis(axis, model, frame);
    vec3_cross(frame + 3, axis, frame);
    vec3_normalize(frame + 3);
  } else if (az < ay && az < ax) {
    const double scale = 1.0 / sqrt(y * y + x * x);
    vec3_set(frame + 3, -y * scale, x * scale, 0.0);
  } else if (ay < ax) {
    const double scale = 1.0 / sqrt(z * z + x * x);
    vec3_set(frame + 3, z * scale, 0.0, -x * scale);
  } else {
    const double scale = 1.0 / sqrt(z * z + y * y);
    vec3_set(frame + 3, 0.0, -z * scale, y * scale);
  }
  vec3_cross(frame + 6, frame, frame + 3);
}

static void contact_fill(qd_contact *out, const qd_model *model, int pair,
                         const contact_point *point) {
  const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
  const double *friction = model->parameters.pair_friction + 5 * pair;
  out->geom_a = a;
  out->geom_b = b;
  out->body_a = model->geom.body[a];
  out->body_b = model->geom.body[b];
  out->pair = pair;
  out->dim = model->pair.dim[pair];
  out->dist = point->dist;
  vec3_copy(out->pos, point->pos);
  vec3_copy(out->frame, point->normal);
  fill_tangents(out->frame, model);
  for (int i = 0; i < 5; ++i) {
    out->friction[i] = friction[i];
  }
  memset(out->force, 0, sizeof out->force);
  out->softened = 0.0;
}

void collision_add_contact(collision *c, const qd_model *model, int pair,
                           const contact_point *contact) {
  if (c->count < c->capacity) {
    contact_fill(c->contact + c->count, model, pair, contact);
    if (c->by_edges) {
      use_mujoco_tangents(c, model, c->contact + c->count);
    }
    c->feature[c->count] = contact->feature;
  }
  ++c->count;
}

void collision_add_pair(collision *c, const qd_model *model, int pair, double range) {
  contact_point found[CONTACTS_PER_PAIR_MAX];
  const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
  const int count = shapes_collide(c->shape + a, c->shape + b, range, found);
  for (int i = 0; i < count; ++i) {
    collision_add_contact(c, model, pair, found + i);
  }
  if (count > 0 && !c->counts[pair]) {
    c->counts[pair] = 1;
    --c->left_out;
  }
}

qd_status collision_compute(const qd_model *model, const kinematics *k, double margin,
                            collision *c) {
  collision_place_shapes(c->shape, model, k);
  c->count = 0;
  c->left_out = model->pair.count;
  memset(c->counts, 0, (size_t)model->pair.count);
  broad_phase_in_range(&c->broad, model, c->shape, margin);
  const int by_spheres = !model->pair.table.in_use && !c->broad.every;
  for (int pair = 0; (pair = broad_phase_next(&c->broad, model, pair)) < model->pair.count;
       ++pair) {
    const int a = model->pair.geom[2 * pair], b = model->pair.geom[2 * pair + 1];
    const double own = model->pair.margin[pair], range = margin > own ? margin : own;
    const int asked = by_spheres && model->geom.radius[a] + model->geom.radius[b] < INFINITY;
    if (asked || !out_of_range(c, model, a, b, range)) {
      collision_add_pair(c, model, pair, range);
    }
  }
  return c->count <= c->capacity ? QD_OK : QD_OUT_OF_CAPACITY;
}

void collision_remove(collision *c, int at, int end) {
  const size_t rest = (size_t)(end - c->count);
  memmove(c->contact + at, c->contact + c->count, rest * sizeof *c->contact);
  memmove(c->feature + at, c->feature + c->count, rest * sizeof *c->feature);
}

static void contact_point_of(contact_point *out, const collision *c, int index) {
  const qd_contact *contact = c->contact + index;
  out->dist = contact->dist;
  vec3_copy(out->pos, contact->pos);
  vec3_copy(out->normal, contact->frame);
  out->feature = c->feature[index];
}

void contact_derivative_compute(contact_point_derivative *out, const collision *c, int index) {
  const qd_contact *contact = c->contact + index;
  contact_point point;
  contact_point_of(&point, c, index);
  shapes_collide_derivative(c->shape + contact->geom_a, c->shape + contact->geom_b, &point, out);
}

void contact_size_derivative_compute(contact_point_derivative *out, const collision *c, int index) {
  const qd_contact *contact = c->contact + index;
  contact_point point;
  contact_point_of(&point, c, index);
  shapes_size_derivative(c->shape + contact->geom_a, c->shape + contact->geom_b, &point, out);
}

/* r = D x for a (3, 6) matrix */
static void mul_3x6(double r[3], const double *D, const double x[6]) {
  for (int i = 0; i < 3; ++i) {
    const double *row = D + 6 * i;
    r[i] = row[0] * x[0] + row[1] * x[1] + row[2] * x[2] + row[3] * x[3] + row[4] * x[4] +
           row[5] * x[5];
  }
}

/* Derivative of t1 = y / |y|, y = axis x n: d t1 = (1 - t1 t1') (d axis x n + axis x dn) / |y|; t2
 * = n x t1. w: angular velocity of the body that carries the axis, or NULL if none does. */
static void frame_motion(double d_frame[9], const double axis[3], const double *frame,
                         const double *w) {
  const double *n = frame, *t1 = frame + 3, *dn = d_frame;
  double y[3], dy[3], turned[3];
  double *dt1 = d_frame + 3, *dt2 = d_frame + 6;
  vec3_cross(y, axis, n);
  vec3_cross(dy, axis, dn);
  if (w != NULL) {
    vec3_cross(turned, w, axis);
    vec3_add_cross(dy, 1.0, turned, n);
  }
  vec3_reject(dt1, dy, t1);
  vec3_scale(dt1, dt1, 1.0 / vec3_norm(y));
  vec3_cross(dt2, dn, t1);
  vec3_add_cross(dt2, 1.0, n, dt1);
}

void contact_motion_compute(contact_motion *out, const collision *c, const qd_model *model,
                            const qd_contact *contact, const contact_point_derivative *d,
                            const screw *a, const screw *b) {
  tangent_axis from;
  contact_frame_axis(&from, c, model, contact);
  /* first both bodies move with a, which moves the contact rigidly; then B moves relative to A, by
   * the pair's derivative */
  double relative[6], va[3], vb[3], part[3];
  screw_point_velocity(va, a, contact->pos);
  screw_point_velocity(vb, b, contact->pos);
  vec3_sub(relative, b->w, a->w);
  vec3_sub(relative + 3, vb, va);
  mul_3x6(part, d->pos, relative);
  vec3_add(out->pos, va, part);
  out->dist = 0.0;
  for (int i = 0; i < 6; ++i) {
    out->dist += d->dist[i] * relative[i];
  }
  vec3_cross(out->frame, a->w, contact->frame);
  mul_3x6(part, d->normal, relative);
  vec3_axpy(out->frame, 1.0, part);
  frame_motion(out->frame, from.axis, contact->frame,
               from.side < 0 ? NULL : (from.side == 0 ? a->w : b->w));
}

/* The transpose of frame_motion: from cotangents of the three axes to the cotangent of the normal,
 * and the moment on the body that carries the axis. */
static void frame_pull(double normal[3], double moment[3], const double axis[3],
                       const double *frame, const double *cotangent) {
  const double *n = frame, *t1 = frame + 3;
  double y[3], part[3], on_y[3];
  vec3_cross(y, axis, n);
  vec3_copy(normal, cotangent);
  vec3_add_cross(normal, 1.0, t1, cotangent + 6);
  vec3_cross(on_y, cotangent + 6, n);
  vec3_axpy(on_y, 1.0, cotangent + 3);
  vec3_axpy(on_y, -vec3_dot(t1, on_y), t1);
  vec3_scale(on_y, on_y, 1.0 / vec3_norm(y));
  vec3_add_cross(normal, 1.0, on_y, axis);
  vec3_cross(part, n, on_y);
  vec3_cross(moment, axis, part);
}

/* r += D' x for a (3, 6) matrix */
static void add_tmul_3x6(double r[6], const double *D, const double x[3]) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 6; ++j) {
      r[j] += D[6 * i + j] * x[i];
    }
  }
}

static void pull_through(double out[6], const contact_point_derivative *d, double dist,
                         const double pos[3], const double normal[3]) {
  for (int j = 0; j < 6; ++j) {
    out[j] = dist * d->dist[j];
  }
  add_tmul_3x6(out, d->pos, pos);
  add_tmul_3x6(out, d->normal, normal);
}

void contact_motion_pull(wrench *on_a, wrench *on_b, double *by_size, const collision *c,
                         const qd_model *model, const qd_contact *contact,
                         const contact_point_derivative *d, const contact_point_derivative *sizes,
                         const contact_motion *cotangent) {
  double normal[3], relative[6], turning[3];
  tangent_axis from;
  contact_frame_axis(&from, c, model, contact);
  frame_pull(normal, turning, from.axis, contact->frame, cotangent->frame);
  pull_through(relative, d, cotangent->dist, cotangent->pos, normal);
  wrench_at(on_b, contact->pos, relative + 3, relative);
  /* the rigid motion with A, minus the effect of B's relative motion */
  vec3_copy(on_a->f, cotangent->pos);
  vec3_cross(on_a->m, contact->pos, on_a->f);
  vec3_add_cross(on_a->m, 1.0, contact->frame, normal);
  wrench_axpy(on_a, -1.0, on_b);
  if (from.side >= 0) {
    wrench *on = from.side == 0 ? on_a : on_b;
    vec3_axpy(on->m, 1.0, turning);
  }
  if (by_size != NULL) {
    pull_through(by_size, sizes, cotangent->dist, cotangent->pos, normal);
  }
}

void contact_size_motion(contact_motion *out, const collision *c, const qd_model *model,
                         const qd_contact *contact, const contact_point_derivative *sizes,
                         const double *size) {
  tangent_axis from;
  contact_frame_axis(&from, c, model, contact);
  mul_3x6(out->pos, sizes->pos, size);
  mul_3x6(out->frame, sizes->normal, size);
  out->dist = 0.0;
  for (int i = 0; i < 6; ++i) {
    out->dist += sizes->dist[i] * size[i];
  }
  frame_motion(out->frame, from.axis, contact->frame, NULL);
}
