/* The methods of the cone solver, and the order in which they are tried.
 *
 * METHODS are tried in turn on the program as loaded. Each returns an outcome; the next methods use
 * nothing else of it. conic/solve.c certifies the answer and retries if it fails. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/trace.h"
#include "numerics/conic/task.h"

qd_cone_options qd_cone_options_default(void) {
  const qd_cone_options options = {
      .tolerance = DEFAULT_TOLERANCE, .iteration_limit = DEFAULT_ITERATIONS, .polish = 1};
  return options;
}

const char *qd_cone_method_name(qd_cone_method method) {
  static const char *const names[] = {"none",        "separable",     "free minimum", "warm start",
                                      "cuts",        "rest",          "path",         "path end",
                                      "multipliers", "contradiction", "envelope",     "coulomb"};
  return method >= QD_METHOD_NONE && method <= QD_METHOD_COULOMB ? names[method] : "unknown";
}

void conic_hand_out(const qd_cone_workspace *workspace, const double *x, const double *slack,
                    const double *dual, const conic_answer *out) {
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      out->x[workspace->program.column_of[k]] = workspace->program.column_scale[k] * x[k];
    }
  }
  for (int i = 0; i < workspace->program.row_count; ++i) {
    const int slot = workspace->program.slot_of[i];
    out->slack[i] = slot < 0 ? 0.0 : slack[slot] / workspace->program.row_scale[i];
    out->dual[i] = slot < 0 ? 0.0 : dual[slot] * workspace->program.row_scale[i];
  }
  for (int i = 0; i < workspace->program.equality_count; ++i) {
    const int at = workspace->program.row_count + i;
    out->dual_eq[i] = workspace->program.row_scale[at] * dual[workspace->program.slot_of[at]];
  }
}

/* ------------------------------------------------------------ methods */

static int is_open(const conic_task *task) {
  return task->units == 0 && (task->so_far == NO_HELP || task->so_far == UNPROVEN);
}

static int always(const conic_task *task) {
  (void)task;
  return 1;
}

/* Natural units, and the minimiser of the cost if it lies inside every cone. */
static outcome run_free_minimum(conic_task *task) {
  qd_cone_workspace *workspace = task->workspace;
  workspace->origin = ORIGIN_FREE;
  const int inside = conic_free_minimum(workspace, task->info);
  workspace->polish.split_width = 0;
  if (task->units > 0) {
    conic_change_units(workspace, task->units - 1);
    return NO_HELP;
  }
  if (inside && task->polish) {
    conic_keep_free_minimum(workspace);
  }
  task->path_first =
      !inside && task->polish && workspace->program.definite && conic_wants_path(workspace);
  return !inside ? NO_HELP : task->polish ? SOLVED : NEAR;
}

/* Polishes from the guess. */
static outcome polish_start(conic_task *task) {
  qd_cone_workspace *workspace = task->workspace;
  const int factored = task->info->factorizations;
  const polish_guess from = {ORIGIN_START, 0, 0, conic_start_limit(workspace),
                             task->strict ? 0.0
                                          : smaller(task->options->tolerance, DEFAULT_TOLERANCE)};
  workspace->origin = ORIGIN_START;
  conic_read_start(workspace, task->guess);
  const int polished =
      conic_polish(workspace, &from, task->info) && !(task->strict && conic_any_weak(workspace));
  if (polished || workspace->polish.error <= from.tolerance) {
    conic_copy_point(workspace, &workspace->iterate, &workspace->polished);
    return polished ? SOLVED : NEAR;
  }
  /* restores the state after the free minimum */
  if (workspace->program.definite && task->info->factorizations > factored) {
    conic_factor_cost(workspace);
  }
  return NO_HELP;
}

/* Follows a barrier's path from the guess. A later cold start needs nothing that this
 * overwrites. */
static outcome follow_start(conic_task *task) {
  const path_request path = {.goal = task->options->tolerance,
                             .iteration_limit =
                                 task->info->iterations + task->options->iteration_limit,
                             .from = PATH_WARM};
  conic_read_start(task->workspace, task->guess);
  return conic_follow_path(task->workspace, &path, task->info) == PATH_ARRIVED ? NEAR : NO_HELP;
}

static int start_suits(const conic_task *task) {
  return is_open(task) && task->guess && !task->midway &&
         (task->polish || !task->workspace->program.exact);
}

static outcome run_start(conic_task *task) {
  return task->workspace->program.exact ? polish_start(task) : follow_start(task);
}

/* Programs with force limits use the path: cuts ignore the limits, and their result is far off. */
static int cuts_suit(const conic_task *task) {
  return is_open(task) && task->polish && !task->midway && !task->path_first &&
         task->workspace->ends.count == 0;
}

/* The guess of rest is tried where cuts cannot start, or would end at a vertex of mostly redundant
 * rows that does not show how contacts share the load. */
static int rest_suits(const conic_task *task) {
  return cuts_suit(task) && task->workspace->program.definite &&
         (conic_is_crowded(task->workspace) || conic_cuts_apply(task->workspace) == CUTS_NONE);
}

/* Polishes from the guess that all contacts rest. */
static outcome run_rest(conic_task *task) {
  const polish_guess from = {ORIGIN_REST, 0, 0, 0.0, 0.0};
  qd_cone_workspace *workspace = task->workspace;
  workspace->origin = ORIGIN_REST;
  if (conic_polish(workspace, &from, task->info)) {
    return SOLVED;
  }
  if (conic_cuts_apply(workspace) != CUTS_NONE) {
    conic_factor_cost(workspace); /* restores the state after the free minimum */
  }
  return NO_HELP;
}

/* Error of a stalled polish that is accepted. */
static double settles_at(const conic_task *task) {
  return task->again ? 0.0 : smaller(task->options->tolerance, DEFAULT_TOLERANCE);
}

static outcome run_cuts(conic_task *task) {
  qd_cone_workspace *workspace = task->workspace;
  const cuts_end end = conic_dual_active_set(workspace);
  polish_guess from = {ORIGIN_ACTIVE_SET, end == CUTS_AT_VERTEX, task->strict, 0.0,
                       settles_at(task)};
  if (end == CUTS_NOWHERE) {
    return NO_HELP;
  }
  workspace->origin = ORIGIN_ACTIVE_SET;
  const int polished = conic_polish(workspace, &from, task->info);
  if (polished && (from.is_vertex || !conic_any_weak(workspace) ||
                   (!task->strict && conic_shares_are_known(workspace)))) {
    return SOLVED;
  }
  if (from.is_vertex || !(workspace->polish.error <= SLIGHT) || !conic_resume_cuts(workspace)) {
    return UNPROVEN;
  }
  from.is_vertex = 1; /* further cuts show how the load is shared */
  return conic_polish(workspace, &from, task->info) ? SOLVED : UNPROVEN;
}

/* Outcome of a path that did not converge. */
static outcome path_failed(conic_task *task, path_end end) {
  task->failure = end == PATH_AT_LIMIT ? QD_ITERATION_LIMIT : QD_NUMERICAL_TROUBLE;
  return end == PATH_INFEASIBLE ? INFEASIBLE : end == PATH_UNBOUNDED ? UNBOUNDED : NO_HELP;
}

/* Asks the caller whether to stop the path at the iterate. */
static int is_stopped(const conic_task *task) {
  const conic_point *at = &task->workspace->iterate;
  conic_hand_out(task->workspace, at->x, at->slack, at->dual, task->guess);
  task->look->stopped = task->look->is_enough(task->look->of, task->guess->x);
  return task->look->stopped;
}

/* Follows the path to the tolerance. Polishes whenever held and free directions are separated by
 * enough powers of two to show the active set. */
static outcome follow_path(conic_task *task, path_start from) {
  qd_cone_workspace *workspace = task->workspace;
  const polish_guess seen = {ORIGIN_PATH, 0, 0, 0.0, settles_at(task)};
  const int allowed = task->options->iteration_limit, half = allowed / 2;
  const int kept = !workspace->program.exact ? 0 : half < KEPT_ITERATIONS ? half : KEPT_ITERATIONS;
  path_request path = {.goal =
                           (workspace->units.by_offsets ? SLIGHT : 1.0) * task->options->tolerance,
                       .wanted_width = task->polish ? CLEAR_WIDTH : 0,
                       .from = from};
  task->path_began = task->info->iterations;
  path.iteration_limit = task->path_began + allowed - kept;
  path.look_error = from == PATH_RESUMED && task->look != NULL ? ROUGHLY : 0.0;
  for (;; path.from = PATH_RESUMED) {
    const path_end end = conic_follow_path(workspace, &path, task->info);
    if (end == PATH_AT_LOOK) {
      path.look_error = 0.0;
      if (is_stopped(task)) {
        return STOPPED;
      }
      continue;
    }
    if (end != PATH_ARRIVED && end != PATH_AT_WIDTH) {
      return path_failed(task, end);
    }
    if (end == PATH_ARRIVED && task->polish) {
      conic_find_split(workspace, 0);
    }
    if (task->polish && conic_polish(workspace, &seen, task->info)) {
      return SOLVED;
    }
    if (end == PATH_ARRIVED) {
      return NEAR;
    }
    path.wanted_width = workspace->polish.split_width + CLEAR_WIDTH;
  }
}

/* Follows the path, without a polish, from a start in other units. */
static outcome follow_elsewhere(conic_task *task) {
  const path_request path = {.goal = task->options->tolerance,
                             .iteration_limit =
                                 task->info->iterations + task->options->iteration_limit,
                             .from = PATH_ELSEWHERE};
  const path_end end = conic_follow_path(task->workspace, &path, task->info);
  return end == PATH_ARRIVED ? NEAR : path_failed(task, end);
}

static int path_suits(const conic_task *task) { return task->units > 0 || is_open(task); }

/* Follows the path from the guess, which is a point of the path with fewer rows, or a solution from
 * which the polish failed. Without a guess, or if that path fails, starts cold. */
static outcome run_path(conic_task *task) {
  outcome found = NO_HELP;
  if (task->units > 0) {
    return follow_elsewhere(task);
  }
  if (task->guess && task->workspace->program.exact) {
    conic_read_start(task->workspace, task->guess);
    conic_enter_path(task->workspace, task->midway ? 1.0 : TENFOLD);
    found = follow_path(task, task->midway ? PATH_RESUMED : PATH_ENTERED);
  }
  return found == NO_HELP ? follow_path(task, PATH_COLD) : found;
}

static int path_end_suits(const conic_task *task) {
  return task->polish && task->so_far == NEAR && task->info->method == QD_METHOD_PATH;
}

/* Polishes the path's end once more, with units from the point itself. */
static outcome run_path_end(conic_task *task) {
  const polish_guess end = {ORIGIN_PATH_END, 0, 0, 0.0, 0.0};
  task->workspace->polish.split_width = 0;
  if (task->units > 0) {
    task->workspace->origin = ORIGIN_PATH_END; /* derivatives settle the set again */
  }
  return conic_polish(task->workspace, &end, task->info) ? SOLVED : NEAR;
}

static int multipliers_suit(const conic_task *task) {
  return task->workspace->program.exact && task->workspace->ends.count == 0 &&
         (is_open(task) || task->so_far == INFEASIBLE) && task->units == 0;
}

static outcome run_multipliers(conic_task *task) {
  const int left = task->path_began + task->options->iteration_limit - task->info->iterations;
  int polished = 0;
  const int solved = augmented_lagrangian(task->workspace, task->options->tolerance, left,
                                          task->options->polish, &polished, task->info);
  return polished ? SOLVED : solved ? NEAR : NO_HELP;
}

static const struct {
  qd_cone_method name;
  int (*suits)(const conic_task *task);
  outcome (*run)(conic_task *task);
} METHODS[] = {
    {QD_METHOD_FREE_MINIMUM, always, run_free_minimum}, /* conic/newton/free_minimum.c */
    {QD_METHOD_START, start_suits, run_start},          /* conic/path/start.c */
    {QD_METHOD_REST, rest_suits, run_rest},             /* conic/newton/polish.c */
    {QD_METHOD_CUTS, cuts_suit, run_cuts},              /* conic/active_set/dual_active_set.c */
    {QD_METHOD_PATH, path_suits, run_path},             /* conic/path, conic/newton/polish.c */
    {QD_METHOD_PATH_END, path_end_suits, run_path_end},
    {QD_METHOD_MULTIPLIERS, multipliers_suit, run_multipliers}, /* conic/newton/multipliers.c */
};

/* Status of the outcome so far. */
static qd_status verdict(conic_task *task) {
  task->info->polished = task->so_far == SOLVED;
  switch (task->so_far) {
  case NEAR:
  case SOLVED:
  case STOPPED:
    return QD_OK;
  case INFEASIBLE:
    return QD_INFEASIBLE;
  case UNBOUNDED:
    return QD_UNBOUNDED;
  default:
    return task->failure;
  }
}

/* Error of the result where it was measured, else NaN. */
static double error_left(const conic_task *task, qd_cone_method method, outcome now) {
  if (now == SOLVED && method != QD_METHOD_FREE_MINIMUM) {
    return task->workspace->polish.error;
  }
  return now == NO_HELP && method == QD_METHOD_PATH ? task->workspace->path.error : NAN;
}

/* Runs a method, and adds a row to the trace if requested. */
static outcome run_traced(conic_task *task, qd_cone_method method, outcome (*run)(conic_task *)) {
  static const char *const verdicts[] = {"no answer",   "not proven", "to the tolerance",
                                         "to rounding", "stopped",    "infeasible",
                                         "unbounded"};
  qd_trace *trace = task->options->trace;
  if (trace == NULL) {
    return run(task);
  }
  const int iterations = task->info->iterations, factorizations = task->info->factorizations;
  const int row = trace_open(trace, qd_cone_method_name(method), 0, "%s", task->scaling);
  const outcome now = run(task);
  trace_effort(trace, task->info->iterations - iterations,
               task->info->factorizations - factorizations);
  trace_close(trace, row, error_left(task, method, now), verdicts[now]);
  return now;
}

qd_status conic_run_methods(conic_task *task) {
  task->so_far = NO_HELP;
  task->info->method = QD_METHOD_NONE;
  task->polish = task->options->polish && task->workspace->program.exact;
  for (size_t k = 0; k < sizeof METHODS / sizeof *METHODS; ++k) {
    if (task->workspace->stop.stopped || !METHODS[k].suits(task)) {
      continue;
    }
    const outcome now = run_traced(task, METHODS[k].name, METHODS[k].run);
    ++task->info->tries;
    if (now == NO_HELP) {
      continue;
    }
    task->so_far = now;
    if (now != UNPROVEN) {
      task->info->method = METHODS[k].name;
    }
  }
  return verdict(task);
}

static outcome run_roughly(conic_task *task) {
  const path_request path = {
      .goal = 1.0, .iteration_limit = task->options->iteration_limit, .from = PATH_COLD};
  task->polish = 1;
  const int found = run_free_minimum(task) != NO_HELP ||
                    conic_follow_path(task->workspace, &path, task->info) == PATH_ARRIVED;
  return found ? NEAR : NO_HELP;
}

int conic_find_roughly(conic_task *task) {
  task->scaling = "roughly";
  return run_traced(task, QD_METHOD_PATH, run_roughly) == NEAR;
}
