#include "numerics/coulomb/block_lu.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/min_degree.h"
#include "numerics/vectors.h"

void block_lu_lay_out(block_lu *lu, size_t count, size_t fill, arena *a) {
  const size_t words = bit_words(count);
  lu->count = (int)count;
  lu->three = 0;
  lu->fill_room = (int)fill;
  ARENA_INTS(a, count, &lu->position, &lu->tile, &lu->place);
  ARENA_INTS(a, count + 1, &lu->start, &lu->row_start);
  ARENA_INTS(a, fill + 1, &lu->below, &lu->row_column, &lu->row_entry);
  ARENA_DOUBLES(a, 16 * fill + 16, &lu->lower, &lu->upper);
  lu->inverse = arena_doubles(a, 16 * count);
  lu->vector = arena_doubles(a, 4 * count);
  lu->mask = arena_take(a, (count + 1) * words * sizeof(uint64_t));
}

/* ------------------------------------------------------------ order and pattern */

size_t block_list(block_matrix *A, const uint64_t *mask, size_t room) {
  size_t count = 0;
  for (int i = 0; i < A->count; ++i) {
    A->row_start[i] = (int)count;
    for (size_t w = 0; w < bit_words((size_t)A->count); ++w, ++mask) {
      for (uint64_t left = *mask; left; left &= left - 1, ++count) {
        if (count < room) {
          A->column[count] = (int)w * WORD_BITS + lowest_bit(left);
        }
      }
    }
  }
  A->row_start[A->count] = (int)count;
  return count;
}

static void read_pattern(block_lu *lu, const block_matrix *pattern, size_t words) {
  memset(lu->mask, 0, (size_t)lu->count * words * sizeof(uint64_t));
  for (int i = 0; i < lu->count; ++i) {
    for (int e = pattern->row_start[i]; e < pattern->row_start[i + 1]; ++e) {
      if (pattern->column[e] != i) {
        note_entry(lu->mask, words, i, pattern->column[e]);
      }
    }
  }
}

/* Appends the tiles of a row of bits to lu->below. */
static void note_below(block_lu *lu, const uint64_t *row, size_t words) {
  for (size_t w = 0; w < words; ++w) {
    for (uint64_t left = row[w]; left; left &= left - 1, ++lu->fill) {
      if (lu->fill < lu->fill_room) {
        lu->below[lu->fill] = (int)w * WORD_BITS + lowest_bit(left);
      }
    }
  }
}

static void sort_positions(int *values, int count) {
  for (int i = 1; i < count; ++i) {
    const int value = values[i];
    int at = i;
    for (; at > 0 && values[at - 1] > value; --at) {
      values[at] = values[at - 1];
    }
    values[at] = value;
  }
}

static void find_rows(block_lu *lu) {
  memset(lu->row_start, 0, ((size_t)lu->count + 1) * sizeof(int));
  for (int e = 0; e < lu->fill; ++e) {
    ++lu->row_start[lu->below[e] + 1];
  }
  for (int j = 0; j < lu->count; ++j) {
    lu->row_start[j + 1] += lu->row_start[j];
    lu->place[j] = lu->row_start[j];
  }
  for (int k = 0; k < lu->count; ++k) {
    for (int e = lu->start[k]; e < lu->start[k + 1]; ++e) {
      const int at = lu->place[lu->below[e]]++;
      lu->row_column[at] = k;
      lu->row_entry[at] = e;
    }
  }
}

int block_lu_analyse(block_lu *lu, const block_matrix *pattern) {
  lu->count = pattern->count;
  const size_t words = bit_words((size_t)lu->count);
  lu->fill = 0;
  read_pattern(lu, pattern, words);
  const elimination graph = {lu->count, words, lu->mask, lu->place};
  elimination_begin(&graph);
  for (int k = 0; k < lu->count; ++k) {
    const int own = elimination_next(&graph);
    lu->start[k] = lu->fill;
    lu->position[own] = k;
    lu->tile[k] = own;
    note_below(lu, lu->mask + (size_t)own * words, words);
    elimination_take(&graph, own);
  }
  lu->start[lu->count] = lu->fill;
  if (lu->fill > lu->fill_room) {
    return 0;
  }
  for (int k = 0; k < lu->count; ++k) {
    for (int e = lu->start[k]; e < lu->start[k + 1]; ++e) {
      lu->below[e] = lu->position[lu->below[e]];
    }
    sort_positions(lu->below + lu->start[k], lu->start[k + 1] - lu->start[k]);
  }
  find_rows(lu);
  return 1;
}

/* ------------------------------------------------------------ tiles */

/* C -= A B for tiles of `rows` rows and columns, 3 or 4; both give the same bits where the fourth
 * ones are zero. */
LANES_INLINE void subtract_product(double *C, const double *A, const double *B, int rows) {
  const lanes a0 = LANES_OF(A), a1 = LANES_OF(A + 4), a2 = LANES_OF(A + 8), a3 = LANES_OF(A + 12);
  for (int b = 0; b < 4 * rows; b += 4) {
    lanes last = a2 * B[b + 2];
    if (rows == 4) {
      last += a3 * B[b + 3];
    }
    LANES_AT(C + b) -= (a0 * B[b] + a1 * B[b + 1]) + last;
  }
}

/* y -= A x, as above */
LANES_INLINE void subtract_image(double *y, const double *A, const double *x, int rows) {
  lanes last = LANES_OF(A + 8) * x[2];
  if (rows == 4) {
    last += LANES_OF(A + 12) * x[3];
  }
  LANES_AT(y) -= (LANES_OF(A) * x[0] + LANES_OF(A + 4) * x[1]) + last;
}

/* y = A x */
LANES_INLINE void set_image(double *y, const double *A, const double *x) {
  LANES_AT(y) = (LANES_OF(A) * x[0] + LANES_OF(A + 4) * x[1]) +
                (LANES_OF(A + 8) * x[2] + LANES_OF(A + 12) * x[3]);
}

/* Moves the row with the largest pivot to row k, of a tile and its inverse; 1 if rows were
 * exchanged. */
static int exchange_rows(double work[4][8], int k) {
  int best = k;
  for (int a = k + 1; a < 4; ++a) {
    best = fabs(work[a][k]) > fabs(work[best][k]) ? a : best;
  }
  for (int b = 0; b < 8 && best != k; ++b) {
    const double kept = work[k][b];
    work[k][b] = work[best][b];
    work[best][b] = kept;
  }
  return best != k;
}

/* Inverts A in place by Gauss-Jordan elimination with row pivots; notes the weakest pivot and the
 * sign of the determinant. */
static void invert(double *A, double *weakest, int *sign) {
  double work[4][8];
  double size = max_norm(A, 16);
  size = size > 0.0 ? size : 1.0;
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      work[a][b] = A[4 * b + a];
      work[a][4 + b] = a == b;
    }
  }
  for (int k = 0; k < 4; ++k) {
    const int exchanged = exchange_rows(work, k);
    double pivot = work[k][k];
    *weakest = smaller(fabs(pivot) / size, *weakest);
    if (!(fabs(pivot) > LAST_DIGITS * size)) {
      pivot = LAST_DIGITS * size;
    }
    *sign *= (pivot < 0.0) == exchanged ? 1 : -1;
    const double per = 1.0 / pivot;
    for (int b = 0; b < 8; ++b) {
      work[k][b] *= per;
    }
    for (int a = 0; a < 4; ++a) {
      const double factor = a == k ? 0.0 : work[a][k];
      for (int b = 0; b < 8; ++b) {
        work[a][b] -= factor * work[k][b];
      }
    }
  }
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) {
      A[4 * b + a] = work[a][4 + b];
    }
  }
}

/* ------------------------------------------------------------ factor */

static int find_entry(const block_lu *lu, int k, int i) {
  return ascending_find(lu->below, lu->start[k], lu->start[k + 1], i);
}

static void assemble(block_lu *lu, const block_matrix *pattern, block_rows *rows_of,
                     const void *context, double *row_scratch) {
  memset(lu->lower, 0, 16 * (size_t)lu->fill * sizeof(double));
  memset(lu->upper, 0, 16 * (size_t)lu->fill * sizeof(double));
  for (int i = 0; i < lu->count; ++i) {
    const int at = lu->position[i];
    const double *tile = row_scratch;
    rows_of(context, i, row_scratch);
    for (int e = pattern->row_start[i]; e < pattern->row_start[i + 1]; ++e, tile += 16) {
      const int other = lu->position[pattern->column[e]];
      double *to = other == at  ? lu->inverse + 16 * (size_t)at
                   : other < at ? lu->lower + 16 * (size_t)find_entry(lu, other, at)
                                : lu->upper + 16 * (size_t)find_entry(lu, at, other);
      memcpy(to, tile, 16 * sizeof(double));
    }
  }
}

/* Subtracts from column and row j the products of column k, whose entry `own` is tile j. */
LANES_INLINE void subtract_column(block_lu *lu, int k, int own, int rows) {
  const double *L_jk = lu->lower + 16 * (size_t)own, *U_kj = lu->upper + 16 * (size_t)own;
  const int end = lu->start[k + 1];
  for (int e = own + 1; e < end; ++e) {
    const size_t at = 16 * (size_t)lu->place[lu->below[e]];
    subtract_product(lu->lower + at, lu->lower + 16 * (size_t)e, U_kj, rows);
    subtract_product(lu->upper + at, L_jk, lu->upper + 16 * (size_t)e, rows);
  }
}

/* Multiplies the tiles of column j by its inverted diagonal. */
LANES_INLINE void divide_column(block_lu *lu, int j, int rows) {
  for (int e = lu->start[j]; e < lu->start[j + 1]; ++e) {
    double *tile = lu->lower + 16 * (size_t)e;
    double product[16] __attribute__((aligned(32))) = {0.0};
    subtract_product(product, tile, lu->inverse + 16 * (size_t)j, rows);
    negate(tile, product, 16);
  }
}

LANES_INLINE void factor_tiles(block_lu *lu, int rows) {
  for (int j = 0; j < lu->count; ++j) {
    double *diagonal = lu->inverse + 16 * (size_t)j;
    for (int e = lu->start[j]; e < lu->start[j + 1]; ++e) {
      lu->place[lu->below[e]] = e;
    }
    for (int r = lu->row_start[j]; r < lu->row_start[j + 1]; ++r) {
      const size_t own = 16 * (size_t)lu->row_entry[r];
      subtract_product(diagonal, lu->lower + own, lu->upper + own, rows);
      subtract_column(lu, lu->row_column[r], lu->row_entry[r], rows);
    }
    invert(diagonal, &lu->weakest, &lu->sign);
    divide_column(lu, j, rows);
  }
}

QD_MULTIVERSION
static void factor_columns(block_lu *lu) {
  lu->weakest = HUGE_VAL;
  lu->sign = 1;
  if (lu->three) {
    factor_tiles(lu, 3);
  } else {
    factor_tiles(lu, 4);
  }
}

void block_lu_factor(block_lu *lu, const block_matrix *pattern, block_rows *rows_of,
                     const void *context, double *row_scratch) {
  assemble(lu, pattern, rows_of, context, row_scratch);
  factor_columns(lu);
}

/* ------------------------------------------------------------ solves */

static void enter(const block_lu *lu, const double *x) {
  for (int k = 0; k < lu->count; ++k) {
    memcpy(lu->vector + 4 * (size_t)k, x + 4 * (size_t)lu->tile[k], 4 * sizeof(double));
  }
}

static void leave(const block_lu *lu, double *x) {
  for (int k = 0; k < lu->count; ++k) {
    memcpy(x + 4 * (size_t)lu->tile[k], lu->vector + 4 * (size_t)k, 4 * sizeof(double));
  }
}

LANES_INLINE void solve_tiles(const block_lu *lu, int rows) {
  double *y = lu->vector;
  for (int k = 0; k < lu->count; ++k) {
    for (int e = lu->start[k]; e < lu->start[k + 1]; ++e) {
      subtract_image(y + 4 * (size_t)lu->below[e], lu->lower + 16 * (size_t)e, y + 4 * (size_t)k,
                     rows);
    }
  }
  for (int k = lu->count - 1; k >= 0; --k) {
    double own[4] __attribute__((aligned(32)));
    for (int e = lu->start[k]; e < lu->start[k + 1]; ++e) {
      subtract_image(y + 4 * (size_t)k, lu->upper + 16 * (size_t)e, y + 4 * (size_t)lu->below[e],
                     rows);
    }
    set_image(own, lu->inverse + 16 * (size_t)k, y + 4 * (size_t)k);
    memcpy(y + 4 * (size_t)k, own, sizeof own);
  }
}

QD_MULTIVERSION
void block_lu_solve(const block_lu *lu, double *x) {
  enter(lu, x);
  if (lu->three) {
    solve_tiles(lu, 3);
  } else {
    solve_tiles(lu, 4);
  }
  leave(lu, x);
}

QD_MULTIVERSION
void block_matrix_multiply(const block_matrix *A, const double *x, double *y) {
  for (int i = 0; i < A->count; ++i) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int e = A->row_start[i]; e < A->row_start[i + 1]; ++e) {
      const double *tile = A->value + 16 * (size_t)e, *in = x + 4 * (size_t)A->column[e];
      sum += (LANES_OF(tile) * in[0] + LANES_OF(tile + 4) * in[1]) +
             (LANES_OF(tile + 8) * in[2] + LANES_OF(tile + 12) * in[3]);
    }
    LANES_AT(y + 4 * (size_t)i) = sum;
  }
}
