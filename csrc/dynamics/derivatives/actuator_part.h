/* How one actuator enters the derivatives of a step. Floor: dynamics. */
#ifndef QD_DYNAMICS_ACTUATOR_PART_H
#define QD_DYNAMICS_ACTUATOR_PART_H

#include "dynamics/problem/problem.h"
#include "mechanics/actuator.h"

/* What changes its force changes stationarity by -slope or, where it has a row of its own, that row
 * by -slope / K and stationarity by -resistance; a limit that moves changes stationarity by
 * -by_lower or -by_upper. */
typedef struct actuator_part {
  actuator_slopes slope;
  int row;                    /* of the problem's rows; -1: none */
  double per_row;             /* -1 / K, K what of the stiffness is in the row */
  actuator_slopes resistance; /* what is in the cost instead (problem_resist) */
  double by_lower, by_upper;
} actuator_part;

/* Of an actuator of a free DOF, or of a tendon with rows. */
actuator_part actuator_part_of(const problem *p, const qd_model *model,
                               const qd_step_options *options, const qd_step_input *input,
                               const double *delta, int actuator);

#endif
