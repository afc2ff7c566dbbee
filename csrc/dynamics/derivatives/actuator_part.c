#include "dynamics/derivatives/step_point.h"
#include "dynamics/workspace.h"

/* For an actuator with a row: w = d - F0 / (K - m) + F / (K - m) is zero between the limits; at a
 * limit, K - m acts on the rest of d. The cost contains m d; m is a share of K, or an inertia over
 * h^2. */
static actuator_part part_of_row(const problem *p, const actuator_point *at, double h, double d,
                                 int actuator) {
  const force_row *row = p->force_row + p->row_of_actuator[actuator];
  const double left = d - p->solution.slack[row->row], share = row->by_stiffness;
  const actuator_slopes at_rest = actuator_slopes_at(p->model, actuator, at, 0.0);
  actuator_part part = {
      .slope = actuator_slopes_at(p->model, actuator, at, (1.0 - share) * left),
      .row = row->row,
      .per_row = -1.0 / row->stiffness,
      .resistance = actuator_slopes_at(p->model, actuator, at, share * d),
      .by_lower = p->program.by_lower[row->row],
      .by_upper = p->program.by_upper[row->row],
  };
  actuator_slopes_subtract(&part.resistance, &at_rest);
  if (share == 0.0) {
    part.slope.h = -2.0 * row->resistance / h * left;
    part.resistance.h = 2.0 * row->resistance / h * d;
  }
  return part;
}

/* For an actuator of a tendon: the same without resistance. */
static actuator_part part_of_tendon(const problem *p, const actuator_point *at, const double *delta,
                                    int actuator) {
  const tendon_row *row = p->tendon_row + p->row_of_actuator[actuator];
  const double d = tendon_displacement(p, row->tendon, delta);
  const actuator_part part = {
      .slope = actuator_slopes_at(p->model, actuator, at, d - p->solution.slack[row->row]),
      .row = row->row,
      .per_row = -p->program.compliance[row->row],
      .by_lower = p->program.by_lower[row->row],
      .by_upper = p->program.by_upper[row->row],
  };
  return part;
}

/* For an actuator without a row, whose force is clamped. */
static actuator_part part_of_force(const qd_model *model, const qd_step_options *options,
                                   const actuator_point *at, double d, int actuator) {
  const double *range = model->parameters.actuator_force_range + 2 * actuator;
  actuator_part part = {.row = -1};
  const double force = actuator_force_at(model, actuator, at).at_rest;
  const int limits = options->force_limits && actuator_is_bounded(model, actuator);
  if (limits && force <= range[0]) {
    part.by_lower = 1.0;
  } else if (limits && force >= range[1]) {
    part.by_upper = 1.0;
  } else {
    part.slope = actuator_slopes_at(model, actuator, at, d);
  }
  return part;
}

/* For an actuator whose force MuJoCo's law clamps at the beginning of the step. */
static actuator_part part_of_clamped(const solved_step *s, double d, int actuator) {
  const problem *p = &s->w->problem;
  const int side = problem_clamped_force(p, actuator).side;
  return (actuator_part){
      .slope = problem_clamped_slopes(p, actuator, d),
      .row = -1,
      .by_lower = side < 0,
      .by_upper = side > 0,
  };
}

static actuator_part part_of(const solved_step *s, int actuator) {
  const problem *p = &s->w->problem;
  const qd_model *model = s->model;
  const actuator_point at = actuator_point_at(p, actuator);
  const int row = p->row_of_actuator[actuator], dof = model->actuator.dof[actuator];
  if (dof < 0 && p->tendon_row[row].kind == TENDON_ACTUATOR) {
    return part_of_tendon(p, &at, s->delta, actuator);
  }
  const double d = dof < 0 ? 0.0 : s->delta[dof];
  if (problem_clamps_force(model, s->options, actuator)) {
    return part_of_clamped(s, d, actuator);
  }
  return dof >= 0 && row >= 0 ? part_of_row(p, &at, s->options->h, d, actuator)
                              : part_of_force(model, s->options, &at, d, actuator);
}

actuator_part actuator_part_of(const solved_step *s, int actuator) {
  actuator_part part = part_of(s, actuator);
  if (actuator_command(s->model, s->options, s->input, actuator) != s->input->u[actuator]) {
    part.slope.u = part.resistance.u = 0.0;
  }
  return part;
}

/* Springs and dampers that act early. */
static actuator_part part_of_tendon_itself(const problem *p, int tendon) {
  const double *rest = p->model->tendon.rest + 2 * tendon, length = p->tendons.length[tendon];
  const double off = length < rest[0] ? length - rest[0] : fmax(0.0, length - rest[1]);
  const int slack = rest[0] < rest[1] && length >= rest[0] && length <= rest[1];
  return (actuator_part){
      .slope = {.l = slack ? 0.0 : -p->model->parameters.tendon_stiffness[tendon],
                .speed = -p->model->tendon.damping[tendon],
                .stiffness = -off},
      .row = -1,
  };
}

actuator_part tendon_part_of(const solved_step *s, const tendon_row *row) {
  return row->actuator < 0 ? part_of_tendon_itself(&s->w->problem, row->tendon)
                           : actuator_part_of(s, row->actuator);
}
