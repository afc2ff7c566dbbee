/* Products of a rollout's derivatives with vectors: pullback of cotangents to the arguments, and
 * pushforward of tangents. Steps whose factors are on the tape are not computed again. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "mechanics/retraction.h"
#include "runtime/feedback.h"
#include "runtime/rollout.h"

typedef struct derivative_job {
  rollout_job rollout;
  const qd_rollout_way *way;
  const qd_step_options *options; /* for the derivatives */
  const double *cotangent;        /* input of a pullback */
  double *const *gradient;
  const double *const *tangent; /* input of a pushforward */
  double *out;
} derivative_job;

/* One sample of a derivative job. */
typedef struct passage {
  const derivative_job *job;
  const run *r;
  participant *p;
  const qd_model *model; /* with the sample's parameters */
  int64_t sample, failed_step;
  const double *path; /* (step_count + 1, nq) */
  int is_exact;
} passage;

/* Index of argument i of step t in an array for all samples. */
static int64_t place(const passage *w, int argument, int64_t t) {
  const int size = qd_argument_size(w->model, argument);
  if (argument == QD_BY_V) {
    return w->sample * size;
  }
  if (argument == QD_BY_Q) {
    return w->sample * (w->job->way->ambient ? w->model->nq : w->model->nv);
  }
  return argument < QD_BY_PARAMETER ? (w->sample * w->job->rollout.step_count + t) * size
                                    : w->sample * size;
}

/* Number of values that an argument has in all steps of a sample. */
static int64_t numbers_of(const passage *w, int argument) {
  if (argument == QD_BY_Q) {
    return w->job->way->ambient ? w->model->nq : w->model->nv;
  }
  const int once = argument >= QD_BY_PARAMETER || argument == QD_BY_V;
  const int64_t steps = !once ? w->job->rollout.step_count : 1;
  return steps * qd_argument_size(w->model, argument);
}

static int reacts(const passage *w) { return w->job->rollout.steps.input->feedback != NULL; }

/* Step t with its factor: from the tape, or computed now. NULL on failure; *status says why. */
static taped_step *factored_step(passage *w, int64_t t, qd_status *status) {
  const derivative_job *job = w->job;
  const rollout_job *rollout = &job->rollout;
  const tape *on = w->p->tape;
  const int64_t taped = t - (rollout->step_count - rollout->taped_count);
  taped_step *s = taped >= 0 ? on->steps[taped] : on->steps[rollout->taped_count];
  if (taped < 0) {
    *status = sample_read(&rollout->steps, w->p, w->sample, t, w->path + t * w->model->nq,
                          rollout_velocity(rollout, w->sample, t));
    if (*status == QD_OK) {
      if (reacts(w)) {
        feedback_react(rollout, w->p, w->sample, t);
      }
      const qd_step_start *start = t == 0 ? sample_start(&rollout->steps, w->sample) : NULL;
      *status = sample_record(&rollout->steps, job->options, w->p, w->model, start, s);
    }
    if (*status != QD_OK) {
      w->failed_step = t;
      sample_note_failure(w->p, w->sample, t, *status, &s->result);
      return NULL;
    }
  }
  w->is_exact &= s->result.derivative_exact;
  return s;
}

/* ---------------------------------------------------------------- pullback */

/* y (nv) = cotangent of configuration t */
static void cotangent_take(const passage *w, double *y, int64_t t) {
  const derivative_job *job = w->job;
  const int64_t row = w->sample * (job->rollout.step_count + 1) + t;
  if (job->way->ambient) {
    const int64_t nq = w->model->nq;
    retraction_ambient_pull(y, w->model, w->path + t * nq, job->cotangent + row * nq);
  } else {
    const int64_t nv = w->model->nv;
    memcpy(y, job->cotangent + row * nv, (size_t)nv * sizeof(double));
  }
}

/* y (nv) = cotangent of velocity t */
static void v_cotangent_take(const passage *w, double *y, int64_t t) {
  const double *given = w->job->way->v_cotangent;
  const int64_t row = w->sample * (w->job->rollout.step_count + 1) + t, nv = w->model->nv;
  numbers_fill(y, nv, 0.0);
  if (given != NULL) {
    memcpy(y, given + row * nv, (size_t)nv * sizeof(double));
  }
}

static void add_to(double *sum, const double *part, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    sum[i] += part[i];
  }
}

/* Passes the gradient with respect to the command of step t on to the state and to the input u. */
static void react_back(const passage *w, int64_t t, const taped_step *s) {
  tape *on = w->p->tape;
  double *by_u = w->job->gradient[QD_BY_U];
  feedback_pull(&w->job->rollout, on, w->sample, t, s->q);
  if (by_u != NULL) {
    memcpy(by_u + place(w, QD_BY_U, t), on->by_u, (size_t)w->model->nu * sizeof(double));
  }
}

/* Pulls the tape's cotangent, of configuration t + 1, back through step t. */
static qd_status pull_step(passage *w, int64_t t) {
  double *const *gradient = w->job->gradient;
  tape *on = w->p->tape;
  const int dynamic = w->job->options->dynamic;
  double *one[QD_ARGUMENT_COUNT] = {on->by_q};
  qd_status status = QD_OK;
  const taped_step *s = factored_step(w, t, &status);
  if (s == NULL) {
    return status;
  }
  for (int i = QD_BY_U; i < QD_ARGUMENT_COUNT; ++i) {
    if (gradient[i] != NULL && i != QD_BY_V) {
      one[i] = i < QD_BY_PARAMETER ? gradient[i] + place(w, i, t) : on->by_parameter[i];
    }
  }
  one[QD_BY_V] = dynamic ? on->by_v : NULL;
  one[QD_BY_U] = reacts(w) ? on->by_u : one[QD_BY_U];
  qd_vjp(w->model, s->workspace, w->job->options, &s->input, &s->result, 1, on->cotangent,
         dynamic ? on->v_cotangent : NULL, one);
  if (reacts(w)) {
    react_back(w, t, s);
  }
  for (int i = QD_BY_PARAMETER; i < QD_ARGUMENT_COUNT; ++i) {
    if (gradient[i] != NULL) {
      add_to(gradient[i] + place(w, i, t), one[i], qd_argument_size(w->model, i));
    }
  }
  cotangent_take(w, on->cotangent, t);
  add_to(on->cotangent, on->by_q, w->model->nv);
  if (dynamic) {
    v_cotangent_take(w, on->v_cotangent, t);
    add_to(on->v_cotangent, on->by_v, w->model->nv);
  }
  return QD_OK;
}

static void gradients_set(const passage *w, double value) {
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    if (w->job->gradient[i] != NULL) {
      numbers_fill(w->job->gradient[i] + place(w, i, 0), numbers_of(w, i), value);
    }
  }
}

static int gradients_are_finite(const passage *w) {
  for (int i = 0; i < QD_ARGUMENT_COUNT; ++i) {
    const double *gradient = w->job->gradient[i];
    if (gradient != NULL && !all_finite(gradient + place(w, i, 0), (int)numbers_of(w, i))) {
      return 0;
    }
  }
  return 1;
}

static qd_status pull_back(passage *w) {
  const derivative_job *job = w->job;
  double *y = w->p->tape->cotangent, *by_q = job->gradient[QD_BY_Q];
  qd_status status = QD_OK;
  gradients_set(w, 0.0);
  cotangent_take(w, y, job->rollout.step_count);
  v_cotangent_take(w, w->p->tape->v_cotangent, job->rollout.step_count);
  for (int64_t t = job->rollout.step_count - 1; status == QD_OK && t >= 0; --t) {
    status = pull_step(w, t);
  }
  if (status == QD_OK && by_q != NULL && job->way->ambient) {
    const qd_batch_input *in = job->rollout.steps.input;
    retraction_tangent_pull(by_q + place(w, QD_BY_Q, 0), w->model, in->q + w->sample * in->q_stride,
                            y);
  } else if (status == QD_OK && by_q != NULL) {
    memcpy(by_q + place(w, QD_BY_Q, 0), y, (size_t)w->model->nv * sizeof(double));
  }
  if (status == QD_OK && job->gradient[QD_BY_V] != NULL) {
    memcpy(job->gradient[QD_BY_V] + place(w, QD_BY_V, 0), w->p->tape->v_cotangent,
           (size_t)w->model->nv * sizeof(double));
  }
  return status == QD_OK && !gradients_are_finite(w) ? QD_NUMERICAL_TROUBLE : status;
}

/* ---------------------------------------------------------------- pushforward */

/* Writes the tangent of configuration t, which is in the tape's cotangent, to the output. */
static void tangent_put(const passage *w, int64_t t) {
  const derivative_job *job = w->job;
  const double *v = w->p->tape->cotangent;
  const int64_t row = w->sample * (job->rollout.step_count + 1) + t;
  if (job->way->ambient) {
    const int64_t nq = w->model->nq;
    retraction_ambient(job->out + row * nq, w->model, w->path + t * nq, v);
  } else {
    memcpy(job->out + row * w->model->nv, v, (size_t)w->model->nv * sizeof(double));
  }
}

/* Writes the tangent of velocity t to the output. */
static void v_tangent_put(const passage *w, int64_t t) {
  const derivative_job *job = w->job;
  const int64_t row = w->sample * (job->rollout.step_count + 1) + t, nv = w->model->nv;
  if (job->way->v_out != NULL) {
    memcpy(job->way->v_out + row * nv, w->p->tape->v_cotangent, (size_t)nv * sizeof(double));
  }
}

/* Change of the command of step t: the change of the input u, plus the feedback to the changes of
 * the state. */
static const double *react_along(const passage *w, int64_t t, const taped_step *s,
                                 const double *given) {
  tape *on = w->p->tape;
  numbers_fill(on->by_u, w->model->nu, 0.0);
  if (given != NULL) {
    memcpy(on->by_u, given, (size_t)w->model->nu * sizeof(double));
  }
  feedback_push(&w->job->rollout, on, w->sample, t, s->q);
  return on->by_u;
}

static qd_status push_step(passage *w, int64_t t) {
  const derivative_job *job = w->job;
  tape *on = w->p->tape;
  const int dynamic = job->options->dynamic;
  const double *one[QD_ARGUMENT_COUNT] = {on->cotangent};
  qd_status status = QD_OK;
  const taped_step *s = factored_step(w, t, &status);
  if (s == NULL) {
    return status;
  }
  for (int i = QD_BY_U; i < QD_ARGUMENT_COUNT; ++i) {
    one[i] = job->tangent[i] != NULL ? job->tangent[i] + place(w, i, t) : NULL;
  }
  one[QD_BY_V] = dynamic ? on->v_cotangent : NULL;
  if (reacts(w)) {
    one[QD_BY_U] = react_along(w, t, s, one[QD_BY_U]);
  }
  qd_jvp(w->model, s->workspace, job->options, &s->input, &s->result, 1, one, on->by_q,
         dynamic ? on->by_v : NULL);
  memcpy(on->cotangent, on->by_q, (size_t)w->model->nv * sizeof(double));
  tangent_put(w, t + 1);
  if (dynamic) {
    memcpy(on->v_cotangent, on->by_v, (size_t)w->model->nv * sizeof(double));
    v_tangent_put(w, t + 1);
  }
  return all_finite(on->cotangent, w->model->nv) ? QD_OK : QD_NUMERICAL_TROUBLE;
}

static qd_status push_forward(passage *w) {
  const derivative_job *job = w->job;
  const qd_batch_input *in = job->rollout.steps.input;
  const double *along = job->tangent[QD_BY_Q];
  double *v = w->p->tape->cotangent;
  qd_status status = QD_OK;
  numbers_fill(v, w->model->nv, 0.0);
  if (along != NULL && job->way->ambient) {
    retraction_tangent(v, w->model, in->q + w->sample * in->q_stride, along + place(w, QD_BY_Q, 0));
  } else if (along != NULL) {
    memcpy(v, along + place(w, QD_BY_Q, 0), (size_t)w->model->nv * sizeof(double));
  }
  tangent_put(w, 0);
  numbers_fill(w->p->tape->v_cotangent, w->model->nv, 0.0);
  if (job->tangent[QD_BY_V] != NULL) {
    memcpy(w->p->tape->v_cotangent, job->tangent[QD_BY_V] + place(w, QD_BY_V, 0),
           (size_t)w->model->nv * sizeof(double));
  }
  v_tangent_put(w, 0);
  for (int64_t t = 0; status == QD_OK && t < job->rollout.step_count; ++t) {
    status = push_step(w, t);
  }
  return status;
}

/* ---------------------------------------------------------------- samples */

static void leave_failed(const passage *w) {
  const derivative_job *job = w->job;
  if (reacts(w) && job->way->path_known) { /* otherwise the rollout has filled these */
    const int64_t size = job->rollout.step_count * w->model->nu;
    numbers_fill(job->rollout.steps.input->feedback->u + w->sample * size, size, NAN);
  }
  if (job->out != NULL) {
    const int64_t rows = job->rollout.step_count + 1;
    const int64_t size = rows * (job->way->ambient ? w->model->nq : w->model->nv);
    numbers_fill(job->out + w->sample * size, size, NAN);
    if (job->way->v_out != NULL) {
      numbers_fill(job->way->v_out + w->sample * rows * w->model->nv, rows * w->model->nv, NAN);
    }
  } else {
    gradients_set(w, NAN);
  }
}

/* Makes room on the tape for the kept steps, and for one step that is computed again. */
static qd_status tape_prepare(const rollout_job *rollout, participant *p, const qd_model *model) {
  tape *t = participant_tape(p, model);
  const int again = rollout->taped_count < rollout->step_count;
  return t != NULL ? tape_reserve(t, rollout->taped_count + again) : QD_OUT_OF_MEMORY;
}

static void differentiate_one(const run *r, int k, int64_t i) {
  const derivative_job *job = r->job;
  const rollout_job *rollout = &job->rollout;
  participant *p = r->batch->participants[k];
  passage w = {.job = job, .r = r, .p = p, .sample = i, .is_exact = 1};
  w.model = sample_model(&rollout->steps, p, i);
  w.path = rollout->q + i * (rollout->step_count + 1) * w.model->nq;
  qd_status status = tape_prepare(rollout, p, r->batch->model);
  if (status != QD_OK) {
    sample_note_failure(p, i, 0, status, &(qd_step_result){.contact_count = 0});
    rollout->status[i] = (int32_t)status;
  } else if (job->way->path_known) {
    status = (qd_status)rollout->status[i];
  } else {
    status = rollout_sample(rollout, r, k, i, w.model);
  }
  if (status == QD_OK && !run_is_stopped(r, k)) {
    status = job->out != NULL ? push_forward(&w) : pull_back(&w);
    rollout->status[i] = (int32_t)status;
    if (status != QD_OK && p->failure.sample != i) { /* a product failed, not a step */
      sample_note_failure(p, i, 0, status, &(qd_step_result){.contact_count = 0});
    }
  }
  if (status != QD_OK) {
    leave_failed(&w);
  }
  if (job->way->derivative_exact != NULL) {
    job->way->derivative_exact[i] = (uint8_t)(status == QD_OK && w.is_exact);
  }
}

/* Number of steps to keep: none if the steps to differentiate differ from those of the rollout. */
static qd_status kept_count(const derivative_job *job, qd_batch *batch, int64_t *kept) {
  const qd_rollout_way *way = job->way;
  const int64_t steps = job->rollout.step_count;
  *kept = 0;
  if (way->path_known || job->options != job->rollout.steps.options || way->kept == 0) {
    return QD_OK;
  }
  *kept = way->kept;
  if (way->kept < 0) {
    tape *t = participant_tape(batch->participants[0], batch->model);
    const int64_t affordable = t != NULL ? tape_affordable(t) : 0;
    if (affordable == 0) {
      return QD_OUT_OF_MEMORY;
    }
    *kept = affordable;
  }
  *kept = *kept < steps ? *kept : steps;
  return QD_OK;
}

static qd_status differentiate_all(derivative_job *job, qd_thread_pool *pool, int thread_count,
                                   qd_batch *batch, qd_batch_failure *failure) {
  run r = {.batch = batch,
           .sample_count = job->rollout.steps.input->sample_count,
           .job = job,
           .sample = differentiate_one,
           .with_parameters = job->rollout.steps.with_parameters};
  qd_status status = run_prepare(&r, thread_count);
  if (status == QD_OK) {
    status = kept_count(job, batch, &job->rollout.taped_count);
  }
  if (status == QD_OK) {
    status = run_all(&r, pool, thread_count);
    run_first_failure(&r, failure);
  }
  return status;
}

static derivative_job job_of(qd_batch *batch, const qd_step_options *options,
                             const qd_batch_input *input, int64_t step_count,
                             const qd_rollout_way *way, double *q, int32_t *status,
                             int64_t *steps_done) {
  return (derivative_job){
      .rollout = {step_job_of(batch->model, options, input), step_count, q, status, steps_done, 0},
      .way = way,
      .options = way->options != NULL ? way->options : options};
}

qd_status qd_rollout_vjp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *cotangent, double *const gradient[QD_ARGUMENT_COUNT],
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure) {
  derivative_job job = job_of(batch, options, input, step_count, way, q, status, steps_done);
  job.cotangent = cotangent;
  job.gradient = gradient;
  return differentiate_all(&job, pool, thread_count, batch, failure);
}

qd_status qd_rollout_jvp_batch(qd_thread_pool *pool, int thread_count, qd_batch *batch,
                               const qd_step_options *options, const qd_batch_input *input,
                               int64_t step_count, const qd_rollout_way *way,
                               const double *const tangent[QD_ARGUMENT_COUNT], double *out,
                               double *q, int32_t *status, int64_t *steps_done,
                               qd_batch_failure *failure) {
  derivative_job job = job_of(batch, options, input, step_count, way, q, status, steps_done);
  job.tangent = tangent;
  job.out = out;
  return differentiate_all(&job, pool, thread_count, batch, failure);
}
