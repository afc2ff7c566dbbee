/* step() and step_dynamic(): one quasi-dynamic step, one of second order. */
#include "binding/step_call.h"

const char step_doc[] =
    "step($module, /, model, q, u, options=None, *, tau=None, wrench=None, "
    "mocap=None, warm_start=None)\n--\n\n"
    "One quasi-dynamic step q_next = f(q, u) (Pang et al. 2023, section III; formulation 2).\n\n"
    "model: qdsim.Model. q: configuration (nq). u: commands (nu), in the units of the actuators.\n"
    "options: qdsim.Options, None for the defaults. tau: applied generalised force (nv), N or Nm.\n"
    "wrench: applied to the bodies, (body_count, 6) or a mapping from names of bodies to (6): "
    "force N\n"
    "at the centre of mass, then moment Nm, world axes (MuJoCo's xfrc_applied). Forces on "
    "actuated\n"
    "joints add to those of their springs.\n"
    "mocap: poses of the mocap bodies, (mocap_count, 7) in the order of model.mocap_names or a "
    "mapping\n"
    "from their names to (7): position m, quaternion w x y z. Those not given stand where the "
    "model "
    "has\n"
    "them.\n"
    "warm_start: an earlier Step or Linearization of this model, under any options, to look for "
    "the\n"
    "solution near its own; worth it along a trajectory. The answer is certified as without; it\n"
    "agrees to the tolerance, and forces that are not unique depend on it.\n"
    "Variables that nothing couples (a finger that touches nothing) are answered in closed form; "
    "in "
    "the\n"
    "last bits of these, linearize() may differ, which needs a factor.\n"
    "Returns a Step. Raises TypeError or ValueError that names the argument, and SolverError "
    "(with\n"
    "its info) where the program has no solution or was not solved.";

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
  PyObject *out = step_call_check(&call, status) == 0 ? step_create(&call, 0) : NULL;
  step_call_end(&call);
  return out;
}

const char step_dynamic_doc[] =
    "step_dynamic($module, /, model, q, v, u, options=None, *, tau=None, wrench=None, "
    "mocap=None,\n             warm_start=None)\n--\n\n"
    "One second-order step (q_next, v_next) = f(q, v, u): velocities and impulses (Anitescu and "
    "Hart\n2003; formulation 7).\n\n"
    "model: qdsim.Model. q: configuration (nq). v: velocity (nv) in tangent coordinates (of a "
    "free\n"
    "joint: of the body's origin, then angular in world axes; qdsim.from_mujoco_velocity\n"
    "converts). u: commands (nu). options: qdsim.DynamicOptions, None for the defaults. tau: "
    "applied\ngeneralised force (nv), N or Nm. wrench: applied to the bodies, (body_count, 6) or a "
    "mapping from\nnames of bodies to (6), mocap: poses of mocap bodies, as in step(). warm_start: "
    "an earlier result of this "
    "model to look for\nthe solution near its own.\n"
    "Returns a DynamicStep. Raises TypeError or ValueError that names the argument, and "
    "SolverError\n(with its info) where the program has no solution or was not solved.";

PyObject *step_dynamic_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                PyObject *kwnames) {
  static const char *const names[] = {"model", "q",      "v",     "u",         "options",
                                      "tau",   "wrench", "mocap", "warm_start"};
  PyObject *in[9];
  step_call call;
  if (arguments_parse("step_dynamic", names, 9, 5, 4, args, arg_count, kwnames, in) < 0 ||
      step_call_begin(&call, PyModule_GetState(module), "step_dynamic", in[0], in[1], in[2], in[3],
                      in[4], in[5], in[6], in[7]) < 0 ||
      step_call_start(&call, in[8]) < 0) {
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
