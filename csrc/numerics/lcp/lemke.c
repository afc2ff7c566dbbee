/* Lemke's complementary pivoting with a lexicographic ratio test.
 *
 * The basis' inverse is stored, so that a pivot is O(n^2). LAPACK recomputes it after a number of
 * pivots and before an answer is accepted, because updates lose the accuracy that distinguishes
 * ties in degenerate problems (redundant contacts). Of the rows that tie in the ratio of values,
 * the lexicographically smallest one in (inverse row) / (column entry) leaves. No basis then
 * recurs, even in degenerate problems (Eaves 1971; Cottle, Pang, Stone, section 4.9). */
#include "numerics/lcp/lemke.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/tiles/blas.h"

/* Limit on Newton steps that repair negative values of the final basis. */
#define REPAIRS 12

void lemke_lay_out(lemke *work, size_t n, arena *a) {
  ARENA_DOUBLES(a, n, &work->cover, &work->value, &work->column, &work->z, &work->scratch);
  ARENA_INTS(a, n, &work->basic, &work->pivots_of_lu, &work->tied);
  work->inverse = arena_doubles(a, n * n);
}

/* Column of a variable in (I, -M, -cover). */
static void raw_column(const lemke *work, int variable, double *out) {
  const int n = work->n;
  for (int i = 0; i < n; ++i) {
    out[i] = variable < n       ? (i == variable ? 1.0 : 0.0)
             : variable < 2 * n ? -work->M[(size_t)i * (size_t)n + (size_t)(variable - n)]
                                : -work->cover[i];
  }
}

/* out = inverse in */
static void apply_inverse(const lemke *work, const double *in, double *out) {
  const size_t n = (size_t)work->n;
  for (size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (size_t j = 0; j < n; ++j) {
      sum += work->inverse[i * n + j] * in[j];
    }
    out[i] = sum;
  }
}

/* Recomputes inverse and values; 0 if the basis is singular. */
static int refactor(lemke *work) {
  const int n = work->n;
  for (int k = 0; k < n; ++k) { /* row-major inverse = column-major inverse of the transpose */
    raw_column(work, work->basic[k], work->scratch);
    for (int i = 0; i < n; ++i) {
      work->inverse[(size_t)i * (size_t)n + (size_t)k] = work->scratch[i];
    }
  }
  ++work->refactorizations;
  work->since_factored = 0;
  if (BLAS_NAME(LAPACKE_dgetrf)(LAPACK_COL_MAJOR, n, n, work->inverse, n, work->pivots_of_lu) !=
          0 ||
      BLAS_NAME(LAPACKE_dgetri)(LAPACK_COL_MAJOR, n, work->inverse, n, work->pivots_of_lu) != 0) {
    return 0;
  }
  apply_inverse(work, work->q, work->value);
  return all_finite(work->value, n);
}

/* Negative if row i precedes row k: compares inverse rows / weight, with positive weights. */
static int lexicographic(const lemke *work, int i, double weight_i, int k, double weight_k) {
  const size_t n = (size_t)work->n;
  const double *row_i = work->inverse + (size_t)i * n, *row_k = work->inverse + (size_t)k * n;
  for (size_t j = 0; j < n; ++j) {
    const double a = row_i[j] / weight_i, b = row_k[j] / weight_k;
    if (fabs(a - b) > PIVOTED * larger(1.0, larger(fabs(a), fabs(b)))) {
      return a < b ? -1 : 1;
    }
  }
  return weight_i > weight_k ? -1 : 1; /* equal up to rounding */
}

/* The leaving one of tied rows: z0's if it is among them, else the lexicographically first. */
static int choose_tied(const lemke *work, int count, const double *weight) {
  int best = -1;
  for (int t = 0; t < count; ++t) {
    const int i = work->tied[t];
    if (work->basic[i] == 2 * work->n) {
      return i;
    }
    if (best < 0 || lexicographic(work, i, weight[i], best, weight[best]) < 0) {
      best = i;
    }
  }
  return best;
}

/* The leaving row as the entering variable grows; -1: none, so that the column is a ray. */
static int ratio_test(lemke *work) {
  const double *column = work->column;
  const double zero = CALLERS_ROUNDING * larger(1.0, max_norm(column, work->n));
  double least = HUGE_VAL;
  int count = 0;
  for (int i = 0; i < work->n; ++i) {
    if (column[i] > zero) {
      least = smaller(larger(work->value[i], 0.0) / column[i], least);
    }
  }
  if (!(least < HUGE_VAL)) {
    return -1;
  }
  for (int i = 0; i < work->n; ++i) {
    const double value = larger(work->value[i], 0.0);
    if (column[i] > zero && value - least * column[i] <= PIVOTED * larger(1.0, value)) {
      work->tied[count++] = i;
    }
  }
  return choose_tied(work, count, column);
}

/* The first leaving row, for which z0 covers every negative value. */
static int first_row(lemke *work) {
  double least = HUGE_VAL;
  int count = 0;
  for (int i = 0; i < work->n; ++i) {
    least = smaller(work->value[i] / work->cover[i], least);
  }
  for (int i = 0; i < work->n; ++i) {
    if (work->value[i] - least * work->cover[i] <= PIVOTED * larger(1.0, fabs(work->value[i]))) {
      work->tied[count++] = i;
    }
  }
  return choose_tied(work, count, work->cover);
}

QD_MULTIVERSION
static void eliminate(double *inverse, double *value, const double *column, int n, int row) {
  const size_t size = (size_t)n;
  double *own = inverse + (size_t)row * size;
  const double per = 1.0 / column[row];
  for (size_t j = 0; j < size; ++j) {
    own[j] *= per;
  }
  value[row] *= per;
  for (int i = 0; i < n; ++i) {
    const double factor = column[i];
    if (i == row || factor == 0.0) {
      continue;
    }
    double *other = inverse + (size_t)i * size;
    for (size_t j = 0; j < size; ++j) {
      other[j] -= factor * own[j];
    }
    value[i] -= factor * value[row];
  }
}

/* Replaces the basic variable of row `row` by `entering`, whose column in the basis is known. */
static int pivot(lemke *work, int row, int entering, int refactor_after) {
  eliminate(work->inverse, work->value, work->column, work->n, row);
  work->basic[row] = entering;
  ++work->pivots;
  if (++work->since_factored >= refactor_after) {
    return refactor(work);
  }
  return 1;
}

/* z of the basis, or of the ray along which `entering` grows. */
static void read_z(lemke *work, const double *of, double sign, int entering) {
  const int n = work->n;
  memset(work->z, 0, (size_t)n * sizeof(double));
  for (int k = 0; k < n; ++k) {
    if (work->basic[k] >= n && work->basic[k] < 2 * n) {
      work->z[work->basic[k] - n] = larger(sign * of[k], 0.0);
    }
  }
  if (entering >= n && entering < 2 * n) {
    work->z[entering - n] = 1.0;
  }
}

static int start(lemke *work) {
  const size_t n = (size_t)work->n;
  memset(work->inverse, 0, n * n * sizeof(double));
  for (size_t i = 0; i < n; ++i) {
    work->inverse[i * n + i] = 1.0;
    work->basic[i] = (int)i;
  }
  memcpy(work->value, work->q, n * sizeof(double));
  work->since_factored = 0;
  for (size_t i = 0; i < n; ++i) {
    if (work->q[i] < 0.0) {
      return 0;
    }
  }
  return 1;
}

/* value += inverse (q - basis value) */
static void refine(lemke *work) {
  const int n = work->n;
  memcpy(work->scratch, work->q, (size_t)n * sizeof(double));
  for (int k = 0; k < n; ++k) {
    raw_column(work, work->basic[k], work->column);
    for (int i = 0; i < n; ++i) {
      work->scratch[i] -= work->column[i] * work->value[k];
    }
  }
  apply_inverse(work, work->scratch, work->column);
  for (int i = 0; i < n; ++i) {
    work->value[i] += work->column[i];
  }
}

/* Exchanges clearly negative variables of a complementary basis with the others of their pairs;
 * returns their number. */
static int flip_negative(lemke *work) {
  const double size = larger(1.0, max_norm(work->value, work->n));
  int flipped = 0;
  for (int i = 0; i < work->n; ++i) {
    if (work->value[i] < -WORKED_OUT * size) {
      work->basic[i] += work->basic[i] < work->n ? work->n : -work->n;
      ++flipped;
    }
  }
  return flipped;
}

/* Checks the basis without z0 with a new inverse. Rounding in pivots can leave a few pairs on the
 * wrong side: repairs them by Newton's method on min(z, w). */
static lemke_end finish(lemke *work) {
  for (int k = 0; k < REPAIRS; ++k) {
    if ((k > 0 || work->since_factored > 0) && !refactor(work)) {
      return LEMKE_IN_TROUBLE;
    }
    refine(work);
    if (flip_negative(work) == 0) {
      read_z(work, work->value, 1.0, -1);
      return LEMKE_SOLVED;
    }
  }
  return LEMKE_IN_TROUBLE;
}

lemke_end lemke_run(lemke *work, int pivot_limit, int refactor_after) {
  const int n = work->n, z0 = 2 * n, before = work->pivots;
  if (start(work)) {
    memset(work->z, 0, (size_t)n * sizeof(double));
    return LEMKE_SOLVED;
  }
  int row = first_row(work), entering = z0;
  for (int i = 0; i < n; ++i) {
    work->column[i] = -work->cover[i];
  }
  for (;;) {
    const int leaving = work->basic[row];
    if (!pivot(work, row, entering, refactor_after)) {
      return LEMKE_IN_TROUBLE;
    }
    if (leaving == z0) {
      return finish(work);
    }
    if (work->pivots - before >= pivot_limit) {
      return LEMKE_AT_LIMIT;
    }
    if (work->stop && work->stop(work->stop_context)) {
      return LEMKE_STOPPED;
    }
    entering = leaving < n ? leaving + n : leaving - n;
    raw_column(work, entering, work->scratch);
    apply_inverse(work, work->scratch, work->column);
    row = ratio_test(work);
    if (row < 0 && work->since_factored > 0) { /* confirm rays with a new inverse */
      if (!refactor(work)) {
        return LEMKE_IN_TROUBLE;
      }
      raw_column(work, entering, work->scratch);
      apply_inverse(work, work->scratch, work->column);
      row = ratio_test(work);
    }
    if (row < 0) {
      read_z(work, work->column, -1.0, entering);
      return LEMKE_ON_RAY;
    }
  }
}
