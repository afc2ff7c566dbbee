/* Batches: one step from each of many samples of a model, and their contacts. */
#include <stdlib.h>
#include <string.h>

#include "runtime/run.h"
#include "runtime/sample.h"

typedef struct batch_job {
  step_job steps;
  const qd_batch_output *output;
} batch_job;

/* Arguments of qd_batch_contacts. */
typedef struct gather_job {
  const int64_t *contact_start;
  qd_contact *contacts;
} gather_job;

qd_batch *qd_batch_create(const qd_model *model) {
  qd_batch *batch = calloc(1, sizeof *batch);
  if (batch != NULL) {
    batch->model = model;
  }
  return batch;
}

void qd_batch_destroy(qd_batch *batch) {
  if (batch != NULL) {
    for (int k = 0; k < batch->participant_capacity; ++k) {
      participant_destroy(batch->participants[k]);
    }
    free(batch->participants);
    free(batch->places);
    free(batch);
  }
}

void qd_batch_set_stop(qd_batch *batch, int (*stop)(void *context), void *context) {
  batch->stop = stop;
  batch->stop_context = context;
}

static qd_status places_reserve(qd_batch *batch, int64_t count) {
  if (batch->place_capacity < count) {
    contact_place *larger = malloc((size_t)count * sizeof *larger);
    if (larger == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    free(batch->places);
    batch->places = larger;
    batch->place_capacity = count;
  }
  return QD_OK;
}

static double *row(double *array, int64_t i, int64_t width) {
  return array != NULL ? array + i * width : NULL;
}

static double *row_or(double *array, int64_t i, int64_t width, double *otherwise) {
  return array != NULL ? array + i * width : otherwise;
}

static void step_one(const run *r, int k, int64_t i) {
  const batch_job *job = r->job;
  const qd_model *model = r->batch->model;
  const qd_batch_input *in = job->steps.input;
  const qd_batch_output *out = job->output;
  participant *p = r->batch->participants[k];
  const int64_t nv = model->nv, nc = model->constraint.count;
  const int64_t nb = QD_BRISTLES * (int64_t)model->pair.soft_count;
  double *derivative[QD_ARGUMENT_COUNT] = {NULL};
  for (int j = 0; job->steps.with_derivative && j < QD_ARGUMENT_COUNT; ++j) {
    derivative[j] = row(out->derivative[j], i, derivative_size(model, j));
  }
  qd_step_result result;
  memset(&result, 0, sizeof result);
  result.q_next = row(out->q_next, i, model->nq);
  result.v_next = row(out->v_next, i, nv);
  result.bristle = row(out->bristle, i, nb);
  result.delta = row_or(out->delta, i, nv, p->delta);
  result.limit_force = row_or(out->limit_force, i, nv, p->limit_force);
  result.constraint_force =
      row_or(out->constraint_force, i, QD_CONSTRAINT_FORCE * nc, p->constraint_force);
  result.actuator_force = row(out->actuator_force, i, 2 * (int64_t)model->nu);
  result.tendon_force = row_or(out->tendon_force, i, model->tendon.count, p->tendon_force);
  sample_read_bristles(p, model, in->bristle != NULL ? in->bristle + i * in->bristle_stride : NULL);
  qd_status status = sample_read(&job->steps, p, i, 0, in->q + i * in->q_stride,
                                 in->v != NULL ? in->v + i * in->v_stride : NULL);
  if (status == QD_OK) {
    status = sample_step(&job->steps, p, sample_model(&job->steps, p, i),
                         sample_start(&job->steps, i), &result, derivative);
  }
  const int64_t first = p->contact_count;
  if (status == QD_OK && out->contact_start != NULL) {
    status = participant_append(p, &result);
  }
  if (status != QD_OK) {
    sample_note_failure(p, i, 0, status, &result);
    sample_leave_failed(model, p, &result, derivative);
  }
  if (out->contact_start != NULL) {
    r->batch->places[i] = (contact_place){.first = first, .participant = k};
    out->contact_start[i + 1] = p->contact_count - first; /* a count; summed up at the end */
  }
  if (out->derivative_exact != NULL) {
    out->derivative_exact[i] = (uint8_t)(result.derivative_exact != 0);
  }
  if (out->softened != NULL) {
    out->softened[i] = status == QD_OK ? (int32_t)result.softened : 0;
  }
  out->status[i] = (int32_t)status;
}

static void gather_one(const run *r, int k, int64_t i) {
  const gather_job *job = r->job;
  const int64_t start = job->contact_start[i];
  const int64_t count = job->contact_start[i + 1] - start;
  (void)k;
  if (count > 0) {
    const contact_place place = r->batch->places[i];
    memcpy(job->contacts + start, r->batch->participants[place.participant]->contacts + place.first,
           (size_t)count * sizeof(qd_contact));
  }
}

static qd_status batch_run(const batch_job *job, qd_batch *batch, qd_thread_pool *pool,
                           int thread_count, qd_batch_failure *failure) {
  const int64_t count = job->steps.input->sample_count;
  int64_t *start = job->output->contact_start;
  run r = {.batch = batch,
           .sample_count = count,
           .job = job,
           .sample = step_one,
           .with_parameters = job->steps.with_parameters};
  qd_status status = run_prepare(&r, thread_count);
  if (status == QD_OK && start != NULL) {
    status = places_reserve(batch, count);
  }
  if (status == QD_OK) {
    status = run_all(&r, pool, thread_count);
  }
  if (status != QD_OK) {
    return status;
  }
  if (start != NULL) {
    start[0] = 0;
    for (int64_t i = 0; i < count; ++i) {
      start[i + 1] += start[i];
    }
  }
  run_first_failure(&r, failure);
  return QD_OK;
}

qd_status qd_step_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                        const qd_step_options *options, const qd_batch_input *input,
                        const qd_batch_output *output, qd_batch_failure *failure) {
  const batch_job job = {step_job_of(batch->model, options, input), output};
  return batch_run(&job, batch, pool, thread_count, failure);
}

qd_status qd_linearize_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                             const qd_step_options *options, const qd_batch_input *input,
                             const qd_batch_output *output, qd_batch_failure *failure) {
  batch_job job = {step_job_of(batch->model, options, input), output};
  job.steps.with_derivative = 1;
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    job.steps.by_more |= output->derivative[k] != NULL && k != QD_BY_Q && k != QD_BY_U;
  }
  return batch_run(&job, batch, pool, thread_count, failure);
}

void qd_batch_contacts(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                       int64_t sample_count, const int64_t *contact_start, qd_contact *contacts) {
  const gather_job job = {contact_start, contacts};
  run r = {.batch = batch,
           .sample_count = sample_count,
           .job = &job,
           .sample = gather_one,
           .only_copies = 1};
  run_all(&r, pool,
          thread_count < batch->participant_capacity ? thread_count : batch->participant_capacity);
}
