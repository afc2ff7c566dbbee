/* How the patch of a pair changes: the wrenches that it puts on both bodies, as a step's
 * stationarity has them, and the rows of its friction. Floor: dynamics. */
#ifndef QD_DYNAMICS_SOFT_CHANGE_H
#define QD_DYNAMICS_SOFT_CHANGE_H

#include "dynamics/derivatives/step_point.h"
#include "geometry/fields/polygon_change.h"

/* What they depend on: how the bodies' frames move before the step (screws of the first and the
 * second), the changes of their twists under the displacement (likewise), the logarithms of both
 * moduli, the coefficient of friction, the step's length. */
typedef enum soft_input {
  SOFT_BY_MOTION = 0,
  SOFT_BY_TWIST = 12,
  SOFT_BY_MODULUS = 24,
  SOFT_BY_FRICTION = 26,
  SOFT_BY_LENGTH = 27,
  SOFT_INPUTS
} soft_input;

#define SOFT_WRENCHES                                                                              \
  12                /* on the first body: moment about the world's origin, force; the second       \
                     */
#define SOFT_ROWS 4 /* of an element at most */

typedef struct soft_change {
  double by[SOFT_WRENCHES * SOFT_INPUTS]; /* at fixed multipliers */
  wrench on[2];                           /* themselves */
} soft_change;

typedef struct soft_changes {
  soft_change *pair; /* (soft pairs) of those that press */
  double *rows;      /* (elements, SOFT_ROWS, SOFT_INPUTS) slacks at fixed displacement and
                        multipliers, but for what the twist of the inputs says */
  double *polygon;   /* (polygons, POLYGON_NUMBERS, POLYGON_BY) scratch */
} soft_changes;

void soft_changes_lay_out(soft_changes *c, const qd_model *model, int element_capacity, arena *a);
/* Of one pair in range, where the last program was made, by the inputs first .. end - 1. Returns
 * 0 where there is no derivative. */
int soft_change_compute(soft_changes *c, const solved_step *s, int index, int first, int end);

#endif
