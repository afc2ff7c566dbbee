/* An earlier step as a guess for the programs of this one: which contact was which, and forces as
 * multipliers of the rows that they now have. Or what the programs of this step have found, for
 * those that have more contacts.
 *
 * Contacts are the same if they belong to the same pair; of a pair with several, the nearest ones
 * in the world. Forces are turned with the contact's frame. What is new starts open. */
#ifndef QD_DYNAMICS_WARM_START_H
#define QD_DYNAMICS_WARM_START_H

#include "dynamics/problem/problem.h"
#include "dynamics/working_set.h"

typedef struct warm_start {
  const qd_step_start *from; /* NULL: no guess */
  int *match;                /* (contacts) the start's contact, -1: none */
  int matched;               /* contacts of the list that were looked up */
  int goes_on;               /* 1: the guess is what this step has found so far: */
  qd_step_start found;
} warm_start;

void warm_start_lay_out(warm_start *w, int contact_capacity, arena *a);
/* Looks up the contacts of the list, those behind earlier ones too. */
void warm_start_match(warm_start *w, const qd_step_start *from, const collision *c);
/* Contacts and limits that carried load come into the working set. */
void warm_start_choose(const warm_start *w, const qd_model *model, working_set *set);
/* From now on the guess is what the last programs have found, which `result` and p hold; NULL:
 * nothing, so that there is none. */
void warm_start_go_on(warm_start *w, const collision *c, const problem *p,
                      const qd_step_result *result);
/* The guess of all programs into x, dual and dual_eq of the problem. */
void warm_start_fill(const warm_start *w, const qd_model *model, const collision *c, problem *p);

#endif
