/* Proofs that a program has no point, in the caller's own numbers. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/program/structure.h"

#define AROUND 30.0 /* distances to where its rows meet the axes, likewise */

/* What multipliers say that are to prove that there is no point. */
typedef struct proof_sums {
  double sum, size, force; /* g'dual + c'dual_eq, its largest term, the largest force */
  double moved;            /* |G'dual + C'dual_eq| in scaled columns, summed */
  double leak;             /* the same, each column times how far it may go */
} proof_sums;

/* A ray without what rows that give way cannot carry: along it the dual's cost rises for ever, but
 * not where a row has a compliance, nor of an interval towards an end. */
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

/* Of all rows, of a Lorentz cone that of the longest; returns the largest. */
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

/* Where row i meets each column's axis, at least; entries that are far smaller than the row's
 * largest are none. */
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

/* x goes at least as far as `reach`. */
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

/* Multipliers without cones whose force is below `least`. */
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
 * In numbers that are rounded: every x that is not EXCLUDED times farther away than the cost or
 * offsets send it, or in a column AROUND times than its own rows that carry the proof. For a
 * barrier the sum may be zero: then no x lies inside. That is judged without the cones that carry
 * next to nothing: they hold each other in other parts of the program, and where widths differ by
 * decades what they carry there looks like what rounding leaves. */
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
