/* Changes of stationarity r = Qd + b - G'lambda - C'nu, slacks w = Gd + g and equalities e = Cd + c
 * along a direction, at fixed d and multipliers. Bodies move with the twists of dq, joint axes with
 * those of the bodies that carry them, and each mass, force and contact adds a term to its body. */
#ifndef QD_DYNAMICS_DERIVATIVES_PUSH_PARTS_H
#define QD_DYNAMICS_DERIVATIVES_PUSH_PARTS_H

#include <string.h>

#include "dynamics/derivatives/differential.h"
#include "dynamics/derivatives/step_point.h"
#include "dynamics/workspace.h"
#include "mechanics/applied.h"

typedef struct pushforward {
  const solved_step *s;
  differential *d;
  const step_point *point;
  const double *const *tangent;
  double *w, *e;
  int stride;
} pushforward;

/* Entry `at` of the tangent, zero if there is none. */
static inline double tangent_at(const pushforward *p, int argument, int at) {
  return p->tangent[argument] != NULL ? p->tangent[argument][at] : 0.0;
}

static inline linear_form along(const pushforward *p) {
  return (linear_form){.tangent = p->tangent, .weight = 1.0};
}

static inline void tangent_vec3(double out[3], const pushforward *p, int argument, int body) {
  vec3_set(out, 0.0, 0.0, 0.0);
  if (p->tangent[argument] != NULL) {
    vec3_copy(out, p->tangent[argument] + 3 * body);
  }
}

void push_contact(const pushforward *p, int index);
void push_constraints(const pushforward *p);

/* r -= rate times the change of the tendons' forces */
void push_tendon_forces(const pushforward *p, double *r);
void push_tendons(const pushforward *p);

/* Twists of the bodies and axes along dq, and the changes of the twists under d. A block's axes
 * move with the bodies and joints before the block. */
void move_bodies(const pushforward *p);

/* Change of DOF j's displacement with mass (second-order step: of its acceleration) at fixed delta.
 */
double mass_rate(const pushforward *p, int j);

/* d->scratch: change of the gravity wrench; d->pose: of the caller's wrench. */
void push_body(const pushforward *p, int b);

#endif
