/* Tests whether a solution is unique. Where Q leaves columns without curvature, only active rows
 * can hold them.
 *
 * All solutions of a convex program share Qx and b'x, and their slacks are complementary to the
 * multipliers of any of them. So another solution lies along d from x if Qd = 0, Cd = 0, and in
 * every cone: Gd = 0 where it sticks, Gd along its slack where it slides, any Gd where it is open.
 * (A barrier is strictly convex in its slacks: Gd = 0 in every cone.) Each of these conditions gets
 * a unit of stiffness. Inverse iteration finds the softest direction of H = Q + S'S. It counts only
 * if x + t d is verified to be a solution. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

/* State of a cone in a solution that was not polished: a cone that may be held counts as held. */
static cone_state guess(const qd_cone_workspace *workspace, const cone_group *group, int c) {
  const double slack = workspace->iterate.slack[group->slot + c] / workspace->units.length;
  const double dual = workspace->iterate.dual[group->slot + c] / workspace->units.force;
  return dual < SMALL * slack ? CONE_OPEN : CONE_STICK;
}

static void hold_cone(qd_cone_workspace *workspace, const cone_group *group, int c, int polished) {
  const int cone = group->cone + c, n = group->padded;
  const double compliance = workspace->program.compliance[cone];
  const double root = compliance > 0.0 ? 1.0 / sqrt(compliance) : 0.0;
  double *u = workspace->active.rows.u + group->slot + c;
  const double *dual = workspace->polished.dual + group->slot + c;
  cone_state state = CONE_STICK;
  if (group->kind != GROUP_EQUALITY && workspace->program.exact) {
    state = polished ? (cone_state)workspace->active.state[cone] : guess(workspace, group, c);
  }
  for (int i = 0; i < group->dim; ++i) {
    u[i * n] = 0.0;
  }
  if (state == CONE_STICK) {
    conic_set_stiffness(workspace, cone, root, root, root, 0, 0);
  } else if (state == CONE_SLIDE) { /* held but along the slack's (1, -u) */
    const double size = cone_tail(group, c, workspace->polished.dual);
    for (int i = 1; i < group->dim; ++i) {
      u[i * n] = size > 0.0 ? dual[i * n] / size : 0.0;
    }
    conic_set_stiffness(workspace, cone, root, 0.0, root, 0, 0);
  } else {
    conic_set_stiffness(workspace, cone, 0.0, 0.0, 0.0, 0, 0);
  }
}

static void hold(qd_cone_workspace *workspace, int polished) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count; ++c) {
      hold_cone(workspace, group, c, polished);
    }
    for (int c = group->count; c < group->padded; ++c) {
      conic_set_stiffness(workspace, group->cone + c, 0.0, 0.0, 0.0, 0, 0);
      for (int i = 0; i < group->dim; ++i) {
        workspace->active.rows.u[group->slot + i * group->padded + c] = 0.0;
      }
    }
  }
}

/* Softest direction of H, its largest entry 1. */
static void find_softest(qd_cone_workspace *workspace, double *d) {
  tile_system *system = &workspace->system;
  uint64_t seed = 1;
  tiles_assemble(system, &workspace->active.rows, PROXIMAL_SHIFT);
  tiles_factor(system);
  for (int i = 0; i < workspace->program.column_count; ++i) {
    const double random = next_random(&seed);
    d[i] = workspace->program.column_of[i] < 0 ? 0.0 : random;
  }
  for (int round = 0; round < ROUNDS; ++round) {
    tiles_solve(system, d);
    const double size = max_norm(d, workspace->program.column_count);
    if (!(size > 0.0) || !isfinite(size)) {
      return;
    }
    for (int i = 0; i < workspace->program.column_count; ++i) {
      d[i] /= size;
    }
  }
}

/* 1 if x + t d is as good as x. */
static int is_solution(qd_cone_workspace *workspace, const double *x, const double *d, double t) {
  double *w = workspace->work.row, *move = workspace->work.rhs;
  double worst = 0.0;
  conic_zero_slots(workspace, move);
  conic_zero_slots(workspace, w);
  tiles_multiply(&workspace->system, workspace->system.G, d, move);
  tiles_multiply(&workspace->system, workspace->system.G, x, w);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count; ++c) {
      const double size = sqrt(workspace->program.compliance[group->cone + c]);
      double before = 0.0, after = 0.0;
      for (int i = 1; i < group->dim; ++i) {
        const int at = group->slot + i * group->padded + c;
        const double v = w[at] + workspace->program.g[at], moved = v + t * move[at];
        before += v * v;
        after += moved * moved;
        if (!workspace->program.exact) {
          worst = larger(worst, fabs(move[at]) / larger(size, 1e-300));
        }
      }
      const int head = group->slot + c;
      const double v = w[head] + workspace->program.g[head];
      before = larger(0.0, sqrt(before) - v);
      after = larger(0.0, sqrt(after) - v - t * move[head]);
      if (group->kind == GROUP_INTERVAL && workspace->program.exact) {
        worst = larger(worst, conic_ends_error(workspace, c, v, t * move[head]) /
                                  larger(fabs(t) * size, 1e-300));
      } else if (group->kind == GROUP_EQUALITY || !workspace->program.exact) {
        worst = larger(worst, fabs(move[head]) / larger(size, 1e-300));
      } else if (after > before) {
        worst = larger(worst, (after - before) / larger(fabs(t) * size, 1e-300));
      }
    }
  }
  return worst <= ACCEPTABLE;
}

int conic_find_free_direction(qd_cone_workspace *workspace, const qd_cone_info *info, double *out) {
  const int n = workspace->program.column_count, own = conic_caller_columns(workspace);
  const double *x = info->polished ? workspace->polished.x : workspace->iterate.x;
  double *d = workspace->work.dx, fall = 0.0;
  const int limited = workspace->ends.count > 0 && workspace->program.exact;
  if (workspace->program.definite && !(limited && conic_ends_any_at_end(workspace))) {
    return 0;
  }
  hold(workspace, info->polished);
  find_softest(workspace, d);
  tiles_multiply_Q(&workspace->system, d, workspace->work.x);
  if (!all_finite(d, n) || max_norm(workspace->work.x, n) > ACCEPTABLE) {
    return 0;
  }
  for (int i = 0; i < n; ++i) {
    fall += workspace->program.b[i] * d[i];
  }
  if (limited) {
    fall -= conic_ends_work(workspace, d);
  }
  if (fabs(fall) > ACCEPTABLE * workspace->units.b_size) {
    return 0;
  }
  static const double way[] = {1e-2, -1e-2, 1e-4, -1e-4, 1e-6, -1e-6}; /* other cones may be near */
  for (int k = 0; k < 6; ++k) {
    if (is_solution(workspace, x, d,
                    way[k] * larger(workspace->units.reach, workspace->units.length))) {
      for (int i = 0; i < n; ++i) {
        if (workspace->program.column_of[i] >= 0 && workspace->program.column_of[i] < own) {
          out[workspace->program.column_of[i]] = workspace->program.column_scale[i] * d[i];
        }
      }
      return max_norm(out, own) > 0.0;
    }
  }
  return 0;
}
