/* Final verdict in the caller's units. */
#include <math.h>
#include <string.h>

#include "numerics/conic/workspace.h"

void conic_clear_outputs(const qd_cone_program *program, const conic_answer *out) {
  double *const each[] = {out->x, out->slack, out->dual, out->dual_eq};
  const int count[] = {program->variable_count, program->row_count, program->row_count,
                       program->equality_count};
  for (int i = 0; i < 4; ++i) {
    if (count[i] > 0 && each[i]) {
      memset(each[i], 0, (size_t)count[i] * sizeof(double));
    }
  }
}

void conic_clear_info(qd_cone_info *info) {
  memset(info, 0, sizeof *info);
  info->primal_residual = info->dual_residual = info->complementarity = HUGE_VAL;
}

/* Fills the residuals and replaces a verdict that they do not confirm. Programs with interval rows
 * are judged with the caller's original program (conic/compliance/compliance.c). */
qd_status conic_judge(qd_cone_workspace *workspace, const conic_program *source, double tolerance,
                      qd_status status, const conic_answer *out, qd_cone_info *info) {
  if (workspace->ends.count > 0) {
    return status;
  }
  conic_measure(workspace, source, out, info);
  if (status == QD_INFEASIBLE && !conic_excludes(workspace, source, out)) {
    return QD_NUMERICAL_TROUBLE;
  }
  if (status != QD_OK) {
    return status;
  }
  const double worst = info->objective + info->primal_residual + info->dual_residual +
                       info->complementarity; /* not finite: beyond the range of a double */
  const cone_point point = {out->x, out->slack, out->dual, out->dual_eq};
  return isfinite(worst) && conic_is_certified(workspace, source, tolerance, &point, info)
             ? QD_OK
             : QD_NUMERICAL_TROUBLE;
}
