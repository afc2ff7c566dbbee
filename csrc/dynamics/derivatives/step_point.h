/* The solution of a step for its derivatives: motion of the bodies under delta, and the wrenches on
 * the subtrees of bodies. */
#ifndef QD_DYNAMICS_STEP_POINT_H
#define QD_DYNAMICS_STEP_POINT_H

#include "dynamics/problem/problem.h"
#include "mechanics/actuator.h"
#include "mechanics/coasting.h"
#include "mechanics/motion.h"

typedef struct step_point {
  twist_field delta;  /* under delta */
  double *free_delta; /* (nv) delta of DOFs with mass, 0 for the others; in the second-order step
                         their acceleration (v_next - coasting) / h */
  body_motion motion; /* of the masses: acceleration is the field of free_delta, velocity
                         (second-order step only) that of `stirred` (problem.h) */
  double *mass_scale; /* (nv) epsilon / h^2, 1 in the second-order step; 0 without mass */
  int mass_counts;    /* 1: free_delta and its scale are not zero */
  double *mass_by_h;  /* (nv) derivative of mass_scale free_delta by h, over mass_scale */
  double *falls;      /* (nv) 1: gravity acts on the DOF */
  wrench *forces;     /* (nb) of contacts, constraints and the caller, summed over subtrees */
  wrench *momentum;   /* (nb) summed over subtrees, required by their inertia */
  wrench *weight;     /* (nb) summed over subtrees */
} step_point;

struct qd_workspace;

/* A solved step: its inputs and its delta; the rest is in the workspace. If the step has a last
 * stage (integration.h), its program has another delta than its result. */
typedef struct solved_step {
  const qd_model *model;
  struct qd_workspace *w;
  const qd_step_options *options;
  const qd_step_input *input;
  const double *delta;     /* (nv) */
  const step_point *point; /* at delta; NULL: that of the workspace */
} solved_step;

void step_point_lay_out(step_point *point, const qd_model *model, arena *a);
void step_point_compute(step_point *point, const solved_step *s);

/* Contact-frame forces in world axes. */
void contact_world_force(double force[3], double moment[3], const qd_contact *contact,
                         const double frame_force[MOTION_MAX]);

/* ---- actuator_part.c */

/* Changes of the force change stationarity by -slope. For an actuator with a row, they change that
 * row by -slope / K and stationarity by -resistance. Changes of the limits change stationarity by
 * -by_lower or -by_upper. */
typedef struct actuator_part {
  actuator_slopes slope;
  int row;                    /* into the problem's rows; -1: none */
  double per_row;             /* -1 / K, K the stiffness in the row */
  actuator_slopes resistance; /* the stiffness in the cost (problem_resist) */
  double by_lower, by_upper;
} actuator_part;

/* For an actuator of a free DOF, or of a tendon with rows. */
actuator_part actuator_part_of(const solved_step *s, int actuator);

/* The same for a row of one of the last two kinds: of an actuator, or of springs and dampers. */
actuator_part tendon_part_of(const solved_step *s, const tendon_row *row);

/* ---- ball_part.c */

/* Derivatives by the joint's three tangent coordinates: of the rows most (with the correction of
 * one step) and turn + inverse d, at fixed d (4, 3), and of the generalised force inverse' lambda
 * at fixed lambda. */
typedef struct ball_part {
  double rows[3 * BALL_ROWS];
  double force[9];
} ball_part;

void ball_part_compute(ball_part *out, const problem *p, const ball_limit *limit,
                       const double *delta);

/* ---- coasting_part.c */

/* 1 if a DOF belongs to a tree that coasts in this step. */
int dof_coasts(const solved_step *s, int dof);
/* 1 if a tree coasts in this step, with its motion and derivatives. */
int coasting_part(coasting *c, coasting_derivative *d, const solved_step *s, int tree);
/* change (nv) of the coasting velocities (problem.h) along the tangents; NULL: zero. */
void coasting_push(double *change, const solved_step *s,
                   const double *const tangent[QD_ARGUMENT_COUNT]);
/* Adds to the gradient, if it is wanted, that of cotangent (nv) times the coasting velocities. */
void coasting_pull(double *const gradient[QD_ARGUMENT_COUNT], const solved_step *s,
                   const double *cotangent);

#endif
