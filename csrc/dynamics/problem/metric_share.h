/* The inverse weight of a row J under MuJoCo's integrator "discrete": the program's metric is A = M
 * + h D + h^2 K, and weights are multiplied by sum_j J_j^2 / A_jj over sum_j J_j^2 / M_jj, in
 * MuJoCo's coordinates, where ball and free joints rotate about the axes of their bodies. For a
 * contact J is its normal row, for a pyramid its first edge, n + mu t_1. Springs, dampers and
 * actuators with rows of their own, those of tendons and those with limits, add to the diagonal.
 * Floor: dynamics. */
#ifndef QD_DYNAMICS_METRIC_SHARE_H
#define QD_DYNAMICS_METRIC_SHARE_H

#include "dynamics/problem/mujoco_row.h"
#include "dynamics/problem/problem.h"

/* Adds these rows to the diagonal, before rows are weighted. */
void metric_share_begin(problem *p, const qd_model *model, const qd_step_options *options,
                        const qd_step_input *input);

/* Multiplies the weight of an implicit law by the share of row i of the island's G or C; 1 if this
 * changes it. */
int metric_share_weigh(mujoco_reference *of, const problem *p, const qd_model *model,
                       const island *one, const tile_rows *rows, int i, const double *q);

/* Of a row along one DOF of a hinge or slide, a variable of the island. */
double metric_share_of_dof(const problem *p, const island *one, int variable);

/* Of a contact, whose motion and tiles are at hand. */
double metric_share_of_contact(problem *p, const qd_model *model, const island *one,
                               const collision *c, const qd_contact *contact, const double *q);

#endif
