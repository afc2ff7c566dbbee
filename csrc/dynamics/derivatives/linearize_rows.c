/* Derivatives of rows and cost by q: axes, springs, limits, constraints, tendons (linearize.c). */
#include "dynamics/derivatives/linearize_rows.h"

#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"
#include "mechanics/applied.h"
#include "mechanics/retraction.h"

/* ------------------------------------------------------- axes, cost and limits */

void add_axis_derivative(const solved_step *solved) {
  const qd_model *model = solved->model;
  const sensitivity *s = &solved->w->sensitivity;
  const screw *S = solved->w->kinematics.dof_screw;
  for (int d = 0; d < s->q_count; ++d) {
    const int i = s->dofs[d], b = model->dof.body[i];
    const int_list chain = body_chain(model, b);
    for (int c = 0; c < chain.count && dof_moves(model, chain.at[c], i); ++c) {
      screw turned;
      screw_bracket(&turned, S + chain.at[c], S + i);
      *dof_matrix_at(&s->D, i, chain.at[c]) -= screw_dot(&turned, solved->w->point.forces + b);
    }
  }
}

double *d_slack_row(const sensitivity *s, const island *one, int row) {
  return s->d_slack + (size_t)(row - one->row) * (size_t)s->columns;
}

/* A row of d_slack or d_equality; `by` receives the positions of its entries. */
static linear_form row_form(double *by[QD_ARGUMENT_COUNT], const sensitivity *s, double *row) {
  by[QD_BY_Q] = row;
  by[QD_BY_V] = s->v_count > 0 ? row + s->q_count : NULL;
  return (linear_form){.gradient = by, .place = s->place, .weight = 1.0};
}

/* The maker of forms in matrices. `by`: positions of a row's entries, and of a force's. */
typedef struct column_target {
  const sensitivity *s;
  const island *one;
  double *by_row[QD_ARGUMENT_COUNT], *by_force[QD_ARGUMENT_COUNT];
} column_target;

static linear_form column_row(const form_maker *of, int row) {
  column_target *to = of->context;
  return row_form(to->by_row, to->s, d_slack_row(to->s, to->one, row));
}

/* Forces are subtracted from rows of D and V. */
static linear_form column_force(const form_maker *of, int dof) {
  column_target *to = of->context;
  const sensitivity *s = to->s;
  const size_t at = (size_t)s->place[dof] * (size_t)s->D.count;
  to->by_force[QD_BY_Q] = s->D.values + at;
  to->by_force[QD_BY_V] = s->v_count > 0 ? s->V.values + at : NULL;
  return (linear_form){.gradient = to->by_force, .place = s->place, .weight = -1.0};
}

void add_cost_derivative(const solved_step *solved, const island *one) {
  const qd_model *model = solved->model;
  qd_workspace *w = solved->w;
  sensitivity *s = &w->sensitivity;
  const step_point *point = &w->point;
  column_target to = {.s = s, .one = one};
  const form_maker maker = {column_row, column_force, &to};
  for (int d = 0; d < s->q_count; ++d) {
    form_add_drives(&maker, solved, s->dofs[d]);
  }
  form_add_joint_rows(&maker, solved, one);
  if (solved->options->dynamic) {
    motion_columns_add(solved);
  } else if (point->mass_counts) {
    const mass_motion motion = {point->free_delta, point->motion.acceleration.body,
                                point->momentum};
    inertia_add_mass_derivative(&s->D, model, &w->kinematics, &w->inertia, point->mass_scale,
                                &motion);
  }
  if (vec3_norm(model->parameters.gravity) > 0.0) {
    inertia_subtract_gravity_derivative(&s->D, model, &w->kinematics, &w->inertia, point->falls);
  }
}

/* ------------------------------------------------------- bilateral constraints */

/* Change of the depth, minus the length of the violation. */
static double length_change(const constraint_state *s, const double change[CONSTRAINT_ROWS_MAX]) {
  const double length = constraint_length(s);
  double sum = 0.0;
  for (int i = 0; i < s->rows && length > 0.0; ++i) {
    sum -= s->violation[i] / length * change[i];
  }
  return sum;
}

/* Entries of one row of a connect or a weld for these DOFs. */
static void anchor_row_derivative(double *row, const solved_step *solved,
                                  const equality_row *equality, const anchor_change *change,
                                  int_list dofs) {
  const qd_model *model = solved->model;
  const qd_workspace *w = solved->w;
  const sensitivity *s = &w->sensitivity;
  const constraint_state *state = w->problem.constraint + equality->constraint;
  const constraint_motion motion = {w->point.delta.body, w->point.delta.unmoved};
  const constraint_motion in_time = {w->problem.state.velocity.body,
                                     w->problem.state.velocity.unmoved};
  const int component = equality->component;
  for (int i = 0; i < dofs.count; ++i) {
    double column[CONSTRAINT_ROWS_MAX], violation[CONSTRAINT_ROWS_MAX], drift[CONSTRAINT_ROWS_MAX];
    const int place = s->place[dofs.at[i]];
    constraint_motion_derivative(column, violation, state, model, &w->kinematics, &motion,
                                 dofs.at[i]);
    row[place] = column[component] + change->spring * violation[component];
    if (change->along != 0.0) {
      row[place] += change->along * length_change(state, violation);
    }
    if (change->in_time == 0.0) {
      continue;
    }
    constraint_motion_derivative(column, violation, state, model, &w->kinematics, &in_time,
                                 dofs.at[i]);
    row[place] += change->in_time * column[component];
    constraint_drift_derivative(violation, drift, state, model, &w->kinematics,
                                &w->problem.state.drift, dofs.at[i]);
    row[place] += change->drift * violation[component];
    if (s->v_count > 0) {
      constraint_column(column, state, model, &w->kinematics, dofs.at[i]);
      row[s->q_count + place] =
          change->in_time * column[component] + change->drift * drift[component];
    }
  }
}

void add_constraint_derivative(const solved_step *solved, const island *one) {
  const qd_model *model = solved->model;
  sensitivity *s = &solved->w->sensitivity;
  const problem *p = &solved->w->problem;
  for (int i = 0; i < one->equality_count; ++i) {
    const equality_row *equality = p->equality + one->equality + i;
    const constraint_state *state = p->constraint + equality->constraint;
    double *row = s->d_equality + (size_t)i * (size_t)s->columns;
    if (state->tendon[0] >= 0) {
      continue; /* in add_coupling_derivative */
    }
    if (state->rows == 1) {
      double *by[QD_ARGUMENT_COUNT] = {NULL};
      linear_form f = row_form(by, s, row);
      form_coupling(&f, solved, one->equality + i);
      continue;
    }
    const anchor_change change = problem_anchor_change(p, one->equality + i);
    for (int side = 0; side < 2; ++side) {
      anchor_row_derivative(row, solved, equality, &change, body_chain(model, state->body[side]));
    }
  }
  for (int i = one->constraint; i < one->constraint + one->constraint_count; ++i) {
    const int index = p->islands.constraint_order[i];
    constraint_subtract_force_derivative(
        &s->D, p->constraint + index, model, &solved->w->kinematics,
        p->solution.constraint_force + QD_CONSTRAINT_FORCE * index, p->law[index].turning);
  }
}

/* ------------------------------------------------------- tendons */

/* D and V -= rate times the change of a force by rate.v */
static void subtract_force_by_speed(const solved_step *solved, int tendon, double slope) {
  const qd_model *model = solved->model;
  const qd_workspace *w = solved->w;
  const sensitivity *s = &w->sensitivity;
  const double *rate = w->problem.tendons.rate, *late = w->problem.tendons.change + model->nv;
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  for (int d = first; d < end && slope != 0.0; ++d) {
    for (int e = first; e < end; ++e) {
      const int i = model->tendon.dof[d], j = model->tendon.dof[e];
      *dof_matrix_at(&s->D, i, j) -= slope * rate[d] * late[e - first];
      if (s->v_count > 0) {
        *dof_matrix_at(&s->V, i, j) -= slope * rate[d] * rate[e];
      }
    }
  }
}

/* D -= rate slope (length)' for a force that changes with the length. */
static void subtract_force_slope(const solved_step *solved, int tendon, double slope) {
  const qd_model *model = solved->model;
  const qd_workspace *w = solved->w;
  const double *rate = w->problem.tendons.rate, *length = w->problem.tendons.slope;
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  for (int d = first; d < end && slope != 0.0; ++d) {
    for (int e = first; e < end; ++e) {
      *dof_matrix_at(&w->sensitivity.D, model->tendon.dof[d], model->tendon.dof[e]) -=
          slope * rate[d] * length[e];
    }
  }
}

/* change = derivatives of a row by the length and by rate.v. Derivatives of forces that are not in
 * rows are added to D. */
static void tendon_row_change(double change[3], const solved_step *solved, const tendon_row *row) {
  if (row->kind < TENDON_ACTUATOR) {
    problem_tendon_change(change, &solved->w->problem, row);
    return;
  }
  const actuator_part part = tendon_part_of(solved, row);
  change[0] = change[1] = change[2] = 0.0;
  if (part.row < 0) {
    subtract_force_slope(solved, row->tendon, part.slope.l);
    subtract_force_by_speed(solved, row->tendon, part.slope.speed);
  } else {
    change[0] = part.per_row * part.slope.l;
  }
}

/* d (rate.d) / dq (DOFs of the tendon), followed by d (rate.v) / dq if offsets depend on it. */
static void find_rate_changes(const solved_step *solved, int tendon) {
  const qd_model *model = solved->model;
  qd_workspace *w = solved->w;
  const problem *p = &w->problem;
  const tendon_twists twists = {w->point.delta.body, w->point.delta.unmoved};
  const tendon_twists in_time = {p->state.velocity.body, p->state.velocity.unmoved};
  double *change = p->tendons.change;
  if (contacts_yield_in_time(solved->options)) {
    tendon_linearize(&p->tendons, &w->sensitivity.D, model, &w->kinematics, &in_time, tendon, 0.0);
    memcpy(change + model->nv, change, (size_t)model->nv * sizeof(double));
  }
  tendon_linearize(&p->tendons, &w->sensitivity.D, model, &w->kinematics, &twists, tendon,
                   p->solution.tendon_force[tendon]);
}

/* row += share (rate.d + in_time rate.v) of a tendon, by q and by v */
static void add_rate(const problem *p, const sensitivity *s, double *row, int tendon, double share,
                     double in_time) {
  const int first = p->model->tendon.dof_start[tendon],
            end = p->model->tendon.dof_start[tendon + 1];
  const double *change = p->tendons.change, *late = change + p->model->nv;
  for (int d = first; d < end; ++d) {
    const int place = s->place[p->model->tendon.dof[d]];
    row[place] += share * change[d - first];
    if (in_time != 0.0) {
      row[place] += share * in_time * late[d - first];
    }
    if (in_time != 0.0 && s->v_count > 0) {
      row[s->q_count + place] += share * in_time * p->tendons.rate[d];
    }
  }
}

/* A tendon's part of the rows of its couplings: the change of share (length + rate.d), where the
 * share depends on the length of the second tendon. */
static void add_coupling_derivative(const solved_step *solved, const island *one, int tendon) {
  const qd_model *model = solved->model;
  sensitivity *s = &solved->w->sensitivity;
  const problem *p = &solved->w->problem;
  tendon_coupling c = {.place = -1};
  while (next_coupling(&c, solved, tendon)) {
    double *row = s->d_equality + (size_t)(c.row - one->equality) * (size_t)s->columns;
    const double length = c.share * c.law.by_violation - c.bend * c.moved;
    for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
      row[s->place[model->tendon.dof[d]]] += length * p->tendons.slope[d];
    }
    add_rate(p, s, row, tendon, c.share, c.law.in_time);
    subtract_force_slope(solved, tendon, -c.bend * p->solution.dual_eq[c.row]);
  }
}

void add_tendon_derivative(const solved_step *solved, const island *one) {
  const qd_model *model = solved->model;
  sensitivity *s = &solved->w->sensitivity;
  const problem *p = &solved->w->problem;
  int row = one->tendon_row;
  const int end = one->tendon_row + one->tendon_row_count;
  for (int i = one->tendon; i < one->tendon + one->tendon_count; ++i) {
    const int tendon = p->islands.tendon_order[i];
    find_rate_changes(solved, tendon);
    if (model->tendon.is_coupled[tendon]) {
      add_coupling_derivative(solved, one, tendon);
    }
    for (; row < end && p->tendon_row[row].tendon == tendon; ++row) {
      const tendon_row *at = p->tendon_row + row;
      double *d_slack = d_slack_row(s, one, at->row), change[3];
      tendon_row_change(change, solved, at);
      for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
        d_slack[s->place[model->tendon.dof[d]]] += change[0] * p->tendons.slope[d];
      }
      add_rate(p, s, d_slack, tendon, at->sign, at->sign * change[1]);
    }
  }
}
