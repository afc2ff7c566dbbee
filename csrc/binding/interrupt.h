/* Batches and solves that a signal may end: Ctrl-C, or whatever handler raises. Floor: binding. */
#ifndef QD_BINDING_INTERRUPT_H
#define QD_BINDING_INTERRUPT_H

#include "binding/core.h"

typedef struct interruptible {
  core_state *state;
  qd_batch *batch;
  PyThreadState *thread;
  int64_t next_look;          /* ns of the monotonic clock */
  int has_raised;             /* a handler, and the exception is set */
  int (*stop)(void *context); /* what a solve's options take, with this struct as the context */
} interruptible;

/* batch: NULL for one solve, which takes `stop` into its options. From here to interruptible_end
 * the GIL is released, and the thread pool is in use. In Python's main thread, the one that runs
 * signal handlers, the batch looks for signals a few times a second; it returns QD_STOPPED once a
 * handler has raised, and the exception is set. If that happens here already, this returns
 * QD_STOPPED, and there is nothing to end. */
qd_status interruptible_begin(interruptible *self, core_state *state, qd_batch *batch);
void interruptible_end(interruptible *self);

#endif
