/* dict -> qd_model_spec -> qd_model. */
#include "binding/model.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum count_kind {
  COUNT_BODY,
  COUNT_JOINT,
  COUNT_ACTUATOR,
  COUNT_GEOM,
  COUNT_MESH,
  COUNT_MESH_VERTEX,
  COUNT_MESH_FACE,
  COUNT_CLOUD,
  COUNT_CLOUD_POINT,
  COUNT_HFIELD,
  COUNT_HFIELD_HEIGHT,
  COUNT_FIELD,
  COUNT_FIELD_VERTEX,
  COUNT_FIELD_INDEX,
  COUNT_PAIR,
  COUNT_CONSTRAINT,
  COUNT_TENDON,
  COUNT_TENDON_POINT,
  COUNT_MOCAP,
  COUNT_KIND_COUNT,
  COUNT_NQ = COUNT_KIND_COUNT,
  COUNT_THREE,
  COUNT_ONE
} count_kind;

typedef struct spec_field {
  const char *name;
  int type;         /* NPY_INT32 or NPY_DOUBLE */
  count_kind count; /* the size of the first axis; the first field of a kind determines it */
  int tail[2];      /* further axes, 0: none */
  size_t offset;    /* of the pointer in qd_model_spec */
} spec_field;

#define FIELD(name, type, count, tail0, tail1)                                                     \
  {#name, type, count, {tail0, tail1}, offsetof(qd_model_spec, name)}

/* joint_type comes before default_q, because it determines the length of q. */
static const spec_field spec_fields[] = {
    FIELD(body_parent, NPY_INT32, COUNT_BODY, 0, 0),
    FIELD(body_pos, NPY_DOUBLE, COUNT_BODY, 3, 0),
    FIELD(body_quat, NPY_DOUBLE, COUNT_BODY, 4, 0),
    FIELD(body_mass, NPY_DOUBLE, COUNT_BODY, 0, 0),
    FIELD(body_com, NPY_DOUBLE, COUNT_BODY, 3, 0),
    FIELD(body_inertia, NPY_DOUBLE, COUNT_BODY, 3, 3),
    FIELD(body_gravcomp, NPY_DOUBLE, COUNT_BODY, 0, 0),
    FIELD(body_invweight, NPY_DOUBLE, COUNT_BODY, 0, 0),
    FIELD(body_turn_invweight, NPY_DOUBLE, COUNT_BODY, 0, 0),
    FIELD(mocap_body, NPY_INT32, COUNT_MOCAP, 0, 0),
    FIELD(joint_type, NPY_INT32, COUNT_JOINT, 0, 0),
    FIELD(joint_body, NPY_INT32, COUNT_JOINT, 0, 0),
    FIELD(joint_pos, NPY_DOUBLE, COUNT_JOINT, 3, 0),
    FIELD(joint_axis, NPY_DOUBLE, COUNT_JOINT, 3, 0),
    FIELD(joint_ref, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_range, NPY_DOUBLE, COUNT_JOINT, 2, 0),
    FIELD(joint_stiffness, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_springref, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_damping, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_armature, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_friction, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_limit_solver, NPY_DOUBLE, COUNT_JOINT, 9, 0),
    FIELD(joint_friction_solver, NPY_DOUBLE, COUNT_JOINT, 8, 0),
    FIELD(joint_invweight, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(joint_turn_invweight, NPY_DOUBLE, COUNT_JOINT, 0, 0),
    FIELD(default_q, NPY_DOUBLE, COUNT_NQ, 0, 0),
    FIELD(actuator_joint, NPY_INT32, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_tendon, NPY_INT32, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_stiffness, NPY_DOUBLE, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_gear, NPY_DOUBLE, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_gain, NPY_DOUBLE, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_gain_slope, NPY_DOUBLE, COUNT_ACTUATOR, 2, 0),
    FIELD(actuator_bias, NPY_DOUBLE, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_damping, NPY_DOUBLE, COUNT_ACTUATOR, 0, 0),
    FIELD(actuator_range, NPY_DOUBLE, COUNT_ACTUATOR, 2, 0),
    FIELD(actuator_force_range, NPY_DOUBLE, COUNT_ACTUATOR, 2, 0),
    FIELD(actuator_own_range, NPY_DOUBLE, COUNT_ACTUATOR, 2, 0),
    FIELD(geom_type, NPY_INT32, COUNT_GEOM, 0, 0),
    FIELD(geom_body, NPY_INT32, COUNT_GEOM, 0, 0),
    FIELD(geom_pos, NPY_DOUBLE, COUNT_GEOM, 3, 0),
    FIELD(geom_quat, NPY_DOUBLE, COUNT_GEOM, 4, 0),
    FIELD(geom_size, NPY_DOUBLE, COUNT_GEOM, 3, 0),
    FIELD(geom_mesh, NPY_INT32, COUNT_GEOM, 0, 0),
    FIELD(mesh_vertex_count, NPY_INT32, COUNT_MESH, 0, 0),
    FIELD(mesh_face_count, NPY_INT32, COUNT_MESH, 0, 0),
    FIELD(mesh_vertex, NPY_DOUBLE, COUNT_MESH_VERTEX, 3, 0),
    FIELD(mesh_face, NPY_INT32, COUNT_MESH_FACE, 3, 0),
    FIELD(geom_cloud, NPY_INT32, COUNT_GEOM, 0, 0),
    FIELD(cloud_point_count, NPY_INT32, COUNT_CLOUD, 0, 0),
    FIELD(cloud_contact_count, NPY_INT32, COUNT_CLOUD, 0, 0),
    FIELD(cloud_point, NPY_DOUBLE, COUNT_CLOUD_POINT, 3, 0),
    FIELD(geom_hfield, NPY_INT32, COUNT_GEOM, 0, 0),
    FIELD(hfield_grid, NPY_INT32, COUNT_HFIELD, 2, 0),
    FIELD(hfield_size, NPY_DOUBLE, COUNT_HFIELD, 3, 0),
    FIELD(hfield_height, NPY_DOUBLE, COUNT_HFIELD_HEIGHT, 0, 0),
    FIELD(geom_field, NPY_INT32, COUNT_GEOM, 0, 0),
    FIELD(geom_modulus, NPY_DOUBLE, COUNT_GEOM, 0, 0),
    FIELD(geom_dissipation, NPY_DOUBLE, COUNT_GEOM, 0, 0),
    FIELD(field_kind, NPY_INT32, COUNT_FIELD, 0, 0),
    FIELD(field_slope, NPY_DOUBLE, COUNT_FIELD, 0, 0),
    FIELD(field_vertex_count, NPY_INT32, COUNT_FIELD, 0, 0),
    FIELD(field_element_count, NPY_INT32, COUNT_FIELD, 0, 0),
    FIELD(field_vertex, NPY_DOUBLE, COUNT_FIELD_VERTEX, 3, 0),
    FIELD(field_pressure, NPY_DOUBLE, COUNT_FIELD_VERTEX, 0, 0),
    FIELD(field_index, NPY_INT32, COUNT_FIELD_INDEX, 0, 0),
    FIELD(pair_geom, NPY_INT32, COUNT_PAIR, 2, 0),
    FIELD(pair_dim, NPY_INT32, COUNT_PAIR, 0, 0),
    FIELD(pair_friction, NPY_DOUBLE, COUNT_PAIR, 5, 0),
    FIELD(pair_margin, NPY_DOUBLE, COUNT_PAIR, 0, 0),
    FIELD(pair_compliance, NPY_DOUBLE, COUNT_PAIR, 0, 0),
    FIELD(pair_restitution, NPY_DOUBLE, COUNT_PAIR, 0, 0),
    FIELD(pair_reference, NPY_DOUBLE, COUNT_PAIR, 4, 0),
    FIELD(pair_impedance, NPY_DOUBLE, COUNT_PAIR, 5, 0),
    FIELD(pair_impratio, NPY_DOUBLE, COUNT_PAIR, 0, 0),
    FIELD(pair_edges, NPY_INT32, COUNT_PAIR, 0, 0),
    FIELD(reference_q, NPY_DOUBLE, COUNT_NQ, 0, 0),
    FIELD(constraint_type, NPY_INT32, COUNT_CONSTRAINT, 0, 0),
    FIELD(constraint_object, NPY_INT32, COUNT_CONSTRAINT, 2, 0),
    FIELD(constraint_data, NPY_DOUBLE, COUNT_CONSTRAINT, 10, 0),
    FIELD(constraint_compliance, NPY_DOUBLE, COUNT_CONSTRAINT, 2, 0),
    FIELD(constraint_solver, NPY_DOUBLE, COUNT_CONSTRAINT, 8, 0),
    FIELD(constraint_torquescale, NPY_DOUBLE, COUNT_CONSTRAINT, 0, 0),
    FIELD(tendon_type, NPY_INT32, COUNT_TENDON, 0, 0),
    FIELD(tendon_point_count, NPY_INT32, COUNT_TENDON, 0, 0),
    FIELD(tendon_range, NPY_DOUBLE, COUNT_TENDON, 2, 0),
    FIELD(tendon_stiffness, NPY_DOUBLE, COUNT_TENDON, 0, 0),
    FIELD(tendon_springrange, NPY_DOUBLE, COUNT_TENDON, 2, 0),
    FIELD(tendon_frictionloss, NPY_DOUBLE, COUNT_TENDON, 0, 0),
    FIELD(tendon_damping, NPY_DOUBLE, COUNT_TENDON, 0, 0),
    FIELD(tendon_limit_solver, NPY_DOUBLE, COUNT_TENDON, 9, 0),
    FIELD(tendon_friction_solver, NPY_DOUBLE, COUNT_TENDON, 8, 0),
    FIELD(tendon_invweight, NPY_DOUBLE, COUNT_TENDON, 0, 0),
    FIELD(tendon_part, NPY_INT32, COUNT_TENDON_POINT, 0, 0),
    FIELD(tendon_object, NPY_INT32, COUNT_TENDON_POINT, 0, 0),
    FIELD(tendon_data, NPY_DOUBLE, COUNT_TENDON_POINT, 3, 0),
    FIELD(gravity, NPY_DOUBLE, COUNT_THREE, 0, 0),
    FIELD(integration, NPY_INT32, COUNT_ONE, 0, 0),
};

#define SPEC_FIELD_COUNT ((int)(sizeof spec_fields / sizeof *spec_fields))

typedef struct spec_reader {
  qd_model_spec spec;
  PyArrayObject *arrays[SPEC_FIELD_COUNT]; /* arrays to which the pointers of spec point */
  npy_intp counts[COUNT_KIND_COUNT];       /* -1: not yet known */
  npy_intp nq;
} spec_reader;

static int joint_nq(int32_t type) { return type == QD_FREE ? 7 : type == QD_BALL ? 4 : 1; }
static int joint_nv(int32_t type) { return type == QD_FREE ? 6 : type == QD_BALL ? 3 : 1; }

/* Reads field i into reader->arrays[i] and points the spec at it. */
static int spec_read_field(spec_reader *reader, PyObject *dict, int i) {
  const spec_field *field = spec_fields + i;
  PyObject *value = PyDict_GetItemString(dict, field->name);
  if (!value) {
    PyErr_Format(PyExc_ValueError, "spec: the key '%s' is missing", field->name);
    return -1;
  }
  npy_intp shape[3] = {3, field->tail[0], field->tail[1]};
  int ndim = 1 + (field->tail[0] > 0) + (field->tail[1] > 0);
  if (field->count < COUNT_KIND_COUNT) {
    shape[0] = reader->counts[field->count];
  } else if (field->count == COUNT_NQ) {
    shape[0] = reader->nq;
  } else if (field->count == COUNT_ONE) {
    shape[0] = 1;
  }
  PyArrayObject *array = field->type == NPY_INT32 ? array_read_int(value, field->name, ndim, shape)
                                                  : array_read(value, field->name, ndim, shape);
  if (!array) {
    return -1;
  }
  reader->arrays[i] = array;
  if (field->count < COUNT_KIND_COUNT) {
    reader->counts[field->count] = PyArray_DIM(array, 0);
  }
  if (field->count == COUNT_THREE) {
    memcpy(reader->spec.gravity, PyArray_DATA(array), sizeof reader->spec.gravity);
  } else if (field->count == COUNT_ONE) {
    memcpy((char *)&reader->spec + field->offset, PyArray_DATA(array), sizeof(int32_t));
  } else {
    const void *data = PyArray_DATA(array);
    memcpy((char *)&reader->spec + field->offset, &data, sizeof data);
  }
  if (field->offset == offsetof(qd_model_spec, joint_type)) {
    for (npy_intp j = 0; j < PyArray_DIM(array, 0); j++) {
      reader->nq += joint_nq(reader->spec.joint_type[j]);
    }
  }
  return 0;
}

static int spec_check_keys(PyObject *dict) {
  PyObject *key, *value;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value)) {
    int known = 0;
    for (int i = 0; i < SPEC_FIELD_COUNT && !known; i++) {
      known =
          PyUnicode_Check(key) && PyUnicode_CompareWithASCIIString(key, spec_fields[i].name) == 0;
    }
    if (!known) {
      PyErr_Format(PyExc_ValueError, "spec: unknown key %R", key);
      return -1;
    }
  }
  return 0;
}

static int spec_read(spec_reader *reader, PyObject *dict) {
  for (int i = 0; i < COUNT_KIND_COUNT; i++) {
    reader->counts[i] = -1;
  }
  if (spec_check_keys(dict) < 0) {
    return -1;
  }
  for (int i = 0; i < SPEC_FIELD_COUNT; i++) {
    if (spec_read_field(reader, dict, i) < 0) {
      return -1;
    }
  }
  for (int i = 0; i < COUNT_KIND_COUNT; i++) {
    if (reader->counts[i] > INT32_MAX / 64) {
      PyErr_SetString(PyExc_ValueError, "spec: too many elements");
      return -1;
    }
  }
  qd_model_spec *spec = &reader->spec;
  spec->body_count = (int)reader->counts[COUNT_BODY];
  spec->joint_count = (int)reader->counts[COUNT_JOINT];
  spec->actuator_count = (int)reader->counts[COUNT_ACTUATOR];
  spec->geom_count = (int)reader->counts[COUNT_GEOM];
  spec->mesh_count = (int)reader->counts[COUNT_MESH];
  spec->mesh_vertex_total = (int)reader->counts[COUNT_MESH_VERTEX];
  spec->mesh_face_total = (int)reader->counts[COUNT_MESH_FACE];
  spec->cloud_count = (int)reader->counts[COUNT_CLOUD];
  spec->cloud_point_total = (int)reader->counts[COUNT_CLOUD_POINT];
  spec->hfield_count = (int)reader->counts[COUNT_HFIELD];
  spec->hfield_height_total = (int)reader->counts[COUNT_HFIELD_HEIGHT];
  spec->field_count = (int)reader->counts[COUNT_FIELD];
  spec->field_vertex_total = (int)reader->counts[COUNT_FIELD_VERTEX];
  spec->field_index_total = (int)reader->counts[COUNT_FIELD_INDEX];
  spec->pair_count = (int)reader->counts[COUNT_PAIR];
  spec->constraint_count = (int)reader->counts[COUNT_CONSTRAINT];
  spec->mocap_count = (int)reader->counts[COUNT_MOCAP];
  spec->tendon_count = (int)reader->counts[COUNT_TENDON];
  spec->tendon_point_total = (int)reader->counts[COUNT_TENDON_POINT];
  return 0;
}

/* Stores the position of each joint in q and v, for error messages and held joints. */
static int model_copy_joints(model_object *self, const qd_model_spec *spec) {
  size_t count = (size_t)spec->joint_count;
  int32_t *block = PyMem_Calloc(4 * count + 1, sizeof *block);
  if (!block) {
    PyErr_NoMemory();
    return -1;
  }
  self->joint_type = block;
  self->joint_body = block + count;
  self->joint_q = block + 2 * count;
  self->joint_v = block + 3 * count;
  int32_t q = 0, v = 0;
  for (int j = 0; j < spec->joint_count; j++) {
    self->joint_type[j] = spec->joint_type[j];
    self->joint_body[j] = spec->joint_body[j];
    self->joint_q[j] = q;
    self->joint_v[j] = v;
    q += joint_nq(spec->joint_type[j]);
    v += joint_nv(spec->joint_type[j]);
  }
  return 0;
}

static int model_fill_from(model_object *self, const qd_model_spec *spec) {
  qd_model *model = NULL;
  char message[512] = "";
  qd_status status = qd_model_create(spec, &model, message, sizeof message);
  if (status == QD_OUT_OF_MEMORY) {
    PyErr_NoMemory();
    return -1;
  }
  if (status != QD_OK || !model) {
    PyErr_SetString(PyExc_ValueError, message[0] ? message : qd_status_name(status));
    return -1;
  }
  if (model_copy_joints(self, spec) < 0) {
    qd_model_destroy(model);
    return -1;
  }
  self->nq = qd_model_nq(model);
  self->nv = qd_model_nv(model);
  self->nu = qd_model_nu(model);
  self->body_count = spec->body_count;
  self->joint_count = spec->joint_count;
  self->geom_count = spec->geom_count;
  self->pair_count = spec->pair_count;
  self->constraint_count = spec->constraint_count;
  self->tendon_count = spec->tendon_count;
  self->mocap_count = spec->mocap_count;
  self->soft_pair_count = qd_model_soft_pair_count(model);
  self->is_planar = qd_model_planar_normal(model, self->planar_normal);
  self->model = model;
  return 0;
}

int model_fill(model_object *self, PyObject *spec) {
  spec_reader reader;
  memset(&reader, 0, sizeof reader);
  PyObject *dict = PyDict_Copy(spec); /* a private copy: other threads may change the argument */
  int result = dict ? spec_read(&reader, dict) : -1;
  if (result == 0) {
    result = model_fill_from(self, &reader.spec);
  }
  for (int i = 0; i < SPEC_FIELD_COUNT; i++) {
    Py_XDECREF(reader.arrays[i]);
  }
  Py_XDECREF(dict);
  return result;
}
