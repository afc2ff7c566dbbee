#include "binding/batch/batch_call.h"

#include <string.h>

qd_thread_pool *thread_pool_of(core_state *state) {
  qd_thread_pool *pool = atomic_load(&state->thread_pool);
  if (pool) {
    return pool;
  }
  qd_thread_pool *fresh = qd_thread_pool_create();
  if (fresh && !atomic_compare_exchange_strong(&state->thread_pool, &pool, fresh)) {
    qd_thread_pool_destroy(fresh);
    fresh = pool;
  }
  return fresh;
}

qd_batch *batch_acquire(model_object *model) {
  qd_batch *batch = atomic_exchange(&model->batch, NULL);
  return batch ? batch : qd_batch_create(model->model);
}

void batch_release(model_object *model, qd_batch *batch) {
  if (batch) {
    qd_batch_destroy(atomic_exchange(&model->batch, batch));
  }
}

int strides_fit(PyArrayObject *array) {
  const npy_intp item = (npy_intp)sizeof(double);
  int last = PyArray_NDIM(array) - 1;
  if (PyArray_SIZE(array) == 0) {
    return 1;
  }
  if (PyArray_DIM(array, last) > 1 && PyArray_STRIDE(array, last) != item) {
    return 0;
  }
  for (int i = 0; i < last; i++) {
    if (PyArray_STRIDE(array, i) % item != 0) {
      return 0;
    }
  }
  return 1;
}

const double *rows_read(PyObject *object, const char *name, npy_intp *count, int width,
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

int velocities_read(batch_call *call, PyObject *v, const char *name, npy_intp *count) {
  qd_batch_input *in = &call->input;
  if (v == Py_None) {
    return 0;
  }
  in->v = rows_read(v, name, count, call->step.model->nv, &in->v_stride);
  return in->v ? 0 : -1;
}

int bristles_read(batch_call *call, PyObject *bristles, npy_intp *count) {
  qd_batch_input *in = &call->input;
  if (bristles == Py_None) {
    return 0;
  }
  in->bristle = rows_read(bristles, "bristles", count,
                          QD_BRISTLES * call->step.model->soft_pair_count, &in->bristle_stride);
  return in->bristle ? 0 : -1;
}

int has_bristles(const batch_call *call) {
  return call->input.v && call->step.settings.patch_law == QD_PATCH_BRISTLE;
}

int parameters_read(batch_call *call, PyObject *object) {
  qd_batch_input *in = &call->input;
  if (object == Py_None) {
    return 0;
  }
  if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) != QD_PARAMETER_COUNT) {
    PyErr_SetString(PyExc_ValueError, "parameters: expected rows or None for every parameter");
    return -1;
  }
  npy_intp count = (npy_intp)in->sample_count;
  for (int i = 0; i < QD_PARAMETER_COUNT; i++) {
    PyObject *rows = PyTuple_GET_ITEM(object, i);
    int size = qd_parameter_size(call->step.model->model, (qd_parameter)i);
    if (rows != Py_None &&
        !(in->parameter[i] = rows_read(rows, qd_parameter_name((qd_parameter)i), &count, size,
                                       &in->parameter_stride[i]))) {
      return -1;
    }
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
      !model_of(state, model)) {
    return NULL;
  }
  if (parameter < 0 || parameter >= QD_PARAMETER_COUNT) {
    PyErr_SetString(PyExc_ValueError, "parameter: there is none of this number");
    return NULL;
  }
  const qd_model *native = ((model_object *)model)->model;
  const double *rows = rows_read(object, qd_parameter_name((qd_parameter)parameter), &count,
                                 qd_parameter_size(native, (qd_parameter)parameter), &stride);
  if (!rows) {
    return NULL;
  }
  if (stride == 0 && count > 1) {
    count = 1;
  }
  for (npy_intp i = 0; i < count; i++) {
    int index;
    const char *reason;
    if (qd_parameter_check(native, (qd_parameter)parameter, rows + i * stride, &index, &reason) !=
        QD_OK) {
      return Py_BuildValue("nis", i, index, reason);
    }
  }
  Py_RETURN_NONE;
}

int batch_begin(batch_call *call, core_state *state, const char *name, PyObject *model,
                PyObject *options, PyObject *threads, int dynamic) {
  memset(call, 0, sizeof *call);
  if (int_read(threads, "threads", &call->threads) < 0) {
    return -1;
  }
  if (step_call_configure(&call->step, state, name, model, options, dynamic) < 0) {
    memset(&call->step, 0, sizeof call->step); /* it has released everything */
    return -1;
  }
  call->state = state;
  call->pool = thread_pool_of(state);
  call->batch = batch_acquire(call->step.model);
  if (call->pool && call->batch) {
    return 0;
  }
  PyErr_NoMemory();
  return -1;
}

void batch_end(batch_call *call) {
  batch_start_end(&call->start);
  if (call->step.model) {
    batch_release(call->step.model, call->batch);
  }
  step_call_end(&call->step);
}

static const double *row_of(const double *rows, int64_t i, ptrdiff_t stride, int64_t step,
                            ptrdiff_t step_stride) {
  return rows ? rows + i * stride + step * step_stride : NULL;
}

/* Describes the number that made the failed sample overflow. */
static PyObject *overflow_of(const batch_call *call, int64_t i, int64_t step) {
  const qd_batch_input *in = &call->input;
  const qd_step_input input = {
      .q = row_of(in->q, i, in->q_stride, 0, 0),
      .u = row_of(in->u, i, in->u_stride, step, in->u_step),
      .tau = row_of(in->tau, i, in->tau_stride, step, in->tau_step),
      .wrench = row_of(in->wrench, i, in->wrench_stride, step, in->wrench_step),
      .mocap = row_of(in->mocap, i, in->mocap_stride, step, in->mocap_step)};
  const double *own[QD_PARAMETER_COUNT];
  for (int k = 0; k < QD_PARAMETER_COUNT; k++) {
    own[k] = row_of(in->parameter[k], i, in->parameter_stride[k], 0, 0);
  }
  return overflow_describe(call->step.model->model, &input, own);
}

PyObject *failure_report(const batch_call *call, int with_derivative) {
  const qd_batch_failure *failure = &call->failure;
  if (failure->sample < 0) {
    Py_RETURN_NONE;
  }
  solver_info info = {.cone = failure->info,
                      .row_count = failure->row_count,
                      .contact_count = failure->contact_count,
                      .missed_pairs = failure->missed_pairs,
                      .bounce_share = 1.0,
                      .derivative_exact = with_derivative ? 0 : -1};
  return Py_BuildValue(
      "{s:L,s:L,s:N,s:N}", "sample", (long long)failure->sample, "step", (long long)failure->step,
      "info", info_create(call->step.state, &info), "culprits",
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
                        &PyTuple_Type, &culprits)) {
    return NULL;
  }
  return status_raise(state, caller, info_of(info)->cone.status, info_of(info), culprits);
}

int out_check(PyObject *out) {
  if (out == Py_None || PyDict_Check(out)) {
    return 0;
  }
  PyErr_SetString(PyExc_TypeError, "out: expected a dict of arrays or None");
  return -1;
}

/* The array of this name in out, if it has the right size and can be written to; NULL without an
 * error if there is none. qdsim.batch gives no other arrays. */
static PyObject *array_given(PyObject *out, const char *name, int type, npy_intp size) {
  PyObject *array = out == Py_None ? NULL : PyDict_GetItemString(out, name);
  if (!array) {
    return NULL;
  }
  PyArrayObject *numbers = (PyArrayObject *)array;
  if (!PyArray_Check(array) || PyArray_TYPE(numbers) != type || PyArray_SIZE(numbers) != size ||
      !PyArray_ISCARRAY(numbers)) {
    PyErr_Format(PyExc_ValueError, "out[%s]: cannot be written to", name);
    return NULL;
  }
  return Py_NewRef(array);
}

void *result_create(PyObject *results, PyObject *out, const char *name, int type, npy_intp count,
                    npy_intp rows, npy_intp columns) {
  npy_intp shape[3] = {count, rows, columns};
  int ndim = rows < 0 ? 1 : (columns < 0 ? 2 : 3);
  if (PyErr_Occurred()) {
    return NULL;
  }
  PyObject *array = array_given(out, name, type, PyArray_MultiplyList(shape, ndim));
  if (!array && !PyErr_Occurred()) {
    array = PyArray_SimpleNew(ndim, shape, type);
  }
  if (!array || PyDict_SetItemString(results, name, array) < 0) {
    Py_XDECREF(array);
    return NULL;
  }
  void *numbers = PyArray_DATA((PyArrayObject *)array);
  Py_DECREF(array); /* the results hold it */
  return numbers;
}

PyObject *results_finish(PyObject *results, const char *name, PyObject *value) {
  if (!value || PyDict_SetItemString(results, name, value) < 0) {
    Py_CLEAR(results);
  }
  Py_XDECREF(value);
  return results;
}
