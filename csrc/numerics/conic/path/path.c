/* The primal-dual interior point method: follows the central path from an infeasible start down to
 * the target complementarity of each cone. conic/path/step.c has the steps. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

/* ------------------------------------------------------------ start */

/* Cold start: least squares in natural units, then slack and dual. */
static void start(qd_cone_workspace *workspace, qd_cone_info *info) {
  conic_least_squares(workspace, workspace->units.force / workspace->units.length, info);
  conic_start_rows(workspace, workspace->work.rhs, workspace->work.aim);
  conic_start_cones(workspace, workspace->work.rhs);
  if (workspace->ends.count > 0) {
    conic_ends_start(workspace, workspace->work.rhs,
                     PATH_START_STIFFNESS * workspace->units.force / workspace->units.length,
                     PATH_START_PRODUCT * workspace->units.energy, 0, NULL);
  }
}

/* ------------------------------------------------------------ certificates */

/* Copies a ray and moves it into its cones. */
static void keep_ray(const qd_cone_workspace *workspace, const double *ray, double *out) {
  conic_copy_slots(workspace, out, ray);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind < GROUP_EQUALITY; ++c) {
      out[group->slot + c] = larger(out[group->slot + c], cone_tail(group, c, out));
    }
  }
}

/* Sums over a ray that may prove infeasibility. */
typedef struct ray_sums {
  double value, terms; /* -g'z - c'y, and the largest number in it */
  double push;         /* max-norm of G'z + C'y */
  double force, size;  /* the largest multiplier of a cone, with and without its rows' norm */
} ray_sums;

static ray_sums sum_ray(qd_cone_workspace *workspace, const double *ray) {
  double *push = workspace->work.x;
  ray_sums sums = {0.0, 0.0, 0.0, 0.0, 0.0};
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int i = 0; i < group->dim; ++i) {
      for (int c = 0; c < group->count; ++c) {
        const int at = group->slot + i * group->padded + c;
        const double own = fabs(ray[at]), squared = workspace->program.compliance[group->cone + c];
        sums.value -= workspace->program.g[at] * ray[at];
        sums.terms = larger(sums.terms, fabs(workspace->program.g[at] * ray[at]));
        sums.size = larger(sums.size, own);
        sums.force = larger(sums.force, own * sqrt(squared));
      }
    }
  }
  conic_zero_columns(workspace, push);
  tiles_add_transposed(&workspace->system, workspace->system.G, ray, push);
  sums.push = max_norm(push, workspace->program.column_count);
  return sums;
}

/* Removes cones that carry next to nothing of a ray: they balance other parts of the program and
 * are not part of the proof. */
static void keep_strong(const qd_cone_workspace *workspace, double force, double *ray) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->kind < GROUP_EQUALITY; ++c) {
      double *own = ray + group->slot + c;
      const double norm = sqrt(workspace->program.compliance[group->cone + c]);
      if (fabs(own[0]) * norm >= SMALL * force) {
        continue;
      }
      for (int i = 0; i < group->dim; ++i) {
        own[i * group->padded] = 0.0;
      }
    }
  }
}

/* Distance of a ray outside its cones. */
static double leak_of(const qd_cone_workspace *workspace, const double *ray) {
  const cone_product *product = &workspace->product;
  return product->cone_count > 0 ? larger(0.0, cones_violation(product, ray)) : 0.0;
}

/* Farkas: a multiplier z in K with G'z + C'y = 0 and g'z + c'y < 0 excludes every feasible point,
 * here points up to CERTIFICATE_SCALE natural sizes. path.ray keeps the ray that excludes most. The
 * candidates are the multiplier itself and the multiplier after the last full Newton step, which
 * becomes a proof long before the iterate does. For a barrier g'z = 0 is sufficient: it excludes
 * interior points. */
static int excludes_points(qd_cone_workspace *workspace, double *ray) {
  const double length = workspace->units.length;
  const ray_sums all = sum_ray(workspace, ray);
  const double leak = leak_of(workspace, ray);
  const double moved = all.push * workspace->units.reach + leak * length;
  if (all.value > workspace->path.ray_reach * moved) {
    workspace->path.ray_reach = all.value / moved;
    keep_ray(workspace, ray, workspace->path.ray);
  }
  if (all.value > CERTIFICATE_SCALE * moved) {
    return 1;
  }
  if (workspace->program.exact || CERTIFICATE_SCALE * moved >= all.size * length) {
    return 0;
  }
  keep_strong(workspace, all.force, ray);
  const ray_sums strong = sum_ray(workspace, ray);
  return CERTIFICATE_SCALE * strong.push < strong.force &&
         strong.value >= -SLIGHT * smaller(strong.size * length, strong.terms);
}

/* 1 if infeasibility is proved; the multipliers are in work.aim. */
static int proves_infeasible(qd_cone_workspace *workspace) {
  double *ray = workspace->work.aim;
  conic_row_residual(workspace, workspace->iterate.x, workspace->iterate.slack);
  const double primal = max_norm(workspace->work.residual_row, workspace->program.slot_count);
  if (primal < (workspace->program.exact ? 1e-9 : 1e-12) * workspace->units.length) {
    return 0; /* it is feasible */
  }
  conic_copy_slots(workspace, ray, workspace->iterate.dual);
  if (workspace->ends.count > 0) {
    conic_ends_clear(workspace, ray);
  }
  if (excludes_points(workspace, ray)) {
    return 1;
  }
  if (workspace->path.share < 1.0) {
    return 0;
  }
  cones_apply(&workspace->product, &workspace->product.scaling, workspace->work.ddual, ray);
  add_scaled(ray, 1.0, workspace->iterate.dual, workspace->program.slot_count);
  if (workspace->ends.count > 0) {
    conic_ends_clear(workspace, ray);
  }
  return excludes_points(workspace, ray);
}

/* ------------------------------------------------------------ the loop */

static double mean_target(const cone_product *product) {
  return product->cone_count > 0 ? cones_target(product) / product->cone_count : 0.0;
}

/* Largest residual of a row over `length`. */
QD_MULTIVERSION
static double primal_error(const qd_cone_workspace *workspace, double length) {
  const double *residual = workspace->work.residual_row;
  double worst = 0.0;
  if (workspace->ends.count == 0) {
    return max_norm(residual, workspace->program.slot_count) / length;
  }
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    if (group->kind != GROUP_INTERVAL) {
      worst = larger(worst, max_norm(residual + group->slot, group->dim * group->padded));
    }
  }
  return larger(worst / length, conic_ends_primal_error(workspace, length));
}

/* Largest of the primal, dual and complementarity errors over what is allowed. Rows are compared
 * with `length`, columns with their natural size, or with `force` if that is more. `gap`: the sum
 * of all products, not finite if any number of the iterate is not. */
QD_MULTIVERSION
static double path_error(qd_cone_workspace *workspace, double goal, double length, double force,
                         double *gap) {
  *gap = cones_gap(&workspace->product, workspace->iterate.slack, workspace->iterate.dual);
  if (!all_finite(workspace->work.residual_x, workspace->program.column_count)) {
    *gap = HUGE_VAL;
  }
  const double primal = primal_error(workspace, length);
  const double dual = max_norm(workspace->work.residual_x, workspace->program.column_count);
  const double zero = workspace->program.exact ? goal * length * workspace->units.force
                                               : SUM_ROUNDING * workspace->units.energy;
  const double deviation = cones_deviation(&workspace->product, workspace->iterate.slack,
                                           workspace->iterate.dual, zero, goal);
  const double size = larger(larger(workspace->units.b_size, force),
                             max_norm(workspace->work.Qx, workspace->program.column_count));
  return larger(deviation, larger(primal / goal, dual / (goal * size)));
}

/* The same error in natural units. */
static double natural_error(qd_cone_workspace *workspace, double goal, double *gap) {
  return path_error(workspace, goal, workspace->units.length, 0.0, gap);
}

/* Error of a barrier in each cone's own units, where natural units are far larger: the largest
 * error of products and rows, relative to the cone's target and slack, over what is allowed. */
QD_MULTIVERSION
static double own_error(const qd_cone_workspace *workspace) {
  const cone_product *product = &workspace->product;
  const double *slack = workspace->iterate.slack, *residual = workspace->work.residual_row;
  double worst = cones_deviation(product, slack, workspace->iterate.dual, 0.0, SLIGHT);
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int i = 0; i < group->dim && group_is_cone(group); ++i) {
      const int at = group->slot + i * group->padded;
      for (int c = 0; c < group->count; ++c) {
        worst = larger(worst, fabs(residual[at + c]) / (SLIGHT * slack[group->slot + c]));
      }
    }
  }
  return worst;
}

/* 1 if the iterate is inside all cones. Rounding of the last step may have moved it out, which no
 * residual shows. */
static int is_inside(const qd_cone_workspace *workspace) {
  return cones_hold(&workspace->product, workspace->iterate.slack) &&
         cones_hold(&workspace->product, workspace->iterate.dual);
}

/* 1 if an iterate at which rounding ended the path is accepted: its rows are zero in natural units,
 * or, with `at_last`, small compared with the forces at hand, including large ones that balance
 * each other. */
static int is_acceptable(qd_cone_workspace *workspace, double goal, int at_last) {
  double row = 0.0, gap;
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    row = larger(row, workspace->program.compliance[c]);
  }
  conic_row_residual(workspace, workspace->iterate.x, workspace->iterate.slack);
  conic_column_residual(workspace, workspace->iterate.x, workspace->iterate.dual);
  const double held = sqrt(row) * max_norm(workspace->iterate.dual, workspace->program.slot_count);
  const double force = at_last ? held : 0.0, allowed = at_last ? ACCEPTABLE / goal : 1.0;
  const double length = larger(workspace->units.length, workspace->units.resolution / goal);
  return path_error(workspace, goal, length, force, &gap) <= allowed && isfinite(gap) &&
         is_inside(workspace);
}

/* Starts at the guess. A guess with a larger error starts nearer to the centre of the cones, where
 * steps are long. */
static void start_warm(qd_cone_workspace *workspace, double goal) {
  conic_enter_path(workspace, 1.0);
  conic_row_residual(workspace, workspace->iterate.x, workspace->iterate.slack);
  conic_column_residual(workspace, workspace->iterate.x, workspace->iterate.dual);
  double gap;
  const double error = goal * natural_error(workspace, goal, &gap) / SHOWS;
  const double middle = workspace->units.energy / mean_target(&workspace->product);
  if (error * SHOWS > 1.0) { /* at a relative error of one, products are the natural ones */
    conic_enter_path(workspace, larger(middle, 1.0 / SHOWS));
  } else if (error > 1.0) {
    conic_enter_path(workspace, smaller(error, larger(middle, 1.0)));
  }
}

/* State of a path. */
typedef struct path_run {
  const path_request *request;
  double target;     /* mean target of the products */
  int first;         /* iterations before this call */
  double best;       /* smallest error, over what is allowed */
  double error, gap; /* current error and sum of all products */
  double own;        /* own_error of a barrier that has converged in natural units */
  int stalled;       /* iterations since the best */
  int by_recurrence; /* 1: the last step updated residuals by their recurrence */
} path_run;

/* Error and gap of the iterate, with true residuals near convergence. */
static void measure(qd_cone_workspace *workspace, path_run *run) {
  const double goal = run->request->goal;
  if (run->by_recurrence) {
    tiles_multiply_Q(&workspace->system, workspace->iterate.x, workspace->work.Qx);
  } else {
    conic_column_residual(workspace, workspace->iterate.x, workspace->iterate.dual);
  }
  if (workspace->program.equality_count > 0 ||
      (workspace->ends.count > 0 && workspace->ends.any_hard)) { /* proximal steps leave a part */
    conic_row_residual(workspace, workspace->iterate.x, workspace->iterate.slack);
  }
  run->error = natural_error(workspace, goal, &run->gap);
  if (run->by_recurrence && run->error * goal <= SHOWS) {
    conic_column_residual(workspace, workspace->iterate.x, workspace->iterate.dual);
    run->error = natural_error(workspace, goal, &run->gap);
    if (run->error > SMALL) {
      run->error = larger(run->error, 2.0); /* forces another step, with the true residual */
    }
  }
  if (run->error <= 1.0) { /* the rows' residual came from the recurrence: compute it */
    conic_row_residual(workspace, workspace->iterate.x, workspace->iterate.slack);
    run->error = natural_error(workspace, goal, &run->gap);
  }
}

/* Decides at an iterate that has converged in natural units whether the path ends. A barrier
 * continues as long as its errors in the cones' own units shrink. */
static path_end arrive(qd_cone_workspace *workspace, path_run *run, int iterations) {
  const double before = run->own;
  run->own = workspace->program.exact ? 0.0 : own_error(workspace);
  if (run->own > HARDLY_LESS * before) {
    conic_copy_point(workspace, &workspace->iterate, &workspace->best);
    return PATH_ARRIVED;
  }
  if (run->own <= 1.0 || iterations >= run->request->iteration_limit) {
    return PATH_ARRIVED;
  }
  conic_copy_point(workspace, &workspace->best, &workspace->iterate);
  return PATH_GOES_ON;
}

/* 1 if the path should leave its guess: the first iterations hardly improve it, or the path
 * stalls. */
static int is_no_help(const path_run *run, int iterations) {
  if (run->request->from == PATH_ENTERED) {
    return run->stalled > PATIENCE;
  }
  return run->request->from == PATH_WARM && iterations > run->first &&
         run->error > HARDLY_LESS * run->best;
}

/* 1 if held and free directions are as far apart as requested. */
static int shows_split(qd_cone_workspace *workspace, const path_run *run) {
  const path_request *request = run->request;
  return request->wanted_width > 0 && run->error * request->goal < SHOWS &&
         conic_find_split(workspace, request->wanted_width) >= request->wanted_width;
}

/* Decides whether the path ends at the iterate, and keeps the iterate if it is the best so far. */
static path_end look(qd_cone_workspace *workspace, path_run *run, int iterations) {
  const path_request *request = run->request;
  const int within = run->error <= 1.0, had_arrived = run->own < HUGE_VAL;
  if (!isfinite(run->gap) || (within && !is_inside(workspace)) || (had_arrived && !within)) {
    return PATH_IN_TROUBLE;
  }
  if (!had_arrived && is_no_help(run, iterations)) {
    return PATH_LEFT;
  }
  run->stalled = run->error < run->best ? 0 : run->stalled + 1;
  if (run->error < run->best && !within) {
    conic_copy_point(workspace, &workspace->best, &workspace->iterate);
  }
  run->best = smaller(run->best, run->error);
  if (within) {
    return arrive(workspace, run, iterations);
  }
  if (iterations >= request->iteration_limit || conic_is_stopped(workspace)) {
    return PATH_AT_LIMIT;
  }
  if (run->error * request->goal < request->look_error) {
    return PATH_AT_LOOK;
  }
  return shows_split(workspace, run) ? PATH_AT_WIDTH : PATH_GOES_ON;
}

/* Looks for a proof that there is no solution. Then restores the best iterate, with the
 * infeasibility ray in best.dual or the unbounded direction in newton.x. */
static path_end find_proof(qd_cone_workspace *workspace) {
  const int infeasible = proves_infeasible(workspace);
  if (!infeasible && !conic_proves_unbounded(workspace)) {
    return PATH_GOES_ON;
  }
  conic_copy_columns(workspace, workspace->newton.x, workspace->iterate.x);
  conic_copy_point(workspace, &workspace->iterate, &workspace->best);
  if (infeasible) {
    keep_ray(workspace, workspace->work.aim, workspace->best.dual);
  }
  return infeasible ? PATH_INFEASIBLE : PATH_UNBOUNDED;
}

/* 1 if steps are tiny, or the error has not improved for long: rounding. */
static int is_stuck(const path_run *run, double alpha) {
  return alpha < SLIGHT || (run->stalled > STALLED_COUNT && run->best * run->request->goal < SMALL);
}

/* One step, and whether the path ends with it. */
static path_end go_on(qd_cone_workspace *workspace, path_run *run, qd_cone_info *info) {
  const double goal = run->request->goal;
  const int cones = workspace->product.cone_count;
  const double mu = cones > 0 ? run->gap / cones : 0.0;
  const int refine = mu < HALF_DIGITS * workspace->units.energy || run->stalled > 1;
  const int plain = !workspace->program.exact && run->stalled > PATIENCE;
  const double alpha = conic_take_step(workspace, mu, run->target, refine, plain, info);
  run->by_recurrence = !refine && workspace->program.definite && run->error * goal > SHOWS;
  const int stuck = is_stuck(run, alpha);
  if (alpha > 0.0 && (stuck || alpha < SHORT_STEP || info->iterations >= CERTIFICATE_FROM)) {
    const path_end proof = find_proof(workspace);
    if (proof != PATH_GOES_ON) {
      return proof;
    }
  }
  return stuck ? PATH_IN_TROUBLE : PATH_GOES_ON;
}

/* Restores the best iterate of a path that ended short of its goal; it counts as converged if
 * rounding allows no better one. */
static path_end end_short(qd_cone_workspace *workspace, const path_run *run, path_end end) {
  if (run->best == HUGE_VAL) { /* no iterate was finite */
    conic_zero_columns(workspace, workspace->best.x);
    conic_zero_slots(workspace, workspace->best.slack);
    conic_zero_slots(workspace, workspace->best.dual);
  }
  conic_copy_point(workspace, &workspace->iterate, &workspace->best);
  const int at_last = !workspace->program.exact || workspace->units.by_offsets ||
                      run->request->from == PATH_ELSEWHERE;
  return is_acceptable(workspace, run->request->goal, at_last) ? PATH_ARRIVED : end;
}

path_end conic_follow_path(qd_cone_workspace *workspace, const path_request *request,
                           qd_cone_info *info) {
  path_run run = {.request = request, .best = HUGE_VAL, .own = HUGE_VAL};
  path_end end = PATH_GOES_ON;
  if (request->from == PATH_COLD || request->from == PATH_ELSEWHERE) {
    start(workspace, info);
  }
  if (request->from == PATH_WARM) {
    start_warm(workspace, request->goal);
  }
  run.first = info->iterations;
  run.target = mean_target(&workspace->product);
  workspace->origin = ORIGIN_PATH;
  conic_row_residual(workspace, workspace->iterate.x, workspace->iterate.slack);
  for (;; ++info->iterations) {
    measure(workspace, &run);
    end = look(workspace, &run, info->iterations);
    if (end == PATH_GOES_ON) {
      end = go_on(workspace, &run, info);
    }
    if (end != PATH_GOES_ON) {
      break;
    }
  }
  if (run.own < HUGE_VAL && end != PATH_ARRIVED) { /* it had converged in natural units */
    conic_copy_point(workspace, &workspace->iterate, &workspace->best);
    end = PATH_ARRIVED;
  }
  if (end == PATH_ARRIVED && workspace->ends.count > 0 && !workspace->program.exact) {
    conic_ends_settle(workspace);
  }
  if (end == PATH_ARRIVED || end == PATH_AT_WIDTH || end == PATH_AT_LOOK || end == PATH_LEFT) {
    return end;
  }
  workspace->path.error = run.best * request->goal;
  return end == PATH_AT_LIMIT || end == PATH_IN_TROUBLE ? end_short(workspace, &run, end) : end;
}

void conic_change_units(qd_cone_workspace *workspace, int choice) {
  static const double length_factor[OTHER_UNITS] = {30.0, 1e3, 1.0, 0.03, 1e4, 1e6},
                      force_factor[OTHER_UNITS] = {30.0, 1.0, 1e3, 0.03, 1e4, 1e6};
  workspace->units.length *= length_factor[choice];
  workspace->units.force *= force_factor[choice];
  workspace->units.energy = workspace->units.length * workspace->units.force;
}
