/* Proofs that a program has no point, in the caller's own numbers. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/measure.h"
#include "numerics/conic/certificate/scales.h"

#define EXCLUDED 1e3      /* distances to offsets that a proof of infeasibility covers */
#define BARRIER_FLAT 1e-6 /* g'dual beside its terms that counts as zero for a barrier */

/* What multipliers say that are to prove that there is no point. */
typedef struct proof_sums {
  double sum, size, force; /* g'dual + c'dual_eq, its largest term, the largest force */
  double moved;            /* |G'dual + C'dual_eq| in scaled columns, summed */
} proof_sums;

static proof_sums sum_proof(const qd_cone_workspace *workspace, const qd_cone_program *program,
                            const double *dual, const double *dual_eq) {
  double *push = workspace->work.x;
  const int m = program->row_count;
  proof_sums proof = {0.0, 0.0, 0.0, 0.0};
  memset(push, 0, (size_t)program->variable_count * sizeof(double));
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int i = 0; i < block->row_count; ++i) {
      const int row = block->first_row + i;
      const double factor = row < m ? dual[row] : dual_eq[row - m];
      const double term = factor * (row < m ? program->g[row] : program->c[row - m]);
      const int cone = block->cone + (block->slot_step == 1 ? i : 0);
      proof.sum += term;
      proof.size = larger(proof.size, fabs(term));
      proof.force = larger(proof.force, fabs(factor) * norm_of_rows(workspace, cone));
      subtract_row(workspace, block, conic_caller_row(workspace, row), factor, push);
    }
  }
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      proof.moved +=
          fabs(push[workspace->program.column_of[k]]) * workspace->program.column_scale[k];
    }
  }
  return proof;
}

/* A multiplier in its cone with G'dual + C'dual_eq = 0 and g'dual + c'dual_eq < 0 excludes every x.
 * In numbers that are rounded: every x that is not EXCLUDED times farther away than offsets and
 * cost send it, offsets of all rows or of those that carry the proof. For a barrier the sum may be
 * zero: then no x lies inside. */
int conic_excludes(const qd_cone_workspace *workspace, const qd_cone_program *program,
                   const double *dual, const double *dual_eq) {
  const scales s = measure_scales(workspace, program);
  if (!duals_hold(program, dual)) {
    return 0;
  }
  const proof_sums p = sum_proof(workspace, program, dual, dual_eq);
  const double rows = p.force > 0.0 ? larger(s.offset, p.size / p.force) : s.offset;
  double reach = EXCLUDED * larger(s.free, rows);
  if (!(p.size > TINIEST && p.size < HUGE_VAL && isfinite(p.sum) && isfinite(p.force))) {
    return 0;
  }
  if (reach == 0.0) {
    reach = EXCLUDED;
  }
  return p.sum + p.moved * reach < 0.0 ||
         (!workspace->program.exact && p.sum <= BARRIER_FLAT * p.size &&
          p.moved <= BARRIER_FLAT * p.force);
}

/* A row without entries is what it is; one that is zero but for the rounding of a difference is
 * zero. */
int conic_find_contradiction(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int m = program->row_count;
  const double nothing = workspace->program.exact ? -NOTHING * max_norm(program->g, m) : 0.0;
  double *ray = workspace->best.dual;
  if (!workspace->structure.any_empty_row) {
    return 0;
  }
  for (int i = 0; i < program->equality_count; ++i) {
    if (program->c[i] != 0.0 && conic_row_is_empty(workspace, m + i)) {
      memset(ray, 0, (size_t)workspace->program.slot_count * sizeof(double));
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
      memset(ray, 0, (size_t)workspace->program.slot_count * sizeof(double));
      ray[workspace->program.slot_of[i]] = 1.0;
      return 1;
    }
  }
  return 0;
}
