/* q [+] v on the product of joint manifolds, and its derivatives. */
#ifndef QD_MECHANICS_RETRACTION_H
#define QD_MECHANICS_RETRACTION_H

#include "mechanics/model.h"

/* D (nv, columns) <- derivative of (q [+] delta) from that of delta: rows of scalar and translation
 * DOFs stay, rows of rotations are multiplied by the left Jacobian of exp at delta. */
void retraction_apply_derivative(double *D, const qd_model *model, const double *delta,
                                 int columns);
/* A (nv, nv) += derivative of (q [+] delta) along q at fixed delta: identity, exp(delta) for
 * rotations. */
void retraction_add_base_derivative(double *A, const qd_model *model, const double *delta);

#endif
