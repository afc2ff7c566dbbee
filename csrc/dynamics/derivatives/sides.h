/* Steps whose slopes may differ from side to side. Floor: dynamics. */
#ifndef QD_DYNAMICS_SIDES_H
#define QD_DYNAMICS_SIDES_H

#include "dynamics/derivatives/step_point.h"

/* island.exact of a factored island of an exact step, where rows that hold positions and rows that
 * resist motion carry one load: 1 only if the steps on either side have one derivative, which the
 * factor then is of. */
qd_status derivatives_settle_sides(const solved_step *s, island *one, double *limit_force);

/* Which contacts' rows derivatives feel. */
void derivatives_choose_contacts(const solved_step *s, const island *one);

#endif
