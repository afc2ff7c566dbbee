/* Observations and rewards of policies: a view in a capsule, and rows of samples ->
 * qd_observe_batch, qd_judge. */
#include "binding/batch/batch_call.h"

#include <string.h>

#define VIEW_CAPSULE "qdsim.view"

/* A view and the arrays that it points into. */
enum { VIEW_ARRAYS = 7 };
typedef struct view_object {
  qd_view view;
  PyArrayObject *array[VIEW_ARRAYS];
} view_object;

static void view_free(view_object *own) {
  for (int k = 0; k < VIEW_ARRAYS; k++) {
    Py_XDECREF(own->array[k]);
  }
  PyMem_Free(own);
}

static void view_capsule_destroy(PyObject *capsule) {
  view_free(PyCapsule_GetPointer(capsule, VIEW_CAPSULE));
}

/* Whether all are within [least, below). */
static int are_within(const int32_t *numbers, int count, int least, int below) {
  for (int i = 0; i < count; i++) {
    if (numbers[i] < least || numbers[i] >= below) {
      return 0;
    }
  }
  return 1;
}

/* Returns the number of columns if they are -1 or 0, 1, 2, ... in this order; else -1. */
static int columns_count(const int32_t *column, int size) {
  int count = 0;
  for (int i = 0; i < size; i++) {
    if (column[i] >= 0 && column[i] != count++) {
      return -1;
    }
  }
  return count;
}

static int view_check(qd_view *view, const model_object *model, int size) {
  view->column_count = columns_count(view->column, size);
  if (view->body < 0 || view->body >= model->body_count || view->more_count < 0 ||
      size != qd_view_size(view) || view->column_count < 0 || !(view->length > 0.0) ||
      !(view->position_tolerance > 0.0) || !(view->rotation_tolerance > 0.0) ||
      !are_within(view->coordinate, view->coordinate_count, 0, model->nv) ||
      !are_within(view->turns, view->coordinate_count, 0, 3) ||
      !are_within(view->tip, view->tip_count, 0, model->body_count) ||
      !are_within(view->joint, view->joint_count, 0, model->nq)) {
    PyErr_SetString(PyExc_ValueError, "view: indices or sizes that do not fit the model");
    return -1;
  }
  return 0;
}

/* Reads the arrays, checks their lengths, and sets the view's pointers. */
static int view_read(view_object *own, PyObject *const given[VIEW_ARRAYS]) {
  static const char *const names[] = {"coordinate", "turns", "tip",   "joint",
                                      "column",     "half",  "middle"};
  npy_intp any = -1;
  for (int k = 0; k < VIEW_ARRAYS; k++) {
    own->array[k] = k < 5 ? array_read_int(given[k], names[k], 1, &any)
                          : array_read_finite(given[k], names[k], 1, &any);
    if (!own->array[k]) {
      return -1;
    }
  }
  const npy_intp joints = PyArray_SIZE(own->array[3]);
  if (PyArray_SIZE(own->array[0]) != PyArray_SIZE(own->array[1]) ||
      PyArray_SIZE(own->array[5]) != joints || PyArray_SIZE(own->array[6]) != joints) {
    PyErr_SetString(PyExc_ValueError, "view: arrays of different lengths");
    return -1;
  }
  qd_view *view = &own->view;
  view->coordinate = PyArray_DATA(own->array[0]);
  view->turns = PyArray_DATA(own->array[1]);
  view->tip = PyArray_DATA(own->array[2]);
  view->joint = PyArray_DATA(own->array[3]);
  view->column = PyArray_DATA(own->array[4]);
  view->half = PyArray_DATA(own->array[5]);
  view->middle = PyArray_DATA(own->array[6]);
  view->coordinate_count = (int)PyArray_SIZE(own->array[0]);
  view->tip_count = (int)PyArray_SIZE(own->array[2]);
  view->joint_count = (int)joints;
  return 0;
}

const char view_create_doc[] =
    "_view_create($module, model, body, home, coordinate, turns, tip, joint, column, half, "
    "middle,\n"
    "             with_world, more_count, length, position_tolerance, rotation_tolerance, reach, "
    "/)\n--\n\n"
    "A capsule with a qd_view of a model.";

PyObject *view_create_function(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *owner, *home, *given[VIEW_ARRAYS];
  view_object *own = PyMem_Calloc(1, sizeof *own);
  if (!own) {
    return PyErr_NoMemory();
  }
  qd_view *view = &own->view;
  PyObject *capsule = NULL;
  if (PyArg_ParseTuple(args, "OiOOOOOOOOpidddd:_view_create", &owner, &view->body, &home, given,
                       given + 1, given + 2, given + 3, given + 4, given + 5, given + 6,
                       &view->with_world, &view->more_count, &view->length,
                       &view->position_tolerance, &view->rotation_tolerance, &view->reach)) {
    const model_object *model = model_of(state, owner);
    if (model && array_copy_vector(home, "home", 3, view->home) == 0 &&
        view_read(own, given) == 0 &&
        view_check(view, model, (int)PyArray_SIZE(own->array[4])) == 0) {
      capsule = PyCapsule_New(own, VIEW_CAPSULE, view_capsule_destroy);
    }
  }
  if (!capsule) {
    view_free(own);
  }
  return capsule;
}

/* A new array (count, columns); *data: its numbers. */
static PyObject *rows_create(npy_intp count, npy_intp columns, double **data) {
  const npy_intp shape[2] = {count, columns};
  PyObject *array = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
  *data = array ? PyArray_DATA((PyArrayObject *)array) : NULL;
  return array;
}

static PyObject *observe_run(core_state *state, model_object *model, int threads,
                             const qd_view *view, const qd_view_input *in) {
  double *observation, *measure;
  PyObject *seen = rows_create((npy_intp)in->sample_count, view->column_count, &observation);
  PyObject *judged = rows_create((npy_intp)in->sample_count, QD_VIEW_MEASURES, &measure);
  int32_t *codes = PyMem_Calloc((size_t)in->sample_count + 1, sizeof *codes);
  qd_thread_pool *pool = thread_pool_of(state);
  qd_batch *batch = batch_acquire(model);
  qd_status status = seen && judged && codes && pool && batch ? QD_OK : QD_OUT_OF_MEMORY;
  interruptible work;
  if (status == QD_OK && (status = interruptible_begin(&work, state, batch)) == QD_OK) {
    status = qd_observe_batch(pool, threads, batch, view, in, observation, measure, codes);
    interruptible_end(&work);
  }
  batch_release(model, batch);
  for (int64_t i = 0; status == QD_OK && i < in->sample_count; i++) {
    if (codes[i] != QD_OK) {
      PyErr_Format(PyExc_ValueError, "q: sample %lld: expected finite numbers and unit quaternions",
                   (long long)i);
      break;
    }
  }
  PyMem_Free(codes);
  if (PyErr_Occurred() || status != QD_OK) {
    Py_XDECREF(seen);
    Py_XDECREF(judged);
    return PyErr_Occurred() ? NULL : status_raise(state, "observe", status, NULL, NULL);
  }
  return Py_BuildValue("NN", seen, judged);
}

const char observe_doc[] = "_observe($module, model, view, q, goal, pose, more, threads, /)\n--\n\n"
                           "Observations (samples, columns) and measures (samples, 5) of "
                           "qd_observe_batch of the rows of q "
                           "and goal\n"
                           "(samples, nq), pose (samples, 12) and more (samples, more_count).";

PyObject *observe_function(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *owner, *capsule, *q, *goal, *pose, *more;
  int threads;
  if (!PyArg_ParseTuple(args, "OOOOOOi:_observe", &owner, &capsule, &q, &goal, &pose, &more,
                        &threads)) {
    return NULL;
  }
  model_object *model = model_of(state, owner);
  const view_object *own = model ? PyCapsule_GetPointer(capsule, VIEW_CAPSULE) : NULL;
  if (!own) {
    return NULL;
  }
  npy_intp count = -1;
  qd_view_input in = {0};
  if (!(in.q = rows_read(q, "q", &count, model->nq, &in.q_stride)) ||
      !(in.goal = rows_read(goal, "goal", &count, model->nq, &in.goal_stride)) ||
      !(in.pose = rows_read(pose, "pose", &count, 12, &in.pose_stride)) ||
      !(in.more = rows_read(more, "more", &count, own->view.more_count, &in.more_stride))) {
    return NULL;
  }
  in.sample_count = count;
  return observe_run(state, model, threads, &own->view, &in);
}

/* The data of a contiguous array of this type and size; NULL with an exception. */
static const void *plain_data(PyObject *object, const char *name, int type, npy_intp size) {
  PyArrayObject *array = (PyArrayObject *)object;
  if (!PyArray_Check(object) || PyArray_TYPE(array) != type || !PyArray_IS_C_CONTIGUOUS(array) ||
      !PyArray_ISBEHAVED_RO(array) || PyArray_SIZE(array) != size) {
    PyErr_Format(PyExc_ValueError, "%s: expected %zd numbers in a row", name, (Py_ssize_t)size);
    return NULL;
  }
  return PyArray_DATA(array);
}

const char judge_doc[] =
    "_judge($module, measure, before, failed, done, success, failure, cost, lost, horizon, /)\n"
    "--\n\n"
    "Rewards (samples,) and who has terminated, was truncated, has reached the goal and lost the\n"
    "body, of qd_judge.";

PyObject *judge_function(PyObject *Py_UNUSED(module), PyObject *args) {
  PyObject *given[4];
  qd_game game;
  long long horizon;
  if (!PyArg_ParseTuple(args, "OOOOddddL:_judge", given, given + 1, given + 2, given + 3,
                        &game.success, &game.failure, &game.cost, &game.lost, &horizon)) {
    return NULL;
  }
  game.horizon = horizon;
  npy_intp count = -1;
  ptrdiff_t stride;
  const double *measure = rows_read(given[0], "measure", &count, QD_VIEW_MEASURES, &stride);
  const double *before = measure ? plain_data(given[1], "before", NPY_DOUBLE, count) : NULL;
  const uint8_t *failed = before ? plain_data(given[2], "failed", NPY_BOOL, count) : NULL;
  const int64_t *done = failed ? plain_data(given[3], "done", NPY_INT64, count) : NULL;
  if (!done || !plain_data(given[0], "measure", NPY_DOUBLE, count * QD_VIEW_MEASURES)) {
    return NULL;
  }
  uint8_t *mark[QD_GAME_MARKS];
  double *reward = NULL;
  PyObject *result = PyTuple_New(1 + QD_GAME_MARKS);
  for (int k = 0; result && k <= QD_GAME_MARKS; k++) {
    PyObject *array = PyArray_SimpleNew(1, &count, k == 0 ? NPY_DOUBLE : NPY_BOOL);
    if (!array) {
      Py_CLEAR(result);
    } else {
      PyTuple_SET_ITEM(result, k, array);
      if (k == 0) {
        reward = PyArray_DATA((PyArrayObject *)array);
      } else {
        mark[k - 1] = PyArray_DATA((PyArrayObject *)array);
      }
    }
  }
  if (result) {
    qd_judge(&game, count, measure, before, failed, done, reward, mark);
  }
  return result;
}
