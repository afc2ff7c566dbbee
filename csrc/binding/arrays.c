/* Python objects -> C arrays. Every message begins with the name of the argument. */
#include "binding/core.h"

#include <string.h>

/* "(7,)", "(3, any)": shapes as NumPy prints them. */
static void shape_format(char *text, size_t size, int ndim, const npy_intp *shape) {
  size_t used = 0;
  used += (size_t)PyOS_snprintf(text, size, "(");
  for (int i = 0; i < ndim && used + 32 < size; i++) {
    if (shape[i] < 0) {
      used += (size_t)PyOS_snprintf(text + used, size - used, "any");
    } else {
      used += (size_t)PyOS_snprintf(text + used, size - used, "%" NPY_INTP_FMT, shape[i]);
    }
    if (i + 1 < ndim || ndim == 1) {
      used += (size_t)PyOS_snprintf(text + used, size - used, i + 1 < ndim ? ", " : ",");
    }
  }
  PyOS_snprintf(text + used, size - used, ")");
}

static int shape_fits(PyArrayObject *array, int ndim, const npy_intp *shape) {
  if (PyArray_NDIM(array) != ndim) {
    return 0;
  }
  for (int i = 0; i < ndim; i++) {
    if (shape[i] >= 0 && PyArray_DIM(array, i) != shape[i]) {
      return 0;
    }
  }
  return 1;
}

static int shape_check(PyArrayObject *array, const char *name, int ndim, const npy_intp *shape) {
  if (shape_fits(array, ndim, shape)) {
    return 0;
  }
  char expected[160], got[160];
  shape_format(expected, sizeof expected, ndim, shape);
  shape_format(got, sizeof got, PyArray_NDIM(array), PyArray_DIMS(array));
  PyErr_Format(PyExc_ValueError, "%s: expected shape %s, got %s", name, expected, got);
  return -1;
}

/* Replaces NumPy's exception for an object that is not an array by a TypeError with our argument's
 * name. */
static PyArrayObject *array_from_object(PyObject *object, const char *name) {
  PyObject *array = PyArray_FROM_O(object);
  if (array) {
    return (PyArrayObject *)array;
  }
  if (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError,
                 "%s: expected an array of numbers, got a %s that is no such array", name,
                 Py_TYPE(object)->tp_name);
  }
  return NULL;
}

/* Masked arrays are refused: a plain array would contain the masked numbers. */
static int has_mask(PyObject *object) {
  return PyArray_Check(object) && !PyArray_CheckExact(object) &&
         PyObject_HasAttrString(object, "mask");
}

static PyArrayObject *array_convert(PyObject *object, const char *name, int type, int ndim,
                                    const npy_intp *shape) {
  if (has_mask(object)) {
    PyErr_Format(PyExc_TypeError, "%s: expected an array without a mask, got %s", name,
                 Py_TYPE(object)->tp_name);
    return NULL;
  }
  PyArrayObject *array = array_from_object(object, name);
  if (!array) {
    return NULL;
  }
  int kind = PyArray_TYPE(array);
  int is_real = PyTypeNum_ISINTEGER(kind) || PyTypeNum_ISFLOAT(kind);
  /* NumPy gives an empty list the type float64. */
  int is_int = PyTypeNum_ISINTEGER(kind) || (is_real && PyArray_SIZE(array) == 0);
  if (type == NPY_DOUBLE ? !is_real : !is_int) {
    PyErr_Format(PyExc_TypeError, "%s: expected %s, got dtype %S", name,
                 type == NPY_DOUBLE ? "real numbers" : "integers",
                 (PyObject *)PyArray_DESCR(array));
    Py_DECREF(array);
    return NULL;
  }
  if (shape_check(array, name, ndim, shape) < 0) {
    Py_DECREF(array);
    return NULL;
  }
  if (PyArray_SIZE(array) > INT32_MAX) { /* it may be a view that takes little memory */
    PyErr_Format(PyExc_ValueError, "%s: %zd numbers are too many", name, PyArray_SIZE(array));
    Py_DECREF(array);
    return NULL;
  }
  PyObject *out =
      PyArray_FROMANY((PyObject *)array, type, ndim, ndim,
                      NPY_ARRAY_CARRAY_RO | NPY_ARRAY_ENSUREARRAY | NPY_ARRAY_FORCECAST);
  Py_DECREF(array);
  return (PyArrayObject *)out;
}

static int is_ready(PyObject *object, int type, int ndim) {
  if (!PyArray_CheckExact(object)) {
    return 0;
  }
  PyArrayObject *array = (PyArrayObject *)object;
  return PyArray_TYPE(array) == type && PyArray_NDIM(array) == ndim && PyArray_ISCARRAY_RO(array);
}

PyArrayObject *array_read(PyObject *object, const char *name, int ndim, const npy_intp *shape) {
  if (!is_ready(object, NPY_DOUBLE, ndim) || !shape_fits((PyArrayObject *)object, ndim, shape)) {
    return array_convert(object, name, NPY_DOUBLE, ndim, shape);
  }
  Py_INCREF(object);
  return (PyArrayObject *)object;
}

PyArrayObject *array_read_int(PyObject *object, const char *name, int ndim, const npy_intp *shape) {
  if (!is_ready(object, NPY_INT32, ndim) || !shape_fits((PyArrayObject *)object, ndim, shape)) {
    return array_convert(object, name, NPY_INT32, ndim, shape);
  }
  Py_INCREF(object);
  return (PyArrayObject *)object;
}

/* A number is NaN or infinite if all bits of its exponent are set; adding one then carries into the
 * sign bit. Masks and sums of integers are vectorised on every processor. */
static int numbers_are_finite(const double *numbers, Py_ssize_t count) {
  const uint64_t exponent = 0x7ff0000000000000u, one = 0x0010000000000000u;
  uint64_t carry = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, numbers + i, sizeof bits);
    carry |= (bits & exponent) + one;
  }
  return carry >> 63 == 0;
}

Py_ssize_t numbers_first_bad(const double *numbers, Py_ssize_t count) {
  if (numbers_are_finite(numbers, count)) {
    return -1;
  }
  for (Py_ssize_t i = 0; i < count; i++) {
    if (!numbers_are_finite(numbers + i, 1)) {
      return i;
    }
  }
  return -1; /* another thread has changed the caller's array meanwhile */
}

static void bad_number_raise(const char *name, const char *index, double value) {
  PyErr_Format(PyExc_ValueError, "%s: element %s is %s", name, index,
               value != value ? "nan" : (value > 0 ? "inf" : "-inf"));
}

int array_check_finite(PyArrayObject *array, const char *name) {
  const double *numbers = PyArray_DATA(array);
  Py_ssize_t bad = numbers_first_bad(numbers, PyArray_SIZE(array));
  if (bad < 0) {
    return 0;
  }
  char index[64];
  if (PyArray_NDIM(array) == 2) {
    Py_ssize_t columns = PyArray_DIM(array, 1);
    PyOS_snprintf(index, sizeof index, "[%zd, %zd]", bad / columns, bad % columns);
  } else {
    PyOS_snprintf(index, sizeof index, "%zd", bad);
  }
  bad_number_raise(name, index, numbers[bad]);
  return -1;
}

int array_copy_vector(PyObject *object, const char *name, int count, double *out) {
  npy_intp shape[1] = {count};
  size_t bytes = (size_t)count * sizeof(double);
  if (is_ready(object, NPY_DOUBLE, 1) && PyArray_DIM((PyArrayObject *)object, 0) == count) {
    memcpy(out, PyArray_DATA((PyArrayObject *)object), bytes);
  } else {
    PyArrayObject *array = array_convert(object, name, NPY_DOUBLE, 1, shape);
    if (!array) {
      return -1;
    }
    memcpy(out, PyArray_DATA(array), bytes);
    Py_DECREF(array);
  }
  Py_ssize_t bad = numbers_first_bad(out, count);
  if (bad < 0) {
    return 0;
  }
  char index[32];
  PyOS_snprintf(index, sizeof index, "%zd", bad);
  bad_number_raise(name, index, out[bad]);
  return -1;
}

int array_copy_matrix(PyObject *object, const char *name, int rows, int columns, double *out) {
  const npy_intp shape[2] = {rows, columns};
  PyArrayObject *array = array_read_finite(object, name, 2, shape);
  if (!array) {
    return -1;
  }
  memcpy(out, PyArray_DATA(array), (size_t)(rows * columns) * sizeof(double));
  Py_DECREF(array);
  return 0;
}

PyArrayObject *array_read_finite(PyObject *object, const char *name, int ndim,
                                 const npy_intp *shape) {
  PyArrayObject *array = array_read(object, name, ndim, shape);
  if (array && array_check_finite(array, name) < 0) {
    Py_CLEAR(array);
  }
  return array;
}

/* ---------------------------------------------------------------- single values */

static int is_boolean(PyObject *object) {
  return PyBool_Check(object) || PyArray_IsScalar(object, Bool);
}

int number_is(PyObject *object) {
  return PyFloat_Check(object) || PyLong_Check(object) || PyArray_IsScalar(object, Generic) ||
         PyUnicode_Check(object) || PyBytes_Check(object) ||
         (PyArray_Check(object) && PyArray_NDIM((PyArrayObject *)object) == 0);
}

static int is_real_scalar(PyObject *object) {
  if (PyArray_Check(object)) {
    PyArrayObject *array = (PyArrayObject *)object;
    const int kind = PyArray_TYPE(array);
    return PyArray_CheckExact(object) && PyArray_NDIM(array) == 0 &&
           (PyTypeNum_ISINTEGER(kind) || PyTypeNum_ISFLOAT(kind));
  }
  return (PyFloat_Check(object) || PyLong_Check(object) || PyArray_IsScalar(object, Floating) ||
          PyArray_IsScalar(object, Integer)) &&
         !is_boolean(object);
}

/* A TypeError with the expected and the actual type. */
static int kind_raise(const char *name, const char *wanted, PyObject *object) {
  PyErr_Format(PyExc_TypeError, "%s: expected %s, got %s", name, wanted, Py_TYPE(object)->tp_name);
  return -1;
}

int number_read(PyObject *object, const char *name, double *out) {
  if (!is_real_scalar(object)) {
    return kind_raise(name, "a number", object);
  }
  *out = PyFloat_AsDouble(object);
  if (*out == -1.0 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) {
      return -1;
    }
    PyErr_Clear();
    PyObject *zero = PyLong_FromLong(0);
    const int negative = zero ? PyObject_RichCompareBool(object, zero, Py_LT) : -1;
    Py_XDECREF(zero);
    if (negative < 0) {
      return -1;
    }
    *out = negative ? -Py_HUGE_VAL : Py_HUGE_VAL;
  }
  if (*out == *out) {
    return 0;
  }
  PyErr_Format(PyExc_ValueError, "%s: is nan", name);
  return -1;
}

int number_read_between(PyObject *object, const char *name, double above, double below,
                        double *out) {
  char text[64], got[64];
  PyOS_snprintf(text, sizeof text, "a number in (%g, %g)", above, below);
  if (!is_real_scalar(object)) {
    return kind_raise(name, text, object);
  }
  if (number_read(object, name, out) < 0) {
    return -1;
  }
  if (*out > above && *out < below) {
    return 0;
  }
  PyOS_snprintf(got, sizeof got, "%g", *out);
  PyErr_Format(PyExc_ValueError, "%s: expected %s, got %s", name, text, got);
  return -1;
}

static int is_integer(PyObject *object) {
  return (PyLong_Check(object) || PyArray_IsScalar(object, Integer)) && !is_boolean(object);
}

int int_read_between(PyObject *object, const char *name, int least, int most, int *out) {
  char wanted[64];
  PyOS_snprintf(wanted, sizeof wanted, "an integer from %d to %d", least, most);
  if (!is_integer(object)) {
    return kind_raise(name, wanted, object);
  }
  int overflow;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (value == -1 && PyErr_Occurred()) {
    return -1;
  }
  if (overflow) {
    PyErr_Format(PyExc_ValueError, "%s: expected %s, got one of more than 64 bits", name, wanted);
    return -1;
  }
  if (value < least || value > most) {
    PyErr_Format(PyExc_ValueError, "%s: expected %s, got %lld", name, wanted, value);
    return -1;
  }
  *out = (int)value;
  return 0;
}

int int_read(PyObject *object, const char *name, int *out) {
  return int_read_between(object, name, INT32_MIN, INT32_MAX, out);
}

int flag_read(PyObject *object, const char *name, int *out) {
  if (!is_boolean(object)) {
    return kind_raise(name, "True or False", object);
  }
  *out = PyObject_IsTrue(object);
  return *out < 0 ? -1 : 0;
}

/* ---------------------------------------------------------------- results */

PyObject *array_new_vector(int count) {
  npy_intp shape[1] = {count};
  return PyArray_SimpleNew(1, shape, NPY_DOUBLE);
}

PyObject *array_new_matrix(int rows, int columns) {
  npy_intp shape[2] = {rows, columns};
  return PyArray_SimpleNew(2, shape, NPY_DOUBLE);
}

void array_freeze(PyObject *array) {
  PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
}

static PyObject *fill_and_freeze(PyObject *array, const double *numbers) {
  if (!array) {
    return NULL;
  }
  PyArrayObject *filled = (PyArrayObject *)array;
  memcpy(PyArray_DATA(filled), numbers, (size_t)PyArray_NBYTES(filled));
  array_freeze(array);
  return array;
}

PyObject *array_from_numbers(const double *numbers, int count) {
  return fill_and_freeze(array_new_vector(count), numbers);
}

PyObject *matrix_from_numbers(const double *numbers, int rows, int columns) {
  return fill_and_freeze(array_new_matrix(rows, columns), numbers);
}
