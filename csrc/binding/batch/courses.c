/* Inputs of rollouts for every step. */
#include "binding/batch/batch_call.h"

/* (samples, steps, width); *step_count -1: not yet known */
static const double *course_read(const batch_call *call, PyObject *object, const char *name,
                                 int width, npy_intp *step_count, ptrdiff_t *stride,
                                 ptrdiff_t *step) {
  PyArrayObject *array = (PyArrayObject *)object;
  const npy_intp item = (npy_intp)sizeof(double);
  if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_DOUBLE || PyArray_NDIM(array) != 3 ||
      !PyArray_ISALIGNED(array) || PyArray_ISBYTESWAPPED(array) ||
      PyArray_DIM(array, 0) != call->input.sample_count || PyArray_DIM(array, 2) != width ||
      !strides_fit(array) || (*step_count >= 0 && PyArray_DIM(array, 1) != *step_count)) {
    PyErr_Format(PyExc_ValueError, "%s: expected rows of doubles for every step of every sample",
                 name);
    return NULL;
  }
  *stride = PyArray_STRIDE(array, 0) / item;
  *step = PyArray_STRIDE(array, 1) / item;
  *step_count = PyArray_DIM(array, 1);
  return PyArray_DATA(array);
}

int courses_read(batch_call *call, PyObject *u, PyObject *tau, PyObject *wrench, PyObject *mocap,
                 npy_intp *step_count) {
  const model_object *model = call->step.model;
  qd_batch_input *in = &call->input;
  *step_count = -1;
  if (!(in->u = course_read(call, u, "u", model->nu, step_count, &in->u_stride, &in->u_step)) ||
      (tau != Py_None && !(in->tau = course_read(call, tau, "tau", model->nv, step_count,
                                                 &in->tau_stride, &in->tau_step))) ||
      (wrench != Py_None &&
       !(in->wrench = course_read(call, wrench, "wrench", 6 * model->body_count, step_count,
                                  &in->wrench_stride, &in->wrench_step))) ||
      (mocap != Py_None &&
       !(in->mocap = course_read(call, mocap, "mocap", 7 * model->mocap_count, step_count,
                                 &in->mocap_stride, &in->mocap_step)))) {
    return -1;
  }
  return 0;
}
