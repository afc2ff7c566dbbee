/* The model and options of XLA's calls, which live as long as the process.
 *
 * A compiled program refers to a handle by a number. It may outlive every Python object, so a
 * handle is never freed, and keeps the model and the mask of held DOFs. Numbers are looked up in a
 * list that only grows, so a number of another process (from a saved program) is an error. */
#ifndef QD_BINDING_JAX_HANDLE_H
#define QD_BINDING_JAX_HANDLE_H

#include "binding/core.h"

typedef struct jax_handle {
  struct jax_handle *next;
  int64_t number;
  const qd_model *model;
  qd_step_options options, way_options;
  int has_way; /* derivatives are those of way_options */
  int marks;   /* failed samples are marked; otherwise they are an error */
  int threads;
  qd_thread_pool *pool;
  _Atomic(qd_batch *) batch; /* idle scratch, or NULL */
} jax_handle;

/* NULL: no handle has this number. */
jax_handle *jax_handle_find(int64_t number);

#endif
