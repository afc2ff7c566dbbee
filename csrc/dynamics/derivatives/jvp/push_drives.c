/* Changes of actuators and tendons along the direction. */
#include "dynamics/derivatives/jvp/parts.h"
#include "dynamics/problem/yield.h"

/* Changes of length, rate.delta and rate.v of a tendon with a constant rate. */
static void push_fixed_tendon(double change[3], const pushforward *p, int tendon) {
  const qd_model *model = p->s->model;
  change[0] = change[1] = change[2] = 0.0;
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    const double slope = p->s->w->problem.tendons.slope[d];
    change[0] += slope * tangent_at(p, QD_BY_Q, model->tendon.dof[d]);
    change[2] += slope * tangent_at(p, QD_BY_V, model->tendon.dof[d]);
  }
}

/* The same for a spatial tendon, from its points; rate.v only if offsets depend on it. */
static void push_spatial_tendon(double change[3], const pushforward *p, int tendon) {
  const problem *program = &p->s->w->problem;
  const differential *d = p->d;
  const double *d_size = p->tangent[QD_BY_GEOM_SIZE];
  const tendon_direction along = {p->point->delta.body, d->body_motion, d->d_delta, d_size};
  tendon_push(change, d->pose, &program->tendons, p->s->model, tendon,
              program->solution.tendon_force[tendon], &along);
  change[2] = 0.0;
  if (contacts_yield_in_time(p->s->options)) {
    const tendon_direction late = {program->state.velocity.body, d->body_motion, d->d_velocity,
                                   d_size};
    double twice[2];
    tendon_push(twice, d->pose, &program->tendons, p->s->model, tendon, 0.0, &late);
    change[2] = twice[1];
  }
}

/* Its row, and the change of a force that is not in a row. */
static void push_tendon_force(const pushforward *p, const tendon_row *row, const double change[3]) {
  const actuator_part part = tendon_part_of(p->s, row);
  const int has_row = part.row >= 0;
  linear_form own = along(p), range = along(p);
  form_tendon_force(&own, &part, row);
  const double by_coordinate = part.slope.l * change[0] + part.slope.speed * change[2] + own.change;
  if (row->actuator >= 0) {
    form_force_range(&range, &part, row->actuator);
  }
  p->w[row->row * p->stride] = change[1] + (has_row ? part.per_row * by_coordinate : 0.0);
  p->d->tendon_change[row->tendon] += range.change + (has_row ? 0.0 : by_coordinate);
}

void push_tendon_forces(const pushforward *p, double *r) {
  const qd_model *model = p->s->model;
  const problem *program = &p->s->w->problem;
  for (int t = 0; t < model->tendon.count; ++t) {
    for (int d = model->tendon.dof_start[t]; d < model->tendon.dof_start[t + 1]; ++d) {
      const int variable = program->variable_of_dof[model->tendon.dof[d]];
      if (variable >= 0) {
        r[variable * p->stride] -= p->d->tendon_change[t] * program->tendons.rate[d];
      }
    }
  }
}

/* Effect of the changes of length, rate.delta and rate.v on a tendon's couplings. */
static void push_coupled_tendon(const pushforward *p, int tendon, const double change[3]) {
  tendon_coupling c = {.place = -1};
  while (next_coupling(&c, p->s, tendon)) {
    p->e[c.row * p->stride] +=
        c.share * (c.law.by_violation * change[0] + change[1] + c.law.in_time * change[2]) -
        c.bend * c.moved * change[0];
    p->d->tendon_change[tendon] -= c.bend * p->s->w->problem.solution.dual_eq[c.row] * change[0];
  }
}

void push_tendons(const pushforward *p) {
  const problem *program = &p->s->w->problem;
  const qd_model *model = p->s->model;
  int row = 0;
  memset(p->d->tendon_change, 0, (size_t)model->tendon.count * sizeof(double));
  for (int i = 0; i < islands_tendon_count(&program->islands); ++i) {
    const int tendon = program->islands.tendon_order[i];
    double change[3];
    if (model->tendon.type[tendon] == QD_TENDON_FIXED) {
      push_fixed_tendon(change, p, tendon);
    } else {
      push_spatial_tendon(change, p, tendon);
    }
    if (model->tendon.is_coupled[tendon]) {
      push_coupled_tendon(p, tendon, change);
    }
    for (; row < program->count.tendon_rows && program->tendon_row[row].tendon == tendon; ++row) {
      const tendon_row *at = program->tendon_row + row;
      double by[3];
      if (at->kind >= TENDON_ACTUATOR) {
        push_tendon_force(p, at, change);
        continue;
      }
      linear_form own = along(p);
      problem_tendon_change(by, program, at);
      form_tendon_row(&own, p->s, at, by[2]);
      p->w[at->row * p->stride] =
          by[0] * change[0] + at->sign * change[1] + by[1] * change[2] + own.change;
    }
  }
}
