#include "binding/step_call.h"

#include <string.h>

/* 1 if some contact is compliant along its normal. */
static int contacts_give(const qd_model *model, const qd_step_options *settings) {
  const double *own = qd_parameter_values(model, QD_PARAMETER_PAIR_COMPLIANCE);
  int found = settings->contact_compliance > 0.0;
  for (int i = 0; !found && i < qd_parameter_size(model, QD_PARAMETER_PAIR_COMPLIANCE); i++) {
    found = own[i] > 0.0;
  }
  return found;
}

/* In quasi-dynamic steps MuJoCo's contacts creep against their damping, so they need some; in
 * second-order steps they do not bounce. */
static int pairs_check(const step_call *call) {
  static const char *const messages[2] = {
      "contacts: 'mujoco' needs damping in solref (and solreffriction): contacts of "
      "%R with %R have none, and would creep without end",
      "contacts: 'mujoco' knows no restitution, which contacts of %R with %R have"};
  int geom[2];
  const int dynamic = call->settings.dynamic;
  const qd_model *model = call->model->model;
  if (!(dynamic ? qd_model_bouncing_pair : qd_model_undamped_pair)(model, geom)) {
    return 0;
  }
  PyObject *names = PyObject_GetAttrString((PyObject *)call->model, "geom_names");
  PyObject *a = names ? PySequence_GetItem(names, geom[0]) : NULL;
  PyObject *b = a ? PySequence_GetItem(names, geom[1]) : NULL;
  if (b) {
    PyErr_Format(PyExc_ValueError, messages[dynamic], a, b);
  }
  Py_XDECREF(b);
  Py_XDECREF(a);
  Py_XDECREF(names);
  return -1;
}

static int settings_check(const step_call *call) {
  const qd_step_options *settings = &call->settings;
  if (settings->friction_model == QD_PYRAMID && settings->ray_count == 2 &&
      !call->model->is_planar) {
    PyErr_SetString(PyExc_ValueError, "rays: 2 is the planar law, and the joints of this model do "
                                      "not all move in one plane; use 3 or more");
    return -1;
  }
  if (settings->friction_model == QD_PYRAMID && settings->ray_count > 2 &&
      contacts_give(call->model->model, settings)) {
    PyErr_SetString(PyExc_ValueError,
                    "friction: contacts with a stiffness need friction='cone' (or "
                    "the planar law, rays=2)");
    return -1;
  }
  if (settings->contacts == QD_CONTACTS_MUJOCO && pairs_check(call) < 0) {
    return -1;
  }
  if (settings->mass_ratio > 0 && call->model->nu == 0) {
    PyErr_SetString(PyExc_ValueError,
                    "mass_ratio: compares masses with the stiffness of actuators, "
                    "and this model has none; use epsilon");
    return -1;
  }
  return 0;
}

int patch_law_check(const step_call *call, int derivatives) {
  const int law = call->settings.patch_law;
  if (call->model->soft_pair_count == 0) {
    return 0;
  }
  if (derivatives && (law == QD_PATCH_ELASTIC_CONE || law == QD_PATCH_BRISTLE)) {
    PyErr_Format(PyExc_ValueError,
                 "patch_law: expected 'disc' or 'regularized' where derivatives are wanted, got "
                 "'%s', which has none",
                 law == QD_PATCH_BRISTLE ? "bristle" : "elastic");
    return -1;
  }
  return 0;
}

int step_call_derivatives(step_call *call) {
  if (patch_law_check(call, 1) < 0) {
    step_call_end(call);
    return -1;
  }
  return 0;
}

int step_call_bristles(step_call *call, PyObject *bristles) {
  const int count = call->model->soft_pair_count;
  call->result.bristle = call->entry->bristle_next;
  if (!bristles || bristles == Py_None) {
    return 0;
  }
  if (array_copy_matrix(bristles, "bristles", count, QD_BRISTLES, call->entry->bristle) < 0) {
    step_call_end(call);
    return -1;
  }
  call->input.bristle = call->entry->bristle;
  return 0;
}

/* MuJoCo's own step: -1 with a ValueError if the model's file contains features that it leaves out.
 */
static int likeness_check(const step_call *call) {
  if (!call->settings.dynamic || call->settings.contacts != QD_CONTACTS_MUJOCO) {
    return 0;
  }
  PyObject *unlike = PyObject_GetAttr((PyObject *)call->model, call->state->text_unlike_mujoco);
  if (!unlike) {
    const int is_plain = PyErr_ExceptionMatches(PyExc_AttributeError);
    if (is_plain) {
      PyErr_Clear(); /* a model from arrays */
    }
    return is_plain ? 0 : -1;
  }
  const Py_ssize_t count = PyTuple_Check(unlike) ? PyTuple_GET_SIZE(unlike) : 0;
  if (count > 0) {
    PyErr_Format(PyExc_ValueError, "contacts: steps by MuJoCo's law are without %S%s",
                 PyTuple_GET_ITEM(unlike, 0), count > 1 ? "; model.unlike_mujoco lists more" : "");
  }
  Py_DECREF(unlike);
  return count > 0 ? -1 : 0;
}

int step_call_configure(step_call *call, const core_state *state, const char *name, PyObject *model,
                        PyObject *options, int dynamic) {
  memset(call, 0, sizeof *call);
  call->state = state;
  call->name = name;
  call->model = model_of(state, model);
  if (!call->model) {
    return -1;
  }
  call->options = options_of(state, options, dynamic, &call->options_owner);
  if (!call->options) {
    return -1;
  }
  call->settings = call->options->settings;
  if (settings_check(call) < 0 || likeness_check(call) < 0 ||
      options_held_mask(state, call->options, call->model, &call->held) < 0) {
    step_call_end(call);
    return -1;
  }
  if (call->held) {
    call->settings.held = (const uint8_t *)PyBytes_AS_STRING(call->held);
  }
  return 0;
}

/* Sets the arrays for inputs and results. */
static void use_entry(step_call *call, workspace_entry *entry) {
  call->entry = entry;
  call->input = (qd_step_input){.q = entry->q, .u = entry->u};
  call->result.q_next = entry->q_next;
  call->result.delta = entry->delta;
  call->result.limit_force = entry->limit_force;
  call->result.constraint_force = entry->constraint_force;
  call->result.tendon_force = entry->tendon_force;
  call->result.actuator_force = entry->actuator_force;
}

/* Reads the optional inputs of a step: 0, or -1 with an error. */
static int read_optional(step_call *call, const core_state *state, PyObject *model, PyObject *tau,
                         PyObject *wrench, PyObject *mocap) {
  workspace_entry *entry = call->entry;
  if (tau && tau != Py_None) {
    if (array_copy_vector(tau, "tau", call->model->nv, entry->tau) < 0) {
      return -1;
    }
    call->input.tau = entry->tau;
  }
  if (wrench && wrench != Py_None) {
    if (wrench_read(state, call->model, model, wrench, entry->wrench) < 0) {
      return -1;
    }
    call->input.wrench = entry->wrench;
  }
  if (mocap && mocap != Py_None) {
    if (mocap_read(call->model, model, mocap, entry->mocap) < 0) {
      return -1;
    }
    call->input.mocap = entry->mocap;
  }
  return 0;
}

static int read_state(step_call *call, PyObject *q, PyObject *v, PyObject *u) {
  workspace_entry *entry = call->entry;
  if (model_read_q(call->model, q, "q", entry->q) < 0 ||
      array_copy_vector(u, "u", call->model->nu, entry->u) < 0) {
    return -1;
  }
  if (v) {
    call->input.v = entry->v;
    call->result.v_next = entry->v_next;
    return array_copy_vector(v, "v", call->model->nv, entry->v);
  }
  return 0;
}

int step_call_begin(step_call *call, const core_state *state, const char *name, PyObject *model,
                    PyObject *q, PyObject *v, PyObject *u, PyObject *options, PyObject *tau,
                    PyObject *wrench, PyObject *mocap) {
  if (step_call_configure(call, state, name, model, options, v != NULL) < 0) {
    return -1;
  }
  workspace_entry *entry = workspace_pool_acquire(&call->model->pool, call->model->model);
  if (!entry) {
    step_call_end(call);
    PyErr_NoMemory();
    return -1;
  }
  use_entry(call, entry);
  if (call->options->trace) {
    if (trace_take_room(&call->trace) < 0) {
      step_call_end(call);
      return -1;
    }
    call->result.trace = &call->trace;
  }
  if (read_state(call, q, v, u) < 0 || read_optional(call, state, model, tau, wrench, mocap) < 0) {
    step_call_end(call);
    return -1;
  }
  return 0;
}

/* 1 if the workspace was too small and has grown. *status: status of the attempt; afterwards, of
 * the growth. */
static int should_repeat(const step_call *call, qd_status *status) {
  if (*status != QD_OUT_OF_CAPACITY) {
    return 0;
  }
  *status =
      qd_workspace_reserve(call->model->model, call->entry->workspace, call->result.contact_count);
  return *status == QD_OK;
}

qd_status step_call_run(step_call *call, int with_derivative, double *A, double *B) {
  const qd_model *model = call->model->model;
  qd_workspace *w = call->entry->workspace;
  qd_status status;
  do {
    status = with_derivative
                 ? qd_linearize(model, w, &call->settings, &call->input, &call->result, A, B)
                 : qd_step(model, w, &call->settings, &call->input, &call->result);
  } while (should_repeat(call, &status));
  return status;
}

qd_status step_call_differentiate(step_call *call) {
  qd_status status;
  do {
    status = qd_differentiate(call->model->model, call->entry->workspace, &call->settings,
                              &call->input, &call->result);
  } while (should_repeat(call, &status));
  return status;
}

qd_status step_call_linearize_dynamic(step_call *call, double *const of_q[QD_ARGUMENT_COUNT],
                                      double *const of_v[QD_ARGUMENT_COUNT]) {
  qd_status status;
  do {
    status = qd_linearize_dynamic(call->model->model, call->entry->workspace, &call->settings,
                                  &call->input, &call->result, of_q, of_v);
  } while (should_repeat(call, &status));
  return status;
}

int step_call_info(const step_call *call, int with_derivative, solver_info *info) {
  const qd_step_result *result = &call->result;
  *info = (solver_info){.cone = result->info,
                        .row_count = result->row_count,
                        .contact_count = result->contact_count,
                        .missed_pairs = result->missed_pairs,
                        .dropped_pairs = result->dropped_pairs,
                        .relaxed_contacts = result->relaxed_contacts,
                        .deep_contacts = result->deep_contacts,
                        .softened = result->softened,
                        .bounces = result->bounces,
                        .bounce_share = result->bounce_share,
                        .capped_rows = result->capped_rows,
                        .convex_programs = result->convex_programs,
                        .several = result->unique < 0 ? 2 : !result->unique,
                        .law_residual = result->law_residual,
                        .soft_programs = result->soft_programs,
                        .soft_unfinished = !result->soft_converged,
                        .derivative_exact = with_derivative ? result->derivative_exact != 0 : -1};
  info->trace = result->trace ? trace_object(result->trace) : NULL;
  return result->trace && !info->trace ? -1 : 0;
}

int step_call_check(const step_call *call, qd_status status) {
  const model_object *model = call->model;
  if (status == QD_OK &&
      (numbers_first_bad(call->result.q_next, model->nq) >= 0 ||
       numbers_first_bad(call->result.delta, model->nv) >= 0 ||
       (call->result.v_next && numbers_first_bad(call->result.v_next, model->nv) >= 0) ||
       numbers_first_bad(call->result.limit_force, model->nv) >= 0 ||
       numbers_first_bad(call->result.constraint_force,
                         QD_CONSTRAINT_FORCE * model->constraint_count) >= 0 ||
       numbers_first_bad(call->result.tendon_force, model->tendon_count) >= 0)) {
    status = QD_NUMERICAL_TROUBLE;
  }
  if (status == QD_OK) {
    return 0;
  }
  solver_info info;
  if (step_call_info(call, 0, &info) < 0) {
    return -1;
  }
  info.cone.status = status;
  PyObject *culprits =
      status == QD_NOT_FINITE
          ? overflow_describe(model->model, &call->input, NULL)
          : culprits_describe(call->model, call->result.culprit, call->result.culprit_count);
  if (culprits) {
    status_raise(call->state, call->name, status, &info, culprits);
  }
  Py_XDECREF(info.trace);
  Py_XDECREF(culprits);
  return -1;
}

void step_call_end(step_call *call) {
  if (call->entry) {
    workspace_pool_release(&call->model->pool, call->entry);
  }
  trace_release(&call->trace);
  Py_XDECREF(call->held);
  Py_XDECREF(call->options_owner);
}
