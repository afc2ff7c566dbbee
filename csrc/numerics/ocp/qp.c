/* Linear-quadratic optimal control with bounds: the public entry and the interior point method. */
#include "numerics/ocp/qp.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/lanes.h"

/* ------------------------------------------------------------ workspace */

static void lay_out_bounds(arena *a, ocp_bounds *b, size_t count) {
  ARENA_DOUBLES(a, count, &b->value, &b->step, &b->cost, &b->gradient, &b->weight);
  for (int side = 0; side < 2; ++side) {
    double **sides[] = {&b->given[side],     &b->has[side],    &b->bound[side],
                        &b->slack[side],     &b->dual[side],   &b->slack_step[side],
                        &b->dual_step[side], &b->product[side]};
    for (size_t k = 0; k < sizeof sides / sizeof *sides; ++k) {
      *sides[k] = arena_doubles(a, count);
    }
  }
}

static size_t padded(int count) {
  return ((size_t)count + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT;
}

/* Reserves the largest sizes for any split into live and dead states, both padded. */
static void lay_out(qd_ocp_workspace *w, arena *a) {
  const size_t T = (size_t)w->T, nx = (size_t)w->nx;
  const size_t lp = padded(w->nx), up = padded(w->nu), xp = lp + LANE_COUNT;
  const size_t zp = lp + up, gp = zp + up;
  w->order = arena_ints(a, nx);
  for (int kind = 0; kind < OCP_KINDS; ++kind) {
    const size_t count = T * (kind == OCP_X ? xp : up);
    lay_out_bounds(a, &w->bounds[kind], count);
    w->linear[kind] = arena_doubles(a, count);
  }
  w->x_first = arena_doubles(a, xp);
  w->u_before = arena_doubles(a, up);
  w->F = arena_doubles(a, T * nx * zp);
  w->B_dead = arena_doubles(a, T * nx * up);
  ARENA_DOUBLES(a, T * xp, &w->c, &w->Q_dead);
  w->Q = arena_doubles(a, T * nx * lp);
  ARENA_DOUBLES(a, T * up * up, &w->R, &w->S);
  w->G = arena_doubles(a, T * up * gp);
  w->y = arena_doubles(a, T * up);
  ARENA_DOUBLES(a, zp * zp, &w->V, &w->VF);
  w->scaled = arena_doubles(a, nx * up);
  w->z = arena_doubles(a, zp + LANE_COUNT);
  w->p = arena_doubles(a, xp + 2 * up);
  w->v = arena_doubles(a, gp + LANE_COUNT);
}

qd_ocp_workspace *qd_ocp_workspace_create(int horizon, int state_count, int input_count) {
  if (horizon < 1 || state_count < 1 || input_count < 1) {
    return NULL;
  }
  qd_ocp_workspace sizes = {.T = horizon, .nx = state_count, .nu = input_count};
  arena counter = {NULL, 0};
  lay_out(&sizes, &counter);
  const size_t head = (sizeof sizes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
  char *block = block_allocate(head + counter.offset);
  if (!block) {
    return NULL;
  }
  memset(block, 0, head + counter.offset);
  qd_ocp_workspace *w = (qd_ocp_workspace *)(void *)block;
  *w = sizes;
  w->bytes = head + counter.offset;
  arena a = {block + head, 0};
  lay_out(w, &a);
  return w;
}

void qd_ocp_workspace_destroy(qd_ocp_workspace *workspace) { block_free(workspace); }

size_t qd_ocp_workspace_bytes(const qd_ocp_workspace *workspace) { return workspace->bytes; }

/* ------------------------------------------------------------ interior point method */

enum { KEEP_GOING = -1 };

/* Bounds this many times farther away than the nearest bound and the data are omitted at first. */
#define FAR_AWAY 1e3

/* Residuals are compared with at least this share of the last iterate's values and forces: a scale
 * remains if all of them tend to zero. */
#define SHARE_KEPT 1e-3

/* Scales of residuals: sizes of values and data, and of forces. */
typedef struct ocp_scales {
  double bounds; /* of data and of the bounds that take part */
  double given;  /* force of the linear costs, which other forces may cancel */
  double way, force;
} ocp_scales;

static double keep_share(double now, double *kept) {
  return *kept = larger(now, SHARE_KEPT * *kept);
}

/* 1 if a number of the current point or its residuals is not finite. */
static int is_off(const qd_ocp_workspace *w, double slope, double residual, double goal) {
  return !ocp_bounds_are_finite(w) || !(slope < HUGE_VAL) || !(residual < HUGE_VAL) ||
         !(goal < HUGE_VAL) || !isfinite(ocp_objective(w));
}

/* Farkas: where the duals' gradient by u vanishes, the sum of dual * (distance inside the bound) is
 * the same for every input, and it is >= 0 for an input that satisfies all bounds. `size`: of the
 * inputs. */
static int excludes_all(qd_ocp_workspace *w, double size) {
  const double excluded = ocp_bounds_certificate(w);
  return excluded > 0.0 && excluded < HUGE_VAL &&
         excluded > 100.0 * ocp_lagrangian(w, 0).sum * size;
}

/* Verdict on the current point: a status, or KEEP_GOING. Values and data set the scale, since
 * bounds may be much farther away than values ever go. */
static int judge(qd_ocp_workspace *w, const qd_cone_options *options, ocp_scales *scales,
                 qd_cone_info *info, double *goal) {
  const double way = larger(ocp_bounds_values(w), ocp_data_scale(w));
  const double unit = keep_share(way, &scales->way), bounds_unit = scales->bounds;
  const ocp_gap gap = ocp_bounds_gap(w);
  const int factored = info->factorizations > 0;
  const ocp_stationarity slope = factored ? ocp_residual(w, NULL) : ocp_lagrangian(w, 1);
  const double tolerance = options->tolerance;
  const double force = keep_share(larger(slope.scale, scales->given), &scales->force);
  *goal = tolerance * force * unit;
  info->primal_residual = gap.residual;
  info->dual_residual = slope.largest;
  info->complementarity = gap.largest;
  const double size = max_norm(w->bounds[OCP_U].value, (int)w->bounds[OCP_U].count);
  if (is_off(w, slope.largest, gap.residual, *goal)) {
    return QD_NUMERICAL_TROUBLE;
  }
  if (size > 1e12 * larger(bounds_unit, 1.0)) {
    return QD_UNBOUNDED;
  }
  if (factored && gap.beyond_rounding <= tolerance * unit && slope.largest <= tolerance * force &&
      gap.largest <= *goal) {
    return QD_OK;
  }
  const int is_left = gap.beyond_rounding > tolerance * unit && gap.largest_dual > 0.0;
  return is_left && excludes_all(w, larger(bounds_unit, size)) ? QD_INFEASIBLE : KEEP_GOING;
}

/* Mehrotra's predictor and corrector step. The corrector's target is at least `least`: below it,
 * the weights only magnify rounding. Returns the step length, < 0 if the factorisation failed. */
static double advance(qd_ocp_workspace *w, double least, qd_cone_info *info) {
  const ocp_gap gap = ocp_bounds_gap(w);
  ocp_bounds_weights(w);
  ++info->factorizations;
  if (!ocp_factor(w)) {
    return -1.0;
  }
  ocp_bounds_gradient(w, 0.0, 0);
  ocp_newton_step(w);
  if (gap.count == 0) {
    ocp_bounds_move(w, 1.0);
    return 1.0;
  }
  const double affine = ocp_bounds_follow(w, 0.0, 0);
  const double ratio = ocp_bounds_gap_after(w, affine) / gap.mean;
  const double target = larger(gap.mean * ratio * ratio * ratio, least);
  ocp_bounds_products(w);
  ocp_bounds_gradient(w, target, 1);
  ocp_newton_step(w);
  const double longest = ocp_bounds_follow(w, target, 1);
  const double length = smaller(1.0, 0.999 * longest);
  ocp_bounds_move(w, length);
  return length;
}

/* Starts inputs in the middle of their boxes and the states from them. If unstable dynamics blow up
 * the states, they come from the feedback of a first factorisation instead. 0 if that fails. */
static int start(qd_ocp_workspace *w, double unit, qd_cone_info *info) {
  ocp_bounds *x = &w->bounds[OCP_X];
  ocp_bounds_start_inputs(w);
  ocp_roll_out(w, 0);
  const int lost =
      !(max_norm(x->value, (int)x->count) < 1e4 * unit) || !all_finite(x->value, (int)x->count);
  if (lost) {
    memset(x->value, 0, x->count * sizeof *x->value);
    ocp_bounds_start(w, unit, 1.0);
    ocp_bounds_weights(w);
    ++info->factorizations;
    if (!ocp_factor(w)) {
      return 0;
    }
    ocp_bounds_start_inputs(w);
    ocp_roll_out(w, 1);
  }
  ocp_cost_gradient(w);
  ocp_bounds_clear_duals(w);
  const ocp_stationarity slope = lost ? ocp_residual(w, NULL) : ocp_lagrangian(w, 1);
  ocp_bounds_start(w, unit, slope.largest > 0.0 ? 0.1 * slope.largest : 1e-9);
  return 1;
}

/* Solves the problem with the bounds that take part. */
static qd_status iterate(qd_ocp_workspace *w, const qd_cone_options *options, qd_cone_info *info) {
  ocp_scales scales = {ocp_bounds_scale(w), ocp_given_force(w), 0.0, 0.0};
  if (!start(w, scales.bounds, info)) {
    return QD_NUMERICAL_TROUBLE;
  }
  int short_steps = 0;
  double goal = 0.0;
  for (;; ++info->iterations) {
    const int verdict = judge(w, options, &scales, info, &goal);
    if (verdict != KEEP_GOING) {
      return (qd_status)verdict;
    }
    if (info->iterations >= options->iteration_limit) {
      return QD_ITERATION_LIMIT;
    }
    if (options->stop && options->stop(options->stop_context)) {
      return QD_STOPPED;
    }
    const double length = advance(w, 0.1 * goal, info);
    short_steps = length < 1e-6 ? short_steps + 1 : 0;
    if (length < 0.0 || short_steps > 5) {
      return QD_NUMERICAL_TROUBLE;
    }
    ocp_cost_gradient(w);
  }
}

/* Omits bounds at first that are much farther away than anything else, since other numbers would be
 * rounding beside them. If the answer violates some, they are added, together with all bounds that
 * are as near. */
static qd_status solve(qd_ocp_workspace *w, const qd_cone_options *options, qd_cone_info *info) {
  double reach = FAR_AWAY * ocp_bounds_nearest(w);
  for (;;) {
    const size_t left_out = ocp_bounds_select(w, reach);
    qd_status status = iterate(w, options, info);
    /* restores what the dynamics lost to rounding over the steps */
    if (status == QD_OK) {
      ocp_roll_out(w, 1);
    }
    if (status == QD_OK && !(ocp_bounds_are_finite(w) && isfinite(ocp_objective(w)))) {
      status = QD_NUMERICAL_TROUBLE;
    }
    if (left_out == 0 || status == QD_INFEASIBLE || status == QD_STOPPED ||
        (status == QD_OK && ocp_bounds_hold(w))) {
      return status;
    }
    reach = status == QD_OK ? FAR_AWAY * ocp_bounds_values(w) : HUGE_VAL;
  }
}

qd_status qd_ocp_solve(qd_ocp_workspace *workspace, const qd_cone_options *options,
                       const qd_ocp_qp *problem, const qd_ocp_solution *solution,
                       qd_cone_info *info) {
  qd_ocp_workspace *w = workspace;
  *info = (qd_cone_info){.status = QD_BAD_ARGUMENT};
  if (problem->horizon != w->T || problem->state_count != w->nx || problem->input_count != w->nu) {
    return QD_BAD_ARGUMENT;
  }
  info->status = ocp_load(w, problem);
  if (info->status != QD_OK) {
    memset(solution->x, 0, (size_t)(w->T + 1) * (size_t)w->nx * sizeof(double));
    memset(solution->u, 0, (size_t)w->T * (size_t)w->nu * sizeof(double));
    return info->status;
  }
  info->status = solve(w, options, info);
  info->objective = ocp_objective(w);
  if (solution->costate && info->factorizations > 0) {
    ocp_residual(w, w->bounds[OCP_X].step);
  }
  ocp_store(w, problem, solution);
  return info->status;
}
