/* What contacts add to the partial derivatives of a step (linearize.c). */
#ifndef QD_DYNAMICS_CONTACT_DERIVATIVE_H
#define QD_DYNAMICS_CONTACT_DERIVATIVE_H

#include "dynamics/workspace.h"

/* The screws of the island's columns, four side by side; twists of bodies are known. */
void contact_derivative_prepare(const qd_workspace *w, sensitivity *s);
/* Adds one contact to D, and writes its rows of d_slack, whose first row is the island's. */
void contact_derivative_add(const qd_model *model, const qd_workspace *w, sensitivity *s,
                            const island *one, int index, const qd_step_options *o);

#endif
