/* A problem into the solver's internal form. */
#ifndef QD_NUMERICS_COULOMB_LOAD_H
#define QD_NUMERICS_COULOMB_LOAD_H

#include "numerics/coulomb/work.h"

/* What a workspace for the problem has to have room for, but the fill; 0 if its sizes make no sense
 * or memory is exhausted. Allocates. */
int coulomb_measure(const qd_coulomb_problem *problem, coulomb_size *size);
/* Reads and checks it; QD_OUT_OF_CAPACITY: work->lu.fill says what the factor wants. *row, *other:
 * where W is not symmetric. */
qd_status coulomb_load(qd_coulomb_workspace *work, const qd_coulomb_problem *problem, int *row,
                       int *other);

#endif
