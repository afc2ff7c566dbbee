/* Changes of actuators and tendons along the direction. */
#include "dynamics/derivatives/jvp/parts.h"

double force_change(const pushforward *p, const actuator_slopes *slope, int i, double dl) {
  return slope->l * dl + slope->u * tangent_at(p, QD_BY_U, i) +
         slope->stiffness * tangent_at(p, QD_BY_ACTUATOR_STIFFNESS, i) +
         slope->gain * tangent_at(p, QD_BY_ACTUATOR_GAIN, i) +
         slope->bias * tangent_at(p, QD_BY_ACTUATOR_BIAS, i) +
         slope->damping * tangent_at(p, QD_BY_ACTUATOR_DAMPING, i) +
         slope->h * tangent_at(p, QD_BY_H, 0);
}

double limit_change(const pushforward *p, const actuator_part *part, int i) {
  return part->by_lower * tangent_at(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i) +
         part->by_upper * tangent_at(p, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i + 1);
}

/* Of length and rate.delta, which never changes. */
static void push_fixed_tendon(double change[2], const pushforward *p, int tendon) {
  const qd_model *model = p->s->model;
  double sum = 0.0;
  for (int d = model->tendon_dof_start[tendon]; d < model->tendon_dof_start[tendon + 1]; ++d) {
    sum += p->s->w->problem.tendons.slope[d] * tangent_at(p, QD_BY_Q, model->tendon_dof[d]);
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

void push_tendon_forces(const pushforward *p, double *r) {
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

void push_tendons(const pushforward *p) {
  const problem *program = &p->s->w->problem;
  const qd_model *model = p->s->model;
  const differential *d = p->d;
  const tendon_direction along = {p->point->delta.body, d->body_motion, d->d_delta,
                                  p->tangent[QD_BY_GEOM_SIZE]};
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
                  &along);
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
