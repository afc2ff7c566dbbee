/* Derivatives of an island's cost and rows by q at fixed delta and multipliers. */
#ifndef QD_DYNAMICS_DERIVATIVES_LINEARIZE_ROWS_H
#define QD_DYNAMICS_DERIVATIVES_LINEARIZE_ROWS_H

#include "dynamics/step.h"
#include "dynamics/workspace.h"

/* -d(S_k . W_k)/dq_j due to the motion of the axes, with W_k the contact wrench on all bodies that
 * k carries. */
void add_axis_derivative(const qd_model *model, const kinematics *k, const wrench *forces,
                         sensitivity *s);

/* A row of d_slack. */
double *d_slack_row(const sensitivity *s, const island *one, int row);

void add_cost_derivative(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                         const qd_step_input *input, const island *one, const double *delta);

/* Rows of joints: limits, dry friction, limits of ball joints, rotations. */
void add_joint_row_derivative(const solved_step *solved, const island *one);

void add_constraint_derivative(const qd_model *model, qd_workspace *w,
                               const qd_step_options *options, const island *one,
                               const double *delta);

void add_tendon_derivative(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, const island *one, const double *delta);

/* ---- contact_derivative.c */

/* Gathers the screws of the island's columns in tiles of four; twists of bodies are known. */
void contact_derivative_prepare(const qd_workspace *w, sensitivity *s);
/* Adds one contact to D, and writes its rows of d_slack. */
void contact_derivative_add(const qd_model *model, const qd_workspace *w, sensitivity *s,
                            const island *one, int index, const qd_step_options *o);

/* ---- motion_columns.c */

/* D += d(M a + c)/dq and V += d(M a + c)/dv of the sensitivity, at the motion of the step point. */
void motion_columns_add(const qd_model *model, qd_workspace *w, const qd_step_options *options);

#endif
