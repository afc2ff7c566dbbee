/* LAPACKE and CBLAS under one name, with the prefix of the wheel's library or from the system. */
#ifndef QD_NUMERICS_BLAS_H
#define QD_NUMERICS_BLAS_H

#include <cblas.h>
#include <lapacke.h>

#if QD_LAPACK_PREFIXED
#define BLAS_NAME(name) scipy_##name
#else
#define BLAS_NAME(name) name
#endif

#endif
