/* What the answer of a program whose rows give way misses, in the caller's numbers. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/tuning.h"
#include "numerics/conic/workspace.h"

#define THOROUGH 0.1 /* of what is allowed, for an answer that nothing else has judged */

/* ------------------------------------------------------------ the caller's numbers */

/* A row times x, and the sum of the sizes of its terms. */
static double row_times(row_reader row, const double *x, double *size) {
  double sum = 0.0;
  while (compliance_next(&row)) {
    const double term = row.entry * x[row.column];
    sum += term;
    *size += fabs(term);
  }
  return sum;
}

/* The largest of some numbers (columns) along a row. */
static double largest_of(row_reader row, const double *of) {
  double found = 0.0;
  while (compliance_next(&row)) {
    found = larger(found, of[row.column]);
  }
  return found;
}

double compliance_slack(const conic_program *source, const compliant_row *row, int i,
                        const double *x, double dual, double *size) {
  const qd_cone_program *program = &source->program;
  *size = fabs(program->g[i]) + fabs(row->compliance * dual);
  return row_times(compliance_row_of(source, i), x, size) + program->g[i] + row->compliance * dual;
}

/* How far x goes along the columns of a row, in their units. */
static double far_of_row(row_reader row, const double *unit, const double *x) {
  double far = 0.0;
  while (compliance_next(&row)) {
    far = larger(far, fabs(x[row.column]) / unit[row.column]);
  }
  return far;
}

/* ------------------------------------------------------------ what it misses */

/* Errors of the answer, in the caller's numbers, and whether rows that give way hold beside the
 * numbers that their slacks are sums of: the rest is the rigid program's certificate. */
typedef struct compliance_errors {
  double primal, gap;
  int hold;
} compliance_errors;

/* Of an interval's row: products with both ends, where s = target / above - target / below. */
static void measure_interval(const qd_cone_program *program, int i, double slack, double dual,
                             double target, double size, double share, compliance_errors *found) {
  const double above = dual - program->lower[i], below = program->upper[i] - dual;
  double error;
  if (target > 0.0) {
    if (program->lower[i] == program->upper[i]) {
      return;
    }
    if (!(smaller(above, below) < HUGE_VAL)) {
      found->primal = larger(found->primal, fabs(slack));
      found->hold &= fabs(slack) <= share * size;
      return;
    }
    /* as a product with the nearer distance, which rounding may have left nothing of */
    const double nearest = smaller(above, below), other = larger(above, below);
    const double towards = above <= below ? slack : -slack;
    error = fabs(towards * nearest - target * (1.0 - nearest / other));
    /* of the way to the end */
    const double rounding = towards > 0.0 ? LAST_DIGITS * fabs(slack * dual) : 0.0;
    found->gap = larger(found->gap, error);
    found->hold &= error <= larger(share * size * nearest, share * target + rounding);
    return;
  }
  const double room = slack > 0.0 ? above : below;
  error = room > 0.0 ? fabs(slack) : 0.0; /* the force has not reached its limit */
  if (room < HUGE_VAL) {
    found->gap = larger(found->gap, error * room);
    found->hold &= error <= share * size || room <= share * fabs(dual);
  } else {
    found->primal = larger(found->primal, error);
    found->hold &= error <= share * size;
  }
}

/* Of a cone whose rows have a compliance. */
static void measure_soft_cone(const double *slack, const double *dual, int dim, double target,
                              double size, double share, compliance_errors *found) {
  double tail = 0.0, head = slack[0] * dual[0] - target;
  for (int i = 1; i < dim; ++i) {
    tail = hypot(tail, slack[i]);
    head += slack[i] * dual[i];
    found->gap = larger(found->gap, fabs(slack[0] * dual[i] + dual[0] * slack[i]));
  }
  found->gap = larger(found->gap, fabs(head));
  found->primal = larger(found->primal, tail - slack[0]);
  found->hold &= tail - slack[0] <= share * size;
}

/* Rows of cone k, an orthant or intervals, from `first` on. */
static void measure_linear(const compliant_program *soft, const conic_program *source, int k,
                           int first, double share, const conic_answer *out,
                           compliance_errors *found) {
  const qd_cone_program *program = &source->program;
  const double target = program->target_mu ? program->target_mu[k] : 0.0;
  for (int i = first; i < first + program->cone_dim[k]; ++i) {
    const double size = soft->row[i].size;
    if (program->cone_kind[k] == QD_INTERVAL) {
      measure_interval(program, i, out->slack[i], out->dual[i], target, size, share, found);
    } else {
      measure_soft_cone(out->slack + i, out->dual + i, 1, target, size, share, found);
    }
  }
}

/* Infinite where numbers beyond the range of a double have met. */
static double finite_or_infinite(double error) { return isnan(error) ? HUGE_VAL : error; }

static compliance_errors measure_rows(const compliant_program *soft, const conic_program *source,
                                      double share, const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  compliance_errors found = {0.0, 0.0, 1};
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_dim[k];
    double most = 0.0;
    if (program->cone_kind[k] != QD_LORENTZ) {
      measure_linear(soft, source, k, row, share, out, &found);
      continue;
    }
    for (int r = row; r < row + dim; ++r) {
      most = larger(most, soft->row[r].size);
    }
    measure_soft_cone(out->slack + row, out->dual + row, dim,
                      program->target_mu ? program->target_mu[k] : 0.0, most, share, &found);
  }
  return found;
}

void compliance_measure_rows(const qd_cone_program *program, const conic_answer *out,
                             qd_cone_info *info) {
  compliance_errors found = {0.0, 0.0, 1};
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int end = row + program->cone_dim[k], is_cone = program->cone_kind[k] == QD_LORENTZ;
    for (int i = row; i < end; i = is_cone ? end : i + 1) {
      if (program->cone_kind[k] == QD_INTERVAL) {
        measure_interval(program, i, out->slack[i], out->dual[i], 0.0, 0.0, 0.0, &found);
      } else {
        measure_soft_cone(out->slack + i, out->dual + i, is_cone ? end - i : 1, 0.0, 0.0, 0.0,
                          &found);
      }
    }
  }
  info->primal_residual = finite_or_infinite(found.primal);
  info->complementarity = finite_or_infinite(found.gap);
}

/* Rounding in the forces of springs, small differences over R, beside the largest force. */
static double rounding_of_springs(const compliant_program *soft, const conic_program *source,
                                  int exact, const conic_answer *out) {
  double rounding = 0.0, force = 0.0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const compliant_row *row = soft->row + i;
    force = larger(force, fabs(out->dual[i]));
    if (row->kind == COMPLIANT_LIMITED && exact && row->compliance > 0.0) {
      rounding = larger(rounding, LAST_DIGITS * fabs(source->program.g[i]) / row->compliance);
    }
  }
  return rounding > 0.0 ? rounding / force : 0.0;
}

/* The largest that a force of an interval asks of a column. */
static double largest_pull(const compliant_program *soft, const conic_program *source,
                           const double *dual) {
  double largest = 0.0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    double entry = 0.0;
    for (row_reader row = compliance_row_of(source, i); compliance_next(&row);) {
      entry = larger(entry, fabs(row.entry));
    }
    largest = larger(largest, entry * fabs(dual[i]));
  }
  return largest;
}

/* 1 if what the rigid program misses of stationarity is nothing beside b: its own terms, with
 * springs among them, may be far larger. Or of a barrier, rounding beside what forces ask. */
static int stationarity_holds(const compliant_program *soft, const conic_program *source,
                              double share, const double *dual, const qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  return info->dual_residual <= share * max_norm(program->b, program->variable_count) ||
         (!compliance_is_exact(program) &&
          info->dual_residual <= NEGLIGIBLE * largest_pull(soft, source, dual));
}

/* Slacks of intervals whose terms are all but zero are compared with `least`, but not those that a
 * barrier holds off an end. */
static void raise_interval_sizes(compliant_program *soft, int exact, double least) {
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    compliant_row *row = soft->row + i;
    const int endless = row->lower == -HUGE_VAL && row->upper == HUGE_VAL;
    row->size = exact || endless ? larger(row->size, least) : row->size;
  }
}

/* Where the rows are the caller's: what the rigid program's residuals do not have in them. */
static int measure_shared(compliant_program *soft, const conic_program *source, double share,
                          double zero, const conic_answer *out, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  compliance_errors found = {info->primal_residual, info->complementarity, 1};
  raise_interval_sizes(soft, compliance_is_exact(program), zero / share);
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    if (program->cone_kind[k] == QD_INTERVAL) {
      measure_linear(soft, source, k, row, share, out, &found);
    }
  }
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const double force = soft->row[i].force; /* what the rigid program was judged by */
    found.hold &= fabs(force - out->dual[i]) <= 2.0 * NEGLIGIBLE * fabs(force);
  }
  info->primal_residual = finite_or_infinite(found.primal);
  info->complementarity = finite_or_infinite(found.gap);
  return found.hold && isfinite(info->objective + found.primal + found.gap);
}

/* What a row's slack is a sum of is at least what the reach of the program makes of it. A rigid
 * row's is that, its offset, or a share of how far x goes: Lorentz cones by their largest row. */
static void find_sizes(compliant_program *soft, const conic_program *source, const double *unit,
                       double reach, double least, const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  for (int i = 0; i < soft->rows; ++i) {
    compliant_row *row = soft->row + i;
    double far = reach;
    if (!row->is_interval && !row->is_measured) {
      far = larger(far, MOTION_SHARE * far_of_row(compliance_row_of(source, i), unit, out->x));
      row->size = fabs(program->g[i]);
    }
    const double norm = compliance_row_norm(source, i, unit);
    row->size = larger(row->size, larger(norm * far, least));
  }
}

/* Slacks of all rows at x, into four_slack: of rigid ones, the rigid program's certificate is no
 * witness where springs and slips beside them are far longer. */
static void find_slacks(compliant_program *soft, const conic_program *source,
                        const conic_answer *out) {
  for (int i = 0; i < soft->rows; ++i) {
    compliant_row *row = soft->row + i;
    soft->four.slack[i] = compliance_slack(source, row, i, out->x, out->dual[i], &row->size);
  }
}

/* Products of a cone's slack and multiplier, beside those of its numbers: `most` is the largest
 * term of its columns, in their units, over the norm of its rows. */
static int products_hold(const qd_cone_program *program, const compliant_program *soft, int k,
                         int first, double share, double most, const conic_answer *out) {
  const double target = program->target_mu ? program->target_mu[k] : 0.0;
  const int dim = program->cone_kind[k] == QD_LORENTZ ? program->cone_dim[k] : 1;
  compliance_errors found = {0.0, 0.0, 1};
  double size = 0.0;
  for (int i = first; i < first + dim; ++i) {
    size = larger(size, soft->row[i].size);
  }
  measure_soft_cone(out->slack + first, out->dual + first, dim, target, size, share, &found);
  measure_soft_cone(soft->four.slack + first, out->dual + first, dim, target, size, share, &found);
  return found.gap <= share * (size * most + target);
}

/* Of an exact program's interval: no slack, or a force at the end that is on its side. */
static int force_holds(const qd_cone_program *program, const compliant_program *soft, int k, int i,
                       double share, double most, const conic_answer *out) {
  const double room =
      out->slack[i] > 0.0 ? out->dual[i] - program->lower[i] : program->upper[i] - out->dual[i];
  return (program->target_mu && program->target_mu[k] > 0.0) || room <= share * most ||
         fabs(out->slack[i]) <= share * soft->row[i].size;
}

/* What each column misses of zero, beside its largest terms, or those of columns that a row or the
 * cost couples it with; and the products of cones. */
static int holds_locally(const compliant_program *soft, const conic_program *source, double share,
                         double zero, double force, const conic_answer *out, const double *left,
                         double *terms) {
  const qd_cone_program *program = &source->program;
  const int n = soft->variables;
  const double *unit = soft->four.x;
  double *allowed = soft->four.x + n, *stiffness = allowed + n;
  int hold = 1;
  compliance_find_stiffness(soft, source, stiffness);
  for (int j = 0; j < n; ++j) {
    terms[j] = larger(terms[j] * unit[j], force);
  }
  for (int j = 0; j < n; ++j) {
    allowed[j] = larger(terms[j], largest_of(compliance_row_of_cost(source, j), terms));
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int is_cone = program->cone_kind[k] == QD_LORENTZ;
    const int dim = is_cone ? program->cone_dim[k] : 1;
    for (int first = row; first < row + program->cone_dim[k]; first += dim) {
      double most = 0.0, norm = 0.0, force_at_rest = 0.0;
      for (int i = first; i < first + dim; ++i) {
        most = larger(most, largest_of(compliance_row_of(source, i), terms));
        for (row_reader at = compliance_row_of(source, i); compliance_next(&at);) {
          norm = larger(norm, fabs(at.entry) * unit[at.column]);
        }
        if (is_cone && soft->row[i].compliance > 0.0) { /* what a spring presses with where it is */
          force_at_rest = larger(force_at_rest, fabs(program->g[i]) / soft->row[i].compliance);
        }
      }
      for (int i = first; i < first + dim; ++i) {
        for (row_reader at = compliance_row_of(source, i); compliance_next(&at);) {
          allowed[at.column] = larger(allowed[at.column], most);
        }
      }
      /* what no x moves has its own force alone; a rigid row that has any may have it */
      const double own = max_norm(out->dual + first, dim);
      const double forces = norm > 0.0 ? larger(most / norm, force_at_rest) : own;
      hold &= (norm == 0.0 && !(soft->row[first].compliance > 0.0)) ||
              (program->cone_kind[k] == QD_INTERVAL
                   ? force_holds(program, soft, k, first, share, forces, out)
                   : products_hold(program, soft, k, first, share, forces, out));
    }
  }
  for (int j = 0; j < n; ++j) {
    const double rest = zero * stiffness[j];
    hold &= fabs(left[j]) * unit[j] <= larger(share * allowed[j], rest * unit[j]);
  }
  return hold;
}

/* Qx + b and the objective; terms (n): the largest numbers in the sums. */
static double cost_gradient(const conic_program *source, const double *x, double *gradient,
                            double *terms) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  double objective = 0.0;
  for (int j = 0; j < n; ++j) {
    double size = 0.0;
    const double Qx = row_times(compliance_row_of_cost(source, j), x, &size);
    gradient[j] = Qx + program->b[j];
    terms[j] = fabs(program->b[j]) + source->load;
    for (row_reader row = compliance_row_of_cost(source, j); compliance_next(&row);) {
      terms[j] = larger(terms[j], fabs(row.entry * x[row.column]));
    }
    objective += x[j] * (0.5 * Qx + program->b[j]);
  }
  return objective;
}

/* left -= dual times row i of G, or behind those of C; terms as above. */
static void take_row(const conic_program *source, int i, double dual, double *left, double *terms) {
  for (row_reader row = compliance_row_of(source, i); compliance_next(&row);) {
    const double term = dual * row.entry;
    left[row.column] -= term;
    terms[row.column] = larger(terms[row.column], fabs(term));
  }
}

/* How far an equality is off; *hold: whether that is nothing. */
static double measure_equality(const conic_program *source, int i, const double *unit, double share,
                               double zero, double reach, const conic_answer *out, int *hold) {
  const qd_cone_program *program = &source->program;
  const double R = row_compliance_eq(program, i), moved = R * out->dual_eq[i];
  const double norm = compliance_row_norm(source, program->row_count + i, unit);
  double size = fabs(program->c[i]) + fabs(moved), far = reach;
  const double error =
      fabs(row_times(compliance_row_of(source, program->row_count + i), out->x, &size) +
           program->c[i] + moved);
  if (!(R > 0.0)) {
    far = larger(far, MOTION_SHARE * far_of_row(compliance_row_of(source, program->row_count + i),
                                                unit, out->x));
    size = fabs(program->c[i]);
  }
  *hold &= error <= larger(share * larger(size, norm * far), zero);
  return error;
}

int compliance_measure(compliant_program *soft, const conic_program *source, double tolerance,
                       int thoroughly, const conic_answer *out, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  const double share = (thoroughly ? THOROUGH : 1.0) * larger(SLIGHT, 10.0 * tolerance);
  const double zero = tolerance * source->length; /* of what the rows are about */
  double *left = soft->term, *terms = soft->largest;
  if (soft->as_it_is && !thoroughly && stationarity_holds(soft, source, share, out->dual, info) &&
      rounding_of_springs(soft, source, compliance_is_exact(program), out) <= NEGLIGIBLE &&
      measure_shared(soft, source, share, zero, out, info)) {
    return 1;
  }
  double *unit = soft->four.x;
  const compliance_scales from = compliance_find_units(source, unit, left);
  const conic_answer at = {out->x, soft->four.slack, out->dual, out->dual_eq};
  find_slacks(soft, source, out);
  find_sizes(soft, source, unit, from.reach, zero / share, out);
  compliance_errors found = measure_rows(soft, source, share, &at);
  info->objective = cost_gradient(source, out->x, left, terms);
  for (int i = 0; i < soft->rows; ++i) {
    take_row(source, i, out->dual[i], left, terms);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    take_row(source, soft->rows + i, out->dual_eq[i], left, terms);
    found.primal = larger(
        found.primal, measure_equality(source, i, unit, share, zero, from.reach, out, &found.hold));
  }
  const int no_cost = max_norm(program->b, n) == 0.0;
  found.hold &= no_cost || zero > 0.0 || max_norm(left, n) <= share * max_norm(terms, n);
  found.hold &=
      holds_locally(soft, source, share, zero, no_cost ? from.reach : 0.0, out, left, terms);
  info->primal_residual = finite_or_infinite(found.primal);
  info->dual_residual = max_norm_or_infinity(left, n);
  info->complementarity = finite_or_infinite(found.gap);
  return found.hold && isfinite(info->objective + found.primal + found.gap + info->dual_residual);
}
