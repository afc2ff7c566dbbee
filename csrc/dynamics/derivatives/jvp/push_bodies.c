/* Motion of bodies and axes along the direction, and the changes at each body. */
#include "dynamics/derivatives/jvp/parts.h"

/* Adds the twist of a mocap body whose pose moves along the tangent. */
static void add_mocap_motion(screw *motion, const pushforward *p, int body) {
  const double *tangent = p->tangent[QD_BY_MOCAP] + 6 * p->s->model->body.mocap[body];
  double part[3];
  vec3_axpy(motion->w, 1.0, tangent + 3);
  vec3_cross(part, p->s->w->kinematics.body_pos + 3 * body, tangent + 3);
  vec3_axpy(motion->v, 1.0, tangent);
  vec3_axpy(motion->v, 1.0, part);
}

double mass_rate(const pushforward *p, int j) {
  const double by_h = tangent_at(p, QD_BY_H, 0) * p->point->mass_by_h[j];
  return p->s->options->dynamic ? by_h - p->d->d_coasting[j] / p->s->options->h : by_h;
}

/* Adds the changes of body b's velocity and acceleration due to DOF j, whose axis rotates with the
 * body before it; the velocity of that changes by d_before (body_motion). */
static void move_in_time(const pushforward *p, int b, int j, const screw *d_before) {
  differential *d = p->d;
  const screw *S = p->s->w->kinematics.dof_screw + j, *dS = d->axis_motion + j;
  const screw *before = p->point->motion.before + j;
  const problem *program = &p->s->w->problem;
  const double v = program->state.stirred[j];
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
  screw_axpy(d->d_velocity + b, program->state.v[j], dS);
  screw_axpy(d->d_velocity + b, tangent_at(p, QD_BY_V, j), S);
}

void move_bodies(const pushforward *p) {
  static const screw still = {{0.0, 0.0, 0.0}, {0.0, 0.0, 0.0}};
  const qd_model *model = p->s->model;
  differential *d = p->d;
  d->body_motion[0] = d->d_delta[0] = d->d_mass_delta[0] = d->d_velocity[0] = d->d_stirred[0] =
      still;
  for (int b = 1; b < model->body.count; ++b) {
    const int parent = model->body.parent[b];
    screw motion = d->body_motion[parent];
    if (p->tangent[QD_BY_MOCAP] != NULL && model->body.mocap[b] >= 0) {
      add_mocap_motion(&motion, p, b);
    }
    screw before = motion, d_before = d->d_stirred[parent];
    d->d_delta[b] = d->d_delta[parent];
    d->d_mass_delta[b] = d->d_mass_delta[parent];
    d->d_velocity[b] = d->d_velocity[parent];
    d->d_stirred[b] = d->d_stirred[parent];
    const int first = model->body.joint_start[b], end = model->body.joint_start[b + 1];
    const int dof_end =
        end > first ? model->joint.v[end - 1] + joint_v_count(model->joint.type[end - 1]) : 0;
    for (int j = end > first ? model->joint.v[first] : 0; j < dof_end; ++j) {
      const screw *S = p->s->w->kinematics.dof_screw + j;
      if (j == model->dof.block_start[j]) {
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

/* out += dI T along the tangents of masses, component by component. */
static void push_inertia(wrench *out, const pushforward *p, int b, const double com[3],
                         const screw *T) {
  for (int i = 0; i < 6; ++i) {
    linear_form f = along(p);
    screw Z = {{i == 0, i == 1, i == 2}, {i == 3, i == 4, i == 5}};
    double on_com[3] = {0.0, 0.0, 0.0};
    if (!form_knows_masses(&f)) {
      return;
    }
    form_inertia(&f, on_com, p->s, b, com, &Z, T);
    form_com(&f, p->s, b, on_com);
    *(i < 3 ? out->m + i : out->f + i - 3) -= f.change;
  }
}

/* Terms of the change of body b's velocity: T x* I T moves with the body, and changes with dT in
 * the body's frame, and with dI. */
static void push_velocity(const pushforward *p, int b, const double com[3]) {
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
  push_inertia(&part, p, b, com, T);
  screw_cross_wrench(&moved, T, &part);
  wrench_axpy(out, 1.0, &moved);
}

/* The change of the wrench that the inertia of body b requires. */
static void push_momentum(const pushforward *p, int b, const double com[3]) {
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
  push_inertia(out, p, b, com, T);
  if (p->s->options->dynamic) {
    push_velocity(p, b, com);
  }
}

void push_body(const pushforward *p, int b) {
  static const double none[6] = {0.0};
  const qd_model *model = p->s->model;
  differential *d = p->d;
  const double *g = model->parameters.gravity;
  const double *applied = p->s->input->wrench != NULL ? p->s->input->wrench + QD_WRENCH * b : none;
  const double *d_applied =
      p->tangent[QD_BY_WRENCH] != NULL ? p->tangent[QD_BY_WRENCH] + QD_WRENCH * b : none;
  double com[3], d_com[3], moved[3], part[3], force[3], d_gravity[3];
  wrench W;
  body_com(com, model, &p->s->w->kinematics, b);
  tangent_vec3(part, p, QD_BY_BODY_COM, b);
  mat3_mul_vec(d_com, p->s->w->kinematics.body_rot + 9 * b, part);
  push_momentum(p, b, com);
  screw_point_velocity(moved, d->body_motion + b, com);
  vec3_axpy(moved, 1.0, d_com);
  const double fall = model->body.fall[b], weight = fall * model->parameters.body_mass[b];
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
