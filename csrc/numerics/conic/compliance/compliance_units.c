/* Scales of a program whose rows give way, in the caller's numbers (qdsim.h). */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/tuning.h"

double compliance_row_norm(const conic_program *source, int i, const double *unit) {
  double norm = 0.0;
  for (row_reader row = compliance_row_of(source, i); compliance_next(&row);) {
    norm = hypot(norm, row.entry * unit[row.column]);
  }
  return norm;
}

void compliance_find_stiffness(const compliant_program *soft, const conic_program *source,
                               double *out) {
  memset(out, 0, (size_t)soft->variables * sizeof(double));
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const double R = soft->row[i].compliance;
    for (row_reader row = compliance_row_of(source, i); R > 0.0 && compliance_next(&row);) {
      out[row.column] += row.entry * row.entry / R;
    }
  }
  for (int j = 0; j < soft->variables; ++j) {
    const double own = compliance_curvature(source, j);
    out[j] = own > 0.0 ? own + smaller(out[j], own / SLIGHT) : out[j];
  }
}

/* curvature_j += entry^2 / R, most_j: the largest entry */
static void add_curvature(const conic_program *source, int i, double compliance, double *curvature,
                          double *most) {
  for (row_reader row = compliance_row_of(source, i); compliance_next(&row);) {
    most[row.column] = larger(most[row.column], fabs(row.entry));
    curvature[row.column] += compliance > 0.0 ? row.entry * row.entry / compliance : 0.0;
  }
}

compliance_scales compliance_find_units(const conic_program *source, double *unit, double *most) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  compliance_scales found = {0.0, 0.0, 0.0};
  double strongest = 0.0;
  memset(most, 0, (size_t)n * sizeof(double));
  for (int j = 0; j < n; ++j) {
    unit[j] = compliance_curvature(source, j);
  }
  for (int i = 0; i < m + p; ++i) {
    add_curvature(source, i, i < m ? row_compliance(program, i) : row_compliance_eq(program, i - m),
                  unit, most);
  }
  for (int j = 0; j < n; ++j) {
    const int is_curved = unit[j] > 0.0;
    unit[j] = is_curved ? 1.0 / sqrt(unit[j]) : most[j] > 0.0 ? 1.0 / most[j] : 1.0;
    found.free = larger(found.free, is_curved ? fabs(program->b[j]) * unit[j] : 0.0);
  }
  for (int i = 0; i < m + p; ++i) {
    strongest = larger(strongest, compliance_row_norm(source, i, unit));
  }
  const double offset = larger(max_norm(program->g, m), max_norm(program->c, p));
  found.offset = strongest > 0.0 ? offset / strongest : 0.0;
  found.reach = OFFSET_SHARE * found.offset;
  if (!compliance_is_exact(program)) {
    found.reach = larger(found.reach, found.free);
  } else if (offsets_are_none(found.offset, found.free)) {
    found.reach = HALF_DIGITS * found.free;
  }
  return found;
}
