/* Newton's method on the active set. It starts from the end of the path, from the dual active set,
 * or, where too many contacts touch for that, from the guess that all contacts rest. That guess is
 * right for stacks and costs one factorisation where it is wrong.
 *
 * The solution is a root of the natural map: with z = dual - r slack, dual = P_K(z). The derivative
 * of P_K at z shows which directions of a cone are held (eigenvalue 1: the slack does not move),
 * which are free (0: the multiplier vanishes) and, while sliding, the stiffness across the sliding
 * direction:
 *
 *     open     z in -K      all free
 *     stick    z in K       all held
 *     slide    otherwise    (1, u) held, (1, -u) free, across it stiffness k = r v / (1 - v)
 *
 * with u = z_1 / |z_1|, v = (1 + z_0 / |z_1|) / 2 (Fukushima, Luo, Tseng 2002). With the projector
 * H on held directions and the stiffness M, the Newton step solves Qx + b = G'dual and
 *
 *     new slack = 0                                              along H,
 *     new dual = H dual - M (dual / r + new slack - slack)       elsewhere.
 *
 * Held rows have a large finite stiffness, new dual = H dual - M (new slack) along H; further
 * iterations remove the remaining slack. Redundant held rows (coplanar contacts) share the load and
 * do not affect x. r = force unit / length unit decides which set is found from a distant start; at
 * the solution any r will do. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

/* Sets padded lanes to zero. */
static void clear_padding(qd_cone_workspace *workspace, double *rows) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = group->count; c < group->padded; ++c) {
      conic_set_stiffness(workspace, group->cone + c, 0.0, 0.0, 0.0, 0, 0);
      for (int i = 0; i < group->dim; ++i) {
        workspace->active.rows.u[group->slot + i * group->padded + c] = 0.0;
        rows[group->slot + i * group->padded + c] = 0.0;
      }
    }
  }
}

/* out = dual / r */
LANES_INLINE void as_slack(const qd_cone_workspace *workspace, const double *dual, double *out) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    const double *per_split = workspace->polish.per_split + group->cone;
    for (int i = 0; i < group->dim; ++i) {
      for (int c = 0; c < group->padded; ++c) {
        out[group->slot + i * group->padded + c] =
            dual[group->slot + i * group->padded + c] * per_split[c];
      }
    }
  }
}

/* One Newton step from (x, dual) with the set of conic_project. w: slack of x, updated. */
QD_MULTIVERSION
static void newton_step(qd_cone_workspace *workspace, int factor, double *x, double *dual,
                        double *w) {
  tile_system *system = &workspace->system;
  const cone_product *product = &workspace->product;
  const int slots = workspace->program.slot_count, columns = workspace->program.column_count;
  double *offset = workspace->work.dslack, *held = workspace->work.ddual,
         *load = workspace->work.dslack_aim;
  double *step = workspace->work.dx, *moved = workspace->work.row2; /* padded lanes stay zero */
  if (factor) {
    tiles_assemble(system, &workspace->active.rows,
                   conic_set_is_definite(workspace) ? 0.0 : PROXIMAL_SHIFT);
    tiles_factor(system);
  }
  /* soft directions: new dual = -M (new slack + offset), offset = dual / r - slack without its held
   * part */
  as_slack(workspace, dual, held);
  add_scaled(held, -1.0, w, slots);
  cones_apply(product, &workspace->active.hard, held, offset);
  for (int i = 0; i < slots; ++i) {
    offset[i] = held[i] - offset[i];
  }
  cones_apply(product, &workspace->active.hard, dual, held);
  if (workspace->ends.count > 0) {
    conic_ends_hold(workspace, workspace->work.ddual_aim, offset, held);
  }
  for (int i = 0; i < slots; ++i) {
    load[i] = w[i] + offset[i];
  }
  cones_apply(product, &workspace->active.stiffness, load, dual);
  for (int i = 0; i < slots; ++i) {
    dual[i] = held[i] - dual[i];
  }
  tiles_multiply_Q(system, x, step);
  for (int i = 0; i < columns; ++i) {
    step[i] = -workspace->program.b[i] - step[i];
  }
  tiles_add_transposed(system, system->G, dual, step);
  tiles_solve(system, step);
  add_scaled(x, 1.0, step, columns);
  tiles_multiply(system, system->G, step, moved);
  cones_apply(product, &workspace->active.stiffness, moved, load);
  for (int i = 0; i < slots; ++i) {
    dual[i] -= load[i];
    w[i] += moved[i];
  }
}

/* Relative error of the natural map at (x, dual); `projected` is the multiplier P_K(z). */
LANES_INLINE double evaluate(qd_cone_workspace *workspace, double r, const double *x,
                             const double *dual, const double *w, double *projected) {
  const double map = r * conic_project(workspace, w, dual, workspace->work.aim, projected);
  conic_column_residual(workspace, x, projected);
  const double size = larger(workspace->units.b_size,
                             max_norm(workspace->work.Qx, workspace->program.column_count));
  const double force =
      larger(workspace->units.force, max_norm(projected, workspace->program.slot_count));
  if (!all_finite(workspace->work.residual_x, workspace->program.column_count)) {
    return HUGE_VAL;
  }
  return larger(map / force,
                max_norm(workspace->work.residual_x, workspace->program.column_count) / size);
}

/* r, force over length: from natural units, or for the path's end from that point itself, unless
 * its forces or slacks are rounding because nothing or everything is in contact. */
static double find_r(const qd_cone_workspace *workspace, solution_origin origin) {
  const double natural = workspace->units.force / workspace->units.near_length;
  if (origin == ORIGIN_PATH || origin == ORIGIN_REST) {
    return natural;
  }
  if (origin != ORIGIN_PATH_END) {
    return TENFOLD * natural;
  }
  double force = 0.0, length = 0.0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      force = larger(force, workspace->iterate.dual[group->slot + c]);
      length = larger(length, workspace->iterate.slack[group->slot + c]);
    }
  }
  return force > WEAK * workspace->units.force && length > WEAK * workspace->units.length
             ? force / length
             : natural;
}

/* State of the Newton iteration. */
typedef struct newton_run {
  const polish_guess *guess;
  double r;          /* force over length that separates held from free directions */
  double best, last; /* errors */
  int rises;         /* number of iterations in which the error rose */
  int excused;       /* 1: the next small rise does not count */
  int settled;       /* 1: steps have no effect any more, and the best point counts as polished */
} newton_run;

/* The stiffest held rows leave more rounding in the forces than a polished point may have, which
 * can even change the active set. Softens them and continues from the best point; returns 1
 * then. */
static int soften(qd_cone_workspace *workspace, double error, newton_run *run) {
  if (run->guess->origin != ORIGIN_PATH || !(error >= run->last) || run->best > SLIGHT ||
      run->best <= ACCEPTED || workspace->active.hard_penalty <= HARD_ROW_PENALTY) {
    return 0;
  }
  workspace->active.hard_penalty = HARD_ROW_PENALTY;
  conic_set_equalities(workspace);
  conic_copy_columns(workspace, workspace->newton.x, workspace->polished.x);
  conic_copy_slots(workspace, workspace->newton.dual, workspace->polished.dual);
  conic_slacks_at(workspace, workspace->newton.x, workspace->newton.slack);
  run->excused = workspace->program.variable_count >= LARGE_PROGRAM;
  return 1;
}

/* Ends a polish from a guess if the guess solves the program, if it is so far off that the polish
 * is not worth its factors, or if steps hardly help and the best point is within the tolerance. The
 * last case occurs at rest, where contacts at the limit of sliding leave no strict set. */
static int ends_start(const newton_run *run, int iteration, double error) {
  return error <= ACCEPTED || (iteration == 0 && error > run->guess->limit) ||
         (error > 0.5 * run->last && run->best <= run->guess->tolerance);
}

/* Allowed rises of the error. The active sets of cuts and guesses still have to change; those of
 * the path are known. */
static int patience(solution_origin origin) {
  switch (origin) {
  case ORIGIN_START:
    return 4;
  case ORIGIN_ACTIVE_SET:
    return 3;
  case ORIGIN_PATH:
    return 1;
  default:
    return 2;
  }
}

/* Notes the error; 1 if further steps are not worth it. */
static int ends_run(newton_run *run, int iteration, double error, int changed) {
  const solution_origin origin = run->guess->origin;
  const int started = origin == ORIGIN_START, guessed = started || origin == ORIGIN_REST;
  if (guessed && iteration == 1 && error > WELL_LESS) {
    return 1;
  }
  if (started && ends_start(run, iteration, error)) {
    return 1;
  }
  run->settled = !changed && run->best <= larger(WORKED_OUT, run->guess->tolerance) &&
                 fabs(error - run->last) < ROUGHLY * error;
  if (run->settled) {
    return 1;
  }
  if (error >= run->last && run->excused && error <= ROUGHLY) {
    run->excused = 0;
  } else if (error >= run->last) {
    ++run->rises;
  }
  if (run->best <= CANCELLED || run->rises >= patience(origin) || iteration == NEWTON_LIMIT) {
    return 1;
  }
  return run->best <= ACCEPTED && run->rises > 0;
}

/* Sets the split of each cone: from the path, or r for all. */
static void set_splits(qd_cone_workspace *workspace, double r) {
  if (!workspace->polish.split_width) {
    for (int c = 0; c < workspace->program.lane_count; ++c) {
      workspace->polish.split[c] = r;
    }
  }
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    workspace->polish.per_split[c] = 1.0 / workspace->polish.split[c];
  }
}

/* Stores the projected iterate as the best point. */
static void keep_best(qd_cone_workspace *workspace, const double *projected) {
  conic_copy_columns(workspace, workspace->polished.x, workspace->newton.x);
  conic_copy_slots(workspace, workspace->polished.dual, projected);
  for (int i = 0; i < workspace->program.slot_count; ++i) {
    workspace->polished.slack[i] = projected[i] - workspace->work.aim[i]; /* times r */
  }
  if (workspace->ends.count > 0) {
    conic_ends_keep(workspace);
  }
}

/* Converts the best point's slack to its own units and sets its error. Projects z = dual - r slack
 * again for the states, unless the best iterate was the last. */
LANES_INLINE void leave_best(qd_cone_workspace *workspace, double best, int best_is_last,
                             double *projected) {
  as_slack(workspace, workspace->polished.slack, workspace->polished.slack);
  if (best < HUGE_VAL && !best_is_last) {
    conic_project(workspace, workspace->polished.slack, workspace->polished.dual,
                  workspace->work.aim, projected);
  }
  workspace->polish.error = best;
}

/* Newton's method from newton's x and dual; 1 if it converges. */
QD_MULTIVERSION
static int iterate(qd_cone_workspace *workspace, const polish_guess *guess, qd_cone_info *info) {
  newton_run run = {guess, find_r(workspace, guess->origin), HUGE_VAL, HUGE_VAL, 0, 0, 0};
  double *x = workspace->newton.x, *w = workspace->newton.slack, *dual = workspace->newton.dual;
  double *projected = workspace->work.ddual_aim;
  int best_is_last = 0;
  set_splits(workspace, run.r);
  for (int iteration = 0;; ++iteration) {
    double error = evaluate(workspace, run.r, x, dual, w, projected);
    best_is_last = error < run.best;
    if (!(error < HUGE_VAL)) {
      break;
    }
    if (best_is_last) {
      run.best = error;
      keep_best(workspace, projected);
    }
    const int softer = soften(workspace, error, &run);
    if (softer) {
      error = evaluate(workspace, run.r, x, dual, w, projected);
      run.last = 2.0 * error;
    }
    const int changed = iteration > 0 && workspace->active.changed; /* no set before that */
    if (ends_run(&run, iteration, error, changed) || conic_is_stopped(workspace)) {
      break;
    }
    const int factor = iteration == 0 || error > HALF_DIGITS || changed || softer;
    run.last = error;
    newton_step(workspace, factor, x, dual, w);
    info->factorizations += factor;
  }
  leave_best(workspace, run.best, best_is_last, projected);
  return run.best <= ACCEPTED || run.settled;
}

/* Before another Newton run from a vertex, loads the cones that carry nothing: in a vertex, some
 * redundant rows (of the four corners of a box) are idle. Newton's method then returns to the
 * nearest solution. The added load is at most the smallest load, so that the other cones stay
 * loaded. */
static void spread_load(qd_cone_workspace *workspace) {
  double smallest = HUGE_VAL;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      const double load = workspace->polished.dual[group->slot + c];
      if (load > 1e3 * WEAK * workspace->units.force) {
        smallest = smaller(smallest, load);
      }
    }
  }
  for (const cone_group *group = first_group(workspace);
       group < end_group(workspace) && smallest < HUGE_VAL; ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      if (workspace->active.state[group->cone + c] == CONE_WEAK) {
        workspace->newton.dual[group->slot + c] += smallest;
      }
    }
  }
}

/* Puts every multiplier a little inside its cone: contacts that touch are held, even where the free
 * motion neither closes nor opens them (boxes in a stack fall together). */
static void press_together(qd_cone_workspace *workspace, double *dual) {
  conic_zero_slots(workspace, dual);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      dual[group->slot + c] = REST_FORCE * workspace->units.force;
    }
  }
}

void conic_keep_free_minimum(qd_cone_workspace *workspace) {
  conic_copy_point(workspace, &workspace->polished, &workspace->iterate);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    workspace->active.state[c] = CONE_OPEN;
  }
  if (workspace->ends.count > 0) {
    conic_ends_read_states(workspace, workspace->polished.dual);
  }
}

/* Copies the guess into newton; the point of ORIGIN_START is already there. */
static void take_guess(qd_cone_workspace *workspace, solution_origin origin) {
  double *w = workspace->newton.slack;
  if (origin != ORIGIN_START) {
    conic_copy_columns(workspace, workspace->newton.x, workspace->iterate.x);
  }
  if (origin == ORIGIN_REST) {
    press_together(workspace, workspace->newton.dual);
    conic_copy_slots(workspace, w, workspace->work.rhs);
    return;
  }
  if (origin != ORIGIN_START) {
    conic_copy_slots(workspace, workspace->newton.dual, workspace->iterate.dual);
  }
  conic_slacks_at(workspace, workspace->newton.x, w);
}

int conic_polish(qd_cone_workspace *workspace, const polish_guess *guess, qd_cone_info *info) {
  /* active sets of other origins still change, and a higher stiffness would add rounding */
  workspace->active.hard_penalty = guess->origin == ORIGIN_PATH ? STIFFEST_ROW : HARD_ROW_PENALTY;
  take_guess(workspace, guess->origin);
  clear_padding(workspace, workspace->newton.dual);
  conic_zero_slots(workspace, workspace->work.ddual_aim);
  conic_zero_slots(workspace, workspace->work.aim);
  conic_set_equalities(workspace);
  if (workspace->ends.count > 0) {
    conic_ends_release(workspace);
  }
  int verified = iterate(workspace, guess, info);
  workspace->active.hard_penalty = HARD_ROW_PENALTY;
  if (verified && guess->is_vertex && conic_any_weak(workspace)) {
    spread_load(workspace);
    verified = iterate(workspace, guess, info) &&
               !(guess->strict ? conic_any_weak(workspace) : conic_any_idle(workspace));
  }
  return verified;
}
