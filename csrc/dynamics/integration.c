#include "dynamics/integration.h"

#include <math.h>
#include <string.h>

#include "dynamics/workspace.h"
#include "mechanics/retraction.h"

/* ---------------------------------------------------------------- dampers */

double integration_actuator_drag(const solved_step *s, int actuator) {
  const problem *p = &s->w->problem;
  const actuator_point at = actuator_point_at(p, actuator);
  if (problem_clamps_force(s->model, s->options, actuator)) {
    const clamped_force c = problem_clamped_force(p, actuator);
    if (c.side != 0 && !c.by_joint) {
      return 0.0;
    }
  }
  return actuator_drag(s->model, actuator, &at);
}

static double drag_of_all(const solved_step *s, int_list actuators) {
  double sum = 0.0;
  for (int k = 0; k < actuators.count && s->model->integration == QD_INTEGRATE_FAST; ++k) {
    sum += integration_actuator_drag(s, actuators.at[k]);
  }
  return sum;
}

double integration_dof_drag(const solved_step *s, int dof) {
  return s->model->parameters.joint_damping[s->model->dof.joint[dof]] +
         drag_of_all(s, dof_actuators(s->model, dof));
}

double integration_tendon_drag(const solved_step *s, int tendon) {
  const int fast = s->model->integration == QD_INTEGRATE_FAST;
  return (fast ? s->model->tendon.damping[tendon] : 0.0) +
         drag_of_all(s, tendon_actuators(s->model, tendon));
}

int integration_couples(const qd_model *model, int i, int j) {
  const int deep = i > j ? i : j, up = i > j ? j : i;
  return body_is_behind(model, model->dof.body[deep], up);
}

/* ---------------------------------------------------------------- blocks of trees */

static int tree_size(const qd_model *model, int tree) {
  return model->tree.dof_start[tree + 1] - model->tree.dof_start[tree];
}

void integration_lay_out(integration *n, const qd_model *model, arena *a) {
  size_t entries = 0;
  for (int tree = 0; tree < model->tree.count; ++tree) {
    const size_t size = (size_t)tree_size(model, tree);
    entries += model->integration != QD_INTEGRATE_LATE ? size * size : 0;
  }
  ARENA_DOUBLES(a, (size_t)model->nv, &n->first, &n->vector);
  ARENA_DOUBLES(a, entries, &n->mass, &n->whole);
  n->damped = arena_ints(a, (size_t)model->tree.count);
}

int integration_next_tree(damped_tree *t, const integration *n, const qd_model *model) {
  if (t->tree < 0) {
    t->at = 0;
    t->count = 0;
  }
  do {
    t->at += (size_t)t->count * (size_t)t->count;
    if (++t->tree >= model->tree.count) {
      return 0;
    }
    t->count = tree_size(model, t->tree);
  } while (!n->damped[t->tree]);
  t->dofs = model->tree.dofs + model->tree.dof_start[t->tree];
  t->mass = n->mass + t->at;
  t->whole = n->whole + t->at;
  return 1;
}

void damped_tree_weigh(const damped_tree *t, double *x, double *scratch) {
  for (int i = 0; i < t->count; ++i) {
    scratch[i] = 0.0;
    for (int j = 0; j < t->count; ++j) {
      scratch[i] += t->mass[i * t->count + j] * x[t->dofs[j]];
    }
  }
  for (int i = 0; i < t->count; ++i) {
    x[t->dofs[i]] = scratch[i];
  }
}

void damped_tree_solve(const damped_tree *t, double *x, double *scratch) {
  const double *L = t->whole;
  const int n = t->count;
  for (int i = 0; i < n; ++i) {
    scratch[i] = x[t->dofs[i]];
    for (int j = 0; j < i; ++j) {
      scratch[i] -= L[i * n + j] * scratch[j];
    }
    scratch[i] /= L[i * n + i];
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int j = i + 1; j < n; ++j) {
      scratch[i] -= L[j * n + i] * scratch[j];
    }
    scratch[i] /= L[i * n + i];
    x[t->dofs[i]] = scratch[i];
  }
}

/* The lower factor of a dense matrix in place; 0: not positive definite. */
static int factor(double *A, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = A[i * n + j];
      for (int k = 0; k < j; ++k) {
        sum -= A[i * n + k] * A[j * n + k];
      }
      if (i == j && !(sum > 0.0)) {
        return 0;
      }
      A[i * n + j] = i == j ? sqrt(sum) : sum / A[j * n + j];
    }
  }
  return 1;
}

/* ---------------------------------------------------------------- the stage */

/* Finds the damped trees. place (nv): position of each DOF in its tree. */
static int find_damped(const solved_step *s, int *place) {
  const qd_model *model = s->model;
  integration *n = &s->w->integration;
  int found = 0;
  memset(n->damped, 0, (size_t)model->tree.count * sizeof(int));
  for (int tree = 0; tree < model->tree.count; ++tree) {
    for (int i = model->tree.dof_start[tree]; i < model->tree.dof_start[tree + 1]; ++i) {
      const int dof = model->tree.dofs[i];
      place[dof] = i - model->tree.dof_start[tree];
      n->damped[tree] |= integration_dof_drag(s, dof) != 0.0;
    }
  }
  for (int t = 0; t < model->tendon.count; ++t) {
    if (integration_tendon_drag(s, t) != 0.0) {
      for (int d = model->tendon.dof_start[t]; d < model->tendon.dof_start[t + 1]; ++d) {
        n->damped[model->dof.tree[model->tendon.dof[d]]] = 1;
      }
    }
  }
  for (int tree = 0; tree < model->tree.count; ++tree) {
    found |= n->damped[tree];
  }
  return found;
}

static void fill_tree(const solved_step *s, const damped_tree *t, const int *place, double *mass,
                      double *whole) {
  const qd_model *model = s->model;
  const qd_workspace *w = s->w;
  const int n = t->count;
  memset(mass, 0, (size_t)n * (size_t)n * sizeof *mass);
  for (int i = 0; i < n; ++i) {
    const int dof = t->dofs[i];
    const int *chain = body_chain(model, model->dof.body[dof]).at;
    if (w->problem.variable_of_dof[dof] < 0) {
      mass[i * n + i] = 1.0;
      continue;
    }
    const int count =
        inertia_mass_row(w->problem.scratch.variables, model, &w->kinematics, &w->inertia, dof);
    for (int c = 0; c < count; ++c) {
      const int j = place[chain[c]];
      if (w->problem.variable_of_dof[chain[c]] >= 0) {
        mass[i * n + j] = mass[j * n + i] = w->problem.scratch.variables[c];
      }
    }
    mass[i * n + i] += model->parameters.joint_armature[model->dof.joint[dof]];
  }
  memcpy(whole, mass, (size_t)n * (size_t)n * sizeof *mass);
  for (int i = 0; i < n; ++i) {
    if (w->problem.variable_of_dof[t->dofs[i]] >= 0) {
      whole[i * n + i] += s->options->h * integration_dof_drag(s, t->dofs[i]);
    }
  }
}

static void add_tendon(const solved_step *s, const damped_tree *t, const int *place, double *whole,
                       int tendon) {
  const qd_model *model = s->model;
  const problem *p = &s->w->problem;
  const double drag = s->options->h * integration_tendon_drag(s, tendon);
  const int first = model->tendon.dof_start[tendon], end = model->tendon.dof_start[tendon + 1];
  for (int d = first; d < end && drag != 0.0; ++d) {
    for (int e = first; e < end; ++e) {
      const int i = model->tendon.dof[d], j = model->tendon.dof[e];
      if (model->dof.tree[i] == t->tree && integration_couples(model, i, j) &&
          p->variable_of_dof[i] >= 0 && p->variable_of_dof[j] >= 0) {
        whole[place[i] * t->count + place[j]] += drag * p->tendons.rate[d] * p->tendons.rate[e];
      }
    }
  }
}

static int fill_trees(const solved_step *s, const int *place) {
  integration *n = &s->w->integration;
  damped_tree t = {.tree = -1};
  while (integration_next_tree(&t, n, s->model)) {
    double *whole = n->whole + t.at;
    fill_tree(s, &t, place, n->mass + t.at, whole);
    for (int i = 0; i < s->model->tendon.count; ++i) {
      add_tendon(s, &t, place, whole, i);
    }
    if (!factor(whole, t.count)) {
      return 0;
    }
  }
  return 1;
}

qd_status integration_finish(const step_call *call) {
  const qd_model *model = call->model;
  integration *n = &call->w->integration;
  double *delta = call->result->delta;
  const solved_step s = {
      .model = model, .w = call->w, .options = call->options, .input = call->input, .delta = delta};
  const double h = call->options->h;
  const problem *p = &call->w->problem;
  n->applies = 0;
  if (!springs_act_early(model, call->options) || !find_damped(&s, call->w->sensitivity.place)) {
    return QD_OK;
  }
  if (!fill_trees(&s, call->w->sensitivity.place)) {
    return QD_NUMERICAL_TROUBLE;
  }
  n->applies = 1;
  memcpy(n->first, delta, (size_t)model->nv * sizeof *delta);
  damped_tree t = {.tree = -1};
  while (integration_next_tree(&t, n, model)) {
    for (int i = 0; i < t.count; ++i) {
      const int dof = t.dofs[i];
      delta[dof] -= p->variable_of_dof[dof] >= 0 ? h * p->state.v[dof] : 0.0;
    }
    damped_tree_weigh(&t, delta, n->vector);
    damped_tree_solve(&t, delta, n->vector);
    for (int i = 0; i < t.count; ++i) {
      const int dof = t.dofs[i];
      delta[dof] += p->variable_of_dof[dof] >= 0 ? h * p->state.v[dof] : 0.0;
    }
  }
  for (int dof = 0; call->result->v_next != NULL && dof < model->nv; ++dof) {
    call->result->v_next[dof] = delta[dof] / h;
  }
  qd_integrate(model, call->input->q, delta, call->result->q_next);
  return QD_OK;
}
