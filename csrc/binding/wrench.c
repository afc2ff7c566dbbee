/* Wrenches on bodies: an array of all of them, or a mapping from names. */
#include "binding/step_call.h"

#include <string.h>

#define WRENCH_SIZE 6

static int body_find(const model_object *model, PyObject *body_names, PyObject *wanted) {
  if (!PyUnicode_Check(wanted)) {
    PyErr_Format(PyExc_TypeError, "wrench: expected names of bodies as keys, got %s",
                 Py_TYPE(wanted)->tp_name);
    return -1;
  }
  for (int b = 0; b < model->body_count; b++) {
    PyObject *name = PySequence_GetItem(body_names, b);
    int equal = name ? PyObject_RichCompareBool(name, wanted, Py_EQ) : -1;
    Py_XDECREF(name);
    if (equal < 0) {
      return -1;
    }
    if (equal) {
      return b;
    }
  }
  PyErr_Format(PyExc_ValueError, "wrench: the model has no body %R", wanted);
  return -1;
}

/* (name, six numbers) into the body's row */
static int entry_read(const model_object *model, PyObject *body_names, PyObject *item,
                      double *out) {
  PyObject *key, *value;
  if (!PyArg_ParseTuple(item, "OO:wrench", &key, &value)) {
    return -1;
  }
  int body = body_find(model, body_names, key);
  if (body < 0) {
    return -1;
  }
  const char *text = PyUnicode_AsUTF8(key);
  char name[160];
  if (!text) {
    return -1;
  }
  PyOS_snprintf(name, sizeof name, "wrench['%.140s']", text);
  return array_copy_vector(value, name, WRENCH_SIZE, out + WRENCH_SIZE * body);
}

static int mapping_read(const core_state *state, const model_object *model,
                        PyObject *model_argument, PyObject *mapping, double *out) {
  PyObject *body_names = PyObject_GetAttr(model_argument, state->text_body_names);
  PyObject *items = body_names ? PyMapping_Items(mapping) : NULL;
  int result = items ? 0 : -1;
  memset(out, 0, (size_t)(WRENCH_SIZE * model->body_count) * sizeof(double));
  for (Py_ssize_t i = 0; result == 0 && i < PyList_GET_SIZE(items); i++) {
    result = entry_read(model, body_names, PyList_GET_ITEM(items, i), out);
  }
  Py_XDECREF(items);
  Py_XDECREF(body_names);
  return result;
}

int wrench_read(const core_state *state, const model_object *model, PyObject *model_argument,
                PyObject *wrench, double *out) {
  if (!PyArray_Check(wrench) && !PyList_Check(wrench) && !PyTuple_Check(wrench) &&
      PyMapping_Check(wrench) && PyObject_HasAttrString(wrench, "keys")) {
    return mapping_read(state, model, model_argument, wrench, out);
  }
  npy_intp shape[2] = {model->body_count, WRENCH_SIZE};
  PyArrayObject *array = array_read(wrench, "wrench", 2, shape);
  if (!array) {
    return -1;
  }
  int result = array_check_finite(array, "wrench");
  if (result == 0) {
    memcpy(out, PyArray_DATA(array), (size_t)PyArray_NBYTES(array));
  }
  Py_DECREF(array);
  return result;
}
