/* Bilateral constraints (connect, weld, couplings of joints and of tendons): C delta + c = 0 with c
 * the violation at q. The violation is the second body's anchor minus the first's, and the rotation
 * vector from where the weld wants the second body to where it is, both in world axes. C is how
 * they change as the nearest body sees them that carries both: what moves that one has columns of
 * zeros, also where the anchors are the last digits of a file apart (a gripper's loop on an arm).
 */
#ifndef QD_MECHANICS_CONSTRAINT_H
#define QD_MECHANICS_CONSTRAINT_H

#include "mechanics/dof_matrix.h"
#include "mechanics/kinematics.h"
#include "mechanics/tendon.h"

#define CONSTRAINT_DATA 10
#define CONSTRAINT_ROWS_MAX 6
#define CONSTRAINT_BODIES 3

int constraint_row_count(int constraint_type);

/* What a constraint is at a configuration. */
typedef struct constraint_state {
  int rows;
  int body[CONSTRAINT_BODIES]; /* connect and weld: the two, and what carries both */
  double anchor[2][3];         /* world */
  double turn[3];              /* weld: rotation vector of the violation */
  int dof[2];                  /* coupling of joints; second -1: none; both -1 of others */
  int tendon[2];               /* coupling of tendons, likewise */
  double slope;                /* couplings: derivative of the polynomial */
  double curvature;            /* couplings: its second derivative */
  const tendons *t;
  double violation[CONSTRAINT_ROWS_MAX];
  int capped[2];     /* parts of the violation (position, turn) that a step undoes not at once: */
  double share[2];   /* so much of them counts, */
  double unit[2][3]; /* in this direction */
} constraint_state;

void constraint_compute(constraint_state *out, const qd_model *model, const kinematics *k,
                        const tendons *t, const double *q, int index);

/* The force along tendon 0 or 1 of a coupling per unit of its multiplier. */
static inline double constraint_tendon_share(const constraint_state *s, int side) {
  return side == 0 ? 1.0 : -s->slope;
}

/* Parts of the violation that are longer than that count with that length; how many there are. */
int constraint_cap(constraint_state *s, double most);
/* What a change of part 0 or 1 of the violation does to what counts of it, in place; symmetric. */
void constraint_cap_change(const constraint_state *s, int part, double *change);

/* column (rows) = column of C for a DOF */
void constraint_column(double *column, const constraint_state *s, const qd_model *model,
                       const kinematics *k, int dof);

/* The motion along delta: twists of the bodies, and the parts of them that a DOF does not move (as
 * in linearize.c). */
typedef struct constraint_motion {
  const screw *body_twist;
  const screw *unmoved_twist;
} constraint_motion;

/* column (rows) = d (C delta + c) / dq_j at fixed delta, of connect and weld */
void constraint_motion_derivative(double *column, const constraint_state *s, const qd_model *model,
                                  const kinematics *k, const constraint_motion *m, int j);

/* out = what the turn's cotangent does to the rotation of body `side`; add_turn's other way. */
void constraint_turn_pull(double out[3], const constraint_state *s, const double cotangent[3],
                          int side);
/* out += d turn when body `side` turns with w */
void constraint_turn_push(double out[3], const constraint_state *s, const double w[3], int side);

/* W = wrenches of the constraint on its bodies about the world origin, zero for couplings: what
 * carries both takes the moment of forces that do not act in one point. */
void constraint_wrenches(wrench W[CONSTRAINT_BODIES], const constraint_state *s,
                         const double *force);

/* D -= d (C' force) / dq by the motion of the anchors (not of the joint axes). */
void constraint_subtract_force_derivative(const dof_matrix *D, const constraint_state *s,
                                          const qd_model *model, const kinematics *k,
                                          const double *force);

#endif
