/* Detailed check of an answer, row by row and column by column. */
#ifndef QD_NUMERICS_CONIC_DETAIL_H
#define QD_NUMERICS_CONIC_DETAIL_H

#include "numerics/conic/workspace.h"

/* 1 if the answer holds: residuals are small relative to their terms, or below `zero` for rows
 * whose scale the caller gave. Fills residuals and the objective. natural: the largest value that
 * the sum of the products can have; NULL: not wanted. */
int detail_holds(certificate_work *work, const conic_program *source, double tolerance, double zero,
                 const cone_point *at, qd_cone_info *info, double *natural);
/* Row errors of an exact answer whose multipliers follow from its slacks, into info. */
void detail_measure_rows(const qd_cone_program *program, const conic_answer *out,
                         qd_cone_info *info);

#endif
