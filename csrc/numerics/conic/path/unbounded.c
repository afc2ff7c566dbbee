/* Directions along which the cost is unbounded below. */
#include <math.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

/* Scale of x: the natural length, or the distance of the minimum in columns with curvature. */
static double reach_of_cost(const qd_cone_workspace *workspace) {
  double reach = workspace->units.reach;
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0 &&
        conic_curvature(workspace, workspace->program.column_of[k]) > 0.0) {
      const double b = workspace->program.b[k];
      const double push = workspace->ends.count > 0 ? workspace->ends.push[k] : 0.0;
      reach = larger(reach, larger(fabs(b), fabs(b - push)));
    }
  }
  return reach;
}

/* Distance of Gd outside the cones, and violation of the equalities. */
static double leak_of(const qd_cone_workspace *workspace, const double *Gd) {
  const cone_product *product = &workspace->product;
  const cone_group *last = product->groups + product->group_count - 1;
  const double leak = product->cone_count > 0 ? larger(0.0, cones_violation(product, Gd)) : 0.0;
  return workspace->program.equality_count > 0
             ? larger(leak, max_norm(Gd + last->slot, last->count))
             : leak;
}

/* 1 if x is a direction d of unbounded descent: Qd = 0, Gd in K, Cd = 0, b'd < 0. The cost of
 * slipping forces at their limits is included. */
static int falls_for_ever(qd_cone_workspace *workspace, double reach) {
  double *Gd = workspace->work.rhs;
  double fall = 0.0, bend = 0.0;
  if (workspace->ends.count > 0 && !workspace->program.exact) {
    return 0;
  }
  for (int i = 0; i < workspace->program.column_count; ++i) {
    fall -= workspace->program.b[i] * workspace->iterate.x[i];
    bend = larger(bend, fabs(workspace->work.Qx[i]));
  }
  tiles_multiply(&workspace->system, workspace->system.G, workspace->iterate.x, Gd);
  double leak = leak_of(workspace, Gd), opening = 0.0;
  if (workspace->ends.count > 0) {
    fall -= conic_ends_rise(workspace, Gd, &opening, &leak);
  }
  return fall > CERTIFICATE_SCALE * (bend * reach + leak * workspace->units.force);
}

/* Largest opening of a cone along Gd. */
static double opening_of(const cone_product *product, const double *Gd) {
  double most = 0.0;
  for (const cone_group *group = product->groups; group < groups_end(product); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      most = larger(most, Gd[group->slot + c] - cone_tail(group, c, Gd));
    }
  }
  return most;
}

/* The same test for a barrier, whose logarithm falls for ever if a cone opens and the cost does not
 * rise: Qd = 0, b'd <= 0, Gd in K, not zero. d is the last Newton step, in which variables that
 * have converged do not move. The conditions must hold up to CERTIFICATE_SCALE natural sizes.
 * Forces at their limits have their cost of slipping. */
static int barrier_falls(qd_cone_workspace *workspace, double reach) {
  const double *d = workspace->work.dx;
  const int columns = workspace->program.column_count;
  const cone_product *product = &workspace->product;
  double *Gd = workspace->work.row2, *Qd = workspace->work.x, rise = 0.0, bend = 0.0;
  const double size = max_norm(d, columns);
  if (workspace->program.exact || !(size > FAR_OUT * reach)) {
    return 0;
  }
  const double far = CERTIFICATE_SCALE * reach / size;
  tiles_multiply(&workspace->system, workspace->system.G, d, Gd);
  tiles_multiply_Q(&workspace->system, d, Qd);
  for (int i = 0; i < columns; ++i) {
    rise += workspace->program.b[i] * d[i];
    bend += d[i] * Qd[i];
  }
  double opening = opening_of(product, Gd), leak = leak_of(workspace, Gd);
  if (workspace->ends.count > 0) {
    rise += conic_ends_rise(workspace, Gd, &opening, &leak);
  }
  return larger(far * rise, far * far * bend) < cones_target(product) &&
         far * leak < workspace->units.length && far * opening > workspace->units.length;
}

int conic_proves_unbounded(qd_cone_workspace *workspace) {
  const double reach = reach_of_cost(workspace);
  return max_norm(workspace->iterate.x, workspace->program.column_count) >= FAR_OUT * reach &&
         (falls_for_ever(workspace, reach) || barrier_falls(workspace, reach));
}
