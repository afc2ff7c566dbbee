/* Poses of all bodies: rows that qdsim.batch has prepared -> qd_body_poses_batch. */
#include "binding/batch/batch_call.h"

const char body_poses_doc[] =
    "_body_poses($module, model, q, threads, /)\n--\n\n"
    "A dict of pos (samples, bodies, 3), rot (samples, bodies, 9) and status of the rows of q.";

PyObject *body_poses_function(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *owner, *rows;
  int threads;
  npy_intp count = -1;
  ptrdiff_t stride;
  if (!PyArg_ParseTuple(args, "OOi:_body_poses", &owner, &rows, &threads)) {
    return NULL;
  }
  model_object *model = model_of(state, owner);
  const double *q = model ? rows_read(rows, "q", &count, model->nq, &stride) : NULL;
  PyObject *results = q ? PyDict_New() : NULL;
  if (!results) {
    return NULL;
  }
  double *pos = result_create(results, Py_None, "pos", NPY_DOUBLE, count, model->body_count, 3);
  double *rot = result_create(results, Py_None, "rot", NPY_DOUBLE, count, model->body_count, 9);
  int32_t *codes = result_create(results, Py_None, "status", NPY_INT32, count, -1, -1);
  qd_thread_pool *pool = thread_pool_of(state);
  qd_batch *batch = batch_acquire(model);
  qd_status status = pool && batch ? QD_OK : QD_OUT_OF_MEMORY;
  interruptible work;
  if (!PyErr_Occurred() && status == QD_OK &&
      (status = interruptible_begin(&work, state, batch)) == QD_OK) {
    status = qd_body_poses_batch(pool, threads, batch, count, q, stride, pos, rot, codes);
    interruptible_end(&work);
  }
  batch_release(model, batch);
  if (PyErr_Occurred() || status != QD_OK) {
    Py_DECREF(results);
    return PyErr_Occurred() ? NULL : status_raise(state, "body_poses", status, NULL, NULL);
  }
  return results;
}
