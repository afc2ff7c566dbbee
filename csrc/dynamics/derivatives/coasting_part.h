/* What products of derivatives with vectors know of bodies that coast. */
#ifndef QD_DYNAMICS_COASTING_PART_H
#define QD_DYNAMICS_COASTING_PART_H

#include "dynamics/derivatives/step_point.h"

/* 1 if a DOF is of a tree that coasts in this step. */
int dof_coasts(const solved_step *s, int dof);
/* change (nv) of the coasting velocities (problem.h) along the tangents, NULL: zero. */
void coasting_push(double *change, const solved_step *s,
                   const double *const tangent[QD_ARGUMENT_COUNT]);
/* gradient, where it is wanted, += that of cotangent (nv) times the coasting velocities. */
void coasting_pull(double *const gradient[QD_ARGUMENT_COUNT], const solved_step *s,
                   const double *cotangent);

#endif
