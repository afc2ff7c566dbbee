/* Joint limits: one row each, together one cone of an island; limits of ball joints are one cone
 * each. */
#include "base/quat.h"
#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

/* MuJoCo's law of a limit beyond its margin: offset and compliance of its row. */
static void yield_at_limit(problem *p, island *one, limit_row *limit) {
  const double *solver = p->model->joint.limit_solver + 9 * p->model->dof.joint[limit->dof];
  limit->weight = p->model->dof.invweight[limit->dof];
  mujoco_reference of = mujoco_reference_of(solver, limit->weight);
  if (of.kind & QD_REFERENCE_IMPLICIT) {
    limit->weight *= metric_share_of_dof(p, one, column_of(p, one, limit->dof));
    of.weight = limit->weight;
  }
  yield_row(p, one, limit->row, &of, limit->beyond, limit->sign * p->state.v[limit->dof]);
}

static void add_limit(problem *p, island *one, int dof, double sign, double gap) {
  const int yields = contacts_yield_in_time(p->options);
  limit_row *limit = p->limit + p->count.limits;
  const double beyond = gap - p->model->joint.limit_solver[9 * p->model->dof.joint[dof] + 8];
  if (yields && !(beyond < 0.0)) {
    return;
  }
  *limit = (limit_row){.dof = dof, .row = p->count.rows, .sign = sign, .beyond = beyond};
  tile_rows_append_entry(&one->G, column_of(p, one, dof), sign);
  ++p->count.limits;
  ++p->count.rows;
  ++one->row_count;
  ++one->limit_count;
  if (yields) {
    yield_at_limit(p, one, limit);
  } else {
    p->program.g[limit->row] = gap_to_undo(p, gap, &limit->capped);
  }
}

void problem_limit_change(double change[3], const problem *p, const limit_row *limit) {
  if (limit->weight > 0.0) {
    const double *solver = p->model->joint.limit_solver + 9 * p->model->dof.joint[limit->dof];
    const mujoco_reference of = mujoco_reference_of(solver, limit->weight);
    mujoco_row_change(change, &of, limit->beyond, p->options->h,
                      limit->sign * p->state.v[limit->dof], p->solution.dual[limit->row]);
    change[0] *= limit->sign;
    change[1] *= limit->sign;
    return;
  }
  change[0] = limit->capped ? 0.0 : limit->sign;
  change[1] = 0.0;
  change[2] = limit->capped ? -p->options->recovery_speed : 0.0;
}

void limit_rows_assemble(problem *p, island *one) {
  one->limit = p->count.limits;
  for (int i = 0; p->options->joint_limits && i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (dof < 0 || p->model->dof.q[dof] < 0) {
      continue;
    }
    const double *range = p->model->joint.range + 2 * p->model->dof.joint[dof];
    const double position = p->input->q[p->model->dof.q[dof]];
    if (isfinite(range[0]) && p->set->limit[2 * dof]) {
      add_limit(p, one, dof, 1.0, position - range[0]);
    }
    if (isfinite(range[1]) && p->set->limit[2 * dof + 1]) {
      add_limit(p, one, dof, -1.0, range[1] - position);
    }
  }
  if (one->limit_count > 0) {
    add_cone(p, one, QD_ORTHANT, one->limit_count, barrier_target(p->options, 1));
  }
}

int turn_tiles_find(problem *p, const island *one, int dof) {
  p->scratch.list.count = 0;
  for (int i = dof; i < dof + 3; ++i) {
    if (p->variable_of_dof[i] >= 0) {
      tile_list_add(&p->scratch.list, column_of(p, one, i));
    }
  }
  return p->scratch.list.count > 0;
}

void turn_entries_append(problem *p, island *one, int dof, const double entry[3]) {
  double *row = tile_rows_append(&one->G, &p->scratch.list);
  for (int i = 0; i < 3; ++i) {
    if (p->variable_of_dof[dof + i] >= 0) {
      const int column = column_of(p, one, dof + i);
      row[4 * (column / 4 - p->scratch.list.tiles[0]) + column % 4] = entry[i];
    }
  }
  ++one->row_count;
}

/* Largest angle after the step. */
static double angle_to_reach(problem *p, double most, double angle, int *capped) {
  const double gap = gap_to_undo(p, most - angle, capped);
  return *capped ? angle + gap : most;
}

static void add_ball_limit(problem *p, island *one, int joint) {
  static const double none[3] = {0.0, 0.0, 0.0};
  ball_limit *limit = p->ball_limit + p->count.ball_limits;
  const int dof = p->model->joint.v[joint];
  limit->joint = joint;
  limit->dof = dof;
  limit->row = p->count.rows;
  quat_log(limit->turn, p->input->q + p->model->joint.q[joint]);
  rotation_left_jacobian_inverse(limit->inverse, limit->turn);
  if (!turn_tiles_find(p, one, dof)) {
    return;
  }
  const double most =
      angle_to_reach(p, joint_ball_range(p->model, joint), vec3_norm(limit->turn), &limit->capped);
  turn_entries_append(p, one, dof, none);
  p->program.g[p->count.rows++] = most;
  for (int i = 0; i < 3; ++i) {
    turn_entries_append(p, one, dof, limit->inverse + 3 * i);
    p->program.g[p->count.rows++] = limit->turn[i];
  }
  ++p->count.ball_limits;
  ++one->ball_limit_count;
  add_cone(p, one, QD_LORENTZ, BALL_ROWS, barrier_target(p->options, 2));
}

void ball_limit_rows_assemble(problem *p, island *one) {
  const int any = one->ball_limit_count > 0 && !contacts_yield_in_time(p->options); /* as counted */
  one->ball_limit = p->count.ball_limits;
  one->ball_limit_count = 0;
  for (int i = 0; any && i < one->variable_count; ++i) {
    const int dof = p->dof_of_variable[one->variable + i];
    if (dof < 0) {
      continue;
    }
    const int joint = p->model->dof.joint[dof];
    const int seen =
        one->ball_limit_count > 0 && p->ball_limit[p->count.ball_limits - 1].joint == joint;
    if (!seen && joint_ball_range(p->model, joint) > 0.0) {
      add_ball_limit(p, one, joint);
    }
  }
}
