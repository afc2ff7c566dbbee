/* The stages of a step that its derivatives share. */
#ifndef QD_DYNAMICS_STEP_H
#define QD_DYNAMICS_STEP_H

#include "qdsim.h"

/* qd_step, leaving every stage's result in the workspace. */
qd_status step_compute(const qd_model *model, qd_workspace *workspace,
                       const qd_step_options *options, const qd_step_input *input,
                       qd_step_result *result);

#endif
