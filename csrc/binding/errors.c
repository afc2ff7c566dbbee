/* qd_status -> Python exceptions. */
#include "binding/core.h"

static const char *status_reason(qd_status status) {
  switch (status) {
  case QD_INFEASIBLE:
    return "infeasible: no point satisfies the constraints (in a step: contacts, joint limits and "
           "held joints contradict each other)";
  case QD_UNBOUNDED:
    return "unbounded: the cost falls for ever (in a step: nothing holds some motion; epsilon = 0 "
           "and "
           "an object without support?)";
  case QD_ITERATION_LIMIT:
    return "not converged within the iteration limit";
  case QD_NUMERICAL_TROUBLE:
    return "numerical trouble: a factorisation or a step failed (very different stiffnesses or "
           "masses?)";
  default:
    return "not solved";
  }
}

static PyObject *solver_error_raise(const core_state *state, const char *caller, qd_status status,
                                    const solver_info *info) {
  const qd_cone_info *cone = &info->cone;
  char residuals[160];
  PyOS_snprintf(residuals, sizeof residuals,
                "primal residual %.1e, dual residual %.1e, complementarity %.1e",
                cone->primal_residual, cone->dual_residual, cone->complementarity);
  PyObject *text = PyUnicode_FromFormat("%s: %s; %s after %d iterations", caller,
                                        status_reason(status), residuals, cone->iterations);
  PyObject *report = text ? info_create(state, info) : NULL;
  PyObject *error = report ? PyObject_CallOneArg(state->solver_error, text) : NULL;
  if (error && PyObject_SetAttrString(error, "info", report) == 0)
    PyErr_SetObject(state->solver_error, error);
  Py_XDECREF(error);
  Py_XDECREF(report);
  Py_XDECREF(text);
  return NULL;
}

PyObject *status_raise(const core_state *state, const char *caller, qd_status status,
                       const solver_info *info) {
  switch (status) {
  case QD_OUT_OF_MEMORY:
  case QD_OUT_OF_CAPACITY:
    return PyErr_NoMemory();
  case QD_BAD_ARGUMENT:
    return PyErr_Format(PyExc_ValueError, "%s: sizes or values of the arguments make no sense",
                        caller);
  case QD_NOT_FINITE: /* the arguments were checked, so it arose on the way */
    return PyErr_Format(PyExc_ValueError, "%s: the numbers overflow: an argument is too large",
                        caller);
  default:
    return solver_error_raise(state, caller, status, info);
  }
}
