/* Newton's method on the energy of soft pairs and their friction. A step solves a sequence of
 * programs, each with the energy to second order and the friction discs at one point, until the
 * loads at its solution are as predicted. The next point is the program's solution, extrapolated by
 * the derivatives that the program does not contain (pressure_derivative.h). */
#ifndef QD_DYNAMICS_PRESSURE_NEWTON_H
#define QD_DYNAMICS_PRESSURE_NEWTON_H

#include "dynamics/workspace.h"

#define PRESSURE_PROGRAMS_MOST 25

/* 1 if the step has soft pairs in range. */
int pressure_newton_begin(qd_workspace *w, const qd_model *model, const double *bristle);
/* Evaluates patches at the present displacement. QD_OUT_OF_CAPACITY if there is no memory for their
 * polygons. */
qd_status pressure_newton_evaluate(qd_workspace *w);
/* After a program with the solution delta (nv): 1 if the step ends there, 0 if another program is
 * needed from the new point. refine: after convergence one more program is solved at its own
 * solution, for derivatives. */
int pressure_newton_advance(qd_workspace *w, const double *delta, int refine);
/* bristle: (soft pairs, QD_BRISTLES) out, after the step; NULL: not wanted. */
void pressure_newton_settle(const qd_workspace *w, double *bristle);
/* Appends one contact per patch to the list: its wrench, friction included, about its centre.
 * Returns their number. */
int pressure_newton_report(qd_workspace *w);

#endif
