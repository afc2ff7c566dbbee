/* Single rows and forces as linear forms of a step's arguments: the same entries forwards and
 * backwards. */
#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/workspace.h"
#include "mechanics/retraction.h"

void form_along_dof(linear_form *f, const double change[3], int dof) {
  form_add(f, QD_BY_Q, dof, change[0]);
  form_add(f, QD_BY_V, dof, change[1]);
  form_add(f, QD_BY_H, 0, change[2]);
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

void form_spring(linear_form *f, const solved_step *s, int j) {
  const qd_model *model = s->model;
  const int joint = model->dof_joint[j];
  const double stiffness = model->parameters.joint_stiffness[joint], delta = s->delta[j];
  const int early = springs_act_early(model, s->options);
  const double rate = early ? 0.0 : damping_rate(s->options), moved = early ? 0.0 : delta;
  double row[3];
  int first, count = stiffness > 0.0 ? joint_stretch_row(model, j, s->input->q, row, &first) : 0;
  for (int i = 0; i < count; ++i) {
    form_add(f, QD_BY_Q, first + i, stiffness * row[i]);
  }
  form_add(f, QD_BY_JOINT_SPRINGREF, joint, model->dof_q[j] >= 0 ? -stiffness : 0.0);
  if (form_knows(f, QD_BY_JOINT_STIFFNESS)) {
    form_add(f, QD_BY_JOINT_STIFFNESS, joint, moved + joint_stretch(model, j, s->input->q));
  }
  if (early) {
    form_add(f, QD_BY_V, j, model->parameters.joint_damping[joint]);
  }
  form_add(f, QD_BY_JOINT_DAMPING, joint, early ? s->w->problem.v[j] : rate * delta);
  form_add(f, QD_BY_H, 0, -model->parameters.joint_damping[joint] * rate * rate * delta);
}

/* Share of the limits' motion that the load of a row of dry friction follows. */
static double friction_share(const problem *p, int row) {
  return p->by_upper[row] - p->by_lower[row];
}

void form_friction(linear_form f[2], const solved_step *s, const force_row *row) {
  const problem *p = &s->w->problem;
  double change[3];
  problem_friction_change(change, p, row);
  form_along_dof(f, change, row->dof);
  form_add(f + 1, QD_BY_JOINT_FRICTION, s->model->dof_joint[row->dof], friction_share(p, row->row));
}

void form_turn_row(linear_form f[4], const solved_step *s, const turn_row *row) {
  const problem *p = &s->w->problem;
  turn_change change;
  problem_turn_change(&change, p, row, s->delta);
  form_add(f, QD_BY_H, 0, change.by_h);
  for (int i = 0; i < 3; ++i) {
    form_add(f, QD_BY_Q, row->dof + i, change.by_q[i]);
    form_add(f, QD_BY_V, row->dof + i, change.by_v[i]);
    for (int j = 0; j < 3; ++j) {
      form_add(f + 1 + i, QD_BY_Q, row->dof + j, change.force[3 * i + j]);
    }
    if (!row->is_limit) {
      form_add(f + 1 + i, QD_BY_JOINT_FRICTION, row->joint,
               friction_share(p, row->row) * row->axis[i]);
    }
  }
}

void form_ball_limit(linear_form f[BALL_ROWS + 3], const solved_step *s, const ball_limit *limit) {
  ball_part part;
  ball_part_compute(&part, &s->w->problem, limit, s->delta);
  form_add(f, QD_BY_H, 0, limit->capped ? -s->options->recovery_speed : 0.0);
  for (int j = 0; j < 3; ++j) {
    for (int r = 0; r < BALL_ROWS; ++r) {
      form_add(f + r, QD_BY_Q, limit->dof + j, part.rows[3 * r + j]);
    }
    for (int i = 0; i < 3; ++i) {
      form_add(f + BALL_ROWS + i, QD_BY_Q, limit->dof + j, part.force[3 * i + j]);
    }
  }
}

void form_drift(linear_form f[CONSTRAINT_ROWS_MAX], const solved_step *s,
                const constraint_state *state) {
  const qd_workspace *w = s->w;
  double by_q[CONSTRAINT_ROWS_MAX], by_v[CONSTRAINT_ROWS_MAX];
  constraint_walk walk = {0, 0};
  for (int j; (j = constraint_next_dof(&walk, state, s->model)) >= 0;) {
    constraint_drift_derivative(by_q, by_v, state, s->model, &w->kinematics, &w->problem.drift, j);
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
      const double late = law.in_time != 0.0 ? law.in_time * p->v[dof] : 0.0;
      form_add(f, QD_BY_Q, dof, share * law.by_violation - bend * (s->delta[dof] + late));
      form_add(f, QD_BY_V, dof, share * law.in_time);
    }
  }
}

void form_tendon_row(linear_form *f, const solved_step *s, const tendon_row *row, double by_h) {
  const problem *p = &s->w->problem;
  form_add(f, QD_BY_H, 0, by_h);
  if (row->kind == TENDON_DAMPER) { /* its compliance is h over the damping */
    form_add(f, QD_BY_H, 0, p->dual[row->row] * p->compliance[row->row] / s->options->h);
  }
  if (row->kind == TENDON_SPRING || row->kind == TENDON_REST) {
    const double k = s->model->parameters.tendon_stiffness[row->tendon];
    form_add(f, QD_BY_TENDON_STIFFNESS, row->tendon, -p->dual[row->row] / (k * k));
  }
}

int next_coupling(tendon_coupling *c, const solved_step *s, int tendon) {
  const problem *p = &s->w->problem;
  for (++c->place; c->place < 2 * p->equality_count; ++c->place) {
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
      c->moved += c->law.in_time * tendon_displacement(p, tendon, p->v);
    }
    return 1;
  }
  return 0;
}
