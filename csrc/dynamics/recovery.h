/* Infeasible programs, made feasible by the least change. With violations s of rows and equalities,
 * weighted as lengths (an angle counts as its arc at the size of the smallest body in contact,
 * bilateral constraints as a hundredth): first, the s with least |s|^2 for which Gx + g + s in K
 * and Cx + c + s = 0 have a solution x within bounds (bound_rows.c); second, the step with these:
 * minimise 1/2 x'Qx + b'x with g + s, c + s in place of g, c. The first is a program with compliant
 * rows (conic.h), s = R dual, whose only cost keeps the motion near the end of the previous pass.
 * The second also has rows with a small compliance: its feasible set has no interior, and rounding
 * errors of a contradiction must have no effect. */
#ifndef QD_DYNAMICS_RECOVERY_H
#define QD_DYNAMICS_RECOVERY_H

#include "dynamics/workspace.h"

typedef enum recovery_how {
  /* Constraints of a loop whose numbers come from a file contradict each other in their last
     digits; in a planar loop, all rows out of the plane (a gradient of 1e-8, a violation of 1e-8).
     Only equalities are violated; QD_INFEASIBLE if by more than 1e-4 of the smallest body's size.
   */
  RECOVERY_ROUND,
  /* A feasible program that no method solved, because its rows leave no room between them and
     forces may be unbounded: rows are violated by at most 1e-4 of the smallest body's size;
     QD_NUMERICAL_TROUBLE if that is not solved either. */
  RECOVERY_NOTHING,
  /* A program for which no solution was found: rows are violated only if necessary. */
  RECOVERY_ROWS,
  RECOVERY_PROVEN /* a program that is proven infeasible */
} recovery_how;

/* Finds the violations and the step with them. The program's rows are restored at the end. */
qd_status recovery_solve(qd_workspace *w, island *one, const qd_cone_options *options,
                         const island_program *program, recovery_how how);
/* Additional sizes of the island's program for softening (whole) or rounding. */
void recovery_make_room(island *one, int whole);
/* Marks the contacts of softened islands; returns how many contacts, limits and rows of constraints
 * are violated by more than the tolerance. */
int recovery_mark(qd_workspace *w, double tolerance);

#endif
