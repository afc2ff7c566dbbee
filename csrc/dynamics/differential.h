/* One direction through a step, and one cotangent back: what both ways share.
 *
 * With z in place of the variables' multipliers, L = -z'r + mu'w + nu'(C d + c) at fixed d, lambda
 * holds everything: r and w are its derivatives along z and mu, and y'dd = dL for z, mu, nu from
 * the solver's adjoint solve (conic.h). Forwards: the change of r, w along a direction. Backwards:
 * the gradient of L. Bodies move by twists, so both cost a sweep over bodies and contacts, no
 * matrix. */
#ifndef QD_DYNAMICS_DIFFERENTIAL_H
#define QD_DYNAMICS_DIFFERENTIAL_H

#include "dynamics/problem/problem.h"
#include "mechanics/inertia.h"

#define DIRECTIONS 4 /* that the solver takes at once */

/* Twists of all bodies under a vector over DOFs, and the part that DOF j does not move: itself, its
 * block and what is before it. */
typedef struct twist_field {
  screw *body;    /* (nb) */
  screw *unmoved; /* (nv) */
} twist_field;

typedef struct differential {
  int *counts;                       /* (contacts) 1: the contact's rows count */
  contact_point_derivative *by_pose; /* (contacts) */
  contact_point_derivative *by_size; /* (contacts) */
  int poses_known, sizes_known;
  double *mass_scale;                          /* (nv) epsilon / h^2, 0 for actuated DOFs */
  double *falls;                               /* (nv) 1: gravity acts on the DOF */
  double *masked;                              /* (nv) scratch */
  double *z;                                   /* (nv) */
  double *by_delta;                            /* (nv) */
  twist_field delta, mass_delta;               /* of the step; the latter of unactuated DOFs */
  twist_field by_z, mass_z, gravity_z;         /* of z */
  wrench *forces;                              /* (nb) of contacts, constraints, caller; subtrees */
  wrench *momentum;                            /* (nb) under mass_delta; of subtrees */
  wrench *weight;                              /* (nb) of subtrees */
  wrench *pose, *twist, *momentum_z, *scratch; /* (nb) */
  screw *body_motion;                          /* (nb) along a direction */
  screw *axis_motion;                          /* (nv) */
  screw *d_delta, *d_mass_delta;               /* (nb) changes of twists along a direction */
  double *four_r, *four_x;                     /* (nv, DIRECTIONS) */
  double *four_e;                              /* (equalities, DIRECTIONS) */
} differential;

void differential_lay_out(differential *d, const qd_model *model, int contact_capacity, arena *a);

struct qd_workspace;

/* Everything that a step's derivatives are taken along. */
typedef struct differential_step {
  const qd_model *model;
  struct qd_workspace *w;
  const qd_step_options *options;
  const qd_step_input *input;
  const double *delta; /* (nv) */
} differential_step;

void twist_field_compute(twist_field *out, const qd_model *model, const kinematics *k,
                         const double *vector);
/* Sums over each body and all behind it, in place. */
void wrench_sum_subtrees(wrench *w, const qd_model *model);
/* W = force and moment at a point, about the world origin */
void wrench_at(wrench *W, const double point[3], const double force[3], const double moment[3]);
/* Forces of a contact in world axes, from contact-frame ones. */
void contact_world_force(double force[3], double moment[3], const qd_contact *contact,
                         const double frame_force[MOTION_MAX]);
void differential_need_poses(const differential_step *s);
void differential_need_sizes(const differential_step *s);

/* pushforward.c: r (n) of all free variables, w (rows), e (equalities), each with this stride, from
 * tangents (one direction, NULL: zero). */
void pushforward_compute(const differential_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                         double *r, double *w, double *e, int stride);
/* pullback.c: gradients of L (one cotangent; NULL: not wanted), by_q without the retraction's own
 * part. z (nv) is in the differential, mu (rows) and nu (equalities) have this stride. */
void pullback_compute(const differential_step *s, const double *mu, const double *nu, int stride,
                      double *const gradient[QD_ARGUMENT_COUNT]);

#endif
