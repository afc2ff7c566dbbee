/* Bilateral constraints (connect, weld, couplings of joints and of tendons): C delta + c = 0 with c
 * the violation at q. The violation is the second body's anchor minus the first's; a weld also has
 * the rotation vector from the target orientation of the second body to its orientation. Both are
 * in world axes. C is the derivative of the violation in the frame of the nearest common ancestor
 * of the two bodies. DOFs that move the ancestor therefore have columns of zeros, even if rounding
 * in the file separates the anchors (a gripper's loop on an arm). */
#ifndef QD_MECHANICS_CONSTRAINT_H
#define QD_MECHANICS_CONSTRAINT_H

#include "mechanics/dof_matrix.h"
#include "mechanics/kinematics.h"
#include "mechanics/motion.h"
#include "mechanics/tendon.h"

#define CONSTRAINT_DATA 10
#define CONSTRAINT_ROWS_MAX QD_CONSTRAINT_FORCE
#define CONSTRAINT_BODIES 3

int constraint_row_count(int constraint_type);

/* A constraint at a configuration. */
typedef struct constraint_state {
  int rows;
  int body[CONSTRAINT_BODIES]; /* both bodies of connect and weld, nearest common ancestor */
  double anchor[2][3];         /* world */
  double turn[3];              /* weld: rotation vector of the violation */
  int dof[2];       /* coupling of joints; the second is -1 if there is none; both are -1 for other
                       constraints */
  int tendon[2];    /* coupling of tendons, the same */
  double slope;     /* couplings: derivative of the polynomial */
  double curvature; /* couplings: its second derivative */
  const tendons *t;
  int by_quaternion; /* 1: uses MuJoCo's rows of a connect or weld */
  double scale;   /* with by_quaternion, of a weld: the rotational violation is scale times x y z of
                     `half` */
  double half[4]; /* quaternion of the weld's rotation, w x y z */
  double violation[CONSTRAINT_ROWS_MAX];
  int capped[2];     /* 1: a part of the violation (position, rotation) is limited in this step, see
                        constraint_cap */
  double share[2];   /* the limited length over the length */
  double unit[2][3]; /* direction of the violation */
} constraint_state;

/* by_quaternion: MuJoCo's rows of connect and weld, relative to the world. A weld's rotation rows
 * are then derivatives of its quaternion (s, n), the "half": W (w2 - w1) with W = scale / 2 (s + n
 * x). */
void constraint_compute(constraint_state *out, const qd_model *model, const kinematics *k,
                        const tendons *t, const double *q, int index, int by_quaternion);

/* turning = W turning for the relative angular velocity of a weld's bodies; without by_quaternion W
 * is the identity. The second function multiplies by the transpose. */
void constraint_turn_rows(const constraint_state *s, double turning[3]);
void constraint_turn_moment(const constraint_state *s, double moment[3]);
/* out (4) = change of the half if the bodies rotate with w1 and w2 */
void constraint_half_change(double out[4], const constraint_state *s, const double w1[3],
                            const double w2[3]);
/* The transpose: out[side] (3) += cotangent of the rotation of each body, for the cotangent (4) of
 * the half. */
void constraint_half_pull(double out[2][3], const constraint_state *s, const double cotangent[4]);
/* out = dW x, or dW' x if `moment` is 1, for a change of the half */
void constraint_turn_change(double out[3], const constraint_state *s, const double change[4],
                            const double x[3], int moment);
/* out (rows) = (dC/dt) v, the acceleration of the rows in a motion with constant joint
 * velocities. */
void constraint_drift(double *out, const constraint_state *s, const body_motion *m);
/* by_q, by_v (rows) = derivatives of the drift with respect to DOF j. */
void constraint_drift_derivative(double *by_q, double *by_v, const constraint_state *s,
                                 const qd_model *model, const kinematics *k, const body_motion *m,
                                 int j);

/* Iterates over the DOFs that move the first or the second body of a connect or a weld, each once.
 * Returns the next DOF, -1 after the last; the walk begins with zeros. */
typedef struct constraint_walk {
  int side, at;
} constraint_walk;
int constraint_next_dof(constraint_walk *walk, const constraint_state *s, const qd_model *model);

/* The force along tendon 0 or 1 of a coupling per unit of its multiplier. */
static inline double constraint_tendon_share(const constraint_state *s, int side) {
  return side == 0 ? 1.0 : -s->slope;
}

/* Limits the length of each part of the violation to `most`; returns the number of limited
 * parts. */
int constraint_cap(constraint_state *s, double most);
/* Converts a change of part 0 or 1 of the violation to the change of its limited value, in place.
 * The map is symmetric. */
void constraint_cap_change(const constraint_state *s, int part, double *change);

/* column (rows) = column of C for a DOF */
void constraint_column(double *column, const constraint_state *s, const qd_model *model,
                       const kinematics *k, int dof);

/* A motion delta: the twists of the bodies, and for each DOF the part of the twist that the DOF
 * does not move (as in linearize.c). */
typedef struct constraint_motion {
  const screw *body_twist;
  const screw *unmoved_twist;
} constraint_motion;

/* For connect and weld: column (rows) = d (C delta) / dq_j at fixed delta, violation (rows) = d c /
 * dq_j. */
void constraint_motion_derivative(double *column, double *violation, const constraint_state *s,
                                  const qd_model *model, const kinematics *k,
                                  const constraint_motion *m, int j);

/* out = cotangent of the rotation of body `side` for a cotangent of the weld's rotation; the
 * transpose of constraint_turn_push. */
void constraint_turn_pull(double out[3], const constraint_state *s, const double cotangent[3],
                          int side);
/* out += change of the weld's rotation if body `side` rotates with w */
void constraint_turn_push(double out[3], const constraint_state *s, const double w[3], int side);

/* W = wrenches of the constraint on its bodies, about the world origin; zero for couplings. The
 * common ancestor gets the moment of forces that do not act at one point. */
void constraint_wrenches(wrench W[CONSTRAINT_BODIES], const constraint_state *s,
                         const double *force);

/* D -= d (C' force) / dq due to the motion of the anchors and of a weld's rotation rows, whose
 * multipliers are `turning`; excludes the motion of the joint axes. */
void constraint_subtract_force_derivative(const dof_matrix *D, const constraint_state *s,
                                          const qd_model *model, const kinematics *k,
                                          const double *force, const double *turning);

#endif
