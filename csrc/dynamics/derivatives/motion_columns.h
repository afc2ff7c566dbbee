/* Columns of the second-order step's derivative by q and v: what masses that move already add. */
#ifndef QD_DYNAMICS_MOTION_COLUMNS_H
#define QD_DYNAMICS_MOTION_COLUMNS_H

#include "dynamics/workspace.h"

/* D += d(M a + c)/dq and V += d(M a + c)/dv of the sensitivity, at the motion of the step point. */
void motion_columns_add(const qd_model *model, qd_workspace *w, const qd_step_options *options);

#endif
