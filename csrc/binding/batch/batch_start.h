/* Guesses of a batch. */
#ifndef QD_BINDING_BATCH_START_H
#define QD_BINDING_BATCH_START_H

#include "binding/step_call.h"

typedef struct batch_start {
  qd_step_start one;       /* for all samples */
  qd_step_start *starts;   /* one per sample, owned, or NULL */
  PyArrayObject *contacts; /* strong or NULL */
} batch_start;

/* Reads None; a Step or a Linearization for all samples; or a tuple (contact_start, contacts,
 * delta, limit_force, constraint_force, tendon_force) from an earlier batch with the same number of
 * samples. The arrays are used in place. -1 with an exception; batch_start_end must be called in
 * any case. */
int batch_start_begin(batch_start *self, const step_call *call, PyObject *object,
                      qd_batch_input *input);
void batch_start_end(batch_start *self);

#endif
