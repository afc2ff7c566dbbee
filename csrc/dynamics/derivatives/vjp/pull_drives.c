/* What the gradient takes from actuators and tendons. */
#include "dynamics/derivatives/vjp/parts.h"

void pull_force(const pullback *p, double z, const actuator_slopes *slope, int i) {
  add_gradient(p, QD_BY_U, i, z * slope->u);
  add_gradient(p, QD_BY_ACTUATOR_STIFFNESS, i, z * slope->stiffness);
  add_gradient(p, QD_BY_ACTUATOR_GAIN, i, z * slope->gain);
  add_gradient(p, QD_BY_ACTUATOR_BIAS, i, z * slope->bias);
  add_gradient(p, QD_BY_ACTUATOR_DAMPING, i, z * slope->damping);
  add_gradient(p, QD_BY_H, 0, z * slope->h);
}

void pull_force_range(const pullback *p, double z, const actuator_part *part, int i) {
  add_gradient(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i, z * part->by_lower);
  add_gradient(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i + 1, z * part->by_upper);
}

double actuator_cotangent(const pullback *p, const actuator_part *part, double z) {
  return part->row >= 0 ? part->per_row * p->mu[part->row * p->stride] : z;
}

static actuator_part tendon_part(const pullback *p, const tendon_row *row) {
  return actuator_part_of(&p->s->w->problem, p->s->model, p->s->options, p->s->input, p->s->delta,
                          row->actuator);
}

static double tendon_cotangent(const pullback *p, const tendon_row *row) {
  return tendon_displacement(&p->s->w->problem, p->s->model, row->tendon, p->d->z);
}

void pull_tendon_actuators(const pullback *p) {
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

/* Its wrench goes with its point, and with the body that its direction belongs to. */
static void pull_reach(const pullback *p, int tendon, const double cotangent[2]) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  const double force = program->tendon_force[tendon];
  const int first = model->tendon_start[tendon];
  const strand_point *point = program->tendons.point + first;
  const int *body = model->tendon_object + first;
  differential *d = p->d;
  double relative[3] = {0.0}, moving[3] = {0.0}, part[3];
  wrench W, slope;
  tendon_reach_wrench(&W, &program->tendons, model, tendon);
  tendon_reach_slope(&slope, &program->tendons, model, tendon);
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0, by_z = sign * force, by_delta = sign * cotangent[1];
    const screw *z = d->by_z.body + body[side], *delta = p->point->delta.body + body[side];
    pull_twist(d->pose, &d->by_z, body[side], by_z, &W);
    pull_twist(d->pose, &p->point->delta, body[side], by_delta, &W);
    wrench_axpy(d->twist + body[side], by_delta, &W);
    wrench_axpy(d->pose + body[side], sign * cotangent[0], &slope);
    vec3_axpy(relative, by_z, z->w);
    vec3_axpy(relative, by_delta, delta->w);
    screw_point_velocity(part, z, point->pos);
    vec3_axpy(moving, by_z, part);
    screw_point_velocity(part, delta, point->pos);
    vec3_axpy(moving, by_delta, part);
  }
  vec3_cross(part, point->along, relative);
  add_pose_force(d->pose, body[0], point->pos, part);
  vec3_cross(part, point->along, moving);
  vec3_axpy(d->pose[body[1]].m, 1.0, part);
  if (tendon_reach_turns(model, tendon)) {
    vec3_cross(part, point[3].along, relative);
    vec3_axpy(d->pose[body[1]].m, 1.0, part);
  }
}

/* Where arcs lie on their geometries goes with the points before and behind them. */
static void pull_slide(const pullback *p, const strand *s, int i, const tendon_dual *of) {
  static const int ENDS[2] = {-1, 2};
  const strand_point *here = s->point + i;
  double on_end[2][3];
  const double by_radius = strand_pull_slide(on_end, s, i, of);
  add_gradient(p, QD_BY_GEOM_SIZE, 3 * s->wrap[here->wrap].geom, by_radius);
  for (int e = 0; e < 2; ++e) {
    const strand_point *end = here + ENDS[e];
    add_pose_force(p->d->pose, end->body, end->pos, on_end[e]);
    vec3_scale(on_end[e], on_end[e], -1.0);
    add_pose_force(p->d->pose, here->body, end->pos, on_end[e]);
  }
}

/* Of the points of a spatial tendon. */
static void pull_strand(const pullback *p, const strand *s, const tendon_dual *of) {
  differential *d = p->d;
  for (int i = 0; i < s->count; ++i) {
    const int body = s->point[i].body;
    double on_point[3];
    wrench W;
    strand_wrench(&W, s, i, of->force);
    pull_twist(d->pose, &d->by_z, body, 1.0, &W);
    strand_wrench(&W, s, i, of->displacement);
    pull_twist(d->pose, &p->point->delta, body, 1.0, &W);
    wrench_axpy(d->twist + body, 1.0, &W);
    strand_pull_back(on_point, s, i, of);
    add_pose_force(d->pose, body, s->point[i].pos, on_point);
    if (s->point[i].wrap >= 0) {
      pull_slide(p, s, i, of);
    }
  }
}

/* The cotangents of length and of rate.delta, and the force along the tendon. */
static void pull_tendon(const pullback *p, int tendon, const double cotangent[2]) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  const tendons *t = &program->tendons;
  differential *d = p->d;
  if (model->tendon_type[tendon] == QD_TENDON_FIXED) {
    for (int i = model->tendon_dof_start[tendon]; i < model->tendon_dof_start[tendon + 1]; ++i) {
      add_gradient(p, QD_BY_Q, model->tendon_dof[i], cotangent[0] * t->rate[i]);
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
  if (model->tendon_type[tendon] == QD_TENDON_REACH) {
    pull_reach(p, tendon, cotangent);
    return;
  }
  const tendon_dual of = {program->tendon_force[tendon], cotangent[0], cotangent[1], d->by_z.body,
                          p->point->delta.body};
  const strand path = tendon_strand(t, model, tendon);
  pull_strand(p, &path, &of);
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

void pull_tendons(const pullback *p) {
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
        add_gradient(p, QD_BY_H, 0,
                     one * program->dual[at->row] * program->compliance[at->row] /
                         p->s->options->h);
      }
      if (at->capped) { /* the gap does not count, but what a step may undo of it */
        add_gradient(p, QD_BY_H, 0, -p->s->options->recovery_speed * at->sign * one);
      }
    }
    pull_tendon(p, tendon, cotangent);
  }
}

void pull_tendon_stiffness(const pullback *p) {
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
