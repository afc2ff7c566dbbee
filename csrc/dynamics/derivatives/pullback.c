/* The gradient of L (differential.h) by everything that a step depends on: one sweep over contacts,
 * constraints and bodies, then one over DOFs.
 *
 * A wrench F that is the cotangent of a body's twist T (dL = F.dT) gives, as dT/dq_j = S_j x (T -
 * P_j), S_j . (T x* F - P_j x* F); what depends on the body's pose gives S_j . U with U the wrench
 * whose power is the change. Both are summed over all that j carries. */
#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/workspace.h"
#include "mechanics/actuator.h"
#include "mechanics/applied.h"

typedef struct pullback {
  const solved_step *s;
  differential *d;
  const step_point *point;
  const double *mu, *nu;
  int stride;
  double *const *gradient;
} pullback;

/* sign F is the cotangent of a body's twist in the field. */
static void pull_twist(wrench *pose, const twist_field *field, int body, double sign,
                       const wrench *F) {
  wrench turned;
  screw_cross_wrench(&turned, field->body + body, F);
  wrench_axpy(pose + body, sign, &turned);
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

/* Cotangents of the contact's point and axes: of f.w(z) + m.w(d), m[0] of the distance. */
static void contact_cotangent(contact_motion *out, const double f[MOTION_MAX],
                              const double m[MOTION_MAX], const qd_contact *contact,
                              const relative_motion *z, const relative_motion *x) {
  double force[3], moment[3], part[3];
  contact_world_force(force, moment, contact, f);
  vec3_cross(out->pos, force, z->twist.w);
  contact_world_force(force, moment, contact, m);
  vec3_cross(part, force, x->twist.w);
  vec3_axpy(out->pos, 1.0, part);
  out->dist = m[0];
  for (int axis = 0; axis < 3; ++axis) {
    double *frame = out->frame + 3 * axis;
    vec3_scale(frame, z->velocity, f[axis]);
    vec3_axpy(frame, m[axis], x->velocity);
    vec3_axpy(frame, f[3 + axis], z->twist.w);
    vec3_axpy(frame, m[3 + axis], x->twist.w);
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
  double m[MOTION_MAX] = {0.0}, force[3], moment[3], sizes[6];
  relative_motion z, x;
  contact_motion cotangent;
  wrench W, on_a, on_b;
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
  if (p->gradient[QD_BY_Q] == NULL && by_size == NULL) {
    return;
  }
  contact_world_force(force, moment, contact, contact->force);
  wrench_at(&W, contact->pos, force, moment);
  pull_twist(d->pose, &d->by_z, b, 1.0, &W);
  pull_twist(d->pose, &d->by_z, a, -1.0, &W);
  contact_world_force(force, moment, contact, m);
  wrench_at(&W, contact->pos, force, moment);
  wrench_axpy(d->twist + b, 1.0, &W);
  wrench_axpy(d->twist + a, -1.0, &W);
  pull_twist(d->pose, &p->point->delta, b, 1.0, &W);
  pull_twist(d->pose, &p->point->delta, a, -1.0, &W);
  contact_cotangent(&cotangent, contact->force, m, contact, &z, &x);
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
                          double cotangent) {
  double *by_q = p->gradient[QD_BY_Q];
  by_q[state->dof[0]] += cotangent;
  if (state->dof[1] >= 0) {
    const int dof = state->dof[1];
    by_q[dof] -= state->curvature * (force * p->d->z[dof] + cotangent * p->s->delta[dof]) +
                 cotangent * state->slope;
  }
}

static void pull_constraint(const pullback *p, int index, const double *force,
                            const double cotangent[CONSTRAINT_ROWS_MAX]) {
  const constraint_state *state = p->s->w->problem.constraint + index;
  differential *d = p->d;
  if (state->rows == 1) {
    pull_coupling(p, state, force[0], cotangent[0]);
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
    vec3_axpy(on_anchor, 1.0, cotangent);
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
      p->gradient[QD_BY_Q][model->tendon_dof[i]] += cotangent[0] * t->rate[i];
    }
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

static void pull_tendons(const pullback *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  while (row < program->tendon_row_count) { /* rows of one tendon stand together */
    const int tendon = program->tendon_row[row].tendon;
    double cotangent[2] = {0.0, 0.0};
    for (; row < program->tendon_row_count && program->tendon_row[row].tendon == tendon; ++row) {
      const tendon_row *at = program->tendon_row + row;
      const double one = at->sign * p->mu[at->row * p->stride];
      cotangent[0] += at->kind == TENDON_FRICTION ? 0.0 : one;
      cotangent[1] += one;
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

/* What a body's mass, centre and inertia do: L = -Z.I T + weight.Zg + applied wrench.Z. */
static void pull_body_parameters(const pullback *p, int b, const double com[3],
                                 const double *applied) {
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  const double *R = p->s->w->kinematics.body_rot + 9 * b, *g = model->parameters.gravity;
  const double mass = model->parameters.body_mass[b], fall = model->body_fall[b];
  const screw *T = p->point->mass_delta.body + b, *Z = d->mass_z.body + b,
              *G = d->gravity_z.body + b;
  double vT[3], vZ[3], vG[3], on_com[3], part[3];
  screw_point_velocity(vT, T, com);
  screw_point_velocity(vZ, Z, com);
  screw_point_velocity(vG, G, com);
  if (p->gradient[QD_BY_GRAVITY] != NULL) {
    vec3_axpy(p->gradient[QD_BY_GRAVITY], mass * fall, vG);
  }
  if (p->gradient[QD_BY_BODY_MASS] != NULL) {
    p->gradient[QD_BY_BODY_MASS][b] = fall * vec3_dot(g, vG) - vec3_dot(vZ, vT);
  }
  if (p->gradient[QD_BY_BODY_COM] != NULL) {
    vec3_cross(on_com, g, G->w);
    vec3_scale(on_com, on_com, fall);
    vec3_cross(part, vT, Z->w);
    vec3_axpy(on_com, -1.0, part);
    vec3_cross(part, vZ, T->w);
    vec3_axpy(on_com, -1.0, part);
    vec3_scale(on_com, on_com, mass);
    if (applied != NULL) {
      vec3_cross(part, applied, d->by_z.body[b].w);
      vec3_axpy(on_com, 1.0, part);
    }
    mat3_tmul_vec(p->gradient[QD_BY_BODY_COM] + 3 * b, R, on_com);
  }
  if (p->gradient[QD_BY_BODY_INERTIA] != NULL) {
    mat3_tmul_vec(vZ, R, Z->w);
    mat3_tmul_vec(vT, R, T->w);
    for (int i = 0; i < 9; ++i) {
      p->gradient[QD_BY_BODY_INERTIA][9 * b + i] =
          -0.5 * (vZ[i / 3] * vT[i % 3] + vT[i / 3] * vZ[i % 3]);
    }
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
  if (p->gradient[QD_BY_Q] == NULL) {
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
  inertia_momentum(d->momentum_z + b, w->inertia.body + b, d->mass_z.body + b);
}

/* ---------------------------------------------------------------- DOFs */

/* out += sign S_j . (P x* W) */
static double unmoved_power(const screw *S, const screw *P, const wrench *W) {
  wrench turned;
  screw_cross_wrench(&turned, P, W);
  return screw_dot(S, &turned);
}

static void pull_poses(const pullback *p) {
  const qd_model *model = p->s->model;
  differential *d = p->d;
  wrench_sum_subtrees(d->pose, model);
  wrench_sum_subtrees(d->twist, model);
  wrench_sum_subtrees(d->momentum_z, model);
  for (int j = 0; j < model->nv; ++j) {
    const screw *S = p->s->w->kinematics.dof_screw + j;
    const int b = model->dof_body[j];
    p->gradient[QD_BY_Q][j] +=
        screw_dot(S, d->pose + b) - unmoved_power(S, p->point->delta.unmoved + j, d->twist + b) -
        unmoved_power(S, d->by_z.unmoved + j, p->point->forces + b) -
        unmoved_power(S, d->gravity_z.unmoved + j, p->point->weight + b) +
        unmoved_power(S, p->point->mass_delta.unmoved + j, d->momentum_z + b) +
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
  if (p->gradient[QD_BY_JOINT_DAMPING] != NULL) {
    p->gradient[QD_BY_JOINT_DAMPING][joint] -= z * damping_rate(p->s->options) * delta;
  }
}

static void add_to(const pullback *p, int argument, int at, double value) {
  if (p->gradient[argument] != NULL) {
    p->gradient[argument][at] += value;
  }
}

static void pull_actuators(const pullback *p, int j) {
  const qd_model *model = p->s->model;
  const qd_step_input *input = p->s->input;
  const double z = p->d->z[j];
  int count;
  const int *actuator = dof_actuators(model, j, &count);
  for (int k = 0; k < count; ++k) {
    const int i = actuator[k];
    const actuator_point at = {input->q[model->dof_q[j]], input->u[i], damping_rate(p->s->options)};
    const actuator_slopes slope = actuator_slopes_at(model, i, &at, p->s->delta[j]);
    add_to(p, QD_BY_Q, j, z * slope.l);
    add_to(p, QD_BY_U, i, z * slope.u);
    add_to(p, QD_BY_ACTUATOR_STIFFNESS, i, z * slope.stiffness);
    add_to(p, QD_BY_ACTUATOR_GAIN, i, z * slope.gain);
    add_to(p, QD_BY_ACTUATOR_BIAS, i, z * slope.bias);
    add_to(p, QD_BY_ACTUATOR_DAMPING, i, z * slope.damping);
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
  const problem *program = &s->w->problem;
  differential *d = &s->w->differential;
  double *gradient[QD_ARGUMENT_COUNT];
  memcpy(gradient, wanted, sizeof gradient);
  if (gradient[QD_BY_MOCAP] != NULL && gradient[QD_BY_Q] == NULL) {
    gradient[QD_BY_Q] = d->by_q; /* both come from the same sweep */
  }
  const pullback p = {s, d, &s->w->point, mu, nu, stride, gradient};
  const size_t bodies = (size_t)model->body_count;
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    if (gradient[i] != NULL) {
      memset(gradient[i], 0, (size_t)qd_argument_size(model, i) * sizeof(double));
    }
  }
  if (gradient[QD_BY_Q] != NULL || gradient[QD_BY_GEOM_SIZE] != NULL) {
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
  for (int i = 0; i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      pull_contact(&p, i);
    }
  }
  for (int b = 1; b < model->body_count; ++b) {
    pull_body(&p, b);
  }
  pull_joints(&p);
  if (gradient[QD_BY_Q] != NULL) {
    for (int i = 0; i < program->limit_count; ++i) {
      gradient[QD_BY_Q][program->limit[i].dof] +=
          program->limit[i].sign * mu[program->limit[i].row * stride];
    }
    pull_constraints(&p);
    pull_tendons(&p);
    pull_poses(&p);
  }
  if (gradient[QD_BY_MOCAP] != NULL) {
    pull_mocap(&p);
  }
  if (gradient[QD_BY_TENDON_STIFFNESS] != NULL) {
    pull_tendon_stiffness(&p);
  }
}
