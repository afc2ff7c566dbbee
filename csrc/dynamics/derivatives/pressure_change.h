/* Derivatives of a pair's patch: of its wrenches on both bodies, in the form of a step's
 * stationarity, and of the rows of its friction. */
#ifndef QD_DYNAMICS_PRESSURE_CHANGE_H
#define QD_DYNAMICS_PRESSURE_CHANGE_H

#include "dynamics/derivatives/step_point.h"
#include "geometry/pressure_fields/polygon_change.h"

/* Arguments: motions of the bodies' frames before the step (screws of the first and the second),
 * changes of their twists under the displacement (likewise), logarithms of both moduli, the
 * coefficient of friction, the time step. */
typedef enum pressure_input {
  PRESSURE_BY_MOTION = 0,
  PRESSURE_BY_TWIST = 12,
  PRESSURE_BY_MODULUS = 24,
  PRESSURE_BY_FRICTION = 26,
  PRESSURE_BY_LENGTH = 27,
  PRESSURE_INPUTS
} pressure_input;

/* On the first body: moment about the world's origin, force; on the second body likewise. */
#define PRESSURE_WRENCHES PRESSURE_NUMBERS
#define PRESSURE_ROWS 4 /* of an element, upper bound */

typedef struct pressure_change {
  double by[PRESSURE_WRENCHES * PRESSURE_INPUTS]; /* derivatives at fixed multipliers */
  wrench on[2];                                   /* the wrenches */
} pressure_change;

typedef struct pressure_changes {
  pressure_change *pair; /* (soft pairs) of those in contact */
  double *rows;    /* (elements, PRESSURE_ROWS, PRESSURE_INPUTS) slacks at fixed multipliers, and at
                      fixed displacement except for the changes of twists */
  double *polygon; /* (polygons, POLYGON_NUMBERS, POLYGON_BY) scratch */
} pressure_changes;

void pressure_changes_lay_out(pressure_changes *c, const qd_model *model, int element_capacity,
                              arena *a);
/* Computes one pair in range, at the displacement of the last program, by the inputs first .. end
 * - 1. Returns 0 if there is no derivative. */
int pressure_change_compute(pressure_changes *c, const solved_step *s, int index, int first,
                            int end);

#endif
