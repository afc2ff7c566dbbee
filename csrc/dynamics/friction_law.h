/* The friction law of an island's contacts: its program as it is (the convex law), or a fixed point
 * of programs (Coulomb's law, numerics/coulomb/fixed_point.h); and derivatives under both. */
#ifndef QD_DYNAMICS_FRICTION_LAW_H
#define QD_DYNAMICS_FRICTION_LAW_H

#include "dynamics/recovery.h"
#include "dynamics/workspace.h"

/* Solves the assembled program of the island under the law; the solution is written into the
 * problem. */
qd_status law_solve(problem *p, island *one, const qd_cone_options *cone_options,
                    const island_program *program);
/* Restores the program's offsets after law_solve: Coulomb's law raises them, and the next solve
 * must not use raised ones. */
void law_withdraw(problem *p, island *one, const island_program *program);
/* Softens an island (recovery.h) under the law: its contacts obey Coulomb's law with the violations
 * of their rows as offsets. */
qd_status law_soften(qd_workspace *w, island *one, const qd_cone_options *cone_options,
                     const island_program *program, recovery_how how);
/* Writes the report of the law into the result; NULL: none yet. */
void law_report(const island *one, qd_step_result *result);

/* conic_sensitivity_prepare and _solve of the island's solution. transposed: only
 * d_stationarity = -y is given, and the solution is z, mu and nu (conic.h). */
qd_status law_sensitivity_prepare(problem *p, island *one, int *exact);
void law_sensitivity_solve(problem *p, island *one, int transposed, const conic_change *change);

#endif
