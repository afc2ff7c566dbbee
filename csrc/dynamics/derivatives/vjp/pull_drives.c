/* Terms of the gradient from actuators and tendons. */
#include "dynamics/derivatives/vjp/parts.h"

double actuator_cotangent(const pullback *p, const actuator_part *part, double z) {
  return part->row >= 0 ? part->per_row * p->mu[part->row * p->stride] : z;
}

static double tendon_cotangent(const pullback *p, const tendon_row *row) {
  return tendon_displacement(&p->s->w->problem, row->tendon, p->d->z);
}

void pull_tendon_parameters(const pullback *p) {
  const problem *program = &p->s->w->problem;
  for (int k = 0; k < program->count.tendon_rows; ++k) {
    const tendon_row *row = program->tendon_row + k;
    if (row->kind >= TENDON_ACTUATOR) {
      const actuator_part part = tendon_part_of(p->s, row);
      const double z = tendon_cotangent(p, row);
      linear_form own = weighed(p, actuator_cotangent(p, &part, z)), range = weighed(p, z);
      form_tendon_force(&own, &part, row);
      if (row->actuator >= 0) {
        form_force_range(&range, &part, row->actuator);
      }
    } else {
      double by[3];
      linear_form own = weighed(p, p->mu[row->row * p->stride]);
      problem_tendon_change(by, program, row);
      form_tendon_row(&own, p->s, row, by[2]);
    }
  }
}

/* Cotangents of a tendon's length and of rate.x, and the force along it. x: delta, or v if offsets
 * depend on it. */
typedef struct tendon_cotangents {
  double length, rate, force;
  const twist_field *field; /* of x */
  wrench *twist;            /* (nb) cotangents of the bodies' twists in this field */
} tendon_cotangents;

/* Its wrench moves with its point, and with the body to which its direction belongs. */
static void pull_reach(const pullback *p, int tendon, const tendon_cotangents *of) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  const int first = model->tendon.start[tendon];
  const strand_point *point = program->tendons.point + first;
  const int *body = model->tendon.object + first;
  differential *d = p->d;
  double relative[3] = {0.0}, moving[3] = {0.0}, part[3];
  wrench W, slope;
  tendon_reach_wrench(&W, &program->tendons, model, tendon);
  tendon_reach_slope(&slope, &program->tendons, model, tendon);
  for (int side = 0; side < 2; ++side) {
    const double sign = side == 0 ? 1.0 : -1.0, by_z = sign * of->force, by_x = sign * of->rate;
    const screw *z = d->by_z.body + body[side], *x = of->field->body + body[side];
    pull_twist(d->pose, &d->by_z, body[side], by_z, &W);
    pull_twist(d->pose, of->field, body[side], by_x, &W);
    wrench_axpy(of->twist + body[side], by_x, &W);
    wrench_axpy(d->pose + body[side], sign * of->length, &slope);
    vec3_axpy(relative, by_z, z->w);
    vec3_axpy(relative, by_x, x->w);
    screw_add_point_velocity(moving, by_z, z, point->pos);
    screw_add_point_velocity(moving, by_x, x, point->pos);
  }
  vec3_cross(part, point->along, relative);
  add_pose_force(d->pose, body[0], point->pos, part);
  vec3_add_cross(d->pose[body[1]].m, 1.0, point->along, moving);
  if (tendon_reach_turns(model, tendon)) {
    vec3_add_cross(d->pose[body[1]].m, 1.0, point[3].along, relative);
  }
}

/* The positions of arcs on their geometries depend on the points before and after them. */
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

/* Points of a spatial tendon. */
static void pull_strand(const pullback *p, const strand *s, const tendon_cotangents *all) {
  differential *d = p->d;
  const tendon_dual dual = {all->force, all->length, all->rate, d->by_z.body, all->field->body};
  const tendon_dual *of = &dual;
  for (int i = 0; i < s->count; ++i) {
    const int body = s->point[i].body;
    double on_point[3];
    wrench W;
    strand_wrench(&W, s, i, of->force);
    pull_twist(d->pose, &d->by_z, body, 1.0, &W);
    strand_wrench(&W, s, i, of->displacement);
    pull_twist(d->pose, all->field, body, 1.0, &W);
    wrench_axpy(all->twist + body, 1.0, &W);
    strand_pull_back(on_point, s, i, of);
    add_pose_force(d->pose, body, s->point[i].pos, on_point);
    if (s->point[i].wrap >= 0) {
      pull_slide(p, s, i, of);
    }
  }
}

/* A spatial tendon. */
static void pull_in_space(const pullback *p, int tendon, const tendon_cotangents *of) {
  const qd_model *model = p->s->model;
  const tendons *t = &p->s->w->problem.tendons;
  if (model->tendon.type[tendon] == QD_TENDON_THRUST) {
    /* It moves with its body, so the changes of its wrench and of the body's twists cancel. */
    wrench W;
    tendon_thrust_wrench(&W, t, model, tendon);
    wrench_axpy(of->twist + model->tendon.object[model->tendon.start[tendon]], of->rate, &W);
    return;
  }
  if (model->tendon.type[tendon] == QD_TENDON_REACH) {
    pull_reach(p, tendon, of);
    return;
  }
  const strand path = tendon_strand(t, model, tendon);
  pull_strand(p, &path, of);
}

/* Takes the cotangents of length, of rate.delta and of rate.v. */
static void pull_tendon(const pullback *p, int tendon, const double cotangent[3]) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  if (model->tendon.type[tendon] == QD_TENDON_FIXED) {
    for (int i = model->tendon.dof_start[tendon]; i < model->tendon.dof_start[tendon + 1]; ++i) {
      const double rate = program->tendons.rate[i];
      add_gradient(p, QD_BY_Q, model->tendon.dof[i], cotangent[0] * rate);
      add_gradient(p, QD_BY_V, model->tendon.dof[i], cotangent[2] * rate);
    }
    return;
  }
  const tendon_cotangents of = {cotangent[0], cotangent[1], program->solution.tendon_force[tendon],
                                &p->point->delta, p->d->twist};
  pull_in_space(p, tendon, &of);
  if (cotangent[2] != 0.0) {
    const tendon_cotangents late = {0.0, cotangent[2], 0.0, &program->state.velocity, p->d->bounce};
    pull_in_space(p, tendon, &late);
  }
}

/* Adds the cotangents of a tendon's length, rate.delta and rate.v from one of its rows. */
static void pull_tendon_row(const pullback *p, const tendon_row *row, double cotangent[3]) {
  const problem *program = &p->s->w->problem;
  const double mu = p->mu[row->row * p->stride];
  double by[3];
  cotangent[1] += row->sign * mu;
  if (row->kind >= TENDON_ACTUATOR) {
    const actuator_part part = tendon_part_of(p->s, row);
    const double own = actuator_cotangent(p, &part, tendon_cotangent(p, row));
    cotangent[0] += own * part.slope.l;
    cotangent[2] += own * part.slope.speed;
    return;
  }
  problem_tendon_change(by, program, row);
  cotangent[0] += by[0] * mu;
  cotangent[2] += by[1] * mu;
}

/* The same from its couplings. */
static void pull_coupled_tendon(const pullback *p, int tendon, double cotangent[3]) {
  const problem *program = &p->s->w->problem;
  const double z = tendon_displacement(program, tendon, p->d->z);
  tendon_coupling c = {.place = -1};
  while (next_coupling(&c, p->s, tendon)) {
    const double nu = p->nu[c.row * p->stride];
    cotangent[0] += c.law.by_violation * nu * c.share -
                    c.bend * (nu * c.moved + program->solution.dual_eq[c.row] * z);
    cotangent[1] += nu * c.share;
    cotangent[2] += c.law.in_time * nu * c.share;
  }
}

void pull_tendons(const pullback *p) {
  const problem *program = &p->s->w->problem;
  int row = 0;
  for (int i = 0; i < islands_tendon_count(&program->islands); ++i) {
    const int tendon = program->islands.tendon_order[i];
    double cotangent[3] = {0.0, 0.0, 0.0};
    if (p->s->model->tendon.is_coupled[tendon]) {
      pull_coupled_tendon(p, tendon, cotangent);
    }
    for (; row < program->count.tendon_rows && program->tendon_row[row].tendon == tendon; ++row) {
      pull_tendon_row(p, program->tendon_row + row, cotangent);
    }
    pull_tendon(p, tendon, cotangent);
  }
}
