/* qd_contact <-> one structured NumPy array. */
#include "binding/core.h"

#include <stddef.h>
#include <string.h>

#define FIELD_OFFSET(field) ((Py_ssize_t)offsetof(qd_contact, field))

/* The fields of a contact have the same layout in the array as in the C struct, so an array is one
 * memcpy. */
PyArray_Descr *contact_descr_create(void) {
  PyObject *spec = Py_BuildValue(
      "{s:[ssssssssssss],s:[ssssssss(s(ii))sss],s:[nnnnnnnnnnnn],s:n}", "names", "geom_a", "geom_b",
      "body_a", "body_b", "pair", "dim", "dist", "pos", "frame", "friction", "force", "softened",
      "formats", "i4", "i4", "i4", "i4", "i4", "i4", "f8", "3f8", "f8", 3, 3, "5f8", "6f8", "f8",
      "offsets", FIELD_OFFSET(geom_a), FIELD_OFFSET(geom_b), FIELD_OFFSET(body_a),
      FIELD_OFFSET(body_b), FIELD_OFFSET(pair), FIELD_OFFSET(dim), FIELD_OFFSET(dist),
      FIELD_OFFSET(pos), FIELD_OFFSET(frame), FIELD_OFFSET(friction), FIELD_OFFSET(force),
      FIELD_OFFSET(softened), "itemsize", (Py_ssize_t)sizeof(qd_contact));
  if (!spec) {
    return NULL;
  }
  PyArray_Descr *descr = NULL;
  int ok = PyArray_DescrConverter(spec, &descr);
  Py_DECREF(spec);
  return ok == NPY_SUCCEED ? descr : NULL;
}

PyObject *contact_array_create(const core_state *state, const qd_contact *contacts, int count) {
  npy_intp shape[1] = {count};
  Py_INCREF(state->contact_descr);
  PyObject *array =
      PyArray_NewFromDescr(&PyArray_Type, state->contact_descr, 1, shape, NULL, NULL, 0, NULL);
  if (!array) {
    return NULL;
  }
  if (count > 0) {
    memcpy(PyArray_DATA((PyArrayObject *)array), contacts, (size_t)count * sizeof(qd_contact));
  }
  array_freeze(array);
  return array;
}

PyArrayObject *contact_array_read(const core_state *state, PyObject *object) {
  if (!PyArray_Check(object) || PyArray_NDIM((PyArrayObject *)object) != 1 ||
      !PyArray_EquivTypes(PyArray_DESCR((PyArrayObject *)object), state->contact_descr)) {
    PyErr_SetString(PyExc_TypeError, "contacts: expected a 1-D array of qdsim's contact dtype");
    return NULL;
  }
  Py_INCREF(state->contact_descr);
  return (PyArrayObject *)PyArray_FromAny(object, state->contact_descr, 1, 1, NPY_ARRAY_CARRAY_RO,
                                          NULL);
}
