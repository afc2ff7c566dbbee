/* How stationarity r = Qd + b - G'lambda - C'nu, slacks w = Gd + g and equalities e = Cd + c change
 * along a direction, at fixed d and multipliers: bodies move with the twists of dq, joint axes with
 * those of what carries them, and each lump, force and contact adds its part to a body. */
#include <string.h>

#include "dynamics/derivatives/actuator_part.h"
#include "dynamics/derivatives/ball_part.h"
#include "dynamics/derivatives/coasting_part.h"
#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/inertia_form.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"

typedef struct pushforward {
  const solved_step *s;
  differential *d;
  const step_point *point;
  const double *const *tangent;
  double *w, *e;
  int stride;
} pushforward;

/* What along the tangent belongs to entry `at`, zero where there is none. */
static double tangent_at(const pushforward *p, int argument, int at) {
  return p->tangent[argument] != NULL ? p->tangent[argument][at] : 0.0;
}

static void tangent_vec3(double out[3], const pushforward *p, int argument, int body) {
  vec3_set(out, 0.0, 0.0, 0.0);
  if (p->tangent[argument] != NULL) {
    vec3_copy(out, p->tangent[argument] + 3 * body);
  }
}

/* The twist of a mocap body that moves along the tangent with its origin and about it. */
static void add_mocap_motion(screw *motion, const pushforward *p, int body) {
  const double *tangent = p->tangent[QD_BY_MOCAP] + 6 * p->s->model->body_mocap[body];
  double part[3];
  vec3_axpy(motion->w, 1.0, tangent + 3);
  vec3_cross(part, p->s->w->kinematics.body_pos + 3 * body, tangent + 3);
  vec3_axpy(motion->v, 1.0, tangent);
  vec3_axpy(motion->v, 1.0, part);
}

/* The change of DOF j's mass motion (of its acceleration) at fixed delta. */
static double mass_rate(const pushforward *p, int j) {
  const double by_h = tangent_at(p, QD_BY_H, 0) * p->point->mass_by_h[j];
  return p->s->options->dynamic ? by_h - p->d->d_coasting[j] / p->s->options->h : by_h;
}

/* What DOF j adds to the changes of body b's velocity and acceleration by how the axis turns with
 * what is before it, whose velocity changes by d_before (body_motion). */
static void move_in_time(const pushforward *p, int b, int j, const screw *d_before) {
  differential *d = p->d;
  const screw *S = p->s->w->kinematics.dof_screw + j, *dS = d->axis_motion + j;
  const screw *before = p->point->motion.before + j;
  const problem *program = &p->s->w->problem;
  const double v = program->stirred[j];
  const double dv = dof_coasts(p->s, j) ? 0.0 : tangent_at(p, QD_BY_V, j);
  screw turned;
  screw_bracket(&turned, before, S);
  screw_axpy(d->d_mass_delta + b, dv, &turned);
  screw_bracket(&turned, d_before, S);
  screw_axpy(d->d_mass_delta + b, v, &turned);
  screw_bracket(&turned, before, dS);
  screw_axpy(d->d_mass_delta + b, v, &turned);
  screw_axpy(d->d_stirred + b, v, dS);
  screw_axpy(d->d_stirred + b, dv, S);
  screw_axpy(d->d_velocity + b, program->v[j], dS);
  screw_axpy(d->d_velocity + b, tangent_at(p, QD_BY_V, j), S);
}

/* Twists of the bodies along dq, of the axes, and what both change in the twists under d. A block's
 * axes move with what is before the block. */
static void move_bodies(const pushforward *p) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  const qd_model *model = p->s->model;
  differential *d = p->d;
  d->body_motion[0] = d->d_delta[0] = d->d_mass_delta[0] = d->d_velocity[0] = d->d_stirred[0] =
      still;
  for (int b = 1; b < model->body_count; ++b) {
    const int parent = model->body_parent[b];
    screw motion = d->body_motion[parent];
    if (p->tangent[QD_BY_MOCAP] != NULL && model->body_mocap[b] >= 0) {
      add_mocap_motion(&motion, p, b);
    }
    screw before = motion, d_before = d->d_stirred[parent];
    d->d_delta[b] = d->d_delta[parent];
    d->d_mass_delta[b] = d->d_mass_delta[parent];
    d->d_velocity[b] = d->d_velocity[parent];
    d->d_stirred[b] = d->d_stirred[parent];
    const int first = model->body_joint_start[b], end = model->body_joint_start[b + 1];
    const int dof_end =
        end > first ? model->joint_v[end - 1] + joint_v_count(model->joint_type[end - 1]) : 0;
    for (int j = end > first ? model->joint_v[first] : 0; j < dof_end; ++j) {
      const screw *S = p->s->w->kinematics.dof_screw + j;
      if (j == model->dof_block_start[j]) {
        before = motion;
        d_before = d->d_stirred[b];
      }
      screw_bracket(d->axis_motion + j, &before, S);
      screw_axpy(d->d_delta + b, p->s->delta[j], d->axis_motion + j);
      if (dof_has_mass(model, p->s->options, j)) {
        screw_axpy(d->d_mass_delta + b, p->point->free_delta[j], d->axis_motion + j);
        screw_axpy(d->d_mass_delta + b, mass_rate(p, j), S);
      }
      if (p->s->options->dynamic) {
        move_in_time(p, b, j, &d_before);
      }
      screw_axpy(&motion, tangent_at(p, QD_BY_Q, j), S);
    }
    d->body_motion[b] = motion;
  }
}

/* ---------------------------------------------------------------- contacts */

static void contact_moves(contact_motion *m, const pushforward *p, int index) {
  const qd_contact *contact = p->s->w->collision.contact + index;
  const differential *d = p->d;
  contact_motion by_size;
  double size[6];
  memset(m, 0, sizeof *m);
  if (p->tangent[QD_BY_Q] != NULL || p->tangent[QD_BY_MOCAP] != NULL) {
    contact_motion_compute(m, p->s->model, contact, d->by_pose + index,
                           d->body_motion + contact->body_a, d->body_motion + contact->body_b);
  }
  if (p->tangent[QD_BY_GEOM_SIZE] != NULL) {
    tangent_vec3(size, p, QD_BY_GEOM_SIZE, contact->geom_a);
    tangent_vec3(size + 3, p, QD_BY_GEOM_SIZE, contact->geom_b);
    contact_size_motion(&by_size, p->s->model, contact, d->by_size + index, size);
    vec3_axpy(m->pos, 1.0, by_size.pos);
    m->dist += by_size.dist;
    for (int i = 0; i < 9; ++i) {
      m->frame[i] += by_size.frame[i];
    }
  }
}

/* Changes of the relative motion of twists, in the frame of the contact. */
static void motion_change(double out[MOTION_MAX], double motion[MOTION_MAX], const screw *twist,
                          const screw *d_twist, const qd_contact *contact,
                          const contact_motion *m) {
  screw relative, change;
  double velocity[3], d_velocity[3], part[3];
  screw_sub(&relative, twist + contact->body_b, twist + contact->body_a);
  screw_sub(&change, d_twist + contact->body_b, d_twist + contact->body_a);
  screw_point_velocity(velocity, &relative, contact->pos);
  screw_point_velocity(d_velocity, &change, contact->pos);
  vec3_cross(part, relative.w, m->pos);
  vec3_axpy(d_velocity, 1.0, part);
  for (int axis = 0; axis < 3; ++axis) {
    const double *t = contact->frame + 3 * axis, *dt = m->frame + 3 * axis;
    motion[axis] = vec3_dot(t, velocity);
    motion[3 + axis] = vec3_dot(t, relative.w);
    out[axis] = vec3_dot(dt, velocity) + vec3_dot(t, d_velocity);
    out[3 + axis] = vec3_dot(dt, relative.w) + vec3_dot(t, change.w);
  }
}

/* The change of the offset of a contact's normal row. */
static double offset_change(const pushforward *p, const contact_block *block,
                            const qd_contact *contact, const contact_motion *m) {
  const double dh = tangent_at(p, QD_BY_H, 0), h = p->s->options->h;
  double motion[MOTION_MAX], change[MOTION_MAX];
  switch (block->offset) {
  case OFFSET_BOUNCE:
    motion_change(change, motion, p->s->w->problem.velocity.body, p->d->d_velocity, contact, m);
    return block->restitution * (h * change[0] + dh * motion[0]);
  case OFFSET_CAPPED:
    return -p->s->options->recovery_speed * dh;
  case OFFSET_HELD:
    return 0.0;
  default:
    return m->dist;
  }
}

static void push_contact(const pushforward *p, int index) {
  const problem *program = &p->s->w->problem;
  const qd_contact *contact = p->s->w->collision.contact + index;
  const contact_block *block = program->block + index;
  double motion[MOTION_MAX], change[MOTION_MAX], d_force[MOTION_MAX] = {0.0}, slope[2];
  double force[3], moment[3], part[3];
  int coefficient[2];
  contact_motion m;
  wrench dW;
  contact_moves(&m, p, index);
  motion_change(change, motion, p->point->delta.body, p->d->d_delta, contact, &m);
  change[0] += offset_change(p, block, contact, &m);
  for (int r = 0; r < block->rows.count; ++r) {
    const friction_row *row = block->rows.row + r;
    double *out = p->w + (block->row + r) * p->stride;
    *out = friction_row_of(row, change);
    if (r == 0 && p->s->model->parameters.pair_compliance[contact->pair] > 0.0) {
      *out += program->dual[block->row] * tangent_at(p, QD_BY_PAIR_COMPLIANCE, contact->pair);
    }
    friction_row_slopes(slope, coefficient, &block->rows, r, contact->dim, p->s->options->ray_count,
                        program->rays);
    for (int k = 0; k < 2; ++k) {
      if (coefficient[k] >= 0) {
        const double weight =
            slope[k] * tangent_at(p, QD_BY_PAIR_FRICTION, 5 * contact->pair + coefficient[k]);
        *out += weight * motion[row->component[k]];
        d_force[row->component[k]] += weight * program->dual[block->row + r];
      }
    }
  }
  contact_world_force(dW.f, dW.m, contact, d_force);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(dW.f, contact->force[axis], m.frame + 3 * axis);
    vec3_axpy(dW.m, contact->force[3 + axis], m.frame + 3 * axis);
  }
  vec3_cross(part, contact->pos, dW.f);
  vec3_axpy(dW.m, 1.0, part);
  contact_world_force(force, moment, contact, contact->force);
  vec3_cross(part, m.pos, force);
  vec3_axpy(dW.m, 1.0, part);
  wrench_axpy(p->d->pose + contact->body_b, 1.0, &dW);
  wrench_axpy(p->d->pose + contact->body_a, -1.0, &dW);
}

/* ---------------------------------------------------------------- constraints */

static void push_constraint(const pushforward *p, int index, const double *force,
                            double change[CONSTRAINT_ROWS_MAX]) {
  const constraint_state *state = p->s->w->problem.constraint + index;
  const differential *d = p->d;
  double d_violation[3] = {0.0};
  memset(change, 0, CONSTRAINT_ROWS_MAX * sizeof(double));
  for (int i = 0; i < state->rows; ++i) { /* what a step undoes of it grows with h */
    change[i] = state->capped[i / 3]
                    ? tangent_at(p, QD_BY_H, 0) * state->violation[i] / p->s->options->h
                    : 0.0;
  }
  if (state->tendon[0] >= 0) {
    return; /* the rest with its tendons */
  }
  if (state->rows == 1) {
    d_violation[0] = tangent_at(p, QD_BY_Q, state->dof[0]);
    if (state->dof[1] >= 0) {
      d_violation[0] -= tangent_at(p, QD_BY_Q, state->dof[1]) * state->slope;
      change[0] -=
          tangent_at(p, QD_BY_Q, state->dof[1]) * state->curvature * p->s->delta[state->dof[1]];
    }
    constraint_cap_change(state, 0, d_violation);
    change[0] += d_violation[0];
    return;
  }
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    const int body = state->body[side];
    double d_anchor[3], part[3];
    screw_point_velocity(d_anchor, d->body_motion + body, state->anchor[side]);
    vec3_axpy(d_violation, sign, d_anchor);
    screw_point_velocity(part, d->d_delta + body, state->anchor[side]);
    vec3_axpy(change, sign, part);
    vec3_cross(part, p->point->delta.body[body].w, d_anchor);
    vec3_axpy(change, sign, part);
    if (state->rows == 6) {
      vec3_axpy(change + 3, sign, d->d_delta[body].w);
      constraint_turn_push(change + 3, state, d->body_motion[body].w, side);
    }
    vec3_cross(part, d_anchor, force);
    vec3_axpy(d->pose[body].m, sign, part);
  }
  constraint_cap_change(state, 0, d_violation);
  vec3_axpy(change, 1.0, d_violation);
}

static void push_constraints(const pushforward *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  while (row < program->equality_count) {
    const int index = program->equality[row].constraint;
    double change[CONSTRAINT_ROWS_MAX];
    push_constraint(p, index, program->constraint_force + QD_CONSTRAINT_FORCE * index, change);
    for (; row < program->equality_count && program->equality[row].constraint == index; ++row) {
      p->e[row * p->stride] = change[program->equality[row].component];
    }
  }
}

/* ---------------------------------------------------------------- actuators */

/* Along the tangent, of an actuator's force with these slopes; its coordinate moves by dl. */
static double force_change(const pushforward *p, const actuator_slopes *slope, int i, double dl) {
  return slope->l * dl + slope->u * tangent_at(p, QD_BY_U, i) +
         slope->stiffness * tangent_at(p, QD_BY_ACTUATOR_STIFFNESS, i) +
         slope->gain * tangent_at(p, QD_BY_ACTUATOR_GAIN, i) +
         slope->bias * tangent_at(p, QD_BY_ACTUATOR_BIAS, i) +
         slope->damping * tangent_at(p, QD_BY_ACTUATOR_DAMPING, i) +
         slope->h * tangent_at(p, QD_BY_H, 0);
}

/* Of what it pulls with by its limits. */
static double limit_change(const pushforward *p, const actuator_part *part, int i) {
  return part->by_lower * tangent_at(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i) +
         part->by_upper * tangent_at(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i + 1);
}

/* ---------------------------------------------------------------- tendons */

/* Of length and rate.delta, which never changes. */
static void push_fixed_tendon(double change[2], const pushforward *p, int tendon) {
  const qd_model *model = p->s->model;
  double sum = 0.0;
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    sum += p->s->w->problem.tendons.rate[d] * tangent_at(p, QD_BY_Q, model->tendon_dof[d]);
  }
  change[0] = sum;
  change[1] = 0.0;
}

/* The slack of a spring changes with its stiffness by its force times that of 1 / k. */
static double push_stiffness(const pushforward *p, const tendon_row *row) {
  if (row->kind != TENDON_SPRING && row->kind != TENDON_REST) {
    return 0.0;
  }
  const double k = p->s->model->parameters.tendon_stiffness[row->tendon];
  return -p->s->w->problem.dual[row->row] / (k * k) *
         tangent_at(p, QD_BY_TENDON_STIFFNESS, row->tendon);
}

/* Its row, and the change of its force that no row says. */
static void push_tendon_actuator(const pushforward *p, const tendon_row *row,
                                 const double change[2]) {
  const int i = row->actuator;
  const actuator_part part =
      actuator_part_of(&p->s->w->problem, p->s->model, p->s->options, p->s->input, p->s->delta, i);
  const double by_coordinate = force_change(p, &part.slope, i, change[0]);
  const int has_row = part.row >= 0;
  p->w[row->row * p->stride] = change[1] + (has_row ? part.per_row * by_coordinate : 0.0);
  p->d->tendon_change[row->tendon] += limit_change(p, &part, i) + (has_row ? 0.0 : by_coordinate);
}

/* r -= rate times the forces' change */
static void push_tendon_forces(const pushforward *p, double *r) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  for (int t = 0; t < model->tendon_count; ++t) {
    for (int d = model->tendon_dof_start[t]; d < model->tendon_dof_start[t + 1]; ++d) {
      const int variable = program->variable_of_dof[model->tendon_dof[d]];
      if (variable >= 0) {
        r[variable * p->stride] -= p->d->tendon_change[t] * program->tendons.rate[d];
      }
    }
  }
}

/* What the changes of length and rate.delta do to a tendon's couplings. */
static void push_coupled_tendon(const pushforward *p, int tendon, const double change[2]) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->equality_count; ++i) {
    const constraint_state *state = program->constraint + program->equality[i].constraint;
    for (int k = 0; k < 2 && state->tendon[0] >= 0; ++k) {
      if (state->tendon[k] != tendon) {
        continue;
      }
      const double share = constraint_tendon_share(state, k), bend = k ? state->curvature : 0.0;
      const double moved = tendon_displacement(program, p->s->model, tendon, p->s->delta);
      p->e[i * p->stride] +=
          share * ((state->capped[0] ? 0.0 : change[0]) + change[1]) - bend * moved * change[0];
      p->d->tendon_change[tendon] -= bend * program->dual_eq[i] * change[0];
    }
  }
}

/* A damper gives way by h over its damping. */
static double push_damper(const pushforward *p, const tendon_row *row) {
  const problem *program = &p->s->w->problem;
  return row->kind == TENDON_DAMPER ? program->dual[row->row] * program->compliance[row->row] /
                                          p->s->options->h * tangent_at(p, QD_BY_H, 0)
                                    : 0.0;
}

static void push_tendons(const pushforward *p) {
  const problem *program = &p->s->w->problem;
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  int row = 0;
  memset(d->tendon_change, 0, (size_t)model->tendon_count * sizeof(double));
  for (int i = 0; i < islands_tendon_count(&program->islands); ++i) {
    const int tendon = program->islands.tendon_order[i];
    double change[2];
    const double dh = tangent_at(p, QD_BY_H, 0);
    const double undone = dh != 0.0 ? p->s->options->recovery_speed * dh : 0.0;
    if (model->tendon_type[tendon] == QD_TENDON_FIXED) {
      push_fixed_tendon(change, p, tendon);
    } else {
      tendon_push(change, d->pose, &program->tendons, model, tendon, program->tendon_force[tendon],
                  p->point->delta.body, d->body_motion, d->d_delta);
    }
    if (model->tendon_is_coupled[tendon]) {
      push_coupled_tendon(p, tendon, change);
    }
    for (; row < program->tendon_row_count && program->tendon_row[row].tendon == tendon; ++row) {
      const tendon_row *at = program->tendon_row + row;
      if (at->kind >= TENDON_ACTUATOR) {
        push_tendon_actuator(p, at, change);
        continue;
      }
      const double length = tendon_row_has_length(at) && !at->capped ? change[0] : 0.0;
      p->w[at->row * p->stride] = at->sign * (length + change[1]) + push_stiffness(p, at) +
                                  push_damper(p, at) - (at->capped ? undone : 0.0);
    }
  }
}

/* ---------------------------------------------------------------- bodies */

/* What the change of body b's velocity adds: T x* I T moves with the body, by dT seen from there,
 * and by dI. */
static void push_velocity(const pushforward *p, int b, const double com[3], const double d_com[3]) {
  const spatial_inertia *I = p->s->w->inertia.body + b;
  const screw *T = p->point->motion.velocity.body + b, *X = p->d->body_motion + b;
  screw seen = p->d->d_stirred[b], turned;
  wrench h, part, moved, *out = p->d->momentum_z + b;
  screw_bracket(&turned, X, T);
  screw_axpy(&seen, -1.0, &turned);
  inertia_momentum(&h, I, T);
  screw_cross_wrench(&part, T, &h);
  screw_cross_wrench(&moved, X, &part);
  wrench_axpy(out, 1.0, &moved);
  screw_cross_wrench(&part, &seen, &h);
  wrench_axpy(out, 1.0, &part);
  inertia_momentum(&part, I, &seen);
  inertia_form_push(&part, p->s, p->tangent, b, com, d_com, T);
  screw_cross_wrench(&moved, T, &part);
  wrench_axpy(out, 1.0, &moved);
}

/* The change of what the inertia of body b needs. */
static void push_momentum(const pushforward *p, int b, const double com[3], const double d_com[3]) {
  const qd_workspace *w = p->s->w;
  differential *d = p->d;
  const spatial_inertia *I = w->inertia.body + b;
  const screw *T = p->point->motion.acceleration.body + b, *X = d->body_motion + b;
  screw turned;
  wrench h, part;
  wrench *out = d->momentum_z + b;
  inertia_momentum(&h, I, T);
  screw_cross_wrench(out, X, &h);
  screw_bracket(&turned, X, T);
  inertia_momentum(&part, I, &turned);
  wrench_axpy(out, -1.0, &part);
  inertia_momentum(&part, I, d->d_mass_delta + b);
  wrench_axpy(out, 1.0, &part);
  inertia_form_push(out, p->s, p->tangent, b, com, d_com, T);
  if (p->s->options->dynamic) {
    push_velocity(p, b, com, d_com);
  }
}

/* d->scratch: change of the gravity wrench; d->pose: of what the caller applies. */
static void push_body(const pushforward *p, int b) {
  static const double none[6] = {0.0};
  const qd_model *model = p->s->model;
  differential *d = p->d;
  const double *g = model->parameters.gravity;
  const double *applied =
      p->s->input->wrench != NULL ? p->s->input->wrench + APPLIED_WRENCH * b : none;
  const double *d_applied =
      p->tangent[QD_BY_WRENCH] != NULL ? p->tangent[QD_BY_WRENCH] + APPLIED_WRENCH * b : none;
  double com[3], d_com[3], moved[3], part[3], force[3], d_gravity[3];
  wrench W;
  body_com(com, model, &p->s->w->kinematics, b);
  tangent_vec3(part, p, QD_BY_BODY_COM, b);
  mat3_mul_vec(d_com, p->s->w->kinematics.body_rot + 9 * b, part);
  push_momentum(p, b, com, d_com);
  screw_point_velocity(moved, d->body_motion + b, com);
  vec3_axpy(moved, 1.0, d_com);
  const double fall = model->body_fall[b], weight = fall * model->parameters.body_mass[b];
  tangent_vec3(d_gravity, p, QD_BY_GRAVITY, 0);
  vec3_scale(force, d_gravity, weight);
  vec3_axpy(force, fall * tangent_at(p, QD_BY_BODY_MASS, b), g);
  vec3_cross(part, moved, g);
  vec3_scale(part, part, weight);
  wrench_at(d->scratch + b, com, force, part);
  vec3_cross(part, moved, applied);
  vec3_axpy(part, 1.0, d_applied + 3);
  wrench_at(&W, com, d_applied, part);
  wrench_axpy(d->pose + b, 1.0, &W);
}

/* ---------------------------------------------------------------- DOFs */

/* Of the force of the joint's spring and damper, towards rest. */
static double spring_change(const pushforward *p, int j) {
  const qd_model *model = p->s->model;
  const double *q = p->s->input->q, delta = p->s->delta[j];
  const int joint = model->dof_joint[j], by_stiffness = p->tangent[QD_BY_JOINT_STIFFNESS] != NULL;
  const double stiffness = model->parameters.joint_stiffness[joint];
  const double rate = damping_rate(p->s->options);
  const double damping = model->parameters.joint_damping[joint];
  double row[3], sum = rate * delta *
                       (tangent_at(p, QD_BY_JOINT_DAMPING, joint) -
                        damping * rate * tangent_at(p, QD_BY_H, 0));
  int first, count = stiffness > 0.0 ? joint_stretch_row(model, j, q, row, &first) : 0;
  for (int i = 0; i < count; ++i) {
    sum += stiffness * row[i] * tangent_at(p, QD_BY_Q, first + i);
  }
  if (model->dof_q[j] >= 0) {
    sum -= stiffness * tangent_at(p, QD_BY_JOINT_SPRINGREF, joint);
  }
  if (by_stiffness) {
    sum += tangent_at(p, QD_BY_JOINT_STIFFNESS, joint) * (delta + joint_stretch(model, j, q));
  }
  return sum;
}

/* Of what the actuators pull with, apart from those whose rows say it. */
static double actuator_change(const pushforward *p, int j) {
  const qd_model *model = p->s->model;
  int count;
  const int *actuator = dof_actuators(model, j, &count);
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    const int i = actuator[k];
    const actuator_part part =
        actuator_part_of(&p->s->w->problem, model, p->s->options, p->s->input, p->s->delta, i);
    const double change = force_change(p, &part.slope, i, tangent_at(p, QD_BY_Q, j));
    if (part.row >= 0) {
      p->w[part.row * p->stride] = part.per_row * change;
    }
    sum += part.row >= 0 ? force_change(p, &part.resistance, i, 0.0) : change;
    sum += limit_change(p, &part, i);
  }
  return sum;
}

/* Of dry friction, whose limits move with it. */
static void push_friction_loss(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->force_row_count; ++i) {
    const force_row *row = program->force_row + i;
    if (row->actuator < 0) {
      const int joint = p->s->model->dof_joint[row->dof];
      r[program->variable_of_dof[row->dof] * p->stride] -=
          (program->by_upper[row->row] - program->by_lower[row->row]) *
          tangent_at(p, QD_BY_JOINT_FRICTION, joint);
    }
  }
}

static double joint_change(const pushforward *p, int j) {
  return -tangent_at(p, QD_BY_TAU, j) + spring_change(p, j) - actuator_change(p, j);
}

/* The change of what rotors need. */
static double rotor_change(const pushforward *p, int j) {
  const int joint = p->s->model->dof_joint[j];
  return p->s->model->parameters.joint_armature[joint] * mass_rate(p, j) +
         tangent_at(p, QD_BY_JOINT_ARMATURE, joint) * p->point->free_delta[j];
}

static void push_joints(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  for (int i = 0; i < program->n; ++i) {
    const int j = program->dof_of_variable[i], b = model->dof_body[j];
    const screw *S = p->s->w->kinematics.dof_screw + j, *dS = d->axis_motion + j;
    r[i * p->stride] =
        joint_change(p, j) + (p->s->options->dynamic ? rotor_change(p, j) : 0.0) +
        p->point->mass_scale[j] *
            (screw_dot(dS, p->point->momentum + b) + screw_dot(S, d->momentum_z + b)) -
        p->point->falls[j] * (screw_dot(dS, p->point->weight + b) + screw_dot(S, d->scratch + b)) -
        screw_dot(dS, p->point->forces + b) - screw_dot(S, d->pose + b);
  }
  for (int i = 0; i < model->constraint_count && p->tangent[QD_BY_Q] != NULL; ++i) {
    const constraint_state *state = program->constraint + i;
    if (state->dof[1] >= 0 && program->variable_of_dof[state->dof[1]] >= 0) {
      r[program->variable_of_dof[state->dof[1]] * p->stride] +=
          program->constraint_force[QD_CONSTRAINT_FORCE * i] * state->curvature *
          p->tangent[QD_BY_Q][state->dof[1]];
    }
  }
}

static void push_ball_limits(const pushforward *p, double *r) {
  const problem *program = &p->s->w->problem;
  for (int k = 0; k < program->ball_limit_count; ++k) {
    const ball_limit *limit = program->ball_limit + k;
    ball_part part;
    ball_part_compute(&part, program, limit, p->s->delta);
    if (limit->capped) {
      p->w[limit->row * p->stride] -= p->s->options->recovery_speed * tangent_at(p, QD_BY_H, 0);
    }
    for (int j = 0; j < 3; ++j) {
      const double dq = tangent_at(p, QD_BY_Q, limit->dof + j);
      for (int i = 0; i < BALL_ROWS; ++i) {
        p->w[(limit->row + i) * p->stride] += part.rows[3 * i + j] * dq;
      }
      for (int i = 0; i < 3; ++i) {
        const int variable = program->variable_of_dof[limit->dof + i];
        if (variable >= 0) {
          r[variable * p->stride] -= part.force[3 * i + j] * dq;
        }
      }
    }
  }
}

void pushforward_compute(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                         double *r, double *w, double *e, int stride) {
  const qd_model *model = s->model;
  const problem *program = &s->w->problem;
  differential *d = &s->w->differential;
  const pushforward p = {s, d, &s->w->point, tangent, w, e, stride};
  if (tangent[QD_BY_Q] != NULL || tangent[QD_BY_MOCAP] != NULL) {
    differential_need_poses(s);
  }
  if (tangent[QD_BY_GEOM_SIZE] != NULL) {
    differential_need_sizes(s);
  }
  if (s->options->dynamic) {
    coasting_push(d->d_coasting, s, tangent);
  }
  move_bodies(&p);
  memset(d->pose, 0, (size_t)model->body_count * sizeof(wrench));
  memset(d->scratch, 0, sizeof(wrench));
  memset(d->momentum_z, 0, sizeof(wrench));
  for (int i = 0; i < program->row_count; ++i) {
    w[i * stride] = 0.0;
  }
  for (int i = 0; i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      push_contact(&p, i);
    }
  }
  for (int i = 0; i < program->limit_count; ++i) {
    const limit_row *limit = program->limit + i;
    w[limit->row * stride] = limit->capped
                                 ? -s->options->recovery_speed * tangent_at(&p, QD_BY_H, 0)
                                 : limit->sign * tangent_at(&p, QD_BY_Q, limit->dof);
  }
  push_constraints(&p);
  push_tendons(&p);
  soft_derivative_push(s, tangent, w, stride);
  for (int b = 1; b < model->body_count; ++b) {
    push_body(&p, b);
  }
  wrench_sum_subtrees(d->pose, model);
  wrench_sum_subtrees(d->scratch, model);
  wrench_sum_subtrees(d->momentum_z, model);
  push_joints(&p, r);
  push_friction_loss(&p, r);
  push_tendon_forces(&p, r);
  push_ball_limits(&p, r);
}
