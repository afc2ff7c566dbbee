#include "numerics/dense_qr.h"

#include <math.h>
#include <string.h>

#include "numerics/tiles/blas.h"

void dense_qr_lay_out(dense_qr *qr, size_t rows, size_t columns, size_t vectors, arena *a) {
  qr->factor = arena_doubles(a, rows * columns);
  qr->tau = arena_doubles(a, columns);
  qr->order = arena_ints(a, columns);
  qr->scratch_size = (int)(vectors + 3 * columns) + 1;
  qr->scratch = arena_doubles(a, (size_t)qr->scratch_size);
}

static double diagonal(const dense_qr *qr, int k) {
  return qr->factor[(size_t)k * (size_t)qr->rows + (size_t)k];
}

void dense_qr_factor(dense_qr *qr, int rows, int columns, double least) {
  const int most = rows < columns ? rows : columns;
  qr->rows = rows;
  qr->columns = columns;
  qr->rank = 0;
  if (most == 0) {
    return;
  }
  memset(qr->order, 0, (size_t)columns * sizeof(int)); /* each column may be a pivot */
  BLAS_NAME(LAPACKE_dgeqp3_work)(LAPACK_COL_MAJOR, rows, columns, qr->factor, rows, qr->order,
                                 qr->tau, qr->scratch, qr->scratch_size);
  for (int j = 0; j < columns; ++j) {
    --qr->order[j];
  }
  for (; qr->rank < most; ++qr->rank) {
    if (!(fabs(diagonal(qr, qr->rank)) > least * fabs(diagonal(qr, 0)))) {
      return;
    }
  }
}

void dense_qr_rotate(const dense_qr *qr, int back, int vectors, double *M) {
  BLAS_NAME(LAPACKE_dormqr_work)(LAPACK_COL_MAJOR, 'L', back ? 'N' : 'T', qr->rows, vectors,
                                 qr->rank, qr->factor, qr->rows, qr->tau, M, qr->rows, qr->scratch,
                                 qr->scratch_size);
}

void dense_qr_solve_R(const dense_qr *qr, int transposed, double *x) {
  BLAS_NAME(cblas_dtrsv)
  (CblasColMajor, CblasUpper, transposed ? CblasTrans : CblasNoTrans, CblasNonUnit, qr->rank,
   qr->factor, qr->rows, x, 1);
}

int dense_qr_sign(const dense_qr *qr) {
  int sign = 1;
  for (int k = 0; k < qr->rank; ++k) {
    sign = (diagonal(qr, k) < 0.0) != (qr->tau[k] != 0.0) ? -sign : sign; /* a reflection each */
    for (int j = 0; j < k; ++j) {
      sign = qr->order[j] > qr->order[k] ? -sign : sign;
    }
  }
  return sign;
}
