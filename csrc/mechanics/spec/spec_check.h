/* Checks a model spec before anything is built from it. */
#ifndef QD_MECHANICS_SPEC_SPEC_CHECK_H
#define QD_MECHANICS_SPEC_SPEC_CHECK_H

#include "qdsim.h"

/* QD_OK, or QD_BAD_ARGUMENT / QD_NOT_FINITE with a message that names array, index and reason. */
qd_status model_spec_check(const qd_model_spec *spec, char *message, size_t message_size);

/* Checks of single elements. They return the reason of a fault, or NULL. */
int is_inertia(const double *I);
const char *geom_size_fault(int type, const double *size);
const char *geom_modulus_fault(int is_soft, double modulus);
/* For a pair (lower, upper): 1 if no number lies between them, or if one is NaN. */
int range_is_empty(const double *range);
const char *force_range_fault(const double *range);
const char *pair_friction_fault(int dim, const double *friction);

#endif
