/* Many steps of one model: blocks of samples, claimed from a counter by whoever takes part. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/lanes.h"
#include "mechanics/applied.h"
#include "runtime/participant.h"
#include "runtime/thread_pool.h"

/* Blocks per thread: enough to even out what the samples cost, few enough to leave the counter in
 * peace. */
#define BLOCKS_PER_THREAD 16
#define BLOCK_MAX 64

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

/* One call, as all of its participants see it. */
typedef struct run {
  qd_batch *batch;
  const qd_step_options *options;
  const qd_batch_input *input;
  const qd_batch_output *output; /* of steps */
  int with_derivative;
  int by_more; /* than q and u: by pullbacks */
  int with_parameters;
  int64_t step_count; /* of rollouts, with the next three */
  double *path;
  int32_t *path_status;
  int64_t *steps_done;
  double margin; /* of distances, with the next two */
  double *distance;
  int32_t *distance_status;
  const int64_t *contact_start; /* of qd_batch_contacts, with the next */
  qd_contact *gathered;
  void (*sample)(const struct run *r, int k, int64_t i);
  int64_t sample_count, block;
  _Atomic int64_t next;
  _Atomic int *stopped;
} run;

/* ---------------------------------------------------------------- scratch */

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

/* In the calling thread: asks, and tells the others. */
static void ask_whether_to_stop(const run *r) {
  const qd_batch *batch = r->batch;
  if (r->gathered == NULL && batch->stop != NULL && batch->stop(batch->stop_context)) {
    atomic_store_explicit(r->stopped, 1, memory_order_relaxed);
  }
}

static void wait_for_others(void *context) { ask_whether_to_stop(context); }

static int is_stopped(const run *r, int k) {
  if (k == 0) {
    ask_whether_to_stop(r);
  }
  return atomic_load_explicit(r->stopped, memory_order_relaxed);
}

static int has_parameters(const qd_batch_input *input) {
  for (int i = 0; i < QD_PARAMETER_COUNT; ++i) {
    if (input->parameter[i] != NULL) {
      return 1;
    }
  }
  return 0;
}

/* Room for this many participants, with the caller's made; the others make theirs. */
static qd_status participants_reserve(qd_batch *batch, int count) {
  if (batch->participant_capacity < count) {
    participant **larger = realloc(batch->participants, (size_t)count * sizeof *larger);
    if (larger == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    for (int k = batch->participant_capacity; k < count; ++k) {
      larger[k] = NULL;
    }
    batch->participants = larger;
    batch->participant_capacity = count;
  }
  for (int k = 0; k < batch->participant_capacity; ++k) {
    if (batch->participants[k] != NULL) {
      batch->participants[k]->contact_count = 0;
      batch->participants[k]->failure.sample = -1;
    }
  }
  if (batch->participants[0] == NULL) {
    batch->participants[0] = participant_create(batch->model);
    if (batch->participants[0] == NULL) {
      return QD_OUT_OF_MEMORY;
    }
    batch->participants[0]->failure.sample = -1;
  }
  return QD_OK;
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

/* ---------------------------------------------------------------- one step */

/* Copies and checks what goes in to step t of sample i; q is normalised on the way. */
static qd_status read_sample(const run *r, participant *p, int64_t i, int64_t t, const double *q) {
  const qd_model *model = r->batch->model;
  const qd_batch_input *in = r->input;
  const size_t nv = (size_t)model->nv, nw = APPLIED_WRENCH * (size_t)model->body_count;
  memcpy(p->u, in->u + i * in->u_stride + t * in->u_step, (size_t)model->nu * sizeof(double));
  if (in->tau != NULL) {
    memcpy(p->tau, in->tau + i * in->tau_stride + t * in->tau_step, nv * sizeof(double));
  }
  if (in->wrench != NULL) {
    memcpy(p->wrench, in->wrench + i * in->wrench_stride + t * in->wrench_step,
           nw * sizeof(double));
  }
  int joint;
  const qd_status status = qd_normalize(model, q, p->q, &joint);
  if (status != QD_OK) {
    memmove(p->q, q, (size_t)model->nq * sizeof(double));
  }
  return status; /* the step looks at the rest */
}

static int result_is_finite(const qd_model *model, const qd_step_result *result) {
  return all_finite(result->q_next, model->nq) && all_finite(result->delta, model->nv) &&
         all_finite(result->limit_force, model->nv) &&
         all_finite(result->constraint_force, QD_CONSTRAINT_FORCE * model->constraint_count);
}

static void fill(double *numbers, int64_t count, double value) {
  for (int64_t i = 0; numbers != NULL && i < count; ++i) {
    numbers[i] = value;
  }
}

/* Numbers of the derivative by an argument. */
static int derivative_size(const qd_model *model, int argument) {
  return model->nv * qd_argument_size(model, argument);
}

/* What a failed sample leaves: its own q, no motion, no forces, no derivative. */
static void leave_failed(const qd_model *model, const double *q, qd_step_result *result,
                         double *const *derivative) {
  memmove(result->q_next, q, (size_t)model->nq * sizeof(double));
  fill(result->delta, model->nv, 0.0);
  fill(result->limit_force, model->nv, 0.0);
  fill(result->constraint_force, QD_CONSTRAINT_FORCE * model->constraint_count, 0.0);
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    fill(derivative[k], derivative_size(model, k), NAN);
  }
  result->derivative_exact = 0;
}

/* The model that a sample is stepped with. */
static const qd_model *model_of(const run *r, participant *p, int64_t i) {
  const qd_batch_input *in = r->input;
  if (!r->with_parameters) {
    return r->batch->model;
  }
  const double *values[QD_PARAMETER_COUNT];
  for (int k = 0; k < QD_PARAMETER_COUNT; ++k) {
    const int known =
        in->parameter[k] == NULL || (in->parameter_stride[k] == 0 && p->variant_is_set);
    values[k] = known ? NULL : in->parameter[k] + i * in->parameter_stride[k];
  }
  model_variant_set(p->variant, values);
  p->variant_is_set = 1;
  return model_variant_model(p->variant);
}

/* One attempt, as the single calls make it: A and B with the step where no more is wanted. */
static qd_status step_try(const run *r, participant *p, const qd_model *model,
                          const qd_step_input *input, qd_step_result *result,
                          double *const *derivative) {
  if (!r->with_derivative) {
    return qd_step(model, p->workspace, r->options, input, result);
  }
  if (r->by_more) {
    return qd_differentiate(model, p->workspace, r->options, input, result);
  }
  return qd_linearize(model, p->workspace, r->options, input, result, derivative[QD_BY_Q],
                      derivative[QD_BY_U]);
}

/* Pullbacks of the step that qd_differentiate has left in the workspace. */
static qd_status pull_back(const run *r, participant *p, const qd_model *model,
                           const qd_step_input *input, const qd_step_result *result,
                           double *const *derivative) {
  qd_vjp(model, p->workspace, r->options, input, result, model->nv, NULL, derivative);
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    if (derivative[k] != NULL && !all_finite(derivative[k], derivative_size(model, k))) {
      return QD_NUMERICAL_TROUBLE;
    }
  }
  return QD_OK;
}

/* The step from the participant's copies; grows the workspace as needed. */
static qd_status step_run(const run *r, participant *p, const qd_model *model,
                          const qd_step_start *start, qd_step_result *result,
                          double *const *derivative) {
  const qd_step_input input = {.q = p->q,
                               .u = p->u,
                               .tau = r->input->tau != NULL ? p->tau : NULL,
                               .wrench = r->input->wrench != NULL ? p->wrench : NULL,
                               .start = start};
  qd_status status;
  do {
    status = step_try(r, p, model, &input, result, derivative);
  } while (status == QD_OUT_OF_CAPACITY &&
           (status = qd_workspace_reserve(model, p->workspace, result->contact_count)) == QD_OK);
  if (status == QD_OK && !result_is_finite(model, result)) {
    status = QD_NUMERICAL_TROUBLE;
  }
  return status == QD_OK && r->by_more ? pull_back(r, p, model, &input, result, derivative)
                                       : status;
}

static void note_failure(participant *p, int64_t i, int64_t step, qd_status status,
                         const qd_step_result *result) {
  qd_batch_failure *f = &p->failure;
  if (f->sample >= 0 && f->sample < i) {
    return;
  }
  *f = (qd_batch_failure){.sample = i,
                          .step = step,
                          .status = status,
                          .info = result->info,
                          .row_count = result->row_count,
                          .contact_count = result->contact_count,
                          .missed_pairs = result->missed_pairs};
  f->info.status = status;
  f->culprit_count = result->culprit_count;
  memcpy(f->culprit, result->culprit, sizeof f->culprit);
}

/* ---------------------------------------------------------------- samples */

static double *row(double *array, int64_t i, int64_t width) {
  return array != NULL ? array + i * width : NULL;
}

static double *row_or(double *array, int64_t i, int64_t width, double *otherwise) {
  return array != NULL ? array + i * width : otherwise;
}

/* The guess that a sample is given. */
static const qd_step_start *start_of(const qd_batch_input *in, int64_t i) {
  return in->start != NULL ? in->start + i * in->start_stride : NULL;
}

static void sample_step(const run *r, int k, int64_t i) {
  const qd_model *model = r->batch->model;
  const qd_batch_input *in = r->input;
  const qd_batch_output *out = r->output;
  participant *p = r->batch->participants[k];
  const int64_t nv = model->nv, nc = model->constraint_count;
  double *derivative[QD_ARGUMENT_COUNT] = {NULL};
  for (int j = 0; r->with_derivative && j < QD_ARGUMENT_COUNT; ++j) {
    derivative[j] = row(out->derivative[j], i, derivative_size(model, j));
  }
  qd_step_result result;
  memset(&result, 0, sizeof result);
  result.q_next = row(out->q_next, i, model->nq);
  result.delta = row_or(out->delta, i, nv, p->delta);
  result.limit_force = row_or(out->limit_force, i, nv, p->limit_force);
  result.constraint_force =
      row_or(out->constraint_force, i, QD_CONSTRAINT_FORCE * nc, p->constraint_force);
  qd_status status = read_sample(r, p, i, 0, in->q + i * in->q_stride);
  if (status == QD_OK) {
    status = step_run(r, p, model_of(r, p, i), start_of(in, i), &result, derivative);
  }
  const int64_t first = p->contact_count;
  if (status == QD_OK && out->contact_start != NULL) {
    status = participant_append(p, &result);
  }
  if (status != QD_OK) {
    note_failure(p, i, 0, status, &result);
    leave_failed(model, p->q, &result, derivative);
  }
  if (out->contact_start != NULL) {
    r->batch->places[i] = (contact_place){.first = first, .participant = k};
    out->contact_start[i + 1] = p->contact_count - first; /* summed up at the end */
  }
  if (out->derivative_exact != NULL) {
    out->derivative_exact[i] = (uint8_t)(result.derivative_exact != 0);
  }
  out->status[i] = (int32_t)status;
}

/* y += A x, A (rows, columns) */
static void add_product(double *y, const double *A, const double *x, int rows, int columns) {
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      y[i] += A[i * columns + j] * x[j];
    }
  }
}

/* p->u, so far what the input has for step t of sample i, reacts to where it begins. */
static void react(const run *r, participant *p, int64_t i, int64_t t) {
  const qd_model *model = r->batch->model;
  const qd_feedback *f = r->input->feedback;
  const int nu = model->nu, nv = model->nv;
  const int64_t at = i * r->step_count + t;
  double *u = f->u + at * nu;
  qd_difference(model, p->q, f->q_nominal + t * model->nq, p->delta);
  add_product(p->u, f->x_gain + at * nu * nv, p->delta, nu, nv);
  add_product(p->u, f->u_gain + at * nu * nu, t > 0 ? u - nu : f->u_before, nu, nu);
  for (int j = 0; j < nu; ++j) {
    p->u[j] = fmin(fmax(p->u[j], f->lower[at * nu + j]), f->upper[at * nu + j]);
  }
  memcpy(u, p->u, (size_t)nu * sizeof(double));
}

static void sample_rollout(const run *r, int k, int64_t i) {
  const qd_model *model = r->batch->model;
  const qd_batch_input *in = r->input;
  participant *p = r->batch->participants[k];
  const int64_t nq = model->nq;
  const qd_model *stepped = model_of(r, p, i);
  double *path = r->path + i * (r->step_count + 1) * nq;
  int joint;
  qd_status status = qd_normalize(model, in->q + i * in->q_stride, path, &joint);
  int64_t t = 0;
  const qd_step_start *start = start_of(in, i);
  qd_step_result result;
  memset(&result, 0, sizeof result);
  if (status != QD_OK) {
    memcpy(path, in->q + i * in->q_stride, (size_t)nq * sizeof(double));
  }
  while (status == QD_OK && t < r->step_count && !is_stopped(r, k)) {
    result.q_next = path + (t + 1) * nq;
    result.delta = p->delta;
    result.limit_force = p->limit_force;
    result.constraint_force = p->constraint_force;
    status = read_sample(r, p, i, t, path + t * nq);
    if (status == QD_OK && in->feedback != NULL) {
      react(r, p, i, t);
    }
    if (status == QD_OK) {
      status = step_run(r, p, stepped, start, &result, NULL);
    }
    if (status == QD_OK && in->warm_start && t + 1 < r->step_count) {
      status = participant_keep(p, model, &result);
      start = &p->start;
    }
    t += status == QD_OK;
  }
  if (status != QD_OK) {
    note_failure(p, i, t, status, &result);
  }
  r->steps_done[i] = t;
  r->path_status[i] = (int32_t)status;
  if (in->feedback != NULL) {
    fill(in->feedback->u + (i * r->step_count + t) * model->nu, (r->step_count - t) * model->nu,
         NAN);
  }
  for (; t < r->step_count; ++t) {
    memcpy(path + (t + 1) * nq, path + t * nq, (size_t)nq * sizeof(double));
  }
}

static void sample_distances(const run *r, int k, int64_t i) {
  const qd_model *model = r->batch->model;
  participant *p = r->batch->participants[k];
  double *distance = r->distance + i * model->pair_count;
  int joint, needed = 0;
  qd_status status = qd_normalize(model, r->input->q + i * r->input->q_stride, p->q, &joint);
  if (status == QD_OK) {
    do {
      status = qd_pair_distances(model, p->workspace, p->q, r->margin, distance, &needed);
    } while (status == QD_OUT_OF_CAPACITY &&
             (status = qd_workspace_reserve(model, p->workspace, needed)) == QD_OK);
  }
  if (status != QD_OK) {
    fill(distance, model->pair_count, NAN);
  }
  r->distance_status[i] = (int32_t)status;
}

static void sample_gather(const run *r, int k, int64_t i) {
  (void)k;
  const int64_t start = r->contact_start[i];
  const int64_t count = r->contact_start[i + 1] - start;
  if (count > 0) {
    const contact_place place = r->batch->places[i];
    memcpy(r->gathered + start, r->batch->participants[place.participant]->contacts + place.first,
           (size_t)count * sizeof(qd_contact));
  }
}

/* ---------------------------------------------------------------- the blocks */

static void take_part(void *context, int k) {
  run *r = context;
  participant **mine = &r->batch->participants[k];
  if (*mine == NULL && r->gathered == NULL) {
    if ((*mine = participant_create(r->batch->model)) == NULL) {
      return; /* no memory: the others do its blocks */
    }
    (*mine)->failure.sample = -1;
  }
  if (k > 0 && r->with_parameters && !participant_reserve_variant(*mine, r->batch->model)) {
    return;
  }
  for (;;) {
    const int64_t first = atomic_fetch_add_explicit(&r->next, r->block, memory_order_relaxed);
    if (first >= r->sample_count || is_stopped(r, k)) {
      return;
    }
    const int64_t end = first + r->block < r->sample_count ? first + r->block : r->sample_count;
    for (int64_t i = first; i < end && !is_stopped(r, k); ++i) {
      r->sample(r, k, i);
    }
  }
}

static int threads_useful(int thread_count, int64_t sample_count) {
  const int most = thread_count < QD_THREADS_MAX ? thread_count : QD_THREADS_MAX;
  return sample_count < most ? (int)sample_count : most;
}

/* The caller's own variant, without which nobody might do the work. */
static qd_status parameters_begin(run *r) {
  r->with_parameters = has_parameters(r->input);
  return !r->with_parameters ||
                 participant_reserve_variant(r->batch->participants[0], r->batch->model)
             ? QD_OK
             : QD_OUT_OF_MEMORY;
}

/* QD_STOPPED: perhaps not all samples have been done. */
static qd_status run_all(run *r, qd_thread_pool *pool, int thread_count, int64_t sample_count) {
  const int threads = threads_useful(thread_count, sample_count);
  const int64_t block = sample_count / ((int64_t)BLOCKS_PER_THREAD * (threads > 0 ? threads : 1));
  r->sample_count = sample_count;
  r->block = block < 1 ? 1 : (block > BLOCK_MAX ? BLOCK_MAX : block);
  atomic_init(&r->next, 0);
  _Atomic int stopped = 0;
  r->stopped = &stopped;
  thread_pool_run(pool, threads - 1, take_part, wait_for_others, r);
  return atomic_load(&stopped) ? QD_STOPPED : QD_OK;
}

static void first_failure(const qd_batch *batch, qd_batch_failure *failure) {
  memset(failure, 0, sizeof *failure);
  failure->sample = -1;
  for (int k = 0; k < batch->participant_capacity; ++k) {
    const participant *p = batch->participants[k];
    if (p != NULL && p->failure.sample >= 0 &&
        (failure->sample < 0 || p->failure.sample < failure->sample)) {
      *failure = p->failure;
    }
  }
}

static qd_status step_batch(run *r, qd_thread_pool *pool, int thread_count,
                            qd_batch_failure *failure) {
  const int64_t count = r->input->sample_count;
  const int threads = threads_useful(thread_count, count);
  int64_t *start = r->output->contact_start;
  qd_status status = participants_reserve(r->batch, threads > 1 ? threads : 1);
  if (status == QD_OK && start != NULL) {
    status = places_reserve(r->batch, count);
  }
  if (status == QD_OK) {
    status = parameters_begin(r);
  }
  if (status != QD_OK) {
    return status;
  }
  r->sample = sample_step;
  status = run_all(r, pool, thread_count, count);
  if (status != QD_OK) {
    return status;
  }
  if (start != NULL) {
    start[0] = 0;
    for (int64_t i = 0; i < count; ++i) {
      start[i + 1] += start[i];
    }
  }
  first_failure(r->batch, failure);
  return QD_OK;
}

qd_status qd_step_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                        const qd_step_options *options, const qd_batch_input *input,
                        const qd_batch_output *output, qd_batch_failure *failure) {
  run r = {.batch = batch, .options = options, .input = input, .output = output};
  return step_batch(&r, pool, thread_count, failure);
}

qd_status qd_linearize_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                             const qd_step_options *options, const qd_batch_input *input,
                             const qd_batch_output *output, qd_batch_failure *failure) {
  run r = {.batch = batch, .options = options, .input = input, .output = output};
  r.with_derivative = 1;
  for (int k = 0; k < QD_ARGUMENT_COUNT; ++k) {
    r.by_more |= output->derivative[k] != NULL && k != QD_BY_Q && k != QD_BY_U;
  }
  return step_batch(&r, pool, thread_count, failure);
}

void qd_batch_contacts(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                       int64_t sample_count, const int64_t *contact_start, qd_contact *contacts) {
  run r = {.batch = batch, .contact_start = contact_start, .gathered = contacts};
  r.sample = sample_gather;
  run_all(&r, pool,
          thread_count < batch->participant_capacity ? thread_count : batch->participant_capacity,
          sample_count);
}

qd_status qd_rollout_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                           const qd_step_options *options, const qd_batch_input *input,
                           int64_t step_count, double *q, int32_t *status, int64_t *steps_done,
                           qd_batch_failure *failure) {
  const int threads = threads_useful(thread_count, input->sample_count);
  run r = {.batch = batch, .options = options, .input = input};
  qd_status ready = participants_reserve(batch, threads > 1 ? threads : 1);
  if (ready == QD_OK) {
    ready = parameters_begin(&r);
  }
  if (ready != QD_OK) {
    return ready;
  }
  r.step_count = step_count;
  r.path = q;
  r.path_status = status;
  r.steps_done = steps_done;
  r.sample = sample_rollout;
  ready = run_all(&r, pool, thread_count, input->sample_count);
  first_failure(batch, failure);
  return ready;
}

qd_status qd_pair_distances_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                                  int64_t sample_count, const double *q, ptrdiff_t q_stride,
                                  double margin, double *distance, int32_t *status) {
  const int threads = threads_useful(thread_count, sample_count);
  const qd_batch_input input = {.sample_count = sample_count, .q = q, .q_stride = q_stride};
  run r = {.batch = batch, .input = &input, .margin = margin, .distance = distance};
  r.distance_status = status;
  const qd_status ready = participants_reserve(batch, threads > 1 ? threads : 1);
  if (ready != QD_OK) {
    return ready;
  }
  r.sample = sample_distances;
  return run_all(&r, pool, thread_count, sample_count);
}
