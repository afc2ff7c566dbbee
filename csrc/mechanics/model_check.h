/* Checks a model spec before anything is built from it. */
#ifndef QD_MECHANICS_MODEL_CHECK_H
#define QD_MECHANICS_MODEL_CHECK_H

#include "qdsim.h"

/* QD_OK, or QD_BAD_ARGUMENT / QD_NOT_FINITE with a message that names array, index and reason. */
qd_status model_spec_check(const qd_model_spec *spec, char *message, size_t message_size);

#endif
