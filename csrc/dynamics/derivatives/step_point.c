#include "dynamics/derivatives/step_point.h"

#include <math.h>
#include <string.h>

#include "dynamics/workspace.h"
#include "mechanics/applied.h"

void step_point_lay_out(step_point *point, const qd_model *model, arena *a) {
  const size_t nb = (size_t)model->body.count, nv = (size_t)model->nv;
  twist_field_lay_out(&point->delta, model, a);
  body_motion_lay_out(&point->motion, model, a);
  ARENA_DOUBLES(a, nv, &point->mass_by_h, &point->free_delta, &point->mass_scale, &point->falls);
  point->forces = arena_take(a, nb * sizeof(wrench));
  point->momentum = arena_take(a, nb * sizeof(wrench));
  point->weight = arena_take(a, nb * sizeof(wrench));
}

void contact_world_force(double force[3], double moment[3], const qd_contact *contact,
                         const double frame_force[MOTION_MAX]) {
  vec3_set(force, 0.0, 0.0, 0.0);
  vec3_set(moment, 0.0, 0.0, 0.0);
  for (int axis = 0; axis < 3; ++axis) {
    vec3_axpy(force, frame_force[axis], contact->frame + 3 * axis);
    vec3_axpy(moment, frame_force[3 + axis], contact->frame + 3 * axis);
  }
}

/* Wrenches of contacts, constraints and the caller, summed over subtrees. */
static void compute_forces(wrench *forces, const solved_step *s) {
  const qd_workspace *w = s->w;
  memset(forces, 0, (size_t)s->model->body.count * sizeof(wrench));
  for (int i = 0; i < w->collision.count; ++i) {
    const qd_contact *contact = w->collision.contact + i;
    double force[3], moment[3];
    wrench W;
    contact_world_force(force, moment, contact, contact->force);
    wrench_at(&W, contact->pos, force, moment);
    wrench_axpy(forces + contact->body_b, 1.0, &W);
    wrench_axpy(forces + contact->body_a, -1.0, &W);
  }
  for (int i = 0; i < s->model->constraint.count; ++i) {
    const constraint_state *state = w->problem.constraint + i;
    wrench W[CONSTRAINT_BODIES];
    constraint_wrenches(W, state, w->problem.solution.constraint_force + QD_CONSTRAINT_FORCE * i);
    for (int side = 0; side < CONSTRAINT_BODIES && state->rows > 1; ++side) {
      wrench_axpy(forces + state->body[side], 1.0, W + side);
    }
  }
  for (int i = 0; i < s->model->tendon.count; ++i) {
    if (w->problem.solution.tendon_force[i] != 0.0) {
      tendon_add_wrenches(forces, &w->problem.tendons, s->model, i,
                          w->problem.solution.tendon_force[i]);
    }
  }
  for (int b = 1; s->input->wrench != NULL && b < s->model->body.count; ++b) {
    wrench W;
    applied_wrench(&W, s->model, &w->kinematics, b, s->input->wrench + QD_WRENCH * b);
    wrench_axpy(forces + b, 1.0, &W);
  }
  pressure_derivative_forces(forces, s);
  wrench_sum_subtrees(forces, s->model);
}

/* Displacements (or accelerations) of DOFs with mass. */
static void compute_masses(step_point *point, const solved_step *s) {
  const qd_model *model = s->model;
  problem *p = &s->w->problem;
  const double h = s->options->h;
  point->mass_counts = 0;
  for (int j = 0; j < model->nv; ++j) {
    const int has_mass = dof_has_mass(model, s->options, j);
    const int actuated = model->dof.is_driven[j];
    point->mass_scale[j] = has_mass ? p->loads.epsilon[j] / (h * h) : 0.0;
    point->free_delta[j] = has_mass ? s->delta[j] : 0.0;
    point->mass_by_h[j] = -2.0 * point->free_delta[j] / h;
    point->falls[j] = !actuated || s->options->gravity_on_actuated ? 1.0 : 0.0;
    if (s->options->dynamic) {
      point->mass_scale[j] = 1.0;
      point->free_delta[j] = (s->delta[j] / h - p->state.coasting[j]) / h;
      point->mass_by_h[j] = (p->state.coasting[j] - 2.0 * s->delta[j] / h) / (h * h);
    }
    point->mass_counts |= point->mass_scale[j] * fabs(point->free_delta[j]) > 0.0;
  }
}

/* Motion of the bodies with the masses, and the wrenches that their inertia requires. */
static void compute_inertial(step_point *point, const solved_step *s) {
  const qd_model *model = s->model;
  const qd_workspace *w = s->w;
  body_motion *m = &point->motion;
  memset(point->momentum, 0, sizeof(wrench));
  if (!s->options->dynamic) {
    twist_field_compute(&m->acceleration, model, &w->kinematics, point->free_delta);
    for (int b = 1; b < model->body.count; ++b) {
      inertia_momentum(point->momentum + b, w->inertia.body + b, m->acceleration.body + b);
    }
  } else {
    body_motion_compute(m, model, &w->kinematics, w->problem.state.stirred, point->free_delta);
    for (int b = 1; b < model->body.count; ++b) {
      inertial_wrench(point->momentum + b, w->inertia.body + b, m->velocity.body + b,
                      m->acceleration.body + b);
    }
  }
  wrench_sum_subtrees(point->momentum, model);
}

void step_point_compute(step_point *point, const solved_step *s) {
  const qd_model *model = s->model;
  const qd_workspace *w = s->w;
  compute_masses(point, s);
  tendons_differentiate(&w->problem.tendons, model);
  twist_field_compute(&point->delta, model, &w->kinematics, s->delta);
  compute_inertial(point, s);
  memset(point->weight, 0, sizeof(wrench));
  for (int b = 1; b < model->body.count; ++b) {
    inertia_gravity_wrench(point->weight + b, model, &w->inertia, b);
  }
  wrench_sum_subtrees(point->weight, model);
  compute_forces(point->forces, s);
}
