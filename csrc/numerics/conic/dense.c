/* Solves callers' dense programs: as given, in tiles that begin at the boundaries of their blocks,
 * or with their equalities eliminated. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/trace.h"
#include "numerics/conic/workspace.h"

/* 1 if the equalities contradict each other; the certificate is then the answer. */
static int equalities_contradict(qd_cone_workspace *workspace, const qd_cone_program *program,
                                 const conic_answer *out, qd_cone_info *info) {
  if (equality_space_find(&workspace->space, program, out->dual_eq)) {
    return 0;
  }
  const conic_program whole = {.program = *program};
  const conic_answer proof = {out->x, out->slack, out->dual, NULL};
  conic_clear_outputs(program, &proof);
  info->method = QD_METHOD_CONTRADICTION;
  return conic_judge(workspace, &whole, 0.0, QD_INFEASIBLE, out, info) == QD_INFEASIBLE;
}

/* Solves the program with its equalities eliminated. This avoids the penalty, which is inaccurate
 * for nearly dependent rows, and allows the methods for programs without equalities. */
static qd_status solve_in_space(qd_cone_workspace *workspace, const qd_cone_options *options,
                                const qd_cone_program *program, const conic_answer *out,
                                qd_cone_info *info) {
  const conic_program whole = {.program = *program};
  equality_space *space = &workspace->space;
  conic_clear_info(info);
  info->status = conic_load(workspace, &whole, ROWS_AS_GIVEN);
  if (info->status != QD_OK) {
    conic_clear_outputs(program, out);
    return info->status;
  }
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      space->column_scale[workspace->program.column_of[k]] = workspace->program.column_scale[k];
    }
  }
  if (equalities_contradict(workspace, program, out, info)) {
    return info->status = QD_INFEASIBLE;
  }
  const conic_program within = {.program = equality_space_restrict(space, program)};
  if (options->warm_start) {
    equality_space_coordinates(space, out->x, space->y);
  }
  const conic_answer inside = {space->y, out->slack, out->dual, NULL};
  const qd_status status = conic_solve(workspace, options, &within, &inside, info);
  equality_space_point(space, space->y, status == QD_UNBOUNDED, out->x);
  equality_space_multipliers(space, program, status == QD_INFEASIBLE ? NULL : out->x, out->dual,
                             out->dual_eq);
  if (conic_load(workspace, &whole, ROWS_AS_GIVEN) == QD_OK && status != QD_UNBOUNDED) {
    workspace->certificate.any_gap = 1; /* it was checked without equalities */
    info->status = conic_judge(workspace, &whole, options->tolerance, status, out, info);
  }
  return info->status;
}

/* Solves the program as given, or in tiles that begin at the boundaries of its blocks. */
static qd_status solve_dense(qd_cone_workspace *workspace, const qd_cone_options *options,
                             const qd_cone_program *program, const conic_answer *out,
                             qd_cone_info *info) {
  const conic_program dense = {.program = *program};
  aligned_columns *aligned = &workspace->aligned;
  const int n = program->variable_count;
  if (!workspace->capacity.is_dense || n <= FEW_COLUMNS ||
      !conic_makes_sense(&workspace->capacity, &dense, QD_INTERVAL) ||
      !aligned_columns_find(aligned, program)) {
    return conic_solve(workspace, options, &dense, out, info);
  }
  aligned_columns_enter(aligned, n, out->x);
  const conic_answer in_place = {aligned->x, out->slack, out->dual, out->dual_eq};
  conic_solve(workspace, options, &aligned->program, &in_place, info);
  aligned_columns_leave(aligned, n, out->x);
  return info->status;
}

/* Solves a program with rigid rows, with and without elimination of equalities in turn. */
static qd_status solve_rigid(qd_cone_workspace *workspace, const qd_cone_options *options,
                             const conic_program *source, const conic_answer *out,
                             qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  qd_cone_options o = *options;
  const int in_space = program->variable_count <= SPACE_LIMIT;
  qd_status status = QD_NUMERICAL_TROUBLE;
  if (program->equality_count <= 0 || !(o.tolerance > 0.0) || !workspace->capacity.is_dense) {
    return solve_dense(workspace, &o, program, out, info);
  }
  for (int k = 0; k < 2 && conic_is_undecided(status, o.iteration_limit); ++k) {
    status = (k == 0) == in_space ? solve_in_space(workspace, &o, program, out, info)
                                  : solve_dense(workspace, &o, program, out, info);
    o.warm_start = 0;
  }
  return status;
}

qd_status qd_cone_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                        const qd_cone_program *program, double *x, double *slack, double *dual,
                        double *dual_eq, qd_cone_info *info) {
  const qd_cone_options o = options ? *options : qd_cone_options_default();
  const conic_answer out = {x, slack, dual, dual_eq};
  const conic_program whole = {.program = *program};
  trace_clear(o.trace);
  return compliance_is_wanted(program)
             ? conic_solve_compliant(workspace, &o, &whole, &out, info, solve_rigid)
             : solve_rigid(workspace, &o, &whole, &out, info);
}
