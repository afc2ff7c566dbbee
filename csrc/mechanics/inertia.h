/* Mass matrix, gravity, and their derivatives with respect to the configuration. */
#ifndef QD_MECHANICS_INERTIA_H
#define QD_MECHANICS_INERTIA_H

#include "mechanics/dof_matrix.h"
#include "mechanics/kinematics.h"

/* Inertia of a rigid body about the world origin. */
typedef struct spatial_inertia {
  double mass;
  double moment[3]; /* mass times centre of mass, world */
  double tensor[9]; /* about the world origin, world axes */
} spatial_inertia;

typedef struct inertia {
  spatial_inertia *subtree;     /* (nb) body b and its descendants */
  spatial_inertia *body;        /* (nb) body b alone */
  spatial_inertia *own;         /* (nb) the share of each subtree that gravity acts on, with gravity
                                   compensation (mass, moment); NULL: none */
  const spatial_inertia *falls; /* (nb) `own`, or `subtree` without gravity compensation */
  wrench *momentum;             /* (nb) scratch */
  screw *turned;                /* (nv) scratch of the derivatives */
  double *row;                  /* (nv) scratch */
} inertia;

void inertia_lay_out(inertia *I, const qd_model *model, arena *a);
/* Fills body and subtree. all = 0: only trees with an unactuated DOF, zeros for others. Static
 * bodies are left out. */
void inertia_compute(const qd_model *model, const kinematics *k, int all, inertia *I);

/* h = I s, momentum of a body that moves with twist s */
void inertia_momentum(wrench *h, const spatial_inertia *I, const screw *s);

/* M (nv, nv) = joint-space mass matrix */
void inertia_mass_matrix(double *M, const qd_model *model, const kinematics *k, const inertia *I);
/* row[0 .. return value) = entries of M between a DOF and the DOFs on its body's path from the
 * root, up to the DOF itself. */
int inertia_mass_row(double *row, const qd_model *model, const kinematics *k, const inertia *I,
                     int dof);
/* M_dd for d = dof */
double inertia_diagonal(const qd_model *model, const kinematics *k, const inertia *I, int dof);
/* Gravity wrench on a single body. */
void inertia_gravity_wrench(wrench *W, const qd_model *model, const inertia *I, int body);
/* tau (nv) = generalised force of gravity */
void inertia_gravity_force(double *tau, const qd_model *model, const kinematics *k,
                           const inertia *I);

/* A displacement of all DOFs, for derivatives of the mass matrix. */
typedef struct mass_motion {
  const double *delta;    /* (nv) */
  const screw *twist;     /* (nb) resulting twists of the bodies */
  const wrench *momentum; /* (nb) resulting momenta of subtrees */
} mass_motion;

/* D += row_scale_i d(M(q) delta)_i / dq_j for rows with row_scale_i != 0, at fixed delta. The DOFs
 * of D must be those of whole trees. */
void inertia_add_mass_derivative(const dof_matrix *D, const qd_model *model, const kinematics *k,
                                 const inertia *I, const double *row_scale,
                                 const mass_motion *motion);

/* D -= falls_i d(gravity force)_i / dq_j for rows with falls_i != 0. */
void inertia_subtract_gravity_derivative(const dof_matrix *D, const qd_model *model,
                                         const kinematics *k, const inertia *I,
                                         const double *falls);

#endif
