#include "dynamics/derivatives/linearize_rows.h"

/* Coasting trees: D += V dcoasting/dq, V <- V dcoasting/dv, where V is -M / h in these DOFs. */
static void add_coasting_derivative(const solved_step *solved, int tree) {
  sensitivity *s = &solved->w->sensitivity;
  coasting c;
  coasting_derivative d;
  if (!coasting_part(&c, &d, solved, tree)) {
    return;
  }
  const int turn = c.dof + c.count - 3;
  for (int i = c.dof; i < c.dof + c.count; ++i) {
    double row[6];
    for (int j = 0; j < c.count; ++j) {
      row[j] = *dof_matrix_at(&s->V, i, c.dof + j);
      *dof_matrix_at(&s->V, i, c.dof + j) = 0.0;
    }
    for (int l = 0; l < c.count; ++l) {
      for (int j = 0; j < c.count; ++j) {
        *dof_matrix_at(&s->V, i, c.dof + j) += row[l] * d.by_v[l][j];
      }
      for (int j = 0; j < 3; ++j) {
        *dof_matrix_at(&s->D, i, turn + j) += row[l] * d.by_turn[l][j];
      }
    }
  }
}

void motion_columns_add(const solved_step *solved) {
  const qd_model *model = solved->model;
  qd_workspace *w = solved->w;
  sensitivity *s = &w->sensitivity;
  const step_point *point = &w->point;
  const double h = solved->options->h;
  motion_derivative_add(&s->motion, &s->D, &s->V, model, &w->kinematics, &w->inertia,
                        &point->motion, point->momentum, h);
  for (int d = 0; d < s->q_count; ++d) {
    const int dof = s->dofs[d];
    *dof_matrix_at(&s->V, dof, dof) -= model->parameters.joint_armature[model->dof.joint[dof]] / h;
  }
  for (int d = 0; d < s->q_count; ++d) {
    const int tree = model->dof.tree[s->dofs[d]];
    if (s->dofs[d] == model->tree.dofs[model->tree.dof_start[tree]]) {
      add_coasting_derivative(solved, tree);
    }
  }
}
