/* Joint limits: a row each, together one cone of an island. */
#include "dynamics/problem/parts.h"

static void add_limit(problem *p, const qd_step_options *o, island *one, int dof, double sign,
                      double gap) {
  const int column = column_of(p, one, dof), tile = column / 4;
  const tile_list list = {1, (int *)&tile};
  tile_rows_append(&one->G, &list)[column % 4] = sign;
  ++one->row_count;
  p->g[p->row_count] = gap_to_undo(p, o, gap, &p->limit[p->limit_count].capped);
  p->limit[p->limit_count].dof = dof;
  p->limit[p->limit_count].row = p->row_count++;
  p->limit[p->limit_count++].sign = sign;
  ++one->limit_count;
}

void limit_rows_assemble(problem *p, const qd_model *model, const qd_step_options *o,
                         const working_set *set, const double *q, island *one) {
  one->limit = p->limit_count;
  for (int i = 0; o->joint_limits && i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i], joint = model->dof_joint[dof];
    const double *range = model->joint_range + 2 * joint;
    if (model->dof_q[dof] < 0) {
      continue;
    }
    const double position = q[model->dof_q[dof]];
    if (isfinite(range[0]) && set->limit[2 * dof]) {
      add_limit(p, o, one, dof, 1.0, position - range[0]);
    }
    if (isfinite(range[1]) && set->limit[2 * dof + 1]) {
      add_limit(p, o, one, dof, -1.0, range[1] - position);
    }
  }
  if (one->limit_count > 0) {
    add_cone(p, one, QD_ORTHANT, one->limit_count, barrier_target(o, 1));
  }
}
