/* A rollout of one sample, the last of its steps on its participant's tape. */
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
  int64_t taped_count; /* steps from the last back that go onto the tape, which has room */
} rollout_job;

/* Velocity t of sample i's rollout; NULL: of a quasi-dynamic one. */
double *rollout_velocity(const rollout_job *job, int64_t i, int64_t t);

/* Steps sample i with this model from its q, normalised, and fills its rows. */
qd_status rollout_sample(const rollout_job *job, const run *r, int k, int64_t i,
                         const qd_model *stepped);

#endif
