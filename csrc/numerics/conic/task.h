/* State of one solve, shared by the methods (conic/conic.c) and the certified retries
 * (conic/solve.c). */
#ifndef QD_NUMERICS_CONIC_TASK_H
#define QD_NUMERICS_CONIC_TASK_H

#include "numerics/conic/workspace.h"

/* Result of a method. */
typedef enum outcome {
  NO_HELP,
  UNPROVEN, /* an active set that is probably right but not certified: other guesses would not be
               better */
  NEAR,     /* x, slack and dual solve the program up to the tolerance */
  SOLVED,   /* polished to rounding, with the active set */
  STOPPED,  /* the caller stopped the solve; the iterate is handed out */
  INFEASIBLE,
  UNBOUNDED
} outcome;

/* A solve while methods are tried. */
typedef struct conic_task {
  qd_cone_workspace *workspace;
  const qd_cone_options *options;
  const conic_answer *guess; /* NULL: no guess */
  stop_callback *look;       /* NULL: no callback */
  int strict;                /* 1: guesses and cuts are accepted only with a strict active set */
  int polish;                /* 1: an exact program, for which the active set is wanted */
  int units;           /* 0: natural units; else one more than the choice of conic_change_units */
  int midway;          /* 1: the guess is a point of the path with fewer rows */
  int path_first;      /* 1: an exact program for which cuts are skipped */
  int path_began;      /* iterations before the path */
  const char *scaling; /* name of the scaling, for the trace */
  int again;           /* 1: no answer was certified so far, so polishes must reach rounding */
  outcome so_far;
  qd_status failure; /* status if no method helps */
  qd_cone_info *info;
} conic_task;

/* Tries all suitable methods in turn on the program as loaded; the result stays in the
 * workspace. */
qd_status conic_run_methods(conic_task *task);
/* Approximate point of the path of an exact program; 0 if there is none. */
int conic_find_roughly(conic_task *task);
/* Writes a point in the caller's units and order. */
void conic_hand_out(const qd_cone_workspace *workspace, const double *x, const double *slack,
                    const double *dual, const conic_answer *out);

#endif
