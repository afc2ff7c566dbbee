/* How stationarity r = Qd + b - G'lambda - C'nu, slacks w = Gd + g and equalities e = Cd + c change
 * along a direction, at fixed d and multipliers: bodies move with the twists of dq, joint axes with
 * those of what carries them, and each lump, force and contact adds its part to a body. */
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

/* What along the tangent belongs to entry `at`, zero where there is none. */
static inline double tangent_at(const pushforward *p, int argument, int at) {
  return p->tangent[argument] != NULL ? p->tangent[argument][at] : 0.0;
}

static inline linear_form along(const pushforward *p) {
  return (linear_form){.tangent = p->tangent};
}

static inline void tangent_vec3(double out[3], const pushforward *p, int argument, int body) {
  vec3_set(out, 0.0, 0.0, 0.0);
  if (p->tangent[argument] != NULL) {
    vec3_copy(out, p->tangent[argument] + 3 * body);
  }
}

void push_contact(const pushforward *p, int index);
void push_constraints(const pushforward *p);

/* Of an actuator's force with these slopes; its coordinate moves by dl. */
double force_change(const pushforward *p, const actuator_slopes *slope, int i, double dl);

/* r -= rate times the forces' change */
void push_tendon_forces(const pushforward *p, double *r);
void push_tendons(const pushforward *p);

/* Twists of the bodies along dq, of the axes, and what both change in the twists under d. A block's
 * axes move with what is before the block. */
void move_bodies(const pushforward *p);

/* The change of DOF j's mass motion (of its acceleration) at fixed delta. */
double mass_rate(const pushforward *p, int j);

/* d->scratch: change of the gravity wrench; d->pose: of what the caller applies. */
void push_body(const pushforward *p, int b);

#endif
