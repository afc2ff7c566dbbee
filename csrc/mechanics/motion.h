/* Motion of bodies under joint motion: twists, accelerations, and inertial forces. */
#ifndef QD_MECHANICS_MOTION_H
#define QD_MECHANICS_MOTION_H

#include "mechanics/inertia.h"

/* Twists of all bodies for a vector over DOFs, and for each DOF j the part of the twists that j
 * does not move: the contributions of j, its block and the DOFs before it. */
typedef struct twist_field {
  screw *body;    /* (nb) */
  screw *unmoved; /* (nv) */
} twist_field;

void twist_field_lay_out(twist_field *field, const qd_model *model, arena *a);
void twist_field_compute(twist_field *out, const qd_model *model, const kinematics *k,
                         const double *vector);

/* A motion in time. The axis of a DOF moves with the twist of the DOFs before its block. For
 * velocities v with rates of change a, the twist of a body changes by the sum of a_j S_j + v_j
 * (before_j x S_j) over its path. */
typedef struct body_motion {
  twist_field velocity;
  screw *before; /* (nv) */
  twist_field acceleration;
} body_motion;

void body_motion_lay_out(body_motion *m, const qd_model *model, arena *a);
/* a: NULL for constant joint velocities. */
void body_motion_compute(body_motion *m, const qd_model *model, const kinematics *k,
                         const double *v, const double *a);

/* F = d/dt (I T), the inertial wrench of a body with twist T and acceleration A: I A + T x* I T */
void inertial_wrench(wrench *F, const spatial_inertia *I, const screw *T, const screw *A);

/* Replaces each wrench by the sum over the body and its descendants. */
void wrench_sum_subtrees(wrench *w, const qd_model *model);

/* force (nv) = generalised force M a + c(q, v) of the motion; with a = 0 this is the bias force
 * (Coriolis, centrifugal and gyroscopic). scratch (nb). */
void inertial_force(double *force, wrench *scratch, const qd_model *model, const kinematics *k,
                    const inertia *I, const body_motion *m);

#endif
