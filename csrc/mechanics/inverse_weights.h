/* Inverse weights of bodies at the reference configuration: acceleration per unit force, averaged
 * over directions (MuJoCo's body_invweight0, translational part). */
#ifndef QD_MECHANICS_INVERSE_WEIGHTS_H
#define QD_MECHANICS_INVERSE_WEIGHTS_H

#include "mechanics/model.h"

/* Fills body_invweight where the spec does not give it, and pair_weight from it. Returns 0 if
 * memory is exhausted. */
int model_inverse_weights_fill(qd_model *model, const qd_model_spec *spec);

/* Inverse weight of rows between two bodies, along (turns = 0) or about (1) an axis. It is positive
 * if one of them moves. */
double model_weight_between(const qd_model *model, int a, int b, int turns);

#endif
