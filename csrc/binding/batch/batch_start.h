/* Guesses of a batch. Floor: binding. */
#ifndef QD_BINDING_BATCH_START_H
#define QD_BINDING_BATCH_START_H

#include "binding/step_call.h"

typedef struct batch_start {
  qd_step_start one;       /* for all samples */
  qd_step_start *starts;   /* one each, owned, or NULL */
  PyArrayObject *contacts; /* strong or NULL */
} batch_start;

/* None; a Step or a Linearization for all samples; or a tuple (contact_start, contacts, delta,
 * limit_force, constraint_force, tendon_force) as an earlier batch of as many samples has filled
 * them. What the object holds is used in place. -1 with an exception; end it in any case. */
int batch_start_begin(batch_start *self, const step_call *call, PyObject *object,
                      qd_batch_input *input);
void batch_start_end(batch_start *self);

#endif
