/* The gradient of L (differential.h) by everything that a step depends on: one sweep over contacts,
 * constraints and bodies, then one over DOFs.
 *
 * A wrench F that is the cotangent of a body's twist T (dL = F.dT) gives, as dT/dq_j = S_j x (T -
 * P_j), S_j . (T x* F - P_j x* F); what depends on the body's pose gives S_j . U with U the wrench
 * whose power is the change. Both are summed over all that j carries. */
#include <string.h>

#include "dynamics/derivatives/actuator_part.h"
#include "dynamics/derivatives/ball_part.h"
#include "dynamics/derivatives/coasting_part.h"
#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/inertia_form.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"

typedef struct pullback {
  const solved_step *s;
  differential *d;
  const step_point *point;
  const double *mu, *nu;
  int stride;
  double *const *gradient;
  int bodies_move; /* 1: q, v or h is wanted, or masses, which coasting depends on */
} pullback;

/* sign F is the cotangent of a body's twist in the field. */
static void pull_twist(wrench *pose, const twist_field *field, int body, double sign,
                       const wrench *F) {
  wrench turned;
  screw_cross_wrench(&turned, field->body + body, F);
  wrench_axpy(pose + body, sign, &turned);
}

/* The gradient counts the argument; NULL: not wanted. */
static void add_to(const pullback *p, int argument, int at, double value) {
  if (p->gradient[argument] != NULL) {
    p->gradient[argument][at] += value;
  }
}

static void add_pose_force(wrench *pose, int body, const double point[3], const double force[3]) {
  static const double none[3] = {0.0, 0.0, 0.0};
  wrench W;
  wrench_at(&W, point, force, none);
  wrench_axpy(pose + body, 1.0, &W);
}

/* ---------------------------------------------------------------- contacts */

typedef struct relative_motion {
  screw twist;
  double velocity[3]; /* at the contact */
} relative_motion;

static void relative_motion_of(relative_motion *out, const twist_field *field,
                               const qd_contact *contact) {
  screw_sub(&out->twist, field->body + contact->body_b, field->body + contact->body_a);
  screw_point_velocity(out->velocity, &out->twist, contact->pos);
}

/* out += cotangents of the contact's point and axes, of f.w(x). */
static void add_contact_cotangent(contact_motion *out, const double f[MOTION_MAX],
                                  const qd_contact *contact, const relative_motion *x) {
  double force[3], moment[3], part[3];
  contact_world_force(force, moment, contact, f);
  vec3_cross(part, force, x->twist.w);
  vec3_axpy(out->pos, 1.0, part);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(out->frame + 3 * axis, f[axis], x->velocity);
    vec3_axpy(out->frame + 3 * axis, f[3 + axis], x->twist.w);
  }
}

/* pose, twist: f at the contact is the cotangent of the bodies' twists in the field. */
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

/* What the offset of the normal row, with this cotangent, is made of. */
static void pull_offset(const pullback *p, const contact_block *block, const qd_contact *contact,
                        double cotangent, contact_motion *out) {
  const double h = p->s->options->h;
  if (block->offset == OFFSET_GAP) {
    out->dist = cotangent;
  } else if (block->offset == OFFSET_CAPPED) {
    add_to(p, QD_BY_H, 0, -cotangent * p->s->options->recovery_speed);
  } else if (block->offset == OFFSET_BOUNCE) {
    const double bounce[MOTION_MAX] = {cotangent * block->restitution * h};
    const twist_field *field = &p->s->w->problem.velocity;
    relative_motion x;
    relative_motion_of(&x, field, contact);
    add_to(p, QD_BY_H, 0, bounce[0] / h * vec3_dot(contact->frame, x.velocity));
    pull_contact_twist(p->d->pose, p->d->bounce, field, contact, bounce);
    add_contact_cotangent(out, bounce, contact, &x);
  }
}

static void frame_motion_of(double motion[MOTION_MAX], const qd_contact *contact,
                            const relative_motion *m) {
  for (int axis = 0; axis < 3; ++axis) {
    motion[axis] = vec3_dot(contact->frame + 3 * axis, m->velocity);
    motion[3 + axis] = vec3_dot(contact->frame + 3 * axis, m->twist.w);
  }
}

static void pull_friction(const pullback *p, int index, const relative_motion *z,
                          const relative_motion *x) {
  const problem *program = &p->s->w->problem;
  const qd_contact *contact = p->s->w->collision.contact + index;
  const contact_block *block = program->block + index;
  double *out = p->gradient[QD_BY_PAIR_FRICTION] + 5 * contact->pair;
  double along_z[MOTION_MAX], along_x[MOTION_MAX], slope[2];
  int coefficient[2];
  frame_motion_of(along_z, contact, z);
  frame_motion_of(along_x, contact, x);
  for (int r = 0; r < block->rows.count; ++r) {
    const double lambda = program->dual[block->row + r];
    const double mu = p->mu[(block->row + r) * p->stride];
    friction_row_slopes(slope, coefficient, &block->rows, r, contact->dim, p->s->options->ray_count,
                        program->rays);
    for (int k = 0; k < 2; ++k) {
      const int component = block->rows.row[r].component[k];
      if (coefficient[k] >= 0) {
        out[coefficient[k]] += slope[k] * (lambda * along_z[component] + mu * along_x[component]);
      }
    }
  }
}

static void pull_contact(const pullback *p, int index) {
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
    by_compliance[contact->pair] += w->problem.dual[block->row] * p->mu[block->row * p->stride];
  }
  double *by_size = p->gradient[QD_BY_GEOM_SIZE];
  if (!p->bodies_move && by_size == NULL) {
    return;
  }
  pull_contact_twist(d->pose, NULL, &d->by_z, contact, contact->force);
  pull_contact_twist(d->pose, d->twist, &p->point->delta, contact, m);
  memset(&cotangent, 0, sizeof cotangent);
  add_contact_cotangent(&cotangent, contact->force, contact, &z);
  add_contact_cotangent(&cotangent, m, contact, &x);
  pull_offset(p, block, contact, m[0], &cotangent);
  contact_motion_pull(&on_a, &on_b, by_size != NULL ? sizes : NULL, p->s->model, contact,
                      d->by_pose + index, by_size != NULL ? d->by_size + index : NULL, &cotangent);
  wrench_axpy(d->pose + a, 1.0, &on_a);
  wrench_axpy(d->pose + b, 1.0, &on_b);
  for (int i = 0; by_size != NULL && i < 3; ++i) {
    by_size[3 * contact->geom_a + i] += sizes[i];
    by_size[3 * contact->geom_b + i] += sizes[3 + i];
  }
}

/* ---------------------------------------------------------------- constraints and limits */

static void pull_coupling(const pullback *p, const constraint_state *state, double force,
                          double cotangent, double of_violation) {
  add_to(p, QD_BY_Q, state->dof[0], of_violation);
  if (state->dof[1] >= 0) {
    const int dof = state->dof[1];
    add_to(p, QD_BY_Q, dof,
           -(state->curvature * (force * p->d->z[dof] + cotangent * p->s->delta[dof]) +
             of_violation * state->slope));
  }
}

/* What a step undoes of violations that are capped grows with h. */
static void pull_caps(const pullback *p, const constraint_state *state,
                      const double cotangent[CONSTRAINT_ROWS_MAX]) {
  for (int i = 0; i < state->rows; ++i) {
    if (state->capped[i / 3]) {
      add_to(p, QD_BY_H, 0, cotangent[i] * state->violation[i] / p->s->options->h);
    }
  }
}

static void pull_constraint(const pullback *p, int index, const double *force,
                            const double cotangent[CONSTRAINT_ROWS_MAX]) {
  const constraint_state *state = p->s->w->problem.constraint + index;
  differential *d = p->d;
  double of_violation[3];
  vec3_copy(of_violation, cotangent);
  constraint_cap_change(state, 0, of_violation);
  pull_caps(p, state, cotangent);
  if (state->tendon[0] >= 0) {
    return; /* with its tendons */
  }
  if (state->rows == 1) {
    pull_coupling(p, state, force[0], cotangent[0], of_violation[0]);
    return;
  }
  wrench W[2], M[2];
  constraint_wrenches(W, state, force);
  constraint_wrenches(M, state, cotangent);
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? -1.0 : 1.0;
    const int body = state->body[side];
    double on_anchor[3], part[3], on_turn[3];
    pull_twist(d->pose, &d->by_z, body, 1.0, W + side);
    pull_twist(d->pose, &p->point->delta, body, 1.0, M + side);
    wrench_axpy(d->twist + body, 1.0, M + side);
    vec3_cross(on_anchor, force, d->by_z.body[body].w);
    vec3_cross(part, cotangent, p->point->delta.body[body].w);
    vec3_axpy(on_anchor, 1.0, part);
    vec3_axpy(on_anchor, 1.0, of_violation);
    vec3_scale(on_anchor, on_anchor, sign);
    add_pose_force(d->pose, body, state->anchor[side], on_anchor);
    if (state->rows == 6) {
      constraint_turn_pull(on_turn, state, cotangent + 3, side);
      vec3_axpy(d->pose[body].m, 1.0, on_turn);
    }
  }
}

static void pull_constraints(const pullback *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  while (row < program->equality_count) { /* rows of one constraint stand together */
    const int index = program->equality[row].constraint;
    double cotangent[CONSTRAINT_ROWS_MAX] = {0.0};
    for (; row < program->equality_count && program->equality[row].constraint == index; ++row) {
      cotangent[program->equality[row].component] = p->nu[row * p->stride];
    }
    pull_constraint(p, index, program->constraint_force + QD_CONSTRAINT_FORCE * index, cotangent);
  }
}

/* ---------------------------------------------------------------- actuators */

/* z is the cotangent of an actuator's force that has these slopes, but for its coordinate. */
static void pull_force(const pullback *p, double z, const actuator_slopes *slope, int i) {
  add_to(p, QD_BY_U, i, z * slope->u);
  add_to(p, QD_BY_ACTUATOR_STIFFNESS, i, z * slope->stiffness);
  add_to(p, QD_BY_ACTUATOR_GAIN, i, z * slope->gain);
  add_to(p, QD_BY_ACTUATOR_BIAS, i, z * slope->bias);
  add_to(p, QD_BY_ACTUATOR_DAMPING, i, z * slope->damping);
  add_to(p, QD_BY_H, 0, z * slope->h);
}

static void pull_force_range(const pullback *p, double z, const actuator_part *part, int i) {
  add_to(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i, z * part->by_lower);
  add_to(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i + 1, z * part->by_upper);
}

/* Of what its slopes say, with z that of a force along its coordinate. */
static double actuator_cotangent(const pullback *p, const actuator_part *part, double z) {
  return part->row >= 0 ? part->per_row * p->mu[part->row * p->stride] : z;
}

static actuator_part tendon_part(const pullback *p, const tendon_row *row) {
  return actuator_part_of(&p->s->w->problem, p->s->model, p->s->options, p->s->input, p->s->delta,
                          row->actuator);
}

static double tendon_cotangent(const pullback *p, const tendon_row *row) {
  return tendon_displacement(&p->s->w->problem, p->s->model, row->tendon, p->d->z);
}

/* Parameters of those that pull along tendons. */
static void pull_tendon_actuators(const pullback *p) {
  const problem *program = &p->s->w->problem;
  for (int k = 0; k < program->tendon_row_count; ++k) {
    const tendon_row *row = program->tendon_row + k;
    if (row->kind >= TENDON_ACTUATOR) {
      const actuator_part part = tendon_part(p, row);
      const double z = tendon_cotangent(p, row);
      pull_force(p, actuator_cotangent(p, &part, z), &part.slope, row->actuator);
      pull_force_range(p, z, &part, row->actuator);
    }
  }
}

/* ---------------------------------------------------------------- tendons */

/* The cotangents of length and of rate.delta, and the force along the tendon. */
static void pull_tendon(const pullback *p, int tendon, const double cotangent[2]) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  const tendons *t = &program->tendons;
  const double force = program->tendon_force[tendon];
  differential *d = p->d;
  if (model->tendon_type[tendon] == QD_TENDON_FIXED) {
    for (int i = model->tendon_dof_start[tendon]; i < model->tendon_dof_start[tendon + 1]; ++i) {
      add_to(p, QD_BY_Q, model->tendon_dof[i], cotangent[0] * t->rate[i]);
    }
    return;
  }
  if (model->tendon_type[tendon] == QD_TENDON_THRUST) {
    /* It moves with its body: what its wrench and the body's twists do by that is nothing. */
    wrench W;
    tendon_thrust_wrench(&W, t, model, tendon);
    wrench_axpy(d->twist + model->tendon_object[model->tendon_start[tendon]], cotangent[1], &W);
    return;
  }
  for (int i = model->tendon_start[tendon]; i < model->tendon_start[tendon + 1]; ++i) {
    const int body = model->tendon_object[i];
    double on_point[3];
    wrench W;
    tendon_point_wrench(&W, t, model, i, force);
    pull_twist(d->pose, &d->by_z, body, 1.0, &W);
    tendon_point_wrench(&W, t, model, i, cotangent[1]);
    pull_twist(d->pose, &p->point->delta, body, 1.0, &W);
    wrench_axpy(d->twist + body, 1.0, &W);
    tendon_pull(on_point, t, model, i, force, cotangent, d->by_z.body, p->point->delta.body);
    add_pose_force(d->pose, body, t->point[i].pos, on_point);
  }
}

/* Of a tendon's length, by a row with the cotangent mu. */
static double length_cotangent(const pullback *p, const tendon_row *row, double mu) {
  if (row->kind < TENDON_ACTUATOR) {
    return tendon_row_has_length(row) && !row->capped ? mu : 0.0;
  }
  const actuator_part part = tendon_part(p, row);
  return actuator_cotangent(p, &part, tendon_cotangent(p, row)) * part.slope.l;
}

/* Adds the cotangents of a tendon's length and of rate.delta by its couplings. */
static void pull_coupled_tendon(const pullback *p, int tendon, double cotangent[2]) {
  const problem *program = &p->s->w->problem;
  const qd_model *model = p->s->model;
  for (int i = 0; i < program->equality_count; ++i) {
    const constraint_state *state = program->constraint + program->equality[i].constraint;
    const double nu = p->nu[i * p->stride];
    for (int k = 0; k < 2 && state->tendon[0] >= 0; ++k) {
      if (state->tendon[k] != tendon) {
        continue;
      }
      const double share = constraint_tendon_share(state, k), bend = k ? state->curvature : 0.0;
      cotangent[0] +=
          (state->capped[0] ? 0.0 : nu * share) -
          bend * (nu * tendon_displacement(program, model, tendon, p->s->delta) +
                  program->dual_eq[i] * tendon_displacement(program, model, tendon, p->d->z));
      cotangent[1] += nu * share;
    }
  }
}

static void pull_tendons(const pullback *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  for (int i = 0; i < islands_tendon_count(&program->islands); ++i) {
    const int tendon = program->islands.tendon_order[i];
    double cotangent[2] = {0.0, 0.0};
    if (p->s->model->tendon_is_coupled[tendon]) {
      pull_coupled_tendon(p, tendon, cotangent);
    }
    for (; row < program->tendon_row_count && program->tendon_row[row].tendon == tendon; ++row) {
      const tendon_row *at = program->tendon_row + row;
      const double one = at->sign * p->mu[at->row * p->stride];
      cotangent[0] += length_cotangent(p, at, one);
      cotangent[1] += one;
      if (at->kind == TENDON_DAMPER) { /* it gives way by h over the damping */
        add_to(p, QD_BY_H, 0,
               one * program->dual[at->row] * program->compliance[at->row] / p->s->options->h);
      }
      if (at->capped) { /* the gap does not count, but what a step may undo of it */
        add_to(p, QD_BY_H, 0, -p->s->options->recovery_speed * at->sign * one);
      }
    }
    pull_tendon(p, tendon, cotangent);
  }
}

static void pull_tendon_stiffness(const pullback *p) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->tendon_row_count; ++i) {
    const tendon_row *row = program->tendon_row + i;
    if (row->kind == TENDON_SPRING || row->kind == TENDON_REST) {
      const double k = p->s->model->parameters.tendon_stiffness[row->tendon];
      p->gradient[QD_BY_TENDON_STIFFNESS][row->tendon] -=
          p->mu[row->row * p->stride] * program->dual[row->row] / (k * k);
    }
  }
}

/* ---------------------------------------------------------------- bodies */

/* What a body's mass, centre and inertia do: L = -Z.(I A + T x* I T) + weight.Zg + applied
 * wrench.Z; Z.(T x* I T) = (Z x T).I T. */
static void pull_body_parameters(const pullback *p, int b, const double com[3],
                                 const double *applied) {
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  const double *R = p->s->w->kinematics.body_rot + 9 * b, *g = model->parameters.gravity;
  const double mass = model->parameters.body_mass[b], fall = model->body_fall[b];
  const body_motion *m = &p->point->motion;
  const screw *Z = d->mass_z.body + b, *G = d->gravity_z.body + b;
  double vG[3], on_com[3] = {0.0, 0.0, 0.0}, part[3];
  screw_point_velocity(vG, G, com);
  if (p->gradient[QD_BY_GRAVITY] != NULL) {
    vec3_axpy(p->gradient[QD_BY_GRAVITY], mass * fall, vG);
  }
  add_to(p, QD_BY_BODY_MASS, b, fall * vec3_dot(g, vG));
  vec3_cross(part, g, G->w);
  vec3_axpy(on_com, mass * fall, part);
  inertia_form_pull(p->gradient, on_com, p->s, b, com, Z, m->acceleration.body + b);
  if (p->s->options->dynamic) {
    screw carried;
    screw_bracket(&carried, Z, m->velocity.body + b);
    inertia_form_pull(p->gradient, on_com, p->s, b, com, &carried, m->velocity.body + b);
  }
  if (applied != NULL) {
    vec3_cross(part, applied, d->by_z.body[b].w);
    vec3_axpy(on_com, 1.0, part);
  }
  if (p->gradient[QD_BY_BODY_COM] != NULL) {
    mat3_tmul_vec(p->gradient[QD_BY_BODY_COM] + 3 * b, R, on_com);
  }
}

/* Cotangents of a body's acceleration, Z in its inertia, and of its velocity. */
static void pull_momentum(const pullback *p, int b) {
  differential *d = p->d;
  const spatial_inertia *I = p->s->w->inertia.body + b;
  const screw *Z = d->mass_z.body + b, *T = p->point->motion.velocity.body + b;
  screw carried;
  wrench h, part;
  inertia_momentum(d->momentum_z + b, I, Z);
  if (p->s->options->dynamic) {
    inertia_momentum(&h, I, T);
    screw_bracket(&carried, Z, T);
    inertia_momentum(d->velocity_z + b, I, &carried);
    screw_cross_wrench(&part, Z, &h);
    wrench_axpy(d->velocity_z + b, -1.0, &part);
    screw_cross_wrench(d->carried_z + b, T, d->momentum_z + b);
  }
}

static void pull_body(const pullback *p, int b) {
  const qd_model *model = p->s->model;
  const qd_workspace *w = p->s->w;
  differential *d = p->d;
  const double *applied =
      p->s->input->wrench != NULL ? p->s->input->wrench + APPLIED_WRENCH * b : NULL;
  double com[3], force[3];
  body_com(com, model, &w->kinematics, b);
  pull_body_parameters(p, b, com, applied);
  if (p->gradient[QD_BY_WRENCH] != NULL) {
    double *out = p->gradient[QD_BY_WRENCH] + APPLIED_WRENCH * b;
    screw_point_velocity(out, d->by_z.body + b, com);
    vec3_copy(out + 3, d->by_z.body[b].w);
  }
  if (!p->bodies_move) {
    return;
  }
  wrench W;
  inertia_gravity_wrench(&W, model, &w->inertia, b);
  pull_twist(d->pose, &d->gravity_z, b, 1.0, &W);
  vec3_cross(force, W.f, d->gravity_z.body[b].w);
  add_pose_force(d->pose, b, com, force);
  if (applied != NULL) {
    applied_wrench(&W, model, &w->kinematics, b, applied);
    pull_twist(d->pose, &d->by_z, b, 1.0, &W);
    vec3_cross(force, applied, d->by_z.body[b].w);
    add_pose_force(d->pose, b, com, force);
  }
  pull_momentum(p, b);
}

/* ---------------------------------------------------------------- DOFs */

/* out += sign S_j . (P x* W) */
static double unmoved_power(const screw *S, const screw *P, const wrench *W) {
  wrench turned;
  screw_cross_wrench(&turned, P, W);
  return screw_dot(S, &turned);
}

static void sum_bodies(const pullback *p) {
  differential *d = p->d;
  wrench *const all[] = {d->pose, d->twist, d->momentum_z, d->velocity_z, d->carried_z, d->bounce};
  const int count = p->s->options->dynamic ? 6 : 3;
  for (int i = 0; i < count; ++i) {
    wrench_sum_subtrees(all[i], p->s->model);
  }
}

static void pull_poses(const pullback *p) {
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  for (int j = 0; j < model->nv; ++j) {
    const screw *S = p->s->w->kinematics.dof_screw + j;
    const int b = model->dof_body[j];
    p->gradient[QD_BY_Q][j] +=
        screw_dot(S, d->pose + b) - unmoved_power(S, p->point->delta.unmoved + j, d->twist + b) -
        unmoved_power(S, d->by_z.unmoved + j, p->point->forces + b) -
        unmoved_power(S, d->gravity_z.unmoved + j, p->point->weight + b) +
        unmoved_power(S, p->point->motion.acceleration.unmoved + j, d->momentum_z + b) +
        unmoved_power(S, d->mass_z.unmoved + j, p->point->momentum + b);
  }
}

/* Wrenches of the poses, already summed over all that a mocap body carries. */
static void pull_mocap(const pullback *p) {
  const qd_model *model = p->s->model;
  for (int i = 0; i < model->mocap_count; ++i) {
    const int body = model->mocap_body[i];
    const wrench *W = p->d->pose + body;
    double *out = p->gradient[QD_BY_MOCAP] + 6 * i;
    vec3_copy(out, W->f);
    vec3_cross(out + 3, W->f, p->s->w->kinematics.body_pos + 3 * body);
    vec3_axpy(out + 3, 1.0, W->m);
  }
}

/* Of DOF j: K - T_j x* H, where H is the sum of momentum_z, K of carried_z, over what it carries,
 * T_j the velocity that it does not move. */
static void carried_behind(wrench *out, const pullback *p, int j) {
  const int b = p->s->model->dof_body[j];
  wrench part;
  *out = p->d->carried_z[b];
  screw_cross_wrench(&part, p->point->motion.velocity.unmoved + j, p->d->momentum_z + b);
  wrench_axpy(out, -1.0, &part);
}

/* Of a velocity that bias forces are of: none is where the body coasts. */
static void add_stirred(const pullback *p, int j, double value) {
  add_to(p, QD_BY_V, j, dof_coasts(p->s, j) ? 0.0 : value);
}

/* Where bodies move already: -Z.(I A + T x* I T), whose derivative by what moves everything behind
 * j alike is that of the kinematics alone, with dA/dq_j = S_j x (A - A_j) - (S_j x T_j) x (T - T_j)
 * and dA/dv_j = before_j x S_j + S_j x (T - T_j). */
static void pull_velocities(const pullback *p) {
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  const body_motion *m = &p->point->motion;
  for (int j = 0; j < model->nv; ++j) {
    const screw *S = p->s->w->kinematics.dof_screw + j;
    const int b = model->dof_body[j], joint = model->dof_joint[j];
    screw turned;
    wrench behind;
    carried_behind(&behind, p, j);
    screw_bracket(&turned, S, m->velocity.unmoved + j);
    add_to(p, QD_BY_Q, j,
           unmoved_power(S, m->velocity.unmoved + j, d->velocity_z + b) +
               screw_dot(&turned, &behind) -
               unmoved_power(S, p->s->w->problem.velocity.unmoved + j, d->bounce + b));
    add_to(p, QD_BY_V, j, screw_dot(S, d->bounce + b));
    add_stirred(p, j,
                unmoved_power(S, m->before + j, d->momentum_z + b) -
                    screw_dot(S, d->velocity_z + b) - screw_dot(S, &behind));
    d->by_coasting[j] =
        (screw_dot(S, d->momentum_z + b) + model->parameters.joint_armature[joint] * d->z[j]) /
        p->s->options->h;
  }
  coasting_pull(p->gradient, p->s, d->by_coasting);
}

/* By h, of masses and rotors. */
static void pull_step_length(const pullback *p) {
  const qd_model *model = p->s->model;
  const model_parameters *par = &model->parameters;
  for (int j = 0; j < model->nv; ++j) {
    const screw *S = p->s->w->kinematics.dof_screw + j;
    const int joint = model->dof_joint[j];
    double power = screw_dot(S, p->d->momentum_z + model->dof_body[j]);
    if (p->s->options->dynamic) {
      power += par->joint_armature[joint] * p->d->z[j];
    }
    add_to(p, QD_BY_H, 0, -p->point->mass_by_h[j] * power);
  }
}

/* Rotors: L = -z armature acceleration. */
static void pull_rotors(const pullback *p) {
  for (int j = 0; j < p->s->model->nv; ++j) {
    const int joint = p->s->model->dof_joint[j];
    add_to(p, QD_BY_JOINT_ARMATURE, joint, -p->d->z[j] * p->point->free_delta[j]);
  }
}

/* Springs and dampers of the joints: L = -z k (d + stretch) - z damping rate d. */
static void pull_spring(const pullback *p, int j) {
  const qd_model *model = p->s->model;
  const double *q = p->s->input->q, z = p->d->z[j], delta = p->s->delta[j];
  const int joint = model->dof_joint[j];
  const double stiffness = model->parameters.joint_stiffness[joint];
  if (p->gradient[QD_BY_Q] != NULL && stiffness > 0.0) {
    double row[3];
    int first;
    const int count = joint_stretch_row(model, j, q, row, &first);
    for (int i = 0; i < count; ++i) {
      p->gradient[QD_BY_Q][first + i] -= z * stiffness * row[i];
    }
  }
  if (p->gradient[QD_BY_JOINT_STIFFNESS] != NULL) {
    p->gradient[QD_BY_JOINT_STIFFNESS][joint] -= z * (delta + joint_stretch(model, j, q));
  }
  if (p->gradient[QD_BY_JOINT_SPRINGREF] != NULL && model->dof_q[j] >= 0) {
    p->gradient[QD_BY_JOINT_SPRINGREF][joint] = z * stiffness;
  }
  const double rate = damping_rate(p->s->options);
  add_to(p, QD_BY_JOINT_DAMPING, joint, -z * rate * delta);
  add_to(p, QD_BY_H, 0, z * model->parameters.joint_damping[joint] * rate * rate * delta);
}

static void pull_actuators(const pullback *p, int j) {
  const qd_model *model = p->s->model;
  int count;
  const int *actuator = dof_actuators(model, j, &count);
  for (int k = 0; k < count; ++k) {
    const int i = actuator[k];
    const actuator_part part =
        actuator_part_of(&p->s->w->problem, model, p->s->options, p->s->input, p->s->delta, i);
    const double z = p->d->z[j], own = actuator_cotangent(p, &part, z);
    pull_force(p, own, &part.slope, i);
    add_to(p, QD_BY_Q, j, own * part.slope.l);
    if (part.row >= 0) {
      pull_force(p, z, &part.resistance, i);
    }
    pull_force_range(p, z, &part, i);
  }
}

/* Dry friction, whose limits move with it. */
static void pull_friction_loss(const pullback *p) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->force_row_count; ++i) {
    const force_row *row = program->force_row + i;
    if (row->actuator < 0) {
      const double share = program->by_upper[row->row] - program->by_lower[row->row];
      add_to(p, QD_BY_JOINT_FRICTION, p->s->model->dof_joint[row->dof], p->d->z[row->dof] * share);
    }
  }
}

/* Springs and forces on the joints themselves. */
static void pull_joints(const pullback *p) {
  for (int j = 0; j < p->s->model->nv; ++j) {
    if (p->gradient[QD_BY_TAU] != NULL) {
      p->gradient[QD_BY_TAU][j] = p->d->z[j];
    }
    pull_spring(p, j);
    pull_actuators(p, j);
  }
  pull_friction_loss(p);
  pull_tendon_actuators(p);
}

static void pull_limits(const pullback *p) {
  const problem *program = &p->s->w->problem;
  for (int i = 0; i < program->limit_count; ++i) {
    const limit_row *limit = program->limit + i;
    const double cotangent = p->mu[limit->row * p->stride];
    if (limit->capped) {
      add_to(p, QD_BY_H, 0, -p->s->options->recovery_speed * cotangent);
    } else {
      add_to(p, QD_BY_Q, limit->dof, limit->sign * cotangent);
    }
  }
}

static void pull_ball_limits(const pullback *p) {
  const problem *program = &p->s->w->problem;
  for (int k = 0; k < program->ball_limit_count; ++k) {
    const ball_limit *limit = program->ball_limit + k;
    ball_part part;
    ball_part_compute(&part, program, limit, p->s->delta);
    for (int j = 0; j < 3; ++j) {
      double sum = 0.0;
      for (int r = 0; r < BALL_ROWS; ++r) {
        sum += p->mu[(limit->row + r) * p->stride] * part.rows[3 * r + j];
      }
      for (int i = 0; i < 3; ++i) {
        sum += p->d->z[limit->dof + i] * part.force[3 * i + j];
      }
      add_to(p, QD_BY_Q, limit->dof + j, sum);
    }
    if (limit->capped) {
      add_to(p, QD_BY_H, 0, -p->s->options->recovery_speed * p->mu[limit->row * p->stride]);
    }
  }
}

static int masses_wanted(double *const of[QD_ARGUMENT_COUNT]) {
  return of[QD_BY_BODY_MASS] != NULL || of[QD_BY_BODY_COM] != NULL ||
         of[QD_BY_BODY_INERTIA] != NULL;
}

static void masked_field(const pullback *p, twist_field *out, const double *mask) {
  for (int j = 0; j < p->s->model->nv; ++j) {
    p->d->masked[j] = mask[j] * p->d->z[j];
  }
  twist_field_compute(out, p->s->model, &p->s->w->kinematics, p->d->masked);
}

void pullback_compute(const solved_step *s, const double *mu, const double *nu, int stride,
                      double *const wanted[QD_ARGUMENT_COUNT]) {
  const qd_model *model = s->model;
  differential *d = &s->w->differential;
  double *gradient[QD_ARGUMENT_COUNT];
  memcpy(gradient, wanted, sizeof gradient);
  if (gradient[QD_BY_MOCAP] != NULL && gradient[QD_BY_Q] == NULL) {
    gradient[QD_BY_Q] = d->by_q; /* both come from the same sweep */
  }
  const int bodies_move = gradient[QD_BY_Q] != NULL || gradient[QD_BY_V] != NULL ||
                          gradient[QD_BY_H] != NULL ||
                          (s->options->dynamic && masses_wanted(gradient));
  const pullback p = {s, d, &s->w->point, mu, nu, stride, gradient, bodies_move};
  const size_t bodies = (size_t)model->body_count;
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    if (gradient[i] != NULL) {
      memset(gradient[i], 0, (size_t)qd_argument_size(model, i) * sizeof(double));
    }
  }
  if (bodies_move || gradient[QD_BY_GEOM_SIZE] != NULL) {
    differential_need_poses(s);
  }
  if (gradient[QD_BY_GEOM_SIZE] != NULL) {
    differential_need_sizes(s);
  }
  twist_field_compute(&d->by_z, model, &s->w->kinematics, d->z);
  masked_field(&p, &d->mass_z, p.point->mass_scale);
  masked_field(&p, &d->gravity_z, p.point->falls);
  memset(d->pose, 0, bodies * sizeof(wrench));
  memset(d->twist, 0, bodies * sizeof(wrench));
  memset(d->momentum_z, 0, bodies * sizeof(wrench));
  memset(d->velocity_z, 0, bodies * sizeof(wrench));
  memset(d->carried_z, 0, bodies * sizeof(wrench));
  memset(d->bounce, 0, bodies * sizeof(wrench));
  for (int i = 0; i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      pull_contact(&p, i);
    }
  }
  soft_derivative_pull(s, mu, stride, gradient);
  for (int b = 1; b < model->body_count; ++b) {
    pull_body(&p, b);
  }
  pull_joints(&p);
  if (bodies_move) {
    pull_limits(&p);
    pull_ball_limits(&p);
    pull_constraints(&p);
    pull_tendons(&p);
    sum_bodies(&p);
  }
  if (gradient[QD_BY_Q] != NULL) {
    pull_poses(&p);
  }
  if (gradient[QD_BY_MOCAP] != NULL) {
    pull_mocap(&p);
  }
  if (gradient[QD_BY_TENDON_STIFFNESS] != NULL) {
    pull_tendon_stiffness(&p);
  }
  if (gradient[QD_BY_H] != NULL) {
    pull_step_length(&p);
  }
  if (s->options->dynamic) {
    pull_rotors(&p);
    if (bodies_move) {
      pull_velocities(&p);
    }
  }
}
