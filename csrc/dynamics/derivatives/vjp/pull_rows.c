/* Terms of the gradient from contacts and bilateral constraints. */
#include "dynamics/derivatives/vjp/parts.h"
#include "dynamics/problem/yield.h"

typedef struct relative_motion {
  screw twist;
  double velocity[3]; /* at the contact */
} relative_motion;

static void relative_motion_of(relative_motion *out, const twist_field *field,
                               const qd_contact *contact) {
  screw_sub(&out->twist, field->body + contact->body_b, field->body + contact->body_a);
  screw_point_velocity(out->velocity, &out->twist, contact->pos);
}

/* out += cotangents of the contact's point and axes in f.w(x). */
static void add_contact_cotangent(contact_motion *out, const double f[MOTION_MAX],
                                  const qd_contact *contact, const relative_motion *x) {
  double force[3], moment[3];
  contact_world_force(force, moment, contact, f);
  vec3_add_cross(out->pos, 1.0, force, x->twist.w);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(out->frame + 3 * axis, f[axis], x->velocity);
    vec3_axpy(out->frame + 3 * axis, f[3 + axis], x->twist.w);
  }
}

/* Adds to pose and twist, where f at the contact is the cotangent of the bodies' twists in the
 * field. */
static void pull_contact_twist(wrench *pose, wrench *twist, const twist_field *field,
                               const qd_contact *contact, const double f[MOTION_MAX]) {
  double force[3], moment[3];
  wrench W;
  contact_world_force(force, moment, contact, f);
  wrench_at(&W, contact->pos, force, moment);
  if (twist != NULL) {
    wrench_axpy(twist + contact->body_b, 1.0, &W);
    wrench_axpy(twist + contact->body_a, -1.0, &W);
  }
  pull_twist(pose, field, contact->body_b, 1.0, &W);
  pull_twist(pose, field, contact->body_a, -1.0, &W);
}

/* Takes the cotangent of the normal row's offset. */
static void pull_offset(const pullback *p, const contact_block *block, double cotangent,
                        contact_motion *out) {
  if (block->offset == OFFSET_GAP) {
    out->dist = cotangent;
  } else if (block->offset == OFFSET_CAPPED) {
    add_gradient(p, QD_BY_H, 0, -cotangent * p->s->options->recovery_speed);
  }
}

/* Takes the cotangents m, along the contact's axes, of offsets that depend on v. */
static void pull_in_time(const pullback *p, const contact_block *block, const qd_contact *contact,
                         const double m[MOTION_MAX], contact_motion *out) {
  const twist_field *field = &p->s->w->problem.state.velocity;
  double f[MOTION_MAX];
  relative_motion x;
  if (block->in_time[0] == 0.0 && block->in_time[1] == 0.0) {
    return;
  }
  for (int c = 0; c < MOTION_MAX; ++c) {
    f[c] = block->in_time[c > 0] * m[c];
  }
  relative_motion_of(&x, field, contact);
  if (block->offset == OFFSET_BOUNCE) {
    add_gradient(p, QD_BY_H, 0, f[0] / p->s->options->h * vec3_dot(contact->frame, x.velocity));
  }
  pull_contact_twist(p->d->pose, p->d->bounce, field, contact, f);
  add_contact_cotangent(out, f, contact, &x);
}

static void frame_motion_of(double motion[MOTION_MAX], const qd_contact *contact,
                            const relative_motion *m) {
  for (int axis = 0; axis < 3; ++axis) {
    motion[axis] = vec3_dot(contact->frame + 3 * axis, m->velocity);
    motion[3 + axis] = vec3_dot(contact->frame + 3 * axis, m->twist.w);
  }
}

/* Relative velocity under v, zero if no offset depends on it. */
static void speed_of(double speed[MOTION_MAX], const pullback *p, const contact_block *block,
                     const qd_contact *contact) {
  memset(speed, 0, MOTION_MAX * sizeof(double));
  if (block->in_time[0] != 0.0 || block->in_time[1] != 0.0) {
    problem_contact_speed(speed, &p->s->w->problem, contact);
  }
}

static void pull_friction(const pullback *p, int index, const relative_motion *z,
                          const relative_motion *x) {
  const problem *program = &p->s->w->problem;
  const qd_contact *contact = p->s->w->collision.contact + index;
  const contact_block *block = program->block + index;
  double *out = p->gradient[QD_BY_PAIR_FRICTION] + 5 * contact->pair;
  double along_z[MOTION_MAX], along_x[MOTION_MAX], speed[MOTION_MAX], slope[2];
  int coefficient[2];
  frame_motion_of(along_z, contact, z);
  frame_motion_of(along_x, contact, x);
  speed_of(speed, p, block, contact);
  for (int c = 0; c < MOTION_MAX; ++c) {
    along_x[c] += block->in_time[c > 0] * speed[c];
  }
  for (int r = 0; r < block->rows.count; ++r) {
    const double lambda = program->solution.dual[block->row + r];
    const double mu = p->mu[(block->row + r) * p->stride];
    friction_row_slopes(slope, coefficient, &block->rows, r, contact->dim, p->s->options->ray_count,
                        program->program.rays);
    for (int k = 0; k < 2; ++k) {
      const int component = block->rows.row[r].component[k];
      if (coefficient[k] >= 0) {
        out[coefficient[k]] += slope[k] * (lambda * along_z[component] + mu * along_x[component]);
      }
    }
  }
}

static double yield_power(const pullback *p, const contact_block *block,
                          const contact_yield *change, const double speed[MOTION_MAX]) {
  double rows[YIELD_ROWS_MAX], sum = 0.0;
  contact_yield_rows(rows, change, &block->rows, p->s->w->problem.solution.dual + block->row,
                     speed);
  for (int r = 0; r < block->rows.count; ++r) {
    sum += rows[r] * p->mu[(block->row + r) * p->stride];
  }
  return sum;
}

/* Takes the cotangents of a yielding contact's rows by h and friction; returns that of the
 * distance. */
static double pull_yield(const pullback *p, const contact_block *block, const qd_contact *contact) {
  double *by_friction = p->gradient[QD_BY_PAIR_FRICTION];
  contact_yield now;
  contact_yield_change change;
  double speed[MOTION_MAX];
  contact_yield_compute(&now, &change, p->s->model, contact, block->weight_share, p->s->options);
  speed_of(speed, p, block, contact);
  add_gradient(p, QD_BY_H, 0, yield_power(p, block, &change.by_h, speed));
  if (by_friction != NULL) {
    by_friction[5 * contact->pair] += yield_power(p, block, &change.by_friction, speed);
  }
  return yield_power(p, block, &change.by_distance, speed);
}

void pull_contact(const pullback *p, int index) {
  const qd_workspace *w = p->s->w;
  differential *d = p->d;
  const qd_contact *contact = w->collision.contact + index;
  const contact_block *block = w->problem.block + index;
  const int a = contact->body_a, b = contact->body_b;
  double m[MOTION_MAX] = {0.0}, sizes[6];
  relative_motion z, x;
  contact_motion cotangent;
  wrench on_a, on_b;
  for (int r = 0; r < block->rows.count; ++r) {
    friction_row_add_force(m, block->rows.row + r, p->mu[(block->row + r) * p->stride]);
  }
  relative_motion_of(&z, &d->by_z, contact);
  relative_motion_of(&x, &p->point->delta, contact);
  if (p->gradient[QD_BY_PAIR_FRICTION] != NULL) {
    pull_friction(p, index, &z, &x);
  }
  double *by_compliance = p->gradient[QD_BY_PAIR_COMPLIANCE];
  if (by_compliance != NULL && block->rows.count > 0 &&
      p->s->model->parameters.pair_compliance[contact->pair] > 0.0) {
    by_compliance[contact->pair] +=
        w->problem.solution.dual[block->row] * p->mu[block->row * p->stride];
  }
  const double by_yield = block->offset == OFFSET_YIELD ? pull_yield(p, block, contact) : 0.0;
  double *by_size = p->gradient[QD_BY_GEOM_SIZE];
  if (!p->bodies_move && by_size == NULL) {
    return;
  }
  pull_contact_twist(d->pose, NULL, &d->by_z, contact, contact->force);
  pull_contact_twist(d->pose, d->twist, &p->point->delta, contact, m);
  memset(&cotangent, 0, sizeof cotangent);
  add_contact_cotangent(&cotangent, contact->force, contact, &z);
  add_contact_cotangent(&cotangent, m, contact, &x);
  pull_offset(p, block, m[0], &cotangent);
  pull_in_time(p, block, contact, m, &cotangent);
  cotangent.dist += by_yield;
  contact_motion_pull(&on_a, &on_b, by_size != NULL ? sizes : NULL, &w->collision, p->s->model,
                      contact, d->by_pose + index, by_size != NULL ? d->by_size + index : NULL,
                      &cotangent);
  wrench_axpy(d->pose + a, 1.0, &on_a);
  wrench_axpy(d->pose + b, 1.0, &on_b);
  for (int i = 0; by_size != NULL && i < 3; ++i) {
    by_size[3 * contact->geom_a + i] += sizes[i];
    by_size[3 * contact->geom_b + i] += sizes[3 + i];
  }
}

/* For a connect or a weld: cotangents of the rows' motion under delta and under v, in which a
 * weld's rotation is that of its bodies, and of the violation. */
typedef struct anchor_cotangents {
  double motion[CONSTRAINT_ROWS_MAX], late[CONSTRAINT_ROWS_MAX], violation[CONSTRAINT_ROWS_MAX];
  double drift[CONSTRAINT_ROWS_MAX]; /* of (dC/dt) v */
} anchor_cotangents;

/* The bodies' twists in a field, and the anchors, in force.(C x). twist: cotangents of the field's
 * twists; NULL: the field is z. */
static void pull_anchors(const pullback *p, const constraint_state *state, const twist_field *field,
                         wrench *twist, const double *force) {
  differential *d = p->d;
  wrench W[CONSTRAINT_BODIES];
  constraint_wrenches(W, state, force);
  for (int k = 0; k < CONSTRAINT_BODIES; ++k) {
    pull_twist(d->pose, field, state->body[k], 1.0, W + k);
    if (twist != NULL) {
      wrench_axpy(twist + state->body[k], 1.0, W + k);
    }
  }
  for (int side = 0; side < 2; ++side) {
    const int body = state->body[side];
    double relative[3], on_anchor[3];
    vec3_sub(relative, field->body[body].w, field->body[state->body[2]].w);
    vec3_cross(on_anchor, force, relative);
    vec3_scale(on_anchor, on_anchor, side == 0 ? -1.0 : 1.0);
    add_pose_force(d->pose, body, state->anchor[side], on_anchor);
  }
}

static void pull_violation(const pullback *p, const constraint_state *state,
                           const double cotangent[CONSTRAINT_ROWS_MAX]) {
  double counted[3], part[3];
  vec3_copy(counted, cotangent);
  constraint_cap_change(state, 0, counted);
  for (int side = 0; side < 2; ++side) {
    const int body = state->body[side];
    vec3_scale(part, counted, side == 0 ? -1.0 : 1.0);
    add_pose_force(p->d->pose, body, state->anchor[side], part);
    if (state->rows == 6 && !state->by_quaternion) {
      constraint_turn_pull(part, state, cotangent + 3, side);
      vec3_axpy(p->d->pose[body].m, 1.0, part);
    }
  }
}

/* half (4) += cotangent of the half quaternion in moment.(W (x2 - x1)), for the rows of a weld. */
static void add_half_cotangent(double half[4], const constraint_state *state,
                               const twist_field *field, const double moment[3]) {
  double apart[3], across[3];
  vec3_sub(apart, field->body[state->body[1]].w, field->body[state->body[0]].w);
  vec3_cross(across, apart, moment);
  half[0] += 0.5 * state->scale * vec3_dot(moment, apart);
  vec3_axpy(half + 1, 0.5 * state->scale, across);
}

/* Terms from the dependence of a weld's rotation rows on the rotation of its bodies. */
static void pull_half(const pullback *p, const constraint_state *state, const double moment[3],
                      const anchor_cotangents *of) {
  double half[4] = {0.0}, out[2][3] = {{0.0}};
  add_half_cotangent(half, state, &p->d->by_z, moment);
  add_half_cotangent(half, state, &p->point->delta, of->motion + 3);
  add_half_cotangent(half, state, &p->s->w->problem.state.velocity, of->late + 3);
  vec3_axpy(half + 1, state->scale, of->violation + 3);
  constraint_half_pull(out, state, half);
  vec3_axpy(p->d->pose[state->body[0]].m, 1.0, out[0]);
  vec3_axpy(p->d->pose[state->body[1]].m, 1.0, out[1]);
}

static void pull_constraint(const pullback *p, int index, anchor_cotangents *of) {
  const problem *program = &p->s->w->problem;
  const constraint_state *state = program->constraint + index;
  const double *force = program->solution.constraint_force + QD_CONSTRAINT_FORCE * index;
  const int by_law = contacts_yield_in_time(p->s->options);
  if (state->rows == 6 && state->by_quaternion) {
    pull_half(p, state, program->law[index].turning, of);
  }
  constraint_turn_moment(state, of->motion + 3);
  constraint_turn_moment(state, of->late + 3);
  pull_anchors(p, state, &p->d->by_z, NULL, force);
  pull_anchors(p, state, &p->point->delta, p->d->twist, of->motion);
  if (by_law) {
    pull_anchors(p, state, &program->state.velocity, p->d->bounce, of->late);
    linear_form drift[CONSTRAINT_ROWS_MAX];
    for (int i = 0; i < state->rows; ++i) {
      drift[i] = weighed(p, of->drift[i]);
    }
    form_drift(drift, p->s, state);
  }
  pull_violation(p, state, of->violation);
}

/* Cotangents of the terms in the rows of a connect or a weld, beginning at `row`. */
static void find_cotangents(anchor_cotangents *of, const pullback *p, int row) {
  const problem *program = &p->s->w->problem;
  const int index = program->equality[row].constraint;
  const constraint_state *state = program->constraint + index;
  const double length = constraint_length(state);
  double along = 0.0;
  memset(of, 0, sizeof *of);
  for (; row < program->count.equalities && program->equality[row].constraint == index; ++row) {
    const anchor_change law = problem_anchor_change(program, row);
    const double nu = p->nu[row * p->stride];
    const int i = program->equality[row].component;
    of->motion[i] = nu;
    of->late[i] = law.in_time * nu;
    of->violation[i] = law.spring * nu;
    of->drift[i] = law.drift * nu;
    along += law.along * nu;
    add_gradient(p, QD_BY_H, 0, law.by_h * nu);
  }
  for (int i = 0; i < state->rows && along != 0.0 && length > 0.0; ++i) {
    of->violation[i] -= along * state->violation[i] / length;
  }
}

/* A coupling; of tendons, without their lengths and rates (pull_drives.c). */
static void pull_coupling(const pullback *p, int row) {
  const problem *program = &p->s->w->problem;
  const constraint_state *state = program->constraint + program->equality[row].constraint;
  const int bent = state->dof[1];
  linear_form f = weighed(p, p->nu[row * p->stride]);
  form_coupling(&f, p->s, row);
  if (bent >= 0) {
    add_gradient(p, QD_BY_Q, bent,
                 -state->curvature * program->solution.dual_eq[row] * p->d->z[bent]);
  }
}

void pull_constraints(const pullback *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  while (row < program->count.equalities) { /* rows of a constraint are contiguous */
    const int index = program->equality[row].constraint;
    anchor_cotangents of;
    if (program->constraint[index].rows == 1) {
      pull_coupling(p, row++);
      continue;
    }
    find_cotangents(&of, p, row);
    pull_constraint(p, index, &of);
    while (row < program->count.equalities && program->equality[row].constraint == index) {
      ++row;
    }
  }
}
