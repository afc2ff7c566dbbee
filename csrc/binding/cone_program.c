/* The cone solver on its own: qdsim.solve_cone_program, whose arguments are checked here. */
#include "binding/cone_call.h"

#include <float.h>
#include <string.h>

/* ---------------------------------------------------------------- arguments */

static const char *const array_names[CONE_ARRAYS] = {
    "Q", "b", "G", "g", "C", "c", "target_mu", "compliance", "compliance_eq", "lower", "upper"};

static int is_given(PyObject *object) { return object && object != Py_None; }

static PyArrayObject *vector_read(PyObject *object, const char *name) {
  const npy_intp any = -1;
  return array_read_finite(object, name, 1, &any);
}

/* Without rows, an empty array of any shape will do. */
static int matrix_read(cone_call *call, int which, PyObject *object, npy_intp rows,
                       npy_intp columns) {
  const npy_intp shape[2] = {rows, columns};
  const char *name = array_names[which];
  if (rows == 0 && PyArray_Check(object) && PyArray_SIZE((PyArrayObject *)object) == 0) {
    return 0;
  }
  if (rows == 0 && PyList_CheckExact(object) && PyList_GET_SIZE(object) == 0) {
    return 0;
  }
  if ((double)rows * (double)columns > INT32_MAX) {
    PyErr_Format(PyExc_ValueError, "%s: %zd x %zd numbers are too many", name, rows, columns);
    return -1;
  }
  /* G is large, and the solver looks at its numbers anyway */
  call->arrays[which] = (which == CONE_G ? array_read : array_read_finite)(object, name, 2, shape);
  return call->arrays[which] ? 0 : -1;
}

/* C (p, n) and c (p), *count = p; both or neither. */
static int equalities_read(cone_call *call, const cone_arguments *in, npy_intp n, npy_intp *count) {
  const int with_rows = is_given(in->C), with_offsets = is_given(in->c);
  *count = 0;
  if (with_rows != with_offsets) {
    PyErr_Format(PyExc_ValueError, "%s: C and c come together, or neither", with_rows ? "c" : "C");
    return -1;
  }
  if (!with_offsets) {
    return 0;
  }
  if (!(call->arrays[CONE_EQ] = vector_read(in->c, "c"))) {
    return -1;
  }
  *count = PyArray_DIM(call->arrays[CONE_EQ], 0);
  return matrix_read(call, CONE_C, in->C, *count, n);
}

static int arrays_read(cone_call *call, const cone_arguments *in) {
  PyArrayObject **arrays = call->arrays;
  if (!(arrays[CONE_B] = vector_read(in->b, "b"))) {
    return -1;
  }
  const npy_intp n = PyArray_DIM(arrays[CONE_B], 0);
  if (n == 0) {
    PyErr_SetString(PyExc_ValueError, "b: expected at least one variable");
    return -1;
  }
  if (!(arrays[CONE_OFFSET] = vector_read(in->g, "g"))) {
    return -1;
  }
  const npy_intp m = PyArray_DIM(arrays[CONE_OFFSET], 0);
  npy_intp p;
  if (matrix_read(call, CONE_Q, in->Q, n, n) < 0 || matrix_read(call, CONE_G, in->G, m, n) < 0 ||
      equalities_read(call, in, n, &p) < 0) {
    return -1;
  }
  const npy_intp most = INT32_MAX / 64;
  if (n <= most && m <= most && p <= most) {
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "%s: too many numbers", n > most ? "b" : (m > most ? "g" : "c"));
  return -1;
}

/* ---------------------------------------------------------------- cones */

static int kind_read(PyObject *object, const char *name, int *kind) {
  if (!PyUnicode_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s: expected 'orthant', 'lorentz' or 'interval', got %s", name,
                 Py_TYPE(object)->tp_name);
    return -1;
  }
  if (PyUnicode_CompareWithASCIIString(object, "orthant") == 0) {
    *kind = QD_ORTHANT;
  } else if (PyUnicode_CompareWithASCIIString(object, "lorentz") == 0) {
    *kind = QD_LORENTZ;
  } else if (PyUnicode_CompareWithASCIIString(object, "interval") == 0) {
    *kind = QD_INTERVAL;
  } else {
    PyErr_Format(PyExc_ValueError, "%s: expected 'orthant', 'lorentz' or 'interval', got %R", name,
                 object);
    return -1;
  }
  return 0;
}

/* What most callers give: 1 and the entry; 0 for anything else. */
static int entry_is_plain(PyObject *entry, int rows, int *kind, int *dim) {
  if (!PyTuple_CheckExact(entry) || PyTuple_GET_SIZE(entry) != 2) {
    return 0;
  }
  PyObject *word = PyTuple_GET_ITEM(entry, 0), *count = PyTuple_GET_ITEM(entry, 1);
  if (!PyUnicode_Check(word) || !PyLong_CheckExact(count)) {
    return 0;
  }
  const int is_lorentz = PyUnicode_CompareWithASCIIString(word, "lorentz") == 0;
  if (!is_lorentz && PyUnicode_CompareWithASCIIString(word, "orthant") != 0) {
    return 0;
  }
  int overflow;
  const long value = PyLong_AsLongAndOverflow(count, &overflow);
  if (overflow || value < 1 || value > rows) {
    return 0;
  }
  *kind = is_lorentz ? QD_LORENTZ : QD_ORTHANT;
  *dim = (int)value;
  return 1;
}

/* Any entry, with what is wrong with it. */
static int entry_read(PyObject *entry, Py_ssize_t i, int rows, int *kind, int *dim) {
  char name[40];
  PyOS_snprintf(name, sizeof name, "cones[%zd]", i);
  PyObject *pair = PyTuple_Check(entry) || PyList_Check(entry) ? PySequence_Tuple(entry) : NULL;
  if (PyErr_Occurred()) {
    return -1;
  }
  if (!pair || PyTuple_GET_SIZE(pair) != 2) {
    PyErr_Format(PyExc_TypeError, "%s: expected (kind, rows), got %R", name, entry);
    Py_XDECREF(pair);
    return -1;
  }
  int bad = kind_read(PyTuple_GET_ITEM(pair, 0), name, kind) < 0 ||
            int_read_between(PyTuple_GET_ITEM(pair, 1), name, 1, rows > 1 ? rows : 1, dim) < 0;
  Py_DECREF(pair);
  return bad ? -1 : 0;
}

/* Kinds and rows of the cones, which are as many as the rows of G in all. */
static int cones_read(cone_call *call, PyObject *object) {
  qd_cone_program *program = &call->program;
  PyObject *list = PyUnicode_Check(object) ? NULL : PySequence_Fast(object, "");
  if (!list) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) {
      return -1;
    }
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "cones: expected a list of (kind, rows), got %s",
                 Py_TYPE(object)->tp_name);
    return -1;
  }
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(list);
  int64_t rows = 0;
  int bad = count > INT32_MAX / 64 ||
            !(call->cones = PyMem_Malloc((2 * (size_t)count + 1) * sizeof(int)));
  if (bad) {
    PyErr_NoMemory();
  }
  for (Py_ssize_t i = 0; !bad && i < count && i < PySequence_Fast_GET_SIZE(list); i++) {
    PyObject *entry = Py_NewRef(PySequence_Fast_GET_ITEM(list, i));
    int *kind = call->cones + i, *dim = call->cones + count + i;
    bad = !entry_is_plain(entry, program->row_count, kind, dim) &&
          entry_read(entry, i, program->row_count, kind, dim) < 0;
    Py_DECREF(entry);
    if (!bad) {
      rows += call->cones[count + i];
    }
  }
  Py_DECREF(list);
  if (bad) {
    return -1;
  }
  if (rows != program->row_count) {
    PyErr_Format(PyExc_ValueError, "cones: have %lld rows in all, and g has %d", (long long)rows,
                 program->row_count);
    return -1;
  }
  program->cone_count = (int)count;
  program->cone_kind = call->cones;
  program->cone_dim = call->cones + count;
  return 0;
}

static int target_raise(double value) {
  char text[64];
  PyOS_snprintf(text, sizeof text, "%.17g", value);
  PyErr_Format(PyExc_ValueError, "target_mu: expected numbers >= 0, got %s", text);
  return -1;
}

/* One number, or one per cone; the program has none where all are zero. */
static int targets_read(cone_call *call, PyObject *object) {
  qd_cone_program *program = &call->program;
  const npy_intp count = program->cone_count;
  const double *found;
  if (!is_given(object)) {
    return 0;
  }
  if (!number_is(object)) {
    PyArrayObject *array = call->arrays[CONE_MU] = vector_read(object, "target_mu");
    if (!array) {
      return -1;
    }
    if (PyArray_DIM(array, 0) != count) {
      PyErr_Format(PyExc_ValueError,
                   "target_mu: expected a number or shape (%zd,), one per cone, got (%zd,)", count,
                   PyArray_DIM(array, 0));
      return -1;
    }
    found = PyArray_DATA(array);
  } else {
    double one;
    if (number_read(object, "target_mu", &one) < 0) {
      return -1;
    }
    if (!(one >= 0.0 && one <= DBL_MAX)) {
      return target_raise(one);
    }
    if (one == 0.0) {
      return 0;
    }
    if (!(call->targets = PyMem_Malloc(((size_t)count + 1) * sizeof(double)))) {
      PyErr_NoMemory();
      return -1;
    }
    for (npy_intp i = 0; i < count; i++) {
      call->targets[i] = one;
    }
    found = call->targets;
  }
  double most = 0.0;
  for (npy_intp i = 0; i < count; i++) {
    if (found[i] < 0.0) {
      return target_raise(found[i]);
    }
    most = found[i] > most ? found[i] : most;
  }
  program->target_mu = most > 0.0 ? found : NULL;
  return 0;
}

/* ---------------------------------------------------------------- rows that give way */

/* Row r of the intervals, in the program. */
static int interval_row(const qd_cone_program *program, npy_intp r) {
  int row = 0;
  for (int k = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    if (program->cone_kind[k] == QD_INTERVAL) {
      if (r < program->cone_dim[k]) {
        return row + (int)r;
      }
      r -= program->cone_dim[k];
    }
  }
  return -1;
}

static npy_intp interval_rows(const qd_cone_program *program) {
  npy_intp rows = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    rows += program->cone_kind[k] == QD_INTERVAL ? program->cone_dim[k] : 0;
  }
  return rows;
}

/* One number or `count`, -1 with an exception; NaN is one. out (count) */
static int numbers_read(cone_call *call, int which, PyObject *object, npy_intp count,
                        const char *of_what, double *out) {
  const char *name = array_names[which];
  double one = 0.0;
  const double *from = &one;
  const npy_intp any = -1;
  const int is_one = number_is(object);
  if (is_one) {
    one = PyFloat_AsDouble(object);
    if (one == -1.0 && PyErr_Occurred()) {
      return -1;
    }
  } else {
    PyArrayObject *array = call->arrays[which] = array_read(object, name, 1, &any);
    if (!array) {
      return -1;
    }
    if (PyArray_DIM(array, 0) != count) {
      PyErr_Format(PyExc_ValueError,
                   "%s: expected a number or shape (%zd,), one per %s, got (%zd,)", name, count,
                   of_what, PyArray_DIM(array, 0));
      return -1;
    }
    from = PyArray_DATA(array);
  }
  for (npy_intp i = 0; i < count; i++) {
    out[i] = from[is_one ? 0 : i];
  }
  return 0;
}

static int number_raise(int which, npy_intp i, const char *wanted, double value) {
  char text[64];
  PyOS_snprintf(text, sizeof text, "%.17g", value);
  PyErr_Format(PyExc_ValueError, "%s[%zd]: expected %s, got %s", array_names[which], i, wanted,
               text);
  return -1;
}

/* NULL where not given. */
static int compliance_read(cone_call *call, int which, PyObject *object, npy_intp count,
                           const char *of_what, double *out, const double **found) {
  if (!is_given(object)) {
    return 0;
  }
  if (numbers_read(call, which, object, count, of_what, out) < 0) {
    return -1;
  }
  for (npy_intp i = 0; i < count; i++) {
    if (!(out[i] >= 0.0 && out[i] <= DBL_MAX)) {
      return number_raise(which, i, "a finite number >= 0", out[i]);
    }
  }
  *found = out;
  return 0;
}

/* The limits of the intervals' rows, to where these stand; nothing is read elsewhere. */
static int limit_read(cone_call *call, int which, PyObject *object, double *scratch, double *out) {
  const npy_intp count = interval_rows(&call->program);
  if (!is_given(object)) {
    PyErr_Format(PyExc_ValueError, "%s: wanted for the rows of intervals", array_names[which]);
    return -1;
  }
  if (numbers_read(call, which, object, count, "row of an interval", scratch) < 0) {
    return -1;
  }
  for (npy_intp r = 0; r < count; r++) {
    const double never = which == CONE_LOWER ? Py_HUGE_VAL : -Py_HUGE_VAL;
    if (scratch[r] != scratch[r] || scratch[r] == never) {
      return number_raise(which, r, which == CONE_LOWER ? "a number or -inf" : "a number or inf",
                          scratch[r]);
    }
    out[interval_row(&call->program, r)] = scratch[r];
  }
  return 0;
}

static int limits_read(cone_call *call, const cone_arguments *in, double *lower, double *upper,
                       double *scratch) {
  const npy_intp count = interval_rows(&call->program);
  if (count == 0) {
    if (is_given(in->lower) || is_given(in->upper)) {
      PyErr_Format(PyExc_ValueError, "%s: cones has no interval",
                   is_given(in->lower) ? "lower" : "upper");
      return -1;
    }
    return 0;
  }
  if (limit_read(call, CONE_LOWER, in->lower, scratch, lower) < 0 ||
      limit_read(call, CONE_UPPER, in->upper, scratch, upper) < 0) {
    return -1;
  }
  for (npy_intp r = 0; r < count; r++) {
    const int row = interval_row(&call->program, r);
    if (lower[row] > upper[row]) {
      char text[80];
      PyOS_snprintf(text, sizeof text, "%.17g is above upper[%zd], %.17g", lower[row], r,
                    upper[row]);
      PyErr_Format(PyExc_ValueError, "lower[%zd]: %s", r, text);
      return -1;
    }
  }
  call->program.lower = lower;
  call->program.upper = upper;
  return 0;
}

static int soft_read(cone_call *call, const cone_arguments *in) {
  qd_cone_program *program = &call->program;
  const size_t m = (size_t)program->row_count, p = (size_t)program->equality_count;
  if (!is_given(in->compliance) && !is_given(in->compliance_eq) && !is_given(in->lower) &&
      !is_given(in->upper) && interval_rows(program) == 0) {
    return 0;
  }
  double *numbers = call->soft = PyMem_Calloc(4 * m + p + 1, sizeof *numbers);
  if (!numbers) {
    PyErr_NoMemory();
    return -1;
  }
  return compliance_read(call, CONE_R, in->compliance, (npy_intp)m, "row", numbers,
                         &program->compliance) < 0 ||
                 compliance_read(call, CONE_R_EQ, in->compliance_eq, (npy_intp)p, "equality",
                                 numbers + m, &program->compliance_eq) < 0 ||
                 limits_read(call, in, numbers + m + p, numbers + 2 * m + p, numbers + 3 * m + p) <
                     0
             ? -1
             : 0;
}

/* ---------------------------------------------------------------- the cost */

/* The smallest eigenvalue, for a message. */
static int indefinite_raise(PyArrayObject *Q) {
  PyObject *module = PyImport_ImportModule("numpy.linalg");
  PyObject *values = module ? PyObject_CallMethod(module, "eigvalsh", "O", Q) : NULL;
  char text[64];
  if (values) {
    PyOS_snprintf(text, sizeof text, "%.3g", *(double *)PyArray_DATA((PyArrayObject *)values));
    PyErr_Format(PyExc_ValueError, "Q: not positive semidefinite, its smallest eigenvalue is %s",
                 text);
  }
  Py_XDECREF(values);
  Py_XDECREF(module);
  return -1;
}

static int cost_check(const cone_call *call) {
  PyArrayObject *Q = call->arrays[CONE_Q];
  const int n = call->program.variable_count;
  const double *numbers = PyArray_DATA(Q);
  int i = 0, j = 0;
  double *scratch = PyMem_Malloc(qd_cost_scratch(n) * sizeof *scratch);
  if (!scratch) {
    PyErr_NoMemory();
    return -1;
  }
  const qd_cost_fault fault = qd_cost_check(n, numbers, scratch, &i, &j);
  PyMem_Free(scratch);
  char text[160];
  const double here = numbers[(size_t)i * (size_t)n + (size_t)j];
  const double there = numbers[(size_t)j * (size_t)n + (size_t)i];
  switch (fault) {
  case QD_COST_FINE:
    return 0;
  case QD_COST_NOT_SYMMETRIC:
    PyOS_snprintf(text, sizeof text, "not symmetric, [%d, %d] is %.17g and [%d, %d] %.17g", i, j,
                  here, j, i, there);
    break;
  case QD_COST_NEGATIVE:
    PyOS_snprintf(text, sizeof text, "not positive semidefinite, [%d, %d] is %.17g", i, i, here);
    break;
  default:
    return indefinite_raise(Q);
  }
  PyErr_Format(PyExc_ValueError, "Q: %s", text);
  return -1;
}

/* ---------------------------------------------------------------- one call */

void cone_scratch_destroy(cone_scratch *scratch) {
  if (!scratch) {
    return;
  }
  qd_cone_workspace_destroy(scratch->workspace);
  PyMem_RawFree(scratch);
}

/* The module's, if nobody else has it and it fits exactly; or a new one. */
static cone_scratch *scratch_acquire(core_state *state, const qd_cone_program *program) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  cone_scratch *scratch = atomic_exchange(&state->cone_scratch, NULL);
  const int is_soft =
      program->compliance || program->compliance_eq || program->lower || program->upper;
  if (scratch && scratch->variables == n && scratch->rows == m && scratch->equalities == p &&
      !is_soft && !scratch->is_soft) {
    return scratch;
  }
  cone_scratch_destroy(scratch);
  if (!(scratch = PyMem_RawMalloc(sizeof *scratch))) {
    return NULL;
  }
  *scratch = (cone_scratch){qd_cone_workspace_create_for(program), n, m, p, is_soft};
  if (scratch->workspace) {
    return scratch;
  }
  cone_scratch_destroy(scratch);
  return NULL;
}

static void scratch_release(core_state *state, cone_scratch *scratch) {
  if (scratch) {
    cone_scratch_destroy(atomic_exchange(&state->cone_scratch, scratch));
  }
}

static const double *numbers_of(const cone_call *call, int i) {
  static const double none = 0.0; /* a matrix without rows */
  return call->arrays[i] ? PyArray_DATA(call->arrays[i]) : &none;
}

static int call_read(cone_call *call, const cone_arguments *in) {
  if (arrays_read(call, in) < 0) {
    return -1;
  }
  PyArrayObject **arrays = call->arrays;
  const int with_equalities = arrays[CONE_EQ] != NULL;
  call->program = (qd_cone_program){.variable_count = (int)PyArray_DIM(arrays[CONE_B], 0),
                                    .row_count = (int)PyArray_DIM(arrays[CONE_OFFSET], 0),
                                    .equality_count =
                                        with_equalities ? (int)PyArray_DIM(arrays[CONE_EQ], 0) : 0,
                                    .Q = numbers_of(call, CONE_Q),
                                    .b = numbers_of(call, CONE_B),
                                    .G = numbers_of(call, CONE_G),
                                    .g = numbers_of(call, CONE_OFFSET),
                                    .C = numbers_of(call, CONE_C),
                                    .c = numbers_of(call, CONE_EQ)};
  return cost_check(call) < 0 || cones_read(call, in->cones) < 0 ||
                 targets_read(call, in->target_mu) < 0 || soft_read(call, in) < 0
             ? -1
             : 0;
}

int cone_call_begin(cone_call *call, core_state *state, const cone_arguments *in) {
  memset(call, 0, sizeof *call);
  call->state = state;
  if (call_read(call, in) == 0) {
    if ((call->scratch = scratch_acquire(state, &call->program))) {
      return 0;
    }
    PyErr_NoMemory();
  }
  cone_call_end(call);
  return -1;
}

void cone_call_end(cone_call *call) {
  scratch_release(call->state, call->scratch);
  PyMem_Free(call->cones);
  PyMem_Free(call->targets);
  PyMem_Free(call->soft);
  for (int i = 0; i < CONE_ARRAYS; i++) {
    Py_CLEAR(call->arrays[i]);
  }
}

/* ---------------------------------------------------------------- the function */

/* The argument with the largest number, as status_raise takes it. */
static PyObject *overflowing(const cone_call *call) {
  largest_number found = {NULL, 0, 0.0};
  for (int i = 0; i < CONE_ARRAYS; i++) {
    if (call->arrays[i]) {
      largest_note(&found, array_names[i], PyArray_DATA(call->arrays[i]),
                   PyArray_SIZE(call->arrays[i]));
    }
  }
  return largest_describe(&found);
}

/* (x, dual, dual_eq) of an earlier solution into the arrays that the answer goes into; None:
 * nothing. */
static int start_read(PyObject *start, PyObject *const to[3]) {
  if (!is_given(start)) {
    return 0;
  }
  for (int i = 0; i < 3; i++) {
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
  for (int i = 0; i < 3; i++) {
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
  for (int i = 0; i < VECTORS; i++) {
    bad |= !vectors[i];
    numbers[i] = vectors[i] ? PyArray_DATA((PyArrayObject *)vectors[i]) : NULL;
  }
  if (!bad && start_read(start, vectors) == 0) {
    solver_info info = {.row_count = program->row_count, .derivative_exact = -1};
    qd_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = qd_cone_solve(call->scratch->workspace, options, program, numbers[X], numbers[SLACK],
                           numbers[DUAL], numbers[DUAL_EQ], &info.cone);
    Py_END_ALLOW_THREADS;
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
  for (int i = 0; i < VECTORS; i++) {
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
