/* Derivatives of MuJoCo's step: its arrays are read in place through its own Python objects. */
#include "binding/core.h"

#include <stddef.h>

/* An attribute, and where its address is stored. */
typedef struct field {
  const char *name;
  size_t offset; /* in qd_mj */
  int type;      /* NPY_DOUBLE, NPY_INT32 or NPY_BOOL */
} field;

#define FIELD(name, type) {#name, offsetof(qd_mj, name), type}

static const field MODEL_FIELDS[] = {
    FIELD(body_parentid, NPY_INT32),
    FIELD(body_rootid, NPY_INT32),
    FIELD(body_dofnum, NPY_INT32),
    FIELD(body_dofadr, NPY_INT32),
    FIELD(jnt_type, NPY_INT32),
    FIELD(jnt_qposadr, NPY_INT32),
    FIELD(jnt_dofadr, NPY_INT32),
    FIELD(jnt_bodyid, NPY_INT32),
    FIELD(dof_bodyid, NPY_INT32),
    FIELD(dof_jntid, NPY_INT32),
    FIELD(dof_parentid, NPY_INT32),
    FIELD(geom_type, NPY_INT32),
    FIELD(geom_bodyid, NPY_INT32),
    FIELD(geom_dataid, NPY_INT32),
    FIELD(site_bodyid, NPY_INT32),
    FIELD(M_rownnz, NPY_INT32),
    FIELD(M_rowadr, NPY_INT32),
    FIELD(M_colind, NPY_INT32),
    FIELD(ten_J_rownnz, NPY_INT32),
    FIELD(ten_J_rowadr, NPY_INT32),
    FIELD(ten_J_colind, NPY_INT32),
    FIELD(tendon_adr, NPY_INT32),
    FIELD(tendon_num, NPY_INT32),
    FIELD(wrap_type, NPY_INT32),
    FIELD(wrap_objid, NPY_INT32),
    FIELD(actuator_trntype, NPY_INT32),
    FIELD(actuator_dyntype, NPY_INT32),
    FIELD(actuator_gaintype, NPY_INT32),
    FIELD(actuator_biastype, NPY_INT32),
    FIELD(actuator_trnid, NPY_INT32),
    FIELD(actuator_actadr, NPY_INT32),
    FIELD(actuator_group, NPY_INT32),
    FIELD(eq_type, NPY_INT32),
    FIELD(eq_obj1id, NPY_INT32),
    FIELD(eq_obj2id, NPY_INT32),
    FIELD(eq_objtype, NPY_INT32),
    FIELD(body_mass, NPY_DOUBLE),
    FIELD(body_gravcomp, NPY_DOUBLE),
    FIELD(jnt_stiffness, NPY_DOUBLE),
    FIELD(dof_damping, NPY_DOUBLE),
    FIELD(qpos0, NPY_DOUBLE),
    FIELD(qpos_spring, NPY_DOUBLE),
    FIELD(geom_size, NPY_DOUBLE),
    FIELD(wrap_prm, NPY_DOUBLE),
    FIELD(tendon_stiffness, NPY_DOUBLE),
    FIELD(tendon_damping, NPY_DOUBLE),
    FIELD(tendon_lengthspring, NPY_DOUBLE),
    FIELD(tendon_length0, NPY_DOUBLE),
    FIELD(actuator_dynprm, NPY_DOUBLE),
    FIELD(actuator_gainprm, NPY_DOUBLE),
    FIELD(actuator_biasprm, NPY_DOUBLE),
    FIELD(actuator_actrange, NPY_DOUBLE),
    FIELD(actuator_forcerange, NPY_DOUBLE),
    FIELD(actuator_ctrlrange, NPY_DOUBLE),
    FIELD(actuator_gear, NPY_DOUBLE),
    FIELD(jnt_actfrcrange, NPY_DOUBLE),
    FIELD(eq_data, NPY_DOUBLE),
    FIELD(actuator_actlimited, NPY_BOOL),
    FIELD(actuator_actearly, NPY_BOOL),
    FIELD(actuator_forcelimited, NPY_BOOL),
    FIELD(actuator_ctrllimited, NPY_BOOL),
    FIELD(jnt_actfrclimited, NPY_BOOL),
};

/* These keep their addresses as long as the MjData lives. */
static const field DATA_FIELDS[] = {
    FIELD(qpos, NPY_DOUBLE),
    FIELD(qvel, NPY_DOUBLE),
    FIELD(act, NPY_DOUBLE),
    FIELD(ctrl, NPY_DOUBLE),
    FIELD(act_dot, NPY_DOUBLE),
    FIELD(xfrc_applied, NPY_DOUBLE),
    FIELD(qacc, NPY_DOUBLE),
    FIELD(xpos, NPY_DOUBLE),
    FIELD(xquat, NPY_DOUBLE),
    FIELD(xmat, NPY_DOUBLE),
    FIELD(xipos, NPY_DOUBLE),
    FIELD(subtree_com, NPY_DOUBLE),
    FIELD(cdof, NPY_DOUBLE),
    FIELD(cinert, NPY_DOUBLE),
    FIELD(geom_xpos, NPY_DOUBLE),
    FIELD(geom_xmat, NPY_DOUBLE),
    FIELD(site_xpos, NPY_DOUBLE),
    FIELD(site_xmat, NPY_DOUBLE),
    FIELD(ten_J, NPY_DOUBLE),
    FIELD(ten_length, NPY_DOUBLE),
    FIELD(actuator_length, NPY_DOUBLE),
    FIELD(actuator_velocity, NPY_DOUBLE),
    FIELD(actuator_force, NPY_DOUBLE),
    FIELD(qfrc_actuator, NPY_DOUBLE),
    FIELD(qfrc_smooth, NPY_DOUBLE),
    FIELD(M, NPY_DOUBLE),
};

/* These are in the arena, and move with every mj_forward. MuJoCo allocates them one after the other
 * in a fixed order; the last three exist for sparse Jacobians only. */
enum { ARENA_FIELD_COUNT = 12, DENSE_FIELD_COUNT = 9 };
static const field ARENA_FIELDS[ARENA_FIELD_COUNT] = {
    FIELD(efc_type, NPY_INT32),     FIELD(efc_id, NPY_INT32),
    FIELD(efc_J, NPY_DOUBLE),       FIELD(efc_pos, NPY_DOUBLE),
    FIELD(efc_margin, NPY_DOUBLE),  FIELD(efc_frictionloss, NPY_DOUBLE),
    FIELD(efc_KBIP, NPY_DOUBLE),    FIELD(efc_R, NPY_DOUBLE),
    FIELD(efc_aref, NPY_DOUBLE),    FIELD(efc_J_rownnz, NPY_INT32),
    FIELD(efc_J_rowadr, NPY_INT32), FIELD(efc_J_colind, NPY_INT32),
};

/* Fields of mjContact, with the stride of its array. */
enum { CONTACT_FIELD_COUNT = 8 };
static const field CONTACT_FIELDS[CONTACT_FIELD_COUNT] = {
    {"dist", offsetof(qd_mj, contact_dist), NPY_DOUBLE},
    {"pos", offsetof(qd_mj, contact_pos), NPY_DOUBLE},
    {"frame", offsetof(qd_mj, contact_frame), NPY_DOUBLE},
    {"friction", offsetof(qd_mj, contact_friction), NPY_DOUBLE},
    {"mu", offsetof(qd_mj, contact_mu), NPY_DOUBLE},
    {"dim", offsetof(qd_mj, contact_dim), NPY_INT32},
    {"geom", offsetof(qd_mj, contact_geom), NPY_INT32},
    {"efc_address", offsetof(qd_mj, contact_efc_address), NPY_INT32},
};

#define COUNT(table) ((int)(sizeof(table) / sizeof *(table)))

/* New reference to an array attribute of this type, or NULL with TypeError. */
static PyArrayObject *attribute_array(PyObject *owner, const char *name, int type) {
  PyObject *value = PyObject_GetAttrString(owner, name);
  if (value != NULL && (!PyArray_Check(value) || PyArray_TYPE((PyArrayObject *)value) != type)) {
    PyErr_Format(PyExc_TypeError, "%s: expected an array of MuJoCo's, got %s", name,
                 Py_TYPE(value)->tp_name);
    Py_CLEAR(value);
  }
  return (PyArrayObject *)value;
}

/* Stores the addresses of the owner's arrays; the owner keeps them alive. */
static int fields_read(PyObject *owner, const field *fields, int count, qd_mj *mj) {
  for (int i = 0; i < count; i++) {
    PyArrayObject *array = attribute_array(owner, fields[i].name, fields[i].type);
    if (array == NULL) {
      return -1;
    }
    if (!PyArray_IS_C_CONTIGUOUS(array)) {
      PyErr_Format(PyExc_ValueError, "%s: expected contiguous numbers", fields[i].name);
      Py_DECREF(array);
      return -1;
    }
    void *address = PyArray_DATA(array);
    memcpy((char *)mj + fields[i].offset, &address, sizeof address);
    Py_DECREF(array);
  }
  return 0;
}

static int integer_read(PyObject *owner, const char *name, int64_t *out) {
  PyObject *value = PyObject_GetAttrString(owner, name);
  if (value == NULL) {
    return -1;
  }
  *out = PyLong_AsLongLong(value);
  Py_DECREF(value);
  return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

static int columns_read(PyObject *owner, const char *name, int32_t *out) {
  PyArrayObject *array = attribute_array(owner, name, NPY_DOUBLE);
  if (array == NULL) {
    return -1;
  }
  *out = PyArray_NDIM(array) == 2 ? (int32_t)PyArray_DIM(array, 1) : 1;
  Py_DECREF(array);
  return 0;
}

/* ---------------------------------------------------------------- data of a model */

static const char PLAN_NAME[] = "qdsim._core.mujoco_plan";

typedef struct mujoco_plan {
  qd_mj mj; /* the model's part */
  qd_mj_meshes *meshes;
} mujoco_plan;

static void plan_destroy(PyObject *capsule) {
  mujoco_plan *plan = PyCapsule_GetPointer(capsule, PLAN_NAME);
  if (plan != NULL) {
    qd_mj_meshes_destroy(plan->meshes);
    PyMem_Free(plan);
  }
}

/* The options' arrays, which keep their addresses. */
static int gravity_read(PyObject *model, qd_mj *mj) {
  static const field gravity[] = {FIELD(gravity, NPY_DOUBLE)};
  PyObject *options = PyObject_GetAttrString(model, "opt");
  const int status = options != NULL ? fields_read(options, gravity, 1, mj) : -1;
  Py_XDECREF(options);
  return status;
}

static int model_read(PyObject *model, qd_mj *mj) {
  const struct {
    const char *name;
    int64_t *out;
  } sizes[] = {{"nq", &mj->nq},        {"nv", &mj->nv},           {"nu", &mj->nu},
               {"na", &mj->na},        {"nbody", &mj->nbody},     {"ngeom", &mj->ngeom},
               {"nu", &mj->nactuator}, {"ntendon", &mj->ntendon}, {"nwrap", &mj->nwrap}};
  for (int i = 0; i < COUNT(sizes); i++) {
    if (integer_read(model, sizes[i].name, sizes[i].out) < 0) {
      return -1;
    }
  }
  return fields_read(model, MODEL_FIELDS, COUNT(MODEL_FIELDS), mj) < 0 ||
                 gravity_read(model, mj) < 0 ||
                 columns_read(model, "actuator_dynprm", &mj->dynprm_count) < 0 ||
                 columns_read(model, "actuator_gainprm", &mj->gainprm_count) < 0 ||
                 columns_read(model, "actuator_biasprm", &mj->biasprm_count) < 0 ||
                 columns_read(model, "eq_data", &mj->eqdata_count) < 0
             ? -1
             : 0;
}

const char mujoco_plan_doc[] =
    "_mujoco_plan(model, vertex_count, vertex, face_count, face): a capsule.\n\n"
    "Addresses of a mujoco.MjModel's arrays, which must outlive it, and its convex meshes:\n"
    "vertices (n, 3) and triangles (k, 3) mesh after mesh, so many of each.";

PyObject *mujoco_plan_function(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *model, *given[4];
  if (!PyArg_ParseTuple(args, "OOOOO", &model, given, given + 1, given + 2, given + 3)) {
    return NULL;
  }
  const npy_intp one[1] = {-1}, three[2] = {-1, 3};
  PyArrayObject *vertex_count = array_read_int(given[0], "vertex_count", 1, one);
  PyArrayObject *vertex = vertex_count ? array_read(given[1], "vertex", 2, three) : NULL;
  PyArrayObject *face_count = vertex ? array_read_int(given[2], "face_count", 1, one) : NULL;
  PyArrayObject *face = face_count ? array_read_int(given[3], "face", 2, three) : NULL;
  mujoco_plan *plan = face ? PyMem_Calloc(1, sizeof *plan) : NULL;
  PyObject *capsule = NULL;
  if (plan != NULL && model_read(model, &plan->mj) == 0) {
    plan->meshes =
        qd_mj_meshes_create((int)PyArray_DIM(vertex_count, 0), PyArray_DATA(vertex_count),
                            PyArray_DATA(vertex), PyArray_DATA(face_count), PyArray_DATA(face));
    capsule = plan->meshes ? PyCapsule_New(plan, PLAN_NAME, plan_destroy) : PyErr_NoMemory();
  }
  if (capsule == NULL && plan != NULL) {
    qd_mj_meshes_destroy(plan->meshes);
    PyMem_Free(plan);
  }
  Py_XDECREF(vertex_count);
  Py_XDECREF(vertex);
  Py_XDECREF(face_count);
  Py_XDECREF(face);
  return capsule != NULL || PyErr_Occurred() ? capsule : PyErr_NoMemory();
}

/* ---------------------------------------------------------------- data of an MjData */

static const char VIEW_NAME[] = "qdsim._core.mujoco_view";

enum { SIZE_COUNT = 5 };

typedef struct mujoco_view {
  qd_mj mj;                                 /* the data's part, without the arena */
  int64_t size[SIZE_COUNT];                 /* sizes of some arrays, to recognise another model */
  int64_t row_count;                        /* of arena_field; 0: not filled */
  int field_count;                          /* likewise */
  int arena_ends[2];                        /* the first and the last field in memory */
  ptrdiff_t arena_field[ARENA_FIELD_COUNT]; /* bytes from the first */
  int contacts_known;                       /* 1: contact_field is filled */
  ptrdiff_t contact_field[CONTACT_FIELD_COUNT]; /* bytes from the first */
  _Atomic(qd_mj_workspace *) workspace;         /* of the last call, or NULL */
} mujoco_view;

static const char *const SIZED[SIZE_COUNT] = {"qpos", "cdof", "ctrl", "xpos", "geom_xpos"};

static void view_destroy(PyObject *capsule) {
  mujoco_view *view = PyCapsule_GetPointer(capsule, VIEW_NAME);
  if (view != NULL) {
    qd_mj_workspace_destroy(atomic_exchange(&view->workspace, NULL));
    PyMem_Free(view);
  }
}

const char mujoco_view_doc[] =
    "_mujoco_view(data): a capsule.\n\n"
    "Addresses of a mujoco.MjData's arrays, which must outlive it, and scratch memory.";

PyObject *mujoco_view_function(PyObject *Py_UNUSED(module), PyObject *data) {
  mujoco_view *view = PyMem_Calloc(1, sizeof *view);
  if (view == NULL) {
    return PyErr_NoMemory();
  }
  int status = fields_read(data, DATA_FIELDS, COUNT(DATA_FIELDS), &view->mj);
  for (int i = 0; status == 0 && i < SIZE_COUNT; i++) {
    PyArrayObject *array = attribute_array(data, SIZED[i], NPY_DOUBLE);
    status = array == NULL ? -1 : 0;
    view->size[i] = array == NULL ? 0 : PyArray_SIZE(array);
    Py_XDECREF(array);
  }
  PyObject *capsule = status == 0 ? PyCapsule_New(view, VIEW_NAME, view_destroy) : NULL;
  if (capsule == NULL) {
    PyMem_Free(view);
  }
  return capsule;
}

/* -1 with ValueError if the data belongs to a model with other sizes. */
static int data_fits(const mujoco_view *view, const qd_mj *mj) {
  const int64_t expected[SIZE_COUNT] = {mj->nq, 6 * mj->nv, mj->nu, 3 * mj->nbody, 3 * mj->ngeom};
  for (int i = 0; i < SIZE_COUNT; i++) {
    if (view->size[i] != expected[i]) {
      PyErr_Format(PyExc_ValueError,
                   "data: expected an MjData of this model, but %s has %lld numbers, not %lld",
                   SIZED[i], (long long)view->size[i], (long long)expected[i]);
      return -1;
    }
  }
  return 0;
}

const char mujoco_fits_doc[] =
    "_mujoco_fits(plan, view): None.\n\n"
    "ValueError where the data is of another model; MuJoCo itself does not look.";

PyObject *mujoco_fits_function(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *capsules[2];
  if (!PyArg_ParseTuple(args, "OO", capsules, capsules + 1)) {
    return NULL;
  }
  const mujoco_plan *plan = PyCapsule_GetPointer(capsules[0], PLAN_NAME);
  const mujoco_view *view = plan != NULL ? PyCapsule_GetPointer(capsules[1], VIEW_NAME) : NULL;
  return view != NULL && data_fits(view, &plan->mj) == 0 ? Py_NewRef(Py_None) : NULL;
}

/* ---------------------------------------------------------------- one state */

static int options_read(PyObject *model, qd_mj *mj) {
  PyObject *options = PyObject_GetAttrString(model, "opt");
  if (options == NULL) {
    return -1;
  }
  const struct {
    const char *name;
    int32_t *out;
  } flags[] = {{"integrator", &mj->integrator},
               {"disableflags", &mj->disableflags},
               {"disableactuator", &mj->disableactuator}};
  int status = 0;
  for (int i = 0; status == 0 && i < COUNT(flags); i++) {
    int64_t value = 0;
    status = integer_read(options, flags[i].name, &value);
    *flags[i].out = (int32_t)value;
  }
  PyObject *h = status == 0 ? PyObject_GetAttrString(options, "timestep") : NULL;
  mj->timestep = h != NULL ? PyFloat_AsDouble(h) : -1.0;
  Py_XDECREF(h);
  Py_DECREF(options);
  return status < 0 || PyErr_Occurred() ? -1 : 0;
}

/* Finds the fields of contacts: looked up with the first contacts, then by their offsets. */
static int contacts_read(PyObject *data, mujoco_view *view, qd_mj *mj) {
  PyObject *contacts = PyObject_GetAttrString(data, "contact");
  if (contacts == NULL) {
    return -1;
  }
  int status = 0;
  const char *first = NULL;
  mj->ncon = 1;
  for (int i = 0; status == 0 && mj->ncon > 0 && i < CONTACT_FIELD_COUNT; i++) {
    if (i == 0 || !view->contacts_known) {
      PyArrayObject *array =
          attribute_array(contacts, CONTACT_FIELDS[i].name, CONTACT_FIELDS[i].type);
      if (array == NULL) {
        status = -1;
        break;
      }
      const char *address = PyArray_DATA(array);
      first = i == 0 ? address : first;
      view->contact_field[i] = address - first;
      mj->contact_stride = PyArray_STRIDE(array, 0);
      mj->ncon = PyArray_DIM(array, 0);
      Py_DECREF(array);
    }
    const char *address = first + view->contact_field[i];
    memcpy((char *)mj + CONTACT_FIELDS[i].offset, &address, sizeof address);
  }
  view->contacts_known = view->contacts_known || (status == 0 && mj->ncon > 0);
  Py_DECREF(contacts);
  return status;
}

static void arena_note(mujoco_view *view, const qd_mj *mj, int count) {
  const char *address[ARENA_FIELD_COUNT];
  view->arena_ends[0] = view->arena_ends[1] = 0;
  for (int i = 0; i < count; i++) {
    memcpy(address + i, (const char *)mj + ARENA_FIELDS[i].offset, sizeof *address);
    view->arena_ends[0] = address[i] < address[view->arena_ends[0]] ? i : view->arena_ends[0];
    view->arena_ends[1] = address[i] > address[view->arena_ends[1]] ? i : view->arena_ends[1];
  }
  for (int i = 0; i < count; i++) {
    view->arena_field[i] = address[i] - address[view->arena_ends[0]];
  }
  view->row_count = mj->nefc;
  view->field_count = count;
}

/* With as many rows as before, and the same distance from the first array to the last, all have the
 * same sizes, so these two are enough: each costs as much as a body's derivatives. Returns 1 if
 * that is so. */
static int arena_recall(PyObject *data, const mujoco_view *view, int count, qd_mj *mj) {
  const char *end[2];
  if (view->row_count != mj->nefc || view->field_count != count) {
    return 0;
  }
  for (int k = 0; k < 2; k++) {
    const field *one = ARENA_FIELDS + view->arena_ends[k];
    if (fields_read(data, one, 1, mj) < 0) {
      return -1;
    }
    memcpy(end + k, (const char *)mj + one->offset, sizeof *end);
  }
  if (end[1] - end[0] != view->arena_field[view->arena_ends[1]]) {
    return 0;
  }
  for (int i = 0; i < count; i++) {
    const char *address = end[0] + view->arena_field[i];
    memcpy((char *)mj + ARENA_FIELDS[i].offset, &address, sizeof address);
  }
  return 1;
}

static int arena_read(PyObject *data, mujoco_view *view, int sparse, qd_mj *mj) {
  const int count = sparse ? ARENA_FIELD_COUNT : DENSE_FIELD_COUNT;
  const int recalled = arena_recall(data, view, count, mj);
  if (recalled != 0) {
    return recalled < 0 ? -1 : 0;
  }
  if (fields_read(data, ARENA_FIELDS, count, mj) < 0) {
    return -1;
  }
  arena_note(view, mj, count);
  return 0;
}

/* Fills the data's part of mj. */
static int data_read(PyObject *data, mujoco_view *view, int sparse, qd_mj *mj) {
  for (int i = 0; i < COUNT(DATA_FIELDS); i++) {
    const size_t at = DATA_FIELDS[i].offset;
    memcpy((char *)mj + at, (const char *)&view->mj + at, sizeof(void *));
  }
  if (integer_read(data, "nefc", &mj->nefc) < 0) {
    return -1;
  }
  if (mj->nefc > 0 && arena_read(data, view, sparse, mj) < 0) {
    return -1;
  }
  return contacts_read(data, view, mj);
}

static int changes_read(PyObject *object, qd_mj_change **out, int *count) {
  *out = NULL;
  *count = 0;
  if (object == Py_None) {
    return 0;
  }
  if (!PyDict_Check(object)) {
    PyErr_Format(PyExc_TypeError, "changes: expected a dict, got %s", Py_TYPE(object)->tp_name);
    return -1;
  }
  *out = PyMem_Calloc((size_t)PyDict_Size(object) + 1, sizeof **out);
  if (*out == NULL) {
    PyErr_NoMemory();
    return -1;
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value); ++*count) {
    int contact;
    if (int_read(key, "changes", &contact) < 0 ||
        array_copy_matrix(value, "changes", 7, 6, (*out)[*count].by_twist) < 0) {
      return -1;
    }
    (*out)[*count].contact = contact;
  }
  return 0;
}

/* Returns (A, B), or the indices of contacts whose derivatives are not known. */
static PyObject *linearize_run(const mujoco_plan *plan, mujoco_view *view, const qd_mj *mj,
                               int count, const qd_mj_change *changes) {
  const int state = (int)(2 * mj->nv + mj->na);
  PyObject *A = array_new_matrix(state, state);
  PyObject *B = A != NULL ? array_new_matrix(state, (int)mj->nu) : NULL;
  qd_mj_workspace *workspace = atomic_exchange(&view->workspace, NULL);
  workspace = workspace != NULL ? workspace : qd_mj_workspace_create();
  if (B == NULL || workspace == NULL) {
    Py_XDECREF(A);
    Py_XDECREF(B);
    qd_mj_workspace_destroy(workspace);
    return PyErr_NoMemory();
  }
  qd_mj_info info;
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status =
      qd_mj_linearize(mj, plan->meshes, count, changes, workspace, PyArray_DATA((PyArrayObject *)A),
                      PyArray_DATA((PyArrayObject *)B), &info);
  Py_END_ALLOW_THREADS;
  qd_mj_workspace_destroy(atomic_exchange(&view->workspace, workspace));
  PyObject *result = NULL;
  if (status == QD_OK) {
    result = PyTuple_Pack(2, A, B);
  } else if (info.unknown_count > 0) {
    const int listed =
        info.unknown_count < COUNT(info.unknown) ? info.unknown_count : COUNT(info.unknown);
    result = PyList_New(listed);
    for (int i = 0; result != NULL && i < listed; i++) {
      PyList_SET_ITEM(result, i, PyLong_FromLong(info.unknown[i]));
    }
  } else {
    PyErr_Format(PyExc_ArithmeticError,
                 "linearize: %s: the step's Newton matrix has no Cholesky factor",
                 qd_status_name(status));
  }
  Py_DECREF(A);
  Py_DECREF(B);
  return result;
}

const char mujoco_linearize_doc[] =
    "_mujoco_linearize(plan, view, model, data, sparse, changes): derivatives.\n\n"
    "(A, B) of a step from data after mj_forward, or a list of contacts whose change is not\n"
    "known. sparse: whether efc_J is; changes: of some contacts (7, 6), by their numbers, or None.";

PyObject *mujoco_linearize_function(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *capsules[2], *model, *data, *given;
  int sparse, count;
  if (!PyArg_ParseTuple(args, "OOOOpO", capsules, capsules + 1, &model, &data, &sparse, &given)) {
    return NULL;
  }
  const mujoco_plan *plan = PyCapsule_GetPointer(capsules[0], PLAN_NAME);
  mujoco_view *view = plan != NULL ? PyCapsule_GetPointer(capsules[1], VIEW_NAME) : NULL;
  if (view == NULL) {
    return NULL;
  }
  qd_mj mj = plan->mj;
  if (options_read(model, &mj) < 0 || data_read(data, view, sparse, &mj) < 0) {
    return NULL;
  }
  qd_mj_change *changes;
  PyObject *result = NULL;
  if (changes_read(given, &changes, &count) == 0) {
    result = linearize_run(plan, view, &mj, count, changes);
  }
  PyMem_Free(changes);
  return result;
}
