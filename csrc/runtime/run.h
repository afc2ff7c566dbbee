/* Samples in blocks, claimed from an atomic counter by the participants. */
#ifndef QD_RUNTIME_RUN_H
#define QD_RUNTIME_RUN_H

#include <stdatomic.h>

#include "runtime/participant.h"

/* Where the contacts of a sample are. */
typedef struct contact_place {
  int64_t first;
  int participant;
} contact_place;

struct qd_batch {
  const qd_model *model;
  participant **participants; /* (participant_capacity), NULL until one takes part */
  int participant_capacity;
  contact_place *places; /* (place_capacity) of the latest call */
  int64_t place_capacity;
  int (*stop)(void *context); /* NULL: never */
  void *stop_context;
};

/* One call, as all of its participants see it. The first five are the caller's to fill. */
typedef struct run {
  qd_batch *batch;
  int64_t sample_count;
  const void *job; /* argument of `sample` */
  void (*sample)(const struct run *r, int k, int64_t i);
  int with_parameters; /* 1: every participant has a model of its own for the samples' parameters */
  int only_copies;     /* 1: takes no steps, so needs no scratch, and ends soon */
  int64_t block;
  _Atomic int64_t next;
  _Atomic int *stopped;
} run;

/* Room for the participants, with the caller's made; the others make theirs. */
qd_status run_prepare(const run *r, int thread_count);
/* QD_STOPPED: perhaps not all samples have been done. */
qd_status run_all(run *r, qd_thread_pool *pool, int thread_count);
/* Called by participant k between steps: 1 if no further step may begin. */
int run_is_stopped(const run *r, int k);
/* Of all participants. */
void run_first_failure(const run *r, qd_batch_failure *failure);

#endif
