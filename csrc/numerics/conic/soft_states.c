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
#include "numerics/conic/soft.h"
#include "numerics/conic/tuning.h"

/* ------------------------------------------------------------ entries */

double soft_entry(const conic_program *source, int i, int j) {
  const int n = source->program.variable_count;
  if (!source->G) {
    return source->program.G[(size_t)i * (size_t)n + (size_t)j];
  }
  for (int k = source->G->start[i]; k < source->G->start[i + 1]; ++k) {
    if (source->G->tiles[k] == j / 4) {
      return source->G->values[4 * (size_t)k + (size_t)(j % 4)];
    }
  }
  return 0.0;
}

double soft_curvature(const conic_program *source, int j) {
  const int n = source->program.variable_count;
  if (!source->Q) {
    return source->program.Q[(size_t)j * (size_t)n + (size_t)j];
  }
  for (int k = source->Q->start[j]; k < source->Q->start[j + 1]; ++k) {
    if (source->Q->tiles[k] == j / 4) {
      return source->Q->values[4 * (size_t)k + (size_t)(j % 4)];
    }
  }
  return 0.0;
}

void soft_add_cost(const conic_program *source, int j, double *line) {
  const int n = source->program.variable_count;
  for (int k = 0; !source->Q && k < n; ++k) {
    line[k] += source->program.Q[(size_t)j * (size_t)n + (size_t)k];
  }
  for (int t = source->Q ? source->Q->start[j] : 0; source->Q && t < source->Q->start[j + 1]; ++t) {
    for (int k = 0; k < 4; ++k) {
      line[4 * source->Q->tiles[t] + k] += source->Q->values[4 * (size_t)t + (size_t)k];
    }
  }
}

/* What a row's entries are like: the only one, if so, and the largest stiffness that the row has as
 * a spring, beside the curvature of a column. */
static double measure_entries(const conic_program *source, soft_row *row, int i) {
  const int n = source->program.variable_count;
  const int begin = source->G ? source->G->start[i] : 0;
  const int end = source->G ? source->G->start[i + 1] : (n + 3) / 4;
  double stiffest = 0.0;
  int count = 0;
  for (int k = begin; k < end; ++k) {
    const int first = 4 * (source->G ? source->G->tiles[k] : k);
    for (int j = first; j < first + 4 && j < n; ++j) {
      const double a = source->G ? source->G->values[4 * (size_t)k + (size_t)(j - first)]
                                 : source->program.G[(size_t)i * (size_t)n + (size_t)j];
      if (a == 0.0) {
        continue;
      }
      const double own = soft_curvature(source, j);
      stiffest = larger(stiffest, own > 0.0 ? a * a / row->compliance / own : 0.0);
      row->single = j;
      row->entry = a;
      ++count;
    }
  }
  row->single = count == 1 ? row->single : -1;
  return stiffest;
}

/* ------------------------------------------------------------ ends */

/* From one end: the lower one (sign 1) or the upper. */
static void begin_at(soft_row *row, double sign) {
  row->kind = SOFT_END;
  row->sign = sign;
  row->base = sign > 0.0 ? row->lower : row->upper;
}

/* From the nearer end, which takes the fewest digits from the multiplier. */
static void choose_end(soft_row *row) {
  const int has_lower = isfinite(row->lower), has_upper = isfinite(row->upper);
  if (!has_lower && !has_upper) {
    row->kind = SOFT_EQUALITY;
    return;
  }
  begin_at(row, has_lower && (!has_upper || fabs(row->lower) <= fabs(row->upper)) ? 1.0 : -1.0);
  row->slips = has_lower && has_upper;
  row->width = row->slips ? row->upper - row->lower : -1.0;
  if (row->lower == row->upper) {
    row->kind = SOFT_FORCE;
  }
}

/* A barrier's path knows what is soft about it. A row that is all but rigid and has no end is
 * better an equality. */
static int is_limited(const soft_row *row) {
  return row->kind == SOFT_CONE ? row->compliance > 0.0 : row->kind == SOFT_END;
}

void soft_treat_rows(soft_program *soft, const conic_program *source, int natively) {
  const qd_cone_program *program = &source->program;
  soft->variables = program->variable_count;
  soft->rows = soft->first_interval = program->row_count;
  soft->equalities = program->equality_count;
  for (int k = 0, i = 0; k < program->cone_count; ++k) {
    const int is_interval = program->cone_kind[k] == QD_INTERVAL;
    const int is_cone = program->cone_kind[k] == QD_LORENTZ;
    soft->first_interval = is_interval && i < soft->first_interval ? i : soft->first_interval;
    for (int end = i + program->cone_dim[k]; i < end; ++i) {
      soft_row *row = soft->row + i;
      *row = (soft_row){.compliance = program->compliance ? program->compliance[i] : 0.0,
                        .is_interval = is_interval,
                        .sign = 1.0,
                        .lower = is_interval ? program->lower[i] : 0.0,
                        .upper = is_interval ? program->upper[i] : HUGE_VAL,
                        .width = -1.0,
                        .single = -1,
                        .row = -1,
                        .spring = -1,
                        .slip = -1,
                        .slip_row = -1};
      if (is_interval) {
        choose_end(row);
      }
      if (natively && !is_cone && is_limited(row)) {
        row->kind = SOFT_LIMITED;
        row->sign = 1.0;
        row->base = 0.0;
      }
    }
  }
}

/* ------------------------------------------------------------ states */

static void hold_at(soft_row *row, double sign) {
  begin_at(row, sign);
  row->kind = SOFT_FORCE;
}

/* The state of a row whose force is guessed. */
static void guess_state(soft_row *row, double force) {
  if (force <= row->lower && isfinite(row->lower)) {
    hold_at(row, 1.0);
  } else if (force >= row->upper && isfinite(row->upper)) {
    hold_at(row, -1.0);
  }
}

int soft_guess_states(soft_program *soft, const conic_program *source, const double *dual) {
  int any = 0;
  soft_treat_rows(soft, source, 0);
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    soft_row *row = soft->row + i;
    if (row->kind == SOFT_CONE || row->lower == row->upper) {
      continue;
    }
    const double stiffest = row->compliance > 0.0 ? measure_entries(source, row, i) : HUGE_VAL;
    any |= row->slips;
    row->slips = 0;
    if (stiffest <= (row->single >= 0 ? STIFFEST_SINGLE : STIFFEST_SPRING)) {
      any = 1;
      row->kind = SOFT_SPRUNG;
      if (dual) {
        guess_state(row, dual[i]);
      }
    } else if (dual && row->kind == SOFT_END && row->width >= 0.0) {
      begin_at(row, dual[i] - row->lower <= row->upper - dual[i] ? 1.0 : -1.0);
    }
  }
  return any;
}

/* Into the state that the answer shows: 1 if that is another one. */
static int change_state(soft_row *row, double slack) {
  const double rounding = STATE_ROUNDING * fabs(row->force);
  switch (row->kind) {
  case SOFT_SPRUNG:
    if (row->force < row->lower - rounding) {
      hold_at(row, 1.0);
    } else if (row->force > row->upper + rounding) {
      hold_at(row, -1.0);
    }
    return row->kind != SOFT_SPRUNG;
  case SOFT_FORCE:
    if (row->lower < row->upper &&
        row->sign * slack < -STATE_ROUNDING * fabs(row->compliance * row->base)) {
      row->kind = SOFT_SPRUNG;
    }
    return row->kind != SOFT_FORCE;
  case SOFT_END:
    if (row->width >= 0.0 && row->sign * (row->force - row->base) > row->width + rounding) {
      begin_at(row, -row->sign);
      return 1;
    }
    return 0;
  default:
    return 0;
  }
}

int soft_states_hold(soft_program *soft, const double *slack) {
  int changed = 0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    changed |= change_state(soft->row + i, slack[i]);
  }
  return !changed;
}
