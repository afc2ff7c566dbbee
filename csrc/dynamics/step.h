/* The stages of a step that its derivatives share. */
#ifndef QD_DYNAMICS_STEP_H
#define QD_DYNAMICS_STEP_H

#include "qdsim.h"

/* Columns of the derivatives that will be asked for. */
typedef struct step_columns {
  int q, u, v;
  int moves; /* 1: of the second-order step */
} step_columns;

static inline int step_failed(qd_status status) {
  return status != QD_OK && status != QD_OUT_OF_CAPACITY;
}

/* Nothing found yet. */
void step_result_reset(qd_step_result *result);

/* A step of checked arguments, its kinematics known. */
qd_status step_solve(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                     const qd_step_input *input, const step_columns *kept, qd_step_result *result);

/* qd_step, leaving every stage's result in the workspace; kept: also what the derivatives of every
 * island's solution need, NULL for none. */
qd_status step_compute(const qd_model *model, qd_workspace *workspace,
                       const qd_step_options *options, const qd_step_input *input,
                       const step_columns *kept, qd_step_result *result);

#endif
