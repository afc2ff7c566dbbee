/* Forces of actuators and of joint springs along a coordinate. */
#ifndef QD_MECHANICS_ACTUATOR_H
#define QD_MECHANICS_ACTUATOR_H

#include <math.h>

#include "mechanics/model.h"

/* An actuator acts on a coordinate l, a function of the configuration (for a joint transmission: q
 * of the joint), with the force along it F = k (u / gear - l) + (gain + slope_l l + slope_v v) u +
 * bias - damping v, where v = rate d for a displacement d of l. rate is 1 / h with the option
 * damping, else 0. */
typedef struct actuator_point {
  double l, u, rate;
  double speed; /* of l, if the force is that of the beginning of the step */
  int early;    /* 1: it is; then rate = 0 */
} actuator_point;

/* Factor from displacement to velocity for dampers: 1 / h, or 0 without the option damping. */
static inline double damping_rate(const qd_step_options *o) {
  return o->damping || o->dynamic ? 1.0 / o->h : 0.0;
}

/* The force after a displacement d: at_rest - stiffness d. If u makes the sum of k and damping
 * negative (slopes of the gain), the force at rest acts during the whole step: stiffness is then 0.
 */
typedef struct actuator_force {
  double at_rest, stiffness;
} actuator_force;

actuator_force actuator_force_general(const qd_model *model, int actuator,
                                      const actuator_point *at);

static inline actuator_force actuator_force_at(const qd_model *model, int actuator,
                                               const actuator_point *at) {
  if (!model->actuator.are_springs || at->early) {
    return actuator_force_general(model, actuator, at);
  }
  const double k = model->parameters.actuator_stiffness[actuator];
  const actuator_force force = {k * (at->u / model->actuator.gear[actuator] - at->l), k};
  return force;
}

/* Ns/m: decrease of the force per unit of speed. */
double actuator_drag(const qd_model *model, int actuator, const actuator_point *at);

/* Derivatives of that force with respect to the coordinate and its speed, the command, the
 * actuator's parameters and the time step, with d fixed. */
typedef struct actuator_slopes {
  double l, speed, u, stiffness, gain, bias, damping, h;
} actuator_slopes;

actuator_slopes actuator_slopes_at(const qd_model *model, int actuator, const actuator_point *at,
                                   double d);
/* a -= b */
void actuator_slopes_subtract(actuator_slopes *a, const actuator_slopes *b);

/* 1 if its force has a limit. */
static inline int actuator_is_bounded(const qd_model *model, int actuator) {
  const double *range = model->parameters.actuator_force_range + 2 * actuator;
  return isfinite(range[0]) || isfinite(range[1]);
}

/* 1 if it is the spring of a DOF whose springs all have limits. */
static inline int actuator_shares_inertia(const qd_model *model, int actuator) {
  const int dof = model->actuator.dof[actuator];
  return dof >= 0 && model->actuator.is_spring[actuator] && model->dof.is_limited[dof];
}

/* A force within its limits. */
static inline double actuator_clamp(const qd_model *model, int actuator, double force) {
  const double *range = model->parameters.actuator_force_range + 2 * actuator;
  return force < range[0] ? range[0] : (force > range[1] ? range[1] : force);
}

/* MuJoCo clamps forces at the beginning of a step, where the coordinate moves at `speed`. A force
 * at the actuator's own limit stays constant. A force that only its joint's limit clamps is reduced
 * to that limit, and stiffness and damping act from there on (if their sum is positive). */
typedef struct clamped_force {
  actuator_force force;
  int side;     /* -1, 1: the lower or upper limit clamps it; 0: none */
  int by_joint; /* 1: only the joint's limit clamps it */
} clamped_force;

clamped_force actuator_force_clamped(const qd_model *model, int actuator, const actuator_point *at,
                                     double speed);
/* With d fixed; 0 if the force stays constant. */
actuator_slopes actuator_slopes_clamped(const qd_model *model, int actuator,
                                        const actuator_point *at, double speed, double d);

/* The actuators of a DOF, ascending. */
static inline int_list dof_actuators(const qd_model *model, int dof) {
  return list_part(model->dof.actuators, model->dof.actuator_start, dof);
}

/* The actuators of a tendon, ascending. */
static inline int_list tendon_actuators(const qd_model *model, int tendon) {
  return list_part(model->tendon.actuators, model->tendon.actuator_start, tendon);
}

/* Deflection of the spring of a DOF's joint: for a scalar joint from springref, for ball and free
 * joints from body_pos and body_quat, rotations as a rotation vector. */
double joint_stretch(const qd_model *model, int dof, const double *q);
/* Derivative of joint_stretch: `row` (1 or 3 entries, the return value) with respect to the DOFs
 * from *first on. */
int joint_stretch_row(const qd_model *model, int dof, const double *q, double row[3], int *first);

#endif
