/* The cones of a program, and the smoothing of each. */
#include "binding/programs/cone_call.h"

#include <float.h>

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

/* Reads the most frequent kind of entry and returns 1; 0 for any other. */
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

/* Reads any entry, or raises an error about it. */
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

/* Kinds and rows of the cones, whose sum must be the number of rows of G. */
int cone_list_read(cone_call *call, PyObject *object) {
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
  for (Py_ssize_t i = 0; !bad && i < count && i < PySequence_Fast_GET_SIZE(list); ++i) {
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

/* The same target for every cone, in memory of the call; *found stays NULL for zero. */
static int same_target(cone_call *call, PyObject *object, const double **found) {
  const size_t count = (size_t)call->program.cone_count;
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
  if (!(call->targets = PyMem_Malloc((count + 1) * sizeof(double)))) {
    PyErr_NoMemory();
    return -1;
  }
  for (size_t i = 0; i < count; ++i) {
    call->targets[i] = one;
  }
  *found = call->targets;
  return 0;
}

static int target_of_each(cone_call *call, PyObject *object, const double **found) {
  const npy_intp count = call->program.cone_count;
  PyArrayObject *array = call->arrays[CONE_MU] = cone_vector_read(object, "target_mu");
  if (!array) {
    return -1;
  }
  if (PyArray_DIM(array, 0) != count) {
    PyErr_Format(PyExc_ValueError,
                 "target_mu: expected a number or shape (%zd,), one per cone, got (%zd,)", count,
                 PyArray_DIM(array, 0));
    return -1;
  }
  *found = PyArray_DATA(array);
  return 0;
}

/* One number, or one per cone; the program has no targets if all are zero. */
int cone_targets_read(cone_call *call, PyObject *object) {
  qd_cone_program *program = &call->program;
  const double *found = NULL;
  if (!is_given(object)) {
    return 0;
  }
  if ((number_is(object) ? same_target : target_of_each)(call, object, &found) < 0) {
    return -1;
  }
  double most = 0.0;
  for (int i = 0; found && i < program->cone_count; ++i) {
    if (found[i] < 0.0) {
      return target_raise(found[i]);
    }
    most = found[i] > most ? found[i] : most;
  }
  program->target_mu = most > 0.0 ? found : NULL;
  return 0;
}
