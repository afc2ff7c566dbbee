/* Reads the numbers of a cone program, Q, b, G, g, C, c, and checks that Q is a cost. */
#include "binding/programs/cone_call.h"

const char *const cone_array_names[CONE_ARRAYS] = {
    "Q", "b", "G", "g", "C", "c", "target_mu", "compliance", "compliance_eq", "lower", "upper"};

PyArrayObject *cone_vector_read(PyObject *object, const char *name) {
  const npy_intp any = -1;
  return array_read_finite(object, name, 1, &any);
}

/* Without rows, an empty array of any shape is accepted. */
static int matrix_read(cone_call *call, int which, PyObject *object, npy_intp rows,
                       npy_intp columns) {
  const npy_intp shape[2] = {rows, columns};
  const char *name = cone_array_names[which];
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
  /* G is large, and the solver checks its numbers */
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
  if (!(call->arrays[CONE_EQ] = cone_vector_read(in->c, "c"))) {
    return -1;
  }
  *count = PyArray_DIM(call->arrays[CONE_EQ], 0);
  return matrix_read(call, CONE_C, in->C, *count, n);
}

int cone_arrays_read(cone_call *call, const cone_arguments *in) {
  PyArrayObject **arrays = call->arrays;
  if (!(arrays[CONE_B] = cone_vector_read(in->b, "b"))) {
    return -1;
  }
  const npy_intp n = PyArray_DIM(arrays[CONE_B], 0);
  if (n == 0) {
    PyErr_SetString(PyExc_ValueError, "b: expected at least one variable");
    return -1;
  }
  if (!(arrays[CONE_OFFSET] = cone_vector_read(in->g, "g"))) {
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

/* Raises an error with the smallest eigenvalue. */
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

int cone_cost_check(const cone_call *call) {
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
