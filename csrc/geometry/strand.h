/* A taut string through points of bodies and around their geometries. */
#ifndef QD_GEOMETRY_STRAND_H
#define QD_GEOMETRY_STRAND_H

#include "geometry/wrap.h"

/* A point in the world, and the straight line from it to the next point. Where the string wraps
 * around a geometry, two points lie on its body, at the ends of the arc. */
typedef struct strand_point {
  double pos[3];
  double along[3]; /* unit vector of the straight line; zero if there is none or if the next point
                      coincides */
  double distance; /* length of the straight line */
  double share;    /* share of the string's force in the line; a pulley divides it */
  int body;
  int wrap; /* index of the arc to the next point; -1: none */
} strand_point;

typedef struct strand_wrap {
  int geom;
  wrap_shape shape;
  wrap_course course;
  wrap_slope slope; /* set by strand_differentiate */
} strand_wrap;

/* Motion of a point. velocity: under a motion of all bodies. d_...: changes, along another
 * direction, of its position, of that velocity, and of the force of a string with unit tension on
 * it. */
typedef struct strand_motion {
  double velocity[3];
  double d_pos[3], d_velocity[3];
  double d_slide[3]; /* part of d_pos relative to the body */
  double d_pull[3];
} strand_motion;

typedef struct strand {
  strand_point *point;
  strand_motion *motion; /* of each point */
  strand_wrap *wrap;
  int count;
} strand;

/* Adds a point; the line from it to the next point carries this share of the force. */
void strand_add(strand *s, int body, double share, const double pos[3]);
/* Adds the arc around wrap `index`, whose shape is set, on the way from the last point to `to`.
 * Returns 1 if the string touches the geometry. side: as in wrap_compute. */
int strand_add_arc(strand *s, int index, int body, double share, const double to[3],
                   const double *side);
/* Ends the line at the last point, so that no line leads to the next. */
void strand_cut(strand *s);
/* Computes the lines between the points; none leaves the last point. Returns the length. */
double strand_close(strand *s);

/* Force on the body of point i for a unit force along the string. It points away from the
 * neighbouring points. */
void strand_pull(double pull[3], const strand *s, int i);

/* Computes the derivatives of all arcs. Call this before the functions below. */
void strand_differentiate(const strand *s);
/* Sets d_slide of the points i and i + 1 of an arc. Their body moves with angular velocity w and
 * velocity v at the origin, and `spin` is its angular velocity in the motion behind `velocity`. The
 * motions of all points must be set. */
void strand_slide(const strand *s, int i, const double w[3], const double v[3],
                  const double spin[3], double d_radius);
/* Rotation of the line that starts at `point`: its change of direction, divided by its length. */
void strand_turn(double out[3], const strand_point *point, const double change[3]);
/* From the motions of the points: sets their d_pull, and out = changes of the length and of its
 * rate. */
void strand_change(double out[2], const strand *s);

#endif
