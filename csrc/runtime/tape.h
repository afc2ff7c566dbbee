/* Steps of one sample with what their derivatives need, for products with vectors later on. */
#ifndef QD_RUNTIME_TAPE_H
#define QD_RUNTIME_TAPE_H

#include "qdsim.h"

/* A step and copies of what it was given. */
typedef struct taped_step {
  qd_workspace *workspace;
  qd_step_input input;
  qd_step_result result;
  double *q, *v, *u, *tau, *wrench, *mocap; /* behind the input */
  double numbers[];
} taped_step;

typedef struct tape {
  const qd_model *model;
  taped_step **steps; /* (count) */
  int64_t count;
  double *cotangent, *by_q;                /* (nv) each, scratch of a pullback */
  double *v_cotangent, *by_v;              /* (nv) each, of the second-order step */
  double *by_u, *away, *change, *moved;    /* (nu), (nv) each, of commands that react */
  double *by_parameter[QD_ARGUMENT_COUNT]; /* of one step, NULL for what is no parameter */
  double numbers[];
} tape;

/* NULL: no memory. */
tape *tape_create(const qd_model *model);
void tape_destroy(tape *t);
/* Room for so many steps; what is on the tape stays. */
qd_status tape_reserve(tape *t, int64_t count);
/* How many steps may be kept where the caller does not say. */
int64_t tape_affordable(tape *t);

#endif
