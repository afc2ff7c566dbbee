/* What solve_cone_program and its benchmark share. Floor: binding. */
#ifndef QD_BINDING_CONE_CALL_H
#define QD_BINDING_CONE_CALL_H

#include "binding/core.h"

typedef struct cone_call {
  PyArrayObject *arrays[9]; /* Q b G g cone_kind cone_dim C c target_mu; NULL where not given */
  qd_cone_program program;  /* points into the arrays */
  qd_cone_workspace *workspace;
} cone_call;

/* in: Q b G g cone_kind cone_dim C c target_mu; the last three may be None or NULL. -1 with an
 * exception, and then nothing is left to end. */
int cone_call_begin(cone_call *call, PyObject *const *in);
void cone_call_end(cone_call *call);

#endif
