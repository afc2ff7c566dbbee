/* Data of one thread that takes part in a batch. */
#ifndef QD_RUNTIME_PARTICIPANT_H
#define QD_RUNTIME_PARTICIPANT_H

#include "mechanics/variant.h"
#include "qdsim.h"
#include "runtime/tape.h"

/* Data of one thread, in its own allocation. */
typedef struct participant {
  qd_workspace *workspace;
  model_variant *variant; /* the model with a sample's own parameters; NULL until wanted */
  int variant_is_set;     /* 1: parameters that all samples share are in it */
  qd_contact *contacts;   /* of the samples this one did, in the order it did them */
  int64_t contact_count, contact_room;
  qd_batch_failure failure;                       /* the smallest index among its samples */
  double *q, *v, *u, *tau, *wrench, *mocap;       /* copies that the caller cannot change */
  double *delta, *limit_force, *constraint_force; /* for results that the caller does not want */
  double *tendon_force;                           /* likewise */
  double *bristle;                                /* copy, as q */
  qd_step_start start;                            /* the step before, see participant_keep */
  double *kept;                                   /* its numbers */
  tape *tape; /* of rollouts that are differentiated; NULL until wanted */
  double numbers[];
} participant;

/* NULL: no memory. */
participant *participant_create(const qd_model *model);
void participant_destroy(participant *p);
/* A fresh variant for this call, without the parameters of the last one. 0: no memory. */
int participant_reserve_variant(participant *p, const qd_model *model);
/* Its tape, made when first wanted. NULL: no memory. */
tape *participant_tape(participant *p, const qd_model *model);
/* The result's contacts behind those that are there. */
qd_status participant_append(participant *p, const qd_step_result *result);
/* p->start = copies of a result, whose contacts replace the present ones. */
qd_status participant_keep(participant *p, const qd_model *model, const qd_step_result *result);

#endif
