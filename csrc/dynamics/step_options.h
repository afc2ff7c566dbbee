/* Defaults of a step's options, and which of them make sense. */
#ifndef QD_DYNAMICS_STEP_OPTIONS_H
#define QD_DYNAMICS_STEP_OPTIONS_H

#include "mechanics/model.h"
#include "qdsim.h"

/* 1 if a step of the model can be taken with these options. */
int options_make_sense(const qd_step_options *o, const qd_model *model);

#endif
