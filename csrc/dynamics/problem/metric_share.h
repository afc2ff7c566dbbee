/* The inverse weight of a row J under MuJoCo's integrator "discrete". The program's metric is A = M
 * + h D + h^2 K, and weights are multiplied by sum_j J_j^2 / A_jj over sum_j J_j^2 / M_jj, in
 * MuJoCo's coordinates, where ball and free joints rotate about the axes of their bodies. J is the
 * normal row of a contact, or the first edge n + mu t_1 of a pyramid. Springs, dampers and
 * actuators that have rows (those of tendons, and actuators with limits) are added to the diagonal.
 */
#ifndef QD_DYNAMICS_METRIC_SHARE_H
#define QD_DYNAMICS_METRIC_SHARE_H

#include "dynamics/problem/mujoco_row.h"
#include "dynamics/problem/problem.h"

/* Computes the entries of these rows on the diagonal, before rows are weighted. */
void metric_share_begin(problem *p);

/* Multiplies the weight of an implicit law by the share of row i of the island's G or C; returns 1
 * if this changes it. */
int metric_share_weigh(mujoco_reference *of, const problem *p, const island *one,
                       const tile_rows *rows, int i);

/* The share of a row along one DOF of a hinge or slide, which is this variable of the island. */
double metric_share_of_dof(const problem *p, const island *one, int variable);

/* The share of a contact whose motion and tiles are in p. */
double metric_share_of_contact(problem *p, const island *one, const qd_contact *contact);

#endif
