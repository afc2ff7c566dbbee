/* Wrenches applied to bodies: a force at the centre of mass and a moment, world axes. */
#ifndef QD_MECHANICS_APPLIED_H
#define QD_MECHANICS_APPLIED_H

#include "mechanics/dof_matrix.h"
#include "mechanics/kinematics.h"

/* com = centre of mass of a body, in the world */
void body_com(double com[3], const qd_model *model, const kinematics *k, int body);

/* W = wrench (6) applied to a body, taken about the world origin */
void applied_wrench(wrench *W, const qd_model *model, const kinematics *k, int body,
                    const double *applied);

/* force (nv) += generalised force of the wrenches `applied` (nb, 6); scratch (nb) */
void applied_add_force(double *force, wrench *scratch, const qd_model *model, const kinematics *k,
                       const double *applied);

/* D -= d (generalised force) / dq due to the motion of the centres of mass; excludes the motion of
 * the joint axes. */
void applied_subtract_derivative(const dof_matrix *D, const qd_model *model, const kinematics *k,
                                 const double *applied);

#endif
