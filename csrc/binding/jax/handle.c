#include "binding/jax/handle.h"

#include <string.h>

#include "binding/batch/batch_call.h"

/* XLA passes no state of ours to its calls, so the list must be found without a module. */
static _Atomic(jax_handle *) handles;

jax_handle *jax_handle_find(int64_t number) {
  jax_handle *handle = atomic_load(&handles);
  while (handle && handle->number != number) {
    handle = handle->next;
  }
  return handle;
}

static void handle_publish(jax_handle *handle) {
  jax_handle *first = atomic_load(&handles);
  do {
    handle->next = first;
    handle->number = first ? first->number + 1 : 1;
  } while (!atomic_compare_exchange_weak(&handles, &first, handle));
}

const char jax_handle_doc[] =
    "_jax_handle($module, model, options, way_options, threads, marks, dynamic, /)\n--\n\n"
    "The number of a new handle for qdsim.jax, which lives for ever; see jax/handle.h.";

PyObject *jax_handle_function(PyObject *module, PyObject *args) {
  core_state *state = PyModule_GetState(module);
  PyObject *model, *options, *way_options;
  int threads, marks, dynamic;
  step_call call, way;
  if (!PyArg_ParseTuple(args, "OOOipp:_jax_handle", &model, &options, &way_options, &threads,
                        &marks, &dynamic) ||
      step_call_configure(&call, state, "jax", model, options, dynamic) < 0 ||
      step_call_derivatives(&call) < 0) {
    return NULL;
  }
  memset(&way, 0, sizeof way);
  if (way_options != Py_None &&
      step_call_configure(&way, state, "jax", model, way_options, 0) < 0) {
    step_call_end(&call);
    return NULL;
  }
  jax_handle *handle = calloc(1, sizeof *handle);
  qd_thread_pool *pool = thread_pool_of(state);
  if (!handle || !pool) {
    free(handle);
    step_call_end(&call);
    step_call_end(&way);
    return PyErr_NoMemory();
  }
  *handle = (jax_handle){.model = call.model->model,
                         .options = call.settings,
                         .way_options = way.settings,
                         .has_way = way_options != Py_None,
                         .marks = marks,
                         .threads = threads,
                         .pool = pool};
  atomic_fetch_add(&state->pool_users, 1); /* a program may run while the interpreter ends */
  Py_INCREF(model);
  /* no step_call_end: the settings point to `held` and `options_owner` */
  handle_publish(handle);
  return PyLong_FromLongLong(handle->number);
}
