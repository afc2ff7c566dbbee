/* Tendons. The length of a fixed tendon is a sum over scalar joints; that of a spatial tendon is
 * the length of lines between points of bodies and around geometries. A thrust is a force and
 * moment fixed to a body. A reach is the position, along a direction of one body, of a point of
 * another body, perhaps plus their relative rotation. A force along a tendon is positive if it
 * lengthens the tendon. */
#ifndef QD_MECHANICS_TENDON_H
#define QD_MECHANICS_TENDON_H

#include "geometry/strand.h"
#include "mechanics/dof_matrix.h"
#include "mechanics/kinematics.h"

enum { TURNING_POINTS = 5 }; /* number of points of a rotational reach; other reaches have three */

typedef struct tendons {
  double *length; /* (tendon_count) */
  double *slope;  /* (DOFs of all tendons) derivative of the length */
  double *rate;   /* (the same) generalised force of a unit force along it: the slope, except for a
                     rotational reach, whose couple is about a fixed axis of its second body */
  strand_point *point;   /* (points of all tendons); for spatial ones the active points, in order */
  int *path_count;       /* (tendon_count) number of active points of a spatial tendon */
  strand_wrap *wrap;     /* (geometries that tendons may wrap around) the touched ones */
  strand_motion *motion; /* (points of all tendons) scratch of the derivatives */
  double *change; /* (2, nv) result of tendon_linearize; the second half belongs to the caller */
} tendons;

void tendons_lay_out(tendons *t, const qd_model *model, arena *a);
void tendons_compute(const tendons *t, const qd_model *model, const kinematics *k, const double *q);
/* The string of a spatial tendon. */
static inline strand tendon_strand(const tendons *t, const qd_model *model, int tendon) {
  const int first = model->tendon.start[tendon];
  return (strand){t->point + first, t->motion + first, t->wrap, t->path_count[tendon]};
}
/* Computes the derivatives of the arcs; call this before any other derivative. */
void tendons_differentiate(const tendons *t, const qd_model *model);

/* Generalised force on one DOF of a unit force along a tendon. */
double tendon_rate(const tendons *t, const qd_model *model, int tendon, int dof);

/* W = wrench, about the world origin, of a unit force along a thrust; it moves with its body */
void tendon_thrust_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon);
/* 1 for a rotational reach: it has five points, the last two of which hold a rotation vector and an
 * axis. */
int tendon_reach_turns(const qd_model *model, int tendon);
/* W = wrench, about the world origin, of a unit force along a reach on the body of its first point.
 * The second body gets the opposite wrench. */
void tendon_reach_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon);
/* The same, with the exact derivative of the length of a rotational reach instead of the couple. */
void tendon_reach_slope(wrench *W, const tendons *t, const qd_model *model, int tendon);
/* W = wrench, about the world origin, of a force along a string on the body of its point i */
void strand_wrench(wrench *W, const strand *s, int i, double force);
/* W (nb) += wrenches of a spatial tendon on the bodies of its points; no change for a fixed one */
void tendon_add_wrenches(wrench *W, const tendons *t, const qd_model *model, int tendon,
                         double force);

/* Twists of the bodies under delta, and for each DOF the part of them that it does not move. */
typedef struct tendon_twists {
  const screw *body;    /* (nb) */
  const screw *unmoved; /* (nv) */
} tendon_twists;

/* t->change (DOFs of the tendon) = d (rate.delta) / dq at fixed delta, and D -= d (force rate') /
 * dq. Both include the motion of the points, not that of the joint axes. */
void tendon_linearize(const tendons *t, const dof_matrix *D, const qd_model *model,
                      const kinematics *k, const tendon_twists *twists, int tendon, double force);

/* A direction: bodies move with the twists `motion` (nb), their twists `delta` (nb) change by
 * `d_delta` (nb), and sizes of geometries by d_size (geom_count, 3); NULL: constant sizes. */
typedef struct tendon_direction {
  const screw *delta, *motion, *d_delta;
  const double *d_size;
} tendon_direction;

/* out = changes of the length and of rate.delta of a spatial tendon; W (nb) += change of the
 * force's wrenches due to the motion of the points. */
void tendon_push(double out[2], wrench *W, const tendons *t, const qd_model *model, int tendon,
                 double force, const tendon_direction *along);

/* The function L = force (rate.z) + length * (length of the tendon) + displacement * rate.delta,
 * for twists z (nb) and delta (nb) of the bodies; the functions below differentiate it. */
typedef struct tendon_dual {
  double force, length, displacement;
  const screw *z, *delta;
} tendon_dual;

/* on_point (3) = derivative of L with respect to the position of a string's point i */
void strand_pull_back(double on_point[3], const strand *s, int i, const tendon_dual *of);
/* Derivative of L through the sliding of an arc's points i and i + 1 along the geometry. on_end (2,
 * 3): with respect to the points before and behind the arc, in the frame of the geometry's body.
 * Returns the derivative with respect to the radius. */
double strand_pull_slide(double on_end[2][3], const strand *s, int i, const tendon_dual *of);

#endif
