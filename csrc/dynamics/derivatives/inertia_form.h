/* How a body's inertia changes with its parameters: what pullbacks and pushforwards of masses ask.
 */
#ifndef QD_DYNAMICS_INERTIA_FORM_H
#define QD_DYNAMICS_INERTIA_FORM_H

#include "dynamics/derivatives/step_point.h"

/* Gradient, where it is wanted, of -Z.I T by mass and inertia of body b, whose centre of mass is
 * com (world); on_com += that by com. */
void inertia_form_pull(double *const gradient[QD_ARGUMENT_COUNT], double on_com[3],
                       const solved_step *s, int b, const double com[3], const screw *Z,
                       const screw *T);
/* out += dI T along the tangents (NULL: zero) of mass and inertia and d_com, world. */
void inertia_form_push(wrench *out, const solved_step *s,
                       const double *const tangent[QD_ARGUMENT_COUNT], int b, const double com[3],
                       const double d_com[3], const screw *T);

#endif
