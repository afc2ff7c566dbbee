/* Proofs that a program whose rows give way has no point, in the caller's own numbers.
 *
 * A ray of multipliers along which the dual's cost rises for ever has none where a row has a
 * compliance, and of an interval none towards an end. The rigid program says so to rounding, with
 * its springs and slips in the sums; what is left without them is looked at anew, as
 * conic/certificate/proof.c does it. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/compliance/compliance.h"

/* A ray without what rows that give way cannot carry. */
static void keep_to_cones(const qd_cone_program *program, const conic_answer *out) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int is_cone = program->cone_kind[k] == QD_LORENTZ;
    const int is_interval = program->cone_kind[k] == QD_INTERVAL;
    const int is_gone = is_cone && row_compliance(program, row) > 0.0;
    for (int i = row; i < row + program->cone_dim[k]; ++i) {
      double *dual = out->dual + i;
      if (is_gone || row_compliance(program, i) > 0.0 ||
          (is_interval && ((*dual > 0.0 && program->upper[i] < HUGE_VAL) ||
                           (*dual < 0.0 && program->lower[i] > -HUGE_VAL)))) {
        *dual = 0.0;
      }
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    if (row_compliance_eq(program, i) > 0.0) {
      out->dual_eq[i] = 0.0;
    }
  }
}

int compliance_proves(compliant_program *soft, const conic_program *source,
                      const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  double *unit = soft->four.x, *entries = unit + n, *push = soft->term;
  double sum = 0.0, size = 0.0, force = 0.0, moved = 0.0;
  keep_to_cones(program, out);
  if (!duals_hold(program, out->dual)) {
    return 0;
  }
  const compliance_scales from = compliance_find_units(source, unit, entries);
  memset(push, 0, (size_t)n * sizeof(double));
  for (int i = 0; i < m + p; ++i) {
    const double dual = i < m ? out->dual[i] : out->dual_eq[i - m];
    const double term = dual * (i < m ? program->g[i] : program->c[i - m]);
    const double norm = compliance_row_norm(source, i, unit);
    compliance_add_row(source, i, dual, push);
    sum += term;
    size = larger(size, fabs(term));
    force = larger(force, fabs(dual) * norm);
  }
  for (int j = 0; j < n; ++j) {
    moved += fabs(push[j]) * unit[j];
  }
  const double reach =
      EXCLUDED * larger(larger(from.free, from.offset), force > 0.0 ? size / force : 0.0);
  if (!(size > TINIEST && isfinite(size + sum + force + moved))) {
    return 0;
  }
  return sum + moved * (reach > 0.0 ? reach : EXCLUDED) < 0.0 ||
         (!compliance_is_exact(program) && sum <= SLIGHT * size && moved <= SLIGHT * force);
}
