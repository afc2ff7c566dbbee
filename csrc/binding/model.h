/* The Python object that owns a qd_model. */
#ifndef QD_BINDING_MODEL_H
#define QD_BINDING_MODEL_H

#include "binding/core.h"
#include "binding/workspace_pool.h"

struct model_object {
  PyObject_HEAD qd_model *model; /* NULL until __init__ has run; never changes afterwards */
  _Atomic int is_ready;          /* set last: the whole object can be read */
  uint64_t serial;               /* unlike an address, never reused */
  int nq, nv, nu;
  int body_count, joint_count, geom_count, pair_count, constraint_count, tendon_count, mocap_count;
  int soft_pair_count;
  int is_planar;
  double planar_normal[3];
  int32_t *joint_type; /* (joint_count), owns the block of the next three */
  int32_t *joint_body;
  int32_t *joint_q; /* first index in q */
  int32_t *joint_v; /* first index in v */
  workspace_pool pool;
  _Atomic(qd_batch *) batch; /* idle scratch of a batch, or NULL; exchanged atomically */
};

/* The argument as an initialised model, or NULL with TypeError / RuntimeError. Borrowed. */
model_object *model_of(const core_state *state, PyObject *argument);
/* Reads q, checks it and normalises its quaternions in place. -1 with an exception that names the
 * element or the joint. */
int model_read_q(model_object *self, PyObject *argument, const char *name, double *q);
/* culprits.c: a tuple of strings, the causes of a failed step. */
PyObject *culprits_describe(model_object *model, const qd_culprit *list, int count);
/* model_spec.c: fills self from the dict. -1 with an exception. */
int model_fill(model_object *self, PyObject *spec);

#endif
