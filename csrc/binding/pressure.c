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

typedef struct patch_room {
  qd_patch_polygon *polygon;
  double *vertex;
  int polygons, vertices;
} patch_room;

/* A query: two fields, or a soft pair of a model. */
typedef struct patch_query {
  const qd_field *a, *b;
  double pose_a[7], pose_b[7];
  qd_patch_options options;
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
  return qd_field_patch(query->a, query->b, query->pose_a, query->pose_b, &query->options, patch,
                        room->polygon, room->polygons, room->vertex, room->vertices);
}

/* ---------------------------------------------------------------- room for polygons */

/* Initial number of polygons, and corners of each. */
#define FIRST_POLYGONS 500
#define CORNERS_EACH 6

void patch_room_destroy(patch_room *room) {
  if (room) {
    PyMem_RawFree(room->polygon);
    PyMem_RawFree(room->vertex);
    PyMem_RawFree(room);
  }
}

static patch_room *room_make(int polygons, int vertices) {
  patch_room *room = PyMem_RawCalloc(1, sizeof *room);
  if (room) {
    room->polygons = polygons;
    room->vertices = vertices;
    room->polygon = PyMem_RawMalloc((size_t)polygons * sizeof *room->polygon);
    room->vertex = PyMem_RawMalloc(3 * (size_t)vertices * sizeof *room->vertex);
  }
  if (room && room->polygon && room->vertex) {
    return room;
  }
  patch_room_destroy(room);
  return NULL;
}

/* Runs without the GIL; may return QD_OUT_OF_MEMORY. If the capacity is too small, a second run has
 * enough. */
static qd_status patch_find(patch_query *query, qd_patch *patch, patch_room **room) {
  if (!*room) {
    *room = room_make(FIRST_POLYGONS, FIRST_POLYGONS * CORNERS_EACH);
  }
  qd_status status = *room ? query_run(query, patch, *room) : QD_OUT_OF_MEMORY;
  if ((status == QD_OK || status == QD_OUT_OF_CAPACITY) &&
      (patch->polygon_count > (*room)->polygons || patch->vertex_count > (*room)->vertices)) {
    patch_room_destroy(*room);
    *room = room_make(patch->polygon_count + patch->polygon_count / 4,
                      patch->vertex_count + patch->vertex_count / 4);
    status = *room ? query_run(query, patch, *room) : QD_OUT_OF_MEMORY;
  }
  return status;
}

/* ---------------------------------------------------------------- patches */

/* Writable bytes: arrays over them belong to the caller. */
static PyObject *bytes_of(const void *data, size_t size) {
  return PyByteArray_FromStringAndSize(size > 0 ? data : "", (Py_ssize_t)size);
}

/* Makes an array writable for the caller. */
static PyObject *given_away(PyObject *array) {
  if (array) {
    PyArray_ENABLEFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
  }
  return array;
}

/* room: NULL if the polygons are not wanted. */
static PyObject *patch_result(const qd_patch *patch, const patch_room *room) {
  const size_t polygons = room ? (size_t)patch->polygon_count : 0;
  const size_t vertices = room ? (size_t)patch->vertex_count : 0;
  return Py_BuildValue("NNNNddiNN", given_away(array_from_numbers(patch->force, 3)),
                       given_away(array_from_numbers(patch->moment, 3)),
                       given_away(array_from_numbers(patch->centre, 3)),
                       given_away(matrix_from_numbers(patch->tangent, 6, 6)), patch->area,
                       patch->total_pressure, patch->polygon_count,
                       bytes_of(room ? room->polygon : NULL, polygons * sizeof *room->polygon),
                       bytes_of(room ? room->vertex : NULL, 3 * vertices * sizeof *room->vertex));
}

static PyObject *query_answer(core_state *state, patch_query *query, int with_polygons) {
  static const patch_room none = {0};
  qd_patch patch;
  patch_room *room = with_polygons ? atomic_exchange(&state->patch_room, NULL) : NULL;
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = with_polygons ? patch_find(query, &patch, &room) : query_run(query, &patch, &none);
  Py_END_ALLOW_THREADS;
  PyObject *result = NULL;
  if (status == QD_OUT_OF_MEMORY) {
    PyErr_NoMemory();
  } else if (status != QD_OK) {
    PyErr_SetString(PyExc_ValueError, "a, b: both are rigid, at least one of them must be soft");
  } else {
    result = patch_result(&patch, room);
  }
  if (room) {
    patch_room_destroy(atomic_exchange(&state->patch_room, room));
  }
  return result;
}

/* Reads a position and a unit quaternion; None: the origin. */
static int pose_read(PyObject *object, const char *name, double pose[7]) {
  if (object == Py_None) {
    memset(pose, 0, 7 * sizeof *pose);
    pose[3] = 1.0;
    return 0;
  }
  if (array_copy_vector(object, name, 7, pose) < 0) {
    return -1;
  }
  const double *w = pose + 3;
  const double length = sqrt(w[0] * w[0] + w[1] * w[1] + w[2] * w[2] + w[3] * w[3]);
  if (!(fabs(length - 1.0) <= 1e-3)) {
    char text[32];
    PyOS_snprintf(text, sizeof text, "%.4g", length);
    PyErr_Format(PyExc_ValueError, "%s: the quaternion has length %s; expected 1 to within 1e-3",
                 name, text);
    return -1;
  }
  for (int i = 3; i < 7; ++i) {
    pose[i] /= length;
  }
  return 0;
}

static int bodies_read(patch_query *query, PyObject *const given[4]) {
  query->a = PyCapsule_GetPointer(given[0], FIELD_CAPSULE);
  query->b = query->a ? PyCapsule_GetPointer(given[1], FIELD_CAPSULE) : NULL;
  return query->b && pose_read(given[2], "pose_a", query->pose_a) == 0 &&
                 pose_read(given[3], "pose_b", query->pose_b) == 0
             ? 0
             : -1;
}

const char field_patch_doc[] =
    "_field_patch(a, b, pose_a, pose_b, filter_angle, with_polygons, with_tangent): (force, "
    "moment, centre, tangent, area, total, count, polygons, vertices)\n\nPoses (7) or None; "
    "polygons and vertices as bytes.";

PyObject *field_patch_function(PyObject *module, PyObject *args) {
  PyObject *given[4];
  int with_polygons, with_tangent;
  patch_query query = {0};
  if (!PyArg_ParseTuple(args, "OOOOdpp:_field_patch", given, given + 1, given + 2, given + 3,
                        &query.options.filter_angle, &with_polygons, &with_tangent) ||
      bodies_read(&query, given) < 0) {
    return NULL;
  }
  query.options.without_tangent = !with_tangent;
  return query_answer(PyModule_GetState(module), &query, with_polygons);
}

const char field_energy_doc[] = "_field_energy(a, b, pose_a, pose_b): J; poses (7) or None.";

PyObject *field_energy_function(PyObject *module, PyObject *args) {
  (void)module;
  PyObject *given[4];
  patch_query query = {0};
  double energy;
  if (!PyArg_ParseTuple(args, "OOOO:_field_energy", given, given + 1, given + 2, given + 3) ||
      bodies_read(&query, given) < 0) {
    return NULL;
  }
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = qd_field_energy(query.a, query.b, query.pose_a, query.pose_b, &energy);
  Py_END_ALLOW_THREADS;
  if (status != QD_OK) {
    PyErr_SetString(PyExc_ValueError, "a, b: both are rigid, at least one of them must be soft");
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
    surface = query_answer(PyModule_GetState(module), &query, with_polygons);
  }
  if (surface) {
    result = Py_BuildValue("iN", query.pair, surface);
  }
  workspace_pool_release(&model->pool, entry);
  return result;
}
