/* Pressure fields in capsules, and the patches between two of them. */
#include "binding/core.h"

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

/* Without the GIL; QD_OUT_OF_MEMORY too. A second run has room for what the first one found. */
static qd_status patch_find(const qd_field *a, const qd_field *b, const double *pose, double filter,
                            int with_polygons, qd_patch *patch, patch_room *room) {
  qd_status status = qd_field_patch(a, b, pose, pose + 9, filter, patch, NULL, 0, NULL, 0);
  if (status != QD_OK || !with_polygons || patch->polygon_count == 0) {
    return status;
  }
  room->polygons = patch->polygon_count;
  room->vertices = patch->vertex_count;
  room->polygon = PyMem_RawCalloc((size_t)room->polygons, sizeof *room->polygon);
  room->vertex = PyMem_RawCalloc(3 * (size_t)room->vertices, sizeof *room->vertex);
  if (!room->polygon || !room->vertex) {
    return QD_OUT_OF_MEMORY;
  }
  return qd_field_patch(a, b, pose, pose + 9, filter, patch, room->polygon, room->polygons,
                        room->vertex, room->vertices);
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
  qd_patch patch;
  patch_room room = {0};
  qd_status status;
  Py_BEGIN_ALLOW_THREADS;
  status = patch_find(a, b, pose, filter, with_polygons, &patch, &room);
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
