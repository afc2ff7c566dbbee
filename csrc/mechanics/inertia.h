/* Mass matrix, gravity, and their derivatives along the configuration. */
#ifndef QD_MECHANICS_INERTIA_H
#define QD_MECHANICS_INERTIA_H

#include "mechanics/kinematics.h"

/* Inertia of a rigid lump about the world origin. */
typedef struct spatial_inertia {
  double mass;
  double moment[3]; /* mass times centre of mass, world */
  double tensor[9]; /* about the world origin, world axes */
} spatial_inertia;

typedef struct inertia {
  spatial_inertia *subtree; /* (nb) body b and everything behind it */
  spatial_inertia *body;    /* (nb) body b alone */
  wrench *momentum;         /* (nb) scratch of the derivatives */
  screw *twist;             /* (nb) scratch of the derivatives */
} inertia;

void inertia_lay_out(inertia *I, const qd_model *model, arena *a);
void inertia_compute(const qd_model *model, const kinematics *k, inertia *I);

/* M (nv, nv) = joint-space mass matrix */
void inertia_mass_matrix(double *M, const qd_model *model, const kinematics *k, const inertia *I);
/* M_dd */
double inertia_diagonal(const qd_model *model, const kinematics *k, const inertia *I, int dof);
/* Gravity wrench on a body alone. */
void inertia_gravity_wrench(wrench *W, const qd_model *model, const inertia *I, int body);
/* tau (nv) = generalised force of gravity */
void inertia_gravity_force(double *tau, const qd_model *model, const kinematics *k,
                           const inertia *I);

/* D (nv, nv) += row_scale_i d(M(q) delta)_i / dq_j for the rows with row_scale_i != 0; delta fixed.
 */
void inertia_add_mass_derivative(double *D, const qd_model *model, const kinematics *k, inertia *I,
                                 const double *row_scale, const double *delta);

/* D (nv, nv) += scale_i d(gravity force)_i / dq_j for the rows with scale_i != 0. */
void inertia_add_gravity_derivative(double *D, const qd_model *model, const kinematics *k,
                                    const inertia *I, const double *row_scale);

#endif
