/* Observations and measures for policies at many configurations. */
#include <math.h>

#include "dynamics/view.h"
#include "runtime/run.h"
#include "runtime/sample.h"

typedef struct view_job {
  const qd_view *view;
  const qd_view_input *input;
  double *observation; /* (sample_count, column_count) */
  double *measure;     /* (sample_count, QD_VIEW_MEASURES) */
  int32_t *status;
} view_job;

static void views_one(const run *r, int k, int64_t i) {
  const view_job *job = r->job;
  const qd_model *model = r->batch->model;
  const qd_view_input *in = job->input;
  participant *p = r->batch->participants[k];
  double *observation = job->observation + i * job->view->column_count;
  double *measure = job->measure + i * QD_VIEW_MEASURES;
  const view_sample sample = {p->q, in->goal + i * in->goal_stride, in->pose + i * in->pose_stride,
                              in->more + i * in->more_stride};
  int joint;
  const qd_status status = qd_normalize(model, in->q + i * in->q_stride, p->q, &joint);
  if (status == QD_OK) {
    view_compute(model, p->workspace, job->view, &sample, p->delta, observation, measure);
  } else {
    numbers_fill(observation, job->view->column_count, NAN);
    numbers_fill(measure, QD_VIEW_MEASURES, NAN);
  }
  job->status[i] = (int32_t)status;
}

qd_status qd_observe_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_view *view, const qd_view_input *input, double *observation,
                           double *measure, int32_t *status) {
  const view_job job = {view, input, observation, measure, status};
  run r = {.batch = batch, .sample_count = input->sample_count, .job = &job, .sample = views_one};
  const qd_status ready = run_prepare(&r, thread_count);
  return ready == QD_OK ? run_all(&r, pool, thread_count) : ready;
}
