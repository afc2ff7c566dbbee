/* A = dq+/dq and B = dq+/du of a step (formulation 4; CQDC section III-C), and the further
 * derivatives of the second-order step.
 *
 * At the solution, with r = Q d + b - G'lambda and w = G d + g, the solver computes the change of d
 * for changes of r and w at fixed d and lambda. This file computes those partial derivatives.
 * Kinematic formulas, for DOF j with screw S_j and bodies' twists T under d:
 *   dS_k / dq_j = S_j x S_k          if j moves k's axis,
 *   dT / dq_j = S_j x (T - P_j)      for bodies behind j,
 * with P_j the part of T from the DOFs that j does not move (its own block included). */

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/multiversion.h"
#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/linearize_rows.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/friction_law.h"
#include "dynamics/problem/parts.h"
#include "dynamics/step.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"
#include "mechanics/retraction.h"
#include "numerics/conic/conic.h"

/* The wanted derivatives of delta by q, v and u; NULL: not wanted. */
typedef struct step_derivatives {
  double *by_q, *by_v, *by_u;
} step_derivatives;

/* ------------------------------------------------------- assembly */

/* Adds a column by u, in ascending order. */
static void add_input(sensitivity *s, int actuator) {
  int at = s->u_count++;
  for (; at > 0 && s->actuators[at - 1] > actuator; --at) {
    s->actuators[at] = s->actuators[at - 1];
  }
  s->actuators[at] = actuator;
}

/* 1 if there are fewer unit loads on the variables (in fours) than columns, and room for them. */
static int has_fewer_loads(const sensitivity *s, const island *one) {
  const int loads = (one->variable_count + 3) / 4 * 4;
  return s->q_count > 0 && loads <= s->response_limit && s->columns > loads;
}

/* The island's columns: DOFs that it depends on, and its own actuators. */
static void choose_columns(const solved_step *solved, const island *one,
                           const step_columns *wanted) {
  const qd_model *model = solved->model;
  sensitivity *s = &solved->w->sensitivity;
  problem *p = &solved->w->problem;
  s->q_count = s->v_count = s->u_count = 0;
  if (wanted->q > 0) {
    s->q_count = islands_dofs(&p->islands, model, &solved->w->collision,
                              (int)(one - p->islands.island), p->dof_of_variable, s->dofs);
  }
  for (int d = 0; d < s->q_count; ++d) {
    s->place[s->dofs[d]] = d;
  }
  s->v_count = wanted->v > 0 ? s->q_count : 0;
  s->D.count = s->V.count = s->q_count;
  s->D.dofs = s->V.dofs = s->dofs;
  s->D.place = s->V.place = s->place;
  for (int i = one->variable; i < one->variable + one->variable_count && wanted->u > 0; ++i) {
    const int dof = p->dof_of_variable[i];
    const int_list actuators = dof >= 0 ? dof_actuators(model, dof) : (int_list){NULL, 0};
    for (int k = 0; k < actuators.count; ++k) {
      add_input(s, actuators.at[k]);
    }
  }
  for (int i = 0; i < one->tendon_row_count && wanted->u > 0; ++i) {
    const tendon_row *row = p->tendon_row + one->tendon_row + i;
    if (row->kind >= TENDON_ACTUATOR && row->actuator >= 0) {
      add_input(s, row->actuator);
    }
  }
  s->columns = s->q_count + s->v_count + s->u_count;
  if (has_fewer_loads(s, one)) {
    s->columns = (s->columns + 3) / 4 * 4;
  }
}

/* out (with this stride, variables) = force times the derivative of the actuator's coordinate */
static void add_force_column(double *out, size_t columns, const problem *p, const island *one,
                             int actuator, double force) {
  const qd_model *model = p->model;
  const int tendon = model->actuator.tendon[actuator];
  if (tendon < 0) {
    out[(size_t)column_of(p, one, model->actuator.dof[actuator]) * columns] = force;
    return;
  }
  for (int d = model->tendon.dof_start[tendon]; d < model->tendon.dof_start[tendon + 1]; ++d) {
    if (p->variable_of_dof[model->tendon.dof[d]] >= 0) {
      out[(size_t)column_of(p, one, model->tendon.dof[d]) * columns] = force * p->tendons.rate[d];
    }
  }
}

/* Rows of the free DOFs of D and V, then the input columns dr/du. */
static void write_stationarity(const solved_step *solved, const island *one) {
  sensitivity *s = &solved->w->sensitivity;
  const problem *p = &solved->w->problem;
  const size_t columns = (size_t)s->columns, moving = (size_t)s->q_count;
  const size_t width = (size_t)(s->q_count + s->v_count);
  for (int i = 0; i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    double *row = s->d_stationarity + (size_t)i * columns;
    if (dof < 0) {
      memset(row, 0, columns * sizeof(double));
      continue;
    }
    const size_t at = (size_t)s->place[dof] * moving;
    if (moving > 0) {
      memcpy(row, s->D.values + at, moving * sizeof(double));
    }
    if (s->v_count > 0) {
      memcpy(row + moving, s->V.values + at, moving * sizeof(double));
    }
    memset(row + width, 0, (columns - width) * sizeof(double));
  }
  for (int i = 0; i < s->u_count; ++i) {
    const int actuator = s->actuators[i];
    const actuator_part part = actuator_part_of(solved, actuator);
    double *by_u = s->d_stationarity + width + (size_t)i;
    if (part.row >= 0) {
      d_slack_row(s, one, part.row)[width + (size_t)i] = part.per_row * part.slope.u;
    }
    add_force_column(by_u, columns, p, one, actuator,
                     -(part.row >= 0 ? part.resistance.u : part.slope.u));
  }
}

/* Writes the island's dx into matrices (nv, nv) by q and v and (nv, nu) by u, which are zero
 * elsewhere. */
static void scatter_rows(const solved_step *solved, const island *one,
                         const step_derivatives *out) {
  const qd_model *model = solved->model;
  const sensitivity *s = &solved->w->sensitivity;
  const int *variable_dof = solved->w->problem.dof_of_variable + one->variable;
  for (int i = 0; i < one->variable_count; ++i) {
    if (variable_dof[i] < 0) {
      continue;
    }
    const size_t dof = (size_t)variable_dof[i];
    const double *row = s->d_x + (size_t)i * (size_t)s->columns;
    for (int k = 0; k < s->q_count && out->by_q != NULL; ++k) {
      out->by_q[dof * (size_t)model->nv + (size_t)s->dofs[k]] = row[k];
    }
    row += s->q_count;
    for (int k = 0; k < s->v_count; ++k) {
      out->by_v[dof * (size_t)model->nv + (size_t)s->dofs[k]] = row[k];
    }
    row += s->v_count;
    for (int k = 0; k < s->u_count; ++k) {
      out->by_u[dof * (size_t)model->nu + (size_t)s->actuators[k]] = row[k];
    }
  }
}

static void partial_derivatives(const solved_step *solved, const island *one) {
  qd_workspace *w = solved->w;
  sensitivity *s = &w->sensitivity;
  const size_t columns = (size_t)s->columns, width = (size_t)s->q_count;
  memset(s->d_equality, 0, (size_t)one->equality_count * columns * sizeof(double));
  memset(s->d_slack, 0, (size_t)one->row_count * columns * sizeof(double));
  if (width > 0) {
    memset(s->D.values, 0, width * width * sizeof(double));
    if (solved->options->dynamic) {
      memset(s->V.values, 0, width * width * sizeof(double));
    }
    add_axis_derivative(solved);
    contact_derivative_prepare(w);
    for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
      const int index = w->problem.islands.contact_order[i];
      if (w->differential.counts[index]) {
        contact_derivative_add(solved, one, index);
      }
    }
    add_cost_derivative(solved, one);
    if (solved->input->wrench != NULL) {
      applied_subtract_derivative(&s->D, solved->model, &w->kinematics, solved->input->wrench);
    }
    add_constraint_derivative(solved, one);
    add_tendon_derivative(solved, one);
    pressure_derivative_columns(solved, one, &s->D, s->d_slack, s->columns);
  }
  write_stationarity(solved, one);
}

/* Adds to four rows and four columns of d_x the sum of coefficient[k] from[column] over `count`
 * rows. */
LANES_INLINE void add_products(lanes sum[4], double sign, const double *coefficient,
                               size_t coefficients, const double *from, size_t columns, int count) {
  for (int i = 0; i < count; ++i, coefficient += coefficients, from += columns) {
    const lanes row = sign * LANES_ANYWHERE(from);
    for (int k = 0; k < 4; ++k) {
      sum[k] += coefficient[k] * row;
    }
  }
}

/* d_x from the response to unit loads on each variable. The solver's map is symmetric, so with y =
 * e_k, dx_k = -z'd_stationarity + mu'd_slack + nu'd_equality (conic.h). This takes as many solves
 * as there are variables; there are up to twice as many columns, in the second-order step three
 * times. Four columns at a time; the last ones may include columns by u. Rows depend on v only if
 * offsets do. */
QD_MULTIVERSION
static void combine_responses(sensitivity *s, const island *one, int knows_v, size_t loads) {
  const size_t n = (size_t)one->variable_count, columns = (size_t)s->columns;
  const size_t width = (size_t)(s->q_count + s->v_count);
  for (size_t k = 0; k < n; k += 4) {
    const size_t rows = n - k < 4 ? n - k : 4;
    for (size_t c = 0; c < width; c += 4) {
      const int moving = c < (size_t)s->q_count || knows_v ? one->row_count : 0;
      lanes sum[4] = {{0.0}, {0.0}, {0.0}, {0.0}};
      add_products(sum, -1.0, s->response + k, loads, s->d_stationarity + c, columns, (int)n);
      add_products(sum, 1.0, s->slack_response + k, loads, s->d_slack + c, columns, moving);
      add_products(sum, 1.0, s->equality_response + k, loads, s->d_equality + c, columns,
                   one->equality_count);
      for (size_t i = 0; i < rows; ++i) {
        LANES_ANYWHERE(s->d_x + (k + i) * columns + c) = sum[i];
      }
    }
  }
}

/* The program's row of an actuator; -1: none. */
static int actuator_row(const problem *p, int actuator) {
  const int row = p->row_of_actuator[actuator];
  if (row < 0) {
    return -1;
  }
  return p->model->actuator.tendon[actuator] >= 0 ? p->tendon_row[row].row : p->force_row[row].row;
}

/* The columns by u, which have few entries: in stationarity, and in the actuator's row. */
static void combine_inputs(const problem *p, sensitivity *s, const island *one, size_t loads) {
  const size_t width = (size_t)(s->q_count + s->v_count), columns = (size_t)s->columns;
  const int n = one->variable_count;
  for (int i = 0; i < s->u_count; ++i) {
    const int row = actuator_row(p, s->actuators[i]);
    const size_t at = width + (size_t)i;
    for (int k = 0; k < n; ++k) {
      s->d_x[(size_t)k * columns + at] = 0.0;
    }
    for (int j = 0; j < n; ++j) {
      const double load = -s->d_stationarity[(size_t)j * columns + at];
      for (int k = 0; k < n && load != 0.0; ++k) {
        s->d_x[(size_t)k * columns + at] += load * s->response[(size_t)j * loads + (size_t)k];
      }
    }
    const double by_row = row >= 0 ? d_slack_row(s, one, row)[at] : 0.0;
    const double *response = s->slack_response + (size_t)(row - one->row) * loads;
    for (int k = 0; k < n && by_row != 0.0; ++k) {
      s->d_x[(size_t)k * columns + at] += by_row * response[k];
    }
  }
}

static void solve_columns(problem *p, sensitivity *s, island *one) {
  const int n = one->variable_count, loads = (n + 3) / 4 * 4;
  if (!has_fewer_loads(s, one)) {
    const conic_change change = {
        s->columns, s->d_stationarity, s->d_slack, s->d_equality, s->d_x, NULL, NULL};
    law_sensitivity_solve(p, one, 0, &change);
    return;
  }
  memset(s->unit, 0, (size_t)n * (size_t)loads * sizeof(double));
  for (int i = 0; i < n; ++i) {
    s->unit[(size_t)i * (size_t)loads + (size_t)i] = -1.0;
  }
  const conic_change response = {
      loads, s->unit, NULL, NULL, s->response, s->slack_response, s->equality_response};
  law_sensitivity_solve(p, one, 1, &response);
  combine_responses(s, one, p->report.timed > 0, (size_t)loads);
  combine_inputs(p, s, one, (size_t)loads);
}

/* One island's rows of A and B. */
static void linearize_island(const solved_step *solved, island *one, const step_columns *wanted,
                             qd_step_result *result, const step_derivatives *out) {
  sensitivity *s = &solved->w->sensitivity;
  choose_columns(solved, one, wanted);
  if (s->columns == 0) {
    return;
  }
  result->derivative_exact &= pressure_derivative_prepare(solved, one);
  partial_derivatives(solved, one);
  solve_columns(&solved->w->problem, s, one);
  pressure_derivative_correct(solved, one, s->d_x, s->columns);
  scatter_rows(solved, one, out);
}

static void clear(double *matrix, int rows, int columns) {
  if (matrix != NULL) {
    memset(matrix, 0, (size_t)rows * (size_t)columns * sizeof(double));
  }
}

/* Computes the step, and the derivatives of its delta that are not NULL. */
static qd_status linearize(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, qd_step_result *result,
                           const step_derivatives *out) {
  const step_columns wanted = {out->by_q != NULL || out->by_v != NULL ? model->nv : 0,
                               out->by_u != NULL ? model->nu : 0, out->by_v != NULL ? model->nv : 0,
                               options->dynamic};
  qd_status status = step_compute(model, w, options, input, &wanted, result);
  if (status != QD_OK) {
    return status;
  }
  const problem *p = &w->problem;
  clear(out->by_q, model->nv, model->nv);
  clear(out->by_v, model->nv, model->nv);
  clear(out->by_u, model->nv, model->nu);
  const solved_step s = integration_program(model, w, options, input, result);
  status = derivatives_prepare(&s, result);
  for (int i = 0; i < p->islands.count && status == QD_OK; ++i) {
    linearize_island(&s, p->islands.island + i, &wanted, result, out);
  }
  const solved_step end = integration_end(&s, result);
  integration_columns(&s, &end, out->by_q, out->by_v, out->by_u);
  if (status != QD_OK) {
    result->info.status = status;
  }
  return status;
}

/* Reports derivatives beyond the range of a double. */
static qd_status check_finite(qd_step_result *result, const double *matrix, int count) {
  if (matrix != NULL && !all_finite(matrix, count)) {
    result->info.status = QD_NUMERICAL_TROUBLE;
  }
  return result->info.status;
}

qd_status qd_linearize(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                       const qd_step_input *input, qd_step_result *result, double *A, double *B) {
  const step_derivatives of_delta = {A, NULL, B};
  const qd_status status = linearize(model, w, options, input, result, &of_delta);
  if (status != QD_OK) {
    return status;
  }
  if (A != NULL) {
    retraction_apply_derivative(A, model, result->delta, model->nv);
    retraction_add_base_derivative(A, model, result->delta);
  }
  if (B != NULL) {
    retraction_apply_derivative(B, model, result->delta, model->nu);
  }
  check_finite(result, A, model->nv * model->nv);
  return check_finite(result, B, model->nv * model->nu);
}

/* d delta -> d v_next in place, and d q_next. */
static void write_both(const qd_model *model, double h, const double *delta, int columns,
                       double *of_q, double *of_v) {
  const size_t count = (size_t)model->nv * (size_t)columns;
  memcpy(of_q, of_v, count * sizeof(double));
  retraction_apply_derivative(of_q, model, delta, columns);
  for (size_t i = 0; i < count; ++i) {
    of_v[i] /= h;
  }
}

qd_status qd_linearize_dynamic(const qd_model *model, qd_workspace *w,
                               const qd_step_options *options, const qd_step_input *input,
                               qd_step_result *result, double *const of_q[QD_ARGUMENT_COUNT],
                               double *const of_v[QD_ARGUMENT_COUNT]) {
  const step_derivatives of_delta = {of_v[QD_BY_Q], of_v[QD_BY_V], of_v[QD_BY_U]};
  const qd_status status = linearize(model, w, options, input, result, &of_delta);
  for (int i = 0; i < QD_ARGUMENT_COUNT && status == QD_OK; ++i) {
    if (of_v[i] != NULL) {
      const int columns = qd_argument_size(model, i);
      write_both(model, options->h, result->delta, columns, of_q[i], of_v[i]);
      check_finite(result, of_v[i], model->nv * columns);
    }
  }
  if (of_v[QD_BY_Q] != NULL && status == QD_OK) {
    retraction_add_base_derivative(of_q[QD_BY_Q], model, result->delta);
  }
  return status == QD_OK ? result->info.status : status;
}
