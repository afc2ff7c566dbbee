/* _solve_lcp, _solve_mlcp, _solve_coulomb: complementarity problems. Python's qdsim.complementarity
 * checks the user's arguments, and raises. */
#include "binding/interrupt.h"

#include <time.h>

static double seconds_since(const struct timespec *begin) {
  struct timespec end;
  clock_gettime(CLOCK_MONOTONIC, &end);
  return (double)(end.tv_sec - begin->tv_sec) + 1e-9 * (double)(end.tv_nsec - begin->tv_nsec);
}

static PyObject *vectors_release(PyObject **out, int count) {
  while (count-- > 0) {
    Py_CLEAR(out[count]);
  }
  return NULL;
}

static PyObject *vectors_new(PyObject **out, const npy_intp *sizes, int count) {
  for (int i = 0; i < count; ++i) {
    if (!(out[i] = array_new_vector((int)sizes[i]))) {
      return vectors_release(out, i);
    }
  }
  return out[0];
}

static double *data(PyObject *array) { return PyArray_DATA((PyArrayObject *)array); }

static void arrays_clear(PyArrayObject **arrays, int count) {
  for (int i = 0; i < count; ++i) {
    Py_CLEAR(arrays[i]);
  }
}

/* The report (status, ...) of the linear solvers. */
static PyObject *lcp_report(const qd_lcp_info *info, double seconds) {
  return Py_BuildValue("(siiiOdd)", qd_status_name(info->status), info->pivots,
                       info->refactorizations, info->tries, info->ended_on_ray ? Py_True : Py_False,
                       info->residual, seconds);
}

/* A solve that a signal may end, and its time. */
typedef struct solve_timer {
  interruptible work;
  struct timespec begin;
} solve_timer;

/* Sets the stop callback in a solver's options. */
static int solve_begin(solve_timer *timer, PyObject *module, int (**stop)(void *context),
                       void **context) {
  if (interruptible_begin(&timer->work, PyModule_GetState(module), NULL) != QD_OK) {
    return -1;
  }
  *stop = timer->work.stop;
  *context = &timer->work;
  clock_gettime(CLOCK_MONOTONIC, &timer->begin);
  return 0;
}

static double solve_end(solve_timer *timer) {
  const double seconds = seconds_since(&timer->begin);
  interruptible_end(&timer->work);
  return seconds;
}

/* ---------------------------------------------------------------- linear, and mixed */

const char lcp_solve_doc[] = "_solve_lcp($module, M, q, tolerance, pivot_limit, /)\n--\n\n"
                             "(z, w, report); qdsim.solve_lcp is the public door.";

PyObject *lcp_solve_function(PyObject *module, PyObject *args) {
  PyObject *in[2], *out[2];
  qd_lcp_options options = qd_lcp_options_default();
  if (!PyArg_ParseTuple(args, "OOdi", in, in + 1, &options.tolerance, &options.pivot_limit)) {
    return NULL;
  }
  const npy_intp any = -1;
  PyArrayObject *arrays[2] = {NULL, array_read(in[1], "q", 1, &any)};
  if (!arrays[1]) {
    return NULL;
  }
  const npy_intp n = PyArray_DIM(arrays[1], 0), square[2] = {n, n}, sizes[2] = {n, n};
  if (!(arrays[0] = array_read(in[0], "M", 2, square)) || !vectors_new(out, sizes, 2)) {
    arrays_clear(arrays, 2);
    return NULL;
  }
  qd_lcp_info info = {.status = QD_OUT_OF_MEMORY};
  solve_timer timer;
  if (solve_begin(&timer, module, &options.stop, &options.stop_context) < 0) {
    arrays_clear(arrays, 2);
    return vectors_release(out, 2);
  }
  qd_lcp_workspace *workspace = qd_lcp_workspace_create((int)n);
  if (workspace) {
    qd_lcp_solve(workspace, &options, PyArray_DATA(arrays[0]), PyArray_DATA(arrays[1]),
                 data(out[0]), data(out[1]), &info);
  }
  qd_lcp_workspace_destroy(workspace);
  const double seconds = solve_end(&timer);
  arrays_clear(arrays, 2);
  if (timer.work.has_raised) {
    return vectors_release(out, 2);
  }
  return Py_BuildValue("(NNN)", out[0], out[1], lcp_report(&info, seconds));
}

const char mlcp_solve_doc[] =
    "_solve_mlcp($module, A, C, D, B, a, b, tolerance, pivot_limit, /)\n--\n\n"
    "(u, v, w, report); qdsim.solve_mlcp is the public door.";

PyObject *mlcp_solve_function(PyObject *module, PyObject *args) {
  static const char *const names[] = {"A", "C", "D", "B", "a", "b"};
  PyObject *in[6], *out[3];
  PyArrayObject *arrays[6] = {NULL};
  qd_lcp_options options = qd_lcp_options_default();
  if (!PyArg_ParseTuple(args, "OOOOOOdi", in, in + 1, in + 2, in + 3, in + 4, in + 5,
                        &options.tolerance, &options.pivot_limit)) {
    return NULL;
  }
  const npy_intp any[2] = {-1, -1};
  for (int i = 0; i < 6; ++i) {
    if (!(arrays[i] = array_read(in[i], names[i], i < 4 ? 2 : 1, any))) {
      arrays_clear(arrays, 6);
      return NULL;
    }
  }
  const npy_intp equalities = PyArray_DIM(arrays[0], 0), count = PyArray_DIM(arrays[0], 1);
  const npy_intp n = PyArray_DIM(arrays[3], 0), sizes[3] = {count, n, n};
  if (!vectors_new(out, sizes, 3)) {
    arrays_clear(arrays, 6);
    return NULL;
  }
  const qd_mlcp_problem problem = {PyArray_DATA(arrays[0]), PyArray_DATA(arrays[1]),
                                   PyArray_DATA(arrays[2]), PyArray_DATA(arrays[3]),
                                   PyArray_DATA(arrays[4]), PyArray_DATA(arrays[5])};
  qd_lcp_info info = {.status = QD_OUT_OF_MEMORY};
  solve_timer timer;
  if (solve_begin(&timer, module, &options.stop, &options.stop_context) < 0) {
    arrays_clear(arrays, 6);
    return vectors_release(out, 3);
  }
  qd_mlcp_workspace *workspace = qd_mlcp_workspace_create((int)equalities, (int)count, (int)n);
  if (workspace) {
    qd_mlcp_solve(workspace, &options, &problem, data(out[0]), data(out[1]), data(out[2]), &info);
  }
  qd_mlcp_workspace_destroy(workspace);
  const double seconds = solve_end(&timer);
  arrays_clear(arrays, 6);
  if (timer.work.has_raised) {
    return vectors_release(out, 3);
  }
  return Py_BuildValue("(NNNN)", out[0], out[1], out[2], lcp_report(&info, seconds));
}

/* ---------------------------------------------------------------- Coulomb */

enum { DIM, KIND, ROW_START, COLUMN, VALUE, OFFSET, WEIGHT, COULOMB_ARRAYS };

static int coulomb_read(PyObject *const *in, PyArrayObject **arrays) {
  static const char *const names[] = {"dims", "kinds", "W", "W", "W", "q", "mu"};
  const npy_intp any = -1;
  for (int i = 0; i < COULOMB_ARRAYS; ++i) {
    arrays[i] = (i < VALUE ? array_read_int : array_read)(in[i], names[i], 1, &any);
    if (!arrays[i]) {
      return -1;
    }
  }
  return 0;
}

static PyObject *coulomb_report(const qd_coulomb_info *info, double seconds) {
  return Py_BuildValue("(ssOiiddddddiid)", qd_status_name(info->status),
                       qd_coulomb_method_name(info->method), info->unique ? Py_True : Py_False,
                       info->iterations, info->factorizations, info->error, info->penetration,
                       info->cone, info->normal_power, info->slip_power, info->free, info->row,
                       info->other, seconds);
}

const char coulomb_solve_doc[] =
    "_solve_coulomb($module, dims, kinds, row_start, column, value, q, weight, tolerance,\n"
    "               iteration_limit, stop_after, repeat, /)\n--\n\n"
    "(force, w, report); qdsim.solve_coulomb is the public door.";

PyObject *coulomb_solve_function(PyObject *module, PyObject *args) {
  PyObject *in[COULOMB_ARRAYS], *out[2];
  PyArrayObject *arrays[COULOMB_ARRAYS] = {NULL};
  qd_coulomb_options options = qd_coulomb_options_default();
  int repeat;
  if (!PyArg_ParseTuple(args, "OOOOOOOdiii", in, in + 1, in + 2, in + 3, in + 4, in + 5, in + 6,
                        &options.tolerance, &options.iteration_limit, &options.stop_after,
                        &repeat)) {
    return NULL;
  }
  if (coulomb_read(in, arrays) < 0) {
    arrays_clear(arrays, COULOMB_ARRAYS);
    return NULL;
  }
  const npy_intp n = PyArray_DIM(arrays[OFFSET], 0), sizes[2] = {n, n};
  if (!vectors_new(out, sizes, 2)) {
    arrays_clear(arrays, COULOMB_ARRAYS);
    return NULL;
  }
  const qd_coulomb_problem problem = {.block_count = (int)PyArray_DIM(arrays[DIM], 0),
                                      .block_dim = PyArray_DATA(arrays[DIM]),
                                      .block_kind = PyArray_DATA(arrays[KIND]),
                                      .row_start = PyArray_DATA(arrays[ROW_START]),
                                      .column = PyArray_DATA(arrays[COLUMN]),
                                      .value = PyArray_DATA(arrays[VALUE]),
                                      .q = PyArray_DATA(arrays[OFFSET]),
                                      .weight = PyArray_DATA(arrays[WEIGHT])};
  qd_coulomb_info info = {.status = QD_OUT_OF_MEMORY};
  solve_timer timer;
  if (solve_begin(&timer, module, &options.stop, &options.stop_context) < 0) {
    arrays_clear(arrays, COULOMB_ARRAYS);
    return vectors_release(out, 2);
  }
  for (int i = 0; i < repeat && info.status != QD_STOPPED;
       ++i) { /* with a new workspace each time, like a caller with different W */
    qd_coulomb_workspace *workspace = qd_coulomb_workspace_create(&problem);
    if (workspace) {
      qd_coulomb_solve(workspace, &options, &problem, data(out[0]), data(out[1]), &info);
    }
    qd_coulomb_workspace_destroy(workspace);
  }
  const double seconds = solve_end(&timer) / (repeat > 0 ? repeat : 1);
  arrays_clear(arrays, COULOMB_ARRAYS);
  if (info.status == QD_STOPPED) { /* the exception is set */
    return vectors_release(out, 2);
  }
  return Py_BuildValue("(NNN)", out[0], out[1], coulomb_report(&info, seconds));
}
