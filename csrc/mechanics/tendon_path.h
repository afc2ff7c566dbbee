/* Where spatial tendons lie, and how that changes (tendon.h): the part of tendon.c that knows
 * strings. */
#ifndef QD_MECHANICS_TENDON_PATH_H
#define QD_MECHANICS_TENDON_PATH_H

#include "mechanics/tendon.h"

/* Fills a tendon's points and arcs, the first of which is *wraps; returns its length. */
double path_place(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                  int *wraps);
/* t->rate and t->slope of all of its DOFs */
void path_rates(const tendons *t, const qd_model *model, const kinematics *k, int tendon);

/* Motions of the points as they move with DOF j, which moves all that is behind it */
void path_move_along(const strand *s, const qd_model *model, const kinematics *k,
                     const tendon_twists *twists, int j);
/* Column j of D -= what that does to the force's generalised forces */
void path_subtract_column(const dof_matrix *D, const strand *s, const qd_model *model,
                          const kinematics *k, double force, int j);
void path_push(double out[2], wrench *W, const strand *s, double force,
               const tendon_direction *along);

#endif
