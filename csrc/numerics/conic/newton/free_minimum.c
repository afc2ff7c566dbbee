/* Minimisers of the cost: alone, and with the rows as springs. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

static void clear(double *a, int count) { memset(a, 0, (size_t)count * sizeof(double)); }

/* The same stiffness in all directions of all cones. */
static void scale_uniformly(qd_cone_workspace *workspace, double stiffness) {
  const cone_operator *rows = &workspace->active.rows;
  const double root = sqrt(stiffness);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    rows->diagonal[c] = rows->tangent[c] = root;
    rows->cross[c] = 0.0;
  }
  conic_zero_slots(workspace, rows->u);
  conic_scale_equalities(workspace, &workspace->active.rows);
}

/* x = argmin of the cost + stiffness/2 |Gx + g|^2 + penalty/2 |Cx + c|^2 */
void conic_least_squares(qd_cone_workspace *workspace, double stiffness, qd_cone_info *info) {
  tile_system *system = &workspace->system;
  double *x = workspace->iterate.x;
  scale_uniformly(workspace, stiffness);
  if (workspace->ends.count > 0) {
    conic_ends_soften(workspace, 1.0 / stiffness);
  }
  workspace->program.definite &= conic_factor_rows(workspace, &workspace->active.rows, info) == 0;
  cones_apply(&workspace->product, &workspace->active.rows, workspace->program.g,
              workspace->work.rhs);
  negate(workspace->work.ddual, workspace->work.rhs, workspace->program.slot_count);
  negate(x, workspace->program.b, workspace->program.column_count);
  tiles_add_transposed(system, system->S, workspace->work.ddual, x);
  tiles_solve(system, x);
}

/* w = Gx + g, and the violation |w_1..| - w_0 of each cone (over cones) */
void conic_start_rows(qd_cone_workspace *workspace, double *w, double *violation) {
  conic_slacks_at(workspace, workspace->iterate.x, w);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    double *amount = violation + group->cone;
    clear(amount, group->padded);
    for (int i = 1; i < group->dim; ++i) {
      for (int c = 0; c < group->padded; ++c) {
        amount[c] +=
            w[group->slot + i * group->padded + c] * w[group->slot + i * group->padded + c];
      }
    }
    for (int c = 0; c < group->padded; ++c) {
      amount[c] = group_is_cone(group)        ? sqrt(amount[c]) - w[group->slot + c]
                  : group->kind == GROUP_ENDS ? -HUGE_VAL
                                              : 0.0;
    }
  }
}

int conic_factor_cost(qd_cone_workspace *workspace) {
  const cone_product *product = &workspace->product;
  tile_system *system = &workspace->system;
  if (system->Q_is_diagonal) {
    return 1;
  }
  scale_uniformly(workspace, 0.0);
  if (workspace->program.equality_count > 0) {
    clear(workspace->active.rows.diagonal + product->groups[product->group_count - 1].cone,
          product->groups[product->group_count - 1].padded);
  }
  if (workspace->ends.count > 0) {
    conic_ends_soften(workspace, HUGE_VAL);
  }
  tiles_assemble(system, &workspace->active.rows, 0.0);
  return tiles_factor(system) == 0 && system->weakest_pivot > 1e-10;
}

int conic_free_minimum(qd_cone_workspace *workspace, qd_cone_info *info) {
  const cone_product *product = &workspace->product;
  tile_system *system = &workspace->system;
  double *w = workspace->work.rhs, *violation = workspace->work.aim;
  negate(workspace->iterate.x, workspace->program.b, workspace->program.column_count);
  if (workspace->program.springs_alone) {
    conic_ends_pull(workspace, workspace->iterate.x);
  } else if (!system->Q_is_diagonal && workspace->program.definite) {
    workspace->program.definite = conic_factor_cost(workspace);
    ++info->factorizations;
    if (workspace->program.definite) {
      if (workspace->ends.count > 0) {
        conic_ends_pull(workspace, workspace->iterate.x);
      }
      tiles_solve(system, workspace->iterate.x);
    }
  }
  if (!workspace->program.definite) {
    conic_least_squares(workspace, 1.0, info);
  }
  conic_start_rows(workspace, w, violation);
  conic_find_units(workspace, violation);
  if (!workspace->program.exact || !workspace->program.definite) {
    return 0;
  }
  if (workspace->program.equality_count > 0) {
    const cone_group *group = &product->groups[product->group_count - 1];
    if (max_norm(w + group->slot, group->count) > 0.0) {
      return 0;
    }
  }
  double nearest = HUGE_VAL;
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    if (product->weight[c] > 0.0) {
      nearest = smaller(nearest, -violation[c]);
    }
  }
  if (nearest <= SLIGHT * workspace->units.length) {
    return 0;
  }
  conic_zero_slots(workspace, workspace->iterate.dual);
  conic_copy_slots(workspace, workspace->iterate.slack, w);
  return workspace->ends.count == 0 ||
         conic_ends_are_springs(workspace, w, workspace->iterate.dual);
}
