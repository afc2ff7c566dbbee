/* Poses of all bodies at many configurations. */
#include <math.h>

#include "runtime/run.h"
#include "runtime/sample.h"

typedef struct pose_job {
  const double *q; /* (nq) of each sample */
  ptrdiff_t q_stride;
  double *pos, *rot; /* (sample_count, body_count, 3) and (sample_count, body_count, 9) */
  int32_t *status;
} pose_job;

static void poses_one(const run *r, int k, int64_t i) {
  const pose_job *job = r->job;
  const qd_model *model = r->batch->model;
  const int64_t bodies = model->body.count;
  participant *p = r->batch->participants[k];
  double *pos = job->pos + 3 * i * bodies, *rot = job->rot + 9 * i * bodies;
  int joint;
  const qd_status status = qd_normalize(model, job->q + i * job->q_stride, p->q, &joint);
  if (status == QD_OK) {
    qd_body_poses(model, p->workspace, p->q, pos, rot);
  } else {
    numbers_fill(pos, 3 * bodies, NAN);
    numbers_fill(rot, 9 * bodies, NAN);
  }
  job->status[i] = (int32_t)status;
}

qd_status qd_body_poses_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                              int64_t sample_count, const double *q, ptrdiff_t q_stride,
                              double *pos, double *rot, int32_t *status) {
  const pose_job job = {q, q_stride, pos, rot, status};
  run r = {.batch = batch, .sample_count = sample_count, .job = &job, .sample = poses_one};
  const qd_status ready = run_prepare(&r, thread_count);
  return ready == QD_OK ? run_all(&r, pool, thread_count) : ready;
}
