/* Single rows and forces as linear forms of a step's arguments: the same entries forwards and
 * backwards. */
#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/workspace.h"
#include "mechanics/retraction.h"

/* A row along one DOF: derivatives by its q, its v and h. */
static void add_along_dof(linear_form f, const double change[3], int dof) {
  form_add(&f, QD_BY_Q, dof, change[0]);
  form_add(&f, QD_BY_V, dof, change[1]);
  form_add(&f, QD_BY_H, 0, change[2]);
}

void form_actuator(linear_form *f, const actuator_slopes *slope, int i) {
  form_add(f, QD_BY_U, i, slope->u);
  form_add(f, QD_BY_ACTUATOR_STIFFNESS, i, slope->stiffness);
  form_add(f, QD_BY_ACTUATOR_GAIN, i, slope->gain);
  form_add(f, QD_BY_ACTUATOR_BIAS, i, slope->bias);
  form_add(f, QD_BY_ACTUATOR_DAMPING, i, slope->damping);
  form_add(f, QD_BY_H, 0, slope->h);
}

void form_tendon_force(linear_form *f, const actuator_part *part, const tendon_row *row) {
  if (row->actuator >= 0) {
    form_actuator(f, &part->slope, row->actuator);
  } else {
    form_add(f, QD_BY_TENDON_STIFFNESS, row->tendon, part->slope.stiffness);
  }
}

void form_force_range(linear_form *f, const actuator_part *part, int i) {
  form_add(f, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i, part->by_lower);
  form_add(f, QD_BY_ACTUATOR_FORCE_RANGE, 2 * i + 1, part->by_upper);
}

/* The force of DOF j's spring and damper, towards rest. */
static void add_spring(linear_form *f, const solved_step *s, int j) {
  const qd_model *model = s->model;
  const int joint = model->dof.joint[j];
  const double stiffness = model->parameters.joint_stiffness[joint], delta = s->delta[j];
  const int early = springs_act_early(model, s->options);
  const double rate = early ? 0.0 : damping_rate(s->options), moved = early ? 0.0 : delta;
  double row[3];
  int first, count = stiffness > 0.0 ? joint_stretch_row(model, j, s->input->q, row, &first) : 0;
  for (int i = 0; i < count; ++i) {
    form_add(f, QD_BY_Q, first + i, stiffness * row[i]);
  }
  form_add(f, QD_BY_JOINT_SPRINGREF, joint, model->dof.q[j] >= 0 ? -stiffness : 0.0);
  if (form_knows(f, QD_BY_JOINT_STIFFNESS)) {
    form_add(f, QD_BY_JOINT_STIFFNESS, joint, moved + joint_stretch(model, j, s->input->q));
  }
  if (early) {
    form_add(f, QD_BY_V, j, model->parameters.joint_damping[joint]);
  }
  form_add(f, QD_BY_JOINT_DAMPING, joint, early ? s->w->problem.state.v[j] : rate * delta);
  form_add(f, QD_BY_H, 0, -model->parameters.joint_damping[joint] * rate * rate * delta);
}

/* An actuator: its force, or its row and what resists in the cost. */
static void add_actuator(const form_maker *of, const solved_step *s, int j, int actuator) {
  const actuator_part part = actuator_part_of(s, actuator);
  linear_form own = part.row >= 0 ? of->row(of, part.row) : of->force(of, j);
  linear_form rest = of->force(of, j);
  own.weight *= part.row >= 0 ? part.per_row : 1.0;
  form_add(&own, QD_BY_Q, j, part.slope.l);
  form_add(&own, QD_BY_V, j, part.slope.speed);
  form_actuator(&own, &part.slope, actuator);
  if (part.row >= 0) {
    form_actuator(&rest, &part.resistance, actuator);
  }
  form_force_range(&rest, &part, actuator);
}

void form_add_drives(const form_maker *of, const solved_step *s, int dof) {
  const int_list actuators = dof_actuators(s->model, dof);
  linear_form spring = of->force(of, dof);
  spring.weight = -spring.weight;
  add_spring(&spring, s, dof);
  for (int k = 0; k < actuators.count; ++k) {
    add_actuator(of, s, dof, actuators.at[k]);
  }
}

/* Share of the limits' motion that the load of a row of dry friction follows. */
static double friction_share(const problem *p, int row) {
  return p->program.by_upper[row] - p->program.by_lower[row];
}

/* Dry friction, whose force follows its limits. */
static void add_friction(const form_maker *of, const solved_step *s, const force_row *row) {
  const problem *p = &s->w->problem;
  linear_form force = of->force(of, row->dof);
  double change[3];
  problem_friction_change(change, p, row);
  add_along_dof(of->row(of, row->row), change, row->dof);
  form_add(&force, QD_BY_JOINT_FRICTION, s->model->dof.joint[row->dof],
           friction_share(p, row->row));
}

static void add_turn_row(const form_maker *of, const solved_step *s, const turn_row *row) {
  const problem *p = &s->w->problem;
  linear_form f = of->row(of, row->row);
  turn_change change;
  problem_turn_change(&change, p, row, s->delta);
  form_add(&f, QD_BY_H, 0, change.by_h);
  for (int i = 0; i < 3; ++i) {
    linear_form force = of->force(of, row->dof + i);
    form_add(&f, QD_BY_Q, row->dof + i, change.by_q[i]);
    form_add(&f, QD_BY_V, row->dof + i, change.by_v[i]);
    for (int j = 0; j < 3; ++j) {
      form_add(&force, QD_BY_Q, row->dof + j, change.force[3 * i + j]);
    }
    if (!row->is_limit) {
      form_add(&force, QD_BY_JOINT_FRICTION, row->joint,
               friction_share(p, row->row) * row->axis[i]);
    }
  }
}

static void add_ball_limit(const form_maker *of, const solved_step *s, const ball_limit *limit) {
  ball_part part;
  ball_part_compute(&part, &s->w->problem, limit, s->delta);
  for (int i = 0; i < BALL_ROWS + 3; ++i) {
    const int is_row = i < BALL_ROWS;
    linear_form f =
        is_row ? of->row(of, limit->row + i) : of->force(of, limit->dof + i - BALL_ROWS);
    const double *entry = is_row ? part.rows + 3 * i : part.force + 3 * (i - BALL_ROWS);
    form_add(&f, QD_BY_H, 0, i == 0 && limit->capped ? -s->options->recovery_speed : 0.0);
    for (int j = 0; j < 3; ++j) {
      form_add(&f, QD_BY_Q, limit->dof + j, entry[j]);
    }
  }
}

void form_add_joint_rows(const form_maker *of, const solved_step *s, const island *one) {
  const problem *p = &s->w->problem;
  for (int i = one->limit; i < one->limit + one->limit_count; ++i) {
    double change[3];
    problem_limit_change(change, p, p->limit + i);
    add_along_dof(of->row(of, p->limit[i].row), change, p->limit[i].dof);
  }
  for (int i = one->force_row; i < one->force_row + one->force_row_count; ++i) {
    if (p->force_row[i].actuator < 0) {
      add_friction(of, s, p->force_row + i);
    }
  }
  for (int i = one->ball_limit; i < one->ball_limit + one->ball_limit_count; ++i) {
    add_ball_limit(of, s, p->ball_limit + i);
  }
  for (int i = one->turn_row; i < one->turn_row + one->turn_row_count; ++i) {
    add_turn_row(of, s, p->turn_row + i);
  }
}

void form_drift(linear_form f[CONSTRAINT_ROWS_MAX], const solved_step *s,
                const constraint_state *state) {
  const qd_workspace *w = s->w;
  double by_q[CONSTRAINT_ROWS_MAX], by_v[CONSTRAINT_ROWS_MAX];
  constraint_walk walk = {0, 0};
  for (int j; (j = constraint_next_dof(&walk, state, s->model)) >= 0;) {
    constraint_drift_derivative(by_q, by_v, state, s->model, &w->kinematics,
                                &w->problem.state.drift, j);
    for (int i = 0; i < state->rows; ++i) {
      form_add(f + i, QD_BY_Q, j, by_q[i]);
      form_add(f + i, QD_BY_V, j, by_v[i]);
    }
  }
}

void form_coupling(linear_form *f, const solved_step *s, int row) {
  const problem *p = &s->w->problem;
  const constraint_state *state = p->constraint + p->equality[row].constraint;
  const coupling_change law = problem_coupling_change(p, row);
  form_add(f, QD_BY_H, 0, law.by_h);
  for (int side = 0; side < 2; ++side) {
    const int dof = state->dof[side];
    if (dof >= 0) {
      const double share = side == 0 ? 1.0 : -state->slope;
      const double bend = side == 0 ? 0.0 : state->curvature;
      const double late = law.in_time != 0.0 ? law.in_time * p->state.v[dof] : 0.0;
      form_add(f, QD_BY_Q, dof, share * law.by_violation - bend * (s->delta[dof] + late));
      form_add(f, QD_BY_V, dof, share * law.in_time);
    }
  }
}

void form_tendon_row(linear_form *f, const solved_step *s, const tendon_row *row, double by_h) {
  const problem *p = &s->w->problem;
  form_add(f, QD_BY_H, 0, by_h);
  if (row->kind == TENDON_DAMPER) { /* its compliance is h over the damping */
    form_add(f, QD_BY_H, 0,
             p->solution.dual[row->row] * p->program.compliance[row->row] / s->options->h);
  }
  if (row->kind == TENDON_SPRING || row->kind == TENDON_REST) {
    const double k = s->model->parameters.tendon_stiffness[row->tendon];
    form_add(f, QD_BY_TENDON_STIFFNESS, row->tendon, -p->solution.dual[row->row] / (k * k));
  }
}

int next_coupling(tendon_coupling *c, const solved_step *s, int tendon) {
  const problem *p = &s->w->problem;
  for (++c->place; c->place < 2 * p->count.equalities; ++c->place) {
    const int side = c->place % 2;
    const constraint_state *state = p->constraint + p->equality[c->place / 2].constraint;
    if (state->tendon[0] < 0 || state->tendon[side] != tendon) {
      continue;
    }
    c->row = c->place / 2;
    c->share = constraint_tendon_share(state, side);
    c->bend = side ? state->curvature : 0.0;
    c->law = problem_coupling_change(p, c->row);
    c->moved = tendon_displacement(p, tendon, s->delta);
    if (c->law.in_time != 0.0) {
      c->moved += c->law.in_time * tendon_displacement(p, tendon, p->state.v);
    }
    return 1;
  }
  return 0;
}
