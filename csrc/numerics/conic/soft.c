/* Programs whose rows give way: their rigid program is solved, and its answer read back. What comes
 * out is measured in the caller's numbers, compliance and limits included. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/soft.h"
#include "numerics/conic/workspace.h"

#define SOFT_CERTIFIED 1e-6 /* at least: of the numbers that a slack is a sum of */

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

/* out += factor times row i */
static void add_row(const double *dense, const sparse_rows *tiles, int n, int i, double factor,
                    double *out) {
  for (int j = 0; !tiles && j < n; ++j) {
    out[j] += factor * dense[(size_t)i * (size_t)n + (size_t)j];
  }
  for (int k = tiles ? tiles->start[i] : 0; tiles && k < tiles->start[i + 1]; ++k) {
    for (int j = 0; j < 4 && 4 * tiles->tiles[k] + j < n; ++j) {
      out[4 * tiles->tiles[k] + j] += factor * tiles->values[4 * (size_t)k + (size_t)j];
    }
  }
}

static double compliance_eq(const qd_cone_program *program, int i) {
  return program->compliance_eq ? program->compliance_eq[i] : 0.0;
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
  const qd_cone_program *program = &source->program;
  const soft_row *row = soft->row + i;
  double size, dual = guess->dual[i];
  if (row->kind == SOFT_FORCE) {
    return;
  }
  if (row->kind != SOFT_CONE) {
    dual = within(dual, program->lower[i], program->upper[i]);
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
          sqrt(compliance_eq(program, i)) / sqrt(soft->curvature) * guess->dual_eq[i];
    }
  }
}

/* ------------------------------------------------------------ and back */

/* Multiplier of row i; `ray`: of a proof that there is no point, in which no force has a limit. */
static double leave_dual(const soft_program *soft, const qd_cone_program *program, int i, int ray) {
  const soft_row *row = soft->row + i;
  if (row->kind == SOFT_CONE) {
    return ray && row->compliance > 0.0 ? 0.0 : soft->dual[row->row];
  }
  if (ray) {
    if (row->compliance > 0.0 || row->kind == SOFT_FORCE || row->width >= 0.0) {
      return 0.0;
    }
    return row->kind == SOFT_EQUALITY ? soft->dual_eq[row->row] : row->sign * soft->dual[row->row];
  }
  if (row->kind == SOFT_FORCE) {
    return row->base;
  }
  const double own = (row->kind == SOFT_EQUALITY ? soft->dual_eq : soft->dual)[row->row];
  return within(row->base + row->sign * own, program->lower[i], program->upper[i]);
}

static void leave(soft_program *soft, const conic_program *source, int ray,
                  const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  double size;
  memcpy(out->x, soft->x, (size_t)soft->variables * sizeof(double));
  for (int i = 0; i < soft->rows; ++i) {
    const soft_row *row = soft->row + i;
    out->dual[i] = leave_dual(soft, program, i, ray);
    out->slack[i] = row->kind == SOFT_CONE && row->spring < 0
                        ? soft->slack[row->row]
                        : slack_of(source, row, i, out->x, out->dual[i], &size);
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
      found->hold &= error * nearest <= larger(share * size * nearest, share * target);
    }
    found->primal = larger(found->primal, nearest == HUGE_VAL ? error : 0.0);
    return;
  }
  const double room = slack > 0.0 ? above : below;
  error = room > 0.0 ? fabs(slack) : 0.0; /* the force has not reached its limit */
  if (room < HUGE_VAL) {
    found->gap = larger(found->gap, error * room);
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

static soft_errors measure_rows(const soft_program *soft, const conic_program *source, double share,
                                const conic_answer *out) {
  const qd_cone_program *program = &source->program;
  soft_errors found = {0.0, 0.0, 1};
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int is_cone = program->cone_kind[k] == QD_LORENTZ;
    const int dim = is_cone ? program->cone_dim[k] : 1;
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    for (int i = row; i < row + program->cone_dim[k]; i += dim) {
      double size = 0.0, most = 0.0;
      for (int r = i; r < i + dim; ++r) {
        slack_of(source, soft->row + r, r, out->x, out->dual[r], &size);
        most = larger(most, size);
      }
      if (program->cone_kind[k] == QD_INTERVAL) {
        measure_interval(program, i, out->slack[i], out->dual[i], target, most, share, &found);
      } else {
        measure_soft_cone(out->slack + i, out->dual + i, dim, target, most, share, &found);
      }
    }
  }
  return found;
}

/* Residuals as qd_cone_info has them; 1 if rows that give way hold. */
static int measure(soft_program *soft, const conic_program *source, double tolerance,
                   const conic_answer *out, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  const double share = larger(SOFT_CERTIFIED, 10.0 * tolerance);
  double *left = soft->term, size = 0.0;
  soft_errors found = measure_rows(soft, source, share, out);
  info->objective = 0.0;
  for (int j = 0; j < n; ++j) {
    const double Qx = row_times(program->Q, source->Q, n, j, out->x, &size);
    left[j] = Qx + program->b[j];
    info->objective += out->x[j] * (0.5 * Qx + program->b[j]);
  }
  for (int i = 0; i < soft->rows; ++i) {
    add_row(program->G, source->G, n, i, -out->dual[i], left);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    const double moved = compliance_eq(program, i) * out->dual_eq[i];
    size = fabs(program->c[i]) + fabs(moved);
    const double error =
        fabs(row_times(program->C, source->C, n, i, out->x, &size) + program->c[i] + moved);
    add_row(program->C, source->C, n, i, -out->dual_eq[i], left);
    found.primal = larger(found.primal, error);
    found.hold &= soft->spring_eq[i] < 0 || error <= share * size;
  }
  info->primal_residual = found.primal;
  info->dual_residual = max_norm_or_infinity(left, n);
  info->complementarity = found.gap;
  return found.hold && isfinite(info->objective + found.primal + found.gap + info->dual_residual);
}

/* ------------------------------------------------------------ the solve */

qd_status conic_solve_soft(qd_cone_workspace *workspace, const qd_cone_options *options,
                           const conic_program *source, const conic_answer *out, qd_cone_info *info,
                           rigid_solver solve) {
  soft_program *soft = &workspace->soft;
  const qd_cone_options o = options ? *options : qd_cone_options_default();
  conic_clear_info(info);
  info->status = soft_check(soft, source);
  if (info->status == QD_OK && !soft_write(soft, source)) {
    info->status = QD_OUT_OF_CAPACITY;
  }
  if (info->status != QD_OK) {
    conic_clear_outputs(&source->program, out);
    return info->status;
  }
  if (o.warm_start) {
    enter(soft, source, out);
  }
  const conic_answer found = {soft->x, soft->slack, soft->dual, soft->dual_eq};
  qd_status status = solve(workspace, &o, &soft->rigid, &found, info);
  soft->used = 1;
  leave(soft, source, status == QD_INFEASIBLE, out);
  if (status == QD_OK && !measure(soft, source, o.tolerance, out, info)) {
    status = QD_NUMERICAL_TROUBLE;
  }
  return info->status = status;
}
