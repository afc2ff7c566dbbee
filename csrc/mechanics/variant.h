/* A model with parameters of its own and the topology of another model. */
#ifndef QD_MECHANICS_VARIANT_H
#define QD_MECHANICS_VARIANT_H

#include "mechanics/model.h"

/* Followed in memory by the parameters, the quantities that depend on them, and scratch. */
typedef struct model_variant model_variant;

/* Starts with the parameters of `base`, which must outlive the variant. NULL if memory is
 * exhausted. */
model_variant *model_variant_create(const qd_model *base);
void model_variant_destroy(model_variant *variant);

/* Sets the parameters that are not NULL, checked with qd_parameter_check, and updates the
 * quantities that depend on them. The result is bitwise identical to a model created with these
 * parameters. */
void model_variant_set(model_variant *variant, const double *const values[QD_PARAMETER_COUNT]);

/* The variant as a model. It has the sizes of the base, so workspaces fit both. */
const qd_model *model_variant_model(const model_variant *variant);

#endif
