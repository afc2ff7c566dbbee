/* How friction of patches answers to sliding (qd_patch_law, formulation 8).
 *
 * Where a polygon slides by c, its tangents' rows are s = c + before + give f with the force f in
 * the disc: s is zero where it sticks, how far it has slid beyond that where f is on the rim. A
 * disc has neither term; regularised friction gives way as a damper does, bristles as a spring that
 * is stretched already. Floor: dynamics. */
#ifndef QD_DYNAMICS_PRESSURE_FRICTION_H
#define QD_DYNAMICS_PRESSURE_FRICTION_H

#include "dynamics/problem/pressure_energy.h"

/* Of an element with its force, radius and frame: the rest. */
void pressure_friction_follow(pressure_element *out, const soft_pair *pair,
                              const qd_step_options *o);

/* The elastic cone: each polygon's force grows by mu times its stiffness times how far it slides,
 * which lifts what slides. Adds to the wrench and the polygons' shares. */
void pressure_friction_lift(pressure_contact *s, soft_pair *pair, const qd_model *model,
                            int polygons);
/* N/m by which it grows: mu times the stiffness of a polygon. */
double pressure_friction_rise(const qd_model *model, const soft_pair *pair,
                              const qd_patch_polygon *at);

/* Bristles, in the world: how far the second body has gone at x (out), and how it has turned. */
void pressure_friction_stretch(double out[3], double turned[3], const soft_pair *pair,
                               const double x[3]);
/* Their part of what elements have slid before: h / (h + bristle_time); 0 under other laws. */
double pressure_friction_part(const qd_step_options *o);
/* Where they are after the step whose last program has these multipliers. */
void pressure_friction_settle(double out[QD_BRISTLES], const pressure_contact *s,
                              const soft_pair *pair, const double *dual, const qd_step_options *o);

#endif
