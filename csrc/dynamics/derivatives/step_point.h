/* The solution of a step as all of its derivatives see it: how bodies move under delta, and the
 * wrenches that act on what each of them carries. Floor: dynamics. */
#ifndef QD_DYNAMICS_STEP_POINT_H
#define QD_DYNAMICS_STEP_POINT_H

#include "dynamics/problem/problem.h"
#include "mechanics/actuator.h"
#include "mechanics/motion.h"

typedef struct step_point {
  twist_field delta;  /* under delta */
  double *free_delta; /* (nv) delta of DOFs with mass, 0 for the others; of the second-order step
                       * their acceleration (v_next - coasting) / h */
  body_motion motion; /* of the masses: acceleration is the field of free_delta, velocity (of the
                       * second-order step only) that of what is stirred (problem.h) */
  double *mass_scale; /* (nv) epsilon / h^2, 1 in the second-order step; 0 without mass */
  int mass_counts;    /* 1: free_delta and its scale are not zero */
  double *mass_by_h;  /* (nv) derivative of mass_scale free_delta by h, over mass_scale */
  double *falls;      /* (nv) 1: gravity acts on the DOF */
  wrench *forces;     /* (nb) of contacts, constraints and the caller on whole subtrees */
  wrench *momentum;   /* (nb) of subtrees, what their inertia needs for that */
  wrench *weight;     /* (nb) of subtrees */
} step_point;

struct qd_workspace;

/* A step that was solved: what it was given, and its delta; the rest is in the workspace. */
typedef struct solved_step {
  const qd_model *model;
  struct qd_workspace *w;
  const qd_step_options *options;
  const qd_step_input *input;
  const double *delta; /* (nv) */
} solved_step;

void step_point_lay_out(step_point *point, const qd_model *model, arena *a);
void step_point_compute(step_point *point, const solved_step *s);

/* W = force and moment at a point, about the world origin */
void wrench_at(wrench *W, const double point[3], const double force[3], const double moment[3]);
/* Forces of a contact in world axes, from contact-frame ones. */
void contact_world_force(double force[3], double moment[3], const qd_contact *contact,
                         const double frame_force[MOTION_MAX]);

/* ---- actuator_part.c */

/* What changes its force changes stationarity by -slope or, where it has a row of its own, that row
 * by -slope / K and stationarity by -resistance; a limit that moves changes stationarity by
 * -by_lower or -by_upper. */
typedef struct actuator_part {
  actuator_slopes slope;
  int row;                    /* of the problem's rows; -1: none */
  double per_row;             /* -1 / K, K what of the stiffness is in the row */
  actuator_slopes resistance; /* what is in the cost instead (problem_resist) */
  double by_lower, by_upper;
} actuator_part;

/* Of an actuator of a free DOF, or of a tendon with rows. */
actuator_part actuator_part_of(const problem *p, const qd_model *model,
                               const qd_step_options *options, const qd_step_input *input,
                               const double *delta, int actuator);

/* ---- ball_part.c */

/* By the joint's three tangent coordinates: of the rows most - what may be undone, and turn +
 * inverse d, at fixed d (4, 3), and of the generalised force inverse' lambda at fixed lambda. */
typedef struct ball_part {
  double rows[3 * BALL_ROWS];
  double force[9];
} ball_part;

void ball_part_compute(ball_part *out, const problem *p, const ball_limit *limit,
                       const double *delta);

/* ---- inertia_form.c */

/* Gradient, where it is wanted, of -Z.I T by mass and inertia of body b, whose centre of mass is
 * com (world); on_com += that by com. */
void inertia_form_pull(double *const gradient[QD_ARGUMENT_COUNT], double on_com[3],
                       const solved_step *s, int b, const double com[3], const screw *Z,
                       const screw *T);
/* out += dI T along the tangents (NULL: zero) of mass and inertia and d_com, world. */
void inertia_form_push(wrench *out, const solved_step *s,
                       const double *const tangent[QD_ARGUMENT_COUNT], int b, const double com[3],
                       const double d_com[3], const screw *T);

/* ---- coasting_part.c */

/* 1 if a DOF is of a tree that coasts in this step. */
int dof_coasts(const solved_step *s, int dof);
/* change (nv) of the coasting velocities (problem.h) along the tangents, NULL: zero. */
void coasting_push(double *change, const solved_step *s,
                   const double *const tangent[QD_ARGUMENT_COUNT]);
/* gradient, where it is wanted, += that of cotangent (nv) times the coasting velocities. */
void coasting_pull(double *const gradient[QD_ARGUMENT_COUNT], const solved_step *s,
                   const double *cotangent);

#endif
