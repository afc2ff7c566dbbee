/* Lemke's method on one scaled problem; lcp.c scales and retries. */
#ifndef QD_NUMERICS_LEMKE_H
#define QD_NUMERICS_LEMKE_H

#include "base/arena.h"

/* Sweeps that scale the largest entry of every row and column to one. */
#define SCALING_SWEEPS 6

typedef enum lemke_end {
  LEMKE_SOLVED,
  LEMKE_ON_RAY,   /* z holds the direction of the ray */
  LEMKE_AT_LIMIT, /* of pivots */
  LEMKE_STOPPED,  /* by the caller */
  LEMKE_IN_TROUBLE
} lemke_end;

/* w - M z - cover z0 = q: variables are w (0 .. n - 1), z (n .. 2n - 1) and z0 (2n). */
typedef struct lemke {
  int n;
  const double *M, *q; /* scaled, row-major */
  double *cover;       /* (n) > 0 */
  int *basic;          /* (n) the basic variable of each row */
  double *inverse;     /* (n, n) of the basis, row-major */
  double *value;       /* (n) of the basic variables */
  double *column;      /* (n) column of the entering variable in the basis */
  double *z, *scratch; /* (n) */
  int *pivots_of_lu;   /* (n) */
  int *tied;           /* (n) rows that tie for the smallest ratio */
  int pivots, refactorizations, since_factored;
  int (*stop)(void *context); /* NULL: no callback */
  void *stop_context;
} lemke;

void lemke_lay_out(lemke *work, size_t n, arena *a);
/* Starts from the basis w with work->cover. At most `pivot_limit` pivots; recomputes the inverse
 * after every `refactor_after` of them. */
lemke_end lemke_run(lemke *work, int pivot_limit, int refactor_after);

#endif
