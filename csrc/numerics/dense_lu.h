/* LU factors of a small dense matrix. Floor: numerics. */
#ifndef QD_NUMERICS_DENSE_LU_H
#define QD_NUMERICS_DENSE_LU_H

/* Replaces A (n, n), column by column, by its factors. Returns 0 if it is singular or nearly so. */
int dense_lu_factor(double *A, int n, int *pivots);
/* x = A^-1 x, or A'^-1 x */
void dense_lu_solve(const double *factors, int n, const int *pivots, int transposed, double *x);

#endif
