/* Slacks and residuals of a point, in internal units. */
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

void conic_slacks_at(const qd_cone_workspace *workspace, const double *x, double *w) {
  conic_zero_slots(workspace, w);
  tiles_multiply(&workspace->system, workspace->system.G, x, w);
  add_scaled(w, 1.0, workspace->program.g, workspace->program.slot_count);
}

QD_MULTIVERSION
void conic_row_residual(qd_cone_workspace *workspace, const double *x, const double *slack) {
  tiles_multiply(&workspace->system, workspace->system.G, x, workspace->work.residual_row);
  for (int i = 0; i < workspace->program.slot_count; ++i) {
    workspace->work.residual_row[i] += workspace->program.g[i] - slack[i];
  }
  if (workspace->ends.count > 0) {
    conic_ends_residual(workspace);
  }
}

QD_MULTIVERSION
void conic_column_residual(qd_cone_workspace *workspace, const double *x, const double *dual) {
  tiles_multiply_Q(&workspace->system, x, workspace->work.Qx);
  negate(workspace->work.row, dual, workspace->program.slot_count);
  for (int i = 0; i < workspace->program.column_count; ++i) {
    workspace->work.residual_x[i] = workspace->work.Qx[i] + workspace->program.b[i];
  }
  tiles_add_transposed(&workspace->system, workspace->system.G, workspace->work.row,
                       workspace->work.residual_x);
}
