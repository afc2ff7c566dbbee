/* Pairs that are out of range at q but would penetrate in the step. */
#ifndef QD_MECHANICS_MISSED_PAIRS_H
#define QD_MECHANICS_MISSED_PAIRS_H

#include "mechanics/pairs/collision.h"

/* Counts missed pairs (formulation 2, "Which pairs enter"). These are pairs that collision_compute
 * left out at q and that penetrate at q_next or were passed through on the way; and listed pairs
 * with clouds or height fields, some of whose unlisted points or faces penetrate at q_next or were
 * passed through. With add = 1 appends their contacts at q, at any distance; then check count
 * against capacity. delta leads from q to q_next. margin: as for collision_compute. next:
 * scratch. */
int missed_pairs_find(collision *c, const qd_model *model, const double *q, const double *delta,
                      const double *mocap, double margin, kinematics *next, const double *q_next,
                      int add);

#endif
