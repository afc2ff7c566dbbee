/* Limited forces along DOFs: dry friction of joints, and actuators with force limits. Each has a
 * row, whose multiplier is the force; the rows of an island are one cone. */
#include "base/rounding.h"
#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"
#include "mechanics/actuator.h"

/* ---------------------------------------------------------------- clamped forces */

int problem_clamps_force(const qd_model *model, const qd_step_options *o, int actuator) {
  return o->force_limits && contacts_yield_in_time(o) && actuator_is_bounded(model, actuator);
}

clamped_force problem_clamped_force(const problem *p, int actuator) {
  const actuator_point at = actuator_point_at(p, actuator);
  return actuator_force_clamped(p->model, actuator, &at, actuator_speed(p, actuator));
}

actuator_slopes problem_clamped_slopes(const problem *p, int actuator, double d) {
  const actuator_point at = actuator_point_at(p, actuator);
  return actuator_slopes_clamped(p->model, actuator, &at, actuator_speed(p, actuator), d);
}

/* ---------------------------------------------------------------- rows */

/* A joint at its limit resists by its inertia, within these shares of the actuator's stiffness.
 * With a tenth of the smaller share, bodies that nothing else holds move ten times as far in a
 * step; closer to 1 than the larger share, the row with the rest of the stiffness loses digits. */
#define RESISTANCE_LEAST 1e-3
#define RESISTANCE_MOST 0.5

static void add_force_row(problem *p, island *one, const force_row *row, double gap, double lower,
                          double upper) {
  tile_rows_append_entry(&one->G, column_of(p, one, row->dof), 1.0);
  p->program.g[p->count.rows] = gap;
  p->program.compliance[p->count.rows] = row->stiffness > 0.0 ? 1.0 / row->stiffness : 0.0;
  p->program.lower[p->count.rows] = lower;
  p->program.upper[p->count.rows] = upper;
  one->compliant += row->stiffness > 0.0;
  ++one->intervals;
  if (row->actuator >= 0) {
    p->row_of_actuator[row->actuator] = p->count.force_rows;
  }
  p->force_row[p->count.force_rows] = *row;
  p->force_row[p->count.force_rows++].row = p->count.rows++;
  ++one->row_count;
  ++one->force_row_count;
}

/* MuJoCo's law of a DOF's dry friction. */
static mujoco_reference friction_law(const qd_model *model, int dof, double weight) {
  return mujoco_friction_of(model->joint.friction_solver + 8 * model->dof.joint[dof], weight);
}

static void yield_at_friction(problem *p, island *one, force_row *row) {
  mujoco_reference of = friction_law(p->model, row->dof, p->model->dof.invweight[row->dof]);
  if ((of.kind & QD_REFERENCE_IMPLICIT) && p->model->dof.q[row->dof] >= 0) {
    of.weight *= metric_share_of_dof(p, one, column_of(p, one, row->dof));
  }
  row->weight = of.weight;
  yield_row(p, one, row->row, &of, 0.0, p->state.v[row->dof]);
}

void problem_friction_change(double change[3], const problem *p, const force_row *row) {
  change[0] = change[1] = change[2] = 0.0;
  if (row->weight > 0.0) {
    const mujoco_reference of = friction_law(p->model, row->dof, row->weight);
    mujoco_row_change(change, &of, 0.0, p->options->h, p->state.v[row->dof],
                      p->solution.dual[row->row]);
    change[0] = 0.0;
  }
}

/* d = 0, with a limited force */
static void add_friction(problem *p, island *one, int dof) {
  const double most = p->model->parameters.joint_friction[p->model->dof.joint[dof]];
  const force_row row = {.dof = dof, .actuator = -1};
  if (!(most > 0.0) || (contacts_yield_in_time(p->options) && dof_turns(p->model, dof))) {
    return; /* none, or about an axis of the body (turn_rows.c) */
  }
  add_force_row(p, one, &row, 0.0, -most, most);
  if (contacts_yield_in_time(p->options)) {
    yield_at_friction(p, one, p->force_row + p->count.force_rows - 1);
  }
}

/* F0 - K d = F between the limits: d - F0 / K + F / K = 0 */
static void add_actuators(problem *p, island *one, int dof) {
  const int_list actuators = dof_actuators(p->model, dof);
  for (int k = 0; k < actuators.count; ++k) {
    const double *range = p->model->parameters.actuator_force_range + 2 * actuators.at[k];
    const actuator_force force = problem_actuator_force(p, actuators.at[k]);
    if (actuator_has_row(p, actuators.at[k], &force)) {
      const force_row row = {.dof = dof, .actuator = actuators.at[k], .stiffness = force.stiffness};
      add_force_row(p, one, &row, -force.at_rest / force.stiffness, range[0], range[1]);
    }
  }
}

void force_rows_assemble(problem *p, island *one) {
  one->force_row = p->count.force_rows;
  for (int i = 0; p->model->bounded_forces > 0 && i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (dof >= 0) {
      add_friction(p, one, dof);
      add_actuators(p, one, dof);
    }
  }
  if (one->force_row_count > 0) {
    add_cone(p, one, QD_INTERVAL, one->force_row_count, barrier_target(p->options, 1));
  }
}

/* F0 - (K - m) d = F between the limits, with m d in the cost: between the limits the force on the
 * joint is still F0 - K d, and at a limit its inertia remains. */
static void resist(const problem *p, double by_inertia, const island *one, force_row *row) {
  const double K = row->stiffness;
  row->resistance = by_inertia * p->model->actuator.inertia[row->actuator];
  if (!(row->resistance > RESISTANCE_LEAST * K && row->resistance < RESISTANCE_MOST * K)) {
    row->by_stiffness = row->resistance < RESISTANCE_MOST * K ? RESISTANCE_LEAST : RESISTANCE_MOST;
    row->resistance = row->by_stiffness * K;
  }
  row->stiffness -= row->resistance;
  p->program.g[row->row] *= K / row->stiffness;
  p->program.compliance[row->row] = 1.0 / row->stiffness;
  const int column = column_of(p, one, row->dof);
  *cost_entry(one, column, column) += row->resistance;
}

static int may_resist(const qd_model *model, const qd_step_options *o, const force_row *row) {
  return !o->dynamic && row->actuator >= 0 && actuator_shares_inertia(model, row->actuator);
}

int problem_may_resist(const problem *p) {
  int any = 0;
  for (int i = 0; i < p->count.force_rows && !any; ++i) {
    any = may_resist(p->model, p->options, p->force_row + i);
  }
  return any;
}

int problem_resist(const problem *p, const island *one) {
  int count = 0;
  for (int i = one->force_row; i < one->force_row + one->force_row_count; ++i) {
    force_row *row = p->force_row + i;
    if (may_resist(p->model, p->options, row)) {
      resist(p, p->loads.epsilon[row->dof] / (p->options->h * p->options->h), one, row);
      ++count;
    }
  }
  return count;
}

/* Whether a force is at a limit, to the accuracy of a solution. */
static int is_at(double force, double limit) {
  return isfinite(limit) && fabs(force - limit) <= CALLERS_ROUNDING * fabs(limit);
}

/* For actuators without a row. */
static void clamp_forces(const qd_model *model, const qd_step_options *o, double *force,
                         double *at_limit) {
  for (int i = 0; i < model->nu; ++i) {
    if (problem_clamps_force(model, o, i)) {
      continue;
    }
    const double *range = model->parameters.actuator_force_range + 2 * i;
    at_limit[i] = force[i] <= range[0] || force[i] >= range[1];
    force[i] = actuator_clamp(model, i, force[i]);
  }
}

static void row_force(const problem *p, int row, double *force, double *at_limit) {
  *force = p->solution.dual[row];
  *at_limit = is_at(*force, p->program.lower[row]) || is_at(*force, p->program.upper[row]);
}

/* For actuators with a row. If a joint's inertia replaces a part of its stiffness, the row's
 * multiplier is not the force of the actuator; its law gives the force. */
static void row_forces(const problem *p, double *force, double *at_limit) {
  for (int i = 0; i < p->count.force_rows; ++i) {
    const force_row *row = p->force_row + i;
    if (row->actuator >= 0 && row->resistance == 0.0) {
      row_force(p, row->row, force + row->actuator, at_limit + row->actuator);
    }
  }
  for (int i = 0; i < p->count.tendon_rows; ++i) {
    const tendon_row *row = p->tendon_row + i;
    if (row->kind == TENDON_ACTUATOR) {
      row_force(p, row->row, force + row->actuator, at_limit + row->actuator);
    }
  }
}

void problem_actuator_forces(const problem *p, const double *delta, double *force) {
  const qd_model *model = p->model;
  double *at_limit = force + model->nu;
  for (int i = 0; i < model->nu; ++i) {
    const int tendon = model->actuator.tendon[i];
    const actuator_force found = problem_actuator_force(p, i);
    const double moved =
        tendon >= 0 ? tendon_displacement(p, tendon, delta) : delta[model->actuator.dof[i]];
    force[i] = found.at_rest - found.stiffness * moved;
    at_limit[i] =
        problem_clamps_force(model, p->options, i) && problem_clamped_force(p, i).side != 0;
  }
  if (p->options->force_limits && model->bounded_forces > 0) {
    clamp_forces(model, p->options, force, at_limit);
  }
  row_forces(p, force, at_limit);
}
