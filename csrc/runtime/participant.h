/* Data of one thread that takes part in a batch. */
#ifndef QD_RUNTIME_PARTICIPANT_H
#define QD_RUNTIME_PARTICIPANT_H

#include "mechanics/variant.h"
#include "qdsim.h"
#include "runtime/tape.h"

/* Data of one thread, in its own allocation. */
typedef struct participant {
  qd_workspace *workspace;
  model_variant *variant; /* the model with a sample's parameters; NULL until first needed */
  int variant_is_set;     /* 1: it has the parameters that all samples share */
  qd_contact *contacts;   /* of the samples that this thread computed, in that order */
  int64_t contact_count, contact_room;
  qd_batch_failure failure; /* the failure with the smallest index among its samples */
  double *q, *v, *u, *tau, *wrench, *mocap; /* copies of inputs, safe from changes by the caller */
  double *delta, *limit_force, *constraint_force; /* for results that the caller does not want */
  double *tendon_force;                           /* likewise */
  double *bristle;                                /* copy of the stretches of bristles */
  qd_step_start start; /* copies of the step before, see participant_keep */
  double *kept;        /* memory of `start` */
  tape *tape;          /* for differentiated rollouts; NULL until first needed */
  double numbers[];
} participant;

/* NULL if memory is exhausted. */
participant *participant_create(const qd_model *model);
void participant_destroy(participant *p);
/* Gives the variant the model's own parameters, without those of the last call. Returns 0 if memory
 * is exhausted. */
int participant_reserve_variant(participant *p, const qd_model *model);
/* The participant's tape, created at the first call. NULL if memory is exhausted. */
tape *participant_tape(participant *p, const qd_model *model);
/* Appends the contacts of a result. */
qd_status participant_append(participant *p, const qd_step_result *result);
/* Copies a result to p->start; its contacts replace the participant's. */
qd_status participant_keep(participant *p, const qd_model *model, const qd_step_result *result);

#endif
