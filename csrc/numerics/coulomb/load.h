/* Conversion of a problem to the solver's internal form. */
#ifndef QD_NUMERICS_COULOMB_LOAD_H
#define QD_NUMERICS_COULOMB_LOAD_H

#include "numerics/coulomb/work.h"

/* Sizes that a workspace for the problem needs, except the fill; 0 if the problem's sizes are
 * invalid or memory is exhausted. Allocates. */
int coulomb_measure(const qd_coulomb_problem *problem, coulomb_size *size);
/* Reads and checks the problem. QD_OUT_OF_CAPACITY: work->lu.fill is the fill that the factor
 * needs. *row, *other: where W is not symmetric. */
qd_status coulomb_load(qd_coulomb_workspace *work, const qd_coulomb_problem *problem, int *row,
                       int *other);

#endif
