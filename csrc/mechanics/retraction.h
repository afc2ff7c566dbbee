/* The retraction q [+] v on the product of joint manifolds, and its derivatives. */
#ifndef QD_MECHANICS_RETRACTION_H
#define QD_MECHANICS_RETRACTION_H

#include "mechanics/model.h"

/* D (nv, columns): converts derivatives of delta to derivatives of q [+] delta, in place. Rows of
 * scalar and translation DOFs are unchanged; rows of rotations are multiplied by the left Jacobian
 * of exp at delta. */
void retraction_apply_derivative(double *D, const qd_model *model, const double *delta,
                                 int columns);
/* A (nv, nv) += derivative of q [+] delta with respect to q at fixed delta: the identity, or
 * exp(delta) for rotations. */
void retraction_add_base_derivative(double *A, const qd_model *model, const double *delta);

/* For one direction: out (nv) = change of q [+] delta for changes dq of q and d_delta of delta. */
void retraction_push(double *out, const qd_model *model, const double *delta, const double *dq,
                     const double *d_delta);
/* For one cotangent y of q [+] delta: its pullbacks to q and to delta. */
void retraction_pull(double *by_q, double *by_delta, const qd_model *model, const double *delta,
                     const double *y);

/* For v = q [-] q0: out (nv) = change of v for a change dq of q, and by_q (nv) = pullback of a
 * cotangent y of v to q. */
void retraction_difference_push(double *out, const qd_model *model, const double *v,
                                const double *dq);
void retraction_difference_pull(double *by_q, const qd_model *model, const double *v,
                                const double *y);

/* Conversion between the numbers of q and tangent coordinates, for functions f(normalize(q)) with
 * quaternions of any length: dq = J v and v = E dq, with E = 4 J' / |quaternion|^2 for
 * rotations. */
void retraction_ambient(double *dq, const qd_model *model, const double *q, const double *v);
void retraction_ambient_pull(double *by_v, const qd_model *model, const double *q,
                             const double *by_q);
void retraction_tangent(double *v, const qd_model *model, const double *q, const double *dq);
void retraction_tangent_pull(double *by_q, const qd_model *model, const double *q,
                             const double *by_v);

#endif
