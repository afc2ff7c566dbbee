/* The whole gradient: terms of the DOFs, and the order of all parts. */
#include "dynamics/derivatives/vjp/parts.h"

/* S_j . (P x* W) */
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
    const int b = model->dof.body[j];
    p->gradient[QD_BY_Q][j] +=
        screw_dot(S, d->pose + b) - unmoved_power(S, p->point->delta.unmoved + j, d->twist + b) -
        unmoved_power(S, d->by_z.unmoved + j, p->point->forces + b) -
        unmoved_power(S, d->gravity_z.unmoved + j, p->point->weight + b) +
        unmoved_power(S, p->point->motion.acceleration.unmoved + j, d->momentum_z + b) +
        unmoved_power(S, d->mass_z.unmoved + j, p->point->momentum + b);
  }
}

/* Gradient by mocap poses, from the wrenches already summed over the bodies that a mocap body
 * carries. */
static void pull_mocap(const pullback *p) {
  const qd_model *model = p->s->model;
  for (int i = 0; i < model->mocap_count; ++i) {
    const int body = model->mocap_body[i];
    const wrench *W = p->d->pose + body;
    double *out = p->gradient[QD_BY_MOCAP] + 6 * i, turned[3];
    vec3_axpy(out, 1.0, W->f);
    vec3_cross(turned, W->f, p->s->w->kinematics.body_pos + 3 * body);
    vec3_axpy(out + 3, 1.0, turned);
    vec3_axpy(out + 3, 1.0, W->m);
  }
}

/* For DOF j: K - T_j x* H, where H is the sum of momentum_z, K of carried_z, over the bodies that
 * it carries, and T_j the velocity that it does not move. */
static void carried_behind(wrench *out, const pullback *p, int j) {
  const int b = p->s->model->dof.body[j];
  wrench part;
  *out = p->d->carried_z[b];
  screw_cross_wrench(&part, p->point->motion.velocity.unmoved + j, p->d->momentum_z + b);
  wrench_axpy(out, -1.0, &part);
}

/* Gradient by a velocity in the bias forces, which are zero for coasting trees. */
static void add_stirred(const pullback *p, int j, double value) {
  add_gradient(p, QD_BY_V, j, dof_coasts(p->s, j) ? 0.0 : value);
}

/* Moving bodies: -Z.(I A + T x* I T). Its derivative by a motion of everything behind j is that of
 * the kinematics alone, with dA/dq_j = S_j x (A - A_j) - (S_j x T_j) x (T - T_j) and dA/dv_j =
 * before_j x S_j + S_j x (T - T_j). */
static void pull_velocities(const pullback *p) {
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  const body_motion *m = &p->point->motion;
  for (int j = 0; j < model->nv; ++j) {
    const screw *S = p->s->w->kinematics.dof_screw + j;
    const int b = model->dof.body[j], joint = model->dof.joint[j];
    screw turned;
    wrench behind;
    carried_behind(&behind, p, j);
    screw_bracket(&turned, S, m->velocity.unmoved + j);
    add_gradient(p, QD_BY_Q, j,
                 unmoved_power(S, m->velocity.unmoved + j, d->velocity_z + b) +
                     screw_dot(&turned, &behind) -
                     unmoved_power(S, p->s->w->problem.state.velocity.unmoved + j, d->bounce + b));
    add_gradient(p, QD_BY_V, j, screw_dot(S, d->bounce + b));
    add_stirred(p, j,
                unmoved_power(S, m->before + j, d->momentum_z + b) -
                    screw_dot(S, d->velocity_z + b) - screw_dot(S, &behind));
    d->by_coasting[j] =
        (screw_dot(S, d->momentum_z + b) + model->parameters.joint_armature[joint] * d->z[j]) /
        p->s->options->h;
  }
  coasting_pull(p->gradient, p->s, d->by_coasting);
}

/* Gradient by h from masses and rotors. */
static void pull_step_length(const pullback *p) {
  const qd_model *model = p->s->model;
  const model_parameters *par = &model->parameters;
  for (int j = 0; j < model->nv; ++j) {
    const screw *S = p->s->w->kinematics.dof_screw + j;
    const int joint = model->dof.joint[j];
    double power = screw_dot(S, p->d->momentum_z + model->dof.body[j]);
    if (p->s->options->dynamic) {
      power += par->joint_armature[joint] * p->d->z[j];
    }
    add_gradient(p, QD_BY_H, 0, -p->point->mass_by_h[j] * power);
  }
}

/* Rotors: L = -z armature acceleration. */
static void pull_rotors(const pullback *p) {
  for (int j = 0; j < p->s->model->nv; ++j) {
    const int joint = p->s->model->dof.joint[j];
    add_gradient(p, QD_BY_JOINT_ARMATURE, joint, -p->d->z[j] * p->point->free_delta[j]);
  }
}

static linear_form pull_row(const form_maker *of, int row) {
  const pullback *p = of->context;
  return weighed(p, p->mu[row * p->stride]);
}

static linear_form pull_force(const form_maker *of, int dof) {
  const pullback *p = of->context;
  return weighed(p, p->d->z[dof]);
}

/* Springs, actuators and rows of joints, and forces on them. */
static void pull_joints(const pullback *p) {
  const islands *all = &p->s->w->problem.islands;
  pullback own = *p;
  const form_maker maker = {pull_row, pull_force, &own};
  for (int j = 0; j < p->s->model->nv; ++j) {
    add_gradient(p, QD_BY_TAU, j, p->d->z[j]);
    form_add_drives(&maker, p->s, j);
  }
  for (int i = 0; i < all->count; ++i) {
    form_add_joint_rows(&maker, p->s, all->island + i);
  }
  pull_tendon_parameters(p);
}

static void masked_field(const pullback *p, twist_field *out, const double *mask) {
  for (int j = 0; j < p->s->model->nv; ++j) {
    p->d->masked[j] = mask[j] * p->d->z[j];
  }
  twist_field_compute(out, p->s->model, &p->s->w->kinematics, p->d->masked);
}

/* Twists under z, all of it and the parts on which masses and gravity act; clears the cotangents of
 * bodies. */
static void begin_bodies(const pullback *p) {
  differential *d = p->d;
  const qd_model *model = p->s->model;
  const size_t bytes = (size_t)model->body.count * sizeof(wrench);
  twist_field_compute(&d->by_z, model, &p->s->w->kinematics, d->z);
  masked_field(p, &d->mass_z, p->point->mass_scale);
  masked_field(p, &d->gravity_z, p->point->falls);
  memset(d->pose, 0, bytes);
  memset(d->twist, 0, bytes);
  memset(d->momentum_z, 0, bytes);
  memset(d->velocity_z, 0, bytes);
  memset(d->carried_z, 0, bytes);
  memset(d->bounce, 0, bytes);
}

/* Computes the derivatives of collision that are needed. */
static void need_geometry(const pullback *p) {
  const int sizes = p->gradient[QD_BY_GEOM_SIZE] != NULL;
  if (p->bodies_move || sizes) {
    differential_need_poses(p->s);
  }
  if (sizes) {
    differential_need_sizes(p->s);
  }
}

/* Collects the cotangents of bodies and rows into entries of q, mocap poses, parameters and h. */
static void gather(const pullback *p) {
  if (p->bodies_move) {
    pull_constraints(p);
  }
  if (p->bodies_move || p->gradient[QD_BY_GEOM_SIZE] != NULL) {
    pull_tendons(p);
  }
  if (p->bodies_move) {
    sum_bodies(p);
  }
  if (p->gradient[QD_BY_Q] != NULL) {
    pull_poses(p);
  }
  if (p->gradient[QD_BY_MOCAP] != NULL) {
    pull_mocap(p);
  }
  if (p->gradient[QD_BY_H] != NULL) {
    pull_step_length(p);
  }
  if (p->s->options->dynamic) {
    pull_rotors(p);
    if (p->bodies_move) {
      pull_velocities(p);
    }
  }
}

void pullback_clear(const qd_model *model, double *const gradient[QD_ARGUMENT_COUNT]) {
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    if (gradient[i] != NULL) {
      memset(gradient[i], 0, (size_t)qd_argument_size(model, i) * sizeof(double));
    }
  }
}

void pullback_add(const solved_step *s, const double *mu, const double *nu, int stride,
                  double *const wanted[QD_ARGUMENT_COUNT]) {
  differential *d = &s->w->differential;
  const step_point *point = s->point != NULL ? s->point : &s->w->point;
  double *gradient[QD_ARGUMENT_COUNT];
  memcpy(gradient, wanted, sizeof gradient);
  if (gradient[QD_BY_MOCAP] != NULL && gradient[QD_BY_Q] == NULL) {
    gradient[QD_BY_Q] = d->by_q; /* both come from the same sweep */
    memset(d->by_q, 0, (size_t)s->model->nv * sizeof *d->by_q);
  }
  const linear_form all = {.gradient = gradient};
  const int bodies_move = gradient[QD_BY_Q] != NULL || gradient[QD_BY_V] != NULL ||
                          gradient[QD_BY_H] != NULL ||
                          (s->options->dynamic && form_knows_masses(&all));
  const pullback p = {s, d, point, mu, nu, stride, gradient, bodies_move};
  need_geometry(&p);
  begin_bodies(&p);
  for (int i = 0; i < s->w->collision.count; ++i) {
    if (d->counts[i]) {
      pull_contact(&p, i);
    }
  }
  pressure_derivative_pull(s, mu, stride, gradient);
  for (int b = 1; b < s->model->body.count; ++b) {
    pull_body(&p, b);
  }
  pull_joints(&p);
  gather(&p);
}
