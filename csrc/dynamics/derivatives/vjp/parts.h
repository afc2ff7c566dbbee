/* The gradient of L (differential.h) by all arguments of a step: one sweep over contacts,
 * constraints and bodies, then one over DOFs.
 *
 * A wrench F that is the cotangent of a body's twist T (dL = F.dT) contributes, since dT/dq_j = S_j
 * x (T - P_j), S_j . (T x* F - P_j x* F). Terms that depend on the body's pose contribute S_j . U,
 * with U the wrench whose power is their change. Both are summed over all bodies that j carries. */
#ifndef QD_DYNAMICS_DERIVATIVES_PULL_PARTS_H
#define QD_DYNAMICS_DERIVATIVES_PULL_PARTS_H

#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"

typedef struct pullback {
  const solved_step *s;
  differential *d;
  const step_point *point;
  const double *mu, *nu;
  int stride;
  double *const *gradient;
  int bodies_move; /* 1: q, v or h is wanted, or masses, on which coasting depends */
} pullback;

/* sign F is the cotangent of a body's twist in the field. */
static inline void pull_twist(wrench *pose, const twist_field *field, int body, double sign,
                              const wrench *F) {
  wrench turned;
  screw_cross_wrench(&turned, field->body + body, F);
  wrench_axpy(pose + body, sign, &turned);
}

/* Adds to the gradient by an argument, if it is wanted. */
static inline void add_gradient(const pullback *p, int argument, int at, double value) {
  if (p->gradient[argument] != NULL) {
    p->gradient[argument][at] += value;
  }
}

static inline linear_form weighed(const pullback *p, double weight) {
  return (linear_form){.gradient = p->gradient, .weight = weight};
}

static inline void add_pose_force(wrench *pose, int body, const double point[3],
                                  const double force[3]) {
  static const double none[3] = {0.0, 0.0, 0.0};
  wrench W;
  wrench_at(&W, point, force, none);
  wrench_axpy(pose + body, 1.0, &W);
}

void pull_contact(const pullback *p, int index);
void pull_constraints(const pullback *p);

/* Cotangent of an actuator's force, or of its row; z: that of a force along its coordinate. */
double actuator_cotangent(const pullback *p, const actuator_part *part, double z);

/* Parameters of tendons' rows. */
void pull_tendon_parameters(const pullback *p);
void pull_tendons(const pullback *p);
void pull_body(const pullback *p, int b);

#endif
