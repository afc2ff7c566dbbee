/* Mixed complementarity problems: free variables are eliminated with the equalities by Gauss-Jordan
 * elimination with complete pivoting, which leaves a linear complementarity problem.
 *
 * If the equalities' matrix is rank-deficient (bridges of diodes), a pair exchanges its roles: a
 * remaining equality gives v_i, and row i then gives a remaining free variable in terms of w_i,
 * which takes the place of v_i. If equalities e still remain, their free variables become f = p - s
 * 1 with p, s >= 0. e = 0 becomes e >= 0, complementary to p, and -sum e >= 0, complementary to s,
 * with one unknown more than equalities. If the equalities have a single solution, that point
 * decides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/block.h"
#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/lcp/lemke.h"
#include "qdsim/solvers.h"

#define FREE_SWEEPS 4 /* with six, one published problem only reaches 1.2e-7 */

struct qd_mlcp_workspace {
  int equalities, free_count, n;
  size_t stride;    /* of table: free variables, complementary ones, one */
  double *table;    /* (equalities + n, stride) */
  double *scale;    /* (free) of columns */
  int *row_pivot;   /* (equalities) the free variable that a row gives, -1: none */
  int *column_used; /* (free) 1: a row gives it */
  int *swapped;     /* (n) 1: w_i has the place of v_i */
  int *open_row;    /* remaining equalities and free variables */
  int *open_column;
  double *M, *q, *z, *w; /* of the remaining problem */
};

static void lay_out(void *of, arena *a) {
  qd_mlcp_workspace *work = of;
  const size_t p = (size_t)work->equalities, f = (size_t)work->free_count, n = (size_t)work->n;
  const size_t most = n + (p > f ? p : f) + 1;
  work->stride = f + n + 1;
  work->table = arena_doubles(a, (p + n) * work->stride);
  work->scale = arena_doubles(a, f + 1);
  ARENA_INTS(a, p + 1, &work->row_pivot, &work->open_row);
  ARENA_INTS(a, f + 1, &work->column_used, &work->open_column);
  work->swapped = arena_ints(a, n + 1);
  work->M = arena_doubles(a, most * most);
  ARENA_DOUBLES(a, most, &work->q, &work->z, &work->w);
}

qd_mlcp_workspace *qd_mlcp_workspace_create(int equalities, int free_count, int n) {
  if (equalities < 0 || free_count < 0 || n < 0) {
    return NULL;
  }
  qd_mlcp_workspace first = {.equalities = equalities, .free_count = free_count, .n = n};
  size_t bytes;
  return block_create(&first, sizeof first, lay_out, &bytes);
}

void qd_mlcp_workspace_destroy(qd_mlcp_workspace *workspace) { block_free(workspace); }

/* ------------------------------------------------------------ elimination */

static void read_rows(qd_mlcp_workspace *work, const qd_mlcp_problem *problem) {
  const size_t f = (size_t)work->free_count, n = (size_t)work->n, p = (size_t)work->equalities;
  for (size_t i = 0; i < p + n; ++i) {
    double *row = work->table + i * work->stride;
    const double *of_free = i < p ? problem->A + i * f : problem->D + (i - p) * f;
    const double *of_rest = i < p ? problem->C + i * n : problem->B + (i - p) * n;
    memcpy(row, of_free, f * sizeof(double));
    memcpy(row + f, of_rest, n * sizeof(double));
    row[f + n] = i < p ? problem->a[i] : problem->b[i - p];
  }
}

/* Scales rows of equalities and columns of free variables to size one. */
static void equilibrate(qd_mlcp_workspace *work) {
  const size_t f = (size_t)work->free_count, p = (size_t)work->equalities;
  const size_t rows = p + (size_t)work->n;
  for (size_t j = 0; j < f; ++j) {
    work->scale[j] = 1.0;
  }
  for (int k = 0; k < FREE_SWEEPS; ++k) {
    for (size_t i = 0; i < p; ++i) {
      double *row = work->table + i * work->stride;
      const double most = max_norm(row, (int)f), factor = most > 0.0 ? 1.0 / sqrt(most) : 1.0;
      for (size_t j = 0; j < work->stride; ++j) {
        row[j] *= factor;
      }
    }
    for (size_t j = 0; j < f; ++j) {
      double most = 0.0;
      for (size_t i = 0; i < p; ++i) {
        most = larger(fabs(work->table[i * work->stride + j]), most);
      }
      const double factor = most > 0.0 ? 1.0 / sqrt(most) : 1.0;
      work->scale[j] *= factor;
      for (size_t i = 0; i < rows; ++i) {
        work->table[i * work->stride + j] *= factor;
      }
    }
  }
}

/* The largest entry in remaining rows and columns; 0 if it is rounding. */
static int find_pivot(const qd_mlcp_workspace *work, size_t *row, size_t *column) {
  double most = NEGLIGIBLE;
  int found = 0;
  for (size_t i = 0; i < (size_t)work->equalities; ++i) {
    for (size_t j = 0; work->row_pivot[i] < 0 && j < (size_t)work->free_count; ++j) {
      const double entry = fabs(work->table[i * work->stride + j]);
      if (!work->column_used[j] && entry > most) {
        most = entry;
        *row = i;
        *column = j;
        found = 1;
      }
    }
  }
  return found;
}

/* to += factor from. Results of cancellation become zero: otherwise the scaling of the remaining
 * problem would treat rows of rounding as rows. */
static void add_row(double *to, double factor, const double *from, size_t count) {
  for (size_t j = 0; factor != 0.0 && j < count; ++j) {
    const double more = factor * from[j], sum = to[j] + more;
    to[j] = fabs(sum) > CANCELLED * (fabs(to[j]) + fabs(more)) ? sum : 0.0;
  }
}

static void eliminate(qd_mlcp_workspace *work, size_t row, size_t column) {
  const size_t rows = (size_t)work->equalities + (size_t)work->n;
  double *own = work->table + row * work->stride;
  const double per = 1.0 / own[column];
  for (size_t j = 0; j < work->stride; ++j) {
    own[j] *= per;
  }
  for (size_t i = 0; i < rows; ++i) {
    double *other = work->table + i * work->stride;
    if (i != row) {
      add_row(other, -other[column], own, work->stride);
      other[column] = 0.0;
    }
  }
  work->row_pivot[row] = (int)column;
  work->column_used[column] = 1;
}

/* Equality e gives v_i, and row i then gives the free variable f (see the head of this file). */
static void exchange(qd_mlcp_workspace *work, size_t e, size_t i, size_t f) {
  const size_t rows = (size_t)work->equalities + (size_t)work->n;
  const size_t own = (size_t)work->equalities + i, at = (size_t)work->free_count + i;
  double *equality = work->table + e * work->stride, *pair = work->table + own * work->stride;
  const double per = -1.0 / equality[at];
  for (size_t j = 0; j < work->stride; ++j) {
    equality[j] *= j == at ? 0.0 : per; /* v_i = this */
  }
  for (size_t k = 0; k < rows; ++k) {
    double *row = work->table + k * work->stride;
    const double factor = row[at];
    row[at] = 0.0;
    if (k != e) {
      add_row(row, factor, equality, work->stride);
    }
  }
  const double slope = 1.0 / pair[f];
  for (size_t j = 0; j < work->stride; ++j) { /* f + pair - w_i / slope = 0; v_i moves to row i */
    const double kept = slope * pair[j];
    pair[j] = equality[j];
    equality[j] = kept;
  }
  equality[at] = -slope;
  equality[f] = 1.0;
  for (size_t k = 0; k < rows; ++k) {
    double *row = work->table + k * work->stride;
    if (k != e) {
      add_row(row, -row[f], equality, work->stride);
    }
    row[f] = k == e ? 1.0 : 0.0;
  }
  work->row_pivot[e] = (int)f;
  work->column_used[f] = 1;
  work->swapped[i] ^= 1;
}

/* Finds the remaining equality, pair and free variable with the largest smaller pivot. */
static int find_exchange(const qd_mlcp_workspace *work, size_t *e, size_t *i, size_t *f) {
  const size_t columns = (size_t)work->free_count, p = (size_t)work->equalities;
  double most = NEGLIGIBLE;
  int found = 0;
  for (size_t k = 0; k < p; ++k) {
    for (size_t j = 0; work->row_pivot[k] < 0 && j < (size_t)work->n; ++j) {
      const double first = fabs(work->table[k * work->stride + columns + j]);
      for (size_t c = 0; first > most && c < columns; ++c) {
        const double least = smaller(fabs(work->table[(p + j) * work->stride + c]), first);
        if (!work->column_used[c] && least > most) {
          most = least;
          *e = k;
          *i = j;
          *f = c;
          found = 1;
        }
      }
    }
  }
  return found;
}

static void eliminate_free(qd_mlcp_workspace *work) {
  size_t row = 0, pair = 0, column = 0;
  memset(work->column_used, 0, (size_t)work->free_count * sizeof(int));
  memset(work->swapped, 0, (size_t)work->n * sizeof(int));
  for (int i = 0; i < work->equalities; ++i) {
    work->row_pivot[i] = -1;
  }
  for (;;) {
    if (find_pivot(work, &row, &column)) {
      eliminate(work, row, column);
    } else if (find_exchange(work, &row, &pair, &column)) {
      exchange(work, row, pair, column);
    } else {
      return;
    }
  }
}

static void list_left(qd_mlcp_workspace *work, int *rows, int *columns) {
  *rows = *columns = 0;
  for (int i = 0; i < work->equalities; ++i) {
    if (work->row_pivot[i] < 0) {
      work->open_row[(*rows)++] = i;
    }
  }
  for (int j = 0; j < work->free_count; ++j) {
    if (!work->column_used[j]) {
      work->open_column[(*columns)++] = j;
    }
  }
}

/* ------------------------------------------------------------ the remaining problem */

/* Builds the remaining problem; returns its size. */
static int build(qd_mlcp_workspace *work) {
  int rows, columns;
  list_left(work, &rows, &columns);
  const size_t n = (size_t)work->n, f = (size_t)work->free_count, p = (size_t)work->equalities;
  const size_t more = (size_t)(rows > columns ? rows : columns);
  const size_t size = n + (more > 0 ? more + 1 : 0);
  memset(work->M, 0, size * size * sizeof(double));
  memset(work->q, 0, size * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    const double *row = work->table + (p + i) * work->stride;
    memcpy(work->M + i * size, row + f, n * sizeof(double));
    work->q[i] = row[f + n];
    for (size_t k = 0; k < (size_t)columns; ++k) {
      const double entry = row[work->open_column[k]];
      work->M[i * size + n + k] = entry;
      work->M[i * size + size - 1] -= entry;
    }
  }
  for (size_t k = 0; k < (size_t)rows; ++k) {
    const double *row = work->table + (size_t)work->open_row[k] * work->stride;
    memcpy(work->M + (n + k) * size, row + f, n * sizeof(double));
    work->q[n + k] = row[f + n];
    for (size_t j = 0; j < n; ++j) {
      work->M[(size - 1) * size + j] -= row[f + j];
    }
    work->q[size - 1] -= row[f + n];
  }
  return (int)size;
}

static void read_free(const qd_mlcp_workspace *work, int size, double *u) {
  const size_t n = (size_t)work->n, f = (size_t)work->free_count;
  int open = 0;
  for (size_t j = 0; j < f; ++j) {
    u[j] = work->column_used[j] ? 0.0 : work->z[n + (size_t)open++] - work->z[size - 1];
  }
  for (size_t i = 0; i < (size_t)work->equalities; ++i) {
    const double *row = work->table + i * work->stride;
    if (work->row_pivot[i] < 0) {
      continue;
    }
    double sum = row[f + n];
    for (size_t j = 0; j < n; ++j) {
      sum += row[f + j] * work->z[j];
    }
    for (size_t j = 0; j < f; ++j) {
      sum += work->column_used[j] ? 0.0 : row[j] * u[j];
    }
    u[work->row_pivot[i]] = -sum;
  }
  for (size_t j = 0; j < f; ++j) {
    u[j] *= work->scale[j];
  }
}

/* 1 if the remaining equalities have a single solution, which is then in z. */
static int find_only_point(qd_mlcp_workspace *work) {
  const size_t f = (size_t)work->free_count, n = (size_t)work->n;
  int found = 0;
  for (size_t i = 0; i < (size_t)work->equalities; ++i) {
    double *row = work->table + i * work->stride;
    size_t at = f;
    if (work->row_pivot[i] >= 0) {
      continue;
    }
    for (size_t j = f; j < f + n; ++j) {
      at = fabs(row[j]) > fabs(row[at]) ? j : at;
    }
    if (n == 0 || !(fabs(row[at]) > NEGLIGIBLE)) {
      continue;
    }
    const double per = 1.0 / row[at];
    for (size_t j = 0; j < work->stride; ++j) {
      row[j] *= per;
    }
    for (size_t k = 0; k < (size_t)work->equalities; ++k) {
      if (k != i) {
        double *other = work->table + k * work->stride;
        add_row(other, -other[at], row, work->stride);
        other[at] = 0.0;
      }
    }
    work->open_row[found++] = (int)i;
  }
  for (int k = 0; k < found && found == work->n; ++k) {
    const double *row = work->table + (size_t)work->open_row[k] * work->stride;
    for (size_t j = 0; j < n; ++j) {
      if (row[f + j] == 1.0) {
        work->z[j] = -row[f + n];
      }
    }
  }
  return found > 0 && found == work->n;
}

/* a b, infinite where it underflows, since a vanished product would hide an error. */
static double term_of(double a, double b) {
  return a * b == 0.0 && a != 0.0 && b != 0.0 ? HUGE_VAL : a * b;
}

/* Relative value of a row of the caller's problem at (u, v): the sum over its terms' magnitudes.
 * Free variables count with the size of the largest of them, each in its column's unit. -HUGE_VAL
 * where the terms are out of range. */
static double row_at(const qd_mlcp_workspace *work, const double *of_free, const double *u,
                     const double *of_rest, const double *v, double offset, double *value) {
  const int f = work->free_count, n = work->n;
  double sum = offset, size = fabs(offset), most = 0.0;
  for (int j = 0; j < f; ++j) {
    most = larger(fabs(u[j]) / work->scale[j], most);
  }
  for (int j = 0; j < f; ++j) {
    sum += of_free[j] * u[j];
    size += fabs(term_of(of_free[j], work->scale[j] * most));
  }
  for (int j = 0; j < n; ++j) {
    sum += of_rest[j] * v[j];
    size += fabs(term_of(of_rest[j], v[j]));
  }
  *value = sum;
  return !(size < HUGE_VAL) ? -HUGE_VAL : size > 0.0 ? sum / size : 0.0;
}

/* w, and the largest relative error of all rows. */
static double measure(const qd_mlcp_workspace *work, const qd_mlcp_problem *problem,
                      const double *u, const double *v, double *w) {
  const int f = work->free_count, n = work->n, p = work->equalities;
  const double reach = max_norm(v, n);
  double worst = 0.0, value;
  for (int i = 0; i < p + n; ++i) {
    const size_t at = (size_t)(i < p ? i : i - p);
    const double *of_free = (i < p ? problem->A : problem->D) + at * (size_t)f;
    const double *of_rest = (i < p ? problem->C : problem->B) + at * (size_t)n;
    const double offset = i < p ? problem->a[at] : problem->b[at];
    double error = row_at(work, of_free, u, of_rest, v, offset, &value);
    if (i >= p) {
      w[at] = value;
      error = smaller(error, reach > 0.0 ? v[at] / reach : 0.0);
    }
    worst = fabs(error) <= worst ? worst : fabs(error); /* NaN counts */
  }
  return worst;
}

static int problem_is_finite(const qd_mlcp_workspace *work, const qd_mlcp_problem *problem) {
  const int f = work->free_count, n = work->n, p = work->equalities;
  return all_finite(problem->A, p * f) && all_finite(problem->C, p * n) &&
         all_finite(problem->D, n * f) && all_finite(problem->B, n * n) &&
         all_finite(problem->a, p) && all_finite(problem->b, n);
}

static qd_status solve_left(qd_mlcp_workspace *work, qd_lcp_workspace *lcp,
                            const qd_lcp_options *options, int size, qd_lcp_info *info) {
  if (size == 0) {
    info->residual = 0.0;
    return info->status = QD_OK;
  }
  return qd_lcp_solve(lcp, options, work->M, work->q, work->z, work->w, info);
}

qd_status qd_mlcp_solve(qd_mlcp_workspace *workspace, const qd_lcp_options *options,
                        const qd_mlcp_problem *problem, double *u, double *v, double *w,
                        qd_lcp_info *info) {
  const qd_lcp_options chosen = options ? *options : qd_lcp_options_default();
  memset(info, 0, sizeof *info);
  info->residual = HUGE_VAL;
  memset(u, 0, (size_t)workspace->free_count * sizeof(double));
  memset(v, 0, (size_t)workspace->n * sizeof(double));
  memset(w, 0, (size_t)workspace->n * sizeof(double));
  if (!problem_is_finite(workspace, problem)) {
    return info->status = QD_NOT_FINITE;
  }
  read_rows(workspace, problem);
  equilibrate(workspace);
  eliminate_free(workspace);
  const int size = build(workspace);
  qd_lcp_workspace *lcp = size > 0 ? qd_lcp_workspace_create(size) : NULL;
  if (size > 0 && !lcp) {
    return info->status = QD_OUT_OF_MEMORY;
  }
  solve_left(workspace, lcp, &chosen, size, info);
  qd_lcp_workspace_destroy(lcp);
  int rows, columns;
  list_left(workspace, &rows, &columns);
  if (info->status == QD_STOPPED) {
    return QD_STOPPED;
  }
  const int only_point = info->status != QD_OK && columns == 0 && find_only_point(workspace);
  if (info->status == QD_OK || only_point) {
    for (int i = 0; i < workspace->n; ++i) {
      v[i] = workspace->swapped[i] && !only_point ? workspace->w[i] : workspace->z[i];
    }
    read_free(workspace, size, u);
    info->residual = measure(workspace, problem, u, v, w);
    info->status = info->residual <= chosen.tolerance ? QD_OK
                   : only_point                       ? QD_INFEASIBLE
                                                      : QD_NUMERICAL_TROUBLE;
  }
  return info->status;
}
