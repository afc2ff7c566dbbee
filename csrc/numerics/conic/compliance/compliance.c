/* Programs with compliant rows: solves the rigid program and converts its answer, which is
 * certified in the caller's units, including compliance and limits. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/trace.h"
#include "numerics/conic/certificate/detail.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/workspace.h"

static void enter_row(compliant_program *soft, const conic_program *source, int i,
                      const conic_answer *guess) {
  const compliant_row *row = soft->row + i;
  double dual = guess->dual[i];
  if (row->row < 0) {
    return;
  }
  if (row->kind != COMPLIANT_CONE) {
    dual = compliance_within(dual, row->lower, row->upper);
  }
  const double own = row->sign * (dual - row->base);
  (row->kind == COMPLIANT_EQUALITY ? soft->found.dual_eq : soft->found.dual)[row->row] = own;
  if (row->spring >= 0) {
    soft->found.x[row->spring] = sqrt(row->compliance) / sqrt(soft->curvature) * own;
  }
  if (row->slip >= 0) {
    const double slack = row->sign * compliance_slack(source, row, i, guess->x, dual);
    soft->found.x[row->slip] = larger(-slack, 0.0);
    soft->found.dual[row->slip_row] = row->width - own;
  }
}

/* Converts the caller's guess to the rigid program. */
static void enter(compliant_program *soft, const conic_program *source, const conic_answer *guess) {
  const qd_cone_program *program = &source->program;
  memset(soft->found.x, 0, (size_t)soft->next * sizeof(double));
  memcpy(soft->found.x, guess->x, (size_t)soft->variables * sizeof(double));
  for (int i = 0; i < soft->rows; ++i) {
    enter_row(soft, source, i, guess);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    soft->found.dual_eq[i] = guess->dual_eq[i];
    if (soft->spring_eq[i] >= 0) {
      soft->found.x[soft->spring_eq[i]] = sqrt(rows_compliance(program, program->row_count + i)) /
                                          sqrt(soft->curvature) * guess->dual_eq[i];
    }
  }
}

/* ------------------------------------------------------------ converting back */

/* Multiplier of a row in an infeasibility ray (conic/certificate/proof.c), where forces have no
 * limits. */
static double ray_of(const compliant_program *soft, const compliant_row *row) {
  if (row->row < 0) {
    return 0.0;
  }
  switch (row->kind) {
  case COMPLIANT_EQUALITY:
    return soft->found.dual_eq[row->row];
  case COMPLIANT_END:
    return row->sign * soft->found.dual[row->row];
  default:
    return soft->found.dual[row->row];
  }
}

/* Multiplier of a row, before it is clamped to its interval. */
static double force_of(const compliant_program *soft, const compliant_row *row) {
  switch (row->kind) {
  case COMPLIANT_CONE:
    return soft->found.dual[row->row];
  case COMPLIANT_FORCE:
    return row->base;
  case COMPLIANT_EQUALITY:
    return soft->found.dual_eq[row->row];
  default:
    return row->base + row->sign * soft->found.dual[row->row];
  }
}

static void leave_row(compliant_program *soft, const conic_program *source, int ray, int i,
                      const conic_answer *out) {
  const compliant_row *row = soft->row + i;
  const double force = ray ? ray_of(soft, row) : force_of(soft, row);
  const int is_free = ray || row->kind == COMPLIANT_CONE;
  out->dual[i] = is_free ? force : compliance_within(force, row->lower, row->upper);
  out->slack[i] = row->kind == COMPLIANT_CONE && !row->is_measured
                      ? soft->found.slack[row->row]
                      : compliance_slack(source, row, i, out->x, out->dual[i]);
}

static void leave(compliant_program *soft, const conic_program *source, int ray,
                  const conic_answer *out) {
  const int same = soft->as_it_is ? soft->first_interval : 0;
  memcpy(out->x, soft->found.x, (size_t)soft->variables * sizeof(double));
  memcpy(out->dual, soft->found.dual, (size_t)same * sizeof(double));
  memcpy(out->slack, soft->found.slack, (size_t)same * sizeof(double));
  for (int i = same; i < soft->rows; ++i) {
    leave_row(soft, source, ray, i, out);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    out->dual_eq[i] = soft->found.dual_eq[i];
  }
}

/* ------------------------------------------------------------ the solve */

/* State of a solve. */
typedef struct compliance_task {
  qd_cone_workspace *workspace;
  qd_cone_options options;
  const conic_program *source;
  const conic_answer *out;
  qd_cone_info *info, sum; /* totals of all rounds */
  rigid_solver solve;
  const char *how; /* how rows are treated, for the trace */
} compliance_task;

/* 1 if the current answer holds in the caller's units. */
static int answer_holds(const compliance_task *task) {
  const conic_answer *out = task->out;
  const cone_point at = {out->x, out->slack, out->dual, out->dual_eq};
  conic_begin_stage(task->workspace);
  return detail_holds(&task->workspace->certificate, task->source, task->options.tolerance,
                      task->options.tolerance * task->source->length, &at, task->info, NULL);
}

/* Verdict on the rigid program's answer, in the caller's units. */
static qd_status judge_rigid(const compliance_task *task) {
  compliant_program *soft = &task->workspace->soft;
  qd_status status = task->info->status;
  leave(soft, task->source, status == QD_INFEASIBLE, task->out);
  if (status == QD_INFEASIBLE && !conic_excludes(task->workspace, task->source, task->out)) {
    status = QD_NUMERICAL_TROUBLE;
    leave(soft, task->source, 0, task->out);
  }
  const int holds = answer_holds(task); /* fills residuals, whatever the verdict */
  return holds || status != QD_OK ? status : QD_NUMERICAL_TROUBLE;
}

/* Solves the rigid program with the current treatment of rows, and converts its answer. */
static qd_status solve_once(compliance_task *task) {
  compliant_program *soft = &task->workspace->soft;
  qd_cone_info *info = task->info;
  if (!compliance_write(soft, task->source)) {
    conic_clear_info(info);
    conic_clear_outputs(&task->source->program, task->out);
    return info->status = QD_OUT_OF_CAPACITY;
  }
  if (task->options.warm_start) {
    enter(soft, task->source, task->out);
  }
  const int row = trace_open(task->options.trace, "compliance", 0, "%s", task->how);
  info->status =
      task->solve(task->workspace, &task->options, &soft->written.rigid, &soft->found, info);
  trace_close_with(task->options.trace, row, info, info->status);
  soft->natively = 0;
  task->sum.iterations += info->iterations;
  task->sum.factorizations += info->factorizations;
  task->sum.tries += info->tries;
  info->iterations = task->sum.iterations;
  info->factorizations = task->sum.factorizations;
  info->tries = task->sum.tries;
  return info->status = judge_rigid(task);
}

/* 1 if Newton's method on the envelope has found an answer. */
static int solve_on_envelope(compliance_task *task) {
  qd_cone_workspace *workspace = task->workspace;
  qd_cone_info *info = task->info;
  if (!task->options.polish || !envelope_suits(&task->source->program)) {
    return 0;
  }
  const int row = trace_open(task->options.trace, qd_cone_method_name(QD_METHOD_ENVELOPE), 0,
                             "rows as they are");
  const int holds = envelope_solve(workspace, &task->options, task->source, task->out, info) &&
                    (info->polished || answer_holds(task));
  trace_effort(task->options.trace, info->iterations, info->factorizations);
  trace_close(task->options.trace, row, info->dual_residual,
              !holds           ? "no answer"
              : info->polished ? "to rounding"
                               : "to the tolerance");
  info->tries = 1;
  workspace->soft.as_it_is = holds;
  workspace->envelope.used &= holds;
  task->sum = *info;
  return holds;
}

/* Keeps the program for derivatives, when the views of the matrices no longer exist. */
static void keep_source(compliant_program *soft, const conic_program *source) {
  const sparse_rows *given[3] = {source->Q, source->G, source->C};
  const sparse_rows **own[3] = {&soft->source.Q, &soft->source.G, &soft->source.C};
  soft->source = *source;
  for (int k = 0; k < 3; ++k) {
    if (given[k]) {
      soft->source_rows[k] = *given[k];
      *own[k] = soft->source_rows + k;
    }
  }
}

/* 1 if a path with native rows has reached a final verdict. QD_UNBOUNDED is not final for an exact
 * program, whose test of unbounded directions is not sharp enough there. */
static int solve_as_it_is(compliance_task *task, int exact) {
  compliance_treat_rows(&task->workspace->soft, &task->source->program, 1);
  task->how = "rows as they are";
  const qd_status status = solve_once(task);
  task->options.warm_start = 0;
  return status == QD_OK || status == QD_INFEASIBLE ||
         (!exact &&
          (status == QD_UNBOUNDED || status == QD_OUT_OF_CAPACITY || status == QD_NOT_FINITE));
}

/* Solves with slips, which allow forces at both ends of an interval. */
static void solve_with_slips(compliance_task *task) {
  compliance_treat_rows(&task->workspace->soft, &task->source->program, 0);
  task->how = "slips";
  solve_once(task);
  task->options.warm_start = 0;
}

/* 1 if no row has a compliance, so that compliant rows are only intervals. */
static int all_are_rigid(const qd_cone_program *program) {
  int any = 0;
  for (int i = 0; i < program->row_count; ++i) {
    any |= rows_compliance(program, i) > 0.0;
  }
  for (int i = 0; i < program->equality_count; ++i) {
    any |= rows_compliance(program, program->row_count + i) > 0.0;
  }
  return !any;
}

qd_status conic_solve_compliant(qd_cone_workspace *workspace, const qd_cone_options *options,
                                const conic_program *source, const conic_answer *out,
                                qd_cone_info *info, rigid_solver solve) {
  compliant_program *soft = &workspace->soft;
  keep_source(soft, source);
  soft->as_it_is = workspace->envelope.used = 0;
  compliance_task task = {.workspace = workspace,
                          .options = *options,
                          .source = source,
                          .out = out,
                          .info = info,
                          .solve = solve};
  conic_clear_info(info);
  info->status = compliance_check(soft, source);
  if (info->status != QD_OK) {
    conic_clear_outputs(&source->program, out);
    return info->status;
  }
  compliance_treat_rows(soft, &source->program, 1);
  const int exact = rows_are_exact(&source->program);
  const int stays =
      !exact || compliance_rows_can_stay(soft, &source->program) || all_are_rigid(&source->program);
  if (!(exact && solve_on_envelope(&task)) && !(stays && solve_as_it_is(&task, exact))) {
    solve_with_slips(&task);
  }
  const qd_status found = info->status;
  if (!stays && conic_is_undecided(found, options->iteration_limit) &&
      !solve_as_it_is(&task, exact)) {
    info->status = found;
  }
  soft->used = 1;
  if (workspace->stop.stopped) {
    info->status = QD_STOPPED;
  }
  return info->status;
}
