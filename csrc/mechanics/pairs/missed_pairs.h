/* Pairs that were out of range at q and that the step runs into. */
#ifndef QD_MECHANICS_MISSED_PAIRS_H
#define QD_MECHANICS_MISSED_PAIRS_H

#include "mechanics/pairs/collision.h"

/* Looks at the pairs that collision_compute left out at q: how many penetrate at q_next, or were
 * passed through on the way there (formulation 2, "which pairs count"); and at pairs with clouds
 * and height fields that are in the list: how many have points or faces that were not among the
 * nearest and penetrate at q_next, or were entered on the way. With add = 1 their contacts at q are
 * appended, as far away as they are; check count against capacity then. delta leads from q to
 * q_next; margin: that of collision_compute; next is scratch. */
int missed_pairs_find(collision *c, const qd_model *model, const double *q, const double *delta,
                      const double *mocap, double margin, kinematics *next, const double *q_next,
                      int add);

#endif
