/* The stages of a step, shared with its derivatives. */
#ifndef QD_DYNAMICS_STEP_H
#define QD_DYNAMICS_STEP_H

#include "dynamics/problem/islands.h"
#include "mechanics/model.h"
#include "qdsim.h"

/* Columns of the requested derivatives. */
typedef struct step_columns {
  int q, u, v;
  int moves; /* 1: of the second-order step */
} step_columns;

/* A step: its inputs, and its results. */
typedef struct step_call {
  const qd_model *model;
  qd_workspace *w;
  const qd_step_options *options;
  const qd_step_input *input;
  const step_columns *kept; /* columns for derivatives of every island's solution; NULL for none */
  qd_step_result *result;
} step_call;

static inline int step_failed(qd_status status) {
  return status != QD_OK && status != QD_OUT_OF_CAPACITY;
}

/* Whether a program is infeasible, or no solution of it was found. */
static inline int step_contradicts(qd_status status, const qd_step_options *options) {
  return status == QD_INFEASIBLE || status == QD_NUMERICAL_TROUBLE ||
         (status == QD_ITERATION_LIMIT && options->iteration_limit >= MEANT_ITERATIONS);
}

/* Whether some motion is unbounded or not unique. */
static inline int step_lets_go(qd_status status) {
  return status == QD_UNBOUNDED || status == QD_NOT_UNIQUE;
}

/* Whether some motion may be unbounded or not unique; methods may also fail if it is nearly so. */
static inline int step_is_vague(qd_status status) {
  return step_lets_go(status) || status == QD_NUMERICAL_TROUBLE || status == QD_ITERATION_LIMIT;
}

/* Resets the result. */
void step_result_reset(qd_step_result *result);

/* Solves the programs of all contacts in the list: the working set grows until no row outside it
 * matters. */
qd_status step_solve_rounds(const step_call *s);

/* qd_step, leaving every stage's result in the workspace. */
qd_status step_compute(const qd_model *model, qd_workspace *workspace,
                       const qd_step_options *options, const qd_step_input *input,
                       const step_columns *kept, qd_step_result *result);

/* ---- attempts.c */

/* A step with checked arguments and known kinematics. reason: why it is tried, for the trace. */
qd_status attempts_solve(const step_call *s, const char *reason);

/* ---- step_options.c */

/* 1 if a step of the model can be taken with these options. */
int options_make_sense(const qd_step_options *o, const qd_model *model);

/* ---- find_contacts.c */

/* Fills the list of contacts, the working set and the places of a warm start; the kinematics are
 * those of q. */
void begin_contacts(const qd_model *model, qd_workspace *workspace, const qd_step_options *options,
                    const qd_step_input *input);

/* ---- infeasibility_report.c */

/* Lists the causes from the multipliers of an infeasible island. */
void culprits_of_contradiction(const qd_workspace *w, const island *one, qd_step_result *result);
/* Lists the bodies that move along a direction (variables of the island) without resistance. */
void culprits_of_motion(const qd_workspace *w, const island *one, const double *direction,
                        qd_step_result *result);

#endif
