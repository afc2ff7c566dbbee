/* A model with parameters of its own on the topology of another one. */
#ifndef QD_MECHANICS_VARIANT_H
#define QD_MECHANICS_VARIANT_H

#include "mechanics/model.h"

/* Behind the struct: the parameters and what follows from them, and scratch to compute that. */
typedef struct model_variant model_variant;

/* Holds the parameters of the base, which must outlive it. NULL if memory is exhausted. */
model_variant *model_variant_create(const qd_model *base);
void model_variant_destroy(model_variant *variant);

/* Takes the parameters that are not NULL (checked ones: see qd_parameter_check), and brings what
 * follows from them up to date. The bits are those of a model made with these parameters. */
void model_variant_set(model_variant *variant, const double *const values[QD_PARAMETER_COUNT]);

/* A model like any other, of the same sizes as the base: workspaces fit both. */
const qd_model *model_variant_model(const model_variant *variant);

#endif
