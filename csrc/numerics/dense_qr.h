/* QR factors of a dense matrix, with pivots: A P = Q R, of whatever rank. Floor: numerics. */
#ifndef QD_NUMERICS_DENSE_QR_H
#define QD_NUMERICS_DENSE_QR_H

#include "base/arena.h"

typedef struct dense_qr {
  int rows, columns, rank;
  double *factor; /* (columns, rows) A, column by column, becomes R, and Q as LAPACK keeps it: */
  double *tau;    /* (columns) */
  int *order;     /* (columns) the column of A that one of R is */
  double *scratch;
  int scratch_size;
} dense_qr;

/* Room for a matrix of this size, and for rotating so many vectors at once. */
void dense_qr_lay_out(dense_qr *qr, size_t rows, size_t columns, size_t vectors, arena *a);
/* Factors qr->factor; numbers on R's diagonal of at most `least` times the first are zero. */
void dense_qr_factor(dense_qr *qr, int rows, int columns, double least);
/* M = Q'M, or QM; (vectors, rows) */
void dense_qr_rotate(const dense_qr *qr, int back, int vectors, double *M);
/* x = R^-1 x, or R'^-1 x, of the first `rank` rows and columns. */
void dense_qr_solve_R(const dense_qr *qr, int transposed, double *x);
/* Sign of the determinant of a square matrix of full rank. */
int dense_qr_sign(const dense_qr *qr);

#endif
