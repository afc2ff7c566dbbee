/* How the patch of a pair changes: the wrenches that it puts on both bodies, as a step's
 * stationarity has them, and the rows of its friction. Floor: dynamics. */
#ifndef QD_DYNAMICS_PRESSURE_CHANGE_H
#define QD_DYNAMICS_PRESSURE_CHANGE_H

#include "dynamics/derivatives/step_point.h"
#include "geometry/pressure_fields/polygon_change.h"

/* What they depend on: how the bodies' frames move before the step (screws of the first and the
 * second), the changes of their twists under the displacement (likewise), the logarithms of both
 * moduli, the coefficient of friction, the step's length. */
typedef enum pressure_input {
  PRESSURE_BY_MOTION = 0,
  PRESSURE_BY_TWIST = 12,
  PRESSURE_BY_MODULUS = 24,
  PRESSURE_BY_FRICTION = 26,
  PRESSURE_BY_LENGTH = 27,
  PRESSURE_INPUTS
} pressure_input;

/* On the first body: moment about the world's origin, force; the second. */
#define PRESSURE_WRENCHES PRESSURE_NUMBERS
#define PRESSURE_ROWS 4 /* of an element at most */

typedef struct pressure_change {
  double by[PRESSURE_WRENCHES * PRESSURE_INPUTS]; /* at fixed multipliers */
  wrench on[2];                                   /* themselves */
} pressure_change;

typedef struct pressure_changes {
  pressure_change *pair; /* (soft pairs) of those that press */
  double *rows;    /* (elements, PRESSURE_ROWS, PRESSURE_INPUTS) slacks at fixed displacement and
                      multipliers, but for what the twist of the inputs says */
  double *polygon; /* (polygons, POLYGON_NUMBERS, POLYGON_BY) scratch */
} pressure_changes;

void pressure_changes_lay_out(pressure_changes *c, const qd_model *model, int element_capacity,
                              arena *a);
/* Of one pair in range, where the last program was made, by the inputs first .. end - 1. Returns
 * 0 where there is no derivative. */
int pressure_change_compute(pressure_changes *c, const solved_step *s, int index, int first,
                            int end);

#endif
