/* The contacts, joint limits and limits of actuators that an exact step's program has: those that
 * the step may reach.
 *
 * A row that holds with room to spare at the solution has no multiplier, and the program without it
 * has the same solution. So a step starts from contacts that touch or may soon, solves, and looks
 * at the rows left out: those that the solution violates or comes near to join, and it solves
 * again. Actuators whose limits are left out are springs. What it ends with satisfies the
 * optimality conditions of the whole program. */
#ifndef QD_DYNAMICS_WORKING_SET_H
#define QD_DYNAMICS_WORKING_SET_H

#include "dynamics/problem/friction.h"
#include "mechanics/kinematics.h"
#include "mechanics/pairs/collision.h"

typedef struct working_set {
  unsigned char *contact; /* (contacts) 1: in the program */
  unsigned char *limit;   /* (nv, 2) likewise, lower and upper limits */
  unsigned char *force;   /* (nu) likewise, limits of actuators */
  int chosen;             /* contacts behind this one came later, and are in the program */
  int left_out;           /* contacts and limits that are not */
  int forces_left_out;
  double *delta; /* (nv) scratch */
  screw *twist;  /* (nb, and a number behind) scratch */
  double rays[2 * RAYS_MAX];
} working_set;

void working_set_lay_out(working_set *s, const qd_model *model, int contact_capacity, arena *a);
/* All of the list. */
void working_set_fill(working_set *s, const qd_model *model, const collision *c);
/* What was left out comes in. */
void working_set_complete(working_set *s, const qd_model *model);
/* Contacts and limits that the commanded motion (of the second-order step: the velocities) might
 * bring into play, and limits of actuators that pull harder where they stand, or in the motion of
 * the start. */
void working_set_choose(working_set *s, const qd_model *model, const qd_step_options *options,
                        const kinematics *k, const collision *c, const qd_step_input *input);
/* Adds what delta (nv) violates or comes near to, if that is a `rough` motion in a wide sense;
 * returns how many. */
int working_set_extend(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const qd_step_input *input,
                       const double *delta, int rough);
/* How many contacts that are left out a motion that is known roughly has clearly reached. */
int working_set_misses(working_set *s, const qd_model *model, const qd_step_options *options,
                       const kinematics *k, const collision *c, const double *delta);

static inline int working_set_has_contact(const working_set *s, int contact) {
  return contact >= s->chosen || s->contact[contact];
}

#endif
