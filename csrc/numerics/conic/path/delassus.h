/* The path's linear systems in the multipliers instead of x: for few rows on many unknowns. */
#ifndef QD_NUMERICS_CONIC_DELASSUS_H
#define QD_NUMERICS_CONIC_DELASSUS_H

#include <stddef.h>

#include "base/arena.h"
#include "numerics/conic/workspace.h"

/* Room for so many numbers over rows and columns, capped: larger programs stay in x. */
void conic_delassus_lay_out(conic_delassus *delassus, size_t slots, size_t columns, arena *a);
/* Where Q's factor stands in H and counted operations say so: images of all rows and the Delassus
 * matrix, and 1. */
int conic_delassus_prepare(qd_cone_workspace *workspace);
/* Factors I + W^-1 D W^-1 for the scaling W^-1. */
void conic_delassus_factor(qd_cone_workspace *workspace, const cone_operator *scaling);
/* With y = Q^-1 r: v <- (I + S Q^-1 S')^-1 (v - S y), and x = y + Q^-1 S'v, which solve
 * (Q + S'S) x = r + S'v of before, v <- v - S x. */
void conic_delassus_solve(qd_cone_workspace *workspace, const cone_operator *scaling,
                          const double *y, double *v, double *x);

#endif
