/* The energy of a soft pair up to second order, in the numbers that its bodies' displacement has:
 * of each body by how much its frame's origin moves, along a straight line, and its rotation
 * vector. In these a step's programs are linear, so that nothing is left out: a ball that rolls on
 * a plane keeps its height. Floor: dynamics. */
#ifndef QD_DYNAMICS_PRESSURE_ENERGY_H
#define QD_DYNAMICS_PRESSURE_ENERGY_H

#include "dynamics/problem/pressure_contact.h"

/* A body's numbers by a twist. */
void pressure_numbers(double out[6], const pressure_body *body, const screw *twist);
/* What a body's frame does by a change of its numbers: velocity of what is at x now, and turning.
 */
void pressure_motion_of(double motion[6], const pressure_body *body, const double x[3],
                        const double numbers[6]);
/* Minus the energy's gradient, of the pair's wrench. */
void pressure_energy_load(soft_pair *pair);
/* The Hessian by the pair's tangent and wrench, without what makes it negative where bodies turn
 * about points at arm from their frames. */
void pressure_energy_hessian(soft_pair *pair, const double arm[2][3]);
/* Hessian += that of the relative motion of the pair's centre. */
void pressure_energy_add(soft_pair *pair, const double by[36]);
/* Motion (6) of the second body against the first by a displacement's first-order change: of the
 * point that is at x now, then turning. screw: of the bodies. */
void pressure_relative_motion(double motion[6], const soft_pair *pair, const double x[3],
                              const screw twist[2]);
/* What a body's frame does: velocity of what is at x now, and turning, by a change of its twist. */
void pressure_body_motion(double motion[6], const pressure_body *body, const double x[3],
                          const screw *twist);

#endif
