/* The solution of a step as all of its derivatives see it: how bodies move under delta, and the
 * wrenches that act on what each of them carries. Floor: dynamics. */
#ifndef QD_DYNAMICS_STEP_POINT_H
#define QD_DYNAMICS_STEP_POINT_H

#include "dynamics/problem/problem.h"
#include "mechanics/inertia.h"

/* Twists of all bodies under a vector over DOFs, and the part that DOF j does not move: itself, its
 * block and what is before it. */
typedef struct twist_field {
  screw *body;    /* (nb) */
  screw *unmoved; /* (nv) */
} twist_field;

typedef struct step_point {
  twist_field delta;      /* under delta */
  double *free_delta;     /* (nv) delta of unactuated DOFs, 0 for the others */
  twist_field mass_delta; /* under free_delta */
  double *mass_scale;     /* (nv) epsilon / h^2, 0 for actuated DOFs */
  int mass_counts;        /* 1: free_delta and its scale are not zero */
  double *falls;          /* (nv) 1: gravity acts on the DOF */
  wrench *forces;         /* (nb) of contacts, constraints and the caller on whole subtrees */
  wrench *momentum;       /* (nb) of subtrees under mass_delta */
  wrench *weight;         /* (nb) of subtrees */
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

void twist_field_lay_out(twist_field *field, const qd_model *model, arena *a);
void twist_field_compute(twist_field *out, const qd_model *model, const kinematics *k,
                         const double *vector);
/* Sums over each body and all behind it, in place. */
void wrench_sum_subtrees(wrench *w, const qd_model *model);
/* W = force and moment at a point, about the world origin */
void wrench_at(wrench *W, const double point[3], const double force[3], const double moment[3]);
/* Forces of a contact in world axes, from contact-frame ones. */
void contact_world_force(double force[3], double moment[3], const qd_contact *contact,
                         const double frame_force[MOTION_MAX]);

#endif
