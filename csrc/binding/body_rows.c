/* Numbers of bodies: an array for all of them, or a mapping from names. */
#include "binding/step_call.h"

#include <string.h>

/* Rows of `size` numbers, for the bodies in `names`. */
typedef struct body_rows {
  const char *argument, *kind;
  int count, size;
  PyObject *names;
} body_rows;

static int body_find(const body_rows *rows, PyObject *wanted) {
  if (!PyUnicode_Check(wanted)) {
    PyErr_Format(PyExc_TypeError, "%s: expected names of bodies as keys, got %s", rows->argument,
                 Py_TYPE(wanted)->tp_name);
    return -1;
  }
  for (int b = 0; b < rows->count; b++) {
    PyObject *name = PySequence_GetItem(rows->names, b);
    int equal = name ? PyObject_RichCompareBool(name, wanted, Py_EQ) : -1;
    Py_XDECREF(name);
    if (equal < 0) {
      return -1;
    }
    if (equal) {
      return b;
    }
  }
  PyErr_Format(PyExc_ValueError, "%s: the model has no %s %R", rows->argument, rows->kind, wanted);
  return -1;
}

/* Reads (name, numbers) into the body's row. */
static int entry_read(const body_rows *rows, PyObject *item, double *out) {
  PyObject *key, *value;
  if (!PyArg_ParseTuple(item, "OO", &key, &value)) {
    return -1;
  }
  int body = body_find(rows, key);
  if (body < 0) {
    return -1;
  }
  const char *text = PyUnicode_AsUTF8(key);
  char name[160];
  if (!text) {
    return -1;
  }
  PyOS_snprintf(name, sizeof name, "%s['%.140s']", rows->argument, text);
  return array_copy_vector(value, name, rows->size, out + rows->size * body);
}

static int mapping_read(const body_rows *rows, PyObject *mapping, double *out) {
  PyObject *items = rows->names ? PyMapping_Items(mapping) : NULL;
  int result = items ? 0 : -1;
  for (Py_ssize_t i = 0; result == 0 && i < PyList_GET_SIZE(items); i++) {
    result = entry_read(rows, PyList_GET_ITEM(items, i), out);
  }
  Py_XDECREF(items);
  return result;
}

static int is_mapping(PyObject *object) {
  return !PyArray_Check(object) && !PyList_Check(object) && !PyTuple_Check(object) &&
         PyMapping_Check(object) && PyObject_HasAttrString(object, "keys");
}

static int array_copy_rows(const body_rows *rows, PyObject *object, double *out) {
  npy_intp shape[2] = {rows->count, rows->size};
  PyArrayObject *array = array_read(object, rows->argument, 2, shape);
  if (!array) {
    return -1;
  }
  int result = array_check_finite(array, rows->argument);
  if (result == 0 && PyArray_NBYTES(array) > 0) {
    memcpy(out, PyArray_DATA(array), (size_t)PyArray_NBYTES(array));
  }
  Py_DECREF(array);
  return result;
}

int wrench_read(const core_state *state, const model_object *model, PyObject *model_argument,
                PyObject *wrench, double *out) {
  body_rows rows = {"wrench", "body", model->body_count, QD_WRENCH, NULL};
  if (!is_mapping(wrench)) {
    return array_copy_rows(&rows, wrench, out);
  }
  rows.names = PyObject_GetAttr(model_argument, state->text_body_names);
  memset(out, 0, (size_t)(QD_WRENCH * model->body_count) * sizeof(double));
  int result = mapping_read(&rows, wrench, out);
  Py_XDECREF(rows.names);
  return result;
}

int mocap_read(const model_object *model, PyObject *model_argument, PyObject *mocap, double *out) {
  body_rows rows = {"mocap", "mocap body", model->mocap_count, QD_POSE, NULL};
  rows.names = PyObject_GetAttrString(model_argument, "mocap_names");
  int result = rows.names ? 0 : -1;
  if (result == 0 && is_mapping(mocap)) {
    qd_mocap_default(model->model, out);
    result = mapping_read(&rows, mocap, out);
  } else if (result == 0) {
    result = array_copy_rows(&rows, mocap, out);
  }
  int index = -1;
  if (result == 0 && qd_mocap_normalize(model->model, out, out, &index) != QD_OK) {
    PyObject *name = PySequence_GetItem(rows.names, index);
    if (name) {
      PyErr_Format(PyExc_ValueError, "mocap: the quaternion of body %R is not of unit length",
                   name);
    }
    Py_XDECREF(name);
    result = -1;
  }
  Py_XDECREF(rows.names);
  return result;
}
