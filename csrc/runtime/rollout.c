/* Rollouts: successive steps from each sample. */
#include <math.h>
#include <string.h>

#include "runtime/feedback.h"
#include "runtime/rollout.h"

double *rollout_velocity(const rollout_job *job, int64_t i, int64_t t) {
  double *path = job->steps.input->v_path;
  return path != NULL ? path + (i * (job->step_count + 1) + t) * job->steps.model->nv : NULL;
}

/* Stretches of the bristles of sample i before step t; NULL if not wanted. */
static double *rollout_bristles(const rollout_job *job, int64_t i, int64_t t) {
  double *path = job->steps.input->bristle_path;
  const int64_t size = QD_BRISTLES * (int64_t)job->steps.model->pair.soft_count;
  return path != NULL ? path + (i * (job->step_count + 1) + t) * size : NULL;
}

/* Step t of sample i, from row t of the path to the next row. */
static qd_status rollout_step(const rollout_job *job, participant *p, int64_t i, int64_t t,
                              const qd_model *stepped, const qd_step_start *start, double *path,
                              qd_step_result *result) {
  const int64_t nq = stepped->nq, taped = t - (job->step_count - job->taped_count);
  result->q_next = path + (t + 1) * nq;
  result->v_next = rollout_velocity(job, i, t + 1);
  result->bristle = rollout_bristles(job, i, t + 1);
  result->delta = p->delta;
  result->limit_force = p->limit_force;
  result->constraint_force = p->constraint_force;
  result->tendon_force = p->tendon_force;
  result->actuator_force = NULL;
  sample_read_bristles(p, stepped, rollout_bristles(job, i, t));
  qd_status status = sample_read(&job->steps, p, i, t, path + t * nq, rollout_velocity(job, i, t));
  if (status != QD_OK) {
    return status;
  }
  if (job->steps.input->feedback != NULL) {
    feedback_react(job, p, i, t);
  }
  if (taped < 0) {
    return sample_step(&job->steps, p, stepped, start, result, NULL);
  }
  taped_step *s = p->tape->steps[taped];
  status = sample_record(&job->steps, job->steps.options, p, stepped, start, s);
  memcpy(result->q_next, s->result.q_next, (size_t)nq * sizeof(double));
  if (result->v_next != NULL) {
    memcpy(result->v_next, s->result.v_next, (size_t)stepped->nv * sizeof(double));
  }
  *result = s->result;
  return status;
}

qd_status rollout_sample(const rollout_job *job, const run *r, int k, int64_t i,
                         const qd_model *stepped) {
  const qd_model *model = r->batch->model;
  const qd_batch_input *in = job->steps.input;
  participant *p = r->batch->participants[k];
  const int64_t nq = model->nq;
  const size_t bristle_size = QD_BRISTLES * (size_t)model->pair.soft_count * sizeof(double);
  double *path = job->q + i * (job->step_count + 1) * nq;
  int joint;
  qd_status status = qd_normalize(model, in->q + i * in->q_stride, path, &joint);
  int64_t t = 0;
  const qd_step_start *start = sample_start(&job->steps, i);
  qd_step_result result;
  memset(&result, 0, sizeof result);
  if (status != QD_OK) {
    memcpy(path, in->q + i * in->q_stride, (size_t)nq * sizeof(double));
  }
  if (in->v_path != NULL) {
    memcpy(rollout_velocity(job, i, 0), in->v + i * in->v_stride,
           (size_t)model->nv * sizeof(double));
  }
  if (in->bristle_path != NULL) {
    sample_read_bristles(p, model,
                         in->bristle != NULL ? in->bristle + i * in->bristle_stride : NULL);
    memcpy(rollout_bristles(job, i, 0), p->bristle, bristle_size);
  }
  while (status == QD_OK && t < job->step_count && !run_is_stopped(r, k)) {
    status = rollout_step(job, p, i, t, stepped, start, path, &result);
    if (status == QD_OK && in->warm_start && t + 1 < job->step_count) {
      status = participant_keep(p, model, &result);
      start = &p->start;
    }
    t += status == QD_OK;
  }
  if (status != QD_OK) {
    sample_note_failure(p, i, t, status, &result);
  }
  job->steps_done[i] = t;
  job->status[i] = (int32_t)status;
  if (in->feedback != NULL) {
    numbers_fill(in->feedback->u + (i * job->step_count + t) * model->nu,
                 (job->step_count - t) * model->nu, NAN);
  }
  for (; t < job->step_count; ++t) {
    memcpy(path + (t + 1) * nq, path + t * nq, (size_t)nq * sizeof(double));
    if (in->v_path != NULL) {
      memcpy(rollout_velocity(job, i, t + 1), rollout_velocity(job, i, t),
             (size_t)model->nv * sizeof(double));
    }
    if (in->bristle_path != NULL) {
      memcpy(rollout_bristles(job, i, t + 1), rollout_bristles(job, i, t), bristle_size);
    }
  }
  return status;
}

static void rollout_one(const run *r, int k, int64_t i) {
  const rollout_job *job = r->job;
  rollout_sample(job, r, k, i, sample_model(&job->steps, r->batch->participants[k], i));
}

qd_status qd_rollout_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_step_options *options, const qd_batch_input *input,
                           int64_t step_count, double *q, int32_t *status, int64_t *steps_done,
                           qd_batch_failure *failure) {
  const rollout_job job = {
      step_job_of(batch->model, options, input), step_count, q, status, steps_done, 0};
  run r = {.batch = batch,
           .sample_count = input->sample_count,
           .job = &job,
           .sample = rollout_one,
           .with_parameters = job.steps.with_parameters};
  qd_status done = run_prepare(&r, thread_count);
  if (done == QD_OK) {
    done = run_all(&r, pool, thread_count);
    run_first_failure(&r, failure);
  }
  return done;
}
