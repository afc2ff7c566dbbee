/* How friction of patches depends on sliding (qd_patch_law, formulation 8).
 *
 * If a polygon slides by c, its tangents' rows are s = c + before + give f, with the force f in the
 * disc. s is zero if it sticks; if f is on the boundary, s is the additional sliding. A rigid disc
 * has neither term; regularised friction is compliant like a damper, bristles are stretched
 * springs. */
#ifndef QD_DYNAMICS_PRESSURE_FRICTION_H
#define QD_DYNAMICS_PRESSURE_FRICTION_H

#include "dynamics/problem/pressure_energy.h"

/* Fills the rest of an element whose force, radius and frame are known. */
void pressure_friction_follow(pressure_element *out, const soft_pair *pair,
                              const qd_step_options *o);

/* The elastic cone: each polygon's force grows by mu times its stiffness times its sliding
 * distance, which lifts sliding bodies. Adds to the wrench and to the polygons' shares. */
void pressure_friction_lift(pressure_contact *s, soft_pair *pair, int polygons);
/* This slope of the force, N/m: mu times the stiffness of a polygon. */
double pressure_friction_rise(const qd_model *model, const soft_pair *pair,
                              const qd_patch_polygon *at);

/* Bristles in the world: stretch at x (out), and rotation of the second body. */
void pressure_friction_stretch(double out[3], double turned[3], const soft_pair *pair,
                               const double x[3]);
/* Factor of the bristles in `before`: h / (h + bristle_time); 0 under other laws. */
double pressure_friction_part(const qd_step_options *o);
/* Bristles after the step, from the multipliers of its last program. */
void pressure_friction_settle(double out[QD_BRISTLES], const pressure_contact *s,
                              const soft_pair *pair, const double *dual);

#endif
