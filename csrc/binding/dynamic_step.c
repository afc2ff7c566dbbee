/* The result of a second-order step: a Step with velocities, impulses and energies. */
#include "binding/step_call.h"

#include <string.h>

typedef struct dynamic_step_object {
  PyObject_VAR_HEAD PyObject *step;
  PyObject *model;                             /* strong, NULL once energies are known */
  PyObject *v_next, *impulse, *energy;         /* NULL until read */
  PyObject *bristles;                          /* likewise */
  PyObject *kinetic_energy, *potential_energy; /* likewise */
  double h;
  int nq, nv, soft_pair_count;
  double energies[4]; /* kinetic before and after, potential before and after */
  double numbers[];   /* v_next (nv), q (nq), v (nv), bristles (soft_pair_count, 6) */
} dynamic_step_object;

static dynamic_step_object *object_alloc(const core_state *state, int nq, int nv,
                                         int soft_pair_count) {
  const size_t numbers = (size_t)(nq + 2 * nv + QD_BRISTLES * soft_pair_count);
  const Py_ssize_t bytes = (Py_ssize_t)(numbers * sizeof(double));
  dynamic_step_object *self =
      (dynamic_step_object *)state->dynamic_step_type->tp_alloc(state->dynamic_step_type, bytes);
  if (self) {
    self->nq = nq;
    self->nv = nv;
    self->soft_pair_count = soft_pair_count;
  }
  return self;
}

static double *bristle_numbers(dynamic_step_object *self) {
  return self->numbers + self->nq + 2 * self->nv;
}

PyObject *dynamic_step_create(const step_call *call, int with_derivative) {
  dynamic_step_object *self =
      object_alloc(call->state, call->model->nq, call->model->nv, call->model->soft_pair_count);
  if (!self) {
    return NULL;
  }
  const size_t nq = (size_t)self->nq, nv = (size_t)self->nv;
  self->h = call->settings.h;
  self->model = Py_NewRef((PyObject *)call->model);
  memcpy(self->numbers, call->result.v_next, nv * sizeof(double));
  memcpy(self->numbers + nv, call->input.q, nq * sizeof(double));
  memcpy(self->numbers + nv + nq, call->input.v, nv * sizeof(double));
  if (call->result.bristle) {
    memcpy(bristle_numbers(self), call->result.bristle,
           QD_BRISTLES * (size_t)self->soft_pair_count * sizeof(double));
  }
  self->step = step_create(call, with_derivative);
  if (!self->step) {
    Py_CLEAR(self);
  }
  return (PyObject *)self;
}

PyObject *dynamic_step_step(PyObject *object) { return ((dynamic_step_object *)object)->step; }

/* ---------------------------------------------------------------- energies */

/* Computes the energies on first use. -1 with an exception. */
static int energies_find(dynamic_step_object *self) {
  PyObject *q_next = PyObject_GetAttrString(self->step, "q_next");
  model_object *model = (model_object *)self->model;
  workspace_entry *entry =
      q_next && model ? workspace_pool_acquire(&model->pool, model->model) : NULL;
  if (entry) {
    double *e = self->energies;
    const double *v_next = self->numbers, *q = v_next + self->nv, *v = q + self->nq;
    qd_energy(model->model, entry->workspace, q, v, e, e + 2);
    qd_energy(model->model, entry->workspace, PyArray_DATA((PyArrayObject *)q_next), v_next, e + 1,
              e + 3);
    workspace_pool_release(&model->pool, entry);
    Py_CLEAR(self->model);
  } else if (q_next && model) {
    PyErr_NoMemory();
  }
  Py_XDECREF(q_next);
  return PyErr_Occurred() ? -1 : 0;
}

/* Kind of energy. */
enum { ENERGY_TOTAL, ENERGY_KINETIC, ENERGY_POTENTIAL };

static PyObject *energy_get(PyObject *object, PyObject **slot, int kind) {
  dynamic_step_object *self = (dynamic_step_object *)object;
  PyObject *out = NULL;
  OBJECT_LOCK(object);
  if (!*slot && energies_find(self) == 0) {
    const double *e = self->energies;
    const double sum[2] = {e[0] + e[2], e[1] + e[3]};
    *slot =
        array_from_numbers(kind == ENERGY_TOTAL ? sum : (kind == ENERGY_KINETIC ? e : e + 2), 2);
  }
  out = *slot;
  Py_XINCREF(out);
  OBJECT_UNLOCK();
  return out;
}

static PyObject *get_energy(PyObject *object, void *closure) {
  (void)closure;
  return energy_get(object, &((dynamic_step_object *)object)->energy, ENERGY_TOTAL);
}

static PyObject *get_kinetic(PyObject *object, void *closure) {
  (void)closure;
  return energy_get(object, &((dynamic_step_object *)object)->kinetic_energy, ENERGY_KINETIC);
}

static PyObject *get_potential(PyObject *object, void *closure) {
  (void)closure;
  return energy_get(object, &((dynamic_step_object *)object)->potential_energy, ENERGY_POTENTIAL);
}

/* ---------------------------------------------------------------- type */

static void object_dealloc(PyObject *object) {
  dynamic_step_object *self = (dynamic_step_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  Py_XDECREF(self->step);
  Py_XDECREF(self->model);
  Py_XDECREF(self->v_next);
  Py_XDECREF(self->impulse);
  Py_XDECREF(self->bristles);
  Py_XDECREF(self->energy);
  Py_XDECREF(self->kinetic_energy);
  Py_XDECREF(self->potential_energy);
  type->tp_free(object);
  Py_DECREF(type);
}

/* Other attributes are those of the Step. */
static PyObject *object_getattr(PyObject *object, PyObject *name) {
  PyObject *out = PyObject_GenericGetAttr(object, name);
  PyObject *step = ((dynamic_step_object *)object)->step;
  if (out || !step || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
    return out;
  }
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  out = PyObject_GetAttr(step, name);
  if (out) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
  } else {
    PyErr_Restore(type, value, trace); /* names the class of this object */
  }
  return out;
}

static PyObject *get_v_next(PyObject *object, void *closure) {
  (void)closure;
  dynamic_step_object *self = (dynamic_step_object *)object;
  PyObject *out;
  OBJECT_LOCK(object);
  if (!self->v_next) {
    self->v_next = array_from_numbers(self->numbers, self->nv);
  }
  out = self->v_next;
  Py_XINCREF(out);
  OBJECT_UNLOCK();
  return out;
}

static PyObject *get_bristles(PyObject *object, void *closure) {
  (void)closure;
  dynamic_step_object *self = (dynamic_step_object *)object;
  PyObject *out;
  OBJECT_LOCK(object);
  if (!self->bristles) {
    self->bristles = matrix_from_numbers(bristle_numbers(self), self->soft_pair_count, QD_BRISTLES);
  }
  out = self->bristles;
  Py_XINCREF(out);
  OBJECT_UNLOCK();
  return out;
}

/* (contacts, 6) h times the forces of the contacts */
static PyObject *impulse_create(const dynamic_step_object *self) {
  PyObject *contacts = PyObject_GetAttrString(self->step, "contacts");
  PyObject *name = contacts ? PyUnicode_FromString("force") : NULL;
  PyObject *force = name ? PyObject_GetItem(contacts, name) : NULL;
  PyObject *factor = force ? PyFloat_FromDouble(self->h) : NULL;
  PyObject *out = factor ? PyNumber_Multiply(force, factor) : NULL;
  Py_XDECREF(name);
  Py_XDECREF(contacts);
  Py_XDECREF(force);
  Py_XDECREF(factor);
  if (out) {
    array_freeze(out);
  }
  return out;
}

static PyObject *get_impulse(PyObject *object, void *closure) {
  (void)closure;
  dynamic_step_object *self = (dynamic_step_object *)object;
  PyObject *out;
  OBJECT_LOCK(object);
  if (!self->impulse) {
    self->impulse = impulse_create(self);
  }
  out = self->impulse;
  Py_XINCREF(out);
  OBJECT_UNLOCK();
  return out;
}

static PyObject *object_repr(PyObject *object) {
  PyObject *v_next = get_v_next(object, NULL);
  PyObject *text = v_next ? PyUnicode_FromFormat("DynamicStep(v_next=%R, %R)", v_next,
                                                 ((dynamic_step_object *)object)->step)
                          : NULL;
  Py_XDECREF(v_next);
  return text;
}

static PyObject *object_reduce(PyObject *object, PyObject *unused) {
  (void)unused;
  dynamic_step_object *self = (dynamic_step_object *)object;
  PyObject *module = PyType_GetModule(Py_TYPE(object));
  PyObject *energy = get_energy(object, NULL); /* pickles do not contain the model */
  PyObject *restore =
      module && energy ? PyObject_GetAttrString(module, "_restore_dynamic_step") : NULL;
  Py_XDECREF(energy);
  if (!restore) {
    return NULL;
  }
  const double *e = self->energies;
  return Py_BuildValue("N(ONd(dddd)N)", restore, self->step, get_v_next(object, NULL), self->h,
                       e[0], e[1], e[2], e[3], get_bristles(object, NULL));
}

PyObject *dynamic_step_restore(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *step, *v_next, *bristles;
  double h, e[4];
  if (!PyArg_ParseTuple(args, "O!O!d(dddd)O!:_restore_dynamic_step", state->step_type, &step,
                        &PyArray_Type, &v_next, &h, e, e + 1, e + 2, e + 3, &PyArray_Type,
                        &bristles)) {
    return NULL;
  }
  const npy_intp nv = PyArray_SIZE((PyArrayObject *)v_next);
  const npy_intp pairs = PyArray_SIZE((PyArrayObject *)bristles) / QD_BRISTLES;
  if (nv > INT32_MAX / 64 || pairs > INT32_MAX / 64) {
    PyErr_SetString(PyExc_ValueError, "_restore_dynamic_step: too long");
    return NULL;
  }
  dynamic_step_object *self = object_alloc(state, 0, (int)nv, (int)pairs);
  if (self && (array_copy_vector(v_next, "v_next", (int)nv, self->numbers) < 0 ||
               array_copy_matrix(bristles, "bristles", (int)pairs, QD_BRISTLES,
                                 bristle_numbers(self)) < 0)) {
    Py_CLEAR(self);
  }
  if (self) {
    self->step = Py_NewRef(step);
    self->h = h;
    memcpy(self->energies, e, sizeof e);
  }
  return (PyObject *)self;
}

static PyMemberDef object_members[] = {
    {"h", T_DOUBLE, offsetof(dynamic_step_object, h), READONLY, "Time step, s."},
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef object_getset[] = {
    {"v_next", get_v_next, NULL, "Velocity after the step (nv), read-only.", NULL},
    {"impulse", get_impulse, NULL,
     "Impulses of the contacts (contacts, 6), h times their forces, N s and Nm s in the contact\n"
     "frame, read-only.",
     NULL},
    {"bristles", get_bristles, NULL,
     "Stretch of each soft pair's bristles after the step (soft_pair_count, 6), read-only: m and\n"
     "rad in the frame of its second body, for the next step; zero unless patch_law='bristle'.",
     NULL},
    {"energy", get_energy, NULL,
     "Total energy before and after the step (2), J, read-only: kinetic energy, gravity (zero at "
     "the\n"
     "world's origin) and joint springs; computed when first read.",
     NULL},
    {"kinetic_energy", get_kinetic, NULL, "Kinetic part of the energy (2), J, read-only.", NULL},
    {"potential_energy", get_potential, NULL, "Potential part of the energy (2), J, read-only.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef object_methods[] = {{"__reduce__", object_reduce, METH_NOARGS, NULL},
                                       {NULL, NULL, 0, NULL}};

static PyType_Slot object_slots[] = {
    {Py_tp_doc,
     (void *)"Result of one second-order step: a Step with velocities, impulses and energies.\n"
             "Immutable; arrays are created when first read."},
    {Py_tp_dealloc, object_dealloc},
    {Py_tp_getattro, object_getattr},
    {Py_tp_repr, object_repr},
    {Py_tp_members, object_members},
    {Py_tp_getset, object_getset},
    {Py_tp_methods, object_methods},
    {0, NULL}};

PyType_Spec dynamic_step_type_spec = {"qdsim._core.DynamicStep", sizeof(dynamic_step_object), 1,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
                                          Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                      object_slots};
