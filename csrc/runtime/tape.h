/* Recorded steps of one sample, with the data for later products of their derivatives with
 * vectors. */
#ifndef QD_RUNTIME_TAPE_H
#define QD_RUNTIME_TAPE_H

#include "qdsim.h"

/* A step and copies of its inputs. */
typedef struct taped_step {
  qd_workspace *workspace;
  qd_step_input input;
  qd_step_result result;
  double *q, *v, *u, *tau, *wrench, *mocap; /* arrays of `input` */
  double numbers[];
} taped_step;

typedef struct tape {
  const qd_model *model;
  taped_step **steps; /* (count) */
  int64_t count;
  double *cotangent, *by_q; /* (nv) each, scratch of a pullback; `cotangent` is also the tangent of
                               a pushforward */
  double *v_cotangent, *by_v; /* (nv) each, the same for velocities of the second-order step */
  double *by_u, *away, *change, *moved; /* scratch of feedback: (nu), and (nv) each */
  double *
      by_parameter[QD_ARGUMENT_COUNT]; /* of one step; NULL for arguments that are not parameters */
  double numbers[];
} tape;

/* NULL if memory is exhausted. */
tape *tape_create(const qd_model *model);
void tape_destroy(tape *t);
/* Makes room for this number of steps; keeps the recorded ones. */
qd_status tape_reserve(tape *t, int64_t count);
/* Default number of steps to keep, from TAPE_BYTES. */
int64_t tape_affordable(tape *t);

#endif
