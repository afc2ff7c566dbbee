/* Bounces that make no energy. Newton's rule says how fast each contact leaves; where several with
 * friction bounce off each other at once, that can take more energy than the impact had (Kane's
 * paradox), and what is wedged gets faster from step to step. */
#ifndef QD_DYNAMICS_BOUNCES_H
#define QD_DYNAMICS_BOUNCES_H

#include "dynamics/step.h"

/* As step_solve. Where contacts would do more work than none and than they do without bounces, or
 * bounces leave no motion that satisfies all rows, the step's coefficients of restitution are
 * multiplied by the largest share found for which that is not so (result->bounce_share). */
qd_status bounces_solve(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                        const qd_step_input *input, const step_columns *kept, int *near_only,
                        qd_step_result *result);

#endif
