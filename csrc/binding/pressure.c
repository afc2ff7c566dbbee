/* Pressure fields in capsules, and the patches between two of them. */
#include "binding/model.h"

#define FIELD_CAPSULE "qdsim.field"

/* ---------------------------------------------------------------- fields */

static void field_capsule_destroy(PyObject *capsule) {
  qd_field_destroy(PyCapsule_GetPointer(capsule, FIELD_CAPSULE));
}

static PyObject *field_make(const qd_field_spec *spec) {
  qd_field *field;
  char message[160] = "";
  const qd_status status = qd_field_create(spec, &field, message, sizeof message);
  if (status == QD_OUT_OF_MEMORY) {
    return PyErr_NoMemory();
  }
  if (status != QD_OK) {
    PyErr_SetString(PyExc_ValueError, message);
    return NULL;
  }
  PyObject *capsule = PyCapsule_New(field, FIELD_CAPSULE, field_capsule_destroy);
  if (!capsule) {
    qd_field_destroy(field);
  }
  return capsule;
}

const char field_create_doc[] =
    "_field_create(kind, vertices, elements, pressure, slope): a capsule with a field or a "
    "surface.\n\nArrays that a kind has no use for are empty.";

PyObject *field_create_function(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *vertices, *elements, *pressure;
  qd_field_spec spec = {0};
  int kind;
  if (!PyArg_ParseTuple(args, "iOOOd:_field_create", &kind, &vertices, &elements, &pressure,
                        &spec.slope)) {
    return NULL;
  }
  spec.kind = (qd_field_kind)kind;
  const npy_intp points[2] = {-1, 3}, corners[2] = {-1, kind == QD_FIELD_SOFT ? 4 : 3};
  PyArrayObject *vertex = array_read_finite(vertices, "vertices", 2, points);
  PyArrayObject *element = vertex ? array_read_int(elements, "elements", 2, corners) : NULL;
  const npy_intp values[1] = {vertex && kind == QD_FIELD_SOFT ? PyArray_DIM(vertex, 0) : 0};
  PyArrayObject *value = element ? array_read_finite(pressure, "pressure", 1, values) : NULL;
  PyObject *capsule = NULL;
  if (value) {
    spec.vertex_count = (int)PyArray_DIM(vertex, 0);
    spec.element_count = (int)PyArray_DIM(element, 0);
    spec.vertex = PyArray_DATA(vertex);
    spec.element = PyArray_DATA(element);
    spec.pressure = PyArray_DATA(value);
    capsule = field_make(&spec);
  }
  Py_XDECREF(vertex);
  Py_XDECREF(element);
  Py_XDECREF(value);
  return capsule;
}

/* ---------------------------------------------------------------- patches */

typedef struct patch_room {
  qd_patch_polygon *polygon;
  double *vertex;
  int polygons, vertices;
} patch_room;

static void room_free(patch_room *room) {
  PyMem_RawFree(room->polygon);
  PyMem_RawFree(room->vertex);
}

/* What is asked: two fields, or a soft pair of a model. */
typedef struct patch_query {
  const qd_field *a, *b;
  const double *pose;
  double filter;
  const qd_model *model;
  qd_workspace *workspace;
  const double *q;
  int soft_pair, pair;
} patch_query;

static qd_status query_run(patch_query *query, qd_patch *patch, const patch_room *room) {
  if (query->model) {
    return qd_pressure_surface(query->model, query->workspace, query->q, query->soft_pair,
                               &query->pair, patch, room->polygon, room->polygons, room->vertex,
                               room->vertices);
  }
  return qd_field_patch(query->a, query->b, query->pose, query->pose + 9, query->filter, patch,
                        room->polygon, room->polygons, room->vertex, room->vertices);
}

/* Polygons for which there is room at first, and corners of each. */
#define FIRST_POLYGONS 400
#define CORNERS_EACH 6

static int room_make(patch_room *room, int polygons, int vertices) {
  room_free(room);
  *room = (patch_room){.polygons = polygons, .vertices = vertices};
  room->polygon = PyMem_RawMalloc((size_t)polygons * sizeof *room->polygon);
  room->vertex = PyMem_RawMalloc(3 * (size_t)vertices * sizeof *room->vertex);
  return room->polygon && room->vertex;
}

/* Without the GIL; QD_OUT_OF_MEMORY too. If there was too little room, a second run has enough. */
static qd_status patch_find(patch_query *query, int with_polygons, qd_patch *patch,
                            patch_room *room) {
  if (!with_polygons) {
    return query_run(query, patch, room);
  }
  if (!room_make(room, FIRST_POLYGONS, FIRST_POLYGONS * CORNERS_EACH)) {
    return QD_OUT_OF_MEMORY;
  }
  qd_status status = query_run(query, patch, room);
  if ((status == QD_OK || status == QD_OUT_OF_CAPACITY) &&
      (patch->polygon_count > room->polygons || patch->vertex_count > room->vertices)) {
    if (!room_make(room, patch->polygon_count, patch->vertex_count)) {
      return QD_OUT_OF_MEMORY;
    }
    status = query_run(query, patch, room);
  }
  room->polygons = patch->polygon_count;
  room->vertices = patch->vertex_count;
  return status;
}

static PyObject *bytes_of(const void *data, size_t size) {
  return PyBytes_FromStringAndSize(size > 0 ? data : "", (Py_ssize_t)size);
}

static PyObject *patch_result(const qd_patch *patch, const patch_room *room) {
  return Py_BuildValue("NNNNddiNN", array_from_numbers(patch->force, 3),
                       array_from_numbers(patch->moment, 3), array_from_numbers(patch->centre, 3),
                       matrix_from_numbers(patch->tangent, 6, 6), patch->area,
                       patch->total_pressure, patch->polygon_count,
                       bytes_of(room->polygon, (size_t)room->polygons * sizeof *room->polygon),
                       bytes_of(room->vertex, 3 * (size_t)room->vertices * sizeof *room->vertex));
}

static PyObject *query_answer(patch_query *query, int with_polygons) {
  qd_patch patch;
  patch_room room = {0};
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = patch_find(query, with_polygons, &patch, &room);
  Py_END_ALLOW_THREADS;
  PyObject *result = NULL;
  if (status == QD_OUT_OF_MEMORY) {
    PyErr_NoMemory();
  } else if (status != QD_OK) {
    PyErr_SetString(PyExc_ValueError, "no surface between two bodies that do not give way");
  } else {
    result = patch_result(&patch, &room);
  }
  room_free(&room);
  return result;
}

const char field_patch_doc[] =
    "_field_patch(a, b, pose, filter_angle, with_polygons): (force, moment, centre, tangent, "
    "area, total, count, polygons, vertices)\n\nIn the frame of b; pose (12): rotation and "
    "translation from the frame of a; polygons and vertices as bytes.";

PyObject *field_patch_function(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *first, *second, *numbers;
  double pose[12], filter;
  int with_polygons;
  if (!PyArg_ParseTuple(args, "OOOdp:_field_patch", &first, &second, &numbers, &filter,
                        &with_polygons) ||
      array_copy_vector(numbers, "pose", 12, pose) < 0) {
    return NULL;
  }
  const qd_field *a = PyCapsule_GetPointer(first, FIELD_CAPSULE);
  const qd_field *b = a ? PyCapsule_GetPointer(second, FIELD_CAPSULE) : NULL;
  if (!b) {
    return NULL;
  }
  patch_query query = {.a = a, .b = b, .pose = pose, .filter = filter};
  return query_answer(&query, with_polygons);
}

const char field_energy_doc[] = "_field_energy(a, b, pose): J; pose as in _field_patch.";

PyObject *field_energy_function(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *first, *second, *numbers;
  double pose[12], energy;
  if (!PyArg_ParseTuple(args, "OOO:_field_energy", &first, &second, &numbers) ||
      array_copy_vector(numbers, "pose", 12, pose) < 0) {
    return NULL;
  }
  const qd_field *a = PyCapsule_GetPointer(first, FIELD_CAPSULE);
  const qd_field *b = a ? PyCapsule_GetPointer(second, FIELD_CAPSULE) : NULL;
  if (!b) {
    return NULL;
  }
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = qd_field_energy(a, b, pose, pose + 9, &energy);
  Py_END_ALLOW_THREADS;
  if (status != QD_OK) {
    PyErr_SetString(PyExc_ValueError, "no surface between two bodies that do not give way");
    return NULL;
  }
  return PyFloat_FromDouble(energy);
}

const char pressure_surface_doc[] =
    "_pressure_surface(model, q, soft_pair, with_polygons): (pair, what _field_patch gives)\n\n"
    "In world axes; soft_pair counts the pairs with a soft geometry.";

PyObject *pressure_surface_function(PyObject *module, PyObject *args) {
  PyObject *given, *q;
  int with_polygons;
  patch_query query = {0};
  if (!PyArg_ParseTuple(args, "OOip:_pressure_surface", &given, &q, &query.soft_pair,
                        &with_polygons)) {
    return NULL;
  }
  model_object *model = model_of(PyModule_GetState(module), given);
  if (!model) {
    return NULL;
  }
  if (query.soft_pair < 0 || query.soft_pair >= qd_model_soft_pair_count(model->model)) {
    PyErr_SetString(PyExc_IndexError, "soft_pair: no such pair");
    return NULL;
  }
  workspace_entry *entry = workspace_pool_acquire(&model->pool, model->model);
  if (!entry) {
    return PyErr_NoMemory();
  }
  query.model = model->model;
  query.workspace = entry->workspace;
  query.q = entry->q;
  PyObject *surface = NULL, *result = NULL;
  if (model_read_q(model, q, "q", entry->q) == 0) {
    surface = query_answer(&query, with_polygons);
  }
  if (surface) {
    result = Py_BuildValue("iN", query.pair, surface);
  }
  workspace_pool_release(&model->pool, entry);
  return result;
}
