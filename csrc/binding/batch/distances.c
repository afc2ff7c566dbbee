/* Distances of all pairs, and meetings of bodies along lines: rows from Python ->
 * qd_pair_distances_batch, qd_meetings_batch. */
#include "binding/batch/batch_call.h"

const char pair_distances_doc[] =
    "_pair_distances($module, /, model, q, margin, threads)\n--\n\n"
    "A dict of distance (samples, pair_count) of the rows of q, margin where a pair is farther\n"
    "apart, and the status of each sample.";

static PyObject *pair_distances_run(core_state *state, model_object *model, qd_thread_pool *pool,
                                    qd_batch *batch, const double *q, ptrdiff_t stride,
                                    npy_intp count, double margin, int threads) {
  PyObject *results = PyDict_New();
  if (!results) {
    return NULL;
  }
  double *distance =
      result_create(results, Py_None, "distance", NPY_DOUBLE, count, model->pair_count, -1);
  int32_t *codes = result_create(results, Py_None, "status", NPY_INT32, count, -1, -1);
  if (!PyErr_Occurred()) {
    interruptible work;
    qd_status status = interruptible_begin(&work, state, batch);
    if (status == QD_OK) {
      status =
          qd_pair_distances_batch(pool, threads, batch, count, q, stride, margin, distance, codes);
      interruptible_end(&work);
    }
    if (status == QD_OK) {
      return results;
    }
    status_raise(state, "pair_distances", status, NULL, NULL);
  }
  Py_DECREF(results);
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
  if (arguments_parse("_pair_distances", names, 4, 4, 4, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  model_object *model = model_of(state, in[0]);
  const double *q = model ? rows_read(in[1], "q", &count, model->nq, &stride) : NULL;
  if (!q || number_read(in[2], "margin", &margin) < 0 || int_read(in[3], "threads", &threads) < 0) {
    return NULL;
  }
  qd_thread_pool *pool = thread_pool_of(state);
  qd_batch *batch = batch_acquire(model);
  if (pool && batch) {
    out = pair_distances_run(state, model, pool, batch, q, stride, count, margin, threads);
  } else {
    PyErr_NoMemory();
  }
  batch_release(model, batch);
  return out;
}

const char meetings_doc[] =
    "_meetings($module, /, model, q, rate, way, gap)\n--\n\n"
    "A dict of travel (samples,), distance (samples, pair_count) and status of the lines\n"
    "q + s rate; way (samples, 3): longest stride, end, tolerance; gap (samples, pair_count).";

static PyObject *meetings_run(core_state *state, model_object *model, qd_batch *batch,
                              npy_intp count, const double *const in[4]) {
  PyObject *results = PyDict_New();
  if (!results) {
    return NULL;
  }
  double *travel = result_create(results, Py_None, "travel", NPY_DOUBLE, count, -1, -1);
  double *distance =
      result_create(results, Py_None, "distance", NPY_DOUBLE, count, model->pair_count, -1);
  int32_t *codes = result_create(results, Py_None, "status", NPY_INT32, count, -1, -1);
  if (!PyErr_Occurred()) {
    interruptible work;
    qd_status status = interruptible_begin(&work, state, batch);
    if (status == QD_OK) {
      status = qd_meetings_batch(batch, count, in[0], in[1], in[2], in[3], travel, distance, codes);
      interruptible_end(&work);
    }
    if (status == QD_OK) {
      return results;
    }
    status_raise(state, "close_grasp", status, NULL, NULL);
  }
  Py_DECREF(results);
  return NULL;
}

PyObject *meetings_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                            PyObject *kwnames) {
  static const char *const names[] = {"model", "q", "rate", "way", "gap"};
  core_state *state = PyModule_GetState(module);
  PyObject *in[5], *out = NULL;
  npy_intp count = -1;
  if (arguments_parse("_meetings", names, 5, 5, 5, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  model_object *model = model_of(state, in[0]);
  if (!model) {
    return NULL;
  }
  const int widths[4] = {model->nq, model->nq, 3, model->pair_count};
  const double *rows[4];
  for (int k = 0; k < 4; ++k) {
    ptrdiff_t stride;
    rows[k] = rows_read(in[k + 1], names[k + 1], &count, widths[k], &stride);
    if (!rows[k]) {
      return NULL;
    }
    if (count > 1 && stride != widths[k]) {
      PyErr_Format(PyExc_ValueError, "%s: expected rows without gaps", names[k + 1]);
      return NULL;
    }
  }
  qd_batch *batch = batch_acquire(model);
  if (batch) {
    out = meetings_run(state, model, batch, count, rows);
  } else {
    PyErr_NoMemory();
  }
  batch_release(model, batch);
  return out;
}
