/* Finds the argument that made numbers overflow. */
#include "binding/core.h"

#include <math.h>

/* Smaller numbers alone cause no overflow. */
#define LARGE 1e30

void largest_note(largest_number *found, const char *name, const double *numbers,
                  Py_ssize_t count) {
  for (Py_ssize_t i = 0; numbers && i < count; i++) {
    if (isfinite(numbers[i]) && fabs(numbers[i]) > fabs(found->value)) {
      *found = (largest_number){.name = name, .index = i, .value = numbers[i]};
    }
  }
}

PyObject *largest_describe(const largest_number *found) {
  char text[128];
  if (!found->name) {
    return PyTuple_New(0);
  }
  PyOS_snprintf(text, sizeof text, "%s is too large (element %zd is %g)", found->name, found->index,
                found->value);
  return Py_BuildValue("(s)", text);
}

PyObject *overflow_describe(const qd_model *model, const qd_step_input *input,
                            const double *const *parameters) {
  largest_number found = {NULL, 0, LARGE};
  largest_note(&found, "q", input->q, qd_model_nq(model));
  largest_note(&found, "v", input->v, qd_argument_size(model, QD_BY_V));
  largest_note(&found, "u", input->u, qd_argument_size(model, QD_BY_U));
  largest_note(&found, "tau", input->tau, qd_argument_size(model, QD_BY_TAU));
  largest_note(&found, "wrench", input->wrench, qd_argument_size(model, QD_BY_WRENCH));
  largest_note(&found, "mocap", input->mocap, 7 * qd_model_mocap_count(model));
  for (int k = 0; k < QD_PARAMETER_COUNT; k++) {
    const double *values =
        parameters && parameters[k] ? parameters[k] : qd_parameter_values(model, (qd_parameter)k);
    largest_note(&found, qd_parameter_name((qd_parameter)k), values,
                 qd_parameter_size(model, (qd_parameter)k));
  }
  return largest_describe(&found);
}
