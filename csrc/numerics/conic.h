/* Cone programs: what the rest of the core needs beside the public qd_cone_* functions. */
#ifndef QD_NUMERICS_CONIC_H
#define QD_NUMERICS_CONIC_H

#include "qdsim.h"

/* A workspace in memory of the caller, aligned as an arena (base/arena.h), of this many bytes. */
size_t conic_workspace_size(int variable_capacity, int row_capacity, int equality_capacity);
qd_cone_workspace *conic_workspace_place(void *memory, int variable_capacity, int row_capacity,
                                         int equality_capacity);
/* 1 if it serves programs of these sizes. */
int conic_workspace_serves(const qd_cone_workspace *workspace, int variable_count, int row_count,
                           int equality_count);

/* Differentiates the solution map of a program that qd_cone_solve has just solved in this workspace
 * with the same program, x, slack and dual (all still unchanged).
 * Smoothed (target_mu > 0): implicit function theorem on the central path, exact to rounding.
 * Exact: on the certified active set if the solve was polished, else the path's own derivative.
 * *exact: 1, or 0 where the path's derivative stands in. */
qd_status conic_sensitivity_prepare(qd_cone_workspace *workspace, const qd_cone_program *program,
                                    const double *x, const double *slack, const double *dual,
                                    const qd_cone_info *info, int *exact);

/* For `count` perturbations at once: given the partial derivatives, at fixed x and multipliers, of
 * the stationarity residual Qx + b - G'dual - C'dual_eq (d_stationarity, (n, count)), of Gx + g
 * (d_slack, (m, count)) and of Cx + c (d_equality, (p, count), NULL if p = 0), writes dx (n,
 * count), and d_dual (m, count) unless NULL. */
void conic_sensitivity_solve(qd_cone_workspace *workspace, int count, const double *d_stationarity,
                             const double *d_slack, const double *d_equality, double *dx,
                             double *d_dual);

#endif
