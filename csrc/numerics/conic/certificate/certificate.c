/* Acceptance of answers, in the caller's units.
 *
 * The methods judge residuals in scaled columns and in natural units of all cones together. That
 * can hide a row or a column whose own scale is far smaller, and a method cannot certify itself. So
 * each verdict is checked against the program as given, row by row and column by column
 * (qdsim/solvers.h has the definition in words). A fast check here uses bounds for all rows at
 * once. If it fails, and for all programs with compliant rows, detail.c checks in detail. Let d_j
 * be the scale of a column, 1 / sqrt(Q_jj), or one over its largest entry where there is no
 * curvature; s the share; and e the row error that counts as zero (tolerance times the typical
 * length of the rows, 0 where the caller gave none):
 *
 *     R_i  how far x moves, or might: the largest of 0.1 % of |x_j| / d_j over columns of row (or
 *          cone) i, of e / (s |G_i d|), and of 1 % of o, the largest offset |g|, |c| over the
 *          largest row norm |G_i d|
 *     S_i  largest d_j |term| over these columns, of any term of Qx + b - G'dual - C'dual_eq
 *     S_j  of a column: the largest S_i of the rows that contain it
 *
 * Distances and forces in other parts of the program do not count. The distance that the cost alone
 * moves x, f = max |b_j| d_j where there is curvature, is not a scale: in nearly linear programs it
 * is far beyond the rows. But where o is rounding of f, R is f / 1e8, and for a barrier R is at
 * least f.
 *
 *     rows      violation at most s max(|g_i|, |G_i d| R_i), or e, or rounding of the largest |g|
 *     columns   |residual_j| d_j <= s S_j, and |residual_j| at most s times the largest unscaled
 *               term; or rounding of the largest S of all columns coupled by rows and Q
 *     products  |dual o slack - target| <= s max(S_i R_i, target), and so |dual| |Gx + g - slack|
 *     gap       sum of the products <= s times the terms of objective and dual objective, or
 *               rounding (1e-12) of the sum of S_i R_i; not checked where e is given
 *     duals     outside by no more than rounding, or |G_i d| times that <= s S_i
 *
 * Without any b, S is at least R; without b and offsets, R is at least 1. Compliant rows have R
 * dual in their slack and springs in Q_jj; they are compared with all terms of their slack. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/detail.h"
#include "numerics/conic/certificate/measure.h"
#include "numerics/conic/certificate/scales.h"

/* ------------------------------------------------------------ multipliers */

static double least(const double *values, int count) {
  double low = HUGE_VAL;
  for (int i = 0; i < count; ++i) {
    low = smaller(low, values[i]);
  }
  return low;
}

/* 1 if all multipliers lie in their cones, up to rounding. */
int duals_hold(const qd_cone_program *program, const double *dual) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int linear = program->cone_kind[k] == QD_ORTHANT, dim = program->cone_dim[k];
    if (program->cone_kind[k] == QD_INTERVAL) {
      continue;
    }
    if (!(linear ? least(dual + row, dim) >= 0.0 : is_in_cone(dual + row, dim))) {
      return 0;
    }
  }
  return 1;
}

/* max |value_j| d_j */
static double scaled_norm(const qd_cone_workspace *workspace, const double *value) {
  double worst = 0.0;
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      const double v = fabs(value[workspace->program.column_of[k]]);
      worst = larger(worst, v * workspace->program.column_scale[k]);
    }
  }
  return worst;
}

/* 1 if the duality gap, i.e. the sum of an exact program's products, is at most `rounding`, or
 * small compared with the terms of the objective and of the dual objective -1/2 x'Qx - g'dual -
 * c'dual_eq. Small products in each row are not sufficient: the objective may be far smaller than
 * they are. */
static int gap_is_small(const qd_cone_workspace *workspace, const qd_cone_program *program,
                        double share, double rounding, const cone_point *at, double objective) {
  const double *w = workspace->work.row2;
  double sum = 0.0, linear = 0.0, size = 0.0;
  for (int i = 0; i < program->row_count; ++i) {
    sum += w[i] * at->dual[i];
    size += fabs(program->g[i] * at->dual[i]);
  }
  for (int i = 0; i < program->equality_count; ++i) {
    size += fabs(program->c[i] * at->dual_eq[i]);
  }
  for (int j = 0; j < program->variable_count; ++j) {
    linear += program->b[j] * at->x[j];
    size += fabs(program->b[j] * at->x[j]);
  }
  size += fabs(2.0 * (objective - linear));
  return fabs(sum) <= larger(share * size, rounding);
}

int conic_is_certified(qd_cone_workspace *workspace, const conic_program *source, double tolerance,
                       const cone_point *at, const qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const double share = larger(SLIGHT, 10.0 * tolerance);
  const scales s = measure_scales(workspace, program);
  const double zero = workspace->units.resolution;
  const double plain = NEGLIGIBLE * s.b_scaled;
  const double looked = s.strongest_row > 0.0 ? zero / (share * s.strongest_row) : 0.0;
  const double reach = larger(s.reach, looked);
  const double gap = larger(info->complementarity, workspace->slack_error) - share * s.target;
  const int is_step = zero > 0.0, judges_gap = !is_step && workspace->program.exact;
  if (product_is_safe(share, s.b_scaled, reach) &&
      scaled_norm(workspace, workspace->work.x) <= plain &&
      info->dual_residual <= NEGLIGIBLE * s.b &&
      gap <= (info->polished ? share * s.b_scaled : plain) * reach &&
      info->primal_residual <= larger(share * s.reach * s.weakest_row, zero) &&
      duals_hold(program, at->dual)) {
    if (!judges_gap || workspace->certificate.any_gap ||
        gap_is_small(workspace, program, share, 0.0, at, info->objective)) {
      return 1;
    }
    workspace->certificate.gap_was_large = 1;
  }
  qd_cone_info own = *info;
  double natural = 0.0;
  conic_begin_stage(workspace);
  return detail_holds(&workspace->certificate, source, tolerance, zero, at, &own,
                      judges_gap ? &natural : NULL) &&
         (!judges_gap ||
          gap_is_small(workspace, program, share, NEGLIGIBLE * natural, at, info->objective));
}
