/* Derivatives of the last stage d' of a step. At fixed constraint forces, with r the stationarity
 * of the program at d, and r' the same at d' with the dampers' forces N (d' - h v) / h^2, (M + N)
 * dd' = M dd + h^2 (dr - dr'), where dr and dr' are changes at fixed d and d'. They differ in the
 * terms of inertia and dampers.
 */
#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/workspace.h"

solved_step integration_program(const qd_model *model, qd_workspace *w,
                                const qd_step_options *options, const qd_step_input *input,
                                const qd_step_result *result) {
  workspace_begin(w, model, options, input);
  return (solved_step){
      .model = model,
      .w = w,
      .options = options,
      .input = input,
      .delta = w->integration.applies ? w->integration.first : result->delta,
  };
}

solved_step integration_end(const solved_step *program, const qd_step_result *result) {
  solved_step end = *program;
  end.delta = result->delta;
  end.point = program->w->integration.applies ? &program->w->after : &program->w->point;
  return end;
}

int integration_is_plain(const solved_step *s) {
  int plain = 1;
  for (int t = 0; s->w->integration.applies && t < s->model->tendon.count; ++t) {
    plain &= s->model->tendon.type[t] == QD_TENDON_FIXED || integration_tendon_drag(s, t) == 0.0;
  }
  return plain;
}

/* ---------------------------------------------------------------- dampers */

static int is_free(const solved_step *s, int dof) {
  return s->w->problem.variable_of_dof[dof] >= 0;
}

/* v_next of a DOF minus v. */
static double gain_of(const solved_step *end, int dof) {
  return end->delta[dof] / end->options->h - end->w->problem.state.v[dof];
}

/* The derivative of a drag times `gain` by u and by the damping of an actuator. */
static void form_drag(linear_form *f, const solved_step *end, int actuator, double gain) {
  const problem *p = &end->w->problem;
  const double own = integration_actuator_drag(end, actuator);
  const double slope = end->model->actuator.gain_slope[2 * actuator + 1];
  const double u = end->input->u[actuator];
  const int moves = own != 0.0 || !problem_clamps_force(end->model, end->options, actuator) ||
                    problem_clamped_force(p, actuator).side == 0;
  if (moves) {
    form_add(f, QD_BY_ACTUATOR_DAMPING, actuator, gain);
    if (actuator_command(end->model, end->options, end->input, actuator) == u) {
      form_add(f, QD_BY_U, actuator, -slope * gain);
    }
  }
}

static void form_drags(linear_form *f, const solved_step *end, int_list actuators, double gain) {
  for (int k = 0; k < actuators.count && end->model->integration == QD_INTEGRATE_FAST; ++k) {
    form_drag(f, end, actuators.at[k], gain);
  }
}

/* The force drag (v_next - v) of DOF j's dampers. */
static void form_dof_dampers(linear_form *f, const solved_step *end, int j) {
  const double drag = integration_dof_drag(end, j), h = end->options->h;
  form_add(f, QD_BY_V, j, -drag);
  form_add(f, QD_BY_H, 0, -drag * end->delta[j] / (h * h));
  form_add(f, QD_BY_JOINT_DAMPING, end->model->dof.joint[j], gain_of(end, j));
  form_drags(f, end, dof_actuators(end->model, j), gain_of(end, j));
}

/* The force of a tendon's dampers on its DOF at position d. */
static void form_tendon_dampers(linear_form *f, const solved_step *end, int tendon, int d) {
  const qd_model *model = end->model;
  const problem *p = &end->w->problem;
  const double drag = integration_tendon_drag(end, tendon), h = end->options->h;
  const double *rate = p->tendons.rate;
  double gain = 0.0;
  for (int e = model->tendon.dof_start[tendon]; e < model->tendon.dof_start[tendon + 1]; ++e) {
    const int j = model->tendon.dof[e];
    if (is_free(end, j) && integration_couples(model, model->tendon.dof[d], j)) {
      gain += rate[e] * gain_of(end, j);
      form_add(f, QD_BY_V, j, -drag * rate[d] * rate[e]);
      form_add(f, QD_BY_H, 0, -drag * rate[d] * rate[e] * end->delta[j] / (h * h));
    }
  }
  form_drags(f, end, tendon_actuators(model, tendon), rate[d] * gain);
}

/* All forces of dampers on DOF j. */
static void form_dampers(linear_form *f, const solved_step *end, int j) {
  const qd_model *model = end->model;
  form_dof_dampers(f, end, j);
  for (int t = 0; t < model->tendon.count; ++t) {
    for (int d = model->tendon.dof_start[t]; d < model->tendon.dof_start[t + 1]; ++d) {
      if (model->tendon.dof[d] == j) {
        form_tendon_dampers(f, end, t, d);
      }
    }
  }
}

/* ---------------------------------------------------------------- matrices */

static void weigh_columns(const solved_step *s, const damped_tree *t, double *matrix, int columns,
                          int after) {
  double *column = s->w->differential.z, *scratch = s->w->integration.vector;
  for (int c = 0; matrix != NULL && c < columns; ++c) {
    for (int i = 0; i < t->count; ++i) {
      column[t->dofs[i]] = matrix[(size_t)t->dofs[i] * (size_t)columns + (size_t)c];
    }
    (after ? damped_tree_solve : damped_tree_weigh)(t, column, scratch);
    for (int i = 0; i < t->count; ++i) {
      matrix[(size_t)t->dofs[i] * (size_t)columns + (size_t)c] = column[t->dofs[i]];
    }
  }
}

/* The derivatives of M y by q, y = d - d', in the DOFs of the tree. */
static void add_inertia_columns(const solved_step *end, const damped_tree *t, double *by_q) {
  qd_workspace *w = end->w;
  sensitivity *s = &w->sensitivity;
  const size_t count = (size_t)t->count, nv = (size_t)end->model->nv;
  for (int i = 0; i < t->count; ++i) {
    s->place[t->dofs[i]] = i;
  }
  s->D = (dof_matrix){t->count, t->dofs, s->place, s->D.values};
  memset(s->D.values, 0, count * count * sizeof(double));
  motion_derivative_add(&s->motion, &s->D, NULL, end->model, &w->kinematics, &w->inertia,
                        &w->after.motion, w->after.momentum, end->options->h);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count && is_free(end, t->dofs[i]); ++j) {
      by_q[(size_t)t->dofs[i] * nv + (size_t)t->dofs[j]] += s->D.values[i * count + j];
    }
  }
}

/* The motion whose acceleration is y, without velocity. */
static void move_inertia(const solved_step *program, const solved_step *end) {
  const qd_model *model = program->model;
  qd_workspace *w = program->w;
  double *y = w->differential.z, *still = w->differential.masked;
  for (int j = 0; j < model->nv; ++j) {
    y[j] = program->delta[j] - end->delta[j];
    still[j] = 0.0;
  }
  body_motion_compute(&w->after.motion, model, &w->kinematics, still, y);
  memset(w->after.momentum, 0, sizeof(wrench));
  for (int b = 1; b < model->body.count; ++b) {
    inertia_momentum(w->after.momentum + b, w->inertia.body + b,
                     w->after.motion.acceleration.body + b);
  }
  wrench_sum_subtrees(w->after.momentum, model);
}

static void subtract_damper_columns(const solved_step *end, int j, double *by_v, double *by_u) {
  const qd_model *model = end->model;
  const double h = end->options->h;
  double *by[QD_ARGUMENT_COUNT] = {NULL};
  by[QD_BY_V] = by_v != NULL ? by_v + (size_t)j * (size_t)model->nv : NULL;
  by[QD_BY_U] = by_u != NULL ? by_u + (size_t)j * (size_t)model->nu : NULL;
  linear_form f = {.gradient = by, .weight = -h * h};
  form_dampers(&f, end, j);
}

void integration_columns(const solved_step *program, const solved_step *end, double *by_q,
                         double *by_v, double *by_u) {
  const qd_model *model = program->model;
  const integration *n = &program->w->integration;
  damped_tree t = {.tree = -1};
  if (!n->applies) {
    return;
  }
  move_inertia(program, end);
  while (integration_next_tree(&t, n, model)) {
    double *const matrix[] = {by_q, by_v, by_u};
    const int columns[] = {model->nv, model->nv, model->nu};
    for (int m = 0; m < 3; ++m) {
      weigh_columns(program, &t, matrix[m], columns[m], 0);
    }
    if (by_q != NULL) {
      add_inertia_columns(end, &t, by_q);
    }
    for (int i = 0; i < t.count; ++i) {
      if (is_free(program, t.dofs[i])) {
        subtract_damper_columns(end, t.dofs[i], by_v, by_u);
      }
    }
    for (int m = 0; m < 3; ++m) {
      weigh_columns(program, &t, matrix[m], columns[m], 1);
    }
  }
}

/* ---------------------------------------------------------------- products */

void integration_push(const solved_step *end, const double *const tangent[QD_ARGUMENT_COUNT],
                      const double *r, const double *r_end, double *x) {
  const integration *n = &end->w->integration;
  const double h = end->options->h;
  damped_tree t = {.tree = -1};
  while (n->applies && integration_next_tree(&t, n, end->model)) {
    damped_tree_weigh(&t, x, n->vector);
    for (int i = 0; i < t.count; ++i) {
      const int j = t.dofs[i];
      linear_form f = {.tangent = tangent, .weight = 1.0};
      if (is_free(end, j)) {
        form_dampers(&f, end, j);
        x[j] += h * h * (r[j] - r_end[j] - f.change);
      }
    }
    damped_tree_solve(&t, x, n->vector);
  }
}

void integration_pull(const solved_step *end, double *by_delta, double *z) {
  const integration *n = &end->w->integration;
  const double h = end->options->h;
  damped_tree t = {.tree = -1};
  memset(z, 0, (size_t)end->model->nv * sizeof *z);
  while (n->applies && integration_next_tree(&t, n, end->model)) {
    damped_tree_solve(&t, by_delta, n->vector);
    for (int i = 0; i < t.count; ++i) {
      const int j = t.dofs[i];
      z[j] = is_free(end, j) ? h * h * by_delta[j] : 0.0;
    }
    damped_tree_weigh(&t, by_delta, n->vector);
  }
}

void integration_pull_dampers(const solved_step *end, const double *z,
                              double *const gradient[QD_ARGUMENT_COUNT]) {
  for (int j = 0; j < end->model->nv; ++j) {
    linear_form f = {.gradient = gradient, .weight = -z[j]};
    if (z[j] != 0.0) {
      form_dampers(&f, end, j);
    }
  }
}
