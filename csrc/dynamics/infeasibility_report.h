/* What a step failed on, for its message. */
#ifndef QD_DYNAMICS_INFEASIBILITY_REPORT_H
#define QD_DYNAMICS_INFEASIBILITY_REPORT_H

#include "dynamics/workspace.h"

/* From the multipliers of an island that is infeasible. */
void culprits_of_contradiction(const qd_model *model, const qd_workspace *w, const island *one,
                               qd_step_result *result);
/* From a direction (variables of the island) that nothing holds. */
void culprits_of_motion(const qd_model *model, const qd_workspace *w, const island *one,
                        const double *direction, qd_step_result *result);

#endif
