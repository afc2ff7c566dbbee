/* By how much a force moves bodies, on average over its directions, at the reference configuration:
 * MuJoCo's body_invweight0 of translations. Floor: mechanics. */
#ifndef QD_MECHANICS_INVERSE_WEIGHTS_H
#define QD_MECHANICS_INVERSE_WEIGHTS_H

#include "mechanics/model.h"

/* body_invweight where the spec does not give it, and pair_weight from it. 0 if memory is
 * exhausted. */
int model_inverse_weights_fill(qd_model *model, const qd_model_spec *spec);

/* What rows between two bodies weigh along (turns = 0) or about an axis (1): never zero where one
 * of them moves. */
double model_weight_between(const qd_model *model, int a, int b, int turns);

#endif
