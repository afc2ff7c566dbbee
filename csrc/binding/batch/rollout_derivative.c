/* Rollouts with products of their derivatives: rows that qdsim.batches.pulling has prepared ->
 * qd_rollout_vjp_batch and qd_rollout_jvp_batch. */
#include <string.h>

#include "binding/batch/batch_call.h"

const char rollout_derivative_doc[] =
    "_rollout_derivative($module, /, model, options, *, q, v, u, tau, wrench, mocap, parameters,\n"
    "                    threads, start, feedback, way_options, ambient, kept, path, wrt, "
    "rows)\n--\n\n"
    "Rollouts as in _rollout, with a feedback of no u_gain, and a pullback or a pushforward.\n"
    "way_options: those of the\n"
    "derivatives, None: options. path: None, or (q, status, steps_done) of the rollout, known\n"
    "before, of the second-order step (q, status, steps_done, v). wrt >= 0: bits of the arguments "
    "whose gradients are wanted, rows a tuple of the\n"
    "cotangents (samples, steps + 1, n) alone, or of these and those of the velocities (samples,\n"
    "steps + 1, nv); wrt -1: rows is a tuple of tangents or None for\n"
    "every argument. n is nq where ambient, else nv. Returns a dict of q, status, steps_done,\n"
    "derivative_exact, failure, and of gradients by the arguments' names, or tangent;\n"
    "of the second-order step also of v, and v_tangent.";

/* The arguments of _rollout_derivative, borrowed, in the order of its names. */
typedef struct derivative_job {
  PyObject *model, *options, *q, *v, *u, *tau, *wrench, *mocap, *parameters, *threads, *start,
      *feedback, *way_options, *ambient, *kept, *path, *wrt, *rows;
} derivative_job;

static const char *const DERIVATIVE_NAMES[] = {
    "model",       "options", "q",          "v",       "u",     "tau",
    "wrench",      "mocap",   "parameters", "threads", "start", "feedback",
    "way_options", "ambient", "kept",       "path",    "wrt",   "rows"};
enum { DERIVATIVE_ARGUMENTS = sizeof(derivative_job) / sizeof(PyObject *) };

typedef struct derivative_call {
  batch_call batch;
  step_call way_step; /* model and options of the derivatives */
  qd_rollout_way way;
  feedback_arrays feedback;
  npy_intp step_count;
  int wrt;
} derivative_call;

/* Number of entries of an argument over all steps of a sample. */
static npy_intp size_of(const derivative_call *call, int argument) {
  const model_object *model = call->batch.step.model;
  if (argument == QD_BY_Q) {
    return call->way.ambient ? model->nq : model->nv;
  }
  const npy_intp size = qd_argument_size(model->model, argument);
  return argument < QD_BY_PARAMETER && argument != QD_BY_V ? call->step_count * size : size;
}

static double *doubles_of(PyObject *object, const char *name, npy_intp size) {
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_Check(object) && PyArray_TYPE(array) == NPY_DOUBLE && PyArray_SIZE(array) == size &&
      PyArray_ISCARRAY_RO(array)) {
    return PyArray_DATA(array);
  }
  PyErr_Format(PyExc_ValueError, "%s: expected %zd doubles in a row", name, (Py_ssize_t)size);
  return NULL;
}

static int rows_take(derivative_call *call, PyObject *rows, const double **cotangent,
                     const double *tangent[QD_ARGUMENT_COUNT]) {
  const npy_intp count = (npy_intp)call->batch.input.sample_count;
  const int dynamic = call->batch.input.v != NULL;
  const int expected = call->wrt >= 0 ? 1 + dynamic : QD_ARGUMENT_COUNT;
  if (!PyTuple_Check(rows) || PyTuple_GET_SIZE(rows) != expected) {
    PyErr_SetString(PyExc_ValueError, "rows: a tuple of another size");
    return -1;
  }
  if (call->wrt >= 0) {
    const npy_intp size = count * (call->step_count + 1) * size_of(call, QD_BY_Q);
    const npy_intp v_size = count * (call->step_count + 1) * size_of(call, QD_BY_V);
    *cotangent = doubles_of(PyTuple_GET_ITEM(rows, 0), "cotangent", size);
    if (*cotangent && dynamic) {
      call->way.v_cotangent = doubles_of(PyTuple_GET_ITEM(rows, 1), "v_cotangent", v_size);
    }
    return *cotangent && (!dynamic || call->way.v_cotangent) ? 0 : -1;
  }
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    PyObject *item = PyTuple_GET_ITEM(rows, i);
    tangent[i] = NULL;
    if (item != Py_None &&
        !(tangent[i] = doubles_of(item, qd_argument_name(i), count * size_of(call, i)))) {
      return -1;
    }
  }
  return 0;
}

typedef struct rollout_rows {
  double *q;
  int32_t *status;
  int64_t *steps_done;
} rollout_rows;

static int rollout_rows_create(derivative_call *call, PyObject *results, PyObject *path,
                               rollout_rows *out) {
  const npy_intp count = (npy_intp)call->batch.input.sample_count;
  PyObject *q, *status, *steps_done, *v = NULL;
  out->q = result_create(results, Py_None, "q", NPY_DOUBLE, count, call->step_count + 1,
                         call->batch.step.model->nq);
  if (call->batch.input.v) {
    call->batch.input.v_path = result_create(results, Py_None, "v", NPY_DOUBLE, count,
                                             call->step_count + 1, call->batch.step.model->nv);
  }
  feedback_commands_create(&call->feedback, &call->batch, results, call->step_count);
  out->status = result_create(results, Py_None, "status", NPY_INT32, count, -1, -1);
  out->steps_done = result_create(results, Py_None, "steps_done", NPY_INT64, count, -1, -1);
  call->way.derivative_exact =
      result_create(results, Py_None, "derivative_exact", NPY_BOOL, count, -1, -1);
  if (PyErr_Occurred()) {
    return -1;
  }
  call->way.path_known = path != Py_None;
  if (path == Py_None) {
    return 0;
  }
  if (!PyArg_ParseTuple(path, call->batch.input.v ? "OOOO:path" : "OOO:path", &q, &status,
                        &steps_done, &v) ||
      (v && PyArray_CopyInto((PyArrayObject *)PyDict_GetItemString(results, "v"),
                             (PyArrayObject *)v) < 0) ||
      PyArray_CopyInto((PyArrayObject *)PyDict_GetItemString(results, "q"), (PyArrayObject *)q) <
          0 ||
      PyArray_CopyInto((PyArrayObject *)PyDict_GetItemString(results, "status"),
                       (PyArrayObject *)status) < 0 ||
      PyArray_CopyInto((PyArrayObject *)PyDict_GetItemString(results, "steps_done"),
                       (PyArrayObject *)steps_done) < 0) {
    return -1;
  }
  return 0;
}

static PyObject *derivative_run(derivative_call *call, const derivative_job *job) {
  batch_call *batch = &call->batch;
  const npy_intp count = (npy_intp)batch->input.sample_count;
  const double *cotangent = NULL, *tangent[QD_ARGUMENT_COUNT];
  double *gradient[QD_ARGUMENT_COUNT] = {NULL}, *out = NULL;
  rollout_rows rows = {0};
  PyObject *results = PyDict_New(), *report = NULL;
  if (results && rows_take(call, job->rows, &cotangent, tangent) == 0 &&
      rollout_rows_create(call, results, job->path, &rows) == 0) {
    for (int i = 0; call->wrt >= 0 && i < QD_ARGUMENT_COUNT; i++) {
      if (call->wrt >> i & 1) {
        char name[64];
        PyOS_snprintf(name, sizeof name, "by %s", qd_argument_name(i));
        gradient[i] =
            result_create(results, Py_None, name, NPY_DOUBLE, count, size_of(call, i), -1);
      }
    }
    if (call->wrt < 0) {
      out = result_create(results, Py_None, "tangent", NPY_DOUBLE, count, call->step_count + 1,
                          size_of(call, QD_BY_Q));
      if (batch->input.v) {
        call->way.v_out = result_create(results, Py_None, "v_tangent", NPY_DOUBLE, count,
                                        call->step_count + 1, size_of(call, QD_BY_V));
      }
    }
  }
  if (!PyErr_Occurred()) {
    interruptible work;
    qd_status status = interruptible_begin(&work, batch->state, batch->batch);
    if (status == QD_OK) {
      status = out ? qd_rollout_jvp_batch(batch->pool, batch->threads, batch->batch,
                                          &batch->step.settings, &batch->input, call->step_count,
                                          &call->way, tangent, out, rows.q, rows.status,
                                          rows.steps_done, &batch->failure)
                   : qd_rollout_vjp_batch(batch->pool, batch->threads, batch->batch,
                                          &batch->step.settings, &batch->input, call->step_count,
                                          &call->way, cotangent, gradient, rows.q, rows.status,
                                          rows.steps_done, &batch->failure);
      interruptible_end(&work);
    }
    report = status == QD_OK
                 ? failure_report(batch, 1)
                 : status_raise(batch->step.state, batch->step.name, status, NULL, NULL);
  }
  if (!results) {
    return NULL;
  }
  return results_finish(results, "failure", report);
}

static int way_read(derivative_call *call, core_state *state, const derivative_job *job) {
  int ambient, kept;
  if (int_read(job->wrt, "wrt", &call->wrt) < 0 ||
      flag_read(job->ambient, "ambient", &ambient) < 0 || int_read(job->kept, "kept", &kept) < 0) {
    return -1;
  }
  call->way.ambient = ambient;
  call->way.kept = kept;
  if (job->way_options == Py_None) {
    return 0;
  }
  if (step_call_configure(&call->way_step, state, "rollout", job->model, job->way_options,
                          job->v != Py_None) < 0) {
    memset(&call->way_step, 0, sizeof call->way_step);
    return -1;
  }
  call->way.options = &call->way_step.settings;
  return 0;
}

static int reaction_read(derivative_call *call, PyObject *feedback) {
  if (feedback_read(&call->feedback, &call->batch, feedback, call->step_count) < 0) {
    return -1;
  }
  if (call->feedback.values.u_gain) {
    PyErr_SetString(PyExc_ValueError, "feedback: u_gain is not differentiated");
    return -1;
  }
  return 0;
}

PyObject *rollout_derivative_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                      PyObject *kwnames) {
  PyObject *out = NULL;
  core_state *state = PyModule_GetState(module);
  derivative_job job;
  derivative_call call;
  npy_intp count = -1;
  memset(&call, 0, sizeof call);
  if (arguments_parse("_rollout_derivative", DERIVATIVE_NAMES, DERIVATIVE_ARGUMENTS, 2,
                      DERIVATIVE_ARGUMENTS, args, arg_count, kwnames, (PyObject **)&job) < 0) {
    return NULL;
  }
  qd_batch_input *in = &call.batch.input;
  if (batch_begin(&call.batch, state, "rollout", job.model, job.options, job.threads,
                  job.v != Py_None) == 0 &&
      patch_law_check(&call.batch.step, 1) == 0 && way_read(&call, state, &job) == 0 &&
      (in->q = rows_read(job.q, "q0", &count, call.batch.step.model->nq, &in->q_stride)) &&
      velocities_read(&call.batch, job.v, "v0", &count) == 0) {
    in->sample_count = count;
    if (courses_read(&call.batch, job.u, job.tau, job.wrench, job.mocap, &call.step_count) == 0 &&
        parameters_read(&call.batch, job.parameters) == 0 &&
        batch_start_begin(&call.batch.start, &call.batch.step, job.start, in) == 0 &&
        reaction_read(&call, job.feedback) == 0) {
      out = derivative_run(&call, &job);
    }
  }
  feedback_end(&call.feedback);
  step_call_end(&call.way_step);
  batch_end(&call.batch);
  return out;
}
