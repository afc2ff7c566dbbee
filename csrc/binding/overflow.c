/* Which argument of a step made its numbers overflow. */
#include "binding/core.h"

#include <math.h>

/* Smaller numbers make nothing overflow by themselves. */
#define LARGE 1e30

typedef struct largest {
  const char *name;
  int index;
  double value;
} largest;

static void note(largest *found, const char *name, const double *numbers, int count) {
  for (int i = 0; numbers && i < count; i++)
    if (isfinite(numbers[i]) && fabs(numbers[i]) > fabs(found->value))
      *found = (largest){.name = name, .index = i, .value = numbers[i]};
}

PyObject *overflow_describe(const qd_model *model, const qd_step_input *input,
                            const double *const *parameters) {
  largest found = {NULL, 0, LARGE};
  char text[128];
  note(&found, "q", input->q, qd_model_nq(model));
  note(&found, "u", input->u, qd_argument_size(model, QD_BY_U));
  note(&found, "tau", input->tau, qd_argument_size(model, QD_BY_TAU));
  note(&found, "wrench", input->wrench, qd_argument_size(model, QD_BY_WRENCH));
  for (int k = 0; k < QD_PARAMETER_COUNT; k++) {
    const double *values =
        parameters && parameters[k] ? parameters[k] : qd_parameter_values(model, (qd_parameter)k);
    note(&found, qd_parameter_name((qd_parameter)k), values,
         qd_parameter_size(model, (qd_parameter)k));
  }
  if (!found.name) return PyTuple_New(0);
  PyOS_snprintf(text, sizeof text, "%s is too large (element %d is %g)", found.name, found.index,
                found.value);
  return Py_BuildValue("(s)", text);
}
