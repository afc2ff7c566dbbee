/* Programs that contradict themselves, made possible by the least change. Floor: dynamics.
 *
 * With violations s of rows and equalities, weighed as lengths (an angle counts as its arc at the
 * size of the smallest thing in contact, bilateral constraints a hundredth):
 *
 *     first    the s of least |s|^2 for which Gx + g + s in K and Cx + c + s = 0 have a solution x
 *              within bounds (bound_rows.c)
 *     second   the step under these: minimise 1/2 x'Qx + b'x with g + s, c + s in place of g, c
 *
 * The first is a program of compliant rows (conic.h), s = R dual, whose cost is no force but what
 * holds the motion where the pass before ended. The second has rows of little compliance too: its
 * constraints hold each other without room, and what rounding leaves of a contradiction must not
 * count. */
#ifndef QD_DYNAMICS_RECOVERY_H
#define QD_DYNAMICS_RECOVERY_H

#include "dynamics/workspace.h"

typedef enum recovery_how {
  /* Constraints of a loop whose numbers come from a file contradict each other by their last
   * digits: of a planar one all that lead out of the plane (a gradient of 1e-8, a violation of
   * 1e-8). Equalities alone give way; QD_INFEASIBLE where it is by more than 1e-4 of the smallest
   * thing's size. */
  RECOVERY_ROUND,
  /* A program that no method solved, whose rows can all hold, but with no room between them, so
   * that no finite forces may: rows give way by at most 1e-4 of the smallest thing's size;
   * QD_NUMERICAL_TROUBLE where that is not solved either. */
  RECOVERY_NOTHING,
  /* A program for which no solution was found: no row gives way if there is one after all. */
  RECOVERY_ROWS,
  RECOVERY_PROVEN /* one that has none */
} recovery_how;

/* Finds what gives way, and the step within that. The program's rows are as they were when it
 * returns. */
qd_status recovery_solve(qd_workspace *w, island *one, const qd_cone_options *options,
                         const island_program *program, recovery_how how);
/* What softening (whole) or rounding takes beside the island's program. */
void recovery_make_room(island *one, int whole);
/* Marks the contacts of softened islands; how many contacts, limits and rows of constraints gave
 * way by more than the tolerance. */
int recovery_mark(qd_workspace *w, double tolerance);

#endif
