/* The cone solver on its own. Python's qdsim.cone checks what a user may get wrong and says it
 * well; the checks here keep memory safe. */
#include "binding/cone_call.h"

#include <string.h>

enum { CONE_Q, CONE_B, CONE_G, CONE_OFFSET, CONE_KIND, CONE_DIM, CONE_C, CONE_EQ, CONE_MU };

static const char *const cone_names[] = {"Q",        "b", "G", "g",        "cone_kind",
                                         "cone_dim", "C", "c", "target_mu"};

static int cone_read_arrays(cone_call *call, PyObject *const *in) {
  npy_intp any[2] = {-1, -1};
  PyArrayObject **arrays = call->arrays;
  if (!(arrays[CONE_B] = array_read(in[CONE_B], "b", 1, any)) ||
      !(arrays[CONE_OFFSET] = array_read(in[CONE_OFFSET], "g", 1, any)) ||
      !(arrays[CONE_KIND] = array_read_int(in[CONE_KIND], "cone_kind", 1, any)))
    return -1;
  npy_intp n = PyArray_DIM(arrays[CONE_B], 0), m = PyArray_DIM(arrays[CONE_OFFSET], 0);
  npy_intp cones = PyArray_DIM(arrays[CONE_KIND], 0), p = 0;
  if (in[CONE_EQ] && in[CONE_EQ] != Py_None) {
    if (!(arrays[CONE_EQ] = array_read(in[CONE_EQ], "c", 1, any))) return -1;
    p = PyArray_DIM(arrays[CONE_EQ], 0);
  }
  const npy_intp square[2] = {n, n}, rows[2] = {m, n}, equalities[2] = {p, n};
  if (!(arrays[CONE_Q] = array_read(in[CONE_Q], "Q", 2, square)) ||
      !(arrays[CONE_G] = array_read(in[CONE_G], "G", 2, rows)) ||
      !(arrays[CONE_DIM] = array_read_int(in[CONE_DIM], "cone_dim", 1, &cones)))
    return -1;
  if (arrays[CONE_EQ] && !(arrays[CONE_C] = array_read(in[CONE_C], "C", 2, equalities))) return -1;
  if (in[CONE_MU] && in[CONE_MU] != Py_None &&
      !(arrays[CONE_MU] = array_read(in[CONE_MU], "target_mu", 1, &cones)))
    return -1;
  for (int i = 0; i < 9; i++)
    if (arrays[i] && i != CONE_KIND && i != CONE_DIM &&
        array_check_finite(arrays[i], cone_names[i]) < 0)
      return -1;
  if (n < 1 || n > INT32_MAX / 64 || m > INT32_MAX / 64 || p > INT32_MAX / 64) {
    PyErr_SetString(PyExc_ValueError, "b: expected at least one variable and not too many rows");
    return -1;
  }
  return 0;
}

static int cone_check_dims(const cone_call *call) {
  const qd_cone_program *program = &call->program;
  int64_t rows = 0;
  for (int i = 0; i < program->cone_count; i++) {
    int kind = program->cone_kind[i];
    if (program->cone_dim[i] < 1 || (kind != QD_ORTHANT && kind != QD_LORENTZ)) {
      PyErr_Format(PyExc_ValueError, "cones: cone %d has kind %d and %d rows", i, kind,
                   program->cone_dim[i]);
      return -1;
    }
    if (call->arrays[CONE_MU] && program->target_mu[i] < 0) {
      PyErr_Format(PyExc_ValueError, "target_mu: cone %d has a negative one", i);
      return -1;
    }
    rows += program->cone_dim[i];
  }
  if (rows == program->row_count) return 0;
  PyErr_Format(PyExc_ValueError, "cones: have %lld rows in all, G has %d", (long long)rows,
               program->row_count);
  return -1;
}

static void *cone_data(const cone_call *call, int i) {
  return call->arrays[i] ? PyArray_DATA(call->arrays[i]) : NULL;
}

int cone_call_begin(cone_call *call, PyObject *const *in) {
  memset(call, 0, sizeof *call);
  if (cone_read_arrays(call, in) < 0) {
    cone_call_end(call);
    return -1;
  }
  PyArrayObject **arrays = call->arrays;
  call->program = (qd_cone_program){.variable_count = (int)PyArray_DIM(arrays[CONE_B], 0),
                                    .row_count = (int)PyArray_DIM(arrays[CONE_OFFSET], 0),
                                    .equality_count =
                                        arrays[CONE_EQ] ? (int)PyArray_DIM(arrays[CONE_EQ], 0) : 0,
                                    .cone_count = (int)PyArray_DIM(arrays[CONE_KIND], 0),
                                    .Q = cone_data(call, CONE_Q),
                                    .b = cone_data(call, CONE_B),
                                    .G = cone_data(call, CONE_G),
                                    .g = cone_data(call, CONE_OFFSET),
                                    .C = cone_data(call, CONE_C),
                                    .c = cone_data(call, CONE_EQ),
                                    .cone_kind = cone_data(call, CONE_KIND),
                                    .cone_dim = cone_data(call, CONE_DIM),
                                    .target_mu = cone_data(call, CONE_MU)};
  if (cone_check_dims(call) < 0) {
    cone_call_end(call);
    return -1;
  }
  const qd_cone_program *program = &call->program;
  call->workspace = qd_cone_workspace_create(program->variable_count, program->row_count,
                                             program->equality_count);
  if (!call->workspace) {
    cone_call_end(call);
    PyErr_NoMemory();
    return -1;
  }
  return 0;
}

void cone_call_end(cone_call *call) {
  qd_cone_workspace_destroy(call->workspace);
  for (int i = 0; i < 9; i++) Py_CLEAR(call->arrays[i]);
}

const char cone_solve_doc[] =
    "_solve_cone_program($module, /, Q, b, G, g, cone_kind, cone_dim, C, c, target_mu, tolerance,\n"
    "                    iteration_limit, polish, warm_start)\n--\n\n"
    "(x, slack, dual, dual_eq, info) of a cone program; qdsim.solve_cone_program is the public "
    "door.";

static int copy_numbers(PyObject *from, PyObject *to) {
  return array_copy_vector(from, "warm_start", (int)PyArray_SIZE((PyArrayObject *)to),
                           PyArray_DATA((PyArrayObject *)to));
}

/* (x, dual, dual_eq) into the arrays that the answer goes into; None: nothing. */
static int start_read(PyObject *start, PyObject *x, PyObject *dual, PyObject *dual_eq) {
  PyObject *from_x, *from_dual, *from_eq;
  if (start == Py_None) return 0;
  if (!PyArg_ParseTuple(start, "OOO:warm_start", &from_x, &from_dual, &from_eq)) return -1;
  return copy_numbers(from_x, x) < 0 || copy_numbers(from_dual, dual) < 0 ||
                 copy_numbers(from_eq, dual_eq) < 0
             ? -1
             : 0;
}

/* The argument with the largest number, as status_raise takes it. */
static PyObject *overflowing(const cone_call *call) {
  largest_number found = {NULL, 0, 0.0};
  for (int i = 0; i < 9; i++)
    if (call->arrays[i] && i != CONE_KIND && i != CONE_DIM)
      largest_note(&found, cone_names[i], PyArray_DATA(call->arrays[i]),
                   PyArray_SIZE(call->arrays[i]));
  return largest_describe(&found);
}

static PyObject *cone_solve_call(const core_state *state, cone_call *call,
                                 const qd_cone_options *options, PyObject *start) {
  const qd_cone_program *program = &call->program;
  PyObject *x = array_new_vector(program->variable_count);
  PyObject *slack = array_new_vector(program->row_count);
  PyObject *dual = array_new_vector(program->row_count);
  PyObject *dual_eq = array_new_vector(program->equality_count);
  PyObject *out = NULL;
  if (x && slack && dual && dual_eq && start_read(start, x, dual, dual_eq) == 0) {
    solver_info info = {
        .row_count = program->row_count, .contact_count = 0, .derivative_exact = -1};
    qd_status status;
    Py_BEGIN_ALLOW_THREADS;
    status =
        qd_cone_solve(call->workspace, options, program, PyArray_DATA((PyArrayObject *)x),
                      PyArray_DATA((PyArrayObject *)slack), PyArray_DATA((PyArrayObject *)dual),
                      PyArray_DATA((PyArrayObject *)dual_eq), &info.cone);
    Py_END_ALLOW_THREADS;
    PyObject *who = status == QD_NOT_FINITE ? overflowing(call) : NULL;
    PyObject *report = status == QD_OK
                           ? info_create(state, &info)
                           : status_raise(state, "solve_cone_program", status, &info, who);
    Py_XDECREF(who);
    if (report) out = Py_BuildValue("(OOOON)", x, slack, dual, dual_eq, report);
  }
  Py_XDECREF(x);
  Py_XDECREF(slack);
  Py_XDECREF(dual);
  Py_XDECREF(dual_eq);
  return out;
}

PyObject *cone_solve_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                              PyObject *kwnames) {
  static const char *const names[] = {
      "Q",         "b", "G",         "g",         "cone_kind",       "cone_dim",
      "C",         "c", "target_mu", "tolerance", "iteration_limit", "polish",
      "warm_start"};
  PyObject *in[13];
  cone_call call;
  qd_cone_options options = qd_cone_options_default();
  if (arguments_parse("_solve_cone_program", names, 13, 13, 13, args, arg_count, kwnames, in) < 0 ||
      number_read(in[9], "tolerance", &options.tolerance) < 0)
    return NULL;
  if (int_read(in[10], "iteration_limit", &options.iteration_limit) < 0) return NULL;
  options.polish = PyObject_IsTrue(in[11]);
  options.warm_start = in[12] != Py_None;
  if (PyErr_Occurred() || cone_call_begin(&call, in) < 0) return NULL;
  PyObject *out = cone_solve_call(PyModule_GetState(module), &call, &options, in[12]);
  cone_call_end(&call);
  return out;
}
