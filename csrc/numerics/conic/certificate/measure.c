/* Residuals of an answer, in the caller's units. */
#include "numerics/conic/certificate/measure.h"

#include <string.h>

#include "numerics/vectors.h"

/* w = four rows of a block (at most `left` of them) times x; residual -= their sum weighted with
 * `dual`. Vectors over columns have whole tiles, in the caller's order; x is zero behind the last
 * column. */
LANES_INLINE void measure_four(const qd_cone_workspace *workspace, const row_block *block,
                               const double *first, size_t stride, int left, const double *x,
                               const double *dual, double *w, double *residual) {
  const double *row[4];
  const int *places = workspace->system.block_tiles + block->tile_start;
  const int *from = workspace->structure.block_from + block->tile_start;
  lanes a0 = {0.0}, a1 = {0.0}, a2 = {0.0}, a3 = {0.0}, sums, load = {0.0};
  for (int k = 0; k < 4; ++k) {
    row[k] = first + (size_t)(k < left ? k : left - 1) * stride;
    load[k] = k < left ? dual[k] : 0.0;
  }
  for (int t = 0; t < block->tile_count; ++t) {
    const lanes at = LANES_OF(x + 4 * (size_t)workspace->structure.tile_original[places[t]]);
    a0 += LANES_FROM(row[0] + from[t]) * at;
    a1 += LANES_FROM(row[1] + from[t]) * at;
    a2 += LANES_FROM(row[2] + from[t]) * at;
    a3 += LANES_FROM(row[3] + from[t]) * at;
  }
  lanes_sums(&sums, &a0, &a1, &a2, &a3);
  for (int k = 0; k < 4 && k < left; ++k) {
    w[k] = sums[k];
  }
  if (load[0] == 0.0 && load[1] == 0.0 && load[2] == 0.0 && load[3] == 0.0) {
    return;
  }
  for (int t = 0; t < block->tile_count; ++t) {
    double *out = residual + 4 * (size_t)workspace->structure.tile_original[places[t]];
    LANES_AT(out) -=
        (load[0] * LANES_FROM(row[0] + from[t]) + load[1] * LANES_FROM(row[1] + from[t])) +
        (load[2] * LANES_FROM(row[2] + from[t]) + load[3] * LANES_FROM(row[3] + from[t]));
  }
}

/* w = rows of a block times x, residual -= rows' dual; `dual` and `w` start at the block's first
 * row */
LANES_INLINE void measure_block(const qd_cone_workspace *workspace, const conic_program *source,
                                const row_block *block, const double *x, const double *dual,
                                double *w, double *residual) {
  if (conic_reads_in_fours(workspace, block)) {
    const size_t stride = conic_row_stride(workspace, block);
    const double *first = conic_caller_row(workspace, block->first_row);
    for (int i = 0; i < block->row_count; i += 4, first += 4 * stride) {
      measure_four(workspace, block, first, stride, block->row_count - i, x, dual + i, w + i,
                   residual);
    }
    return;
  }
  for (int i = 0; i < block->row_count; ++i) { /* the last rows of a dense matrix */
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (row_reader row = rows_open(source, block->first_row + i); rows_next(&row);) {
      sum += LANES_FROM(row.values) * LANES_OF(x + row.first);
    }
    w[i] = lanes_sum(&sum);
    rows_add(source, block->first_row + i, -dual[i], residual);
  }
}

/* Qx + b and the objective; x has whole tiles. */
LANES_INLINE double cost_gradient(const conic_program *source, const double *x, double *gradient) {
  double objective = 0.0;
  for (int i = 0; i < source->program.variable_count; ++i) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (row_reader row = rows_open_cost(source, i); rows_next(&row);) {
      sum += LANES_FROM(row.values) * LANES_OF(x + row.first);
    }
    const double Qx = lanes_sum(&sum);
    gradient[i] = Qx + source->program.b[i];
    objective += x[i] * (0.5 * Qx + source->program.b[i]);
  }
  return objective;
}

/* Errors of all cones, with w = Gx + g. */
LANES_INLINE void measure_cones(const qd_cone_program *program, const double *w,
                                const double *slack, const double *dual, cone_errors *most) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_dim[k];
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    if (program->cone_kind[k] == QD_LORENTZ) {
      measure_cone(w + row, slack + row, dual + row, dim, target, most);
    } else {
      for (int i = row; i < row + dim; ++i) {
        measure_cone(w + i, slack + i, dual + i, 1, target, most);
      }
    }
  }
}

/* Residuals in the caller's units; infinite where one of them is NaN. */
QD_MULTIVERSION
void conic_measure(qd_cone_workspace *workspace, const conic_program *source,
                   const conic_answer *at, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const double *slack = at->slack, *dual = at->dual, *dual_eq = at->dual_eq;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  double *residual = workspace->work.x, *whole_x = workspace->work.dx, *w = workspace->work.row2;
  double primal = 0.0;
  cone_errors most = {0.0, 0.0, 0.0, 0.0};
  for (int k = 0; k < workspace->program.column_count; ++k) {
    whole_x[k] = k < n ? at->x[k] : 0.0;
  }
  info->objective = cost_gradient(source, whole_x, residual);
  for (int i = 0; i < m + p; ++i) {
    w[i] = 0.0; /* omitted rows */
  }
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    const int first = block->first_row;
    measure_block(workspace, source, block, whole_x,
                  first < m ? dual + first : dual_eq + (first - m), w + first, residual);
  }
  for (int i = 0; i < p; ++i) {
    primal = larger(primal, fabs(w[m + i] + program->c[i]));
  }
  add_scaled(w, 1.0, program->g, m);
  measure_cones(program, w, slack, dual, &most);
  const int rows_finite = all_finite(w, m + p), sums_finite = most.unsure == 0.0;
  const int answers_finite = all_finite(slack, m) && all_finite(dual, m) && all_finite(dual_eq, p);
  info->primal_residual = rows_finite ? larger(primal, most.outside) : HUGE_VAL;
  info->dual_residual = max_norm_or_infinity(residual, n);
  info->complementarity = sums_finite && answers_finite ? most.gap : HUGE_VAL;
  workspace->slack_error = most.apart;
}
