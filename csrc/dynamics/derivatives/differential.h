/* One direction through a step, and one cotangent back: what both ways share.
 *
 * With z in place of the variables' multipliers, L = -z'r + mu'w + nu'(C d + c) at fixed d, lambda
 * holds everything: r and w are its derivatives along z and mu, and y'dd = dL for z, mu, nu from
 * the solver's adjoint solve (conic.h). Forwards: the change of r, w along a direction. Backwards:
 * the gradient of L. Bodies move by twists, so both cost a sweep over bodies and contacts, no
 * matrix. */
#ifndef QD_DYNAMICS_DIFFERENTIAL_H
#define QD_DYNAMICS_DIFFERENTIAL_H

#include "dynamics/derivatives/step_point.h"
#include "mechanics/inertia.h"

#define DIRECTIONS 4 /* that the solver takes at once */

typedef struct differential {
  int *counts;                       /* (contacts) 1: the contact's rows count */
  contact_point_derivative *by_pose; /* (contacts) */
  contact_point_derivative *by_size; /* (contacts) */
  int poses_known, sizes_known;
  double *masked;   /* (nv) scratch */
  double *by_q;     /* (nv) the gradient by q, where only that by mocap poses is wanted */
  double *z;        /* (nv) */
  double *by_delta; /* (nv) */
  twist_field by_z, mass_z, gravity_z;         /* of z */
  wrench *pose, *twist, *momentum_z, *scratch; /* (nb) */
  wrench *velocity_z, *carried_z, *bounce;     /* (nb) of the second-order step: cotangents of the
                                                * twists under v by inertia, T x* momentum_z, and
                                                * cotangents of these twists by bounces */
  screw *body_motion;                          /* (nb) along a direction */
  screw *axis_motion;                          /* (nv) */
  screw *d_delta, *d_mass_delta, *d_velocity,
      *d_stirred;          /* (nb) changes of twists along a direction */
  double *d_coasting;      /* (nv) likewise of coasting velocities */
  double *by_coasting;     /* (nv) cotangent of these */
  double *tendon_change;   /* (tendon_count) of forces, along a direction */
  double *four_r, *four_x; /* (nv, DIRECTIONS) */
  double *side_x;          /* (nv, DIRECTIONS) four_x on the other side of a kink */
  double *four_e;          /* (equalities, DIRECTIONS) */
} differential;

void differential_lay_out(differential *d, const qd_model *model, int contact_capacity, arena *a);

void differential_need_poses(const solved_step *s);
void differential_need_sizes(const solved_step *s);

/* push/pushforward.c: r (n) of all free variables, w (rows), e (equalities), each with this stride,
 * from tangents (one direction, NULL: zero). */
void pushforward_compute(const solved_step *s, const double *const tangent[QD_ARGUMENT_COUNT],
                         double *r, double *w, double *e, int stride);
/* pull/pullback.c: gradients of L (one cotangent; NULL: not wanted), by_q without the retraction's
 * own part. z (nv) is in the differential, mu (rows) and nu (equalities) have this stride. */
void pullback_compute(const solved_step *s, const double *mu, const double *nu, int stride,
                      double *const gradient[QD_ARGUMENT_COUNT]);

#endif
