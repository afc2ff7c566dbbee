/* What both kinds of derivatives of a step begin with (linearize.c, differentiate.c). Floor:
 * dynamics. */
#ifndef QD_DYNAMICS_PREPARE_H
#define QD_DYNAMICS_PREPARE_H

#include "dynamics/derivatives/step_point.h"

/* Factors each island's system at the solution. Fills result->derivative_exact, island.exact,
 * differential.counts and the step's point. */
qd_status derivatives_prepare(const solved_step *s, qd_step_result *result);

#endif
