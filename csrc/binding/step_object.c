/* The result of a step. */
#include "binding/step_call.h"

#include <string.h>

/* All numbers follow the object in one allocation. An attribute becomes an array when it is first
 * read, and stays that array. */
typedef struct step_object {
  PyObject_VAR_HEAD solver_info info;
  int nq, nv, nu, constraint_count, tendon_count, contact_count;
  PyObject *q_next, *delta, *limit_force, *constraint_force;             /* NULL until read */
  PyObject *tendon_force, *actuator_force, *actuator_limited, *contacts; /* likewise */
  double numbers[]; /* q_next (nq), delta (nv), limit_force (nv), constraint_force
                       (constraint_count, 6), tendon_force (tendon_count), actuator_force (2, nu),
                       then the contacts */
} step_object;

static const double *step_delta(const step_object *self) { return self->numbers + self->nq; }
static const double *step_limit_force(const step_object *self) {
  return self->numbers + self->nq + self->nv;
}
static double *step_constraint_force(step_object *self) {
  return self->numbers + self->nq + 2 * self->nv;
}
static double *step_tendon_force(step_object *self) {
  return step_constraint_force(self) + QD_CONSTRAINT_FORCE * self->constraint_count;
}
static double *step_actuator_force(step_object *self) {
  return step_tendon_force(self) + self->tendon_count;
}
static qd_contact *step_contacts(step_object *self) {
  return (qd_contact *)(void *)(step_actuator_force(self) + 2 * self->nu);
}

static step_object *step_alloc(const core_state *state, int nq, int nv, int nu,
                               int constraint_count, int tendon_count, int contact_count) {
  size_t numbers =
      (size_t)(nq + 2 * nv + 2 * nu + QD_CONSTRAINT_FORCE * constraint_count + tendon_count);
  size_t bytes = numbers * sizeof(double) + (size_t)contact_count * sizeof(qd_contact);
  step_object *self =
      (step_object *)state->step_type->tp_alloc(state->step_type, (Py_ssize_t)bytes);
  if (self) {
    self->nq = nq;
    self->nv = nv;
    self->nu = nu;
    self->constraint_count = constraint_count;
    self->tendon_count = tendon_count;
    self->contact_count = contact_count;
  }
  return self;
}

PyObject *step_create(const step_call *call, int with_derivative) {
  const qd_step_result *result = &call->result;
  size_t nq = (size_t)call->model->nq, nv = (size_t)call->model->nv;
  step_object *self =
      step_alloc(call->state, call->model->nq, call->model->nv, call->model->nu,
                 call->model->constraint_count, call->model->tendon_count, result->contact_count);
  if (!self) {
    return NULL;
  }
  if (step_call_info(call, with_derivative, &self->info) < 0) {
    Py_DECREF(self);
    return NULL;
  }
  memcpy(self->numbers, result->q_next, nq * sizeof(double));
  memcpy(self->numbers + nq, result->delta, nv * sizeof(double));
  memcpy(self->numbers + nq + nv, result->limit_force, nv * sizeof(double));
  memcpy(step_constraint_force(self), result->constraint_force,
         QD_CONSTRAINT_FORCE * (size_t)self->constraint_count * sizeof(double));
  memcpy(step_tendon_force(self), result->tendon_force,
         (size_t)self->tendon_count * sizeof(double));
  memcpy(step_actuator_force(self), result->actuator_force, 2 * (size_t)self->nu * sizeof(double));
  if (result->contact_count > 0) {
    memcpy(step_contacts(self), result->contacts,
           (size_t)result->contact_count * sizeof(qd_contact));
  }
  return (PyObject *)self;
}

int contacts_fit(const model_object *model, const qd_contact *contacts, npy_intp count) {
  for (npy_intp i = 0; i < count; i++) {
    if (contacts[i].pair < 0 || contacts[i].pair >= model->pair_count || contacts[i].body_a < 0 ||
        contacts[i].body_a >= model->body_count || contacts[i].body_b < 0 ||
        contacts[i].body_b >= model->body_count) {
      return 0;
    }
  }
  return 1;
}

int step_start_read(const step_call *call, PyObject *step, qd_step_start *out) {
  const model_object *model = call->model;
  if (!PyObject_TypeCheck(step, call->state->step_type)) {
    PyErr_Format(PyExc_TypeError, "warm_start: expected a Step, a Linearization or None, got %s",
                 Py_TYPE(step)->tp_name);
    return -1;
  }
  step_object *self = (step_object *)step;
  if (self->nq != model->nq || self->nv != model->nv ||
      self->constraint_count != model->constraint_count ||
      self->tendon_count != model->tendon_count ||
      !contacts_fit(model, step_contacts(self), self->contact_count)) {
    PyErr_Format(PyExc_ValueError,
                 "warm_start: a step of another model (nq %d, nv %d, %d constraints; this one: nq "
                 "%d, nv %d, %d constraints, %d pairs)",
                 self->nq, self->nv, self->constraint_count, model->nq, model->nv,
                 model->constraint_count, model->pair_count);
    return -1;
  }
  *out = (qd_step_start){.contact_count = self->contact_count,
                         .contacts = step_contacts(self),
                         .delta = step_delta(self),
                         .limit_force = step_limit_force(self),
                         .constraint_force = step_constraint_force(self),
                         .tendon_force = step_tendon_force(self)};
  return 0;
}

/* ---------------------------------------------------------------- type */

static void step_dealloc(PyObject *object) {
  step_object *self = (step_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  Py_XDECREF(self->info.trace);
  Py_XDECREF(self->q_next);
  Py_XDECREF(self->delta);
  Py_XDECREF(self->limit_force);
  Py_XDECREF(self->constraint_force);
  Py_XDECREF(self->tendon_force);
  Py_XDECREF(self->actuator_force);
  Py_XDECREF(self->actuator_limited);
  Py_XDECREF(self->contacts);
  type->tp_free(object);
  Py_DECREF(type);
}

/* The content of the slot, or NULL without an error. */
static PyObject *slot_read(PyObject *object, PyObject **slot) {
  PyObject *out;
  OBJECT_LOCK(object);
  out = *slot;
  Py_XINCREF(out);
  OBJECT_UNLOCK();
  (void)object;
  return out;
}

/* Puts a new array (stolen; NULL: none) into the slot, and returns the slot's content: another
 * thread may have filled it first. */
static PyObject *slot_fill(PyObject *object, PyObject **slot, PyObject *array) {
  PyObject *out;
  if (!array) {
    return NULL;
  }
  OBJECT_LOCK(object);
  if (!*slot) {
    *slot = Py_NewRef(array);
  }
  out = Py_NewRef(*slot);
  OBJECT_UNLOCK();
  (void)object;
  Py_DECREF(array);
  return out;
}

static PyObject *lazy_vector(PyObject *object, PyObject **slot, const double *numbers, int count) {
  PyObject *out = slot_read(object, slot);
  return out ? out : slot_fill(object, slot, array_from_numbers(numbers, count));
}

/* Read-only booleans. */
static PyObject *marks_from_numbers(const double *numbers, int count) {
  npy_intp shape[1] = {count};
  PyObject *array = PyArray_SimpleNew(1, shape, NPY_BOOL);
  npy_bool *marks = array ? PyArray_DATA((PyArrayObject *)array) : NULL;
  for (int i = 0; array && i < count; i++) {
    marks[i] = numbers[i] != 0.0;
  }
  if (array) {
    PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
  }
  return array;
}

static int marks_read(PyObject *marks, const char *name, int count, double *numbers) {
  PyObject *array = PyArray_FROM_OT(marks, NPY_DOUBLE);
  int result = array ? array_copy_vector(array, name, count, numbers) : -1;
  Py_XDECREF(array);
  return result;
}

static PyObject *step_get_q_next(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  return lazy_vector(object, &self->q_next, self->numbers, self->nq);
}

static PyObject *step_get_delta(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  return lazy_vector(object, &self->delta, step_delta(self), self->nv);
}

static PyObject *step_get_limit_force(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  return lazy_vector(object, &self->limit_force, step_limit_force(self), self->nv);
}

static PyObject *step_get_constraint_force(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  PyObject *out = slot_read(object, &self->constraint_force);
  return out ? out
             : slot_fill(object, &self->constraint_force,
                         matrix_from_numbers(step_constraint_force(self), self->constraint_count,
                                             QD_CONSTRAINT_FORCE));
}

static PyObject *step_get_tendon_force(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  return lazy_vector(object, &self->tendon_force, step_tendon_force(self), self->tendon_count);
}

static PyObject *step_get_actuator_force(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  return lazy_vector(object, &self->actuator_force, step_actuator_force(self), self->nu);
}

static PyObject *step_get_actuator_limited(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  PyObject *out = slot_read(object, &self->actuator_limited);
  return out ? out
             : slot_fill(object, &self->actuator_limited,
                         marks_from_numbers(step_actuator_force(self) + self->nu, self->nu));
}

static PyObject *step_get_contacts(PyObject *object, void *closure) {
  (void)closure;
  step_object *self = (step_object *)object;
  core_state *state = core_state_of_type(Py_TYPE(object));
  PyObject *out = state ? slot_read(object, &self->contacts) : NULL;
  if (!state || out) {
    return out;
  }
  return slot_fill(object, &self->contacts,
                   contact_array_create(state, step_contacts(self), self->contact_count));
}

static PyObject *step_get_info(PyObject *object, void *closure) {
  (void)closure;
  core_state *state = core_state_of_type(Py_TYPE(object));
  const step_object *self = (const step_object *)object;
  return state ? info_create(state, &self->info) : NULL;
}

static PyObject *step_repr(PyObject *object) {
  const step_object *self = (const step_object *)object;
  PyObject *q_next = step_get_q_next(object, NULL), *contacts = step_get_contacts(object, NULL);
  PyObject *text = q_next && contacts
                       ? PyUnicode_FromFormat("Step(status='%s', contacts=%zd, q_next=%R)",
                                              qd_status_name(self->info.cone.status),
                                              PyArray_SIZE((PyArrayObject *)contacts), q_next)
                       : NULL;
  Py_XDECREF(q_next);
  Py_XDECREF(contacts);
  return text;
}

static PyObject *step_reduce(PyObject *object, PyObject *unused) {
  (void)unused;
  PyObject *module = PyType_GetModule(Py_TYPE(object));
  PyObject *restore = module ? PyObject_GetAttrString(module, "_restore_step") : NULL;
  if (!restore) {
    return NULL;
  }
  return Py_BuildValue("N(NNNNNNNNN)", restore, step_get_q_next(object, NULL),
                       step_get_delta(object, NULL), step_get_limit_force(object, NULL),
                       step_get_constraint_force(object, NULL), step_get_tendon_force(object, NULL),
                       step_get_actuator_force(object, NULL),
                       step_get_actuator_limited(object, NULL), step_get_contacts(object, NULL),
                       step_get_info(object, NULL));
}

static int constraint_force_read(step_object *self, PyObject *matrix) {
  PyObject *flat = PyArray_Ravel((PyArrayObject *)matrix, NPY_CORDER);
  int result = flat ? array_copy_vector(flat, "constraint_force",
                                        QD_CONSTRAINT_FORCE * self->constraint_count,
                                        step_constraint_force(self))
                    : -1;
  Py_XDECREF(flat);
  return result;
}

/* The arrays in a step's pickle, in the order of its arguments. */
enum { Q_NEXT, DELTA, LIMIT, CONSTRAINT, TENDON, ACTUATOR, LIMITED, PICKLED };

/* An empty step with the arrays' lengths. */
static step_object *step_like(core_state *state, PyObject *const array[PICKLED], npy_intp nc) {
  int length[PICKLED];
  for (int i = 0; i < PICKLED; ++i) {
    const npy_intp size = PyArray_SIZE((PyArrayObject *)array[i]);
    if (size > INT32_MAX / 64 || nc > INT32_MAX / 64) {
      PyErr_SetString(PyExc_ValueError, "_restore_step: too long");
      return NULL;
    }
    length[i] = (int)size;
  }
  return step_alloc(state, length[Q_NEXT], length[DELTA], length[ACTUATOR],
                    length[CONSTRAINT] / QD_CONSTRAINT_FORCE, length[TENDON], (int)nc);
}

static int step_fill(step_object *self, PyObject *const array[PICKLED]) {
  const int nq = (int)PyArray_SIZE((PyArrayObject *)array[Q_NEXT]);
  const int nv = (int)PyArray_SIZE((PyArrayObject *)array[DELTA]);
  const int nu = (int)PyArray_SIZE((PyArrayObject *)array[ACTUATOR]);
  const int nt = (int)PyArray_SIZE((PyArrayObject *)array[TENDON]);
  double *force = step_actuator_force(self);
  if (array_copy_vector(array[Q_NEXT], "q_next", nq, self->numbers) < 0 ||
      array_copy_vector(array[DELTA], "delta", nv, self->numbers + nq) < 0 ||
      array_copy_vector(array[LIMIT], "limit_force", nv, self->numbers + nq + nv) < 0 ||
      constraint_force_read(self, array[CONSTRAINT]) < 0 ||
      array_copy_vector(array[TENDON], "tendon_force", nt, step_tendon_force(self)) < 0 ||
      array_copy_vector(array[ACTUATOR], "actuator_force", nu, force) < 0 ||
      marks_read(array[LIMITED], "actuator_limited", nu, force + nu) < 0) {
    return -1;
  }
  return 0;
}

PyObject *step_restore(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *array[PICKLED], *contacts, *info;
  if (!PyArg_ParseTuple(args, "O!O!O!O!O!O!O!OO!:_restore_step", &PyArray_Type, &array[Q_NEXT],
                        &PyArray_Type, &array[DELTA], &PyArray_Type, &array[LIMIT], &PyArray_Type,
                        &array[CONSTRAINT], &PyArray_Type, &array[TENDON], &PyArray_Type,
                        &array[ACTUATOR], &PyArray_Type, &array[LIMITED], &contacts,
                        state->info_type, &info)) {
    return NULL;
  }
  PyArrayObject *rows = contact_array_read(state, contacts);
  if (!rows) {
    return NULL;
  }
  const npy_intp nc = PyArray_DIM(rows, 0);
  step_object *self = step_like(state, array, nc);
  if (self && step_fill(self, array) < 0) {
    Py_CLEAR(self);
  }
  if (self) {
    self->info = *info_of(info);
    Py_XINCREF(self->info.trace);
    if (nc > 0) {
      memcpy(step_contacts(self), PyArray_DATA(rows), (size_t)nc * sizeof(qd_contact));
    }
  }
  Py_DECREF(rows);
  return (PyObject *)self;
}

static PyGetSetDef step_getset[] = {
    {"q_next", step_get_q_next, NULL, "Configuration after the step (nq), read-only.", NULL},
    {"delta", step_get_delta, NULL, "Displacement (nv), q_next = q [+] delta, read-only.", NULL},
    {"limit_force", step_get_limit_force, NULL,
     "Generalised force of the joint limits (nv), N or Nm, read-only.", NULL},
    {"constraint_force", step_get_constraint_force, NULL,
     "Force of each bilateral constraint (constraint_count, 6), read-only: force N on the second "
     "body\n"
     "at its anchor and moment Nm, world axes; for a joint coupling, the generalised force on the\n"
     "following joint, then zeros.",
     NULL},
    {"tendon_force", step_get_tendon_force, NULL,
     "Force along each tendon (tendon_count), N, positive if it lengthens the tendon; read-only.",
     NULL},
    {"actuator_force", step_get_actuator_force, NULL,
     "Force of each actuator on its joint (nu), N or Nm, read-only.", NULL},
    {"actuator_limited", step_get_actuator_limited, NULL,
     "Whether each actuator's force is at its limit (nu), read-only.", NULL},
    {"contacts", step_get_contacts, NULL,
     "Structured array of the contacts in the program, read-only: geom_a, geom_b, body_a, body_b,\n"
     "pair, dim, dist (m, before the step), pos (3, world), frame (3, 3; rows normal from A into "
     "B\n"
     "and two tangents), friction (5), force (6; on B in the contact frame, N and Nm).",
     NULL},
    {"info", step_get_info, NULL, "SolverInfo of the step.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

PyDoc_STRVAR(step_show_doc, "show($self, model, *, height=520)\n"
                            "--\n"
                            "\n"
                            "Show the start of the step with its contact forces in a browser "
                            "(extra viewer); in a notebook, show\n"
                            "it below the cell without a server.\n"
                            "\n"
                            "Args:\n"
                            "    model: the model of the step.\n"
                            "    height: height of the page in a notebook, pixels.\n"
                            "\n"
                            "Returns:\n"
                            "    The qdsim.viewer.Viewer; None in a notebook.\n"
                            "\n"
                            "Raises:\n"
                            "    ImportError: without the extra viewer.\n"
                            "    ValueError: if the step belongs to another model.");

static PyObject *step_show(PyObject *self, PyObject *args, PyObject *named) {
  static char *names[] = {"model", "height", NULL};
  PyObject *model;
  int height = 520;
  if (!PyArg_ParseTupleAndKeywords(args, named, "O|$i:show", names, &model, &height)) {
    return NULL;
  }
  PyObject *module = PyImport_ImportModule("qdsim.showing");
  PyObject *shown = module ? PyObject_GetAttrString(module, "shown") : NULL;
  PyObject *both = shown ? PyTuple_Pack(2, self, model) : NULL;
  PyObject *size = both ? Py_BuildValue("{s:i}", "height", height) : NULL;
  PyObject *out = size ? PyObject_Call(shown, both, size) : NULL;
  Py_XDECREF(size);
  Py_XDECREF(both);
  Py_XDECREF(shown);
  Py_XDECREF(module);
  return out;
}

static PyMethodDef step_methods[] = {
    {"__reduce__", step_reduce, METH_NOARGS, NULL},
    {"show", (PyCFunction)(void (*)(void))step_show, METH_VARARGS | METH_KEYWORDS, step_show_doc},
    {NULL, NULL, 0, NULL}};

static PyType_Slot step_slots[] = {
    {Py_tp_doc,
     (void *)"Result of one quasi-dynamic step. Immutable; arrays are created when first read."},
    {Py_tp_dealloc, step_dealloc},
    {Py_tp_repr, step_repr},
    {Py_tp_getset, step_getset},
    {Py_tp_methods, step_methods},
    {0, NULL}};

PyType_Spec step_type_spec = {
    "qdsim._core.Step", sizeof(step_object), 1,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, step_slots};
