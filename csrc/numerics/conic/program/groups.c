/* Assigns cones to lanes of groups: orthant rows, Lorentz cones by dimension, intervals,
 * equalities. */
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/program/structure.h"

static void add_group(qd_cone_workspace *workspace, int kind, int dim, int count) {
  cone_product *product = &workspace->product;
  cone_group *group = &product->groups[product->group_count++];
  group->kind = kind;
  group->dim = dim;
  group->count = count;
  group->padded = (count + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT;
  group->slot = workspace->program.slot_count;
  group->cone = workspace->program.lane_count;
  workspace->program.slot_count += dim * group->padded;
  workspace->program.lane_count += group->padded;
  if (kind == GROUP_ORTHANT || kind == GROUP_LORENTZ) {
    product->cone_count += count;
  }
}

/* Counts the rows of each cone that matter. Trailing rows without entries and offset (tangents
 * along which a planar contact cannot move, zero friction) are zero for any x and are omitted. */
static void count_cone_rows(qd_cone_workspace *workspace, const qd_cone_program *program) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k], ++k) {
    int rows = program->cone_dim[k];
    if (program->cone_kind[k] == QD_LORENTZ) {
      while (rows > 1 && conic_row_is_empty(workspace, row + rows - 1) &&
             program->g[row + rows - 1] == 0.0) {
        --rows;
      }
    }
    workspace->program.cone_rows[k] = rows;
  }
}

/* One group for all linear rows, one for each dimension of Lorentz cones, one for equalities. */
void conic_make_groups(qd_cone_workspace *workspace, const qd_cone_program *program) {
  int largest = 1;
  count_cone_rows(workspace, program);
  workspace->program.slot_count = workspace->program.lane_count = 0;
  workspace->product.group_count = workspace->product.cone_count = 0;
  workspace->structure.dim_count[1] = 0;
  int intervals = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim =
        conic_cone_is_linear(workspace, program, k) ? 1 : workspace->program.cone_rows[k];
    if (program->cone_kind[k] == QD_INTERVAL) {
      intervals += program->cone_dim[k];
      continue;
    }
    for (; largest < dim; ++largest) {
      workspace->structure.dim_count[largest + 1] = 0;
    }
    workspace->structure.dim_count[dim] += dim == 1 ? workspace->program.cone_rows[k] : 1;
  }
  for (int dim = 1; dim <= largest; ++dim) {
    if (workspace->structure.dim_count[dim] > 0) {
      workspace->structure.dim_group[dim] = workspace->product.group_count;
      add_group(workspace, dim == 1 ? GROUP_ORTHANT : GROUP_LORENTZ, dim,
                workspace->structure.dim_count[dim]);
      workspace->structure.dim_count[dim] = 0; /* from here on: lanes placed */
    }
  }
  workspace->ends.count = intervals;
  if (intervals > 0) {
    interval_ends *ends = &workspace->ends;
    ends->taken = ends->any_rigid = 0;
    ends->low = workspace->product.group_count;
    ends->high = ends->low + 1;
    ends->rows = ends->low + 2;
    add_group(workspace, GROUP_ENDS, 1, intervals);
    add_group(workspace, GROUP_ENDS, 1, intervals);
    add_group(workspace, GROUP_INTERVAL, 1, intervals);
    conic_ends_clear_padding(workspace);
  }
  if (program->equality_count > 0) {
    add_group(workspace, GROUP_EQUALITY, 1, program->equality_count);
  }
}

/* Initial values of every lane, before cones are placed. */
static void clear_lanes(qd_cone_workspace *workspace) {
  cone_product *product = &workspace->product;
  const size_t bytes = (size_t)workspace->program.lane_count * sizeof(double);
  conic_zero_slots(workspace, workspace->program.g);
  memset(product->weight, 0, bytes);
  memset(product->inverse.diagonal, 0, bytes); /* equalities have no slack */
  memset(workspace->program.compliance, 0, bytes);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    product->target[c] = 1.0;
    workspace->program.lane_scale[c] = 1.0;
  }
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    if (group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = 0; c < group->count; ++c) {
      product->weight[group->cone + c] = 1.0;
    }
    for (int c = group->count; c < group->padded; ++c) {
      workspace->program.g[group->slot + c] = 1.0;
    }
  }
}

/* Places `count` linear rows from `row` on in adjacent lanes. */
static void place_rows(qd_cone_workspace *workspace, const double *g, double target, int row,
                       int count) {
  const cone_group *group = &workspace->product.groups[workspace->structure.dim_group[1]];
  const int lane = workspace->structure.dim_count[1], slot = group->slot + lane;
  int *slot_of = workspace->program.slot_of + row;
  double *own_target = workspace->product.target + group->cone + lane;
  workspace->structure.dim_count[1] += count;
  for (int i = 0; i < count; ++i) {
    slot_of[i] = slot + i;
  }
  for (int i = 0; i < count; ++i) {
    own_target[i] = target;
  }
  memcpy(workspace->program.g + slot, g + row, (size_t)count * sizeof(double));
}

static void place_cone(qd_cone_workspace *workspace, const double *g, double target, int row,
                       int dim) {
  const cone_group *group = &workspace->product.groups[workspace->structure.dim_group[dim]];
  const int lane = workspace->structure.dim_count[dim]++;
  workspace->product.target[group->cone + lane] = target;
  for (int i = 0; i < dim; ++i) {
    const int slot = group->slot + i * group->padded + lane;
    workspace->program.slot_of[row + i] = slot;
    workspace->program.g[slot] = g[row + i];
  }
}

/* Places all cones in row order, with g, targets and weights. */
void conic_place_cones(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const cone_product *product = &workspace->product;
  int row = 0;
  clear_lanes(workspace);
  workspace->program.exact = 1;
  for (int i = 0; i < program->row_count; ++i) {
    workspace->program.row_scale[i] = 1.0;
  }
  for (int k = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    const int kept = workspace->program.cone_rows[k];
    if (target > 0.0) {
      workspace->program.exact = 0;
    }
    if (program->cone_kind[k] == QD_INTERVAL) {
      for (int i = row; i < row + kept; ++i) {
        conic_ends_place(workspace, i, program->g[i], target);
      }
    } else if (conic_cone_is_linear(workspace, program, k)) {
      place_rows(workspace, program->g, target, row, kept);
    } else {
      place_cone(workspace, program->g, target, row, kept);
    }
    for (int i = kept; i < program->cone_dim[k]; ++i) {
      workspace->program.slot_of[row + i] = -1;
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    workspace->program.slot_of[row + i] = product->groups[product->group_count - 1].slot + i;
  }
}
