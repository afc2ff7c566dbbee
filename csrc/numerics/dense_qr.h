/* QR factors of a dense matrix with column pivoting: A P = Q R, of any rank. Floor: numerics. */
#ifndef QD_NUMERICS_DENSE_QR_H
#define QD_NUMERICS_DENSE_QR_H

#include "base/arena.h"

typedef struct dense_qr {
  int rows, columns, rank;
  double *factor; /* (columns, rows) A by columns; replaced by R, and Q in the form of LAPACK: */
  double *tau;    /* (columns) */
  int *order;     /* (columns) the column of A for each column of R */
  double *scratch;
  int scratch_size;
} dense_qr;

/* Memory for a matrix of this size, and for rotating this many vectors at once. */
void dense_qr_lay_out(dense_qr *qr, size_t rows, size_t columns, size_t vectors, arena *a);
/* Factors qr->factor; diagonal entries of R up to `least` times the first count as zero. */
void dense_qr_factor(dense_qr *qr, int rows, int columns, double least);
/* M = Q'M, or QM; (vectors, rows) */
void dense_qr_rotate(const dense_qr *qr, int back, int vectors, double *M);
/* x = R^-1 x, or R'^-1 x, for the first `rank` rows and columns */
void dense_qr_solve_R(const dense_qr *qr, int transposed, double *x);
/* Sign of the determinant of a square matrix of full rank. */
int dense_qr_sign(const dense_qr *qr);

#endif
