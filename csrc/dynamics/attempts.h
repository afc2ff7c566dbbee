/* Attempts of a step. Floor: dynamics. */
#ifndef QD_DYNAMICS_ATTEMPTS_H
#define QD_DYNAMICS_ATTEMPTS_H

#include "dynamics/step.h"

/* A step of checked arguments, its kinematics known. reason: why it is tried, for the trace. */
qd_status attempts_solve(const step_call *s, const char *reason);

#endif
