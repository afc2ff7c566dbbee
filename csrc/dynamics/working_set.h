/* The contacts, joint limits and force limits in the program of an exact step: those that the step
 * may reach. A row that is inactive at the solution has no multiplier, and the program without it
 * has the same solution. So a step starts with contacts that touch or may touch soon, solves, adds
 * the rows outside that the solution violates or nearly reaches, and solves again. Actuators whose
 * limits are left out are springs. The final solution satisfies the optimality conditions of the
 * whole program. */
#ifndef QD_DYNAMICS_WORKING_SET_H
#define QD_DYNAMICS_WORKING_SET_H

#include "dynamics/problem/friction.h"
#include "mechanics/kinematics.h"
#include "mechanics/pairs/collision.h"

typedef struct working_set {
  unsigned char *contact; /* (contacts) 1: in the program */
  unsigned char *limit;   /* (nv, 2) likewise, lower, then upper limit */
  unsigned char *force;   /* (nu) likewise, limits of actuators */
  int chosen;             /* contacts from this index on were added later, and are in the program */
  int left_out;           /* number of contacts and limits outside */
  int forces_left_out;
  double *delta; /* (nv) scratch */
  screw *twist;  /* (nb + 1) scratch; the last one is padding */
  double rays[2 * QD_RAYS_MAX];
} working_set;

void working_set_lay_out(working_set *s, const qd_model *model, int contact_capacity, arena *a);
/* Puts all contacts of the list, and all limits, into the set. */
void working_set_fill(working_set *s, const qd_model *model, const collision *c);
/* Adds everything outside. */
void working_set_complete(working_set *s, const qd_model *model);
/* Contacts and limits that the commanded motion (in the second-order step: the velocities) may
 * reach, and limits of actuators that exceed them at rest or in the motion of the start. */
void working_set_choose(working_set *s, const qd_model *model, const qd_step_options *options,
                        const kinematics *k, const collision *c, const qd_step_input *input);
/* Adds rows that delta (nv) violates or nearly reaches (in a wide sense if the motion is `rough`);
 * returns their number. */
int working_set_extend(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const qd_step_input *input,
                       const double *delta, int rough);
/* Number of contacts outside that a roughly known motion has clearly reached. */
int working_set_misses(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const double *delta);

static inline int working_set_has_contact(const working_set *s, int contact) {
  return contact >= s->chosen || s->contact[contact];
}

#endif
