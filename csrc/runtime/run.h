/* Distributes samples to threads: participants claim blocks of samples from an atomic counter. */
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
  participant **participants; /* (participant_capacity), NULL for unused threads */
  int participant_capacity;
  contact_place *places; /* (place_capacity) of the latest call */
  int64_t place_capacity;
  int (*stop)(void *context); /* NULL: never */
  void *stop_context;
};

/* One call, shared by all of its participants. The caller sets the first six fields. */
typedef struct run {
  qd_batch *batch;
  int64_t sample_count;
  const void *job; /* argument of `sample` */
  void (*sample)(const struct run *r, int k, int64_t i);
  int with_parameters; /* 1: each participant needs its own model for the samples' parameters */
  int only_copies;     /* 1: only copies data: needs no workspace, and cannot be stopped */
  int64_t block;
  _Atomic int64_t next;
  _Atomic int *stopped;
} run;

/* Makes room for the participants and creates the caller's; the other threads create their own. */
qd_status run_prepare(const run *r, int thread_count);
/* QD_STOPPED: some samples may be missing. */
qd_status run_all(run *r, qd_thread_pool *pool, int thread_count);
/* Called by participant k between steps; 1 if no further step may begin. */
int run_is_stopped(const run *r, int k);
/* The failure with the smallest index, of all participants. */
void run_first_failure(const run *r, qd_batch_failure *failure);

#endif
