/* step() and step_dynamic(): one quasi-dynamic step, and one second-order step. */
#include "binding/docstrings.h"
#include "binding/step_call.h"

const char step_doc[] =
    "step($module, /, model, q, u, options=None, *, tau=None, wrench=None, mocap=None, "
    "warm_start=None)\n"
    "--\n"
    "\n"
    "Compute one quasi-dynamic step q_next = f(q, u) (Pang et al. 2023, section III; formulation "
    "2).\n"
    "\n"
    "Variables without coupling (a finger that touches nothing) have a closed form; linearize(), "
    "which\n"
    "needs a factorisation, may round these differently.\n"
    "\n"
    "Args:\n" DOC_CONFIGURATION DOC_COMMANDS
    "    options: qdsim.Options, None for the defaults.\n" DOC_FORCES
    "    warm_start: an earlier Step or Linearization of this model, under any options, whose\n"
    "        solution is the starting point of the solver; it saves time along a trajectory. The\n"
    "        result has the same certificate; it agrees to the tolerance, and forces that are not\n"
    "        unique depend on it.\n"
    "\n"
    "Returns:\n"
    "    A Step: `q_next` (nq), contacts with forces, limit and actuator forces, "
    "`info`.\n\n" DOC_RAISES;

/* Warns if the step corrects deep penetrations at once. -1 if warnings are errors. */
static int warn_of_depth(const step_call *call) {
  const int count = call->result.deep_contacts;
  if (count == 0) {
    return 0;
  }
  return PyErr_WarnFormat(PyExc_UserWarning, 1,
                          "step: %d contact%s more than 5 %% of the smaller shape deep at q; "
                          "the step corrects that at once, so bodies jump (set "
                          "Options(recovery_speed=...) to limit the speed)",
                          count, count == 1 ? " is" : "s are");
}

PyObject *step_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                        PyObject *kwnames) {
  static const char *const names[] = {"model", "q",      "u",     "options",
                                      "tau",   "wrench", "mocap", "warm_start"};
  PyObject *in[8];
  step_call call;
  if (arguments_parse("step", names, 8, 4, 3, args, arg_count, kwnames, in) < 0 ||
      step_call_begin(&call, PyModule_GetState(module), "step", in[0], in[1], NULL, in[2], in[3],
                      in[4], in[5], in[6]) < 0 ||
      step_call_start(&call, in[7]) < 0) {
    return NULL;
  }
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = step_call_run(&call, 0, NULL, NULL);
  Py_END_ALLOW_THREADS;
  const int sound = step_call_check(&call, status) == 0 && warn_of_depth(&call) == 0;
  PyObject *out = sound ? step_create(&call, 0) : NULL;
  step_call_end(&call);
  return out;
}

const char step_dynamic_doc[] =
    "step_dynamic($module, /, model, q, v, u, options=None, *, tau=None, wrench=None, mocap=None,\n"
    "             warm_start=None, bristles=None)\n"
    "--\n"
    "\n"
    "Compute one second-order step (q_next, v_next) = f(q, v, u): velocities and impulses "
    "(Anitescu and\n"
    "Hart 2003; formulation 7).\n"
    "\n"
    "Args:\n" DOC_CONFIGURATION
    "    v: (nv) velocity in tangent coordinates; of a free joint that of the body's origin, m/s,\n"
    "        then angular, rad/s, world axes (qdsim.from_mujoco_velocity converts).\n" DOC_COMMANDS
    "    options: qdsim.DynamicOptions, None for the defaults.\n" DOC_FORCES
    "    warm_start: an earlier result of this model, the starting point of the solver.\n"
    "    bristles: (model.soft_pair_count, 6) for DynamicOptions(patch_law='bristle'): the "
    "stretch\n"
    "        of each soft pair's bristles, m and rad, in the frame of its second body: the\n"
    "        `bristles` of the previous step. None: zero. No effect under other laws.\n"
    "\n"
    "Returns:\n"
    "    A DynamicStep: `q_next` (nq), `v_next` (nv), contacts with impulses and forces, "
    "energies,\n"
    "    `bristles`, `info`.\n\n" DOC_RAISES;

PyObject *step_dynamic_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                PyObject *kwnames) {
  static const char *const names[] = {"model", "q",      "v",     "u",          "options",
                                      "tau",   "wrench", "mocap", "warm_start", "bristles"};
  PyObject *in[10];
  step_call call;
  if (arguments_parse("step_dynamic", names, 10, 5, 4, args, arg_count, kwnames, in) < 0 ||
      step_call_begin(&call, PyModule_GetState(module), "step_dynamic", in[0], in[1], in[2], in[3],
                      in[4], in[5], in[6], in[7]) < 0 ||
      step_call_bristles(&call, in[9]) < 0 || step_call_start(&call, in[8]) < 0) {
    return NULL;
  }
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = step_call_run(&call, 0, NULL, NULL);
  Py_END_ALLOW_THREADS;
  PyObject *out = step_call_check(&call, status) == 0 ? dynamic_step_create(&call, 0) : NULL;
  step_call_end(&call);
  return out;
}
