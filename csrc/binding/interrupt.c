#include "binding/interrupt.h"

#include <time.h>

#define LOOK_NANOSECONDS 50000000

#ifdef CLOCK_MONOTONIC_COARSE /* accurate to milliseconds, and the cheapest to read */
#define LOOK_CLOCK CLOCK_MONOTONIC_COARSE
#else
#define LOOK_CLOCK CLOCK_MONOTONIC
#endif

static int64_t clock_now(void) {
  struct timespec now;
  clock_gettime(LOOK_CLOCK, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The stop callback of the main thread. */
static int signal_has_raised(void *context) {
  interruptible *self = context;
  if (self->has_raised || clock_now() < self->next_look) {
    return self->has_raised;
  }
  PyEval_RestoreThread(self->thread);
  self->has_raised = PyErr_CheckSignals() < 0;
  self->thread = PyEval_SaveThread();
  self->next_look = clock_now() + LOOK_NANOSECONDS;
  return self->has_raised;
}

/* Other threads must not take the GIL while helpers work on data on their stack: if the interpreter
 * ends meanwhile, a thread that asks for the GIL never returns. A program that has not imported
 * threading has no other threads. -1 with an exception: this runs Python code, hence signal
 * handlers. */
static int is_main_thread(const core_state *state) {
  PyObject *threading = PyImport_GetModule(state->text_threading);
  if (!threading) {
    return PyErr_Occurred() ? -1 : 1;
  }
  PyObject *thread = PyObject_CallMethod(threading, "main_thread", NULL);
  PyObject *ident = thread ? PyObject_GetAttrString(thread, "ident") : NULL;
  int is_main = ident ? 0 : -1;
  if (ident && PyLong_Check(ident)) {
    is_main = PyLong_AsUnsignedLongMask(ident) == PyThread_get_thread_ident();
  }
  Py_XDECREF(ident);
  Py_XDECREF(thread);
  Py_DECREF(threading);
  return is_main;
}

qd_status interruptible_begin(interruptible *self, core_state *state, qd_batch *batch) {
  const int is_main = is_main_thread(state);
  if (is_main < 0) {
    return QD_STOPPED;
  }
  self->state = state;
  self->batch = batch;
  self->has_raised = 0;
  self->stop = is_main ? signal_has_raised : NULL;
  if (batch) {
    atomic_fetch_add(&state->pool_users, 1);
    qd_batch_set_stop(batch, self->stop, self);
  }
  self->thread = PyEval_SaveThread();
  self->next_look = clock_now() + LOOK_NANOSECONDS;
  return QD_OK;
}

void interruptible_end(interruptible *self) {
  PyEval_RestoreThread(self->thread);
  if (self->batch) {
    qd_batch_set_stop(self->batch, NULL, NULL);
    atomic_fetch_sub(&self->state->pool_users, 1);
  }
}
