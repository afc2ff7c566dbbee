/* What XLA's calls are made with: a model and options that live as long as the process. Floor:
 * binding.
 *
 * A compiled program knows a handle by a number. It may outlive every Python object, so a handle is
 * never freed, and holds the model and the mask of held DOFs. Numbers are looked up in a list that
 * only grows, so that one of another process (from a program that was saved) is an error. */
#ifndef QD_BINDING_JAX_HANDLE_H
#define QD_BINDING_JAX_HANDLE_H

#include "binding/core.h"

typedef struct jax_handle {
  struct jax_handle *next;
  int64_t number;
  const qd_model *model;
  qd_step_options options, way_options;
  int has_way; /* derivatives are those of way_options */
  int marks;   /* failed samples are marked; else they are an error */
  int threads;
  qd_thread_pool *pool;
  _Atomic(qd_batch *) batch; /* idle scratch, or NULL */
} jax_handle;

/* NULL: there is none of this number. */
jax_handle *jax_handle_find(int64_t number);

#endif
