/* Feedback of rollouts: a dict of arrays -> qd_feedback. */
#include "binding/batch/batch_call.h"

enum { FEEDBACK_NEEDED = 5 };

int feedback_read(feedback_arrays *feedback, batch_call *call, PyObject *object,
                  npy_intp step_count) {
  static const char *const names[] = {"q_nominal", "u_before", "x_gain",    "lower",
                                      "upper",     "u_gain",   "v_nominal", "v_gain"};
  const model_object *model = call->step.model;
  const npy_intp count = (npy_intp)call->input.sample_count, nu = model->nu;
  const npy_intp path[] = {step_count, model->nq}, v_path[] = {step_count, model->nv},
                 rows[] = {count, step_count, nu};
  const npy_intp x_gain[] = {count, step_count, nu, model->nv},
                 u_gain[] = {count, step_count, nu, nu};
  const npy_intp *const shapes[] = {path, &nu, x_gain, rows, rows, u_gain, v_path, x_gain};
  static const int ranks[] = {2, 1, 4, 3, 3, 4, 2, 4};
  if (object == Py_None) {
    return 0;
  }
  if (!PyDict_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "feedback: expected None or a dict of arrays");
    return -1;
  }
  const double *data[FEEDBACK_ARRAYS] = {NULL};
  for (int k = 0; k < FEEDBACK_ARRAYS; k++) {
    PyObject *array = PyDict_GetItemString(object, names[k]);
    if (!array && k >= FEEDBACK_NEEDED) {
      continue;
    }
    if (!array) {
      PyErr_Format(PyExc_ValueError, "feedback: misses %s", names[k]);
      return -1;
    }
    feedback->in[k] = array_read(array, names[k], ranks[k], shapes[k]);
    if (!feedback->in[k]) {
      return -1;
    }
    data[k] = PyArray_DATA(feedback->in[k]);
  }
  if ((data[6] != NULL) != (data[7] != NULL) || (data[6] && !call->input.v)) {
    PyErr_SetString(PyExc_ValueError, "feedback: v_nominal and v_gain come together, with v");
    return -1;
  }
  feedback->values = (qd_feedback){.q_nominal = data[0],
                                   .u_before = data[1],
                                   .x_gain = data[2],
                                   .lower = data[3],
                                   .upper = data[4],
                                   .u_gain = data[5],
                                   .v_nominal = data[6],
                                   .v_gain = data[7]};
  call->input.feedback = &feedback->values;
  return 0;
}

void feedback_commands_create(feedback_arrays *feedback, const batch_call *call, PyObject *results,
                              npy_intp step_count) {
  if (call->input.feedback) {
    feedback->values.u =
        result_create(results, Py_None, "commands", NPY_DOUBLE, (npy_intp)call->input.sample_count,
                      step_count, call->step.model->nu);
  }
}

void feedback_end(feedback_arrays *feedback) {
  for (int k = 0; k < FEEDBACK_ARRAYS; k++) {
    Py_XDECREF(feedback->in[k]);
  }
}
