/* Anderson's mixing of the displacements between which soft pairs' programs go: each program
 * answers one, and the last few say how answers change with what they are asked. Floor: dynamics.
 */
#ifndef QD_DYNAMICS_SOFT_MIXING_H
#define QD_DYNAMICS_SOFT_MIXING_H

#include "dynamics/problem/problem.h"

/* A program's step (nv) from a displacement (nv): how both have changed since the last one. */
void soft_mixing_note(soft_contact *s, const qd_model *model, const double *from,
                      const double *step);
/* next (nv), where the step leads -> less what the last programs say that it misses by, island by
 * island. */
void soft_mixing_apply(const problem *p, const qd_model *model, const double *step, double *next);
void soft_mixing_forget(soft_contact *s);

#endif
