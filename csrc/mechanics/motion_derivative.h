/* Derivatives of the inertial forces of a motion with respect to configuration and velocity. */
#ifndef QD_MECHANICS_MOTION_DERIVATIVE_H
#define QD_MECHANICS_MOTION_DERIVATIVE_H

#include "mechanics/motion.h"

/* Sums over points of a lump with mass m at x, moving at u: -2 m [x][u], and m u. */
typedef struct turning {
  double moment[9];
  double momentum[3];
} turning;

typedef struct motion_derivative {
  turning *subtree;            /* (nb) */
  screw *by_q, *turned, *by_v; /* (nv) scratch */
} motion_derivative;

void motion_derivative_lay_out(motion_derivative *d, const qd_model *model, arena *a);

/* by_q += d(M a + c)/dq, by_v += d(M a + c)/dv - M / h: forces at the joints at a fixed v_next = v
 * + h a. m is the motion, forces (nb) the wrenches that it needs on whole subtrees; both matrices
 * are over the same DOFs, those of whole trees; by_v may be NULL. */
void motion_derivative_add(motion_derivative *d, const dof_matrix *by_q, const dof_matrix *by_v,
                           const qd_model *model, const kinematics *k, const inertia *I,
                           const body_motion *m, const wrench *forces, double h);

#endif
