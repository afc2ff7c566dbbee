#include "numerics/dense_lu.h"

#include <math.h>
#include <stddef.h>

#include "base/rounding.h"
#include "numerics/tiles/blas.h"

int dense_lu_factor(double *A, int n, int *pivots) {
  double least = INFINITY, most = 0.0;
  if (BLAS_NAME(LAPACKE_dgetrf_work)(LAPACK_COL_MAJOR, n, n, A, n, pivots) != 0) {
    return 0;
  }
  for (int i = 0; i < n; ++i) {
    const double pivot = fabs(A[(size_t)i * (size_t)n + (size_t)i]);
    least = fmin(least, pivot);
    most = fmax(most, pivot);
  }
  return least > NEGLIGIBLE * most;
}

void dense_lu_solve(const double *factors, int n, const int *pivots, int transposed, double *x) {
  BLAS_NAME(LAPACKE_dgetrs_work)(LAPACK_COL_MAJOR, transposed ? 'T' : 'N', n, 1, factors, n, pivots,
                                 x, n);
}
