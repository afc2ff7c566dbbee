/* Tendons: lengths that are sums over scalar joints (fixed), or of lines from point to point of
 * bodies and around geometries (spatial), with their derivatives. A force along a tendon is
 * positive if it lengthens the tendon. */
#ifndef QD_MECHANICS_TENDON_H
#define QD_MECHANICS_TENDON_H

#include "geometry/strand.h"
#include "mechanics/dof_matrix.h"
#include "mechanics/kinematics.h"

enum { TURNING_POINTS = 5 }; /* of a rotational reach; others have three */

typedef struct tendons {
  double *length; /* (tendon_count) */
  double *slope;  /* (DOFs of all tendons) derivative of the length */
  double *rate;   /* (the same) generalised force of a unit force along it: the slope, except for a
                     rotational reach, whose couple keeps its axis */
  strand_point *point;   /* (points of all tendons), for spatial ones the active points, in order */
  int *path_count;       /* (tendon_count) number of active points of a spatial one */
  strand_wrap *wrap;     /* (geometries that tendons wrap around) the touched ones */
  strand_motion *motion; /* (points of all tendons) scratch of the derivatives */
  double *change;        /* (2, nv) of tendon_linearize; the second half is the caller's */
} tendons;

void tendons_lay_out(tendons *t, const qd_model *model, arena *a);
void tendons_compute(const tendons *t, const qd_model *model, const kinematics *k, const double *q);
/* The string of a spatial tendon. */
static inline strand tendon_strand(const tendons *t, const qd_model *model, int tendon) {
  const int first = model->tendon_start[tendon];
  return (strand){t->point + first, t->motion + first, t->wrap, t->path_count[tendon]};
}
/* Derivatives of the arcs; call before any other derivative. */
void tendons_differentiate(const tendons *t, const qd_model *model);

/* Generalised force on one DOF of a unit force along a tendon. */
double tendon_rate(const tendons *t, const qd_model *model, int tendon, int dof);

/* W = wrench about the world origin of a unit force along a thrust, which moves with its body */
void tendon_thrust_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon);
/* 1 for a rotational reach: five points, the last two of which are a rotation vector and an axis.
 */
int tendon_reach_turns(const qd_model *model, int tendon);
/* W = wrench about the world origin of a unit force along a reach on the first point's body; that
 * on the second body is the opposite. */
void tendon_reach_wrench(wrench *W, const tendons *t, const qd_model *model, int tendon);
/* The same with the exact derivative of the length of a rotational reach in place of the couple. */
void tendon_reach_slope(wrench *W, const tendons *t, const qd_model *model, int tendon);
/* W = wrench about the world origin of a force along a string on the body of its point i */
void strand_wrench(wrench *W, const strand *s, int i, double force);
/* W (nb) += wrenches of all points of a spatial tendon; nothing for a fixed one */
void tendon_add_wrenches(wrench *W, const tendons *t, const qd_model *model, int tendon,
                         double force);

/* Motion of bodies: their twists under delta, and for each DOF the part that it does not move. */
typedef struct tendon_twists {
  const screw *body;    /* (nb) */
  const screw *unmoved; /* (nv) */
} tendon_twists;

/* t->change (DOFs of the tendon) = d (rate.delta) / dq at fixed delta, and D -= d (force rate') /
 * dq, due to the motion of the points (not of the joint axes). */
void tendon_linearize(const tendons *t, const dof_matrix *D, const qd_model *model,
                      const kinematics *k, const tendon_twists *twists, int tendon, double force);

/* A direction: bodies move with `motion` (nb), their twists `delta` (nb) change by `d_delta` (nb),
 * and sizes of geometries by d_size (geom_count, 3); NULL: they are constant. */
typedef struct tendon_direction {
  const screw *delta, *motion, *d_delta;
  const double *d_size;
} tendon_direction;

/* out = d (length) and d (rate.delta) of a spatial tendon; W (nb) += change of the force's wrenches
 * due to the motion of the points. */
void tendon_push(double out[2], wrench *W, const tendons *t, const qd_model *model, int tendon,
                 double force, const tendon_direction *along);

/* L = force (rate.z) + cotangent[0] length + cotangent[1] rate.delta, for motions z (nb) and delta
 * (nb) of the bodies. */
typedef struct tendon_dual {
  double force, length, displacement;
  const screw *z, *delta;
} tendon_dual;

/* on_point (3) = cotangent of the position of a string's point i */
void strand_pull_back(double on_point[3], const strand *s, int i, const tendon_dual *of);
/* Sliding of an arc's points i and i + 1 along the geometry: on_end (2, 3) = cotangents of the
 * positions of the points before and behind in the frame of the geometry's body; returns that of
 * the radius. */
double strand_pull_slide(double on_end[2][3], const strand *s, int i, const tendon_dual *of);

#endif
