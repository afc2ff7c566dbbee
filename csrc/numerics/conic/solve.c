/* Certifies the results of the methods, and retries in other scalings.
 *
 * A result of the methods (conic/conic.c) is accepted only if it holds in the caller's units
 * (conic/certificate/certificate.c). Otherwise all methods are tried again in other scalings. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/trace.h"
#include "numerics/conic/task.h"

/* ------------------------------------------------------------ certified results */

/* Writes the answer in the caller's units and certifies it. */
static qd_status deliver(qd_cone_workspace *workspace, const conic_program *source,
                         double tolerance, qd_status status, const conic_answer *out,
                         qd_cone_info *info) {
  if (status == QD_INFEASIBLE) {
    conic_hand_out(workspace, workspace->iterate.x, workspace->iterate.slack, workspace->best.dual,
                   out);
  } else if (info->polished) {
    conic_hand_out(workspace, workspace->polished.x, workspace->polished.slack,
                   workspace->polished.dual, out);
  } else {
    conic_hand_out(workspace, workspace->iterate.x, workspace->iterate.slack,
                   workspace->iterate.dual, out);
  }
  status = conic_judge(workspace, source, tolerance, status, out, info);
  if (status == QD_UNBOUNDED) {
    conic_hand_out(workspace, workspace->newton.x, workspace->iterate.slack,
                   workspace->iterate.dual, out);
  }
  return status;
}

/* ------------------------------------------------------------ scalings */

/* Scalings in the order of trial: as given; lengths from the rows' offsets, where the cost gives a
 * poor length scale; all rows with the same norm, where norms differ widely; starts in other
 * units. */
enum {
  AS_GIVEN,
  BY_OFFSETS,
  ALIKE,
  FIRST_OTHER_UNITS,
  SCALING_COUNT = FIRST_OTHER_UNITS + OTHER_UNITS
};

/* Name for the trace. */
static const char *name_of(int scaling) {
  static const char *const names[] = {"as given", "lengths by offsets", "rows alike"};
  return scaling < FIRST_OTHER_UNITS ? names[scaling] : "other units";
}

/* Loads the program again if the scaling may help; returns 1 then. */
static int rescale(conic_task *task, const conic_program *source, int scaling) {
  qd_cone_workspace *workspace = task->workspace;
  task->again = 1;
  task->guess = NULL;
  task->strict = 0;
  if (scaling == BY_OFFSETS) {
    if (!conic_cost_is_weak(workspace, &source->program) ||
        conic_load(workspace, source, ROWS_AS_GIVEN) != QD_OK) {
      return 0;
    }
    return workspace->units.by_offsets = 1;
  }
  if (scaling == ALIKE) {
    return conic_rows_are_far_apart(workspace) &&
           conic_load(workspace, source, ROWS_ALIKE) == QD_OK;
  }
  if (scaling == FIRST_OTHER_UNITS) {
    conic_load(workspace, source, ROWS_AS_GIVEN);
  }
  conic_clear_rows(workspace); /* the certificate has used them */
  task->units = scaling - FIRST_OTHER_UNITS + 1;
  return 1;
}

/* Tries all methods in each scaling until a verdict is certified. */
static void run_scalings(conic_task *task, const conic_program *source, const conic_answer *out) {
  const qd_cone_options *options = task->options;
  qd_cone_info *info = task->info;
  for (int scaling = AS_GIVEN; scaling < SCALING_COUNT && !task->workspace->stop.stopped;
       ++scaling) {
    if (scaling > AS_GIVEN && !conic_is_undecided(info->status, options->iteration_limit)) {
      break;
    }
    if (scaling > AS_GIVEN && !rescale(task, source, scaling)) {
      continue;
    }
    task->scaling = name_of(scaling);
    const qd_status found = conic_run_methods(task);
    if (task->so_far == STOPPED) {
      info->status = found;
      return;
    }
    const int row = trace_open(options->trace, "certificate", 0, "%s", task->scaling);
    info->status = deliver(task->workspace, source, options->tolerance, found, out, info);
    trace_close_with(options->trace, row, info, info->status);
  }
}

/* Falls back on the best infeasibility ray of the paths if nothing else was found. */
static qd_status try_ray(conic_task *task, const conic_program *source, const conic_answer *out) {
  qd_cone_workspace *workspace = task->workspace;
  qd_cone_info *info = task->info;
  const double tolerance = task->options->tolerance;
  const qd_status found = info->status;
  if (workspace->stop.stopped) {
    return QD_STOPPED;
  }
  if (!conic_is_undecided(found, DEFAULT_ITERATIONS) || !(workspace->path.ray_reach > 0.0)) {
    return found;
  }
  conic_copy_slots(workspace, workspace->best.dual, workspace->path.ray);
  info->method = QD_METHOD_PATH;
  const int row = trace_open(task->options->trace, "certificate", 0, "the paths' best proof");
  const qd_status proof = deliver(workspace, source, tolerance, QD_INFEASIBLE, out, info);
  trace_close_with(task->options->trace, row, info, proof);
  if (proof == QD_INFEASIBLE) {
    return QD_INFEASIBLE;
  }
  info->method = QD_METHOD_NONE;
  return deliver(workspace, source, tolerance, found, out, info);
}

/* Reports infeasibility, and returns 1, if a row without entries is violated. */
static int contradicts_itself(conic_task *task, const conic_program *source,
                              const conic_answer *out) {
  qd_cone_workspace *workspace = task->workspace;
  if (!conic_find_contradiction(workspace, &source->program)) {
    return 0;
  }
  conic_zero_columns(workspace, workspace->iterate.x);
  conic_zero_slots(workspace, workspace->iterate.slack);
  task->info->method = QD_METHOD_CONTRADICTION;
  task->info->status =
      deliver(workspace, source, task->options->tolerance, QD_INFEASIBLE, out, task->info);
  return 1;
}

/* An approximate point without a certificate; 0 if there is none. */
static int solve_roughly(conic_task *task, const conic_answer *out) {
  const conic_point *at = &task->workspace->iterate;
  if (!conic_find_roughly(task)) {
    return 0;
  }
  conic_hand_out(task->workspace, at->x, at->slack, at->dual, out);
  task->info->method = QD_METHOD_PATH;
  task->info->status = QD_OK;
  return 1;
}

/* All scalings, then the best infeasibility ray, for the program as loaded. */
static qd_status search(conic_task task, const conic_program *source, const conic_answer *out) {
  run_scalings(&task, source, out);
  return try_ray(&task, source, out);
}

/* Repeats the search without the test of the duality gap, if answers failed only that test: rows
 * that contradict each other by rounding have a gap that is rounding. */
static qd_status search_with_any_gap(conic_task task, const conic_program *source,
                                     const conic_answer *out) {
  certificate_work *certificate = &task.workspace->certificate;
  task.guess = NULL; /* `out` holds the rejected answers */
  certificate->any_gap = 1;
  conic_clear_info(task.info);
  task.info->status = conic_load(task.workspace, source, ROWS_AS_GIVEN);
  return task.info->status == QD_OK ? search(task, source, out) : task.info->status;
}

/* Solves a program with rigid rows. */
static qd_status solve_rigid(qd_cone_workspace *workspace, const qd_cone_options *options,
                             const conic_program *source, const conic_answer *out,
                             qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const int makes_sense = options->tolerance > 0.0 && options->iteration_limit >= 0;
  conic_task task = {.workspace = workspace,
                     .options = options,
                     .guess = options->warm_start ? out : NULL,
                     .strict = source->derivatives,
                     .midway = source->midway,
                     .look = source->look,
                     .info = info};
  workspace->settled.is_known = 0;
  workspace->stop = (conic_stop){options->stop, options->stop_context, 0};
  workspace->certificate.any_gap = workspace->certificate.gap_was_large = 0;
  if (makes_sense &&
      conic_solve_separable(workspace, source, out->x, out->slack, out->dual, info)) {
    const int row = trace_open(options->trace, "separable", 0, "one by one");
    trace_close_with(options->trace, row, info, QD_OK);
    return QD_OK;
  }
  conic_clear_info(info);
  workspace->units.resolution = options->tolerance * source->length;
  info->status = makes_sense ? conic_load(workspace, source, ROWS_AS_GIVEN) : QD_BAD_ARGUMENT;
  if (info->status != QD_OK) {
    conic_clear_outputs(program, out);
    return info->status;
  }
  if (contradicts_itself(&task, source, out)) {
    const int row = trace_open(options->trace, "contradiction", 0, "a row without variables");
    trace_close_with(options->trace, row, info, info->status);
    return info->status;
  }
  if (source->rough && workspace->program.exact && solve_roughly(&task, out)) {
    return QD_OK;
  }
  info->status = search(task, source, out);
  if (info->status != QD_OK && workspace->certificate.gap_was_large && !workspace->stop.stopped) {
    info->status = search_with_any_gap(task, source, out);
  }
  return info->status;
}

qd_status conic_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                      const conic_program *source, const conic_answer *out, qd_cone_info *info) {
  const qd_cone_options o = options ? *options : qd_cone_options_default();
  qd_status status;
  if (compliance_is_wanted(&source->program)) {
    status = conic_solve_compliant(workspace, &o, source, out, info, solve_rigid);
  } else {
    workspace->soft.used = workspace->envelope.used = 0;
    status = solve_rigid(workspace, &o, source, out, info);
  }
  if (status == QD_OK && source->derivatives && !(source->look && source->look->stopped)) {
    conic_settle(workspace, info);
  }
  return status;
}
