/* Compliant rows of a program, and the limits of intervals. */
#include "binding/programs/cone_call.h"

#include <float.h>

/* Index in the program of row r of the intervals. */
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

/* Reads one number, or `count`, into out (count); -1 with an exception. Accepts NaN. */
static int numbers_read(cone_call *call, int which, PyObject *object, npy_intp count,
                        const char *of_what, double *out) {
  const char *name = cone_array_names[which];
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
  for (npy_intp i = 0; i < count; ++i) {
    out[i] = from[is_one ? 0 : i];
  }
  return 0;
}

static int number_raise(int which, npy_intp i, const char *wanted, double value) {
  char text[64];
  PyOS_snprintf(text, sizeof text, "%.17g", value);
  PyErr_Format(PyExc_ValueError, "%s[%zd]: expected %s, got %s", cone_array_names[which], i, wanted,
               text);
  return -1;
}

/* found stays NULL if not given. */
static int compliance_read(cone_call *call, int which, PyObject *object, npy_intp count,
                           const char *of_what, double *out, const double **found) {
  if (!is_given(object)) {
    return 0;
  }
  if (numbers_read(call, which, object, count, of_what, out) < 0) {
    return -1;
  }
  for (npy_intp i = 0; i < count; ++i) {
    if (!(out[i] >= 0.0 && out[i] <= DBL_MAX)) {
      return number_raise(which, i, "a finite number >= 0", out[i]);
    }
  }
  *found = out;
  return 0;
}

/* Writes the limits of the intervals' rows at the indices of these rows; other entries are not
 * read. */
static int limit_read(cone_call *call, int which, PyObject *object, double *scratch, double *out) {
  const npy_intp count = interval_rows(&call->program);
  if (!is_given(object)) {
    PyErr_Format(PyExc_ValueError, "%s: wanted for the rows of intervals", cone_array_names[which]);
    return -1;
  }
  if (numbers_read(call, which, object, count, "row of an interval", scratch) < 0) {
    return -1;
  }
  for (npy_intp r = 0; r < count; ++r) {
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
      PyErr_Format(PyExc_ValueError, "%s: no entry of cones is an interval",
                   is_given(in->lower) ? "lower" : "upper");
      return -1;
    }
    return 0;
  }
  if (limit_read(call, CONE_LOWER, in->lower, scratch, lower) < 0 ||
      limit_read(call, CONE_UPPER, in->upper, scratch, upper) < 0) {
    return -1;
  }
  for (npy_intp r = 0; r < count; ++r) {
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

int cone_soft_read(cone_call *call, const cone_arguments *in) {
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
