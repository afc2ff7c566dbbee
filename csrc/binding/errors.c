/* qd_status -> Python exceptions. */
#include "binding/core.h"

static const char *status_reason(qd_status status) {
  switch (status) {
  case QD_INFEASIBLE:
    return "infeasible: no point within reach satisfies the constraints (none as far as a thousand "
           "times the distances at hand; in a step: contacts, joint limits and held joints "
           "contradict each other)";
  case QD_UNBOUNDED:
    return "unbounded: the cost decreases without bound (in a step: nothing limits some motion; "
           "epsilon = 0 and an object without support?)";
  case QD_NOT_UNIQUE:
    return "not unique: nothing determines how far something moves (epsilon = 0: bodies without "
           "mass must be held by contacts, limits or springs; give them mass, or hold them)";
  case QD_ITERATION_LIMIT:
    return "not converged within the iteration limit";
  case QD_NUMERICAL_TROUBLE:
    return "numerical trouble: a factorisation or a step failed (very different stiffnesses or "
           "masses?)";
  case QD_LAW_NOT_MET:
    return "no motion was found that holds Coulomb's law to the tolerance (none need exist; a "
           "shorter h often helps, a larger tolerance accepts more, max_programs takes the best of "
           "some convex programs, and law='convex' always has a solution)";
  default:
    return "not solved";
  }
}

/* ": one, another", or nothing */
static PyObject *join(PyObject *culprits) {
  if (!culprits || PyTuple_GET_SIZE(culprits) == 0) {
    return PyUnicode_FromString("");
  }
  PyObject *comma = PyUnicode_FromString(", ");
  PyObject *list = comma ? PyUnicode_Join(comma, culprits) : NULL;
  PyObject *text = list ? PyUnicode_FromFormat(": %U", list) : NULL;
  Py_XDECREF(list);
  Py_XDECREF(comma);
  return text;
}

/* Advice on what to do. */
static const char *advice(qd_status status, const PyObject *culprits) {
  return status == QD_INFEASIBLE && culprits
             ? " (links that overlap by design: load(..., exclude_overlaps=True); "
               "Options(infeasible=\"soften\") violates what contradicts itself as little as "
               "possible)"
             : "";
}

static PyObject *solver_error_raise(const core_state *state, const char *caller, qd_status status,
                                    const solver_info *info, PyObject *culprits) {
  const qd_cone_info *cone = &info->cone;
  char residuals[320], law[160] = "";
  if (status == QD_LAW_NOT_MET) {
    PyOS_snprintf(law, sizeof law, "law residual %.1e m of %d convex programs, ",
                  info->law_residual, info->convex_programs);
  } else if (status == QD_INFEASIBLE && info->convex_programs > 0) {
    PyOS_snprintf(law, sizeof law,
                  "the convex program that Coulomb's law begins with; its own equations (of cones "
                  "and pyramids of two rays) led to no motion either, ");
  }
  PyOS_snprintf(residuals, sizeof residuals,
                "%sprimal residual %.1e, dual residual %.1e, complementarity %.1e", law,
                cone->primal_residual, cone->dual_residual, cone->complementarity);
  PyObject *who = join(culprits), *none = culprits ? Py_NewRef(culprits) : PyTuple_New(0);
  PyObject *text = who && none
                       ? PyUnicode_FromFormat("%s: %s%U%s; %s after %d iterations", caller,
                                              status_reason(status), who, advice(status, culprits),
                                              residuals, cone->iterations)
                       : NULL;
  PyObject *report = text ? info_create(state, info) : NULL;
  PyObject *error = report ? PyObject_CallOneArg(state->solver_error, text) : NULL;
  if (error && PyObject_SetAttrString(error, "info", report) == 0 &&
      PyObject_SetAttrString(error, "culprits", none) == 0) {
    PyErr_SetObject(state->solver_error, error);
  }
  Py_XDECREF(error);
  Py_XDECREF(report);
  Py_XDECREF(text);
  Py_XDECREF(none);
  Py_XDECREF(who);
  return NULL;
}

static PyObject *overflow_raise(const char *caller, PyObject *culprits) {
  PyObject *who = culprits && PyTuple_GET_SIZE(culprits) > 0
                      ? Py_NewRef(PyTuple_GET_ITEM(culprits, 0))
                      : PyUnicode_FromString("an argument is too large");
  if (who) {
    PyErr_Format(PyExc_ValueError, "%s: the numbers overflow: %U", caller, who);
  }
  Py_XDECREF(who);
  return NULL;
}

PyObject *status_raise(const core_state *state, const char *caller, qd_status status,
                       const solver_info *info, PyObject *culprits) {
  switch (status) {
  case QD_OUT_OF_MEMORY:
  case QD_OUT_OF_CAPACITY:
    return PyErr_NoMemory();
  case QD_STOPPED: /* by a signal whose handler has raised */
    return NULL;
  case QD_BAD_ARGUMENT:
    return PyErr_Format(PyExc_ValueError, "%s: sizes or values of the arguments make no sense",
                        caller);
  case QD_NOT_FINITE: /* arguments were finite, so the calculation overflowed */
    return overflow_raise(caller, culprits);
  default:
    return solver_error_raise(state, caller, status, info, culprits);
  }
}
