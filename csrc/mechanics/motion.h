/* How bodies move when joints do: twists and accelerations, and the forces that inertia asks for.
 */
#ifndef QD_MECHANICS_MOTION_H
#define QD_MECHANICS_MOTION_H

#include "mechanics/inertia.h"

/* Twists of all bodies under a vector over DOFs, and the part that DOF j does not move: itself, its
 * block and what is before it. */
typedef struct twist_field {
  screw *body;    /* (nb) */
  screw *unmoved; /* (nv) */
} twist_field;

void twist_field_lay_out(twist_field *field, const qd_model *model, arena *a);
void twist_field_compute(twist_field *out, const qd_model *model, const kinematics *k,
                         const double *vector);

/* A motion in time. The axis of a DOF moves with the twist of what is before its block, so while
 * rates v change by a, a body's twist changes by the sum of a_j S_j + v_j (before_j x S_j) over its
 * path: a field like that of a vector, with parts that no vector has. */
typedef struct body_motion {
  twist_field velocity;
  screw *before; /* (nv) */
  twist_field acceleration;
} body_motion;

void body_motion_lay_out(body_motion *m, const qd_model *model, arena *a);
/* a: NULL, rates stay. */
void body_motion_compute(body_motion *m, const qd_model *model, const kinematics *k,
                         const double *v, const double *a);

/* F = d/dt (I T), what a lump of twist T and acceleration A needs: I A + T x* I T */
void inertial_wrench(wrench *F, const spatial_inertia *I, const screw *T, const screw *A);

/* Sums over each body and all behind it, in place. */
void wrench_sum_subtrees(wrench *w, const qd_model *model);

/* force (nv) = what the motion needs at the joints, M a + c(q, v): Coriolis, centrifugal and
 * gyroscopic forces are this with a = 0. scratch (nb). */
void inertial_force(double *force, wrench *scratch, const qd_model *model, const kinematics *k,
                    const inertia *I, const body_motion *m);

#endif
