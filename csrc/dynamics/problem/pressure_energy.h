/* The energy of a soft pair to second order in the numbers of its bodies' displacements: for each
 * body the displacement of its frame's origin, along a straight line, and its rotation vector. The
 * programs of a step are linear in these numbers, so the model has no further error: a ball that
 * rolls on a plane keeps its height. */
#ifndef QD_DYNAMICS_PRESSURE_ENERGY_H
#define QD_DYNAMICS_PRESSURE_ENERGY_H

#include "dynamics/problem/pressure_contact.h"

/* A body's numbers for a twist. */
void pressure_numbers(double out[6], const pressure_body *body, const screw *twist);
/* Minus the energy's gradient, from the pair's wrench. */
void pressure_energy_load(soft_pair *pair);
/* The Hessian from the pair's tangent and wrench, projected to be positive semidefinite; for the
 * projection, bodies rotate about the points at `arm` from their frames. */
void pressure_energy_hessian(soft_pair *pair, const double arm[2][3]);
/* Hessian += that of `by`, a matrix of the relative motion of the pair's centre. */
void pressure_energy_add(soft_pair *pair, const double by[36]);
/* Relative motion (6) of the second body for small twists of both: velocity of the point that is
 * now at x, then angular velocity. */
void pressure_relative_motion(double motion[6], const soft_pair *pair, const double x[3],
                              const screw twist[2]);
/* Motion of a body's frame for a change of its twist: velocity of the point that is now at x, and
 * angular velocity. */
void pressure_body_motion(double motion[6], const pressure_body *body, const double x[3],
                          const screw *twist);

#endif
