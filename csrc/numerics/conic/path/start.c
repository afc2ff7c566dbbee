/* Warm starts: the solution of a similar program as a guess.
 *
 * An exact program is polished from the guess. If nothing has changed, that costs no factor; with
 * the same active set, one or two. If the set is far from it, the polish detects that within two
 * steps, and the program is solved without the guess. The answer is certified in any case.
 *
 * A barrier's path starts near the guess. For each cone, let l = w - z / k with the guess' slack w
 * = Gx + g and multiplier z. The s and y on the path (s o y = target) with s - y / k = l follow by
 * eigenvalues along (1, +-u), u the direction of l. For the same program this is the solution; for
 * another target it is the point with the same l on that path. The stiffness k, the inverse of the
 * slack change per multiplier, divides a change between slack and multiplier.
 *
 * An exact program's path starts in this way from a point of the path, or the solution, of a
 * program with fewer rows. The products are then the natural energy, since the new rows move the
 * point far. It also starts so, with larger products, after a polish from the guess has failed,
 * since the active set is a different one: steps from there are long, while those of a cold start
 * are short where forces at their limits leave directions without curvature. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

void conic_read_start(qd_cone_workspace *workspace, const conic_answer *guess) {
  double *own_x = workspace->newton.x, *own_dual = workspace->newton.dual;
  conic_zero_slots(workspace, own_dual);
  for (int k = 0; k < workspace->program.column_count; ++k) {
    own_x[k] = workspace->program.column_of[k] < 0
                   ? 0.0
                   : guess->x[workspace->program.column_of[k]] / workspace->program.column_scale[k];
  }
  for (int i = 0; i < workspace->program.row_count; ++i) {
    if (workspace->program.slot_of[i] >= 0) {
      own_dual[workspace->program.slot_of[i]] = guess->dual[i] / workspace->program.row_scale[i];
    }
  }
  for (int i = 0; i < workspace->program.equality_count; ++i) {
    const int at = workspace->program.row_count + i;
    own_dual[workspace->program.slot_of[at]] = guess->dual_eq[i] / workspace->program.row_scale[at];
  }
}

double conic_start_limit(qd_cone_workspace *workspace) {
  if (workspace->ends.count > 0) {
    return HUGE_VAL;
  }
  switch (conic_cuts_apply(workspace)) {
  case CUTS_FEW:
    return ROUGHLY;
  case CUTS_EXACT:
    return 0.0;
  default:
    return HUGE_VAL;
  }
}

/* Positive s and y with s - y = l and s y = target. */
LANES_INLINE void split(double l, double target, double *s, double *y) {
  const double root = sqrt(l * l + 4.0 * target), large = 0.5 * (fabs(l) + root),
               small = target / large;
  *s = l > 0.0 ? large : small;
  *y = l > 0.0 ? small : large;
}

/* Places one cone. slack holds w and dual the guess' multiplier; soft is 1 / k. */
LANES_INLINE void place_cone(const conic_point *at, const cone_group *group, int c, double soft,
                             double target) {
  const int n = group->padded, first = group->slot + c;
  double *slack = at->slack, *dual = at->dual;
  double high_s, high_y, low_s, low_y;
  for (int i = first; i < first + group->dim * n; i += n) {
    slack[i] -= soft * dual[i];
  }
  const double size = cone_tail(group, c, slack), per = size > 0.0 ? 0.5 / size : 0.0;
  split(slack[first] + size, soft * target, &high_s, &high_y);
  split(slack[first] - size, soft * target, &low_s, &low_y);
  slack[first] = 0.5 * (high_s + low_s);
  dual[first] = 0.5 * (high_y + low_y) / soft;
  for (int i = first + n; i < first + group->dim * n; i += n) {
    const double along = per * slack[i];
    slack[i] = along * (high_s - low_s);
    dual[i] = along * (high_y - low_y) / soft;
  }
}

/* 1 for rows whose slack and multiplier have no product. */
LANES_INLINE int is_ends(const cone_group *group) {
  return group->kind == GROUP_ENDS || group->kind == GROUP_INTERVAL;
}

void conic_start_cones(qd_cone_workspace *workspace, const double *w) {
  const cone_product *product = &workspace->product;
  const double stiffness = PATH_START_STIFFNESS * workspace->units.force / workspace->units.length;
  const double target = PATH_START_PRODUCT * workspace->units.energy / stiffness;
  double *slack = workspace->iterate.slack, *dual = workspace->iterate.dual;
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    for (int c = 0; c < group->padded && !is_ends(group); ++c) {
      const int n = group->padded, at = group->slot + c;
      const double size = cone_tail(group, c, w), real = c < group->count;
      const double per = size > 0.0 ? 0.5 * real / size : 0.0;
      double high_s, high_z, low_s, low_z;
      split(w[at] + size, target, &high_s, &high_z);
      split(w[at] - size, target, &low_s, &low_z);
      slack[at] = real != 0.0 ? 0.5 * (high_s + low_s) : 1.0;
      dual[at] = real != 0.0 ? 0.5 * stiffness * (high_z + low_z) : 1.0;
      for (int i = 1; i < group->dim; ++i) {
        slack[at + i * n] = per * (high_s - low_s) * w[at + i * n];
        dual[at + i * n] = per * stiffness * (high_z - low_z) * w[at + i * n];
      }
      if (group->kind == GROUP_EQUALITY) {
        slack[at] = dual[at] = 0.0;
      }
    }
  }
}

void conic_enter_path(qd_cone_workspace *workspace, double factor) {
  const int exact = workspace->program.exact;
  const double product = exact ? factor * workspace->units.energy : factor;
  const cone_product *cones = &workspace->product;
  double *slack = workspace->iterate.slack, *dual = workspace->iterate.dual;
  conic_copy_columns(workspace, workspace->iterate.x, workspace->newton.x);
  conic_copy_slots(workspace, dual, workspace->newton.dual);
  conic_slacks_at(workspace, workspace->iterate.x, slack);
  if (workspace->ends.count > 0) {
    conic_copy_slots(workspace, workspace->work.row, slack);
  }
  for (const cone_group *group = cones->groups; group < groups_end(cones); ++group) {
    for (int c = 0; c < group->padded && !is_ends(group); ++c) {
      const int at = group->slot + c, cone = group->cone + c;
      if (group->kind == GROUP_EQUALITY) {
        slack[at] = 0.0;
      } else if (c < group->count) {
        const double own = workspace->program.compliance[cone];
        place_cone(&workspace->iterate, group, c, own > 0.0 ? own : 1.0,
                   exact ? product : product * cones->target[cone]);
      } else {
        slack[at] = dual[at] = 1.0;
        for (int i = 1; i < group->dim; ++i) {
          slack[at + i * group->padded] = dual[at + i * group->padded] = 0.0;
        }
      }
    }
  }
  if (workspace->ends.count > 0) {
    conic_ends_start(workspace, workspace->work.row, 0.0, product, !exact, workspace->newton.dual);
  }
}
