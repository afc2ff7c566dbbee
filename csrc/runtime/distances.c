/* Distances of all pairs at many configurations. */
#include <math.h>

#include "runtime/run.h"
#include "runtime/sample.h"

typedef struct distance_job {
  const double *q; /* (nq) of each sample */
  ptrdiff_t q_stride;
  double margin;
  double *distance; /* (sample_count, pair_count) */
  int32_t *status;
} distance_job;

static void distances_one(const run *r, int k, int64_t i) {
  const distance_job *job = r->job;
  const qd_model *model = r->batch->model;
  participant *p = r->batch->participants[k];
  double *distance = job->distance + i * model->pair.count;
  const qd_status status =
      sample_distances(p, model, job->q + i * job->q_stride, job->margin, distance);
  if (status != QD_OK) {
    numbers_fill(distance, model->pair.count, NAN);
  }
  job->status[i] = (int32_t)status;
}

qd_status qd_pair_distances_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                                  int64_t sample_count, const double *q, ptrdiff_t q_stride,
                                  double margin, double *distance, int32_t *status) {
  const distance_job job = {q, q_stride, margin, distance, status};
  run r = {.batch = batch, .sample_count = sample_count, .job = &job, .sample = distances_one};
  const qd_status ready = run_prepare(&r, thread_count);
  return ready == QD_OK ? run_all(&r, pool, thread_count) : ready;
}
