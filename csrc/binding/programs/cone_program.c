/* The cone solver for qdsim.solve_cone_program. */
#include "binding/programs/cone_call.h"

/* The argument with the largest number, for status_raise. */
static PyObject *overflowing(const cone_call *call) {
  largest_number found = {NULL, 0, 0.0};
  for (int i = 0; i < CONE_ARRAYS; ++i) {
    if (call->arrays[i]) {
      largest_note(&found, cone_array_names[i], PyArray_DATA(call->arrays[i]),
                   PyArray_SIZE(call->arrays[i]));
    }
  }
  return largest_describe(&found);
}

/* Copies (x, dual, dual_eq) of an earlier solution into the arrays of the answer; None: nothing. */
static int start_read(PyObject *start, PyObject *const to[3]) {
  if (!is_given(start)) {
    return 0;
  }
  for (int i = 0; i < 3; ++i) {
    PyArrayObject *out = (PyArrayObject *)to[i];
    if (array_copy_vector(PyTuple_GET_ITEM(start, i), "warm_start", (int)PyArray_SIZE(out),
                          PyArray_DATA(out)) < 0) {
      return -1;
    }
  }
  return 0;
}

static int start_check(PyObject *start, const qd_cone_program *program) {
  if (!is_given(start)) {
    return 0;
  }
  const int wanted[3] = {program->variable_count, program->row_count, program->equality_count};
  Py_ssize_t found[3];
  if (!PyTuple_Check(start) || PyTuple_GET_SIZE(start) != 3) {
    PyErr_Format(PyExc_TypeError, "warm_start: expected a ConeSolution, got %s",
                 Py_TYPE(start)->tp_name);
    return -1;
  }
  for (int i = 0; i < 3; ++i) {
    if ((found[i] = PyObject_Size(PyTuple_GET_ITEM(start, i))) < 0) {
      return -1;
    }
  }
  if (found[0] == wanted[0] && found[1] == wanted[1] && found[2] == wanted[2]) {
    return 0;
  }
  PyErr_Format(PyExc_ValueError,
               "warm_start: has (variables, rows, equalities) (%zd, %zd, %zd), the program (%d, "
               "%d, %d)",
               found[0], found[1], found[2], wanted[0], wanted[1], wanted[2]);
  return -1;
}

static PyObject *solve(cone_call *call, const qd_cone_options *options, PyObject *start) {
  const qd_cone_program *program = &call->program;
  enum { X, DUAL, DUAL_EQ, SLACK, VECTORS };
  PyObject *vectors[VECTORS] = {
      array_new_vector(program->variable_count), array_new_vector(program->row_count),
      array_new_vector(program->equality_count), array_new_vector(program->row_count)};
  PyObject *out = NULL;
  double *numbers[VECTORS];
  int bad = 0;
  for (int i = 0; i < VECTORS; ++i) {
    bad |= !vectors[i];
    numbers[i] = vectors[i] ? PyArray_DATA((PyArrayObject *)vectors[i]) : NULL;
  }
  if (!bad && start_read(start, vectors) == 0) {
    solver_info info = {
        .row_count = program->row_count, .bounce_share = 1.0, .derivative_exact = -1};
    interruptible work;
    qd_status status = interruptible_begin(&work, call->state, NULL);
    if (status == QD_OK) {
      qd_cone_options own = *options;
      own.stop = work.stop;
      own.stop_context = &work;
      status = qd_cone_solve(call->scratch->workspace, &own, program, numbers[X], numbers[SLACK],
                             numbers[DUAL], numbers[DUAL_EQ], &info.cone);
      interruptible_end(&work);
      status = work.has_raised ? QD_STOPPED : status;
    }
    if (status == QD_NOT_FINITE && call->arrays[CONE_G]) {
      bad = array_check_finite(call->arrays[CONE_G], "G") < 0;
    }
    PyObject *who = status == QD_NOT_FINITE && !bad ? overflowing(call) : NULL;
    PyObject *report = NULL;
    if (status == QD_OK) {
      report = info_create(call->state, &info);
    } else if (!bad) {
      status_raise(call->state, "solve_cone_program", status, &info, who);
    }
    Py_XDECREF(who);
    if (report) {
      out = PyTuple_Pack(5, vectors[X], vectors[SLACK], vectors[DUAL], vectors[DUAL_EQ], report);
    }
    Py_XDECREF(report);
  }
  for (int i = 0; i < VECTORS; ++i) {
    Py_XDECREF(vectors[i]);
  }
  return out;
}

const char cone_solve_doc[] =
    "_solve_cone_program($module, Q, b, G, g, cones, C, c, target_mu, tolerance,\n"
    "                    iteration_limit, polish, warm_start, compliance, compliance_eq,\n"
    "                    lower, upper, /)\n--\n\n"
    "(x, slack, dual, dual_eq, info) of a cone program; qdsim.solve_cone_program is the public "
    "door. warm_start: (x, dual, dual_eq) or None.";

PyObject *cone_solve_function(PyObject *module, PyObject *const *in, Py_ssize_t count) {
  if (count != 16) {
    PyErr_SetString(PyExc_TypeError, "_solve_cone_program: expected 16 arguments");
    return NULL;
  }
  const cone_arguments program = {in[0], in[1], in[2],  in[3],  in[4],  in[5],
                                  in[6], in[7], in[12], in[13], in[14], in[15]};
  qd_cone_options options = qd_cone_options_default();
  cone_call call;
  if (number_read_between(in[8], "tolerance", 0.0, 1.0, &options.tolerance) < 0 ||
      int_read_between(in[9], "iteration_limit", 1, INT32_MAX, &options.iteration_limit) < 0 ||
      flag_read(in[10], "polish", &options.polish) < 0 ||
      cone_call_begin(&call, PyModule_GetState(module), &program) < 0) {
    return NULL;
  }
  options.warm_start = is_given(in[11]);
  PyObject *out = start_check(in[11], &call.program) == 0 ? solve(&call, &options, in[11]) : NULL;
  cone_call_end(&call);
  return out;
}
