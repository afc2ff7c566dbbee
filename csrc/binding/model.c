/* _core.Model: owns a qd_model and the workspaces that run on it. */
#include "binding/model.h"

#include <math.h>

/* ---------------------------------------------------------------- life */

static int model_init(PyObject *object, PyObject *args, PyObject *kwargs) {
  static char *names[] = {"spec", NULL};
  model_object *self = (model_object *)object;
  PyObject *spec;
  core_state *state = core_state_of_type(Py_TYPE(object));
  if (!state ||
      !PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Model", names, &PyDict_Type, &spec)) {
    return -1;
  }
  int result = -1;
  OBJECT_LOCK(object);
  if (self->model) {
    PyErr_SetString(PyExc_RuntimeError, "Model: already initialised; a model never changes");
  } else {
    result = model_fill(self, spec);
  }
  if (result == 0) {
    self->serial = atomic_fetch_add(&state->next_serial, 1);
    atomic_store(&self->is_ready, 1);
  }
  OBJECT_UNLOCK();
  return result;
}

static void model_dealloc(PyObject *object) {
  model_object *self = (model_object *)object;
  PyTypeObject *type = Py_TYPE(object);
  workspace_pool_clear(&self->pool);
  qd_batch_destroy(atomic_load(&self->batch));
  qd_model_destroy(self->model);
  PyMem_Free(self->joint_type);
  type->tp_free(object);
  Py_DECREF(type);
}

static model_object *model_ready(PyObject *object) {
  model_object *self = (model_object *)object;
  if (atomic_load_explicit(&self->is_ready, memory_order_acquire)) {
    return self;
  }
  PyErr_SetString(PyExc_RuntimeError, "model: Model.__init__ has not run");
  return NULL;
}

model_object *model_of(const core_state *state, PyObject *argument) {
  if (PyObject_TypeCheck(argument, state->model_type)) {
    return model_ready(argument);
  }
  PyErr_Format(PyExc_TypeError, "model: expected a qdsim.Model, got %s",
               Py_TYPE(argument)->tp_name);
  return NULL;
}

static workspace_entry *model_acquire(model_object *self) {
  workspace_entry *entry = workspace_pool_acquire(&self->pool, self->model);
  if (!entry) {
    PyErr_NoMemory();
  }
  return entry;
}

/* ---------------------------------------------------------------- configurations */

/* "joint 'elbow'" if the Python model has names, "joint 3" otherwise. */
static PyObject *joint_label(model_object *self, int joint) {
  PyObject *names = PyObject_GetAttrString((PyObject *)self, "joint_names");
  PyObject *name = names ? PySequence_GetItem(names, joint) : NULL;
  PyObject *label = name ? PyUnicode_FromFormat("joint %R", name) : NULL;
  Py_XDECREF(name);
  Py_XDECREF(names);
  if (!label) {
    PyErr_Clear();
    label = PyUnicode_FromFormat("joint %d", joint);
  }
  return label;
}

static void quaternion_raise(model_object *self, const char *name, int joint, const double *q) {
  if (joint < 0 || joint >= self->joint_count) {
    PyErr_Format(PyExc_ValueError, "%s: holds a quaternion that is not of unit length", name);
    return;
  }
  const double *w = q + self->joint_q[joint] + (self->joint_type[joint] == QD_FREE ? 3 : 0);
  double length = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + w[3] * w[3]);
  char digits[32];
  PyOS_snprintf(digits, sizeof digits, "%.4g", length);
  PyObject *label = joint_label(self, joint);
  if (!label) {
    return;
  }
  PyErr_Format(PyExc_ValueError,
               "%s: the quaternion of %U has length %s; expected 1 to within 1e-3", name, label,
               digits);
  Py_DECREF(label);
}

int model_read_q(model_object *self, PyObject *argument, const char *name, double *q) {
  if (array_copy_vector(argument, name, self->nq, q) < 0) {
    return -1;
  }
  int joint = -1;
  qd_status status = qd_normalize(self->model, q, q, &joint);
  if (status == QD_OK) {
    return 0;
  }
  quaternion_raise(self, name, joint, q);
  return -1;
}

/* Returns out if its numbers are finite; finite arguments may be too large for a finite result. */
static PyObject *without_overflow(PyObject *out, const char *caller) {
  PyArrayObject *array = (PyArrayObject *)out;
  if (!out || numbers_first_bad(PyArray_DATA(array), PyArray_SIZE(array)) < 0) {
    return out;
  }
  Py_DECREF(out);
  return status_raise(NULL, caller, QD_NOT_FINITE, NULL, NULL);
}

static PyObject *model_integrate(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                                 PyObject *kwnames) {
  static const char *const names[] = {"q", "v"};
  PyObject *in[2];
  model_object *self = model_ready(object);
  if (!self || arguments_parse("integrate", names, 2, 2, 2, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  workspace_entry *entry = model_acquire(self);
  PyObject *out = NULL;
  if (entry && model_read_q(self, in[0], "q", entry->q) == 0 &&
      array_copy_vector(in[1], "v", self->nv, entry->tau) == 0 &&
      (out = array_new_vector(self->nq))) {
    qd_integrate(self->model, entry->q, entry->tau, PyArray_DATA((PyArrayObject *)out));
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  return without_overflow(out, "integrate");
}

static PyObject *model_difference(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames) {
  static const char *const names[] = {"q1", "q0"};
  PyObject *in[2];
  model_object *self = model_ready(object);
  if (!self || arguments_parse("difference", names, 2, 2, 2, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  workspace_entry *entry = model_acquire(self);
  PyObject *out = NULL;
  if (entry && model_read_q(self, in[0], "q1", entry->q_next) == 0 &&
      model_read_q(self, in[1], "q0", entry->q) == 0 && (out = array_new_vector(self->nv))) {
    qd_difference(self->model, entry->q_next, entry->q, PyArray_DATA((PyArrayObject *)out));
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  return without_overflow(out, "difference");
}

static PyObject *model_normalize(PyObject *object, PyObject *q) {
  model_object *self = model_ready(object);
  PyObject *out = self ? array_new_vector(self->nq) : NULL;
  if (out && model_read_q(self, q, "q", PyArray_DATA((PyArrayObject *)out)) < 0) {
    Py_CLEAR(out);
  }
  return out;
}

/* ---------------------------------------------------------------- queries */

static PyObject *model_body_poses(PyObject *object, PyObject *q) {
  model_object *self = model_ready(object);
  if (!self) {
    return NULL;
  }
  npy_intp shape[3] = {self->body_count, 3, 3};
  PyObject *pos = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
  PyObject *rot = PyArray_SimpleNew(3, shape, NPY_DOUBLE);
  workspace_entry *entry = pos && rot ? model_acquire(self) : NULL;
  PyObject *out = NULL;
  if (entry && model_read_q(self, q, "q", entry->q) == 0) {
    qd_body_poses(self->model, entry->workspace, entry->q, PyArray_DATA((PyArrayObject *)pos),
                  PyArray_DATA((PyArrayObject *)rot));
    pos = without_overflow(pos, "body_poses");
    out = pos ? PyTuple_Pack(2, pos, rot) : NULL;
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  Py_XDECREF(pos);
  Py_XDECREF(rot);
  return out;
}

static int body_index_read(const model_object *self, PyObject *argument) {
  long body = PyLong_AsLong(argument);
  if (body == -1 && PyErr_Occurred()) {
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
      PyErr_Clear();
    } else {
      return -1;
    }
  }
  if (body >= 0 && body < self->body_count) {
    return (int)body;
  }
  PyErr_Format(PyExc_IndexError, "body_index: expected 0 to %d, got %S", self->body_count - 1,
               argument);
  return -1;
}

static PyObject *model_point_jacobian(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                                      PyObject *kwnames) {
  static const char *const names[] = {"q", "body_index", "point"};
  PyObject *in[3];
  double point[3];
  model_object *self = model_ready(object);
  if (!self ||
      arguments_parse("point_jacobian", names, 3, 3, 3, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  int body = body_index_read(self, in[1]);
  if (body < 0 || array_copy_vector(in[2], "point", 3, point) < 0) {
    return NULL;
  }
  workspace_entry *entry = model_acquire(self);
  PyObject *out = NULL;
  if (entry && model_read_q(self, in[0], "q", entry->q) == 0 &&
      (out = array_new_matrix(6, self->nv))) {
    qd_point_jacobian(self->model, entry->workspace, entry->q, body, point,
                      PyArray_DATA((PyArrayObject *)out));
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  return without_overflow(out, "point_jacobian");
}

static PyObject *model_mass_matrix(PyObject *object, PyObject *q) {
  model_object *self = model_ready(object);
  workspace_entry *entry = self ? model_acquire(self) : NULL;
  PyObject *out = NULL;
  if (entry && model_read_q(self, q, "q", entry->q) == 0 &&
      (out = array_new_matrix(self->nv, self->nv))) {
    qd_mass_matrix(self->model, entry->workspace, entry->q, PyArray_DATA((PyArrayObject *)out));
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  return without_overflow(out, "mass_matrix");
}

/* Tendon lengths for rows q (n, nq), and Jacobians or moments if wanted. */
static int tendons_fill(model_object *self, workspace_entry *entry, const double *q, npy_intp rows,
                        double *lengths, double *matrices, int moments) {
  for (npy_intp i = 0; i < rows; i++) {
    int joint;
    if (qd_normalize(self->model, q + i * self->nq, entry->q, &joint) != QD_OK) {
      PyErr_Format(PyExc_ValueError,
                   "q: row %zd is not finite, or has a quaternion not of unit length", i);
      return -1;
    }
    double *matrix = matrices ? matrices + i * self->tendon_count * self->nv : NULL;
    qd_tendon_lengths(self->model, entry->workspace, entry->q, lengths + i * self->tendon_count,
                      moments ? NULL : matrix, moments ? matrix : NULL);
  }
  return 0;
}

static PyObject *model_tendons(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                               PyObject *kwnames) {
  static const char *const names[] = {"q", "jacobians", "moments"};
  PyObject *in[3];
  model_object *self = model_ready(object);
  if (!self || arguments_parse("_tendons", names, 3, 3, 3, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  const int moments = PyObject_IsTrue(in[2]);
  const int wanted = moments < 0 ? -1 : PyObject_IsTrue(in[1]) | moments;
  npy_intp shape[3] = {-1, self->nq, self->nv};
  PyArrayObject *q = wanted < 0 ? NULL : array_read(in[0], "q", 2, shape);
  if (!q) {
    return NULL;
  }
  shape[0] = PyArray_DIM(q, 0);
  shape[1] = self->tendon_count;
  PyObject *lengths = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
  PyObject *jacobians = wanted ? PyArray_SimpleNew(3, shape, NPY_DOUBLE) : Py_NewRef(Py_None);
  workspace_entry *entry = lengths && jacobians ? model_acquire(self) : NULL;
  PyObject *out = NULL;
  if (entry &&
      tendons_fill(self, entry, PyArray_DATA(q), shape[0], PyArray_DATA((PyArrayObject *)lengths),
                   wanted ? PyArray_DATA((PyArrayObject *)jacobians) : NULL, moments) == 0) {
    lengths = without_overflow(lengths, "tendon_lengths");
    out = lengths ? PyTuple_Pack(2, lengths, jacobians) : NULL;
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  Py_XDECREF(lengths);
  Py_XDECREF(jacobians);
  Py_DECREF(q);
  return out;
}

/* Reads q and v into an entry, and a into its tau if wanted. NULL with an exception. */
static workspace_entry *state_read(model_object *self, const char *name, int with_a,
                                   PyObject *const *args, Py_ssize_t arg_count, PyObject *kwnames) {
  static const char *const names[] = {"q", "v", "a"};
  const int count = with_a ? 3 : 2;
  PyObject *in[3];
  if (!self ||
      arguments_parse(name, names, count, count, count, args, arg_count, kwnames, in) < 0) {
    return NULL;
  }
  workspace_entry *entry = model_acquire(self);
  if (entry && (model_read_q(self, in[0], "q", entry->q) < 0 ||
                array_copy_vector(in[1], "v", self->nv, entry->v) < 0 ||
                (with_a && array_copy_vector(in[2], "a", self->nv, entry->tau) < 0))) {
    workspace_pool_release(&self->pool, entry);
    entry = NULL;
  }
  return entry;
}

static PyObject *model_bias_force(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames) {
  model_object *self = model_ready(object);
  workspace_entry *entry = state_read(self, "bias_force", 0, args, arg_count, kwnames);
  if (!entry) {
    return NULL;
  }
  PyObject *out = array_new_vector(self->nv);
  if (out) {
    qd_bias_force(self->model, entry->workspace, entry->q, entry->v,
                  PyArray_DATA((PyArrayObject *)out));
  }
  workspace_pool_release(&self->pool, entry);
  return without_overflow(out, "bias_force");
}

static PyObject *model_inertial_wrenches(PyObject *object, PyObject *const *args,
                                         Py_ssize_t arg_count, PyObject *kwnames) {
  model_object *self = model_ready(object);
  workspace_entry *entry = state_read(self, "inertial_wrenches", 1, args, arg_count, kwnames);
  if (!entry) {
    return NULL;
  }
  npy_intp shape[2] = {self->body_count, 6};
  PyObject *out = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
  if (out) {
    qd_inertial_wrenches(self->model, entry->workspace, entry->q, entry->v, entry->tau,
                         PyArray_DATA((PyArrayObject *)out));
  }
  workspace_pool_release(&self->pool, entry);
  return without_overflow(out, "inertial_wrenches");
}

static PyObject *model_energy(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                              PyObject *kwnames) {
  model_object *self = model_ready(object);
  workspace_entry *entry = state_read(self, "energy", 0, args, arg_count, kwnames);
  double energy[2];
  if (!entry) {
    return NULL;
  }
  qd_energy(self->model, entry->workspace, entry->q, entry->v, energy, energy + 1);
  workspace_pool_release(&self->pool, entry);
  if (numbers_first_bad(energy, 2) >= 0) {
    return status_raise(NULL, "energy", QD_NOT_FINITE, NULL, NULL);
  }
  return Py_BuildValue("dd", energy[0], energy[1]);
}

static int contacts_overflow(const qd_contact *contacts, int count) {
  int overflow = 0;
  for (int i = 0; i < count && !overflow; ++i) {
    overflow = numbers_first_bad(&contacts[i].dist, 1) >= 0 ||
               numbers_first_bad(contacts[i].pos, 3) >= 0 ||
               numbers_first_bad(contacts[i].frame, 9) >= 0;
  }
  return overflow;
}

static PyObject *model_contacts(PyObject *object, PyObject *const *args, Py_ssize_t arg_count,
                                PyObject *kwnames) {
  static const char *const names[] = {"q", "margin"};
  PyObject *in[2];
  double margin;
  core_state *state = core_state_of_type(Py_TYPE(object));
  model_object *self = state ? model_ready(object) : NULL;
  if (!self || arguments_parse("contacts", names, 2, 2, 2, args, arg_count, kwnames, in) < 0 ||
      number_read(in[1], "margin", &margin) < 0) {
    return NULL;
  }
  workspace_entry *entry = model_acquire(self);
  PyObject *out = NULL;
  if (entry && model_read_q(self, in[0], "q", entry->q) == 0) {
    const qd_contact *contacts = NULL;
    int count = 0;
    qd_status status;
    Py_BEGIN_ALLOW_THREADS;
    do {
      status = qd_collide(self->model, entry->workspace, entry->q, margin, &contacts, &count);
    } while (status == QD_OUT_OF_CAPACITY &&
             (status = qd_workspace_reserve(self->model, entry->workspace, count)) == QD_OK);
    Py_END_ALLOW_THREADS;
    if (status == QD_OK && contacts_overflow(contacts, count)) {
      status = QD_NOT_FINITE;
    }
    solver_info none = {.derivative_exact = -1};
    out = status == QD_OK ? contact_array_create(state, contacts, count)
                          : status_raise(state, "contacts", status, &none, NULL);
  }
  if (entry) {
    workspace_pool_release(&self->pool, entry);
  }
  return out;
}

/* ---------------------------------------------------------------- type */

static PyObject *model_planar_normal(PyObject *object, void *closure) {
  (void)closure;
  const model_object *self = (model_object *)object;
  if (!self->is_planar) {
    Py_RETURN_NONE;
  }
  return Py_BuildValue("(ddd)", self->planar_normal[0], self->planar_normal[1],
                       self->planar_normal[2]);
}

static PyObject *model_body_invweight(PyObject *object, void *closure) {
  (void)closure;
  const model_object *self = (model_object *)object;
  npy_intp count = self->body_count;
  PyObject *array = PyArray_SimpleNew(1, &count, NPY_DOUBLE);
  if (array) {
    memcpy(PyArray_DATA((PyArrayObject *)array), qd_model_body_invweights(self->model),
           (size_t)count * sizeof(double));
  }
  return array;
}

#define COUNT_MEMBER(field, doc) {#field, T_INT, offsetof(model_object, field), READONLY, doc}

static PyMemberDef model_members[] = {
    COUNT_MEMBER(nq, "Length of a configuration q."),
    COUNT_MEMBER(nv, "Length of a displacement v."),
    COUNT_MEMBER(nu, "Length of a command u."),
    COUNT_MEMBER(body_count, "Bodies, the world included."),
    COUNT_MEMBER(joint_count, "Joints."),
    COUNT_MEMBER(geom_count, "Geometries."),
    COUNT_MEMBER(pair_count, "Pairs of geometries that may touch."),
    COUNT_MEMBER(constraint_count, "Bilateral constraints."),
    COUNT_MEMBER(tendon_count, "Tendons."),
    COUNT_MEMBER(mocap_count, "Bodies whose pose is an input of a step."),
    COUNT_MEMBER(soft_pair_count, "Pairs that press by pressure fields."),
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef model_getset[] = {
    {"planar_normal", model_planar_normal, NULL,
     "Unit normal of the plane in which every joint moves, or None.", NULL},
    {"body_invweight", model_body_invweight, NULL,
     "(body_count) inverse weights, 1/kg: acceleration of each body per unit of force at its "
     "centre of\n"
     "mass, averaged over directions: MuJoCo's body_invweight0 of translations, see Body.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

#define FAST_METHOD(name, function, doc)                                                           \
  {name, METHOD_CAST(function), METH_FASTCALL | METH_KEYWORDS, doc}

static PyMethodDef model_methods[] = {
    FAST_METHOD("integrate", model_integrate,
                "integrate($self, q, v)\n"
                "--\n"
                "\n"
                "q [+] v: the configuration (nq) after the displacement v (nv) from q (nq).\n"
                "\n"
                "Displacements of free joints are [translation; rotation vector] in world axes, "
                "those of ball\n"
                "joints a rotation vector in the axes before the joint (formulation 1)."),
    FAST_METHOD(
        "difference", model_difference,
        "difference($self, q1, q0)\n--\n\n"
        "q1 [-] q0: the displacement (nv) with q1 = integrate(q0, v); rotations at most pi."),
    {"normalize", model_normalize, METH_O,
     "normalize($self, q, /)\n--\n\n"
     "Copy of q (nq) with unit quaternions; ValueError if one is off by more than 1e-3."},
    {"body_poses", model_body_poses, METH_O,
     "body_poses($self, q, /)\n--\n\n"
     "Positions (body_count, 3) and rotation matrices (body_count, 3, 3) of the bodies, world."},
    FAST_METHOD("point_jacobian", model_point_jacobian,
                "point_jacobian($self, q, body_index, point)\n--\n\n"
                "Jacobian (6, nv) of a point (3, body coordinates): linear then angular velocity,\n"
                "world axes, with respect to tangent coordinates."),
    {"mass_matrix", model_mass_matrix, METH_O,
     "mass_matrix($self, q, /)\n"
     "--\n"
     "\n"
     "Joint-space mass matrix (nv, nv) of the bodies in tangent coordinates, without the joints'\n"
     "armature (which would add to its diagonal)."},
    FAST_METHOD("_tendons", model_tendons,
                "_tendons($self, q, jacobians, moments)\n--\n\n"
                "Lengths (n, tendon_count) at rows of q (n, nq), and their Jacobians (n,\n"
                "tendon_count, nv) or None."),
    FAST_METHOD("bias_force", model_bias_force,
                "bias_force($self, q, v)\n"
                "--\n"
                "\n"
                "Generalised force (nv) of Coriolis, centrifugal and gyroscopic effects at the "
                "velocity v (nv):\n"
                "(mass_matrix(q) + diag(armature)) dv/dt + bias_force(q, v) is the sum of the "
                "applied forces.\n"
                "Armature does not contribute to it."),
    FAST_METHOD("inertial_wrenches", model_inertial_wrenches,
                "inertial_wrenches($self, q, v, a)\n"
                "--\n"
                "\n"
                "Per body (body_count, 6) the sum of all forces N, and of moments Nm about its "
                "centre of mass, world\n"
                "axes, for a motion with velocity v (nv) and acceleration a (nv) (d'Alembert)."),
    FAST_METHOD(
        "energy", model_energy,
        "energy($self, q, v)\n--\n\n"
        "Kinetic energy at the velocity v (nv), armature included, and potential energy of\n"
        "gravity (zero at the world's origin) and joint springs, J."),
    FAST_METHOD("contacts", model_contacts,
                "contacts($self, q, margin)\n--\n\n"
                "Structured array of the contacts with dist <= max(margin, the pair's own), m."),
    {NULL, NULL, 0, NULL}};

static PyType_Slot model_slots[] = {
    {Py_tp_doc,
     (void *)"Model(spec)\n--\n\n"
             "The immutable model of the C core; spec holds the arrays of qd_model_spec."},
    {Py_tp_init, model_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, model_dealloc},
    {Py_tp_members, model_members},
    {Py_tp_getset, model_getset},
    {Py_tp_methods, model_methods},
    {0, NULL}};

PyType_Spec model_type_spec = {"qdsim._core.Model", sizeof(model_object), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
                               model_slots};
