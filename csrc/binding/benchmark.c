/* Seconds per call measured in C, for benchmarks: the time of the core without Python. */
#include "binding/programs/cone_call.h"
#include "binding/step_call.h"

#include <time.h>

static double clock_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int repeat_read(PyObject *argument, int *repeat) {
  if (int_read(argument, "repeat", repeat) < 0) {
    return -1;
  }
  if (*repeat >= 1) {
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "repeat: expected at least 1, got %d", *repeat);
  return -1;
}

const char cone_benchmark_doc[] =
    "_cone_benchmark($module, /, Q, b, G, g, cones, target_mu, repeat, tolerance=1e-9,\n"
    "                polish=True)\n--\n\n"
    "Seconds per solve of the same cone program, the mean of `repeat` solves.";

static PyObject *cone_benchmark_call(const core_state *state, cone_call *call,
                                     const qd_cone_options *options, int repeat) {
  const qd_cone_program *program = &call->program;
  size_t count = (size_t)program->variable_count + 2 * (size_t)program->row_count;
  double *x = PyMem_Malloc((count + 1) * sizeof *x);
  if (!x) {
    return PyErr_NoMemory();
  }
  double *slack = x + program->variable_count, *dual = slack + program->row_count;
  solver_info info = {.row_count = program->row_count, .bounce_share = 1.0, .derivative_exact = -1};
  qd_status status = QD_OK;
  double seconds;
  Py_BEGIN_ALLOW_THREADS;
  double start = clock_now();
  for (int i = 0; i < repeat && status == QD_OK; i++) {
    status =
        qd_cone_solve(call->scratch->workspace, options, program, x, slack, dual, NULL, &info.cone);
  }
  seconds = (clock_now() - start) / repeat;
  Py_END_ALLOW_THREADS;
  PyMem_Free(x);
  return status == QD_OK ? PyFloat_FromDouble(seconds)
                         : status_raise(state, "_cone_benchmark", status, &info, NULL);
}

PyObject *cone_benchmark_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames) {
  static const char *const names[] = {"Q",         "b",      "G",         "g",     "cones",
                                      "target_mu", "repeat", "tolerance", "polish"};
  PyObject *in[9];
  int repeat;
  core_state *state = PyModule_GetState(module);
  qd_cone_options options = qd_cone_options_default();
  if (arguments_parse("_cone_benchmark", names, 9, 9, 7, args, arg_count, kwnames, in) < 0 ||
      repeat_read(in[6], &repeat) < 0 ||
      (in[7] && number_read(in[7], "tolerance", &options.tolerance) < 0) ||
      (in[8] && flag_read(in[8], "polish", &options.polish) < 0)) {
    return NULL;
  }
  const cone_arguments program = {in[0], in[1], in[2], in[3], in[4], NULL,
                                  NULL,  in[5], NULL,  NULL,  NULL,  NULL};
  cone_call call;
  if (cone_call_begin(&call, state, &program) < 0) {
    return NULL;
  }
  PyObject *out = cone_benchmark_call(state, &call, &options, repeat);
  cone_call_end(&call);
  return out;
}

const char step_benchmark_doc[] =
    "_step_benchmark($module, /, model, q, u, options, repeat, linearize,\n"
    "                warm_start=None, v=None)\n--\n\n"
    "Seconds per qd_step (linearize: qd_linearize), of the second-order step where v is given, the "
    "mean of `repeat` equal calls.";

PyObject *step_benchmark_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames) {
  static const char *const names[] = {"model",  "q",         "u",          "options",
                                      "repeat", "linearize", "warm_start", "v"};
  PyObject *in[8];
  int repeat;
  if (arguments_parse("_step_benchmark", names, 8, 7, 6, args, arg_count, kwnames, in) < 0 ||
      repeat_read(in[4], &repeat) < 0) {
    return NULL;
  }
  int linearize = PyObject_IsTrue(in[5]);
  step_call call;
  if (linearize < 0 ||
      step_call_begin(&call, PyModule_GetState(module), "_step_benchmark", in[0], in[1], in[7],
                      in[2], in[3], NULL, NULL, NULL) < 0 ||
      step_call_start(&call, in[6]) < 0) {
    return NULL;
  }
  qd_status status = QD_OK;
  double seconds;
  Py_BEGIN_ALLOW_THREADS;
  double start = clock_now();
  for (int i = 0; i < repeat && status == QD_OK; i++) {
    status = step_call_run(&call, linearize, call.entry->A, call.entry->B);
  }
  seconds = (clock_now() - start) / repeat;
  Py_END_ALLOW_THREADS;
  PyObject *out = step_call_check(&call, status) == 0 ? PyFloat_FromDouble(seconds) : NULL;
  step_call_end(&call);
  return out;
}

const char workspace_bytes_doc[] =
    "_workspace_bytes($module, /, model, q, u, options, linearize)\n--\n\n"
    "Bytes of the workspace that has served qd_step (linearize: qd_linearize) here.";

PyObject *workspace_bytes_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                   PyObject *kwnames) {
  static const char *const names[] = {"model", "q", "u", "options", "linearize"};
  PyObject *in[5];
  if (arguments_parse("_workspace_bytes", names, 5, 5, 5, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  int linearize = PyObject_IsTrue(in[4]);
  step_call call;
  if (linearize < 0 || step_call_begin(&call, PyModule_GetState(module), "_workspace_bytes", in[0],
                                       in[1], NULL, in[2], in[3], NULL, NULL, NULL) < 0) {
    return NULL;
  }
  qd_status status;
  size_t bytes;
  Py_BEGIN_ALLOW_THREADS;
  status = step_call_run(&call, linearize, call.entry->A, call.entry->B);
  bytes = qd_workspace_bytes(call.entry->workspace);
  Py_END_ALLOW_THREADS;
  PyObject *out = step_call_check(&call, status) == 0 ? PyLong_FromSize_t(bytes) : NULL;
  step_call_end(&call);
  return out;
}
