#include "dynamics/derivatives/actuator_part.h"

/* Of an actuator with a row: w = d - F0 / K + F / K is zero between the limits; where it is not, K
 * acts on what is left of d. */
static actuator_part part_of_row(const problem *p, const qd_model *model, const actuator_point *at,
                                 double d, int actuator) {
  const force_row *row = p->force_row + p->row_of_actuator[actuator];
  const actuator_part part = {
      .slope = actuator_slopes_at(model, actuator, at, d - p->slack[row->row]),
      .row = row->row,
      .per_row = -1.0 / row->stiffness,
      .by_lower = p->by_lower[row->row],
      .by_upper = p->by_upper[row->row],
  };
  return part;
}

actuator_part actuator_part_of(const problem *p, const qd_model *model,
                               const qd_step_options *options, const qd_step_input *input,
                               const double *delta, int actuator) {
  const int dof = model->actuator_dof[actuator];
  const double *range = model->parameters.actuator_force_range + 2 * actuator;
  const actuator_point at = {input->q[model->dof_q[dof]], input->u[actuator],
                             damping_rate(options)};
  if (p->row_of_actuator[actuator] >= 0) {
    return part_of_row(p, model, &at, delta[dof], actuator);
  }
  actuator_part part = {.row = -1};
  const double force = actuator_force_at(model, actuator, &at).at_rest;
  const int limits = options->force_limits && actuator_is_bounded(model, actuator);
  if (limits && force <= range[0]) {
    part.by_lower = 1.0;
  } else if (limits && force >= range[1]) {
    part.by_upper = 1.0;
  } else {
    part.slope = actuator_slopes_at(model, actuator, &at, delta[dof]);
  }
  return part;
}
