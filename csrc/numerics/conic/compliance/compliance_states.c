/* What rows that give way stand for in the rigid program. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/tuning.h"

/* ------------------------------------------------------------ ends */

/* From the nearer end, which takes the fewest digits from the multiplier. */
static void choose_end(compliant_row *row) {
  const int both = row->has_lower && row->has_upper;
  const int at_lower = both ? fabs(row->lower) <= fabs(row->upper) : row->has_lower;
  row->kind = !row->has_lower && !row->has_upper ? COMPLIANT_EQUALITY
              : row->lower == row->upper         ? COMPLIANT_FORCE
                                                 : COMPLIANT_END;
  if (row->kind != COMPLIANT_EQUALITY) {
    row->sign = at_lower ? 1.0 : -1.0;
    row->base = at_lower ? row->lower : row->upper;
  }
  row->width = both ? row->upper - row->lower : -1.0;
}

/* ------------------------------------------------------------ ends that no force comes near */

/* Norm of a row in columns of unit stiffness, 0 where one has none. */
static double row_norm(const conic_program *source, int i, const double *stiffness) {
  double sum = 0.0;
  for (row_reader row = compliance_row_of(source, i); compliance_next(&row);) {
    if (!(stiffness[row.column] > 0.0)) {
      return 0.0;
    }
    sum += row.entry * row.entry / stiffness[row.column];
  }
  return sqrt(sum);
}

/* The largest of what the cost and offsets of rows ask for, as a force on a row of norm one. */
static double largest_force(const compliant_program *soft, const conic_program *source,
                            const double *stiffness) {
  const qd_cone_program *program = &source->program;
  double force = 0.0;
  for (int j = 0; j < soft->variables; ++j) {
    force = stiffness[j] > 0.0 ? larger(force, fabs(program->b[j]) / sqrt(stiffness[j])) : HUGE_VAL;
  }
  for (int i = 0; i < soft->rows; ++i) {
    const double norm = row_norm(source, i, stiffness);
    force = norm > 0.0 ? larger(force, fabs(program->g[i]) / norm) : force;
  }
  return force;
}

/* Some end is so far from zero, beside the cost and the forces that rows have at x = 0, that it is
 * worth a look. */
static int any_is_large(const compliant_program *soft, const qd_cone_program *program) {
  double cost = max_norm(program->b, program->variable_count);
  int large = 0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const compliant_row *row = soft->row + i;
    cost = larger(cost, row->compliance > 0.0 ? fabs(program->g[i]) / row->compliance : 0.0);
  }
  cost *= FAR_END;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const compliant_row *row = soft->row + i;
    large |=
        (row->has_lower && fabs(row->lower) > cost) || (row->has_upper && fabs(row->upper) > cost);
  }
  return large;
}

/* Ends that are beyond all forces are none. */
static void forget_far_ends(compliant_program *soft, const conic_program *source) {
  double *stiffness = soft->term;
  if (!any_is_large(soft, &source->program)) {
    return;
  }
  compliance_find_stiffness(soft, source, stiffness);
  const double force = FAR_END * largest_force(soft, source, stiffness);
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    compliant_row *row = soft->row + i;
    const double norm = row_norm(source, i, stiffness);
    if (!row->is_interval || !(norm > 0.0) || row->lower == row->upper) {
      continue;
    }
    row->has_lower &= !(-row->lower * norm > force);
    row->has_upper &= !(row->upper * norm > force);
  }
}

/* A barrier's path knows what is soft about it. A row that is all but rigid and has no end is
 * better an equality. */
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

/* Rows that stand before all intervals and do not give way are the same in every program. */
static void read_rows(compliant_program *soft, const qd_cone_program *program) {
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
                                 .has_lower = 1,
                                 .width = -1.0,
                                 .spring = -1,
                                 .slip = -1,
                                 .slip_row = -1};
    const int end = i + program->cone_dim[k];
    const int is_known = !is_interval && !measured && end <= known;
    for (i = is_known ? end : i; i < end; ++i) {
      compliant_row *row = soft->row + i;
      *row = alike;
      row->row = i;
      row->compliance = program->compliance ? program->compliance[i] : 0.0;
      if (is_interval) {
        row->lower = program->lower[i];
        row->upper = program->upper[i];
        row->has_lower = isfinite(row->lower);
        row->has_upper = isfinite(row->upper);
      }
    }
  }
  soft->plain = soft->any_between ? 0 : soft->first_interval;
}

void compliance_treat_rows(compliant_program *soft, const conic_program *source, int natively) {
  const qd_cone_program *program = &source->program;
  read_rows(soft, program);
  if (!natively || compliance_is_exact(program)) {
    forget_far_ends(soft, source);
  }
  for (int k = 0, i = 0; k < program->cone_count; ++k) {
    const int end = i + program->cone_dim[k];
    for (i = end <= soft->plain ? end : i; i < end; ++i) {
      compliant_row *row = soft->row + i;
      if (row->is_interval) {
        choose_end(row);
      }
      if (natively && program->cone_kind[k] != QD_LORENTZ && is_limited(row)) {
        row->kind = COMPLIANT_LIMITED;
        row->sign = 1.0;
        row->base = 0.0;
      }
    }
  }
}
