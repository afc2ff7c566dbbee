/* Batches and solves that a signal may end: Ctrl-C, or any other handler that raises. */
#ifndef QD_BINDING_INTERRUPT_H
#define QD_BINDING_INTERRUPT_H

#include "binding/core.h"

typedef struct interruptible {
  core_state *state;
  qd_batch *batch;
  PyThreadState *thread;
  int64_t next_look;          /* ns of the monotonic clock */
  int has_raised;             /* a handler has raised, and the exception is set */
  int (*stop)(void *context); /* for the options of a solve, with this struct as the context */
} interruptible;

/* batch: NULL for one solve, which uses `stop` in its options. From here to interruptible_end the
 * GIL is released, and the thread pool is in use. In Python's main thread, which runs signal
 * handlers, the batch checks for signals a few times per second; once a handler has raised, it
 * returns QD_STOPPED, and the exception is set. If that happens here already, this returns
 * QD_STOPPED, and interruptible_end must not be called. */
qd_status interruptible_begin(interruptible *self, core_state *state, qd_batch *batch);
void interruptible_end(interruptible *self);

#endif
