/* A cone program while it is solved: what conic/conic.c tries and conic/solve.c repeats. */
#ifndef QD_NUMERICS_CONIC_TASK_H
#define QD_NUMERICS_CONIC_TASK_H

#include "numerics/conic/workspace.h"

/* What came of a method. */
typedef enum outcome {
  NO_HELP,
  UNPROVEN, /* a set that only its proof is missing of: other guesses are not better */
  NEAR,     /* x, slack and dual solve the program up to the tolerance */
  SOLVED,   /* polished, to rounding, with the set of active rows */
  STOPPED,  /* the caller has seen enough; the iterate is handed out */
  INFEASIBLE,
  UNBOUNDED
} outcome;

/* A program while methods are tried. */
typedef struct conic_task {
  qd_cone_workspace *workspace;
  const qd_cone_options *options;
  const conic_answer *guess; /* NULL: there is none */
  stop_callback *look;       /* NULL: nobody asks */
  int strict;                /* of guesses and cuts, only a strict active set counts */
  int polish;                /* 1: an exact program, whose active set is wanted */
  int units;                 /* the natural ones (0), or others (conic_change_units) */
  int midway;                /* the guess is a point of the path with fewer rows */
  int path_first;            /* an exact program that cuts are not tried on */
  int path_began;            /* iterations before the path */
  const char *scaling;       /* for the trace */
  int again;                 /* no answer has held so far: polishes have to get to rounding */
  outcome so_far;
  qd_status failure; /* what to say if nothing has helped */
  qd_cone_info *info;
} conic_task;

/* All methods that suit, in turn, on the program as it was loaded; what they find stays in the
 * workspace. */
qd_status conic_run_methods(conic_task *task);
/* Of an exact program, a rough point of the path as it is; 0 if there is none. */
int conic_find_roughly(conic_task *task);
/* A point in the caller's numbers. */
void conic_hand_out(const qd_cone_workspace *workspace, const double *x, const double *slack,
                    const double *dual, const conic_answer *out);

#endif
