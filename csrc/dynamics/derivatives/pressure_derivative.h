/* Soft pairs in the derivatives of a step. Its last program has their energy up to second order,
 * cut to be positive, and discs of friction that stand still; where the programs have converged,
 * all of that moves with the displacement. With S the program's answer dx to changes of its
 * stationarity and slacks, and E what the displacement changes besides in these, dx = S(theta) + S
 * E dx, so each answer is multiplied by the inverse of 1 - S E, each cotangent by that of its
 * transpose. Floor: dynamics. */
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
/* Of a solved step: how its patches change. */
void pressure_derivative_begin(const solved_step *s);
/* Of an island whose sensitivities are prepared. Returns 1 if all of it is exact. */
int pressure_derivative_prepare(const solved_step *s, island *one);
/* dx (n, columns) of the island as the program has it -> as it is. */
void pressure_derivative_correct(const solved_step *s, const island *one, double *dx, int columns);
/* Cotangents (nv) of delta -> those whose pullback through the program is right. */
void pressure_derivative_correct_back(const solved_step *s, double *by_delta);

/* Of a program that has been solved but not converged: its step (nv) -> by how much more would lead
 * to where they converge, if all were linear (Newton's method for the fixed point). Returns 0 if
 * there is no answer. */
int pressure_derivative_jump(const solved_step *s, const double *step, double *jump);

/* Wrenches on bodies (nb), as stationarity has them. */
void pressure_derivative_forces(wrench *forces, const solved_step *s);
/* Adds the island's pairs to D, and writes rows of d_slack (columns), for its DOFs. */
void pressure_derivative_columns(const solved_step *s, const island *one, const dof_matrix *D,
                                 double *d_slack, int columns);

/* Along a direction (one each of the arguments): adds to d->pose, writes rows with this stride. */
void pressure_derivative_push(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                              double *rows, int stride);
/* Back from z and mu: adds to d->pose and d->twist, and to the gradients by moduli, friction, h. */
void pressure_derivative_pull(const solved_step *s, const double *mu, int stride,
                              double *const gradient[QD_ARGUMENT_COUNT]);

#endif
