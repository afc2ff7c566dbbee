/* Soft pairs in the derivatives of a step. Its last program contains their energy to second order,
 * projected to be positive semidefinite, and fixed friction discs. If the programs have converged,
 * all of these change with the displacement. With S the program's response dx to changes of its
 * stationarity and slacks, and E their additional dependence on the displacement, dx = S(theta) + S
 * E dx, so each response is multiplied by the inverse of 1 - S E, and each cotangent by that of its
 * transpose. */
#ifndef QD_DYNAMICS_PRESSURE_DERIVATIVE_H
#define QD_DYNAMICS_PRESSURE_DERIVATIVE_H

#include "dynamics/derivatives/pressure_change.h"
#include "mechanics/dof_matrix.h"

typedef struct pressure_derivative {
  pressure_changes changes;
  int exact;      /* 1: all polygons have derivatives, and the programs have converged */
  double *matrix; /* (nv, nv) factors of each island's 1 - S E */
  int *pivots;    /* (nv) */
  double *vector; /* (nv) scratch */
} pressure_derivative;

void pressure_derivative_lay_out(pressure_derivative *d, const qd_model *model,
                                 int element_capacity, arena *a);
/* Computes the derivatives of a solved step's patches. */
void pressure_derivative_begin(const solved_step *s);
/* Factors 1 - S E of an island whose sensitivities are prepared. Returns 1 if the result is exact.
 */
int pressure_derivative_prepare(const solved_step *s, island *one);
/* Corrects the island's dx (n, columns) from the program's response to that of the step. */
void pressure_derivative_correct(const solved_step *s, const island *one, double *dx, int columns);
/* Corrects cotangents (nv) of delta, such that their pullback through the program is that of the
 * step. */
void pressure_derivative_correct_back(const solved_step *s, double *by_delta);

/* For a program that is solved but has not converged: from its step (nv), the additional
 * displacement to the fixed point if all were linear (Newton's method). Returns 0 if there is none.
 */
int pressure_derivative_jump(const solved_step *s, const double *step, double *jump);

/* Wrenches on bodies (nb), in the form of stationarity. */
void pressure_derivative_forces(wrench *forces, const solved_step *s);
/* Adds the island's pairs to D, and writes rows of d_slack (columns), for its DOFs. */
void pressure_derivative_columns(const solved_step *s, const island *one, const dof_matrix *D,
                                 double *d_slack, int columns);

/* Along a direction (one tangent per argument): adds to d->pose, writes rows with this stride. */
void pressure_derivative_push(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                              double *rows, int stride);
/* Backwards from z and mu: adds to d->pose and d->twist, and to the gradients by moduli, friction,
 * h. */
void pressure_derivative_pull(const solved_step *s, const double *mu, int stride,
                              double *const gradient[QD_ARGUMENT_COUNT]);

#endif
