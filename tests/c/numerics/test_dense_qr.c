/* QR factors with pivots: A x = b and A'x = b where A has full rank, the sign of its determinant,
 * and the rank and least remainder where it has not. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "numerics/dense_qr.h"
#include "numerics/vectors.h"

#define MOST 12

static uint64_t seed = 1;

/* A (n, n) column by column: random, or with columns from `rank` on sums of those before. */
static void fill(double *A, int n, int rank) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      A[j * n + i] = j < rank ? next_random(&seed) : 0.0;
    }
    for (int k = 0; k < rank && j >= rank; ++k) {
      add_scaled(A + j * n, next_random(&seed), A + k * n, n);
    }
  }
}

/* y = A x, or A'x */
static void multiply(const double *A, int n, int transposed, const double *x, double *y) {
  memset(y, 0, MOST * sizeof(double));
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      y[transposed ? j : i] += A[j * n + i] * x[transposed ? i : j];
    }
  }
}

/* By elimination with row pivots; A is overwritten. */
static double determinant(double *A, int n) {
  double product = 1.0;
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i) {
      best = fabs(A[k * n + i]) > fabs(A[k * n + best]) ? i : best;
    }
    for (int j = 0; j < n; ++j) {
      const double kept = A[j * n + k];
      A[j * n + k] = A[j * n + best];
      A[j * n + best] = kept;
    }
    product *= best == k ? A[k * n + k] : -A[k * n + k];
    for (int i = k + 1; i < n; ++i) {
      const double factor = A[k * n + i] / A[k * n + k];
      for (int j = k; j < n; ++j) {
        A[j * n + i] -= factor * A[j * n + k];
      }
    }
  }
  return product;
}

/* x = some solution of A x = b, or A'x = b */
static void solve(const dense_qr *qr, int transposed, const double *b, double *x) {
  double y[MOST] = {0.0};
  for (int i = 0; i < qr->columns; ++i) {
    y[i] = b[transposed ? qr->order[i] : i];
  }
  if (!transposed) {
    dense_qr_rotate(qr, 0, 1, y);
  }
  memset(y + qr->rank, 0, (size_t)(qr->columns - qr->rank) * sizeof(double));
  dense_qr_solve_R(qr, transposed, y);
  if (transposed) {
    dense_qr_rotate(qr, 1, 1, y);
  }
  for (int i = 0; i < qr->columns; ++i) {
    x[transposed ? i : qr->order[i]] = y[i];
  }
}

static void test_one(dense_qr *qr, int n, int rank) {
  double A[MOST * MOST], wanted[MOST], b[MOST], x[MOST], back[MOST];
  fill(A, n, rank);
  memcpy(qr->factor, A, (size_t)(n * n) * sizeof(double));
  dense_qr_factor(qr, n, n, 1e-10);
  CHECK(qr->rank == rank);
  for (int transposed = 0; transposed < 2; ++transposed) {
    for (int i = 0; i < n; ++i) {
      wanted[i] = next_random(&seed);
    }
    multiply(A, n, transposed, wanted, b); /* has a solution */
    solve(qr, transposed, b, x);
    multiply(A, n, transposed, x, back);
    for (int i = 0; i < n; ++i) {
      CHECK_NEAR(back[i], b[i], 1e-9);
    }
  }
  if (rank == n) {
    CHECK((dense_qr_sign(qr) > 0) == (determinant(A, n) > 0.0));
  }
}

int main(void) {
  dense_qr qr;
  arena count = {NULL, 0};
  dense_qr_lay_out(&qr, MOST, MOST, MOST, &count);
  void *memory = aligned_alloc(ARENA_ALIGNMENT, count.offset);
  arena take = {memory, 0};
  dense_qr_lay_out(&qr, MOST, MOST, MOST, &take);
  dense_qr_factor(&qr, 0, 0, 1e-10);
  CHECK(qr.rank == 0);
  for (int round = 0; round < 40; ++round) {
    for (int n = 1; n <= MOST; ++n) {
      test_one(&qr, n, n);
      test_one(&qr, n, round % n + (round % n == 0));
    }
  }
  free(memory);
  return check_report();
}
