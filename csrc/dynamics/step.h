/* The stages of a step that its derivatives share. */
#ifndef QD_DYNAMICS_STEP_H
#define QD_DYNAMICS_STEP_H

#include "qdsim.h"

/* Columns of the derivatives that will be asked for. */
typedef struct step_columns {
  int q, u, v;
  int moves; /* 1: of the second-order step */
} step_columns;

/* A step: what it is given, and where it puts what it finds. */
typedef struct step_call {
  const qd_model *model;
  qd_workspace *w;
  const qd_step_options *options;
  const qd_step_input *input;
  const step_columns *kept; /* what derivatives of every island's solution need; NULL for none */
  qd_step_result *result;
} step_call;

static inline int step_failed(qd_status status) {
  return status != QD_OK && status != QD_OUT_OF_CAPACITY;
}

/* A smaller iteration limit is one that the caller means. */
#define RELAX_FROM 50

/* Whether a program has no solution, or none that was found for all that was tried. */
static inline int step_contradicts(qd_status status, const qd_step_options *options) {
  return status == QD_INFEASIBLE || status == QD_NUMERICAL_TROUBLE ||
         (status == QD_ITERATION_LIMIT && options->iteration_limit >= RELAX_FROM);
}

/* Whether something moves without end, or anywhere. */
static inline int step_lets_go(qd_status status) {
  return status == QD_UNBOUNDED || status == QD_NOT_UNIQUE;
}

/* Whether that may be so: where it nearly is, methods fail, too. */
static inline int step_is_vague(qd_status status) {
  return step_lets_go(status) || status == QD_NUMERICAL_TROUBLE || status == QD_ITERATION_LIMIT;
}

/* Nothing found yet. */
void step_result_reset(qd_step_result *result);

/* The programs of all contacts in the list, solved: the working set grows until nothing that is
 * left out matters. */
qd_status step_solve_rounds(const step_call *s);

/* qd_step, leaving every stage's result in the workspace. */
qd_status step_compute(const qd_model *model, qd_workspace *workspace,
                       const qd_step_options *options, const qd_step_input *input,
                       const step_columns *kept, qd_step_result *result);

#endif
