/* Treatment of each compliant row in the rigid program. */
#include <math.h>
#include <string.h>

#include "numerics/conic/compliance/compliance.h"

/* Measures from the nearer end, which loses the fewest digits of the multiplier. */
static void choose_end(compliant_row *row) {
  const int at_lower = fabs(row->lower) <= fabs(row->upper);
  const double base = at_lower ? row->lower : row->upper;
  if (isinf(base)) {
    row->kind = COMPLIANT_EQUALITY;
    return;
  }
  row->kind = row->lower == row->upper ? COMPLIANT_FORCE : COMPLIANT_END;
  row->sign = at_lower ? 1.0 : -1.0;
  row->base = base;
  row->width = isinf(row->upper - row->lower) ? -1.0 : row->upper - row->lower;
}

/* 1 if a barrier's path handles the row natively. A nearly rigid row without ends is better an
 * equality. */
static int is_limited(const compliant_row *row) {
  return row->kind == COMPLIANT_CONE ? row->compliance > 0.0 : row->kind == COMPLIANT_END;
}

/* 1 if one of the rows has a compliance. */
static int any_gives_way(const qd_cone_program *program, int first, int count) {
  int any = 0;
  for (int i = first; program->compliance && i < first + count; ++i) {
    any |= program->compliance[i] > 0.0;
  }
  return any;
}

static void treat_row(compliant_row *row, const qd_cone_program *program, int kind, int i,
                      int natively) {
  row->row = i;
  row->compliance = rows_compliance(program, i);
  if (kind == QD_INTERVAL) {
    row->lower = program->lower[i];
    row->upper = program->upper[i];
    choose_end(row);
  }
  if (natively && kind != QD_LORENTZ && is_limited(row)) {
    row->kind = COMPLIANT_LIMITED;
    row->sign = 1.0;
    row->base = 0.0;
  }
}

/* Rows before all intervals that are rigid are the same in every program and are not set again. */
void compliance_treat_rows(compliant_program *soft, const qd_cone_program *program, int natively) {
  const int known = soft->plain;
  soft->variables = program->variable_count;
  soft->rows = soft->first_interval = program->row_count;
  soft->equalities = program->equality_count;
  soft->any_between = 0;
  for (int k = 0, i = 0; k < program->cone_count; ++k) {
    const int is_interval = program->cone_kind[k] == QD_INTERVAL;
    const int measured = any_gives_way(program, i, program->cone_dim[k]);
    soft->any_between |= !is_interval && (measured || i > soft->first_interval);
    soft->first_interval = is_interval && i < soft->first_interval ? i : soft->first_interval;
    const compliant_row alike = {.is_interval = is_interval,
                                 .is_measured = measured,
                                 .sign = 1.0,
                                 .upper = HUGE_VAL,
                                 .width = -1.0,
                                 .spring = -1,
                                 .slip = -1,
                                 .slip_row = -1};
    const int end = i + program->cone_dim[k];
    const int is_known = !is_interval && !measured && end <= known;
    for (i = is_known ? end : i; i < end; ++i) {
      soft->row[i] = alike;
      treat_row(soft->row + i, program, program->cone_kind[k], i, natively);
    }
  }
  soft->plain = soft->any_between ? 0 : soft->first_interval;
}
