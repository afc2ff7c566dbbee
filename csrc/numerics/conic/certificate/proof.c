/* Proofs of infeasibility, in the caller's units. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/program/structure.h"

#define AROUND 30.0 /* multiple of the distance where a row meets a column's axis */

/* Sums over the multipliers of a proof. */
typedef struct proof_sums {
  double sum, size, force; /* g'dual + c'dual_eq, its largest term, the largest force */
  double moved;            /* |G'dual + C'dual_eq| in scaled columns, summed */
  double leak;             /* the same, each column times how far it may go */
} proof_sums;

/* Removes from a ray the multipliers that compliant rows cannot carry: the dual objective does not
 * rise for ever along a row with a compliance, nor along an interval towards a finite end. */
static void keep_to_cones(const qd_cone_program *program, const conic_answer *out) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int is_cone = program->cone_kind[k] == QD_LORENTZ;
    const int is_interval = program->cone_kind[k] == QD_INTERVAL;
    const int is_gone = is_cone && rows_compliance(program, row) > 0.0;
    for (int i = row; i < row + program->cone_dim[k]; ++i) {
      double *dual = out->dual + i;
      if (is_gone || rows_compliance(program, i) > 0.0 ||
          (is_interval && ((*dual > 0.0 && program->upper[i] < HUGE_VAL) ||
                           (*dual < 0.0 && program->lower[i] > -HUGE_VAL)))) {
        *dual = 0.0;
      }
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    if (rows_compliance(program, program->row_count + i) > 0.0) {
      out->dual_eq[i] = 0.0;
    }
  }
}

/* Norms of all rows, in a Lorentz cone its largest; returns the largest norm. */
static double find_norms(const certificate_work *work, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int rows = program->row_count + program->equality_count;
  for (int i = 0; i < rows; ++i) {
    work->norm[i] = rows_norm(source, i, work->unit);
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int end = row + program->cone_dim[k];
    const double most = max_norm(work->norm + row, program->cone_dim[k]);
    for (int i = row; program->cone_kind[k] == QD_LORENTZ && i < end; ++i) {
      work->norm[i] = most;
    }
  }
  return max_norm(work->norm, rows);
}

/* Raises the reach of each column to the distance at which row i meets its axis; entries far
 * smaller than the row's largest are ignored. */
static void raise_reach(const certificate_work *work, const conic_program *source, int i) {
  const double offset = AROUND * fabs(rows_offset(&source->program, i));
  for (row_reader row = rows_open(source, i); rows_next(&row);) {
    for (int j = row.first; j < row.first + rows_width(&row); ++j) {
      const double entry = fabs(row.values[j - row.first]) * work->unit[j];
      if (entry > SLIGHT * work->norm[i]) {
        work->terms[j] = larger(work->terms[j], offset / entry);
      }
    }
  }
}

/* Sums of a proof, with x at most `reach` away, or farther in columns of the proof's rows. */
static proof_sums sum_proof(const certificate_work *work, const conic_program *source,
                            const conic_answer *out, double reach) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  proof_sums proof = {0.0, 0.0, 0.0, 0.0, 0.0};
  for (int j = 0; j < n; ++j) {
    work->left[j] = 0.0;
    work->terms[j] = reach;
  }
  for (int i = 0; i < m + p; ++i) {
    const double dual = i < m ? out->dual[i] : out->dual_eq[i - m];
    const double offset = rows_offset(program, i), term = dual * offset;
    if (dual == 0.0) {
      continue;
    }
    const int vanished = term == 0.0 && offset != 0.0;
    proof.sum += term;
    proof.size = larger(proof.size, vanished ? 0.5 * TINIEST : fabs(term));
    proof.force = larger(proof.force, fabs(dual) * work->norm[i]);
    rows_add(source, i, dual, work->left);
    raise_reach(work, source, i);
  }
  for (int j = 0; j < n; ++j) {
    const double moved = fabs(work->left[j]) * work->unit[j];
    proof.moved += moved;
    proof.leak += moved * work->terms[j];
  }
  return proof;
}

/* Sets multipliers of cones with a force below `least` to zero. */
static void keep_strong(const certificate_work *work, const qd_cone_program *program, double least,
                        double *dual) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_kind[k] == QD_LORENTZ ? program->cone_dim[k] : 1;
    for (int i = row; i < row + program->cone_dim[k]; i += dim) {
      if (fabs(dual[i]) * work->norm[i] < least) {
        memset(dual + i, 0, (size_t)dim * sizeof(double));
      }
    }
  }
}

/* A multiplier in its cone with G'dual + C'dual_eq = 0 and g'dual + c'dual_eq < 0 excludes every x.
 * With rounding, it excludes every x within EXCLUDED times the distance to which the cost or
 * offsets move it, and in each column within AROUND times the distance of the proof's own rows. For
 * a barrier the sum may be zero: then no x lies in the interior. That is judged without cones that
 * carry next to nothing. Such cones balance each other in other parts of the program, and where
 * widths differ by decades their load looks like rounding. */
int conic_excludes(qd_cone_workspace *workspace, const conic_program *source,
                   const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  const certificate_work *work = &workspace->certificate;
  const int exact = rows_are_exact(program);
  conic_begin_stage(workspace);
  keep_to_cones(program, out);
  if (!duals_hold(program, out->dual)) {
    return 0;
  }
  const double free = rows_find_units(source, work->unit, work->curvature);
  const double offset = rows_far(program, find_norms(work, source));
  const proof_sums p = sum_proof(work, source, out, 0.0);
  const int no_offset = p.size == 0.0 && p.force > TINIEST && !exact;
  if (!((p.size > TINIEST || no_offset) && p.size < HUGE_VAL && isfinite(p.sum + p.force))) {
    return 0;
  }
  const double rows = p.force > 0.0 ? larger(offset, p.size / p.force) : offset;
  const double far = larger(free, rows), reach = EXCLUDED * (far > 0.0 ? far : 1.0);
  keep_strong(work, program, NEGLIGIBLE * p.force, out->dual);
  const proof_sums all = sum_proof(work, source, out, reach);
  if (all.sum + all.leak < 0.0 || exact) {
    return all.sum + all.leak < 0.0;
  }
  keep_strong(work, program, SMALL * p.force, out->dual);
  const proof_sums strong = sum_proof(work, source, out, reach);
  return strong.sum <= SLIGHT * strong.size && strong.moved <= SLIGHT * strong.force;
}

/* Finds violated rows without entries. An offset that is only the rounding of a difference counts
 * as zero. */
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
