/* An earlier step as a guess for the programs of this one: matching contacts, and forces as
 * multipliers of the present rows. Or the solution of this step's last programs, after contacts
 * were added. Contacts match if they belong to the same pair; for a pair with several contacts, the
 * nearest ones in the world. Forces are rotated with the contact's frame. New contacts start open.
 */
#ifndef QD_DYNAMICS_WARM_START_H
#define QD_DYNAMICS_WARM_START_H

#include "dynamics/problem/problem.h"
#include "dynamics/working_set.h"

typedef struct warm_start {
  const qd_step_start *from; /* NULL: no guess */
  int *match;                /* (contacts) the start's contact, -1: none */
  int matched;               /* number of contacts of the list that were matched */
  int goes_on;               /* 1: the guess is the last solution of this step, in `found` */
  qd_step_start found;
} warm_start;

void warm_start_lay_out(warm_start *w, int contact_capacity, arena *a);
/* Matches the contacts of the list, including appended ones. */
void warm_start_match(warm_start *w, const qd_step_start *from, const collision *c);
/* Adds contacts and limits that carried load to the working set. */
void warm_start_choose(const warm_start *w, const qd_model *model, working_set *set);
/* From now on the guess is the solution of the last programs, in `result` and p; NULL: no guess. */
void warm_start_go_on(warm_start *w, const problem *p, const qd_step_result *result);
/* Writes the guess of all programs into x, dual and dual_eq of the problem. */
void warm_start_fill(const warm_start *w, problem *p);

#endif
