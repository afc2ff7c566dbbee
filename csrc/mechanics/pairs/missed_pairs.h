/* Pairs that are out of range at q and that the step would penetrate. */
#ifndef QD_MECHANICS_MISSED_PAIRS_H
#define QD_MECHANICS_MISSED_PAIRS_H

#include "mechanics/pairs/collision.h"

/* Counts missed pairs (formulation 2, "Which pairs enter"): pairs left out by collision_compute at
 * q that penetrate at q_next, or were passed through on the way; and pairs with clouds and height
 * fields in the list that have points or faces that were not among the nearest and penetrate at
 * q_next, or were passed on the way. With add = 1 their contacts at q are appended, at any
 * distance; then check count against capacity. delta leads from q to q_next; margin: that of
 * collision_compute; next is scratch. */
int missed_pairs_find(collision *c, const qd_model *model, const double *q, const double *delta,
                      const double *mocap, double margin, kinematics *next, const double *q_next,
                      int add);

#endif
