/* Derivatives of an island's cost and rows by q at fixed delta and multipliers. */
#ifndef QD_DYNAMICS_DERIVATIVES_LINEARIZE_ROWS_H
#define QD_DYNAMICS_DERIVATIVES_LINEARIZE_ROWS_H

#include "dynamics/step.h"
#include "dynamics/workspace.h"

/* -d(S_k . W_k)/dq_j by the motion of the axes, W_k the contact wrench on all that k carries. */
void add_axis_derivative(const qd_model *model, const kinematics *k, const wrench *forces,
                         sensitivity *s);

/* A row of d_slack. */
double *d_slack_row(const sensitivity *s, const island *one, int row);

void add_cost_derivative(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                         const qd_step_input *input, const island *one, const double *delta);

void add_dof_row_derivative(const qd_model *model, const problem *p, const qd_step_options *options,
                            const island *one, const sensitivity *s);

void add_ball_limit_derivative(const problem *p, const island *one, const sensitivity *s,
                               const double *delta);

void add_turn_row_derivative(const qd_model *model, const problem *p,
                             const qd_step_options *options, const island *one,
                             const sensitivity *s, const double *delta);

void add_constraint_derivative(const qd_model *model, qd_workspace *w,
                               const qd_step_options *options, const island *one,
                               const double *delta);

void add_tendon_derivative(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, const island *one, const double *delta);

#endif
