/* Access to the module's state, and parsing of arguments. */
#include "binding/core.h"

core_state *core_state_of_type(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030b0000
  PyObject *found = PyType_GetModuleByDef(type, &core_module);
  return found ? PyModule_GetState(found) : NULL;
#else
  PyObject *mro = type->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(mro); i++) {
    PyTypeObject *base = (PyTypeObject *)PyTuple_GET_ITEM(mro, i);
    if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE)) {
      continue;
    }
    PyObject *module = ((PyHeapTypeObject *)base)->ht_module;
    if (module && PyModule_GetDef(module) == &core_module) {
      return PyModule_GetState(module);
    }
  }
  PyErr_SetString(PyExc_SystemError, "qdsim._core: type without module");
  return NULL;
#endif
}

static int argument_index(const char *const *names, int count, PyObject *wanted) {
  for (int i = 0; i < count; i++) {
    if (PyUnicode_CompareWithASCIIString(wanted, names[i]) == 0) {
      return i;
    }
  }
  return -1;
}

int arguments_parse(const char *function, const char *const *names, int count, int positional,
                    int required, PyObject *const *args, Py_ssize_t arg_count, PyObject *kwnames,
                    PyObject **out) {
  if (arg_count > positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments, got %zd", function,
                 positional, arg_count);
    return -1;
  }
  for (int i = 0; i < count; i++) {
    out[i] = i < arg_count ? args[i] : NULL;
  }
  Py_ssize_t keyword_count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t k = 0; k < keyword_count; k++) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, k);
    int i = argument_index(names, count, name);
    if (i < 0 || out[i]) {
      PyErr_Format(PyExc_TypeError,
                   i < 0 ? "%s() has no argument %R" : "%s() got two values for argument %R",
                   function, name);
      return -1;
    }
    out[i] = args[arg_count + k];
  }
  for (int i = 0; i < required; i++) {
    if (!out[i]) {
      PyErr_Format(PyExc_TypeError, "%s() misses the argument '%s'", function, names[i]);
      return -1;
    }
  }
  return 0;
}
