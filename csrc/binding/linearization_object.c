/* The result of a linearization: a step with its derivatives. */

#include "binding/step_call.h"

typedef struct linearization_object {
  PyObject_HEAD PyObject *step;
  PyObject *A; /* None if not in wrt */
  PyObject *B;
  PyObject *derivatives; /* mapping from names in wrt to arrays */
} linearization_object;

PyObject *linearization_create(const core_state *state, PyObject *step, PyObject *A, PyObject *B,
                               PyObject *derivatives) {
  linearization_object *self =
      (linearization_object *)state->linearization_type->tp_alloc(state->linearization_type, 0);
  if (!self) {
    return NULL;
  }
  self->step = Py_NewRef(step);
  self->A = Py_NewRef(A);
  self->B = Py_NewRef(B);
  self->derivatives = PyDictProxy_New(derivatives);
  if (!self->derivatives) {
    Py_CLEAR(self);
  }
  return (PyObject *)self;
}

PyObject *linearization_step(PyObject *linearization) {
  return ((linearization_object *)linearization)->step;
}

/* ---------------------------------------------------------------- type */

static void linearization_dealloc(PyObject *object) {
  linearization_object *self = (linearization_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  Py_XDECREF(self->step);
  Py_XDECREF(self->A);
  Py_XDECREF(self->B);
  Py_XDECREF(self->derivatives);
  type->tp_free(object);
  Py_DECREF(type);
}

static PyObject *linearization_q_next(PyObject *object, void *closure) {
  (void)closure;
  return PyObject_GetAttrString(((linearization_object *)object)->step, "q_next");
}

static PyObject *linearization_repr(PyObject *object) {
  const linearization_object *self = (const linearization_object *)object;
  return PyUnicode_FromFormat("Linearization(A=%R,\nB=%R,\nstep=%R)", self->A, self->B, self->step);
}

static PyObject *linearization_reduce(PyObject *object, PyObject *unused) {
  (void)unused;
  const linearization_object *self = (const linearization_object *)object;
  PyObject *module = PyType_GetModule(Py_TYPE(object));
  PyObject *restore = module ? PyObject_GetAttrString(module, "_restore_linearization") : NULL;
  PyObject *derivatives = restore ? PyDict_New() : NULL;
  if (!derivatives || PyDict_Update(derivatives, self->derivatives) < 0) {
    Py_XDECREF(derivatives);
    Py_XDECREF(restore);
    return NULL;
  }
  return Py_BuildValue("N(OOON)", restore, self->step, self->A, self->B, derivatives);
}

/* A matrix from a pickle, read-only again; None stays None. */
static PyObject *matrix_restore(PyObject *object, const char *name) {
  if (object == Py_None) {
    return Py_NewRef(object);
  }
  npy_intp shape[2] = {-1, -1};
  PyArrayObject *array = array_read(object, name, 2, shape);
  if (array) {
    array_freeze((PyObject *)array);
  }
  return (PyObject *)array;
}

/* The same for all derivatives; A and B are those by q and u. */
static PyObject *derivatives_restore(PyObject *given, PyObject *A, PyObject *B) {
  PyObject *out = given ? PyDict_Copy(given) : PyDict_New(), *key, *value;
  Py_ssize_t at = 0;
  while (out && given && PyDict_Next(given, &at, &key, &value)) {
    if (PyArray_Check(value)) {
      array_freeze(value);
    }
  }
  if (out && ((A != Py_None && PyDict_SetItemString(out, "q", A) < 0) ||
              (B != Py_None && PyDict_SetItemString(out, "u", B) < 0))) {
    Py_CLEAR(out);
  }
  return out;
}

PyObject *linearization_restore(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *step, *A_in, *B_in, *given = NULL;
  if (!PyArg_ParseTuple(args, "O!OO|O!:_restore_linearization", state->step_type, &step, &A_in,
                        &B_in, &PyDict_Type, &given)) {
    return NULL;
  }
  PyObject *A = matrix_restore(A_in, "A");
  PyObject *B = A ? matrix_restore(B_in, "B") : NULL;
  PyObject *derivatives = B ? derivatives_restore(given, A, B) : NULL;
  PyObject *out = derivatives ? linearization_create(state, step, A, B, derivatives) : NULL;
  Py_XDECREF(derivatives);
  Py_XDECREF(A);
  Py_XDECREF(B);
  return out;
}

static PyMemberDef linearization_members[] = {
    {"A", T_OBJECT_EX, offsetof(linearization_object, A), READONLY,
     "dq_next/dq (nv, nv) in tangent coordinates, read-only; None if not in wrt."},
    {"B", T_OBJECT_EX, offsetof(linearization_object, B), READONLY,
     "dq_next/du (nv, nu) in tangent coordinates, read-only; None if not in wrt."},
    {"derivatives", T_OBJECT_EX, offsetof(linearization_object, derivatives), READONLY,
     "Mapping from the names in wrt to the derivatives of q_next with respect to them, (nv, *shape "
     "of\n"
     "the argument), read-only; 'q' is A and 'u' is B."},
    {"step", T_OBJECT_EX, offsetof(linearization_object, step), READONLY, "The Step itself."},
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef linearization_getset[] = {
    {"q_next", linearization_q_next, NULL, "Configuration after the step (nq), read-only.", NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef linearization_methods[] = {
    {"__reduce__", linearization_reduce, METH_NOARGS, NULL}, {NULL, NULL, 0, NULL}};

static PyType_Slot linearization_slots[] = {
    {Py_tp_doc, (void *)"A quasi-dynamic step and its derivatives. Immutable."},
    {Py_tp_dealloc, linearization_dealloc},
    {Py_tp_repr, linearization_repr},
    {Py_tp_members, linearization_members},
    {Py_tp_getset, linearization_getset},
    {Py_tp_methods, linearization_methods},
    {0, NULL}};

PyType_Spec linearization_type_spec = {"qdsim._core.Linearization", sizeof(linearization_object), 0,
                                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE |
                                           Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                       linearization_slots};
