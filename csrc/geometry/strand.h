/* A taut string through points of bodies and around their geometries. Floor: geometry. */
#ifndef QD_GEOMETRY_STRAND_H
#define QD_GEOMETRY_STRAND_H

#include "geometry/wrap.h"

/* A point in the world, and the line from it to the next one. If the string touches a geometry, two
 * points lie on its body, at the ends of the arc between them. */
typedef struct strand_point {
  double pos[3];
  double along[3]; /* unit vector of a straight line; zero for none, or if the next point is the
                      same */
  double distance; /* to the next, of a straight line */
  double share;    /* share of the string's force in the line: a pulley divides it */
  int body;
  int wrap; /* index of the arc to the next point; -1: none */
} strand_point;

typedef struct strand_wrap {
  int geom;
  wrap_shape shape;
  wrap_course course;
  wrap_slope slope; /* by strand_differentiate */
} strand_wrap;

/* Motion of a point: its velocity under some motion of all bodies, and along a direction the
 * changes of its position, of that velocity, and of the pull of a unit force on it. */
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

/* Adds a point; the line behind it carries this share of the force. */
void strand_add(strand *s, int body, double share, const double pos[3]);
/* Adds the arc around wrap number `index`, whose shape is filled, from the last point to `to`;
 * returns 1 if there is an arc. side: NULL, or as in wrap_compute. */
int strand_add_arc(strand *s, int index, int body, double share, const double to[3],
                   const double *side);
/* The line ends at the last point. */
void strand_cut(strand *s);
/* Lines between the points, the last one being cut; returns the length. */
double strand_close(strand *s);

/* The pull of a unit force on the body of point i: towards neither neighbour. */
void strand_pull(double pull[3], const strand *s, int i);

/* Slopes of all arcs: before any derivative. */
void strand_differentiate(const strand *s);
/* Sliding of an arc's points i and i + 1, whose body moves with the angular velocity w and the
 * velocity v at the origin, and rotates with `spin` in the motion of the velocities; the motions of
 * all points must be set. */
void strand_slide(const strand *s, int i, const double w[3], const double v[3],
                  const double spin[3], double d_radius);
/* Rotation of the line behind point i for a change of its direction, divided by its length. */
void strand_turn(double out[3], const strand_point *point, const double change[3]);
/* From the points' motions: their d_pull, and out = changes of the length and of its rate. */
void strand_change(double out[2], const strand *s);

#endif
