/* Natural units of a program: lengths of slacks, forces of multipliers, and the distance that x
 * moves. */
#include <math.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

/* Distance of equalities from x = 0, in scaled columns; 1 if they give none. */
static double equality_offset(const qd_cone_workspace *workspace) {
  const cone_product *product = &workspace->product;
  if (workspace->program.equality_count == 0) {
    return 1.0;
  }
  const cone_group *group = &product->groups[product->group_count - 1];
  const double offset = max_norm(workspace->program.g + group->slot, group->count);
  return offset > 0.0 ? offset : 1.0;
}

/* Sums from which natural units follow. */
typedef struct unit_sums {
  double roots, near_roots; /* mean square roots of the offsets: all cones, violated ones */
  double worst;             /* largest violation */
  double row, target;       /* largest norm of a row (1: no rows) and largest product */
} unit_sums;

static unit_sums sum_units(const qd_cone_workspace *workspace, const double *violation) {
  const cone_product *product = &workspace->product;
  unit_sums sums = {0.0, 0.0, 0.0, 0.0, 0.0};
  int near_count = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      sums.worst = larger(sums.worst, violation[group->cone + c]);
      const double root = sqrt(fabs(workspace->program.g[group->slot + c]));
      sums.roots += root;
      if (violation[group->cone + c] >= 0.0) {
        sums.near_roots += root;
        ++near_count;
      }
      sums.row = larger(sums.row, workspace->program.compliance[group->cone + c]);
      sums.target = larger(sums.target, product->target[group->cone + c]);
    }
  }
  sums.roots = product->cone_count > 0 ? sums.roots / product->cone_count : 0.0;
  sums.row = sums.row > 0.0 ? sqrt(sums.row) : 1.0;
  sums.near_roots = near_count > 0 ? sums.near_roots / near_count : sums.roots;
  return sums;
}

/* Largest force that the cost asks for, including interval rows at x = 0. */
static double largest_push(const qd_cone_workspace *workspace) {
  const double *b = workspace->program.b, *push = workspace->ends.push;
  const int columns = workspace->program.column_count;
  double largest = 0.0;
  if (workspace->ends.count == 0) {
    return max_norm(b, columns);
  }
  for (int k = 0; k < columns; ++k) {
    largest = larger(largest, fabs(b[k] - push[k]));
  }
  return largest;
}

/* Natural units. Length: a mean of the slacks at x = 0 that far cones do not dominate (of square
 * roots), or a share of the largest violation. Force: the force that the rows must carry, cost over
 * row size. Both grow if a target asks for more energy; a nearly zero force gets a minimum, because
 * otherwise the length would grow beyond what rows resolve. Measured on contact programs: within a
 * factor 3 of the best hand-picked pair (10 mm, 10 N); violation and violation / compliance alone
 * cost up to twice the iterations. Nearly linear programs, whose cost alone moves x far beyond the
 * rows, use `by_offsets` after the usual lengths have failed. */
void conic_find_units(qd_cone_workspace *workspace, const double *violation) {
  conic_units *units = &workspace->units;
  const unit_sums sums = sum_units(workspace, violation);
  const int exact = workspace->program.exact, columns = workspace->program.column_count;
  const double worst = units->by_offsets ? 0.0 : sums.worst,
               x = max_norm(workspace->iterate.x, columns);
  const double row = sums.row;
  units->b_size = largest_push(workspace);
  double length = LENGTH_SHARE * larger(sums.roots * sums.roots, 0.01 * worst);
  double force = FORCE_SHARE * units->b_size / row;
  if (!exact && !units->by_offsets) { /* for touching contacts, the free motion is not rounding */
    length = larger(length, SLIGHT * row * x);
  }
  if (length == 0.0 && units->by_offsets) {
    length = row * equality_offset(workspace);
  }
  if (length == 0.0) {
    length = force > 0.0 ? force * row * row : 1.0;
  }
  if (force == 0.0) {
    force = length / (row * row);
  }
  if (!exact) {
    force = larger(force, SLIGHT * length / (row * row));
  }
  units->near_length = LENGTH_SHARE * larger(sums.near_roots * sums.near_roots, 0.01 * worst);
  if (units->near_length == 0.0) {
    units->near_length = length;
  }
  const double more = sums.target > length * force ? sqrt(sums.target / (length * force)) : 1.0;
  units->length = length * more;
  units->force = force * more;
  units->energy = units->length * units->force;
  units->reach = workspace->program.definite ? larger(length / row, x) : length / row;
  if (units->b_size == 0.0) {
    units->b_size = units->force * row;
  }
  if (units->by_offsets) { /* contacts are far stiffer than the cost, so held rows must be stiffer
                              still */
    workspace->active.hard_penalty =
        larger(HARD_ROW_PENALTY, sqrt(HARD_ROW_PENALTY) * units->force / units->length * row * row);
  }
}
