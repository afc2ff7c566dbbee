/* Method of multipliers: solves the exact program where rounding ends the path.
 *
 * The path's matrix Q + S'S grows without bound in the directions that contacts hold, by dual /
 * slack ~ 1e16 at its end. Where contacts are (nearly) redundant, rounding of the large part then
 * drowns Q in the free directions. Here the stiffness is bounded: with a penalty p for each cone
 * and multipliers l,
 *
 *     x(l) = argmin 1/2 x'Qx + b'x + sum |P_K(l - p (Gx + g))|^2 / 2p,    l <- P_K(l - p (Gx + g)),
 *
 * the proximal point method on the dual (Rockafellar 1976), which needs neither unique multipliers
 * nor strict complementarity. The inner cost is convex with a continuous derivative Qx + b -
 * G'P_K(l - p w): Newton's method with the projection's Jacobian and a line search on that
 * derivative converges globally. At its solution, stationarity and complementarity hold, and the
 * remaining error is the change of l, |change of l| / p in slack. It vanishes with the repetitions,
 * faster for larger p. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

static void set_penalties(qd_cone_workspace *workspace, double stiffness) {
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    workspace->multipliers.penalty[c] = workspace->program.compliance[c] > 0.0
                                            ? stiffness / workspace->program.compliance[c]
                                            : workspace->units.force / workspace->units.length;
  }
}

/* P_K(z) of one lane, z = dual - p w; if requested, also the stiffness from p times its
 * Jacobian. */
LANES_INLINE void respond_lane(qd_cone_workspace *workspace, const cone_group *group, int c,
                               const double *w, const double *dual, double *out, int jacobian) {
  const int n = group->padded, at = group->slot + c, cone = group->cone + c;
  const double p = workspace->multipliers.penalty[cone], root = sqrt(p);
  const double head = dual[at] - p * w[at];
  double sum = 0.0;
  out[at] = head;
  for (int i = 1; i < group->dim; ++i) {
    const double z = dual[at + i * n] - p * w[at + i * n];
    out[at + i * n] = z;
    sum += z * z;
  }
  const double size = sqrt(sum), per = size > 0.0 ? 1.0 / size : 0.0;
  if (jacobian) {
    for (int i = 1; i < group->dim; ++i) {
      workspace->active.rows.u[at + i * n] = out[at + i * n] * per;
    }
  }
  if (group->kind == GROUP_EQUALITY || head >= size) {
    if (jacobian) {
      conic_set_stiffness(workspace, cone, root, root, root, 1, 1);
    }
  } else if (head <= -size) {
    for (int i = 0; i < group->dim; ++i) {
      out[at + i * n] = 0.0;
    }
    if (jacobian) {
      conic_set_stiffness(workspace, cone, 0.0, 0.0, 0.0, 0, 0);
    }
  } else {
    const double beta = 0.5 * (head + size);
    out[at] = beta;
    for (int i = 1; i < group->dim; ++i) {
      out[at + i * n] *= beta * per;
    }
    if (jacobian) {
      conic_set_stiffness(workspace, cone, root, 0.0, sqrt(p * beta * per), 1, 0);
    }
  }
}

/* The multipliers for slacks w. */
QD_MULTIVERSION
static void respond(qd_cone_workspace *workspace, const double *w, const double *dual, double *out,
                    int jacobian) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count; ++c) {
      respond_lane(workspace, group, c, w, dual, out, jacobian);
    }
    for (int c = group->count; c < group->padded; ++c) {
      if (jacobian) {
        conic_set_stiffness(workspace, group->cone + c, 0.0, 0.0, 0.0, 0, 0);
      }
      for (int i = 0; i < group->dim; ++i) {
        out[group->slot + i * group->padded + c] = 0.0;
        workspace->active.rows.u[group->slot + i * group->padded + c] = 0.0;
      }
    }
  }
}

/* Slope of the inner cost at w + t dw: linear + t curvature - response'dw. */
static double slope(qd_cone_workspace *workspace, double t, const double *w, const double *dw,
                    double linear, double curvature) {
  double *trial = workspace->work.dslack, *response = workspace->work.ddual;
  for (int i = 0; i < workspace->program.slot_count; ++i) {
    trial[i] = w[i] + t * dw[i];
  }
  respond(workspace, trial, workspace->newton.dual, response, 0);
  return linear + t * curvature - dot_product(response, dw, workspace->program.slot_count);
}

/* Length of a step along dx: 1, or near the root of the increasing slope if 1 overshoots. */
static double search(qd_cone_workspace *workspace, const double *w, const double *dw) {
  const int columns = workspace->program.column_count;
  const double *dx = workspace->work.dx;
  const double linear =
      dot_product(workspace->work.Qx, dx, columns) + dot_product(workspace->program.b, dx, columns);
  tiles_multiply_Q(&workspace->system, dx, workspace->work.x);
  const double curvature = dot_product(workspace->work.x, dx, columns);
  const double first = slope(workspace, 0.0, w, dw, linear, curvature);
  double low = 0.0, high = 1.0, below = first;
  double above = slope(workspace, 1.0, w, dw, linear, curvature);
  if (!(first < 0.0) || above <= -WELL_LESS * first) {
    return 1.0;
  }
  double t = 1.0;
  for (int k = 0, side = 0; k < SEARCH_LIMIT; ++k) { /* false position, Illinois variant */
    t = low + (high - low) * (below / (below - above));
    const double value = slope(workspace, t, w, dw, linear, curvature);
    if (fabs(value) <= -WELL_LESS * first) {
      break;
    }
    if (value < 0.0) {
      low = t;
      below = value;
      if (side < 0) {
        above *= 0.5;
      }
      side = -1;
    } else {
      high = t;
      above = value;
      if (side > 0) {
        below *= 0.5;
      }
      side = 1;
    }
  }
  return t;
}

/* Newton's method on the inner problem from newton's x and slack; returns the relative gradient.
 * Leaves the multipliers in ddual_aim. */
static double minimise(qd_cone_workspace *workspace, qd_cone_info *info) {
  tile_system *system = &workspace->system;
  double *x = workspace->newton.x, *w = workspace->newton.slack, *dx = workspace->work.dx;
  double *dw = workspace->work.dslack_aim;
  double best = HUGE_VAL;
  for (int iteration = 0, idle = 0;; ++iteration) {
    respond(workspace, w, workspace->newton.dual, workspace->work.ddual_aim, 1);
    conic_column_residual(workspace, x, workspace->work.ddual_aim);
    const double size = larger(workspace->units.b_size,
                               max_norm(workspace->work.Qx, workspace->program.column_count));
    const double error =
        max_norm(workspace->work.residual_x, workspace->program.column_count) / size;
    idle = error < 0.5 * best ? 0 : idle + 1;
    best = smaller(best, error);
    if (error <= CANCELLED || !(error < HUGE_VAL) || iteration == INNER_LIMIT ||
        (error < 1e-10 && idle > 1) || idle > 12 || conic_is_stopped(workspace)) {
      return error;
    }
    tiles_assemble(system, &workspace->active.rows,
                   workspace->program.definite ? 0.0 : PROXIMAL_SHIFT);
    tiles_factor(system);
    ++info->factorizations;
    negate(dx, workspace->work.residual_x, workspace->program.column_count);
    tiles_solve(system, dx);
    conic_zero_slots(workspace, dw);
    tiles_multiply(system, system->G, dx, dw);
    const double t = search(workspace, w, dw);
    add_scaled(x, t, dx, workspace->program.column_count);
    tiles_multiply(system, system->G, x, w);
    add_scaled(w, 1.0, workspace->program.g, workspace->program.slot_count);
  }
}

/* Largest change of multipliers, as a shift of slack. */
static double shift_of_slack(const qd_cone_workspace *workspace, const double *before,
                             const double *after) {
  double worst = 0.0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int i = 0; i < group->dim; ++i) {
      for (int c = 0; c < group->count; ++c) {
        const int at = group->slot + i * group->padded + c;
        worst = larger(worst, fabs(after[at] - before[at]) /
                                  workspace->multipliers.penalty[group->cone + c]);
      }
    }
  }
  return worst;
}

void conic_read_states(qd_cone_workspace *workspace) {
  const double *dual = workspace->polished.dual, *slack = workspace->polished.slack;
  const double force = WEAK * workspace->units.force, length = WEAK * workspace->units.length;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind != GROUP_EQUALITY; ++c) {
      const int at = group->slot + c;
      cone_state state = dual[at] > force && slack[at] > length ? CONE_SLIDE : CONE_WEAK;
      if (dual[at] - cone_tail(group, c, dual) > force) {
        state = CONE_STICK;
      } else if (slack[at] - cone_tail(group, c, slack) > length) {
        state = CONE_OPEN;
      }
      workspace->active.state[group->cone + c] = (int)state;
    }
  }
  if (workspace->ends.count > 0) {
    conic_ends_read_states(workspace, dual);
  }
}

/* Stores the iterate, and its slack (after - z) / p, which is complementary to `after`. */
static void keep(qd_cone_workspace *workspace) {
  const double *dual = workspace->newton.dual, *w = workspace->newton.slack;
  const double *after = workspace->work.ddual_aim;
  conic_copy_columns(workspace, workspace->polished.x, workspace->newton.x);
  conic_copy_slots(workspace, workspace->polished.dual, after);
  conic_zero_slots(workspace, workspace->polished.slack);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int i = 0; i < group->dim && group->kind != GROUP_EQUALITY; ++i) {
      for (int c = 0; c < group->count; ++c) {
        const int at = group->slot + i * group->padded + c;
        workspace->polished.slack[at] =
            (after[at] - dual[at]) / workspace->multipliers.penalty[group->cone + c] + w[at];
      }
    }
  }
}

/* Length scale of slacks: their natural unit, or a larger offset or free motion (the latter unless
 * `by_offsets`). */
static double span(const qd_cone_workspace *workspace) {
  const double motion = workspace->units.by_offsets ? 0.0 : workspace->units.b_size;
  double largest = workspace->units.length;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind != GROUP_EQUALITY; ++c) {
      largest =
          larger(largest, larger(fabs(workspace->program.g[group->slot + c]),
                                 sqrt(workspace->program.compliance[group->cone + c]) * motion));
    }
  }
  return largest;
}

/* 1 if repetitions cannot improve the answer: it has converged, or its remaining error is rounding
 * of the inner problem, which neither repetitions nor more stiffness reduce. */
static int is_enough(double best, double error, double gradient) {
  return best <= CANCELLED || (best <= ACCEPTED && error <= gradient);
}

/* Repetitions from (x, dual); returns the relative error of the point in polished, HUGE_VAL:
 * none. */
static double repeat(qd_cone_workspace *workspace, int limit, qd_cone_info *info) {
  double *x = workspace->newton.x, *w = workspace->newton.slack, *dual = workspace->newton.dual;
  double *after = workspace->work.ddual_aim;
  const double length = span(workspace);
  double stiffness = FIRST_STIFFNESS, best = HUGE_VAL, last = HUGE_VAL;
  conic_begin_stage(workspace);
  workspace->origin = ORIGIN_MULTIPLIERS;
  workspace->polish.split_width = 0;
  conic_copy_columns(workspace, x, workspace->iterate.x);
  conic_slacks_at(workspace, x, w);
  conic_copy_slots(workspace, dual, workspace->iterate.dual);
  for (int outer = 0, idle = 0; outer < limit && idle < 4 && !conic_is_stopped(workspace);
       ++outer, ++info->iterations) {
    set_penalties(workspace, stiffness);
    const double gradient = minimise(workspace, info);
    const double error = larger(gradient, shift_of_slack(workspace, dual, after) / length);
    if (!(error < HUGE_VAL)) {
      break;
    }
    if (error < best) {
      idle = error < HARDLY_LESS * best ? 0 : idle + 1;
      best = error;
      keep(workspace);
    } else {
      ++idle;
    }
    conic_copy_slots(workspace, dual, after);
    if (is_enough(best, error, gradient)) {
      break;
    }
    if (stiffness < HARD_ROW_PENALTY) {
      idle = 0;
      if (error > 0.1 * last || outer > 1) {
        stiffness *= TENFOLD;
      }
    }
    last = error;
  }
  return best;
}

int augmented_lagrangian(qd_cone_workspace *workspace, double tolerance, int limit, int polish,
                         int *polished, qd_cone_info *info) {
  const double error = repeat(workspace, limit, info);
  *polished = 0;
  if (error > larger(tolerance, workspace->path.error)) {
    workspace->origin = ORIGIN_PATH;
    return 0;
  }
  conic_copy_point(workspace, &workspace->iterate, &workspace->polished);
  const polish_guess found = {ORIGIN_MULTIPLIERS, 0, 0, 0.0, 0.0};
  *polished = polish && conic_polish(workspace, &found, info);
  if (!*polished) {
    conic_copy_point(workspace, &workspace->polished, &workspace->iterate);
    conic_read_states(workspace);
  }
  return *polished || error <= larger(tolerance, ACCEPTABLE);
}
