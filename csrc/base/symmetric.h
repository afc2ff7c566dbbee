/* Eigenvalues of small symmetric matrices. */
#ifndef QD_BASE_SYMMETRIC_H
#define QD_BASE_SYMMETRIC_H

#define SYMMETRIC_MOST 12

/* A (n, n) = V diag(values) V' by Jacobi rotations, n <= SYMMETRIC_MOST. The columns of V (n, n)
 * are the eigenvectors. A is overwritten. */
void symmetric_eigen(double *A, double *V, double *values, int n);

#endif
