/* Derivatives of a step by any of its arguments: for linearize(wrt=...), and an object that keeps a
 * step's factorisation for products with vectors. qdsim.differential is its public interface. */
#include "binding/step_call.h"

#include <string.h>

/* ---------------------------------------------------------------- arguments */

int argument_find(PyObject *name) {
  for (int i = 0; i < QD_ARGUMENT_COUNT && PyUnicode_Check(name); i++) {
    if (PyUnicode_CompareWithASCIIString(name, qd_argument_name(i)) == 0) {
      return i;
    }
  }
  return -1;
}

static int wrt_bit(PyObject *item) {
  int argument = argument_find(item);
  if (argument >= 0) {
    return 1 << argument;
  }
  PyErr_Format(
      PyExc_ValueError,
      "wrt: expected 'q', 'u', 'tau', 'wrench', 'mocap' or a name in model.parameters, got %R",
      item);
  return -1;
}

int wrt_read(PyObject *argument, int by_default) {
  if (!argument) {
    return by_default;
  }
  PyObject *items = PySequence_Tuple(argument);
  if (!items) {
    if (PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Format(PyExc_TypeError, "wrt: expected names such as 'q' and 'u', got %s",
                   Py_TYPE(argument)->tp_name);
    }
    return -1;
  }
  int wrt = 0;
  for (Py_ssize_t i = 0; wrt >= 0 && i < PyTuple_GET_SIZE(items); i++) {
    int bit = wrt_bit(PyTuple_GET_ITEM(items, i));
    wrt = bit < 0 ? -1 : wrt | bit;
  }
  Py_DECREF(items);
  return wrt;
}

/* Fills dims[3] with the shape of an argument; returns its number of dimensions. */
static int argument_shape(const qd_model *model, int argument, npy_intp *dims) {
  npy_intp size = qd_argument_size(model, argument);
  switch (argument) {
  case QD_BY_H:
    return 0;
  case QD_BY_WRENCH:
  case QD_BY_MOCAP:
    dims[0] = size / 6;
    dims[1] = 6;
    return 2;
  case QD_BY_BODY_COM:
  case QD_BY_GEOM_SIZE:
    dims[0] = size / 3;
    dims[1] = 3;
    return 2;
  case QD_BY_BODY_INERTIA:
    dims[0] = size / 9;
    dims[1] = dims[2] = 3;
    return 3;
  case QD_BY_ACTUATOR_FORCE_RANGE:
    dims[0] = qd_argument_size(model, argument) / 2;
    dims[1] = 2;
    return 2;
  case QD_BY_PAIR_FRICTION:
    dims[0] = size / 5;
    dims[1] = 5;
    return 2;
  default:
    dims[0] = size;
    return 1;
  }
}

static double *numbers_of(PyObject *array) { return PyArray_DATA((PyArrayObject *)array); }

/* ---------------------------------------------------------------- one call's derivatives */

/* New arrays (count, *shape) for the wanted arguments, None for the others. */
static int gradients_create(const step_call *call, int wanted, npy_intp count,
                            PyObject *arrays[QD_ARGUMENT_COUNT],
                            double *numbers[QD_ARGUMENT_COUNT]) {
  int failed = 0;
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    npy_intp dims[4] = {count};
    int want = wanted >> i & 1;
    arrays[i] = want ? PyArray_SimpleNew(1 + argument_shape(call->model->model, i, dims + 1), dims,
                                         NPY_DOUBLE)
                     : Py_NewRef(Py_None);
    numbers[i] = want && arrays[i] ? numbers_of(arrays[i]) : NULL;
    failed |= !arrays[i];
  }
  return failed ? -1 : 0;
}

static void arrays_release(PyObject *arrays[QD_ARGUMENT_COUNT]) {
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    Py_XDECREF(arrays[i]);
  }
}

int step_call_jacobians(step_call *call, int wanted, PyObject *arrays[QD_ARGUMENT_COUNT]) {
  double *numbers[QD_ARGUMENT_COUNT];
  int bad = gradients_create(call, wanted, call->model->nv, arrays, numbers) < 0;
  if (!bad) {
    qd_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = step_call_differentiate(call);
    if (status == QD_OK) {
      qd_vjp(call->model->model, call->entry->workspace, &call->settings, &call->input,
             &call->result, call->model->nv, NULL, NULL, numbers);
    }
    Py_END_ALLOW_THREADS;
    bad = step_call_check(call, status) < 0;
  }
  for (int i = 0; !bad && i < QD_ARGUMENT_COUNT; i++) {
    if (!numbers[i]) {
      continue;
    }
    if (numbers_first_bad(numbers[i], PyArray_SIZE((PyArrayObject *)arrays[i])) >= 0) {
      bad = step_call_check(call, QD_NUMERICAL_TROUBLE) < 0;
    }
    array_freeze(arrays[i]);
  }
  if (bad) {
    arrays_release(arrays);
  }
  return bad ? -1 : 0;
}

PyObject *derivatives_create(PyObject *arrays[QD_ARGUMENT_COUNT]) {
  PyObject *out = PyDict_New();
  for (int i = 0; out && i < QD_ARGUMENT_COUNT; i++) {
    if (arrays[i] != Py_None && PyDict_SetItemString(out, qd_argument_name(i), arrays[i]) < 0) {
      Py_CLEAR(out);
    }
  }
  return out;
}

/* ---------------------------------------------------------------- the second-order step */

const char linearize_dynamic_doc[] =
    "_linearize_dynamic($module, /, model, q, v, u, options=None, *, tau=None, wrench=None, "
    "mocap=None, wrt=('q', 'v', 'u'), warm_start=None)\n--\n\n"
    "(step, of_q, of_v); see qdsim.linearize_dynamic.";

#define BY_ONE_SWEEP (1 << QD_BY_Q | 1 << QD_BY_V | 1 << QD_BY_U)

static qd_status both_jacobians(step_call *call, int wanted, double *of_q[QD_ARGUMENT_COUNT],
                                double *of_v[QD_ARGUMENT_COUNT]) {
  if (!(wanted & ~BY_ONE_SWEEP)) {
    return step_call_linearize_dynamic(call, of_q, of_v);
  }
  const qd_status status = step_call_differentiate(call);
  if (status == QD_OK) {
    qd_jacobians(call->model->model, call->entry->workspace, &call->settings, &call->input,
                 &call->result, of_q, of_v);
  }
  return status;
}

/* A read-only mapping from names to arrays, which are checked and frozen. */
static PyObject *mapping_create(const step_call *call, PyObject *arrays[QD_ARGUMENT_COUNT]) {
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    if (arrays[i] == Py_None) {
      continue;
    }
    if (numbers_first_bad(numbers_of(arrays[i]), PyArray_SIZE((PyArrayObject *)arrays[i])) >= 0) {
      step_call_check(call, QD_NUMERICAL_TROUBLE);
      return NULL;
    }
    array_freeze(arrays[i]);
  }
  PyObject *dict = derivatives_create(arrays);
  PyObject *out = dict ? PyDictProxy_New(dict) : NULL;
  Py_XDECREF(dict);
  return out;
}

static PyObject *linearize_both(step_call *call, int wanted) {
  PyObject *of_q[QD_ARGUMENT_COUNT], *of_v[QD_ARGUMENT_COUNT], *out = NULL;
  double *q_numbers[QD_ARGUMENT_COUNT], *v_numbers[QD_ARGUMENT_COUNT];
  int bad = gradients_create(call, wanted, call->model->nv, of_q, q_numbers) < 0;
  bad |= gradients_create(call, wanted, call->model->nv, of_v, v_numbers) < 0;
  if (!bad) {
    qd_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = both_jacobians(call, wanted, q_numbers, v_numbers);
    Py_END_ALLOW_THREADS;
    call->input.start = NULL;
    bad = step_call_check(call, status) < 0;
  }
  if (!bad) {
    PyObject *by_q = mapping_create(call, of_q), *by_v = by_q ? mapping_create(call, of_v) : NULL;
    PyObject *step = by_v ? dynamic_step_create(call, 1) : NULL;
    out = step ? PyTuple_Pack(3, step, by_q, by_v) : NULL;
    Py_XDECREF(step);
    Py_XDECREF(by_q);
    Py_XDECREF(by_v);
  }
  arrays_release(of_q);
  arrays_release(of_v);
  return out;
}

PyObject *linearize_dynamic_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                     PyObject *kwnames) {
  static const char *const names[] = {"model", "q",      "v",     "u",   "options",
                                      "tau",   "wrench", "mocap", "wrt", "warm_start"};
  PyObject *in[10];
  step_call call;
  if (arguments_parse("linearize_dynamic", names, 10, 5, 4, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  const int wanted = wrt_read(in[8], BY_ONE_SWEEP);
  if (wanted < 0 ||
      step_call_begin(&call, PyModule_GetState(module), "linearize_dynamic", in[0], in[1], in[2],
                      in[3], in[4], in[5], in[6], in[7]) < 0 ||
      step_call_derivatives(&call) < 0 || step_call_start(&call, in[9]) < 0) {
    return NULL;
  }
  PyObject *out = linearize_both(&call, wanted);
  step_call_end(&call);
  return out;
}

/* ---------------------------------------------------------------- the object */

typedef struct differential_object {
  PyObject_HEAD step_call call; /* keeps its workspace until the object is deallocated */
  PyObject *model;              /* strong */
  PyObject *step;
} differential_object;

const char differential_doc[] =
    "_differentiate($module, /, model, q, u, options=None, *, tau=None, wrench=None, "
    "mocap=None, warm_start=None, v=None)\n--\n\n"
    "A step that keeps its factorisation, the second-order one where v is given; see "
    "qdsim.differentiate.";

PyObject *differential_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                PyObject *kwnames) {
  static const char *const names[] = {"model",  "q",     "u",          "options", "tau",
                                      "wrench", "mocap", "warm_start", "v"};
  core_state *state = PyModule_GetState(module);
  PyObject *in[9];
  step_call call;
  if (arguments_parse("differentiate", names, 9, 4, 3, args, arg_count, kwnames, in) < 0 ||
      step_call_begin(&call, state, in[8] ? "differentiate_dynamic" : "differentiate", in[0], in[1],
                      in[8], in[2], in[3], in[4], in[5], in[6]) < 0 ||
      step_call_derivatives(&call) < 0 || step_call_start(&call, in[7]) < 0) {
    return NULL;
  }
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = step_call_differentiate(&call);
  Py_END_ALLOW_THREADS;
  call.input.start = NULL; /* its Step may be deallocated */
  PyObject *step = step_call_check(&call, status) < 0
                       ? NULL
                       : (in[8] ? dynamic_step_create : step_create)(&call, 1);
  differential_object *self =
      step ? (differential_object *)state->differential_type->tp_alloc(state->differential_type, 0)
           : NULL;
  if (!self) {
    Py_XDECREF(step);
    step_call_end(&call);
    return NULL;
  }
  self->call = call;
  self->model = Py_NewRef(in[0]);
  self->step = step;
  return (PyObject *)self;
}

static void differential_dealloc(PyObject *object) {
  differential_object *self = (differential_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  if (self->call.entry) {
    workspace_pool_give_back(&self->call.model->pool, self->call.entry);
    self->call.entry = NULL;
    step_call_end(&self->call);
  }
  Py_XDECREF(self->model);
  Py_XDECREF(self->step);
  type->tp_free(object);
  Py_DECREF(type);
}

/* Reads a tuple of (count, size) arrays or None. The module qdsim.differential creates them; the
 * check keeps other arguments from reading foreign memory. */
static int tangents_read(const differential_object *self, PyObject *tuple, npy_intp *count,
                         const double *out[QD_ARGUMENT_COUNT]) {
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    PyObject *item = PyTuple_GetItem(tuple, i);
    if (!item) {
      return -1;
    }
    out[i] = NULL;
    if (item == Py_None) {
      continue;
    }
    PyArrayObject *array = (PyArrayObject *)item;
    if (!PyArray_Check(item) || PyArray_TYPE(array) != NPY_DOUBLE || PyArray_NDIM(array) != 2 ||
        !PyArray_ISCARRAY_RO(array) || (*count >= 0 && PyArray_DIM(array, 0) != *count) ||
        PyArray_DIM(array, 1) != qd_argument_size(self->call.model->model, i)) {
      PyErr_Format(PyExc_ValueError, "%s: expected rows of doubles", qd_argument_name(i));
      return -1;
    }
    *count = PyArray_DIM(array, 0);
    out[i] = PyArray_DATA(array);
  }
  return 0;
}

static PyObject *checked(PyObject *array, const char *method) {
  if (array && array != Py_None &&
      numbers_first_bad(numbers_of(array), PyArray_SIZE((PyArrayObject *)array)) >= 0) {
    PyErr_Format(PyExc_OverflowError, "%s: numbers beyond the range of a double", method);
    Py_CLEAR(array);
  }
  return array;
}

/* A tuple of all arrays, checked; NULL with an exception. */
static PyObject *arrays_tuple(PyObject *arrays[QD_ARGUMENT_COUNT], const char *method) {
  PyObject *out = PyTuple_New(QD_ARGUMENT_COUNT);
  for (int i = 0; out && i < QD_ARGUMENT_COUNT; i++) {
    PyObject *array = checked(Py_NewRef(arrays[i]), method);
    if (array) {
      PyTuple_SET_ITEM(out, i, array);
    } else {
      Py_CLEAR(out);
    }
  }
  return out;
}

static PyObject *differential_jvp(PyObject *object, PyObject *tangents) {
  differential_object *self = (differential_object *)object;
  const double *numbers[QD_ARGUMENT_COUNT];
  npy_intp count = -1;
  if (!PyTuple_Check(tangents)) {
    PyErr_SetString(PyExc_TypeError, "tangents: expected a tuple");
    return NULL;
  }
  if (tangents_read(self, tangents, &count, numbers) < 0) {
    return NULL;
  }
  PyObject *out = array_new_matrix(count < 0 ? 1 : (int)count, self->call.model->nv);
  PyObject *v_out = array_new_matrix(count < 0 ? 1 : (int)count, self->call.model->nv);
  if (out && v_out) {
    OBJECT_LOCK(object);
    qd_jvp(self->call.model->model, self->call.entry->workspace, &self->call.settings,
           &self->call.input, &self->call.result, count < 0 ? 1 : (int)count, numbers,
           numbers_of(out), numbers_of(v_out));
    OBJECT_UNLOCK();
  }
  out = checked(out, "jvp");
  v_out = checked(v_out, "jvp");
  if (out && v_out && self->call.input.v) {
    return Py_BuildValue("NN", out, v_out);
  }
  if (!v_out) {
    Py_CLEAR(out);
  }
  Py_XDECREF(v_out);
  return out;
}

/* Rows (count, nv), or NULL for None. */
static int cotangent_read(const differential_object *self, PyObject *object, npy_intp *count,
                          PyArrayObject **rows) {
  npy_intp shape[2] = {*count, self->call.model->nv};
  *rows = NULL;
  if (object == Py_None) {
    return 0;
  }
  *rows = array_read(object, "cotangent", 2, shape);
  if (*rows) {
    *count = PyArray_DIM(*rows, 0);
  }
  return *rows ? 0 : -1;
}

static PyObject *differential_vjp(PyObject *object, PyObject *args) {
  differential_object *self = (differential_object *)object;
  PyObject *cotangent, *v_cotangent = Py_None, *arrays[QD_ARGUMENT_COUNT];
  double *numbers[QD_ARGUMENT_COUNT];
  int wanted;
  if (!PyArg_ParseTuple(args, "Oi|O:vjp", &cotangent, &wanted, &v_cotangent)) {
    return NULL;
  }
  npy_intp count = -1;
  PyArrayObject *rows, *v_rows = NULL;
  if (cotangent_read(self, cotangent, &count, &rows) < 0 ||
      cotangent_read(self, v_cotangent, &count, &v_rows) < 0) {
    Py_XDECREF(rows);
    return NULL;
  }
  count = count < 0 ? self->call.model->nv : count;
  PyObject *out = NULL;
  if (gradients_create(&self->call, wanted, count, arrays, numbers) == 0) {
    OBJECT_LOCK(object);
    qd_vjp(self->call.model->model, self->call.entry->workspace, &self->call.settings,
           &self->call.input, &self->call.result, (int)count, rows ? PyArray_DATA(rows) : NULL,
           v_rows ? PyArray_DATA(v_rows) : NULL, numbers);
    OBJECT_UNLOCK();
    out = arrays_tuple(arrays, "vjp");
  }
  arrays_release(arrays);
  Py_XDECREF(rows);
  Py_XDECREF(v_rows);
  return out;
}

static PyObject *differential_jacobians(PyObject *object, PyObject *wanted_object) {
  differential_object *self = (differential_object *)object;
  PyObject *of_q[QD_ARGUMENT_COUNT], *of_v[QD_ARGUMENT_COUNT], *out = NULL;
  double *q_numbers[QD_ARGUMENT_COUNT], *v_numbers[QD_ARGUMENT_COUNT];
  int wanted;
  if (int_read(wanted_object, "wanted", &wanted) < 0) {
    return NULL;
  }
  int bad = gradients_create(&self->call, wanted, self->call.model->nv, of_q, q_numbers) < 0;
  bad |= gradients_create(&self->call, wanted, self->call.model->nv, of_v, v_numbers) < 0;
  if (!bad) {
    OBJECT_LOCK(object);
    qd_jacobians(self->call.model->model, self->call.entry->workspace, &self->call.settings,
                 &self->call.input, &self->call.result, q_numbers, v_numbers);
    OBJECT_UNLOCK();
    out = Py_BuildValue("NN", arrays_tuple(of_q, "jacobians"), arrays_tuple(of_v, "jacobians"));
  }
  arrays_release(of_q);
  arrays_release(of_v);
  return out;
}

static PyObject *differential_shape(PyObject *object, PyObject *argument) {
  const differential_object *self = (const differential_object *)object;
  npy_intp dims[3];
  int index = argument_find(argument);
  if (index < 0) {
    PyErr_Format(PyExc_ValueError, "no argument %R", argument);
    return NULL;
  }
  int ndim = argument_shape(self->call.model->model, index, dims);
  PyObject *out = PyTuple_New(ndim);
  for (int i = 0; out && i < ndim; i++) {
    PyTuple_SET_ITEM(out, i, PyLong_FromSsize_t(dims[i]));
  }
  return out;
}

static PyMemberDef differential_members[] = {
    {"step", T_OBJECT_EX, offsetof(differential_object, step), READONLY, "The Step itself."},
    {"model", T_OBJECT_EX, offsetof(differential_object, model), READONLY, "Its model."},
    {NULL, 0, 0, 0, NULL}};

static PyMethodDef differential_methods[] = {
    {"jvp", differential_jvp, METH_O,
     "jvp($self, tangents, /)\n--\n\n"
     "Rows of tangents (or None) by argument -> (count, nv), of the second-order step a pair."},
    {"vjp", differential_vjp, METH_VARARGS,
     "vjp($self, cotangent, wanted, v_cotangent=None, /)\n--\n\n"
     "Rows (count, nv) or None (unit vectors) -> gradients of the arguments whose bit is set."},
    {"jacobians", differential_jacobians, METH_O,
     "jacobians($self, wanted, /)\n--\n\n"
     "Those of q_next and of v_next by the arguments whose bit is set."},
    {"shape", differential_shape, METH_O,
     "shape($self, argument, /)\n--\n\nShape of an argument of this name."},
    {NULL, NULL, 0, NULL}};

static PyType_Slot differential_slots[] = {
    {Py_tp_doc, (void *)"A step that keeps its factorisation."},
    {Py_tp_dealloc, differential_dealloc},
    {Py_tp_members, differential_members},
    {Py_tp_methods, differential_methods},
    {0, NULL}};

PyType_Spec differential_type_spec = {
    "qdsim._core.StepDifferential", sizeof(differential_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    differential_slots};
