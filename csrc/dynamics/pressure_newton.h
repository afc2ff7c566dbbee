/* Newton's method on the energy of soft pairs and on their friction: a step is one program after
 * the other, each with that energy up to second order and discs of friction of one place, until the
 * loads at its end are as it thought. The next place is the program's end, and beyond that by what
 * derivatives say that the program left out (pressure_derivative.h). */
#ifndef QD_DYNAMICS_PRESSURE_NEWTON_H
#define QD_DYNAMICS_PRESSURE_NEWTON_H

#include "dynamics/workspace.h"

#define PRESSURE_PROGRAMS_MOST 25

/* 1 if the step has soft pairs in range. */
int pressure_newton_begin(qd_workspace *w, const qd_model *model, const double *bristle);
/* Patches at the displacement reached. QD_OUT_OF_CAPACITY if there is no room for their polygons.
 */
qd_status pressure_newton_evaluate(qd_workspace *w, const qd_model *model,
                                   const qd_step_options *o);
/* After a program with the solution delta (nv): 1 if the step ends there, 0 if one more program is
 * needed from the place to which this one has led. refine: one more follows where they have
 * converged, so that the last one is that of its own solution, as derivatives want it. */
int pressure_newton_advance(qd_workspace *w, const qd_model *model, const qd_step_options *o,
                            const double *delta, int refine);
/* bristle: (soft pairs, QD_BRISTLES) out, after the step; NULL: not wanted. */
void pressure_newton_settle(const qd_workspace *w, const qd_model *model, const qd_step_options *o,
                            double *bristle);
/* Contacts behind the list, one for each patch: its wrench, friction included, about its centre.
 * Returns how many. */
int pressure_newton_report(qd_workspace *w, const qd_model *model);

#endif
