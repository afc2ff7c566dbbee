/* Programs whose rows give way: their rigid program is solved, and its answer read back. What comes
 * out is measured in the caller's numbers, compliance and limits included. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/soft.h"
#include "numerics/conic/workspace.h"

#define FORCE_ROUNDING                                                                             \
  1e-15 /* of the numbers in a row, over R: what its spring's force is not known to */
#define SPRING_ROUNDING 1e-12 /* of such a force: less needs no look */
#define SOFT_CERTIFIED 1e-6   /* at least: of the numbers that a slack is a sum of */

/* ------------------------------------------------------------ the caller's numbers */

/* Row i of a matrix times x, and the sum of the sizes of its terms. */
static double row_times(const double *dense, const sparse_rows *tiles, int n, int i,
                        const double *x, double *size) {
  double sum = 0.0;
  if (!tiles) {
    for (int j = 0; j < n; ++j) {
      const double term = dense[(size_t)i * (size_t)n + (size_t)j] * x[j];
      sum += term;
      *size += fabs(term);
    }
    return sum;
  }
  for (int k = tiles->start[i]; k < tiles->start[i + 1]; ++k) {
    for (int j = 0; j < 4 && 4 * tiles->tiles[k] + j < n; ++j) {
      const double term = tiles->values[4 * (size_t)k + (size_t)j] * x[4 * tiles->tiles[k] + j];
      sum += term;
      *size += fabs(term);
    }
  }
  return sum;
}

/* out += factor times row i, and its terms' sizes to `terms` */
static void add_row(const double *dense, const sparse_rows *tiles, int n, int i, double factor,
                    double *out, double *terms) {
  for (int j = 0; !tiles && j < n; ++j) {
    const double term = factor * dense[(size_t)i * (size_t)n + (size_t)j];
    out[j] += term;
    terms[j] += fabs(term);
  }
  for (int k = tiles ? tiles->start[i] : 0; tiles && k < tiles->start[i + 1]; ++k) {
    for (int j = 0; j < 4 && 4 * tiles->tiles[k] + j < n; ++j) {
      const double term = factor * tiles->values[4 * (size_t)k + (size_t)j];
      out[4 * tiles->tiles[k] + j] += term;
      terms[4 * tiles->tiles[k] + j] += fabs(term);
    }
  }
}

/* What becomes of the entries of a row that are not zero: `of` over columns, or one number. */
typedef enum row_visit {
  KEEP_LARGEST, /* out_j = largest of it and |entry| */
  FIND_MOST,    /* returns the largest of_j */
  FIND_NORM,    /* returns the largest |entry| of_j */
  RAISE         /* out_j = largest of it and *of */
} row_visit;

static double visit_entry(row_visit what, double entry, int j, const double *of, double *out,
                          double found) {
  if (entry == 0.0) {
    return found;
  }
  switch (what) {
  case KEEP_LARGEST:
    out[j] = larger(out[j], fabs(entry));
    return found;
  case FIND_MOST:
    return larger(found, of[j]);
  case FIND_NORM:
    return larger(found, fabs(entry) * of[j]);
  default:
    out[j] = larger(out[j], *of);
    return found;
  }
}

static double visit_row(const double *dense, const sparse_rows *tiles, int n, int i, row_visit what,
                        const double *of, double *out) {
  double found = 0.0;
  for (int j = 0; !tiles && j < n; ++j) {
    found = visit_entry(what, dense[(size_t)i * (size_t)n + (size_t)j], j, of, out, found);
  }
  for (int k = tiles ? tiles->start[i] : 0; tiles && k < tiles->start[i + 1]; ++k) {
    for (int j = 0; j < 4 && 4 * tiles->tiles[k] + j < n; ++j) {
      found = visit_entry(what, tiles->values[4 * (size_t)k + (size_t)j], 4 * tiles->tiles[k] + j,
                          of, out, found);
    }
  }
  return found;
}

/* ------------------------------------------------------------ there */

/* The slack of a row at (x, dual), and the sum of its terms' sizes. */
static double slack_of(const conic_program *source, const soft_row *row, int i, const double *x,
                       double dual, double *size) {
  const qd_cone_program *program = &source->program;
  *size = fabs(program->g[i]) + fabs(row->compliance * dual);
  return row_times(program->G, source->G, program->variable_count, i, x, size) + program->g[i] +
         row->compliance * dual;
}

/* A multiplier where its interval allows it. */
static double within(double value, double lower, double upper) {
  return value < lower ? lower : value > upper ? upper : value;
}

static void enter_row(soft_program *soft, const conic_program *source, int i,
                      const conic_answer *guess) {
  const soft_row *row = soft->row + i;
  double size, dual = guess->dual[i];
  if (row->row < 0) {
    return;
  }
  if (row->kind != SOFT_CONE) {
    dual = within(dual, row->lower, row->upper);
  }
  const double own = row->sign * (dual - row->base);
  (row->kind == SOFT_EQUALITY ? soft->dual_eq : soft->dual)[row->row] = own;
  if (row->spring >= 0) {
    soft->x[row->spring] = sqrt(row->compliance) / sqrt(soft->curvature) * own;
  }
  if (row->slip >= 0) {
    const double slack = row->sign * slack_of(source, row, i, guess->x, dual, &size);
    soft->x[row->slip] = larger(-slack, 0.0);
    soft->dual[row->slip_row] = row->width - own;
  }
}

/* The caller's guess. */
static void enter(soft_program *soft, const conic_program *source, const conic_answer *guess) {
  const qd_cone_program *program = &source->program;
  memset(soft->x, 0, (size_t)soft->next * sizeof(double));
  memcpy(soft->x, guess->x, (size_t)soft->variables * sizeof(double));
  for (int i = 0; i < soft->rows; ++i) {
    enter_row(soft, source, i, guess);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    soft->dual_eq[i] = guess->dual_eq[i];
    if (soft->spring_eq[i] >= 0) {
      soft->x[soft->spring_eq[i]] =
          sqrt(soft_compliance_eq(program, i)) / sqrt(soft->curvature) * guess->dual_eq[i];
    }
  }
}

/* ------------------------------------------------------------ and back */

/* Of a proof that there is no point, in which no force has a limit. */
static double ray_of(const soft_program *soft, const soft_row *row) {
  if (row->kind == SOFT_CONE) {
    return row->compliance > 0.0 ? 0.0 : soft->dual[row->row];
  }
  if (row->kind == SOFT_LIMITED) {
    return 0.0;
  }
  if (row->compliance > 0.0 || row->row < 0 || row->width >= 0.0) {
    return 0.0;
  }
  return row->kind == SOFT_EQUALITY ? soft->dual_eq[row->row] : row->sign * soft->dual[row->row];
}

/* Multiplier of row i at x, ends of intervals aside. */
static double force_of(const soft_program *soft, const conic_program *source, int i) {
  const soft_row *row = soft->row + i;
  double size;
  switch (row->kind) {
  case SOFT_CONE:
    return soft->dual[row->row];
  case SOFT_FORCE:
    return row->base;
  case SOFT_SPRUNG:
    return -slack_of(source, row, i, soft->x, 0.0, &size) / row->compliance;
  case SOFT_EQUALITY:
    return soft->dual_eq[row->row];
  default:
    return row->base + row->sign * soft->dual[row->row];
  }
}

static void leave_row(soft_program *soft, const conic_program *source, int ray, int i,
                      const conic_answer *out) {
  soft_row *row = soft->row + i;
  row->force = ray ? ray_of(soft, row) : force_of(soft, source, i);
  if (row->kind == SOFT_CONE && !row->is_measured) {
    out->dual[i] = row->force;
    out->slack[i] = soft->slack[row->row];
    row->size = fabs(source->program.g[i]) + fabs(out->slack[i]);
    return;
  }
  out->dual[i] =
      ray || row->kind == SOFT_CONE ? row->force : within(row->force, row->lower, row->upper);
  out->slack[i] = row->slack = slack_of(source, row, i, out->x, out->dual[i], &row->size);
}

static void leave(soft_program *soft, const conic_program *source, int ray,
                  const conic_answer *out) {
  memcpy(out->x, soft->x, (size_t)soft->variables * sizeof(double));
  for (int i = 0; i < soft->rows; ++i) {
    leave_row(soft, source, ray, i, out);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    out->dual_eq[i] = ray && soft->spring_eq[i] >= 0 ? 0.0 : soft->dual_eq[i];
  }
}

/* ------------------------------------------------------------ what it misses */

/* Errors of the answer, in the caller's numbers, and whether rows that give way hold beside the
 * numbers that their slacks are sums of: the rest is the rigid program's certificate. */
typedef struct soft_errors {
  double primal, gap;
  int hold;
} soft_errors;

/* Of an interval's row: products with both ends, where s = target / above - target / below. */
static void measure_interval(const qd_cone_program *program, int i, double slack, double dual,
                             double target, double size, double share, soft_errors *found) {
  const double above = dual - program->lower[i], below = program->upper[i] - dual;
  double error;
  if (target > 0.0) {
    const double nearest = smaller(above, below);
    const double wanted =
        (above < HUGE_VAL ? target / above : 0.0) - (below < HUGE_VAL ? target / below : 0.0);
    error = program->lower[i] < program->upper[i] ? fabs(slack - wanted) : 0.0;
    if (nearest < HUGE_VAL) {
      found->gap = larger(found->gap, error * nearest);
      const double rounding = FORCE_ROUNDING * fabs(slack * dual); /* of the way to the end */
      found->hold &= error * nearest <= larger(share * size * nearest, share * target + rounding);
    }
    found->primal = larger(found->primal, nearest == HUGE_VAL ? error : 0.0);
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
                              double size, double share, soft_errors *found) {
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
static void measure_linear(const soft_program *soft, const conic_program *source, int k, int first,
                           double share, const conic_answer *out, soft_errors *found) {
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

static soft_errors measure_rows(const soft_program *soft, const conic_program *source, double share,
                                const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  soft_errors found = {0.0, 0.0, 1};
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

/* The force of a spring with one entry is a small difference over R: what its column misses by that
 * rounding, it carries. */
static void settle_springs(soft_program *soft, const conic_program *source, const conic_answer *out,
                           double *left) {
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const soft_row *row = soft->row + i;
    double size;
    if (row->kind != SOFT_SPRUNG || row->single < 0) {
      continue;
    }
    slack_of(source, row, i, out->x, 0.0, &size);
    const double more = left[row->single] / row->entry;
    if (fabs(more) <= FORCE_ROUNDING * size / row->compliance) {
      const double dual = within(out->dual[i] + more, row->lower, row->upper);
      left[row->single] -= row->entry * (dual - out->dual[i]);
      out->dual[i] = dual;
      out->slack[i] = slack_of(source, row, i, out->x, dual, &size);
    }
  }
}

/* What the cost of a rigid program with springs and forces in it is more than x's own. */
static double cost_of_rows(const soft_program *soft, const conic_program *source,
                           const conic_answer *out) {
  double cost = 0.0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const soft_row *row = soft->row + i;
    const double offset = source->program.g[i];
    const double moved = out->slack[i] - offset - row->compliance * out->dual[i];
    if (row->kind == SOFT_SPRUNG) {
      cost += (0.5 * moved + offset) * moved / row->compliance;
    } else if (row->kind == SOFT_FORCE) {
      cost -= row->base * moved;
    }
  }
  return cost;
}

/* Rounding in the forces of springs, small differences over R, beside the largest force. */
static double rounding_of_springs(const soft_program *soft, const conic_program *source, int exact,
                                  const conic_answer *out) {
  double rounding = 0.0, force = 0.0;
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const soft_row *row = soft->row + i;
    force = larger(force, fabs(out->dual[i]));
    if (row->kind == SOFT_SPRUNG || (row->kind == SOFT_LIMITED && exact && row->compliance > 0.0)) {
      rounding = larger(rounding, FORCE_ROUNDING * fabs(source->program.g[i]) / row->compliance);
    }
  }
  return rounding > 0.0 ? rounding / force : 0.0;
}

/* Slacks of intervals whose terms are all but zero are compared with `zero`, and with what would
 * change the largest force by rounding. */
static void raise_interval_sizes(soft_program *soft, double least, const conic_answer *out) {
  const double force = SPRING_ROUNDING * max_norm(out->dual, soft->rows);
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    soft_row *row = soft->row + i;
    row->size = larger(row->size, larger(least, force * row->compliance / SOFT_CERTIFIED));
  }
}

/* Where the rows are the caller's: what the rigid program's residuals do not have in them. */
static int measure_shared(soft_program *soft, const conic_program *source, double share,
                          double zero, const conic_answer *out, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  soft_errors found = {info->primal_residual, info->complementarity, 1};
  if (soft_is_exact(program)) {
    raise_interval_sizes(soft, zero / share, out);
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    if (program->cone_kind[k] == QD_INTERVAL) {
      measure_linear(soft, source, k, row, share, out, &found);
    }
  }
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    const double force = soft->row[i].force; /* what the rigid program was judged by */
    found.hold &= fabs(force - out->dual[i]) <= 2.0 * STATE_ROUNDING * fabs(force);
  }
  info->objective -= cost_of_rows(soft, source, out);
  info->primal_residual = found.primal;
  info->complementarity = found.gap;
  return found.hold && isfinite(info->objective + found.primal + found.gap);
}

/* Rows and columns in the units of columns: 1 / sqrt(Q_jj), or one over the largest entry. */
static void find_units(const soft_program *soft, const conic_program *source, double *unit) {
  const qd_cone_program *program = &source->program;
  const int n = soft->variables;
  memset(unit, 0, (size_t)n * sizeof(double));
  for (int i = 0; i < soft->rows; ++i) {
    visit_row(program->G, source->G, n, i, KEEP_LARGEST, NULL, unit);
  }
  for (int j = 0; j < n; ++j) {
    const double curvature = soft_curvature(source, j);
    unit[j] = curvature > 0.0 ? 1.0 / sqrt(curvature) : unit[j] > 0.0 ? 1.0 / unit[j] : 1.0;
  }
}

/* What a row's slack is a sum of is at least a share of how far offsets are, or of how far the cost
 * alone goes: less is rounding (as conic/certificate.c has it). Returns what forces are at least
 * compared with, where the cost asks for none. */
static double raise_sizes(soft_program *soft, const conic_program *source, const double *unit,
                          double least) {
  const qd_cone_program *program = &source->program;
  const int n = soft->variables;
  double strongest = 0.0, free = 0.0;
  for (int i = 0; i < soft->rows; ++i) {
    strongest = larger(strongest, visit_row(program->G, source->G, n, i, FIND_NORM, unit, NULL));
  }
  for (int j = 0; j < n; ++j) {
    free = larger(free, fabs(program->b[j]) * unit[j]);
  }
  const double offset = strongest > 0.0 ? max_norm(program->g, soft->rows) / strongest : 0.0;
  const double reach = larger(1e-2 * offset, 1e-8 * free);
  for (int i = 0; i < soft->rows; ++i) {
    const double norm = visit_row(program->G, source->G, n, i, FIND_NORM, unit, NULL);
    soft->row[i].size = larger(soft->row[i].size, larger(norm * reach, least));
  }
  return free > 0.0 ? 0.0 : reach;
}

/* Products of a cone's slack and multiplier, beside those of its numbers: `most` is the largest
 * term of its columns, in their units, over the norm of its rows. */
static int products_hold(const qd_cone_program *program, const soft_program *soft, int k, int first,
                         double share, double most, const conic_answer *out) {
  const double target = program->target_mu ? program->target_mu[k] : 0.0;
  const int dim = program->cone_kind[k] == QD_LORENTZ ? program->cone_dim[k] : 1;
  soft_errors found = {0.0, 0.0, 1};
  double size = 0.0;
  for (int i = first; i < first + dim; ++i) {
    size = larger(size, soft->row[i].size);
  }
  measure_soft_cone(out->slack + first, out->dual + first, dim, target, size, share, &found);
  return found.gap <= share * (size * most + target);
}

/* Of an exact program's interval: no slack, or a force at the end that is on its side. */
static int force_holds(const qd_cone_program *program, const soft_program *soft, int k, int i,
                       double share, double most, const conic_answer *out) {
  const double room =
      out->slack[i] > 0.0 ? out->dual[i] - program->lower[i] : program->upper[i] - out->dual[i];
  return (program->target_mu && program->target_mu[k] > 0.0) || room <= share * most ||
         fabs(out->slack[i]) <= share * soft->row[i].size;
}

/* What each column misses of zero, beside its largest terms, or those of columns that a row or the
 * cost couples it with; and the products of cones. */
static int holds_locally(const soft_program *soft, const conic_program *source, double share,
                         double zero, double force, const conic_answer *out, const double *left,
                         double *terms) {
  const qd_cone_program *program = &source->program;
  const int n = soft->variables;
  const double *unit = soft->four_x;
  double *allowed = soft->four_x + n;
  int hold = 1;
  for (int j = 0; j < n; ++j) {
    terms[j] = larger(terms[j] * unit[j], force);
  }
  for (int j = 0; j < n; ++j) {
    allowed[j] = larger(terms[j], visit_row(program->Q, source->Q, n, j, FIND_MOST, terms, NULL));
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int is_cone = program->cone_kind[k] == QD_LORENTZ;
    const int dim = is_cone ? program->cone_dim[k] : 1;
    for (int first = row; first < row + program->cone_dim[k]; first += dim) {
      double most = 0.0, norm = 0.0;
      for (int i = first; i < first + dim; ++i) {
        most = larger(most, visit_row(program->G, source->G, n, i, FIND_MOST, terms, NULL));
        norm = larger(norm, visit_row(program->G, source->G, n, i, FIND_NORM, unit, NULL));
      }
      for (int i = first; i < first + dim; ++i) {
        visit_row(program->G, source->G, n, i, RAISE, &most, allowed);
      }
      hold &=
          norm == 0.0 || (program->cone_kind[k] == QD_INTERVAL
                              ? force_holds(program, soft, k, first, share, most / norm, out)
                              : products_hold(program, soft, k, first, share, most / norm, out));
    }
  }
  for (int j = 0; j < n; ++j) {
    const double rest = zero * soft_curvature(source, j);
    hold &= fabs(left[j]) * unit[j] <= larger(share * allowed[j], rest * unit[j]);
  }
  return hold;
}

/* Residuals as qd_cone_info has them; 1 if rows that give way hold. */
static int measure(soft_program *soft, const conic_program *source, double tolerance,
                   const conic_answer *out, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  const double share = larger(SOFT_CERTIFIED, 10.0 * tolerance);
  const double zero = tolerance * source->length; /* of what the rows are about */
  double *left = soft->term, *terms = soft->diagonal, size = 0.0;
  if (soft->rows_stay &&
      rounding_of_springs(soft, source, soft_is_exact(program), out) <= SPRING_ROUNDING) {
    return measure_shared(soft, source, share, zero, out, info);
  }
  find_units(soft, source, soft->four_x);
  const double force = raise_sizes(soft, source, soft->four_x, zero / share);
  soft_errors found = measure_rows(soft, source, share, out);
  info->objective = 0.0;
  for (int j = 0; j < n; ++j) {
    terms[j] = fabs(program->b[j]);
    const double Qx = row_times(program->Q, source->Q, n, j, out->x, terms + j);
    left[j] = Qx + program->b[j];
    info->objective += out->x[j] * (0.5 * Qx + program->b[j]);
  }
  for (int i = 0; i < soft->rows; ++i) {
    add_row(program->G, source->G, n, i, -out->dual[i], left, terms);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    const double moved = soft_compliance_eq(program, i) * out->dual_eq[i];
    size = fabs(program->c[i]) + fabs(moved);
    const double error =
        fabs(row_times(program->C, source->C, n, i, out->x, &size) + program->c[i] + moved);
    add_row(program->C, source->C, n, i, -out->dual_eq[i], left, terms);
    found.primal = larger(found.primal, error);
    found.hold &= soft->spring_eq[i] < 0 || error <= larger(share * size, zero);
  }
  settle_springs(soft, source, out, left);
  found.hold &= holds_locally(soft, source, share, zero, force, out, left, terms);
  info->primal_residual = found.primal;
  info->dual_residual = max_norm_or_infinity(left, n);
  info->complementarity = found.gap;
  return found.hold && isfinite(info->objective + found.primal + found.gap + info->dual_residual);
}

/* ------------------------------------------------------------ the solve */

/* A solve and what belongs to it. */
typedef struct soft_task {
  qd_cone_workspace *workspace;
  qd_cone_options options;
  const conic_program *source;
  const conic_answer *out;
  qd_cone_info *info, sum; /* of all rounds */
  rigid_solver solve;
} soft_task;

/* The rigid program as rows are treated now; its answer in the caller's numbers. */
static qd_status solve_once(soft_task *task) {
  soft_program *soft = &task->workspace->soft;
  qd_cone_info *info = task->info;
  const conic_answer found = {soft->x, soft->slack, soft->dual, soft->dual_eq};
  if (!soft_write(soft, task->source)) {
    conic_clear_info(info);
    conic_clear_outputs(&task->source->program, task->out);
    return info->status = QD_OUT_OF_CAPACITY;
  }
  if (task->options.warm_start) {
    enter(soft, task->source, task->out);
  }
  info->status = task->solve(task->workspace, &task->options, &soft->rigid, &found, info);
  soft->as_it_is = soft->rows_stay && soft->natively;
  soft->natively = 0;
  task->sum.iterations += info->iterations;
  task->sum.factorizations += info->factorizations;
  task->sum.tries += info->tries;
  info->iterations = task->sum.iterations;
  info->factorizations = task->sum.factorizations;
  info->tries = task->sum.tries;
  leave(soft, task->source, info->status == QD_INFEASIBLE, task->out);
  return info->status;
}

/* 1 if an answer with all forces in their states was found, in so many rounds. */
static int solve_by_states(soft_task *task, int rounds) {
  soft_program *soft = &task->workspace->soft;
  const int warm = task->options.warm_start;
  if (!soft_guess_states(soft, task->source, warm ? task->out->dual : NULL)) {
    return 0;
  }
  for (int round = 0; round < rounds; ++round) {
    if (solve_once(task) != QD_OK) {
      break;
    }
    if (soft_states_hold(soft, task->out->slack)) {
      return measure(soft, task->source, task->options.tolerance, task->out, task->info);
    }
    task->options.warm_start = 1;
  }
  task->options.warm_start = 0;
  return 0;
}

/* 1 if an exact program's rows could stay what they are, and a polished answer was found. */
static int solve_as_it_is(soft_task *task) {
  soft_program *soft = &task->workspace->soft;
  soft_treat_rows(soft, task->source, 1, 0);
  if (!task->options.polish || !soft_rows_can_stay(soft, &task->source->program) ||
      !soft_springs_hold(soft, task->source)) {
    return 0;
  }
  const qd_status status = solve_once(task);
  task->options.warm_start = 0;
  return status == QD_OK && task->info->polished &&
         measure(soft, task->source, task->options.tolerance, task->out, task->info);
}

/* Far from the ends, rows are springs, part of the cost. Near them, and where that turns out to be
 * wrong, states are put right from solve to solve, by cuts as a rule; but where a force at its end
 * leaves a column without curvature there are no cuts, and rows stay what they are: one path. */
static int solve_exact(soft_task *task) {
  soft_program *soft = &task->workspace->soft;
  const double *dual = task->options.warm_start ? task->out->dual : NULL;
  soft_treat_rows(soft, task->source, 1, 0);
  const int near = soft_expects_ends(soft, &task->source->program, dual);
  return (!near && solve_by_states(task, 1)) || solve_as_it_is(task) ||
         solve_by_states(task, STATE_ROUNDS);
}

/* For derivatives, which come when the views of the matrices are gone. */
static void keep_source(soft_program *soft, const conic_program *source) {
  const sparse_rows *given[3] = {source->Q, source->G, source->C};
  const sparse_rows **own[3] = {&soft->source.Q, &soft->source.G, &soft->source.C};
  soft->source = *source;
  for (int k = 0; k < 3; ++k) {
    if (given[k]) {
      soft->source_rows[k] = *given[k];
      *own[k] = soft->source_rows + k;
    }
  }
}

/* 1 if a barrier's path with the rows as they are has led to an answer, or to a verdict. */
static int solve_on_path(soft_task *task) {
  soft_program *soft = &task->workspace->soft;
  soft_treat_rows(soft, task->source, 1, 0);
  const qd_status status = solve_once(task);
  if (status == QD_OK) {
    return measure(soft, task->source, task->options.tolerance, task->out, task->info);
  }
  task->options.warm_start = 0;
  return status == QD_INFEASIBLE || status == QD_OUT_OF_CAPACITY || status == QD_NOT_FINITE;
}

/* 1 if that has led to an answer or a verdict, or there is no other way. */
static int solve_with_slips(soft_task *task, int far) {
  soft_program *soft = &task->workspace->soft;
  const int any_far = soft_treat_rows(soft, task->source, 0, far);
  const qd_status status = solve_once(task);
  if (status == QD_OK &&
      !measure(soft, task->source, task->options.tolerance, task->out, task->info)) {
    task->info->status = QD_NUMERICAL_TROUBLE;
  }
  task->options.warm_start = 0;
  return task->info->status == QD_OK || !any_far;
}

qd_status conic_solve_soft(qd_cone_workspace *workspace, const qd_cone_options *options,
                           const conic_program *source, const conic_answer *out, qd_cone_info *info,
                           rigid_solver solve) {
  soft_program *soft = &workspace->soft;
  keep_source(soft, source);
  soft->as_it_is = 0;
  soft_task task = {.workspace = workspace,
                    .options = options ? *options : qd_cone_options_default(),
                    .source = source,
                    .out = out,
                    .info = info,
                    .solve = solve};
  conic_clear_info(info);
  info->status = soft_check(soft, source);
  if (info->status != QD_OK) {
    conic_clear_outputs(&source->program, out);
    return info->status;
  }
  const int exact = soft_is_exact(&source->program);
  if (!(exact ? solve_exact(&task) : solve_on_path(&task)) && !solve_with_slips(&task, 0)) {
    solve_with_slips(&task, 1);
  }
  soft->used = 1;
  return info->status;
}
