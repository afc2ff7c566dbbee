/* What rows that give way stand for in the rigid program.
 *
 * Exact programs need no slips once it is known which forces are at their limits: then an interval
 * is a spring between its ends (part of the cost, R > 0), or a force at one of them, or a row of an
 * orthant from one end that does not reach the other (R = 0, or so little that a spring would drown
 * the rest of the cost in rounding). So states are guessed and put right by the answer until none
 * changes: Newton's method on the ends, with an exact solve as its step. Where it goes round in
 * circles, slips say all. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/tuning.h"

/* ------------------------------------------------------------ entries */

/* What a row's entries are like: the only one, if so, and the largest stiffness that the row has as
 * a spring, beside the curvature of a column. */
static double measure_entries(const conic_program *source, compliant_row *row, int i) {
  double stiffest = 0.0;
  int count = 0;
  for (row_reader at = compliance_row_of(source, i); compliance_next(&at); ++count) {
    const double own = compliance_curvature(source, at.column);
    stiffest = larger(stiffest, own > 0.0 ? at.entry * at.entry / row->compliance / own : 0.0);
    row->holds |= !(own > 0.0);
    row->single = at.column;
    row->entry = at.entry;
  }
  row->single = count == 1 ? row->single : -1;
  return stiffest;
}

/* ------------------------------------------------------------ ends */

/* From one end: the lower one (sign 1) or the upper. */
static void begin_at(compliant_row *row, double sign) {
  row->kind = COMPLIANT_END;
  row->sign = sign;
  row->base = sign > 0.0 ? row->lower : row->upper;
}

/* From the nearer end, which takes the fewest digits from the multiplier. */
static void choose_end(compliant_row *row) {
  if (!row->has_lower && !row->has_upper) {
    row->kind = COMPLIANT_EQUALITY;
    return;
  }
  begin_at(row, row->has_lower && (!row->has_upper || fabs(row->lower) <= fabs(row->upper)) ? 1.0
                                                                                            : -1.0);
  row->slips = row->has_lower && row->has_upper;
  row->width = row->slips ? row->upper - row->lower : -1.0;
  if (row->lower == row->upper) {
    row->kind = COMPLIANT_FORCE;
  }
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
                                 .single = -1,
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

/* ------------------------------------------------------------ states */

static void hold_at(compliant_row *row, double sign) {
  begin_at(row, sign);
  row->kind = COMPLIANT_FORCE;
}

/* The state of a row whose force is guessed. */
static void guess_state(compliant_row *row, double force) {
  if (row->has_lower && force <= row->lower) {
    hold_at(row, 1.0);
  } else if (row->has_upper && force >= row->upper) {
    hold_at(row, -1.0);
  }
}

int compliance_expects_ends(const compliant_program *soft, const qd_cone_program *program,
                            const double *dual) {
  int any = 0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const compliant_row *row = soft->row + i;
    const double force = dual ? dual[i] : -program->g[i] / row->compliance;
    any |= !(row->compliance > 0.0) || force <= row->lower || force >= row->upper;
  }
  return any;
}

int compliance_springs_hold(const compliant_program *soft, const conic_program *source) {
  int mild = 1, hold = 0;
  for (int i = soft->first_interval; i < soft->rows && mild; ++i) {
    compliant_row *row = soft->row + i;
    mild = !(row->compliance > 0.0) || measure_entries(source, row, i) <= STIFFEST_SPRING;
    hold |= row->holds;
  }
  return mild && hold;
}

int compliance_guess_states(compliant_program *soft, const conic_program *source,
                            const double *dual) {
  int any = 0;
  compliance_treat_rows(soft, source, 0);
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    compliant_row *row = soft->row + i;
    if (row->kind == COMPLIANT_CONE || row->lower == row->upper) {
      continue;
    }
    const double stiffest = row->compliance > 0.0 ? measure_entries(source, row, i) : HUGE_VAL;
    any |= row->slips;
    row->slips = 0;
    if (stiffest <= (row->single >= 0 ? STIFFEST_SINGLE : STIFFEST_SPRING)) {
      any = 1;
      row->kind = COMPLIANT_SPRUNG;
      if (dual) {
        guess_state(row, dual[i]);
      }
    } else if (dual && row->kind == COMPLIANT_END && row->width >= 0.0) {
      begin_at(row, dual[i] - row->lower <= row->upper - dual[i] ? 1.0 : -1.0);
    }
  }
  return any;
}

/* Into the state that the answer shows: 1 if that is another one. */
static int change_state(compliant_row *row, double slack) {
  const double rounding = PLAIN * fabs(row->force);
  switch (row->kind) {
  case COMPLIANT_SPRUNG:
    if (row->force < row->lower - rounding) {
      hold_at(row, 1.0);
    } else if (row->force > row->upper + rounding) {
      hold_at(row, -1.0);
    }
    return row->kind != COMPLIANT_SPRUNG;
  case COMPLIANT_FORCE:
    if (row->lower < row->upper && row->sign * slack < -PLAIN * fabs(row->compliance * row->base)) {
      row->kind = COMPLIANT_SPRUNG;
    }
    return row->kind != COMPLIANT_FORCE;
  case COMPLIANT_END:
    if (row->slips || row->width < 0.0 ||
        row->sign * (row->force - row->base) <= row->width + rounding) {
      return 0;
    }
    begin_at(row, -row->sign);
    row->slips = row->turned; /* forces that hold the same turn each other round for ever */
    row->turned = 1;
    return 1;
  default:
    return 0;
  }
}

int compliance_states_hold(compliant_program *soft, const double *slack) {
  int changed = 0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    changed |= change_state(soft->row + i, slack[i]);
  }
  return !changed;
}
