/* Checks an answer row by row and column by column, in the caller's units, by the rules in
 * certificate.c. Coupled columns are searched only where a column's own terms are not
 * sufficient. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/detail.h"
#include "numerics/conic/certificate/measure.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/program/rows.h"

/* State of a check; vectors over variables are padded to whole lanes. */
typedef struct judgement {
  const conic_program *source;
  const cone_point *at;
  double share, zero;     /* allowed share of the terms; row error that counts as zero */
  double rounding;        /* of the largest offset */
  double reach, force;    /* lower bounds of R and S */
  int springs;            /* 1: some rows are compliant */
  certificate_work *work; /* terms: largest term of Qx + b - G'dual - C'dual_eq, finally in units of
                             columns; left: that sum */
} judgement;

/* One cone, one row of an orthant or of an interval, or an equality. */
typedef struct part {
  int kind, first, dim;
  double target;
  int gives_way;
  double norm;  /* largest norm of its rows */
  double reach; /* R: distance that x moves or might move */
  double moved; /* change of the slack by that motion, or by springs */
  double size;  /* scale of its slack */
} part;

/* ------------------------------------------------------------ sums */

LANES_INLINE double lanes_most(const lanes *a) {
  return larger(larger((*a)[0], (*a)[1]), larger((*a)[2], (*a)[3]));
}

/* Raises `to` to |a|. */
LANES_INLINE void raise_to(lanes *to, const lanes *a) {
  lanes size;
  lanes_size(&size, a);
  lanes_larger(to, &size, to);
}

/* Qx + b, its terms and the objective. */
LANES_INLINE double read_cost(const judgement *judge) {
  const qd_cone_program *program = &judge->source->program;
  const certificate_work *work = judge->work;
  double objective = 0.0;
  for (int j = 0; j < program->variable_count; ++j) {
    const double least = fabs(program->b[j]) + judge->source->load;
    lanes sum = {0.0, 0.0, 0.0, 0.0}, largest = {least, least, least, least};
    for (row_reader row = rows_open_cost(judge->source, j); rows_next(&row);) {
      const lanes term = LANES_FROM(row.values) * LANES_OF(work->x + row.first);
      sum += term;
      raise_to(&largest, &term);
    }
    const double Qx = lanes_sum(&sum);
    work->terms[j] = lanes_most(&largest);
    work->left[j] = Qx + program->b[j];
    objective += work->x[j] * (0.5 * Qx + program->b[j]);
  }
  return objective;
}

/* Row i (G, then C): its slack and the sum of its terms' sizes, its norm, the distance that x moves
 * along it, and the multiplier's terms in the columns. */
LANES_INLINE void read_row(const judgement *judge, int i, double dual) {
  const certificate_work *work = judge->work;
  const qd_cone_program *program = &judge->source->program;
  const double offset = rows_offset(program, i), moved = rows_compliance(program, i) * dual;
  const lanes none = {0.0, 0.0, 0.0, 0.0};
  lanes slack = none, size = none, square = none, far = none;
  for (row_reader row = rows_open(judge->source, i); rows_next(&row);) {
    const lanes entry = LANES_FROM(row.values), scaled = entry * LANES_OF(work->unit + row.first);
    const lanes term = entry * LANES_OF(work->x + row.first), pull = entry * dual;
    const lane_bits is_there = entry != 0.0;
    lanes length, along;
    slack += term;
    lanes_size(&length, &term);
    size += length;
    square += scaled * scaled;
    lanes_keep(&along, &is_there, &LANES_OF(work->allowed + row.first));
    lanes_larger(&far, &along, &far);
    LANES_AT(work->left + row.first) -= pull;
    raise_to(&LANES_AT(work->terms + row.first), &pull);
  }
  const double squared = lanes_sum(&square);
  work->slack[i] = lanes_sum(&slack) + offset + moved;
  work->size[i] = lanes_sum(&size) + fabs(offset) + fabs(moved);
  work->norm[i] =
      squares_are_safe(squared) ? sqrt(squared) : rows_norm(judge->source, i, work->unit);
  work->far[i] = lanes_most(&far);
}

/* All sums; returns the objective. */
QD_MULTIVERSION
static double read_all(const judgement *judge) {
  const int m = judge->source->program.row_count, p = judge->source->program.equality_count;
  const double objective = read_cost(judge);
  for (int i = 0; i < m; ++i) {
    read_row(judge, i, judge->at->dual[i]);
  }
  for (int i = 0; i < p; ++i) {
    read_row(judge, m + i, judge->at->dual_eq[i]);
  }
  return objective;
}

/* Copies the answer, and sets units of columns and (allowed) the distance that x moves in these
 * units; returns how far the cost alone moves x. */
static double open_columns(const judgement *judge) {
  const certificate_work *work = judge->work;
  const int n = judge->source->program.variable_count;
  const double free = rows_find_units(judge->source, work->unit, work->curvature);
  for (int j = 0; j < n; ++j) {
    work->x[j] = judge->at->x[j];
    work->allowed[j] = fabs(work->x[j]) / work->unit[j];
  }
  for (int j = n; j % LANE_COUNT != 0; ++j) {
    work->unit[j] = 1.0;
    work->x[j] = work->allowed[j] = work->left[j] = work->terms[j] = 0.0;
  }
  return free;
}

/* ------------------------------------------------------------ parts */

/* The next part from row `first` on, of cone k; k = cone_count for equalities. */
static part part_at(const judgement *judge, int k, int first, int gives_way) {
  const qd_cone_program *program = &judge->source->program;
  const certificate_work *work = judge->work;
  part of = {.kind = QD_ORTHANT, .first = first, .dim = 1, .gives_way = gives_way};
  double far = 0.0, offset = 0.0;
  if (k < program->cone_count) {
    of.kind = program->cone_kind[k];
    of.dim = of.kind == QD_LORENTZ ? program->cone_dim[k] : 1;
    of.target = program->target_mu ? program->target_mu[k] : 0.0;
  }
  for (int i = first; i < first + of.dim; ++i) {
    of.norm = larger(work->norm[i], of.norm);
    of.size = larger(gives_way ? work->size[i] : 0.0, of.size);
    far = larger(work->far[i], far);
    offset = larger(fabs(rows_offset(program, i)), offset);
  }
  of.reach = gives_way ? judge->reach : larger(MOTION_SHARE * far, judge->reach);
  of.size = larger(larger(of.norm * of.reach, judge->zero / judge->share), of.size);
  of.moved = of.size;
  if (!gives_way) {
    of.size = larger(larger(offset, judge->rounding / judge->share), of.size);
  }
  return of;
}

/* 1 if rows of cone k, from `first` on, are compliant. */
static int cone_gives_way(const qd_cone_program *program, int k, int first) {
  int gives = program->cone_kind[k] == QD_INTERVAL;
  for (int i = first; program->compliance && i < first + program->cone_dim[k]; ++i) {
    gives |= program->compliance[i] > 0.0;
  }
  return gives;
}

/* Largest term in the columns of the rows, in units of columns; at least the lower bound of S. */
static double largest_along(const judgement *judge, int first, int dim) {
  const double *terms = judge->work->terms;
  double most = judge->force;
  for (int i = first; i < first + dim; ++i) {
    for (row_reader row = rows_open(judge->source, i); rows_next(&row);) {
      for (int k = 0; k < rows_width(&row); ++k) {
        most = row.values[k] != 0.0 ? larger(terms[row.first + k], most) : most;
      }
    }
  }
  return most;
}

/* ------------------------------------------------------------ rows */

/* Errors of an interval row. With a barrier, a row between its ends has s = target / above - target
 * / below, which is checked as a product with the nearer distance, where rounding matters most.
 * Otherwise the slack is zero, or the force is at the end on the slack's side. */
static cone_errors interval_errors(const qd_cone_program *program, int i, double target,
                                   double slack, double dual) {
  const double above = dual - program->lower[i], below = program->upper[i] - dual;
  const double nearest = smaller(above, below), room = slack > 0.0 ? above : below;
  cone_errors found = {0.0, 0.0, 0.0, 0.0};
  if (target > 0.0 && nearest < HUGE_VAL) {
    const double towards = above <= below ? slack : -slack;
    const double wanted = target * (1.0 - nearest / larger(above, below));
    found.gap = program->lower[i] < program->upper[i] ? fabs(towards * nearest - wanted) : 0.0;
  } else if (room > 0.0) { /* the force has not reached its limit */
    *(room < HUGE_VAL ? &found.gap : &found.outside) = fabs(slack) * (room < HUGE_VAL ? room : 1.0);
  }
  return found;
}

/* Errors of a part; w: its slack as computed from x. */
static cone_errors errors_of(const qd_cone_program *program, int kind, int first, int dim,
                             double target, const double *w, const double *slack,
                             const double *dual) {
  cone_errors found = {0.0, 0.0, 0.0, 0.0};
  if (kind == QD_INTERVAL) {
    return interval_errors(program, first, target, *slack, *dual);
  }
  measure_cone(w, slack, dual, dim, target, &found);
  return found;
}

/* Scale of a part's products: the largest term of its columns over the norm of its rows, or the
 * springs' force at x = 0, times the motion. A part without entries uses its own multiplier. */
static double product_of(const judgement *judge, const part *of) {
  const qd_cone_program *program = &judge->source->program;
  double at_rest = 0.0;
  if (of->norm == 0.0) {
    return of->gives_way ? of->size * max_norm(judge->at->dual + of->first, of->dim)
                         : of->reach * judge->force;
  }
  for (int i = of->first; i < of->first + of->dim && of->dim > 1; ++i) {
    const double R = rows_compliance(program, i);
    at_rest = larger(at_rest, R > 0.0 ? fabs(program->g[i]) / R : 0.0);
  }
  return of->moved * larger(largest_along(judge, of->first, of->dim) / of->norm, at_rest);
}

static int interval_holds(const judgement *judge, const part *of, double gap) {
  const qd_cone_program *program = &judge->source->program;
  const double slack = judge->at->slack[of->first], dual = judge->at->dual[of->first];
  const double above = dual - program->lower[of->first];
  const double below = program->upper[of->first] - dual, nearest = smaller(above, below);
  const double allowed = judge->share * of->size, room = slack > 0.0 ? above : below;
  if (of->target > 0.0 && nearest < HUGE_VAL) { /* rounding of the distance to the end */
    const int outwards = (above <= below ? slack : -slack) > 0.0;
    const double rounding = outwards ? LAST_DIGITS * fabs(slack * dual) : 0.0;
    return gap <= larger(allowed * nearest, judge->share * of->target + rounding);
  }
  return !(room > 0.0) || fabs(slack) <= allowed ||
         (room <= judge->share * fabs(dual) &&
          room * of->moved <= judge->share * product_of(judge, of));
}

/* 1 if a multiplier lies in its cone, up to an error that its columns cannot resolve. */
static int dual_holds(const judgement *judge, const part *of) {
  const double *dual = judge->at->dual + of->first;
  return is_in_cone(dual, of->dim) || outside_cone(dual, of->dim) * of->norm <=
                                          judge->share * largest_along(judge, of->first, of->dim);
}

/* 1 if a part holds; raises *most to its errors. */
static int part_holds(const judgement *judge, const part *of, cone_errors *most) {
  const qd_cone_program *program = &judge->source->program;
  const double *w = judge->work->slack + of->first, *dual = judge->at->dual + of->first;
  const int is_fixed = of->norm == 0.0 && !of->gives_way; /* no x changes it */
  const double *slack = is_fixed ? w : judge->at->slack + of->first;
  const cone_errors found =
      errors_of(program, of->kind, of->first, of->dim, of->target, w, slack, dual);
  const double product = larger(found.gap, found.apart);
  most->outside = larger(found.outside, most->outside);
  most->gap = larger(found.gap, most->gap);
  most->unsure += found.unsure;
  if (of->kind == QD_INTERVAL) {
    return interval_holds(judge, of, found.gap);
  }
  /* an exact row without entries whose offset is rounding of zero: any multiplier is allowed */
  const int is_nothing = is_fixed && of->target == 0.0 && max_norm(w, of->dim) <= judge->rounding;
  return found.outside <= judge->share * of->size && dual_holds(judge, of) &&
         (is_nothing || product <= judge->share * of->target ||
          product <= judge->share * (product_of(judge, of) + of->target));
}

/* 1 if all rows hold; raises *most to their errors. */
static int rows_hold(const judgement *judge, cone_errors *most) {
  const qd_cone_program *program = &judge->source->program;
  const int m = program->row_count;
  int hold = 1;
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int gives_way = cone_gives_way(program, k, row);
    for (int i = row; i < row + program->cone_dim[k];) {
      const part of = part_at(judge, k, i, gives_way);
      hold &= part_holds(judge, &of, most);
      i += of.dim;
    }
  }
  for (int i = m; i < m + program->equality_count; ++i) {
    const part of = part_at(judge, program->cone_count, i, rows_compliance(program, i) > 0.0);
    const double error = fabs(judge->work->slack[i]);
    most->outside = larger(error, most->outside);
    most->unsure += error * 0.0;
    hold &= error <= judge->share * larger(fabs(program->c[i - m]), of.moved);
  }
  return hold;
}

/* ------------------------------------------------------------ columns */

/* Raises allowed (variables) to `most` in the columns of a row. */
static void allow(row_reader row, double most, double *allowed) {
  while (rows_next(&row)) {
    for (int k = 0; k < rows_width(&row); ++k) {
      const double so_far = allowed[row.first + k];
      allowed[row.first + k] = row.values[k] != 0.0 ? larger(most, so_far) : so_far;
    }
  }
}

/* allowed: largest term of each column and of the columns that a row or the cost couples with
 * it. */
static void spread_terms(const judgement *judge) {
  const qd_cone_program *program = &judge->source->program;
  const certificate_work *work = judge->work;
  const int n = program->variable_count, m = program->row_count;
  memcpy(work->allowed, work->terms, (size_t)n * sizeof(double));
  for (int j = 0; j < n; ++j) {
    allow(rows_open_cost(judge->source, j), work->terms[j], work->allowed);
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_kind[k] == QD_LORENTZ ? program->cone_dim[k] : 1;
    for (int first = row; first < row + program->cone_dim[k]; first += dim) {
      const double most = largest_along(judge, first, dim);
      for (int i = first; i < first + dim; ++i) {
        allow(rows_open(judge->source, i), most, work->allowed);
      }
    }
  }
  for (int i = m; i < m + program->equality_count; ++i) {
    allow(rows_open(judge->source, i), largest_along(judge, i, 1), work->allowed);
  }
}

/* 1 if the residuals that exceed their own columns' terms are rounding of terms of columns that
 * rows and Q couple with them: elimination can leave a residual from far larger numbers than any in
 * its column. Other columns' residuals are zero here. */
static int is_rounding(const judgement *judge) {
  const certificate_work *work = judge->work;
  const int n = judge->source->program.variable_count;
  int spreads = 1;
  for (int ring = 0; ring < n && spreads; ++ring) {
    spreads = 0;
    for (int j = 0; j < n; ++j) {
      spreads |= work->allowed[j] > (1.0 + CALLERS_ROUNDING) * work->terms[j];
    }
    memcpy(work->terms, work->allowed, (size_t)n * sizeof(double));
    spread_terms(judge);
  }
  for (int j = 0; j < n; ++j) {
    if (!(fabs(work->left[j]) * work->unit[j] <= LAST_DIGITS * work->allowed[j])) {
      return 0;
    }
  }
  return 1;
}

/* Force that moves column j by `zero`, in a program with springs. Springs that are almost rigid
 * compared with the cost do not count. */
static double resting_force(const judgement *judge, int j) {
  const double own = rows_curvature(judge->source, j), all = judge->work->curvature[j];
  return judge->springs ? judge->zero * (own > 0.0 ? smaller(all, own + own / SLIGHT) : all) : 0.0;
}

/* Sets residuals that hold by `allowed` to zero; 1 if all do. */
static int clear_small(const judgement *judge, const double *allowed) {
  const certificate_work *work = judge->work;
  int all = 1;
  for (int j = 0; j < judge->source->program.variable_count; ++j) {
    const double unit = work->unit[j], left = fabs(work->left[j]) * unit;
    if (left <= judge->share * allowed[j] || left <= resting_force(judge, j) * unit) {
      work->left[j] = 0.0;
    } else {
      all = 0;
    }
  }
  return all;
}

static int columns_hold(const judgement *judge) {
  if (clear_small(judge, judge->work->terms)) {
    return 1;
  }
  spread_terms(judge);
  return clear_small(judge, judge->work->allowed) || is_rounding(judge);
}

/* ------------------------------------------------------------ the check */

/* Infinity for NaN, i.e. where numbers beyond the range of a double met. */
static double finite_or_infinite(double error) { return isnan(error) ? HUGE_VAL : error; }

static void report_rows(const cone_errors *most, qd_cone_info *info) {
  info->primal_residual = finite_or_infinite(most->outside + most->unsure);
  info->complementarity = finite_or_infinite(most->gap + most->unsure);
}

void detail_measure_rows(const qd_cone_program *program, const conic_answer *out,
                         qd_cone_info *info) {
  cone_errors most = {0.0, 0.0, 0.0, 0.0};
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int kind = program->cone_kind[k], dim = kind == QD_LORENTZ ? program->cone_dim[k] : 1;
    for (int i = row; i < row + program->cone_dim[k]; i += dim) {
      const cone_errors found =
          errors_of(program, kind, i, dim, 0.0, out->slack + i, out->slack + i, out->dual + i);
      most.outside = larger(found.outside, most.outside);
      most.gap = larger(found.gap, most.gap);
      most.unsure += found.unsure;
    }
  }
  report_rows(&most, info);
}

/* The largest value that the sum of the products can have. */
static double natural_gap(const judgement *judge) {
  const qd_cone_program *program = &judge->source->program;
  double natural = 0.0;
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    for (int i = row; i < row + program->cone_dim[k];) {
      const part of = part_at(judge, k, i, 0);
      natural += of.dim * (of.reach * largest_along(judge, i, of.dim));
      i += of.dim;
    }
  }
  return natural;
}

int detail_holds(certificate_work *work, const conic_program *source, double tolerance, double zero,
                 const cone_point *at, qd_cone_info *info, double *natural) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, rows = program->row_count + program->equality_count;
  const int has_cost = max_norm(program->b, n) > 0.0;
  cone_errors most = {0.0, 0.0, 0.0, 0.0};
  judgement judge = {.source = source,
                     .at = at,
                     .share = larger(SLIGHT, 10.0 * tolerance),
                     .zero = zero,
                     .rounding = LAST_DIGITS * max_norm(program->g, program->row_count),
                     .springs = program->compliance || program->compliance_eq || program->lower,
                     .work = work};
  const double free = open_columns(&judge);
  info->objective = read_all(&judge);
  info->dual_residual = max_norm_or_infinity(work->left, n);
  const double terms = max_norm(work->terms, n), x = max_norm(work->allowed, n);
  const double offset = rows_far(program, max_norm(work->norm, rows));
  judge.reach = reach_of(offset, free, rows_are_exact(program));
  if (judge.reach == 0.0 && zero == 0.0 && !judge.springs) {
    judge.reach = larger(x, 1.0);
  }
  judge.force = has_cost ? 0.0 : larger(judge.reach, judge.springs ? 0.0 : x);
  for (int j = 0; j < n; ++j) {
    work->terms[j] = larger(work->terms[j] * work->unit[j], judge.force);
  }
  const int holds = rows_hold(&judge, &most);
  report_rows(&most, info);
  if (!holds ||
      !isfinite(info->objective + info->primal_residual + info->complementarity +
                info->dual_residual) ||
      !product_is_safe(judge.share, larger(judge.force, max_norm(work->terms, n)),
                       larger(judge.reach, x)) ||
      (has_cost && info->dual_residual > judge.share * terms && !(judge.springs && zero > 0.0))) {
    return 0;
  }
  if (natural) {
    *natural = natural_gap(&judge);
  }
  return columns_hold(&judge);
}
