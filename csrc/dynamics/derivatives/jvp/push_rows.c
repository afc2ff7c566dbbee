/* Changes of contacts and bilateral constraints along the direction. */
#include "dynamics/derivatives/jvp/parts.h"
#include "dynamics/problem/yield.h"

static void contact_moves(contact_motion *m, const pushforward *p, int index) {
  const collision *c = &p->s->w->collision;
  const qd_contact *contact = c->contact + index;
  const differential *d = p->d;
  contact_motion by_size;
  double size[6];
  memset(m, 0, sizeof *m);
  if (p->tangent[QD_BY_Q] != NULL || p->tangent[QD_BY_MOCAP] != NULL) {
    contact_motion_compute(m, c, p->s->model, contact, d->by_pose + index,
                           d->body_motion + contact->body_a, d->body_motion + contact->body_b);
  }
  if (p->tangent[QD_BY_GEOM_SIZE] != NULL) {
    tangent_vec3(size, p, QD_BY_GEOM_SIZE, contact->geom_a);
    tangent_vec3(size + 3, p, QD_BY_GEOM_SIZE, contact->geom_b);
    contact_size_motion(&by_size, c, p->s->model, contact, d->by_size + index, size);
    vec3_axpy(m->pos, 1.0, by_size.pos);
    m->dist += by_size.dist;
    for (int i = 0; i < 9; ++i) {
      m->frame[i] += by_size.frame[i];
    }
  }
}

/* Changes of the relative motion under twists, in the frame of the contact. */
static void motion_change(double out[MOTION_MAX], double motion[MOTION_MAX], const screw *twist,
                          const screw *d_twist, const qd_contact *contact,
                          const contact_motion *m) {
  screw relative, change;
  double velocity[3], d_velocity[3];
  screw_sub(&relative, twist + contact->body_b, twist + contact->body_a);
  screw_sub(&change, d_twist + contact->body_b, d_twist + contact->body_a);
  screw_point_velocity(velocity, &relative, contact->pos);
  screw_point_velocity(d_velocity, &change, contact->pos);
  vec3_add_cross(d_velocity, 1.0, relative.w, m->pos);
  for (int axis = 0; axis < 3; ++axis) {
    const double *t = contact->frame + 3 * axis, *dt = m->frame + 3 * axis;
    motion[axis] = vec3_dot(t, velocity);
    motion[3 + axis] = vec3_dot(t, relative.w);
    out[axis] = vec3_dot(dt, velocity) + vec3_dot(t, d_velocity);
    out[3 + axis] = vec3_dot(dt, relative.w) + vec3_dot(t, change.w);
  }
}

/* The change of the offset of a contact's normal row; speed: relative motion under v. */
static double offset_change(const pushforward *p, const contact_block *block,
                            const contact_motion *m, const double speed[MOTION_MAX]) {
  const double dh = tangent_at(p, QD_BY_H, 0);
  switch (block->offset) {
  case OFFSET_BOUNCE: /* the rest is in add_in_time */
    return block->in_time[0] / p->s->options->h * dh * speed[0];
  case OFFSET_CAPPED:
    return -p->s->options->recovery_speed * dh;
  case OFFSET_HELD:
  case OFFSET_YIELD: /* in push_yield */
    return 0.0;
  default:
    return m->dist;
  }
}

/* Adds offsets that depend on v to the relative motion, and their changes. Fills speed. */
static void add_in_time(double change[MOTION_MAX], double motion[MOTION_MAX],
                        double speed[MOTION_MAX], const pushforward *p, const contact_block *block,
                        const qd_contact *contact, const contact_motion *m) {
  double d_speed[MOTION_MAX];
  if (block->in_time[0] == 0.0 && block->in_time[1] == 0.0) {
    memset(speed, 0, MOTION_MAX * sizeof(double));
    return;
  }
  motion_change(d_speed, speed, p->s->w->problem.state.velocity.body, p->d->d_velocity, contact, m);
  for (int c = 0; c < MOTION_MAX; ++c) {
    change[c] += block->in_time[c > 0] * d_speed[c];
    motion[c] += block->in_time[c > 0] * speed[c];
  }
}

/* Changes of the rows of a contact that yields, by its distance, h and friction. */
static void push_yield(const pushforward *p, const contact_block *block, const qd_contact *contact,
                       double d_dist, const double speed[MOTION_MAX]) {
  const double *dual = p->s->w->problem.solution.dual + block->row;
  const double dh = tangent_at(p, QD_BY_H, 0);
  const double d_friction = tangent_at(p, QD_BY_PAIR_FRICTION, 5 * contact->pair);
  double by_dist[YIELD_ROWS_MAX], by_h[YIELD_ROWS_MAX], by_friction[YIELD_ROWS_MAX];
  contact_yield now;
  contact_yield_change change;
  contact_yield_compute(&now, &change, p->s->model, contact, block->weight_share, p->s->options);
  contact_yield_rows(by_dist, &change.by_distance, &block->rows, dual, speed);
  contact_yield_rows(by_h, &change.by_h, &block->rows, dual, speed);
  contact_yield_rows(by_friction, &change.by_friction, &block->rows, dual, speed);
  for (int r = 0; r < block->rows.count; ++r) {
    p->w[(block->row + r) * p->stride] +=
        by_dist[r] * d_dist + by_h[r] * dh + by_friction[r] * d_friction;
  }
}

void push_contact(const pushforward *p, int index) {
  const problem *program = &p->s->w->problem;
  const qd_contact *contact = p->s->w->collision.contact + index;
  const contact_block *block = program->block + index;
  double motion[MOTION_MAX], change[MOTION_MAX], speed[MOTION_MAX];
  double d_force[MOTION_MAX] = {0.0}, slope[2], force[3], moment[3];
  int coefficient[2];
  contact_motion m;
  wrench dW;
  contact_moves(&m, p, index);
  motion_change(change, motion, p->point->delta.body, p->d->d_delta, contact, &m);
  add_in_time(change, motion, speed, p, block, contact, &m);
  change[0] += offset_change(p, block, &m, speed);
  for (int r = 0; r < block->rows.count; ++r) {
    const friction_row *row = block->rows.row + r;
    double *out = p->w + (block->row + r) * p->stride;
    *out = friction_row_of(row, change);
    if (r == 0 && p->s->model->parameters.pair_compliance[contact->pair] > 0.0) {
      *out +=
          program->solution.dual[block->row] * tangent_at(p, QD_BY_PAIR_COMPLIANCE, contact->pair);
    }
    friction_row_slopes(slope, coefficient, &block->rows, r, contact->dim, p->s->options->ray_count,
                        program->program.rays);
    for (int k = 0; k < 2; ++k) {
      if (coefficient[k] >= 0) {
        const double weight =
            slope[k] * tangent_at(p, QD_BY_PAIR_FRICTION, 5 * contact->pair + coefficient[k]);
        *out += weight * motion[row->component[k]];
        d_force[row->component[k]] += weight * program->solution.dual[block->row + r];
      }
    }
  }
  if (block->offset == OFFSET_YIELD) {
    push_yield(p, block, contact, m.dist, speed);
  }
  contact_world_force(dW.f, dW.m, contact, d_force);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(dW.f, contact->force[axis], m.frame + 3 * axis);
    vec3_axpy(dW.m, contact->force[3 + axis], m.frame + 3 * axis);
  }
  vec3_add_cross(dW.m, 1.0, contact->pos, dW.f);
  contact_world_force(force, moment, contact, contact->force);
  vec3_add_cross(dW.m, 1.0, m.pos, force);
  wrench_axpy(p->d->pose + contact->body_b, 1.0, &dW);
  wrench_axpy(p->d->pose + contact->body_a, -1.0, &dW);
}

/* change (rows) of C x of a connect or a weld, where x is the motion of the bodies with these
 * twists, which change by d_twist; C moves with the bodies. */
static void push_motion(double *change, const pushforward *p, const constraint_state *state,
                        const screw *twist, const screw *d_twist) {
  const differential *d = p->d;
  const int carrier = state->body[2];
  memset(change, 0, CONSTRAINT_ROWS_MAX * sizeof(double));
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    const int body = state->body[side];
    double d_anchor[3], part[3], relative[3];
    screw_point_velocity(d_anchor, d->body_motion + body, state->anchor[side]);
    screw_point_velocity(part, d_twist + body, state->anchor[side]);
    vec3_axpy(change, sign, part);
    vec3_add_cross(change, -sign, d_twist[carrier].w, state->anchor[side]);
    vec3_sub(relative, twist[body].w, twist[carrier].w);
    vec3_add_cross(change, sign, relative, d_anchor);
    vec3_axpy(change + 3, sign, d_twist[body].w);
  }
  if (state->rows == 6 && state->by_quaternion) {
    const int a = state->body[0], b = state->body[1];
    double half[4], apart[3], part[3];
    constraint_half_change(half, state, d->body_motion[a].w, d->body_motion[b].w);
    vec3_sub(apart, twist[b].w, twist[a].w);
    constraint_turn_change(part, state, half, apart, 0);
    constraint_turn_rows(state, change + 3);
    vec3_axpy(change + 3, 1.0, part);
  }
}

/* Changes of the violation, and of the force due to the motion of anchors and rows. */
static void push_violation(double d_violation[CONSTRAINT_ROWS_MAX], const pushforward *p,
                           const constraint_state *state, const double *force,
                           const double moment[3]) {
  const differential *d = p->d;
  double part[3], half[4];
  memset(d_violation, 0, CONSTRAINT_ROWS_MAX * sizeof(double));
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    const int body = state->body[side];
    double d_anchor[3];
    screw_point_velocity(d_anchor, d->body_motion + body, state->anchor[side]);
    vec3_axpy(d_violation, sign, d_anchor);
    vec3_add_cross(d->pose[body].m, sign, d_anchor, force);
    vec3_add_cross(d->pose[state->body[2]].m, -sign, d_anchor, force);
    if (state->rows == 6 && !state->by_quaternion) {
      constraint_turn_push(d_violation + 3, state, d->body_motion[body].w, side);
    }
  }
  constraint_cap_change(state, 0, d_violation);
  if (state->rows == 6 && state->by_quaternion) {
    const int a = state->body[0], b = state->body[1];
    constraint_half_change(half, state, d->body_motion[a].w, d->body_motion[b].w);
    vec3_scale(d_violation + 3, half + 1, state->scale);
    constraint_turn_change(part, state, half, moment, 1);
    vec3_axpy(d->pose[b].m, 1.0, part);
    vec3_axpy(d->pose[a].m, -1.0, part);
  }
}

/* Rows of a connect or a weld, beginning at `row`. */
static void push_constraint(const pushforward *p, int row) {
  const problem *program = &p->s->w->problem;
  const int index = program->equality[row].constraint;
  const constraint_state *state = program->constraint + index;
  const double *force = program->solution.constraint_force + QD_CONSTRAINT_FORCE * index;
  const double length = constraint_length(state);
  double moved[CONSTRAINT_ROWS_MAX], late[CONSTRAINT_ROWS_MAX] = {0.0};
  double violation[CONSTRAINT_ROWS_MAX], along_depth = 0.0;
  linear_form drift[CONSTRAINT_ROWS_MAX];
  for (int i = 0; i < state->rows; ++i) {
    drift[i] = along(p);
  }
  push_motion(moved, p, state, p->point->delta.body, p->d->d_delta);
  if (contacts_yield_in_time(p->s->options)) {
    push_motion(late, p, state, program->state.velocity.body, p->d->d_velocity);
    form_drift(drift, p->s, state);
  }
  push_violation(violation, p, state, force, program->law[index].turning);
  for (int i = 0; i < state->rows && length > 0.0; ++i) {
    along_depth -= state->violation[i] / length * violation[i];
  }
  for (; row < program->count.equalities && program->equality[row].constraint == index; ++row) {
    const anchor_change law = problem_anchor_change(program, row);
    const int i = program->equality[row].component;
    p->e[row * p->stride] = moved[i] + law.in_time * late[i] + law.spring * violation[i] +
                            law.along * along_depth + law.drift * drift[i].change +
                            law.by_h * tangent_at(p, QD_BY_H, 0);
  }
}

void push_constraints(const pushforward *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  while (row < program->count.equalities) {
    const int index = program->equality[row].constraint;
    if (program->constraint[index].rows == 1) {
      linear_form f = along(p);
      form_coupling(&f, p->s, row);
      p->e[row++ * p->stride] = f.change;
      continue;
    }
    push_constraint(p, row);
    while (row < program->count.equalities && program->equality[row].constraint == index) {
      ++row;
    }
  }
}
