/* Paths of spatial tendons and their derivatives: the part of tendon.c that uses strings. */
#ifndef QD_MECHANICS_TENDON_PATH_H
#define QD_MECHANICS_TENDON_PATH_H

#include "mechanics/tendon.h"

/* Fills the points and arcs of a tendon; arcs are stored from index *wraps on. Returns the
 * length. */
double path_place(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                  int *wraps);
/* Fills t->rate and t->slope for all DOFs of the tendon. */
void path_rates(const tendons *t, const qd_model *model, const kinematics *k, int tendon);

/* Motions of the points for a unit motion of DOF j */
void path_move_along(const strand *s, const qd_model *model, const kinematics *k,
                     const tendon_twists *twists, int j);
/* Column j of D -= the resulting change of the generalised forces */
void path_subtract_column(const dof_matrix *D, const strand *s, const qd_model *model,
                          const kinematics *k, double force, int j);
void path_push(double out[2], wrench *W, const strand *s, double force,
               const tendon_direction *along);

#endif
