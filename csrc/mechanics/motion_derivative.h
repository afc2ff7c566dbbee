/* Derivatives of the inertial forces of a motion with respect to configuration and velocity. */
#ifndef QD_MECHANICS_MOTION_DERIVATIVE_H
#define QD_MECHANICS_MOTION_DERIVATIVE_H

#include "mechanics/motion.h"

/* Sums over the mass points of a body, with mass m at x and velocity u: -2 m [x][u], and m u. */
typedef struct turning {
  double moment[9];
  double momentum[3];
} turning;

typedef struct motion_derivative {
  turning *subtree;            /* (nb) */
  screw *by_q, *turned, *by_v; /* (nv) scratch */
} motion_derivative;

void motion_derivative_lay_out(motion_derivative *d, const qd_model *model, arena *a);

/* by_q += d(M a + c)/dq, by_v += d(M a + c)/dv - M / h: generalised forces at fixed v_next = v + h
 * a. m: the motion; forces (nb): the inertial wrenches of subtrees. Both matrices are over the same
 * DOFs, those of whole trees; by_v may be NULL. */
void motion_derivative_add(motion_derivative *d, const dof_matrix *by_q, const dof_matrix *by_v,
                           const qd_model *model, const kinematics *k, const inertia *I,
                           const body_motion *m, const wrench *forces, double h);

#endif
