/* The solution of a step as all of its derivatives see it: how bodies move under delta, and the
 * wrenches that act on what each of them carries. Floor: dynamics. */
#ifndef QD_DYNAMICS_STEP_POINT_H
#define QD_DYNAMICS_STEP_POINT_H

#include "dynamics/problem/problem.h"
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

#endif
