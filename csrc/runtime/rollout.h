/* A rollout of one sample; its last steps are recorded on the participant's tape. */
#ifndef QD_RUNTIME_ROLLOUT_H
#define QD_RUNTIME_ROLLOUT_H

#include "runtime/run.h"
#include "runtime/sample.h"

typedef struct rollout_job {
  step_job steps;
  int64_t step_count;
  double *q; /* (sample_count, step_count + 1, nq) */
  int32_t *status;
  int64_t *steps_done;
  int64_t taped_count; /* number of last steps to record on the tape, which has room for them */
} rollout_job;

/* Velocity of sample i before step t; NULL in quasi-dynamic rollouts. */
double *rollout_velocity(const rollout_job *job, int64_t i, int64_t t);

/* Steps sample i with the model `stepped` from its normalised q, and fills its rows of the
 * output. */
qd_status rollout_sample(const rollout_job *job, const run *r, int k, int64_t i,
                         const qd_model *stepped);

#endif
