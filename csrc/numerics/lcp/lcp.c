/* Linear complementarity problems: scaling, tries of Lemke's method, and certificates in the
 * caller's units. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/lcp/lemke.h"
#include "numerics/tiles/blas.h"
#include "qdsim/solvers.h"

/* Pivots between recomputed inverses, in the first try with each cover; the second try recomputes
 * after every pivot. */
#define REFACTOR_AFTER 40
/* Number of tries, two with each covering vector. Another vector takes another path through the
 * bases; if the matrix belongs to no class with guaranteed termination, one vector may succeed
 * where another fails. */
#define COVERS 8
/* Largest number of unknowns for which all complementary bases are finally tried: bimatrix games
 * end on rays from any positive cover (Cottle, Pang, Stone, example 4.4.23). */
#define ENUMERATED 12
/* Largest accepted z, in units where the largest numbers of M and q are one; beyond it, q is lost
 * in rounding. */
#define FARTHEST 1e11

struct qd_lcp_workspace {
  int n;
  lemke run;
  lemke feasibility;       /* of size 2n */
  double *skew, *skew_q;   /* its matrix and vector */
  double *M, *q;           /* scaled */
  int *row, *column;       /* (n) scales: powers of two */
  double *candidate, *sum; /* (n) */
};

static void lay_out(void *of, arena *a) {
  qd_lcp_workspace *work = of;
  const size_t n = (size_t)work->n;
  lemke_lay_out(&work->run, n, a);
  lemke_lay_out(&work->feasibility, 2 * n, a);
  work->skew = arena_doubles(a, 4 * n * n);
  work->skew_q = arena_doubles(a, 2 * n);
  work->M = arena_doubles(a, n * n);
  ARENA_DOUBLES(a, n, &work->q, &work->candidate, &work->sum);
  ARENA_INTS(a, n, &work->row, &work->column);
}

qd_lcp_workspace *qd_lcp_workspace_create(int n) {
  if (n < 1) {
    return NULL;
  }
  qd_lcp_workspace first = {.n = n};
  size_t bytes;
  return block_create(&first, sizeof first, lay_out, &bytes);
}

void qd_lcp_workspace_destroy(qd_lcp_workspace *workspace) { block_free(workspace); }

qd_lcp_options qd_lcp_options_default(void) {
  const qd_lcp_options options = {.tolerance = 1e-9, .pivot_limit = 0};
  return options;
}

/* ------------------------------------------------------------ scaling */

/* Exponent of zero. */
#define NO_EXPONENT (-100000)

/* e with |x| in [2^(e - 1), 2^e); NO_EXPONENT for zero. */
static int exponent_of(double x) {
  int e = NO_EXPONENT;
  if (x != 0.0) {
    frexp(x, &e);
  }
  return e;
}

/* Exponent of the largest entry of a row or column of the scaled M. */
static int largest_exponent(const qd_lcp_workspace *work, const double *M, int line, int is_row) {
  int most = NO_EXPONENT;
  for (int k = 0; k < work->n; ++k) {
    const int i = is_row ? line : k, j = is_row ? k : line;
    const double entry = M[(size_t)i * (size_t)work->n + (size_t)j];
    const int e = exponent_of(entry) + work->row[i] + work->column[j];
    most = entry != 0.0 && e > most ? e : most;
  }
  return most;
}

/* Scales M and q so that rows, columns and q have size one; complementarity is preserved. Scales
 * are powers of two, so that scaling neither rounds nor overflows where the result is in range. */
static void scale(qd_lcp_workspace *work, const double *M, const double *q) {
  const size_t n = (size_t)work->n;
  memset(work->row, 0, n * sizeof(int));
  memset(work->column, 0, n * sizeof(int));
  for (int k = 0; k < 2 * SCALING_SWEEPS; ++k) {
    const int by_rows = k % 2 == 0;
    int *line = by_rows ? work->row : work->column;
    for (int i = 0; i < work->n; ++i) {
      const int most = largest_exponent(work, M, i, by_rows);
      line[i] -= most == NO_EXPONENT ? 0 : most / 2;
    }
  }
  int most = NO_EXPONENT;
  for (size_t i = 0; i < n; ++i) {
    most = q[i] != 0.0 && exponent_of(q[i]) + work->row[i] > most ? exponent_of(q[i]) + work->row[i]
                                                                  : most;
    for (size_t j = 0; j < n; ++j) {
      work->M[i * n + j] = ldexp(M[i * n + j], work->row[i] + work->column[j]);
    }
  }
  most = most == NO_EXPONENT ? 0 : most;
  for (size_t i = 0; i < n; ++i) {
    work->q[i] = ldexp(q[i], work->row[i] - most);
    work->column[i] += most;
  }
}

/* ------------------------------------------------------------ certificates */

/* A sum of products in units of 2^exponent, that of the largest term, so that it neither overflows
 * nor underflows. */
typedef struct wide_sum {
  double value, size; /* size: sum of the terms' magnitudes */
  int exponent;
} wide_sum;

static void wide_add(wide_sum *sum, double a, double b) {
  int of_a, of_b;
  const double product = frexp(a, &of_a) * frexp(b, &of_b);
  if (product == 0.0) {
    return;
  }
  const int exponent = of_a + of_b;
  if (sum->size == 0.0 || exponent > sum->exponent) {
    sum->value = ldexp(sum->value, sum->exponent - exponent);
    sum->size = ldexp(sum->size, sum->exponent - exponent);
    sum->exponent = exponent;
  }
  const double term = ldexp(product, exponent - sum->exponent);
  sum->value += term;
  sum->size += fabs(term);
}

static double relative(const wide_sum *sum) {
  return sum->size > 0.0 ? sum->value / sum->size : 0.0;
}

/* w = M z + q; returns the largest relative |min(z_i, w_i)|: z relative to its largest entry, each
 * in its column's unit, w relative to the sum of its terms' magnitudes. Infinite where w is not
 * finite. */
static double measure(const qd_lcp_workspace *work, const double *M, const double *q,
                      const double *z, double *w) {
  const int n = work->n;
  double worst = 0.0, reach = 0.0;
  for (int i = 0; i < n; ++i) {
    reach = larger(ldexp(z[i], -work->column[i]), reach);
  }
  for (int i = 0; i < n; ++i) {
    const double *row = M + (size_t)i * (size_t)n;
    wide_sum sum = {0.0, 0.0, 0};
    wide_add(&sum, q[i], 1.0);
    for (int j = 0; j < n; ++j) {
      wide_add(&sum, row[j], z[j]);
    }
    w[i] = ldexp(sum.value, sum.exponent);
    const double own = reach > 0.0 ? ldexp(z[i], -work->column[i]) / reach : 0.0;
    const double error = fabs(smaller(relative(&sum), own));
    worst = error <= worst ? worst : error; /* NaN counts */
    worst = isfinite(w[i]) && isfinite(z[i]) ? worst : HUGE_VAL;
  }
  return worst;
}

/* 1 if u >= 0, M'u <= 0 and q'u < 0: then no z >= 0 satisfies M z + q >= 0. */
static int excludes(const qd_lcp_workspace *work, const double *M, const double *q,
                    const double *u) {
  const size_t n = (size_t)work->n;
  wide_sum product = {0.0, 0.0, 0};
  for (size_t i = 0; i < n; ++i) {
    wide_add(&product, q[i], u[i]);
  }
  if (!(relative(&product) < -WORKED_OUT)) {
    return 0;
  }
  for (size_t j = 0; j < n; ++j) {
    wide_sum sum = {0.0, 0.0, 0};
    for (size_t i = 0; i < n; ++i) {
      wide_add(&sum, M[i * n + j], u[i]);
    }
    if (!(relative(&sum) <= WORKED_OUT)) {
      return 0;
    }
  }
  return 1;
}

/* ------------------------------------------------------------ tries */

/* Covering vector number `which`: ones, then varying numbers (multiples of the golden ratio). */
static void choose_cover(lemke *run, int which) {
  for (int i = 0; i < run->n; ++i) {
    const double turn = 0.6180339887498949 * (double)(i + 1) * (double)which;
    run->cover[i] = 1.0 + 3.0 * (turn - floor(turn));
  }
}

/* Converts the final point of a run to the caller's units; 1 if it is a solution. */
static int is_solution(qd_lcp_workspace *work, const double *M, const double *q, double tolerance,
                       double *z, double *w, qd_lcp_info *info) {
  if (!(max_norm_or_infinity(work->run.z, work->n) <= FARTHEST)) {
    return 0;
  }
  for (int i = 0; i < work->n; ++i) {
    work->candidate[i] = ldexp(work->run.z[i], work->column[i]);
  }
  const double residual = measure(work, M, q, work->candidate, work->sum);
  if (!(residual < info->residual)) {
    return info->residual <= tolerance;
  }
  info->residual = residual;
  memcpy(z, work->candidate, (size_t)work->n * sizeof(double));
  memcpy(w, work->sum, (size_t)work->n * sizeof(double));
  return residual <= tolerance;
}

/* 1 if multipliers of the scaled rows prove infeasibility. Then z holds the multipliers of the
 * caller's rows, scaled so that the largest is in [1/2, 1). */
static int multipliers_exclude(qd_lcp_workspace *work, const double *M, const double *q,
                               const double *multiplier, double *z) {
  int most = NO_EXPONENT;
  for (int i = 0; i < work->n; ++i) {
    const int exponent = exponent_of(multiplier[i]) + work->row[i];
    most = multiplier[i] != 0.0 && exponent > most ? exponent : most;
  }
  for (int i = 0; i < work->n; ++i) {
    work->candidate[i] = ldexp(multiplier[i], work->row[i] - most);
  }
  if (!all_finite(work->candidate, work->n) || !excludes(work, M, q, work->candidate)) {
    return 0;
  }
  memcpy(z, work->candidate, (size_t)work->n * sizeof(double));
  return 1;
}

/* Solves M z + q >= 0, z >= 0 as the optimality conditions of a linear program, whose matrix is
 * skew: Lemke's method ends with a feasible point, or on a ray that proves infeasibility. Returns
 * QD_INFEASIBLE with the certificate in z. */
static qd_status find_proof(qd_lcp_workspace *work, const double *M, const double *q, double *z) {
  const size_t n = (size_t)work->n, twice = 2 * n;
  lemke *run = &work->feasibility;
  memset(work->skew, 0, twice * twice * sizeof(double));
  memset(work->skew_q, 0, twice * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    work->skew_q[n + i] = work->q[i];
    for (size_t j = 0; j < n; ++j) {
      work->skew[(n + i) * twice + j] = work->M[i * n + j];
      work->skew[j * twice + n + i] = -work->M[i * n + j];
    }
  }
  run->n = 2 * work->n;
  run->M = work->skew;
  run->q = work->skew_q;
  choose_cover(run, 0);
  run->stop = work->run.stop;
  run->stop_context = work->run.stop_context;
  const lemke_end end = lemke_run(run, 50 * run->n + 1000, REFACTOR_AFTER);
  const int proven = end == LEMKE_ON_RAY && multipliers_exclude(work, M, q, run->z + n, z);
  return end == LEMKE_STOPPED ? QD_STOPPED : proven ? QD_INFEASIBLE : QD_NUMERICAL_TROUBLE;
}

/* z of the complementary basis whose set bits are z variables; 0 if it is singular. */
static int solve_basis(qd_lcp_workspace *work, unsigned set) {
  const int n = work->n;
  int place[ENUMERATED], count = 0;
  for (int i = 0; i < n; ++i) {
    work->run.z[i] = 0.0;
    if (set >> i & 1U) {
      place[count++] = i;
    }
  }
  for (int b = 0; b < count; ++b) {
    work->run.value[b] = -work->q[place[b]];
    for (int a = 0; a < count; ++a) {
      work->run.inverse[b * count + a] = work->M[place[a] * n + place[b]];
    }
  }
  if (count > 0 && BLAS_NAME(LAPACKE_dgesv)(LAPACK_COL_MAJOR, count, 1, work->run.inverse, count,
                                            work->run.pivots_of_lu, work->run.value, count) != 0) {
    return 0;
  }
  for (int b = 0; b < count; ++b) {
    work->run.z[place[b]] = larger(work->run.value[b], 0.0);
  }
  return 1;
}

/* 1 if one of all complementary bases is a solution. */
static int enumerate(qd_lcp_workspace *work, const qd_lcp_options *options, const double *M,
                     const double *q, double *z, double *w, qd_lcp_info *info) {
  for (unsigned set = 0; work->n <= ENUMERATED && set < 1U << work->n; ++set) {
    if (solve_basis(work, set) && is_solution(work, M, q, options->tolerance, z, w, info)) {
      return 1;
    }
  }
  return 0;
}

static qd_status try_covers(qd_lcp_workspace *work, const qd_lcp_options *options, const double *M,
                            const double *q, double *z, double *w, qd_lcp_info *info) {
  const int limit = options->pivot_limit > 0 ? options->pivot_limit : 50 * work->n + 1000;
  lemke_end end = LEMKE_IN_TROUBLE;
  for (int k = 0; k < COVERS; ++k) {
    choose_cover(&work->run, k / 2);
    end = lemke_run(&work->run, limit, k % 2 == 0 ? REFACTOR_AFTER : 1);
    info->pivots = work->run.pivots;
    info->refactorizations = work->run.refactorizations;
    info->tries = k + 1;
    if (end == LEMKE_SOLVED && is_solution(work, M, q, options->tolerance, z, w, info)) {
      return QD_OK;
    }
    if (end == LEMKE_STOPPED) {
      return QD_STOPPED;
    }
    info->ended_on_ray = end == LEMKE_ON_RAY;
    if (end == LEMKE_ON_RAY && multipliers_exclude(work, M, q, work->run.z, z)) {
      return QD_INFEASIBLE;
    }
    if (options->pivot_limit > 0 && end == LEMKE_AT_LIMIT) {
      break;
    }
  }
  return end == LEMKE_AT_LIMIT ? QD_ITERATION_LIMIT : QD_NUMERICAL_TROUBLE;
}

qd_status qd_lcp_solve(qd_lcp_workspace *workspace, const qd_lcp_options *options, const double *M,
                       const double *q, double *z, double *w, qd_lcp_info *info) {
  const qd_lcp_options chosen = options ? *options : qd_lcp_options_default();
  const int n = workspace->n;
  memset(info, 0, sizeof *info);
  info->residual = HUGE_VAL;
  memset(z, 0, (size_t)n * sizeof(double));
  memset(w, 0, (size_t)n * sizeof(double));
  if (!(chosen.tolerance > 0.0) || chosen.pivot_limit < 0) {
    return info->status = QD_BAD_ARGUMENT;
  }
  for (int i = 0; i <= n; ++i) {
    if (!all_finite(i < n ? M + (size_t)i * (size_t)n : q, n)) {
      return info->status = QD_NOT_FINITE;
    }
  }
  scale(workspace, M, q);
  workspace->run.n = n;
  workspace->run.M = workspace->M;
  workspace->run.q = workspace->q;
  workspace->run.stop = chosen.stop;
  workspace->run.stop_context = chosen.stop_context;
  workspace->run.pivots = workspace->run.refactorizations = 0;
  info->status = try_covers(workspace, &chosen, M, q, z, w, info);
  if (info->status == QD_OK || info->status == QD_INFEASIBLE || info->status == QD_STOPPED ||
      chosen.pivot_limit > 0) {
    return info->status;
  }
  const qd_status proof = find_proof(workspace, M, q, z);
  if (proof != QD_NUMERICAL_TROUBLE) {
    return info->status = proof;
  }
  if (enumerate(workspace, &chosen, M, q, z, w, info)) {
    info->status = QD_OK;
  }
  return info->status;
}
