/* Elimination of a cone program's equalities: x = x_0 + Z y, with y the variables of a program
 * without them. */
#ifndef QD_NUMERICS_CONIC_EQUALITIES_H
#define QD_NUMERICS_CONIC_EQUALITIES_H

#include "numerics/dense_qr.h"
#include "qdsim/solvers.h"

/* A program on the points that satisfy its equalities, and the way back. Columns are scaled by D
 * and rows of C to norm one (S). With H, the orthogonal factor of the pivoted QR factorisation of
 * (SCD)' (LAPACK),
 *
 *     x = D H (y_1, y_2),   R_11' y_1 = -Sc,   y_2 the variables of the smaller program,
 *     R_11 S^-1 dual_eq = (H'D (Qx + b - G'dual))_1. */
typedef struct equality_space {
  int variables, equalities;
  dense_qr qr;          /* of (SCD)'; its rank is the number of independent rows */
  double *row_scale;    /* (equalities) */
  double *offset;       /* (equalities) y_1 */
  double *column_scale; /* (variables) D */
  double *work;         /* (variables) */
  double *Q, *G, *b, *g, *y;
} equality_space;

void equality_space_lay_out(equality_space *space, size_t variables, size_t rows, size_t equalities,
                            arena *a);
/* Factors C; space->column_scale must be set. Returns 0 if no point satisfies the equalities: then
 * dual_eq (equalities) is a certificate. */
int equality_space_find(equality_space *space, const qd_cone_program *program, double *dual_eq);
/* The smaller program, in memory of the space. */
qd_cone_program equality_space_restrict(equality_space *space, const qd_cone_program *program);
/* y of the nearest point of the space to x */
void equality_space_coordinates(equality_space *space, const double *x, double *y);
/* x for the point, or the direction, y. */
void equality_space_point(const equality_space *space, const double *y, int is_direction,
                          double *x);
/* dual_eq that balances Qx + b - G'dual; x NULL: that balances -G'dual alone, for certificates. */
void equality_space_multipliers(equality_space *space, const qd_cone_program *program,
                                const double *x, const double *dual, double *dual_eq);

#endif
