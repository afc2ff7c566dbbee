/* Derivatives of an island's cost and rows by q at fixed delta and multipliers. */
#ifndef QD_DYNAMICS_DERIVATIVES_LINEARIZE_ROWS_H
#define QD_DYNAMICS_DERIVATIVES_LINEARIZE_ROWS_H

#include "dynamics/step.h"
#include "dynamics/workspace.h"

/* -d(S_k . W_k)/dq_j due to the motion of the axes, with W_k the contact wrench on all bodies that
 * k carries. */
void add_axis_derivative(const solved_step *solved);

/* A row of d_slack. */
double *d_slack_row(const sensitivity *s, const island *one, int row);

/* The cost, and rows of joints and their actuators. */
void add_cost_derivative(const solved_step *solved, const island *one);

void add_constraint_derivative(const solved_step *solved, const island *one);

void add_tendon_derivative(const solved_step *solved, const island *one);

/* ---- contact_derivative.c */

/* Gathers the screws of the island's columns in tiles of four; twists of bodies are known. */
void contact_derivative_prepare(qd_workspace *w);
/* Adds one contact to D, and writes its rows of d_slack. */
void contact_derivative_add(const solved_step *solved, const island *one, int index);

/* ---- motion_columns.c */

/* D += d(M a + c)/dq and V += d(M a + c)/dv of the sensitivity, at the motion of the step point. */
void motion_columns_add(const solved_step *solved);

#endif
