/* Batches of steps: rows that qdsim.batch has prepared -> qd_step_batch and its like. */
#include "binding/batch_start.h"
#include "binding/interrupt.h"

#include <string.h>

/* ---------------------------------------------------------------- what is kept between calls */

static qd_thread_pool *thread_pool_of(core_state *state) {
  qd_thread_pool *pool = atomic_load(&state->thread_pool);
  if (pool) return pool;
  qd_thread_pool *fresh = qd_thread_pool_create();
  if (fresh && !atomic_compare_exchange_strong(&state->thread_pool, &pool, fresh)) {
    qd_thread_pool_destroy(fresh);
    fresh = pool;
  }
  return fresh;
}

/* A model keeps the scratch of one batch; calls at the same time make their own. */
static qd_batch *batch_acquire(model_object *model) {
  qd_batch *batch = atomic_exchange(&model->batch, NULL);
  return batch ? batch : qd_batch_create(model->model);
}

static void batch_release(model_object *model, qd_batch *batch) {
  if (batch) qd_batch_destroy(atomic_exchange(&model->batch, batch));
}

/* ---------------------------------------------------------------- arguments */

typedef struct batch_call {
  step_call step; /* model and settings */
  core_state *state;
  qd_thread_pool *pool;
  qd_batch *batch;
  int threads;
  qd_batch_input input;
  qd_batch_failure failure;
  batch_start start;
} batch_call;

/* The last dimension is contiguous and the others step by whole doubles; strides of an array
 * without elements mean nothing. */
static int strides_fit(PyArrayObject *array) {
  const npy_intp item = (npy_intp)sizeof(double);
  int last = PyArray_NDIM(array) - 1;
  if (PyArray_SIZE(array) == 0) return 1;
  if (PyArray_DIM(array, last) > 1 && PyArray_STRIDE(array, last) != item) return 0;
  for (int i = 0; i < last; i++)
    if (PyArray_STRIDE(array, i) % item != 0) return 0;
  return 1;
}

/* Rows (count, width) of doubles. qdsim.batch hands over nothing else. */
static const double *rows_read(PyObject *object, const char *name, npy_intp *count, int width,
                               ptrdiff_t *stride) {
  PyArrayObject *array = (PyArrayObject *)object;
  if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_DOUBLE || PyArray_NDIM(array) != 2 ||
      !PyArray_ISALIGNED(array) || PyArray_ISBYTESWAPPED(array) || PyArray_DIM(array, 1) != width ||
      (*count >= 0 && PyArray_DIM(array, 0) != *count) || !strides_fit(array)) {
    PyErr_Format(PyExc_ValueError, "%s: expected rows of %d doubles", name, width);
    return NULL;
  }
  *count = PyArray_DIM(array, 0);
  *stride = PyArray_STRIDE(array, 0) / (npy_intp)sizeof(double);
  return PyArray_DATA(array);
}

/* Parameters of the samples: None, or a tuple with rows or None for each qd_parameter. */
static int parameters_read(batch_call *call, PyObject *object) {
  qd_batch_input *in = &call->input;
  if (object == Py_None) return 0;
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != QD_PARAMETER_COUNT) {
    PyErr_SetString(PyExc_ValueError, "parameters: expected rows or None for every parameter");
    return -1;
  }
  npy_intp count = (npy_intp)in->sample_count;
  for (int i = 0; i < QD_PARAMETER_COUNT; i++) {
    PyObject *rows = PyTuple_GET_ITEM(object, i);
    int size = qd_parameter_size(call->step.model->model, (qd_parameter)i);
    if (rows != Py_None && !(in->parameter[i] = rows_read(rows, qd_parameter_name((qd_parameter)i),
                                                          &count, size, &in->parameter_stride[i])))
      return -1;
  }
  return 0;
}

const char parameter_fault_doc[] =
    "_parameter_fault($module, model, parameter, rows, /)\n--\n\n"
    "None, or (sample, element, what is wrong with it) of the first row that no model could have.";

PyObject *parameter_fault(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *model, *object;
  int parameter;
  npy_intp count = -1;
  ptrdiff_t stride;
  if (!PyArg_ParseTuple(args, "OiO:_parameter_fault", &model, &parameter, &object) ||
      !model_of(state, model))
    return NULL;
  if (parameter < 0 || parameter >= QD_PARAMETER_COUNT) {
    PyErr_SetString(PyExc_ValueError, "parameter: there is none of this number");
    return NULL;
  }
  const qd_model *native = ((model_object *)model)->model;
  const double *rows = rows_read(object, qd_parameter_name((qd_parameter)parameter), &count,
                                 qd_parameter_size(native, (qd_parameter)parameter), &stride);
  if (!rows) return NULL;
  if (stride == 0 && count > 1) count = 1;
  for (npy_intp i = 0; i < count; i++) {
    int index;
    const char *reason;
    if (qd_parameter_check(native, (qd_parameter)parameter, rows + i * stride, &index, &reason) !=
        QD_OK)
      return Py_BuildValue("nis", i, index, reason);
  }
  Py_RETURN_NONE;
}

static int batch_begin(batch_call *call, core_state *state, const char *name, PyObject *model,
                       PyObject *options, PyObject *threads) {
  memset(call, 0, sizeof *call);
  if (int_read(threads, "threads", &call->threads) < 0) return -1;
  if (step_call_configure(&call->step, state, name, model, options) < 0) {
    memset(&call->step, 0, sizeof call->step); /* it has ended itself */
    return -1;
  }
  call->state = state;
  call->pool = thread_pool_of(state);
  call->batch = batch_acquire(call->step.model);
  if (call->pool && call->batch) return 0;
  PyErr_NoMemory();
  return -1;
}

static void batch_end(batch_call *call) {
  batch_start_end(&call->start);
  if (call->step.model) batch_release(call->step.model, call->batch);
  step_call_end(&call->step);
}

static const double *row_of(const double *rows, int64_t i, ptrdiff_t stride, int64_t step,
                            ptrdiff_t step_stride) {
  return rows ? rows + i * stride + step * step_stride : NULL;
}

/* Which of the numbers of the failed sample made others overflow. */
static PyObject *overflow_of(const batch_call *call, int64_t i, int64_t step) {
  const qd_batch_input *in = &call->input;
  const qd_step_input input = {.q = row_of(in->q, i, in->q_stride, 0, 0),
                               .u = row_of(in->u, i, in->u_stride, step, in->u_step),
                               .tau = row_of(in->tau, i, in->tau_stride, step, in->tau_step),
                               .wrench =
                                   row_of(in->wrench, i, in->wrench_stride, step, in->wrench_step)};
  const double *own[QD_PARAMETER_COUNT];
  for (int k = 0; k < QD_PARAMETER_COUNT; k++)
    own[k] = row_of(in->parameter[k], i, in->parameter_stride[k], 0, 0);
  return overflow_describe(call->step.model->model, &input, own);
}

/* (index, step, SolverInfo, culprits) of the first failed sample, or None. */
static PyObject *failure_report(const batch_call *call, int with_derivative) {
  const qd_batch_failure *failure = &call->failure;
  if (failure->sample < 0) Py_RETURN_NONE;
  solver_info info = {.cone = failure->info,
                      .row_count = failure->row_count,
                      .contact_count = failure->contact_count,
                      .missed_pairs = failure->missed_pairs,
                      .derivative_exact = with_derivative ? 0 : -1};
  return Py_BuildValue(
      "LLNN", (long long)failure->sample, (long long)failure->step,
      info_create(call->step.state, &info),
      failure->status == QD_NOT_FINITE
          ? overflow_of(call, failure->sample, failure->step)
          : culprits_describe(call->step.model, failure->culprit, failure->culprit_count));
}

const char batch_failure_doc[] =
    "_raise_batch_failure($module, caller, info, culprits, /)\n--\n\nRaises "
    "what a step with this info raises.";

PyObject *batch_failure_raise(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  const char *caller;
  PyObject *info, *culprits;
  if (!PyArg_ParseTuple(args, "sO!O!:_raise_batch_failure", &caller, state->info_type, &info,
                        &PyTuple_Type, &culprits))
    return NULL;
  return status_raise(state, caller, info_of(info)->cone.status, info_of(info), culprits);
}

/* ---------------------------------------------------------------- steps */

const char batch_doc[] =
    "_batch($module, /, model, options, q, u, tau, wrench, parameters, out, threads, wrt, "
    "contacts,\n"
    "       warm_start)\n"
    "--\n\n"
    "Steps (wrt -1), or linearizations by the arguments whose bits are set in wrt, of the rows of\n"
    "q, u, tau and wrench (or None), with parameters (None, or a tuple of rows or None). out: "
    "None,\n"
    "or a tuple of arrays of the right size or None, written to in place of new ones. warm_start: "
    "see\n"
    "batch_start.h. Returns "
    "q_next,\n"
    "delta, limit_force, constraint_force, status, derivative_exact, the derivative (samples, nv,\n"
    "size) by every argument (out ends here), contact_start, contacts (None where not asked for),\n"
    "and (sample, step, SolverInfo, culprits) of the first failure or None.";

enum {
  BATCH_Q_NEXT,
  BATCH_DELTA,
  BATCH_LIMIT_FORCE,
  BATCH_CONSTRAINT_FORCE,
  BATCH_STATUS,
  BATCH_DERIVATIVE_EXACT,
  BATCH_DERIVATIVE, /* by the first argument */
  BATCH_CONTACT_START = BATCH_DERIVATIVE + QD_ARGUMENT_COUNT,
  BATCH_CONTACTS,
  BATCH_FAILURE,
  BATCH_ITEMS
};

/* The array at the index of out, if it can be written to as it is, whatever its shape; NULL without
 * an error if there is none. qdsim.batch hands over nothing else. */
static PyObject *item_given(PyObject *out, int index, int type, npy_intp size) {
  if (out == Py_None || index >= PyTuple_GET_SIZE(out)) return NULL;
  PyArrayObject *array = (PyArrayObject *)PyTuple_GET_ITEM(out, index);
  if ((PyObject *)array == Py_None) return NULL;
  if (!PyArray_Check((PyObject *)array) || PyArray_TYPE(array) != type ||
      PyArray_SIZE(array) != size || !PyArray_ISCARRAY(array)) {
    PyErr_Format(PyExc_ValueError, "out: item %d cannot be written to", index);
    return NULL;
  }
  return Py_NewRef((PyObject *)array);
}

/* Puts a new or given array at the index of the tuple and gives its data; None and NULL if not
 * wanted. */
static void *item_create(PyObject *items, PyObject *out, int index, int wanted, int type,
                         npy_intp count, npy_intp rows, npy_intp columns) {
  npy_intp shape[3] = {count, rows, columns};
  int ndim = rows < 0 ? 1 : (columns < 0 ? 2 : 3);
  npy_intp size = PyArray_MultiplyList(shape, ndim);
  PyObject *array = wanted ? item_given(out, index, type, size) : Py_NewRef(Py_None);
  if (!array && !PyErr_Occurred()) array = PyArray_SimpleNew(ndim, shape, type);
  if (!array) return NULL;
  PyTuple_SET_ITEM(items, index, array);
  return wanted ? PyArray_DATA((PyArrayObject *)array) : NULL;
}

/* A tuple of this many arrays or None, or None. */
static int out_check(PyObject *out, Py_ssize_t size) {
  if (out == Py_None || (PyTuple_Check(out) && PyTuple_GET_SIZE(out) == size)) return 0;
  PyErr_SetString(PyExc_ValueError, "out: expected a tuple of arrays");
  return -1;
}

static int output_create(PyObject *items, PyObject *given, const model_object *model,
                         npy_intp count, int wrt, int contacts, qd_batch_output *out) {
  npy_intp nq = model->nq, nv = model->nv;
  out->q_next = item_create(items, given, BATCH_Q_NEXT, 1, NPY_DOUBLE, count, nq, -1);
  out->delta = item_create(items, given, BATCH_DELTA, 1, NPY_DOUBLE, count, nv, -1);
  out->limit_force = item_create(items, given, BATCH_LIMIT_FORCE, 1, NPY_DOUBLE, count, nv, -1);
  out->constraint_force = item_create(items, given, BATCH_CONSTRAINT_FORCE, 1, NPY_DOUBLE, count,
                                      model->constraint_count, QD_CONSTRAINT_FORCE);
  out->status = item_create(items, given, BATCH_STATUS, 1, NPY_INT32, count, -1, -1);
  out->derivative_exact =
      item_create(items, given, BATCH_DERIVATIVE_EXACT, wrt >= 0, NPY_BOOL, count, -1, -1);
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++)
    out->derivative[i] = item_create(items, given, BATCH_DERIVATIVE + i, wrt >= 0 && (wrt >> i & 1),
                                     NPY_DOUBLE, count, nv, qd_argument_size(model->model, i));
  out->contact_start =
      item_create(items, given, BATCH_CONTACT_START, contacts, NPY_INT64, count + 1, -1, -1);
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject *contacts_collect(batch_call *call, const int64_t *start) {
  if (!start) Py_RETURN_NONE;
  npy_intp shape[1] = {(npy_intp)start[call->input.sample_count]};
  PyArray_Descr *descr = call->step.state->contact_descr;
  Py_INCREF(descr);
  PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, 1, shape, NULL, NULL, 0, NULL);
  if (!array) return NULL;
  qd_contact *contacts = PyArray_DATA((PyArrayObject *)array);
  interruptible work;
  if (interruptible_begin(&work, call->state, call->batch) != QD_OK) {
    Py_DECREF(array);
    return NULL;
  }
  qd_batch_contacts(call->pool, call->threads, call->batch, call->input.sample_count, start,
                    contacts);
  interruptible_end(&work);
  return array;
}

static int input_read(batch_call *call, PyObject *q, PyObject *u, PyObject *tau, PyObject *wrench) {
  const model_object *model = call->step.model;
  qd_batch_input *in = &call->input;
  npy_intp count = -1;
  if (!(in->q = rows_read(q, "q", &count, model->nq, &in->q_stride)) ||
      !(in->u = rows_read(u, "u", &count, model->nu, &in->u_stride)) ||
      (tau && tau != Py_None &&
       !(in->tau = rows_read(tau, "tau", &count, model->nv, &in->tau_stride))) ||
      (wrench && wrench != Py_None &&
       !(in->wrench =
             rows_read(wrench, "wrench", &count, 6 * model->body_count, &in->wrench_stride))))
    return -1;
  in->sample_count = count;
  return 0;
}

static PyObject *batch_run(batch_call *call, PyObject *given, int wrt, int contacts) {
  PyObject *items = PyTuple_New(BATCH_ITEMS);
  if (!items) return NULL;
  qd_batch_output out;
  if (output_create(items, given, call->step.model, (npy_intp)call->input.sample_count, wrt,
                    contacts, &out) < 0) {
    Py_DECREF(items);
    return NULL;
  }
  interruptible work;
  qd_status status = interruptible_begin(&work, call->state, call->batch);
  if (status == QD_OK) {
    status = (wrt >= 0 ? qd_linearize_batch : qd_step_batch)(call->pool, call->threads, call->batch,
                                                             &call->step.settings, &call->input,
                                                             &out, &call->failure);
    interruptible_end(&work);
  }
  PyObject *collected = status == QD_OK
                            ? contacts_collect(call, out.contact_start)
                            : status_raise(call->step.state, call->step.name, status, NULL, NULL);
  PyObject *report = collected ? failure_report(call, wrt >= 0) : NULL;
  if (!report) {
    Py_XDECREF(collected);
    Py_DECREF(items);
    return NULL;
  }
  PyTuple_SET_ITEM(items, BATCH_CONTACTS, collected);
  PyTuple_SET_ITEM(items, BATCH_FAILURE, report);
  return items;
}

PyObject *batch_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                         PyObject *kwnames) {
  static const char *const names[] = {"model",   "options", "q",          "u",
                                      "tau",     "wrench",  "parameters", "out",
                                      "threads", "wrt",     "contacts",   "warm_start"};
  PyObject *in[12], *out = NULL;
  int wrt, contacts;
  batch_call call;
  if (arguments_parse("_batch", names, 12, 12, 12, args, arg_count, kwnames, in) < 0 ||
      int_read(in[9], "wrt", &wrt) < 0 || (contacts = PyObject_IsTrue(in[10])) < 0)
    return NULL;
  if (batch_begin(&call, PyModule_GetState(module), wrt >= 0 ? "linearize_batch" : "step_batch",
                  in[0], in[1], in[8]) == 0 &&
      input_read(&call, in[2], in[3], in[4], in[5]) == 0 && parameters_read(&call, in[6]) == 0 &&
      out_check(in[7], BATCH_CONTACT_START) == 0 &&
      batch_start_begin(&call.start, &call.step, in[11], &call.input) == 0)
    out = batch_run(&call, in[7], wrt, contacts);
  batch_end(&call);
  return out;
}

/* ---------------------------------------------------------------- rollouts */

const char rollout_doc[] =
    "_rollout($module, /, model, options, q, u, tau, wrench, parameters, out, threads,\n"
    "         warm_start, start, feedback)\n--\n\n"
    "Rollouts from the rows of q (samples, nq) under u (samples, steps, nu), and tau and wrench "
    "of\n"
    "that kind or None, rows contiguous; parameters and out (q, status, steps done) as in _batch.\n"
    "warm_start: whether each step starts from the one before; start: guess for the first ones.\n"
    "feedback: None, or q_nominal (steps, nq), u_before (nu), x_gain (samples, steps, nu, nv),\n"
    "u_gain (samples, steps, nu, nu), lower and upper (samples, steps, nu) as in qd_feedback.\n"
    "Returns q (samples, steps + 1, nq), status, steps done, the commands that feedback gave or "
    "None,\n"
    "and (sample, step, SolverInfo) of the first failure or None.";

/* (samples, steps, width); *step_count -1: not known yet */
static const double *course_read(const batch_call *call, PyObject *object, const char *name,
                                 int width, npy_intp *step_count, ptrdiff_t *stride,
                                 ptrdiff_t *step) {
  PyArrayObject *array = (PyArrayObject *)object;
  const npy_intp item = (npy_intp)sizeof(double);
  if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_DOUBLE || PyArray_NDIM(array) != 3 ||
      !PyArray_ISALIGNED(array) || PyArray_ISBYTESWAPPED(array) ||
      PyArray_DIM(array, 0) != call->input.sample_count || PyArray_DIM(array, 2) != width ||
      !strides_fit(array) || (*step_count >= 0 && PyArray_DIM(array, 1) != *step_count)) {
    PyErr_Format(PyExc_ValueError, "%s: expected rows of doubles for every step of every sample",
                 name);
    return NULL;
  }
  *stride = PyArray_STRIDE(array, 0) / item;
  *step = PyArray_STRIDE(array, 1) / item;
  *step_count = PyArray_DIM(array, 1);
  return PyArray_DATA(array);
}

static int courses_read(batch_call *call, PyObject *u, PyObject *tau, PyObject *wrench,
                        npy_intp *step_count) {
  const model_object *model = call->step.model;
  qd_batch_input *in = &call->input;
  *step_count = -1;
  if (!(in->u = course_read(call, u, "u", model->nu, step_count, &in->u_stride, &in->u_step)) ||
      (tau != Py_None && !(in->tau = course_read(call, tau, "tau", model->nv, step_count,
                                                 &in->tau_stride, &in->tau_step))) ||
      (wrench != Py_None &&
       !(in->wrench = course_read(call, wrench, "wrench", 6 * model->body_count, step_count,
                                  &in->wrench_stride, &in->wrench_step))))
    return -1;
  return 0;
}

/* Arrays of a feedback, which it keeps alive: None, or (q_nominal, u_before, x_gain, u_gain, lower,
 * upper) as in qd_feedback. */
enum { FEEDBACK_ARRAYS = 6 };

typedef struct rollout_feedback {
  PyArrayObject *in[FEEDBACK_ARRAYS];
  qd_feedback values;
} rollout_feedback;

static int feedback_read(rollout_feedback *feedback, batch_call *call, PyObject *object,
                         npy_intp step_count) {
  static const char *const names[] = {"q_nominal", "u_before", "x_gain",
                                      "u_gain",    "lower",    "upper"};
  const model_object *model = call->step.model;
  const npy_intp count = (npy_intp)call->input.sample_count, nu = model->nu;
  const npy_intp path[] = {step_count, model->nq}, rows[] = {count, step_count, nu};
  const npy_intp x_gain[] = {count, step_count, nu, model->nv},
                 u_gain[] = {count, step_count, nu, nu};
  const npy_intp *const shapes[] = {path, &nu, x_gain, u_gain, rows, rows};
  static const int ranks[] = {2, 1, 4, 4, 3, 3};
  if (object == Py_None) return 0;
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != FEEDBACK_ARRAYS) {
    PyErr_SetString(PyExc_ValueError, "feedback: expected None or six arrays");
    return -1;
  }
  const double *data[FEEDBACK_ARRAYS];
  for (int k = 0; k < FEEDBACK_ARRAYS; k++) {
    feedback->in[k] = array_read(PyTuple_GET_ITEM(object, k), names[k], ranks[k], shapes[k]);
    if (!feedback->in[k]) return -1;
    data[k] = PyArray_DATA(feedback->in[k]);
  }
  feedback->values = (qd_feedback){data[0], data[1], data[2], data[3], data[4], data[5], NULL};
  call->input.feedback = &feedback->values;
  return 0;
}

static PyObject *rollout_run(batch_call *call, PyObject *out, npy_intp step_count,
                             rollout_feedback *feedback) {
  npy_intp count = (npy_intp)call->input.sample_count;
  PyObject *items = PyTuple_New(5);
  if (!items) return NULL;
  double *q =
      item_create(items, out, 0, 1, NPY_DOUBLE, count, step_count + 1, call->step.model->nq);
  int32_t *statuses = item_create(items, out, 1, 1, NPY_INT32, count, -1, -1);
  int64_t *steps_done = item_create(items, out, 2, 1, NPY_INT64, count, -1, -1);
  feedback->values.u = item_create(items, Py_None, 3, call->input.feedback != NULL, NPY_DOUBLE,
                                   count, step_count, call->step.model->nu);
  PyObject *report = NULL;
  if (!PyErr_Occurred()) {
    interruptible work;
    qd_status status = interruptible_begin(&work, call->state, call->batch);
    if (status == QD_OK) {
      status = qd_rollout_batch(call->pool, call->threads, call->batch, &call->step.settings,
                                &call->input, step_count, q, statuses, steps_done, &call->failure);
      interruptible_end(&work);
    }
    report = status == QD_OK ? failure_report(call, 0)
                             : status_raise(call->step.state, call->step.name, status, NULL, NULL);
  }
  if (report)
    PyTuple_SET_ITEM(items, 4, report);
  else
    Py_CLEAR(items);
  return items;
}

PyObject *rollout_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                           PyObject *kwnames) {
  static const char *const names[] = {"model",   "options",    "q",          "u",
                                      "tau",     "wrench",     "parameters", "out",
                                      "threads", "warm_start", "start",      "feedback"};
  PyObject *in[12], *out = NULL;
  batch_call call;
  rollout_feedback feedback = {{NULL}, {NULL}};
  npy_intp count = -1, step_count;
  if (arguments_parse("_rollout", names, 12, 12, 12, args, arg_count, kwnames, in) < 0) return NULL;
  if (batch_begin(&call, PyModule_GetState(module), "rollout", in[0], in[1], in[8]) == 0 &&
      (call.input.q = rows_read(in[2], "q0", &count, call.step.model->nq, &call.input.q_stride))) {
    call.input.sample_count = count;
    if (courses_read(&call, in[3], in[4], in[5], &step_count) == 0 &&
        parameters_read(&call, in[6]) == 0 && out_check(in[7], 3) == 0 &&
        (call.input.warm_start = PyObject_IsTrue(in[9])) >= 0 &&
        batch_start_begin(&call.start, &call.step, in[10], &call.input) == 0 &&
        feedback_read(&feedback, &call, in[11], step_count) == 0)
      out = rollout_run(&call, in[7], step_count, &feedback);
  }
  for (int k = 0; k < FEEDBACK_ARRAYS; k++) Py_XDECREF(feedback.in[k]);
  batch_end(&call);
  return out;
}

/* ---------------------------------------------------------------- distances */

const char pair_distances_doc[] =
    "_pair_distances($module, /, model, q, margin, threads)\n--\n\n"
    "Distances (samples, pair_count) of the rows of q, margin where a pair is farther apart, and\n"
    "the status of each sample.";

static PyObject *pair_distances_run(core_state *state, model_object *model, qd_thread_pool *pool,
                                    qd_batch *batch, const double *q, ptrdiff_t stride,
                                    npy_intp count, double margin, int threads) {
  PyObject *items = PyTuple_New(2);
  if (!items) return NULL;
  double *distance = item_create(items, Py_None, 0, 1, NPY_DOUBLE, count, model->pair_count, -1);
  int32_t *codes = item_create(items, Py_None, 1, 1, NPY_INT32, count, -1, -1);
  if (!PyErr_Occurred()) {
    interruptible work;
    qd_status status = interruptible_begin(&work, state, batch);
    if (status == QD_OK) {
      status =
          qd_pair_distances_batch(pool, threads, batch, count, q, stride, margin, distance, codes);
      interruptible_end(&work);
    }
    if (status == QD_OK) return items;
    status_raise(state, "pair_distances", status, NULL, NULL);
  }
  Py_DECREF(items);
  return NULL;
}

PyObject *pair_distances_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames) {
  static const char *const names[] = {"model", "q", "margin", "threads"};
  core_state *state = PyModule_GetState(module);
  PyObject *in[4], *out = NULL;
  double margin;
  int threads;
  npy_intp count = -1;
  ptrdiff_t stride;
  if (arguments_parse("_pair_distances", names, 4, 4, 4, args, arg_count, kwnames, in) < 0)
    return NULL;
  model_object *model = model_of(state, in[0]);
  const double *q = model ? rows_read(in[1], "q", &count, model->nq, &stride) : NULL;
  if (!q || number_read(in[2], "margin", &margin) < 0 || int_read(in[3], "threads", &threads) < 0)
    return NULL;
  qd_thread_pool *pool = thread_pool_of(state);
  qd_batch *batch = batch_acquire(model);
  if (pool && batch)
    out = pair_distances_run(state, model, pool, batch, q, stride, count, margin, threads);
  else
    PyErr_NoMemory();
  batch_release(model, batch);
  return out;
}
