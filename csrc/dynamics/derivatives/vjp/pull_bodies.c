/* Terms of the gradient from the mass, the velocity and the wrench of each body. */
#include "dynamics/derivatives/vjp/parts.h"

/* Gradient by a body's mass, centre and inertia: L = -Z.(I A + T x* I T) + weight.Zg + applied
 * wrench.Z; Z.(T x* I T) = (Z x T).I T. */
static void pull_body_parameters(const pullback *p, int b, const double com[3],
                                 const double *applied) {
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  const double *g = model->parameters.gravity;
  const double mass = model->parameters.body_mass[b], fall = model->body.fall[b];
  const body_motion *m = &p->point->motion;
  const screw *Z = d->mass_z.body + b, *G = d->gravity_z.body + b;
  double vG[3], on_com[3] = {0.0, 0.0, 0.0};
  screw_point_velocity(vG, G, com);
  if (p->gradient[QD_BY_GRAVITY] != NULL) {
    vec3_axpy(p->gradient[QD_BY_GRAVITY], mass * fall, vG);
  }
  linear_form f = weighed(p, 1.0);
  form_add(&f, QD_BY_BODY_MASS, b, fall * vec3_dot(g, vG));
  vec3_add_cross(on_com, mass * fall, g, G->w);
  form_inertia(&f, on_com, p->s, b, com, Z, m->acceleration.body + b);
  if (p->s->options->dynamic) {
    screw carried;
    screw_bracket(&carried, Z, m->velocity.body + b);
    form_inertia(&f, on_com, p->s, b, com, &carried, m->velocity.body + b);
  }
  if (applied != NULL) {
    vec3_add_cross(on_com, 1.0, applied, d->by_z.body[b].w);
  }
  form_com(&f, p->s, b, on_com);
}

/* Cotangents of a body's acceleration, in its inertia, and of its velocity. */
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

void pull_body(const pullback *p, int b) {
  const qd_model *model = p->s->model;
  const qd_workspace *w = p->s->w;
  differential *d = p->d;
  const double *applied = p->s->input->wrench != NULL ? p->s->input->wrench + QD_WRENCH * b : NULL;
  double com[3], force[3];
  body_com(com, model, &w->kinematics, b);
  pull_body_parameters(p, b, com, applied);
  if (p->gradient[QD_BY_WRENCH] != NULL) {
    double *out = p->gradient[QD_BY_WRENCH] + QD_WRENCH * b;
    screw_point_velocity(force, d->by_z.body + b, com);
    vec3_axpy(out, 1.0, force);
    vec3_axpy(out + 3, 1.0, d->by_z.body[b].w);
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
