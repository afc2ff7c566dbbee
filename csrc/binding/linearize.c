/* linearize(): a step with its derivatives. */
#include "binding/docstrings.h"
#include "binding/step_call.h"

const char linearize_doc[] =
    "linearize($module, /, model, q, u, options=None, *, tau=None, wrench=None, mocap=None, "
    "wrt=('q', 'u'), warm_start=None)\n"
    "--\n"
    "\n"
    "Compute a step and its exact derivatives in tangent coordinates (formulation 4).\n"
    "\n"
    "At a kink the exact step has no derivative; the result is then the derivative of the last "
    "point of\n"
    "the central path, and step.info.derivative_exact is False. Coordinates without coupling, "
    "which have\n"
    "a closed form in step(), may be rounded differently here.\n"
    "\n"
    "Args:\n" DOC_CONFIGURATION DOC_COMMANDS
    "    options: qdsim.Options, None for the defaults.\n" DOC_FORCES
    "    wrt: which derivatives: 'q' (A), 'u' (B), 'tau', 'wrench', 'mocap' and names of\n"
    "        model.parameters ('gravity', 'body_mass', 'geom_size', 'pair_friction', ...).\n"
    "        qdsim.differentiate describes what each holds constant, and computes products with\n"
    "        vectors.\n"
    "    warm_start: as in step().\n"
    "\n"
    "Returns:\n"
    "    A Linearization: `step`; `A` = dq_next/dq (nv, nv) and `B` = dq_next/du (nv, nu), None\n"
    "    if not in wrt; `derivatives`, a mapping from all names in wrt to the derivatives of "
    "q_next\n"
    "    with respect to them, (nv, *shape of the argument).\n\n" DOC_RAISES;

#define WRT_Q (1 << QD_BY_Q)
#define WRT_U (1 << QD_BY_U)

/* A new array if the matrix is wanted, else None. */
static PyObject *matrix_create(int wanted, int rows, int columns) {
  return wanted ? array_new_matrix(rows, columns) : Py_NewRef(Py_None);
}

static double *matrix_numbers(PyObject *array) {
  return array == Py_None ? NULL : PyArray_DATA((PyArrayObject *)array);
}

static int matrix_finish(const step_call *call, PyObject *array) {
  if (array == Py_None) {
    return 0;
  }
  PyArrayObject *matrix = (PyArrayObject *)array;
  if (numbers_first_bad(PyArray_DATA(matrix), PyArray_SIZE(matrix)) >= 0) {
    return step_call_check(call, QD_NUMERICAL_TROUBLE);
  }
  array_freeze(array);
  return 0;
}

/* By more than q and u: computes all derivatives at once. */
static PyObject *linearize_by_all(step_call *call, int wrt) {
  PyObject *arrays[QD_ARGUMENT_COUNT], *out = NULL;
  if (step_call_jacobians(call, wrt, arrays) < 0) {
    return NULL;
  }
  PyObject *derivatives = derivatives_create(arrays);
  PyObject *step = derivatives ? step_create(call, 1) : NULL;
  if (step) {
    out = linearization_create(call->state, step, arrays[QD_BY_Q], arrays[QD_BY_U], derivatives);
  }
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    Py_DECREF(arrays[i]);
  }
  Py_XDECREF(derivatives);
  Py_XDECREF(step);
  return out;
}

static PyObject *linearize_call(step_call *call, int wrt) {
  int nv = call->model->nv, nu = call->model->nu;
  PyObject *A = matrix_create(wrt & WRT_Q, nv, nv);
  PyObject *B = matrix_create(wrt & WRT_U, nv, nu);
  PyObject *step = NULL, *out = NULL;
  if (A && B) {
    double *A_numbers = matrix_numbers(A), *B_numbers = matrix_numbers(B);
    qd_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = step_call_run(call, 1, A_numbers, B_numbers);
    Py_END_ALLOW_THREADS;
    if (step_call_check(call, status) == 0 && matrix_finish(call, A) == 0 &&
        matrix_finish(call, B) == 0) {
      step = step_create(call, 1);
    }
    PyObject *arrays[QD_ARGUMENT_COUNT];
    for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
      arrays[i] = Py_None;
    }
    arrays[QD_BY_Q] = A;
    arrays[QD_BY_U] = B;
    PyObject *derivatives = step ? derivatives_create(arrays) : NULL;
    if (derivatives) {
      out = linearization_create(call->state, step, A, B, derivatives);
    }
    Py_XDECREF(derivatives);
  }
  Py_XDECREF(step);
  Py_XDECREF(A);
  Py_XDECREF(B);
  return out;
}

PyObject *linearize_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                             PyObject *kwnames) {
  static const char *const names[] = {"model",  "q",     "u",   "options",   "tau",
                                      "wrench", "mocap", "wrt", "warm_start"};
  PyObject *in[9];
  step_call call;
  if (arguments_parse("linearize", names, 9, 4, 3, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  int wrt = wrt_read(in[7], WRT_Q | WRT_U);
  if (wrt < 0 ||
      step_call_begin(&call, PyModule_GetState(module), "linearize", in[0], in[1], NULL, in[2],
                      in[3], in[4], in[5], in[6]) < 0 ||
      step_call_derivatives(&call) < 0 || step_call_start(&call, in[8]) < 0) {
    return NULL;
  }
  PyObject *out =
      wrt & ~(WRT_Q | WRT_U) ? linearize_by_all(&call, wrt) : linearize_call(&call, wrt);
  step_call_end(&call);
  return out;
}
