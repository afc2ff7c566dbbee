/* A model with its own parameters on the topology of another one. */
#ifndef QD_MECHANICS_VARIANT_H
#define QD_MECHANICS_VARIANT_H

#include "mechanics/model.h"

/* Followed in memory by the parameters, the quantities that depend on them, and scratch to compute
 * these. */
typedef struct model_variant model_variant;

/* Holds the parameters of the base, which must outlive it. NULL if memory is exhausted. */
model_variant *model_variant_create(const qd_model *base);
void model_variant_destroy(model_variant *variant);

/* Sets the parameters that are not NULL (checked ones: see qd_parameter_check), and updates the
 * quantities that depend on them. The result is bitwise identical to a model made with these
 * parameters. */
void model_variant_set(model_variant *variant, const double *const values[QD_PARAMETER_COUNT]);

/* The variant as a model with the same sizes as the base: workspaces fit both. */
const qd_model *model_variant_model(const model_variant *variant);

#endif
