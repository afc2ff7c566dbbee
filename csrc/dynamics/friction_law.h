/* The friction law of an island's contacts: its program as it is (the convex law), or the fixed
 * point of programs that is Coulomb's (numerics/coulomb/fixed_point.h); and derivatives under
 * either.
 */
#ifndef QD_DYNAMICS_FRICTION_LAW_H
#define QD_DYNAMICS_FRICTION_LAW_H

#include "dynamics/recovery.h"
#include "dynamics/workspace.h"

/* Solves the island's program, as assembled, under the law; its solution goes into the problem. */
qd_status law_solve(problem *p, island *one, const qd_step_options *options,
                    const qd_cone_options *cone_options, const island_program *program);
/* The program's offsets as they were assembled, after law_solve: Coulomb's law raises them, and
 * what is solved next would take them for its own. */
void law_withdraw(problem *p, island *one, const island_program *program);
/* Softens an island (recovery.h) under the law: its contacts obey Coulomb's with what their rows
 * gave way by as offsets. */
qd_status law_soften(qd_workspace *w, island *one, const qd_step_options *options,
                     const qd_cone_options *cone_options, const island_program *program,
                     recovery_how how);
/* What came of it, into the result; NULL: nothing yet. */
void law_report(const island *one, qd_step_result *result);

/* conic_sensitivity_prepare and _solve of the island's solution. transposed: of d_stationarity =
 * -y alone, the z, mu and nu that conic.h tells of. */
qd_status law_sensitivity_prepare(problem *p, island *one, int *exact);
void law_sensitivity_solve(problem *p, island *one, int transposed, const conic_change *change);

#endif
