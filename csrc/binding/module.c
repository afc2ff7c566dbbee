/* qdsim._core: the module and its state. */
#define BINDING_IMPORTS_NUMPY
#include "binding/programs/cone_call.h"

#include <string.h>

/* ---------------------------------------------------------------- module */

static PyTypeObject *type_add(PyObject *module, PyType_Spec *spec) {
  PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
  if (type && PyModule_AddType(module, type) < 0) {
    Py_CLEAR(type);
  }
  return type;
}

static const char solver_error_doc[] =
    "A step or cone program has no solution, or was not solved; the message says why.\n"
    "\n"
    "Attributes:\n"
    "    info: SolverInfo with the status and the residuals.\n"
    "    culprits: the causes of a failed step, a tuple of strings that name bodies and joints, "
    "the\n"
    "        most important first: contacts, limits and constraints that contradict each other, "
    "or\n"
    "        the bodies whose motion is not determined.\n";

static const char *status_name(int i) { return qd_status_name((qd_status)i); }

static const char *parameter_name(int i) { return qd_parameter_name((qd_parameter)i); }

/* Adds the tuple of the names 0, ..., count - 1 as an attribute of the module. */
static int names_add(PyObject *module, const char *attribute, int count,
                     const char *(*name_of)(int)) {
  PyObject *names = PyTuple_New(count);
  for (int i = 0; names && i < count; i++) {
    PyObject *name = PyUnicode_FromString(name_of(i));
    if (name) {
      PyTuple_SET_ITEM(names, i, name);
    } else {
      Py_CLEAR(names);
    }
  }
  const int status = names ? PyModule_AddObjectRef(module, attribute, names) : -1;
  Py_XDECREF(names);
  return status;
}

static int texts_make(core_state *state) {
  const struct {
    PyObject **place;
    const char *text;
  } all[] = {{&state->text_native, "_native"},
             {&state->text_joint_names, "joint_names"},
             {&state->text_body_names, "body_names"},
             {&state->text_unlike_mujoco, "unlike_mujoco"},
             {&state->text_threading, "threading"}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!(*all[i].place = PyUnicode_InternFromString(all[i].text))) {
      return -1;
    }
  }
  return 0;
}

static int types_make(PyObject *module, core_state *state) {
  const struct {
    PyTypeObject **place;
    PyType_Spec *spec;
  } all[] = {{&state->model_type, &model_type_spec},
             {&state->options_type, &options_type_spec},
             {&state->info_type, &info_type_spec},
             {&state->step_type, &step_type_spec},
             {&state->dynamic_step_type, &dynamic_step_type_spec},
             {&state->linearization_type, &linearization_type_spec},
             {&state->differential_type, &differential_type_spec}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!(*all[i].place = type_add(module, all[i].spec))) {
      return -1;
    }
  }
  return 0;
}

/* Adds the limits of the core, which Python checks earlier and with better messages. */
static int limits_add(PyObject *module) {
  const struct {
    const char *name;
    long value;
  } all[] = {{"CONTACTS_PER_PAIR_MAX", QD_CONTACTS_PER_PAIR_MAX},
             {"HFIELD_POINTS_MAX", QD_HFIELD_POINTS_MAX},
             {"RAYS_MAX", QD_RAYS_MAX},
             {"THREADS_MAX", QD_THREADS_MAX}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (PyModule_AddIntConstant(module, all[i].name, all[i].value) < 0) {
      return -1;
    }
  }
  PyObject *largest = PyFloat_FromDouble(QD_OCP_LARGEST);
  const int status = largest ? PyModule_AddObjectRef(module, "LARGEST", largest) : -1;
  Py_XDECREF(largest);
  return status;
}

static int constants_make(PyObject *module, core_state *state) {
  state->solver_error =
      PyErr_NewExceptionWithDoc("qdsim.SolverError", solver_error_doc, PyExc_RuntimeError, NULL);
  if (!state->solver_error ||
      PyModule_AddObjectRef(module, "SolverError", state->solver_error) < 0) {
    return -1;
  }
  state->contact_descr = contact_descr_create();
  if (!state->contact_descr ||
      PyModule_AddObjectRef(module, "CONTACT_DTYPE", (PyObject *)state->contact_descr) < 0) {
    return -1;
  }
  if (limits_add(module) < 0) {
    return -1;
  }
  if (names_add(module, "STATUS_NAMES", QD_LAW_NOT_MET + 1, status_name) < 0 ||
      names_add(module, "PARAMETER_NAMES", QD_PARAMETER_COUNT, parameter_name) < 0 ||
      names_add(module, "ARGUMENT_NAMES", QD_ARGUMENT_COUNT, qd_argument_name) < 0) {
    return -1;
  }
  state->default_options = PyObject_CallNoArgs((PyObject *)state->options_type);
  state->default_dynamic_options = state->default_options ? options_dynamic_default(state) : NULL;
  if (!state->default_dynamic_options) {
    return -1;
  }
  return PyModule_AddObjectRef(module, "DYNAMIC_DEFAULTS", state->default_dynamic_options);
}

static int module_exec(PyObject *module) {
  /* the slot below forbids only interpreters with their own GIL, and only from 3.12 on */
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError,
                    "qdsim._core: cannot be used in subinterpreters, as NumPy has one state per "
                    "process; use threads or processes");
    return -1;
  }
  if (_import_array() < 0) {
    return -1;
  }
  core_state *state = PyModule_GetState(module);
  atomic_init(&state->next_serial, 1);
  if (texts_make(state) < 0 || types_make(module, state) < 0) {
    return -1;
  }
  return constants_make(module, state);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
  core_state *state = PyModule_GetState(module);
  if (!state) {
    return 0;
  }
  Py_VISIT(state->model_type);
  Py_VISIT(state->options_type);
  Py_VISIT(state->info_type);
  Py_VISIT(state->step_type);
  Py_VISIT(state->dynamic_step_type);
  Py_VISIT(state->linearization_type);
  Py_VISIT(state->differential_type);
  Py_VISIT(state->solver_error);
  Py_VISIT(state->default_options);
  Py_VISIT(state->default_dynamic_options);
  Py_VISIT(state->contact_descr);
  return 0;
}

static int module_clear(PyObject *module) {
  core_state *state = PyModule_GetState(module);
  if (!state) {
    return 0;
  }
  Py_CLEAR(state->model_type);
  Py_CLEAR(state->options_type);
  Py_CLEAR(state->info_type);
  Py_CLEAR(state->step_type);
  Py_CLEAR(state->dynamic_step_type);
  Py_CLEAR(state->linearization_type);
  Py_CLEAR(state->differential_type);
  Py_CLEAR(state->solver_error);
  Py_CLEAR(state->default_options);
  Py_CLEAR(state->default_dynamic_options);
  Py_CLEAR(state->contact_descr);
  Py_CLEAR(state->text_native);
  Py_CLEAR(state->text_unlike_mujoco);
  Py_CLEAR(state->text_joint_names);
  Py_CLEAR(state->text_body_names);
  Py_CLEAR(state->text_threading);
  return 0;
}

/* If a daemon thread was inside a batch when the interpreter ended, it never gets the GIL back, so
 * the pool that it uses must stay. */
static void module_free(void *module) {
  core_state *state = PyModule_GetState(module);
  if (state) {
    cone_scratch_destroy(atomic_exchange(&state->cone_scratch, NULL));
    patch_room_destroy(atomic_exchange(&state->patch_room, NULL));
  }
  if (state && atomic_load(&state->pool_users) == 0) {
    qd_thread_pool_destroy(atomic_load(&state->thread_pool));
  }
  module_clear(module);
}

#define FAST_FUNCTION(name, function, doc)                                                         \
  {name, METHOD_CAST(function), METH_FASTCALL | METH_KEYWORDS, doc}

static PyMethodDef module_methods[] = {
    FAST_FUNCTION("step", step_function, step_doc),
    FAST_FUNCTION("step_dynamic", step_dynamic_function, step_dynamic_doc),
    FAST_FUNCTION("linearize", linearize_function, linearize_doc),
    FAST_FUNCTION("_linearize_dynamic", linearize_dynamic_function, linearize_dynamic_doc),
    FAST_FUNCTION("_differentiate", differential_function, differential_doc),
    FAST_FUNCTION("_batch", batch_function, batch_doc),
    FAST_FUNCTION("_rollout", rollout_function, rollout_doc),
    FAST_FUNCTION("_rollout_derivative", rollout_derivative_function, rollout_derivative_doc),
    FAST_FUNCTION("_pair_distances", pair_distances_function, pair_distances_doc),
    FAST_FUNCTION("_meetings", meetings_function, meetings_doc),
    {"_field_create", field_create_function, METH_VARARGS, field_create_doc},
    {"_field_energy", field_energy_function, METH_VARARGS, field_energy_doc},
    {"_field_patch", field_patch_function, METH_VARARGS, field_patch_doc},
    {"_pressure_surface", pressure_surface_function, METH_VARARGS, pressure_surface_doc},
    {"_jax_handle", jax_handle_function, METH_VARARGS, jax_handle_doc},
    {"_jax_targets", jax_targets_function, METH_NOARGS, jax_targets_doc},
    {"_body_poses", body_poses_function, METH_VARARGS, body_poses_doc},
    {"_view_create", view_create_function, METH_VARARGS, view_create_doc},
    {"_observe", observe_function, METH_VARARGS, observe_doc},
    {"_judge", judge_function, METH_VARARGS, judge_doc},
    {"_parameter_fault", parameter_fault, METH_VARARGS, parameter_fault_doc},
    {"_raise_batch_failure", batch_failure_raise, METH_VARARGS, batch_failure_doc},
    {"_solve_cone_program", METHOD_CAST(cone_solve_function), METH_FASTCALL, cone_solve_doc},
    {"_mujoco_plan", mujoco_plan_function, METH_VARARGS, mujoco_plan_doc},
    {"_mujoco_view", mujoco_view_function, METH_O, mujoco_view_doc},
    {"_mujoco_fits", mujoco_fits_function, METH_VARARGS, mujoco_fits_doc},
    {"_mujoco_linearize", mujoco_linearize_function, METH_VARARGS, mujoco_linearize_doc},
    {"_solve_lcp", lcp_solve_function, METH_VARARGS, lcp_solve_doc},
    {"_solve_mlcp", mlcp_solve_function, METH_VARARGS, mlcp_solve_doc},
    {"_solve_coulomb", coulomb_solve_function, METH_VARARGS, coulomb_solve_doc},
    FAST_FUNCTION("_solve_ocp_qp", ocp_solve_function, ocp_solve_doc),
    FAST_FUNCTION("_cone_benchmark", cone_benchmark_function, cone_benchmark_doc),
    FAST_FUNCTION("_step_benchmark", step_benchmark_function, step_benchmark_doc),
    FAST_FUNCTION("_workspace_bytes", workspace_bytes_function, workspace_bytes_doc),
    {"_restore_info", info_restore, METH_VARARGS, "A SolverInfo out of a pickle."},
    {"_restore_step", step_restore, METH_VARARGS, "A Step out of a pickle."},
    {"_restore_dynamic_step", dynamic_step_restore, METH_VARARGS, "A DynamicStep out of a pickle."},
    {"_restore_linearization", linearization_restore, METH_VARARGS,
     "A Linearization out of a pickle."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030c0000
    /* NumPy has one state per process. */
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030d0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

struct PyModuleDef core_module = {.m_base = PyModuleDef_HEAD_INIT,
                                  .m_name = "qdsim._core",
                                  .m_doc = "The C core of qdsim.",
                                  .m_size = sizeof(core_state),
                                  .m_methods = module_methods,
                                  .m_slots = module_slots,
                                  .m_traverse = module_traverse,
                                  .m_clear = module_clear,
                                  .m_free = module_free};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&core_module); }
