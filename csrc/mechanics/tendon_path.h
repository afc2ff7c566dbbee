/* Where spatial tendons lie, and how that changes (tendon.h): the part of tendon.c that knows lines
 * and arcs. */
#ifndef QD_MECHANICS_TENDON_PATH_H
#define QD_MECHANICS_TENDON_PATH_H

#include "mechanics/tendon.h"

/* 1 if the DOF moves the body. */
int body_is_behind(const qd_model *model, int body, int dof);

/* Fills a tendon's points and arcs, the first of which is *wraps; returns its length. */
double path_place(const tendons *t, const qd_model *model, const kinematics *k, int tendon,
                  int *wraps);
/* t->rate and t->slope of all of its DOFs */
void path_rates(const tendons *t, const qd_model *model, const kinematics *k, int tendon);

/* t->motion of the points as they move with DOF j, which moves all that is behind it */
void path_move_along(const tendons *t, const qd_model *model, const kinematics *k,
                     const tendon_twists *twists, int tendon, int j);
/* d (length) and d (rate.delta) from t->motion, whose pulls it fills */
void path_change(double out[2], const tendons *t, const qd_model *model, int tendon);
/* Column j of D -= what that does to the force's generalised forces */
void path_subtract_column(const dof_matrix *D, const tendons *t, const qd_model *model,
                          const kinematics *k, int tendon, double force, int j);
void path_push(double out[2], wrench *W, const tendons *t, const qd_model *model, int tendon,
               double force, const tendon_direction *along);

#endif
