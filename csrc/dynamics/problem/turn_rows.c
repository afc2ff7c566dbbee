/* MuJoCo's rows of the three rotations of a ball or free joint: dry friction about the axes of the
 * body, which rotate with it, and the limit of a ball joint's angle, along minus the axis of its
 * rotation. */
#include "base/quat.h"
#include "base/rounding.h"
#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

static mujoco_reference law_of(const qd_model *model, const turn_row *row, double weight) {
  return row->is_limit ? mujoco_reference_of(model->joint.limit_solver + 9 * row->joint, weight)
                       : mujoco_friction_of(model->joint.friction_solver + 8 * row->joint, weight);
}

static void add_row(problem *p, island *one, turn_row row) {
  mujoco_reference of = law_of(p->model, &row, p->model->dof.invweight[row.dof]);
  turn_tiles_find(p, one, row.dof);
  turn_entries_append(p, one, row.dof, row.axis);
  row.shares = metric_share_weigh(&of, p, one, &one->G, one->G.count - 1);
  row.weight = of.weight;
  row.row = p->count.rows++;
  yield_row(p, one, row.row, &of, row.beyond, vec3_dot(row.axis, p->state.v + row.dof));
  p->turn_row[p->count.turn_rows++] = row;
  ++one->turn_row_count;
}

static void add_friction(problem *p, island *one, int joint, int dof) {
  const double most = p->model->parameters.joint_friction[joint];
  const int first = dof - p->model->joint.v[joint];
  double R[9];
  quat_to_mat3(R, p->input->q + p->model->joint.q[joint] + first);
  for (int i = 0; i < 3; ++i) {
    turn_row row = {.joint = joint, .dof = dof};
    mat3_column(row.axis, R, i);
    for (int j = 0; j < 3; ++j) { /* e_j x axis */
      const double unit[3] = {j == 0, j == 1, j == 2};
      double turned[3];
      vec3_cross(turned, unit, row.axis);
      for (int k = 0; k < 3; ++k) {
        row.slope[3 * k + j] = turned[k];
      }
    }
    p->program.lower[p->count.rows] = -most;
    p->program.upper[p->count.rows] = most;
    ++one->intervals;
    add_row(p, one, row);
  }
}

/* The rotation's axis a changes by (1 - a a') / angle times the change of the rotation vector. */
static void add_limit(problem *p, island *one, int joint, int dof) {
  turn_row row = {.joint = joint, .dof = dof, .is_limit = 1};
  double turn[3], inverse[9];
  quat_log(turn, p->input->q + p->model->joint.q[joint]);
  const double angle = vec3_norm(turn);
  row.beyond =
      joint_ball_range(p->model, joint) - angle - p->model->joint.limit_solver[9 * joint + 8];
  if (!(row.beyond < 0.0) || angle < NEGLIGIBLE) {
    return;
  }
  vec3_scale(row.axis, turn, -1.0 / angle);
  rotation_left_jacobian_inverse(inverse, turn);
  for (int j = 0; j < 3; ++j) {
    double column[3];
    mat3_column(column, inverse, j);
    vec3_axpy(column, -vec3_dot(row.axis, column), row.axis);
    for (int k = 0; k < 3; ++k) {
      row.slope[3 * k + j] = -column[k] / angle;
    }
  }
  add_row(p, one, row);
}

/* 1 for the first free rotation of a joint. */
static int begins_turn(const problem *p, const island *one, int i) {
  const int dof = p->dof_of_variable[one->variable + i];
  if (dof < 0 || !dof_turns(p->model, dof)) {
    return 0;
  }
  const int before = i > 0 ? p->dof_of_variable[one->variable + i - 1] : -1;
  return before < 0 || !dof_turns(p->model, before) ||
         p->model->dof.joint[before] != p->model->dof.joint[dof];
}

void turn_rows_assemble(problem *p, island *one) {
  const qd_model *model = p->model;
  one->turn_row = p->count.turn_rows;
  one->turn_row_count = 0;
  for (int limits = 0; limits < 2 && contacts_yield_in_time(p->options); ++limits) {
    const int counted = one->turn_row_count;
    for (int i = 0; i < one->variable_count; ++i) {
      if (!begins_turn(p, one, i)) {
        continue;
      }
      const int joint = model->dof.joint[p->dof_of_variable[one->variable + i]];
      const int dof = model->joint.v[joint] + (model->joint.type[joint] == QD_FREE ? 3 : 0);
      if (!limits && model->parameters.joint_friction[joint] > 0.0) {
        add_friction(p, one, joint, dof);
      } else if (limits && p->options->joint_limits && joint_ball_range(model, joint) > 0.0) {
        add_limit(p, one, joint, dof);
      }
    }
    if (one->turn_row_count > counted) {
      add_cone(p, one, limits ? QD_ORTHANT : QD_INTERVAL, one->turn_row_count - counted,
               barrier_target(p->options, 1));
    }
  }
}

void problem_turn_change(turn_change *change, const problem *p, const turn_row *row,
                         const double *delta) {
  const mujoco_reference of = law_of(p->model, row, row->weight);
  const double force = p->solution.dual[row->row];
  double by[3], moved[3];
  mujoco_row_change(by, &of, row->beyond, p->options->h, vec3_dot(row->axis, p->state.v + row->dof),
                    force);
  vec3_copy(moved, delta + row->dof);
  vec3_axpy(moved, by[1], p->state.v + row->dof);
  for (int j = 0; j < 3; ++j) {
    double column[3];
    mat3_column(column, row->slope, j);
    change->by_q[j] = vec3_dot(moved, column) + (row->is_limit ? by[0] * row->axis[j] : 0.0);
    change->by_v[j] = by[1] * row->axis[j];
  }
  change->by_h = by[2];
  for (int i = 0; i < 9; ++i) {
    change->force[i] = force * row->slope[i];
  }
}
