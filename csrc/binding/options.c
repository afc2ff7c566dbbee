/* _core.StepOptions: the qd_step_options of a qdsim.Options, and the DOFs of its held names. */
#include "binding/core.h"
#include "binding/model.h"

#include <math.h>
#include <string.h>

/* The cache of held masks is cleared when one Options has this number of models. */
#define HELD_MASKS_MAX 64

/* ---------------------------------------------------------------- life */

static PyObject *options_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"h",
                          "friction_model",
                          "rays",
                          "kappa",
                          "epsilon",
                          "mass_ratio",
                          "margin",
                          "add_missed_pairs",
                          "joint_limits",
                          "gravity_on_actuated",
                          "damping",
                          "soft_constraints",
                          "contact_compliance",
                          "contacts",
                          "force_limits",
                          "patch_friction",
                          "patch_law",
                          "slip_speed",
                          "bristle_stiffness",
                          "bristle_time",
                          "held",
                          "soften",
                          "tolerance",
                          "iteration_limit",
                          "dynamic",
                          "restitution",
                          "bounce_speed",
                          "recovery_speed",
                          "law",
                          "stop_after",
                          "gyroscopic",
                          "trace",
                          NULL};
  qd_step_options settings = qd_step_options_default();
  PyObject *held = NULL;
  int trace = 0;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "|$diiddddppppidipiidddO!pdipdddiiip:StepOptions", names, &settings.h,
          &settings.friction_model, &settings.ray_count, &settings.kappa, &settings.epsilon,
          &settings.mass_ratio, &settings.margin, &settings.add_missed_pairs,
          &settings.joint_limits, &settings.gravity_on_actuated, &settings.damping,
          &settings.soft_constraints, &settings.contact_compliance, &settings.contacts,
          &settings.force_limits, &settings.patch_friction, &settings.patch_law,
          &settings.slip_speed, &settings.bristle_stiffness, &settings.bristle_time, &PyTuple_Type,
          &held, &settings.soften, &settings.tolerance, &settings.iteration_limit,
          &settings.dynamic, &settings.restitution, &settings.bounce_speed,
          &settings.recovery_speed, &settings.law, &settings.stop_after, &settings.gyroscopic,
          &trace)) {
    return NULL;
  }
  options_object *self = (options_object *)type->tp_alloc(type, 0);
  if (!self) {
    return NULL;
  }
  self->settings = settings;
  self->settings.held = NULL;
  self->trace = trace;
  self->held = held ? Py_NewRef(held) : PyTuple_New(0);
  self->held_masks = PyDict_New();
  if (!self->held || !self->held_masks) {
    Py_CLEAR(self);
  }
  return (PyObject *)self;
}

PyObject *options_dynamic_default(const core_state *state) {
  options_object *self = (options_object *)PyObject_CallNoArgs((PyObject *)state->options_type);
  if (self) {
    self->settings.dynamic = 1;
    self->settings.h = 0.01;
    self->settings.gravity_on_actuated = 1;
  }
  return (PyObject *)self;
}

static void options_dealloc(PyObject *object) {
  options_object *self = (options_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  Py_XDECREF(self->held);
  Py_XDECREF(self->held_masks);
  type->tp_free(object);
  Py_DECREF(type);
}

static options_object *options_find(const core_state *state, PyObject *argument, int dynamic,
                                    PyObject **owner) {
  *owner = NULL;
  if (!argument || argument == Py_None) {
    return (options_object *)(dynamic ? state->default_dynamic_options : state->default_options);
  }
  if (Py_IS_TYPE(argument, state->options_type)) {
    return (options_object *)argument;
  }
  PyObject *native = PyObject_GetAttr(argument, state->text_native);
  if (native && Py_IS_TYPE(native, state->options_type)) {
    *owner = native;
    return (options_object *)native;
  }
  Py_XDECREF(native);
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError)) {
    return NULL;
  }
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "options: expected a qdsim.%s, got %s",
               dynamic ? "DynamicOptions" : "Options", Py_TYPE(argument)->tp_name);
  return NULL;
}

options_object *options_of(const core_state *state, PyObject *argument, int dynamic,
                           PyObject **owner) {
  options_object *options = options_find(state, argument, dynamic, owner);
  if (options && options->settings.dynamic != dynamic) {
    PyErr_Format(PyExc_TypeError, "options: expected a qdsim.%s, got %s",
                 dynamic ? "DynamicOptions" : "Options", Py_TYPE(argument)->tp_name);
    Py_CLEAR(*owner);
    return NULL;
  }
  return options;
}

/* ---------------------------------------------------------------- held joints */

static int is_named(PyObject *names, Py_ssize_t index, PyObject *wanted) {
  PyObject *name = PySequence_GetItem(names, index);
  int equal = name ? PyObject_RichCompareBool(name, wanted, Py_EQ) : -1;
  Py_XDECREF(name);
  return equal;
}

static void hold_joint(const model_object *model, int joint, char *mask) {
  int first = model->joint_v[joint];
  int end = joint + 1 < model->joint_count ? model->joint_v[joint + 1] : model->nv;
  memset(mask + first, 1, (size_t)(end - first));
}

/* index: the last of `count` names that equals the wanted one, -1 if none does. */
static int find_name(PyObject *names, int count, PyObject *wanted, int *index) {
  *index = -1;
  for (int i = 0; i < count; i++) {
    int equal = is_named(names, i, wanted);
    if (equal < 0) {
      return -1;
    }
    if (equal) {
      *index = i;
    }
  }
  return 0;
}

/* Marks the DOFs of the joint, or of all joints of the body, with this name. 0: no such name. */
static int hold_name(const model_object *model, PyObject *joint_names, PyObject *body_names,
                     PyObject *wanted, char *mask) {
  int as_joint, as_body;
  if (find_name(joint_names, model->joint_count, wanted, &as_joint) < 0 ||
      find_name(body_names, model->body_count, wanted, &as_body) < 0) {
    return -1;
  }
  int body_joints = 0, other_joints = 0;
  for (int j = 0; j < model->joint_count; j++) {
    if (model->joint_body[j] == as_body) {
      body_joints++;
      other_joints += j != as_joint;
    }
  }
  if (as_joint >= 0 && as_body >= 0 && (other_joints || !body_joints)) {
    PyErr_Format(PyExc_ValueError,
                 "held: %R names both a joint and a body, and they mean different joints", wanted);
    return -1;
  }
  if (as_joint >= 0) {
    hold_joint(model, as_joint, mask);
  } else {
    for (int j = 0; j < model->joint_count; j++) {
      if (model->joint_body[j] == as_body) {
        hold_joint(model, j, mask);
      }
    }
  }
  return as_joint >= 0 || as_body >= 0;
}

static PyObject *held_mask_create(const core_state *state, const options_object *options,
                                  model_object *model) {
  PyObject *joint_names = PyObject_GetAttr((PyObject *)model, state->text_joint_names);
  PyObject *body_names =
      joint_names ? PyObject_GetAttr((PyObject *)model, state->text_body_names) : NULL;
  PyObject *mask = body_names ? PyBytes_FromStringAndSize(NULL, model->nv) : NULL;
  if (mask) {
    memset(PyBytes_AS_STRING(mask), 0, (size_t)model->nv);
  }
  for (Py_ssize_t i = 0; mask && i < PyTuple_GET_SIZE(options->held); i++) {
    PyObject *name = PyTuple_GET_ITEM(options->held, i);
    int found = hold_name(model, joint_names, body_names, name, PyBytes_AS_STRING(mask));
    if (found == 0) {
      PyErr_Format(PyExc_ValueError, "held: %R is neither a joint nor a body of the model", name);
    }
    if (found <= 0) {
      Py_CLEAR(mask);
    }
  }
  Py_XDECREF(body_names);
  Py_XDECREF(joint_names);
  return mask;
}

/* New reference, or NULL, which is an error only if an exception is set. */
static PyObject *dict_get(PyObject *dict, PyObject *key) {
  PyObject *value = NULL;
#if PY_VERSION_HEX >= 0x030d0000
  (void)PyDict_GetItemRef(dict, key, &value);
#else
  value = PyDict_GetItemWithError(dict, key);
  Py_XINCREF(value);
#endif
  return value;
}

int options_held_mask(const core_state *state, options_object *options, model_object *model,
                      PyObject **mask) {
  *mask = NULL;
  if (PyTuple_GET_SIZE(options->held) == 0) {
    return 0;
  }
  PyObject *key = PyLong_FromUnsignedLongLong(model->serial);
  if (!key) {
    return -1;
  }
  OBJECT_LOCK((PyObject *)options);
  *mask = dict_get(options->held_masks, key);
  OBJECT_UNLOCK();
  if (!*mask && !PyErr_Occurred()) {
    *mask = held_mask_create(state, options, model);
    OBJECT_LOCK((PyObject *)options);
    if (*mask && PyDict_GET_SIZE(options->held_masks) >= HELD_MASKS_MAX) {
      PyDict_Clear(options->held_masks);
    }
    if (*mask && PyDict_SetItem(options->held_masks, key, *mask) < 0) {
      Py_CLEAR(*mask);
    }
    OBJECT_UNLOCK();
  }
  Py_DECREF(key);
  return *mask ? 0 : -1;
}

/* ---------------------------------------------------------------- type */

#define SETTING_MEMBER(name, type, field)                                                          \
  {name, type, offsetof(options_object, settings) + offsetof(qd_step_options, field), READONLY,    \
   NULL}

static PyMemberDef options_members[] = {
    SETTING_MEMBER("h", T_DOUBLE, h),
    SETTING_MEMBER("friction_model", T_INT, friction_model),
    SETTING_MEMBER("rays", T_INT, ray_count),
    SETTING_MEMBER("kappa", T_DOUBLE, kappa),
    SETTING_MEMBER("epsilon", T_DOUBLE, epsilon),
    SETTING_MEMBER("mass_ratio", T_DOUBLE, mass_ratio),
    SETTING_MEMBER("margin", T_DOUBLE, margin),
    SETTING_MEMBER("add_missed_pairs", T_INT, add_missed_pairs),
    SETTING_MEMBER("joint_limits", T_INT, joint_limits),
    SETTING_MEMBER("gravity_on_actuated", T_INT, gravity_on_actuated),
    SETTING_MEMBER("gyroscopic", T_INT, gyroscopic),
    SETTING_MEMBER("damping", T_INT, damping),
    SETTING_MEMBER("soft_constraints", T_INT, soft_constraints),
    SETTING_MEMBER("contact_compliance", T_DOUBLE, contact_compliance),
    SETTING_MEMBER("contacts", T_INT, contacts),
    SETTING_MEMBER("force_limits", T_INT, force_limits),
    SETTING_MEMBER("patch_friction", T_INT, patch_friction),
    SETTING_MEMBER("patch_law", T_INT, patch_law),
    SETTING_MEMBER("slip_speed", T_DOUBLE, slip_speed),
    SETTING_MEMBER("bristle_stiffness", T_DOUBLE, bristle_stiffness),
    SETTING_MEMBER("bristle_time", T_DOUBLE, bristle_time),
    {"held", T_OBJECT_EX, offsetof(options_object, held), READONLY, NULL},
    SETTING_MEMBER("soften", T_INT, soften),
    SETTING_MEMBER("tolerance", T_DOUBLE, tolerance),
    SETTING_MEMBER("iteration_limit", T_INT, iteration_limit),
    SETTING_MEMBER("dynamic", T_INT, dynamic),
    SETTING_MEMBER("restitution", T_DOUBLE, restitution),
    SETTING_MEMBER("bounce_speed", T_DOUBLE, bounce_speed),
    SETTING_MEMBER("recovery_speed", T_DOUBLE, recovery_speed),
    SETTING_MEMBER("law", T_INT, law),
    {"trace", T_INT, offsetof(options_object, trace), READONLY, NULL},
    SETTING_MEMBER("stop_after", T_INT, stop_after),
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot options_slots[] = {
    {Py_tp_doc, (void *)"What a qdsim.Options hands to the C core. Checked there, not here."},
    {Py_tp_new, options_new},
    {Py_tp_dealloc, options_dealloc},
    {Py_tp_members, options_members},
    {0, NULL}};

PyType_Spec options_type_spec = {"qdsim._core.StepOptions", sizeof(options_object), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, options_slots};
