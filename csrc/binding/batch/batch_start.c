/* Guesses of a batch: one Step for all samples, or the results of an earlier batch for each. */
#include "binding/batch/batch_start.h"

/* The numbers of a C-contiguous array of this type and size. */
static void *numbers_read(PyObject *object, int type, npy_intp size) {
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_Check(object) && PyArray_TYPE(array) == type && PyArray_SIZE(array) == size &&
      PyArray_ISCARRAY_RO(array)) {
    return PyArray_DATA(array);
  }
  PyErr_SetString(PyExc_ValueError, "warm_start: arrays of another shape or type");
  return NULL;
}

/* 1 if the start indices of the contacts ascend from 0 to the number of contacts. */
static int places_fit(const int64_t *start, npy_intp count, npy_intp contact_count) {
  if (start[0] != 0 || start[count] != contact_count) {
    return 0;
  }
  for (npy_intp i = 0; i < count; i++) {
    if (start[i + 1] < start[i] || start[i + 1] - start[i] > INT32_MAX) {
      return 0;
    }
  }
  return 1;
}

/* Reads (contact_start, contacts, delta, limit_force, constraint_force, tendon_force) of `count`
 * samples. */
static int rows_read(batch_start *self, const step_call *call, PyObject *object, npy_intp count) {
  const model_object *model = call->model;
  const npy_intp nv = model->nv, nf = QD_CONSTRAINT_FORCE * model->constraint_count;
  PyObject *places, *records, *arrays[4];
  if (!PyArg_ParseTuple(object, "OOOOOO:warm_start", &places, &records, &arrays[0], &arrays[1],
                        &arrays[2], &arrays[3])) {
    return -1;
  }
  const int64_t *start = numbers_read(places, NPY_INT64, count + 1);
  const double *delta = start ? numbers_read(arrays[0], NPY_DOUBLE, count * nv) : NULL;
  const double *limit = delta ? numbers_read(arrays[1], NPY_DOUBLE, count * nv) : NULL;
  const double *constraint = limit ? numbers_read(arrays[2], NPY_DOUBLE, count * nf) : NULL;
  const npy_intp nt = model->tendon_count;
  const double *tendon = constraint ? numbers_read(arrays[3], NPY_DOUBLE, count * nt) : NULL;
  if (!tendon) {
    return -1;
  }
  self->contacts = contact_array_read(call->state, records);
  if (!self->contacts) {
    return -1;
  }
  const qd_contact *contacts = PyArray_DATA(self->contacts);
  const npy_intp contact_count = PyArray_SIZE(self->contacts);
  if (!places_fit(start, count, contact_count) || !contacts_fit(model, contacts, contact_count)) {
    PyErr_SetString(PyExc_ValueError, "warm_start: steps of another model");
    return -1;
  }
  self->starts = PyMem_Malloc((size_t)(count > 0 ? count : 1) * sizeof *self->starts);
  if (!self->starts) {
    PyErr_NoMemory();
    return -1;
  }
  for (npy_intp i = 0; i < count; i++) {
    self->starts[i] = (qd_step_start){.contact_count = (int)(start[i + 1] - start[i]),
                                      .contacts = contacts + start[i],
                                      .delta = delta + i * nv,
                                      .limit_force = limit + i * nv,
                                      .constraint_force = constraint + i * nf,
                                      .tendon_force = tendon + i * nt};
  }
  return 0;
}

int batch_start_begin(batch_start *self, const step_call *call, PyObject *object,
                      qd_batch_input *input) {
  *self = (batch_start){.starts = NULL};
  if (object == Py_None) {
    return 0;
  }
  if (PyTuple_Check(object)) {
    if (rows_read(self, call, object, (npy_intp)input->sample_count) < 0) {
      return -1;
    }
    input->start = self->starts;
    input->start_stride = 1;
    return 0;
  }
  if (step_start_of(call, object, &self->one) < 0) {
    return -1;
  }
  input->start = &self->one;
  return 0;
}

void batch_start_end(batch_start *self) {
  Py_CLEAR(self->contacts);
  PyMem_Free(self->starts);
  self->starts = NULL;
}
