/* Proofs that a program has no point, in the caller's own numbers. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/measure.h"
#include "numerics/conic/certificate/scales.h"

#define AROUND 30.0 /* distances to where its rows meet the axes, likewise */

/* What multipliers say that are to prove that there is no point. */
typedef struct proof_sums {
  double sum, size, force; /* g'dual + c'dual_eq, its largest term, the largest force */
  double moved;            /* |G'dual + C'dual_eq| in scaled columns, summed */
  double leak;             /* the same, each column times how far it may go */
} proof_sums;

/* A row of the caller's, and its multiplier. */
typedef struct proof_row {
  const row_block *block;
  const double *entries;
  double dual, offset;
  double norm;
} proof_row;

static proof_row read_row(const qd_cone_workspace *workspace, const qd_cone_program *program,
                          const row_block *block, int i, const double *dual,
                          const double *dual_eq) {
  const int m = program->row_count, row = block->first_row + i;
  return (proof_row){
      .block = block,
      .entries = conic_caller_row(workspace, row),
      .dual = row < m ? dual[row] : dual_eq[row - m],
      .offset = row < m ? program->g[row] : program->c[row - m],
      .norm = norm_of_rows(workspace, block->cone + (block->slot_step == 1 ? i : 0)),
  };
}

/* scale: of the caller's columns. reach: where the row meets each column's axis, at least; entries
 * that are far smaller than the row's largest are none. */
static void raise_reach(const qd_cone_workspace *workspace, const proof_row *row,
                        const double *scale, double *reach) {
  const row_block *block = row->block;
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->structure.tile_original[place];
    const double *from = row->entries + workspace->structure.block_from[block->tile_start + k];
    for (int j = 0; j < 4 && first + j < workspace->program.variable_count; ++j) {
      const double entry = fabs(from[j]) * scale[first + j];
      if (entry > SLIGHT * row->norm) {
        reach[first + j] = larger(reach[first + j], AROUND * fabs(row->offset) / entry);
      }
    }
  }
}

/* x goes at least as far as `reach`. */
static proof_sums sum_proof(const qd_cone_workspace *workspace, const qd_cone_program *program,
                            const double *dual, const double *dual_eq, double reach) {
  double *push = workspace->work.x, *far = workspace->work.dx, *scale = workspace->work.Qx;
  proof_sums proof = {0.0, 0.0, 0.0, 0.0, 0.0};
  memset(push, 0, (size_t)program->variable_count * sizeof(double));
  for (int k = 0; k < workspace->program.column_count; ++k) {
    const int j = workspace->program.column_of[k];
    if (j >= 0) {
      scale[j] = workspace->program.column_scale[k];
      far[j] = reach;
    }
  }
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int i = 0; i < block->row_count; ++i) {
      const proof_row row = read_row(workspace, program, block, i, dual, dual_eq);
      if (row.dual == 0.0) {
        continue;
      }
      const double term = row.dual * row.offset;
      const int vanished = term == 0.0 && row.dual != 0.0 && row.offset != 0.0;
      proof.sum += term;
      proof.size = larger(proof.size, vanished ? 0.5 * TINIEST : fabs(term));
      proof.force = larger(proof.force, fabs(row.dual) * row.norm);
      subtract_row(workspace, block, row.entries, row.dual, push);
      raise_reach(workspace, &row, scale, far);
    }
  }
  for (int k = 0; k < workspace->program.column_count; ++k) {
    const int j = workspace->program.column_of[k];
    if (j >= 0) {
      const double moved = fabs(push[j]) * scale[j];
      proof.moved += moved;
      proof.leak += moved * far[j];
    }
  }
  return proof;
}

/* Multipliers without cones whose force is below `least`. */
static void keep_strong(const qd_cone_workspace *workspace, const qd_cone_program *program,
                        double least, double *dual) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_kind[k] == QD_LORENTZ ? program->cone_dim[k] : 1;
    for (int i = row; i < row + program->cone_dim[k]; i += dim) {
      if (workspace->program.slot_of[i] >= 0 &&
          fabs(dual[i]) * norm_of_rows(workspace, conic_lane_of(workspace, i)) < least) {
        memset(dual + i, 0, (size_t)dim * sizeof(double));
      }
    }
  }
}

/* A multiplier in its cone with G'dual + C'dual_eq = 0 and g'dual + c'dual_eq < 0 excludes every x.
 * In numbers that are rounded: every x that is not EXCLUDED times farther away than the cost or
 * offsets send it, or in a column AROUND times than its own rows that carry the proof. For a
 * barrier the sum may be zero: then no x lies inside. That is judged without the cones that carry
 * next to nothing: they hold each other in other parts of the program, and where widths differ by
 * decades what they carry there looks like what rounding leaves. */
int conic_excludes(const qd_cone_workspace *workspace, const qd_cone_program *program, double *dual,
                   const double *dual_eq) {
  const scales s = measure_scales(workspace, program);
  if (!duals_hold(program, dual)) {
    return 0;
  }
  const proof_sums p = sum_proof(workspace, program, dual, dual_eq, 0.0);
  const int no_offset = p.size == 0.0 && p.force > TINIEST && !workspace->program.exact;
  if (!((p.size > TINIEST || no_offset) && p.size < HUGE_VAL && isfinite(p.sum + p.force))) {
    return 0;
  }
  const double rows = p.force > 0.0 ? larger(s.offset, p.size / p.force) : s.offset;
  const double far = larger(s.free, rows), reach = EXCLUDED * (far > 0.0 ? far : 1.0);
  keep_strong(workspace, program, NEGLIGIBLE * p.force, dual);
  const proof_sums all = sum_proof(workspace, program, dual, dual_eq, reach);
  if (all.sum + all.leak < 0.0 || workspace->program.exact) {
    return all.sum + all.leak < 0.0;
  }
  keep_strong(workspace, program, SMALL * p.force, dual);
  const proof_sums strong = sum_proof(workspace, program, dual, dual_eq, reach);
  return strong.sum <= SLIGHT * strong.size && strong.moved <= SLIGHT * strong.force;
}

/* A row without entries is what it is; one that is zero but for the rounding of a difference is
 * zero. */
int conic_find_contradiction(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int m = program->row_count;
  const double nothing = workspace->program.exact ? -LAST_DIGITS * max_norm(program->g, m) : 0.0;
  double *ray = workspace->best.dual;
  if (!workspace->structure.any_empty_row) {
    return 0;
  }
  for (int i = 0; i < program->equality_count; ++i) {
    if (program->c[i] != 0.0 && conic_row_is_empty(workspace, m + i)) {
      conic_zero_slots(workspace, ray);
      ray[workspace->program.slot_of[m + i]] = program->c[i] > 0.0 ? -1.0 : 1.0;
      return 1;
    }
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    for (int i = row; i < row + program->cone_dim[k]; ++i) {
      if (!conic_cone_is_linear(workspace, program, k) && i > row) {
        break;
      }
      if (i - row >= workspace->program.cone_rows[k] || !(program->g[i] < 0.0) ||
          !conic_row_is_empty(workspace, i)) {
        continue;
      }
      if (program->g[i] >= nothing) {
        workspace->program.g[workspace->program.slot_of[i]] = 0.0;
        continue;
      }
      conic_zero_slots(workspace, ray);
      ray[workspace->program.slot_of[i]] = 1.0;
      return 1;
    }
  }
  return 0;
}
