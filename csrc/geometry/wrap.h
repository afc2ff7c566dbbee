/* A string around a sphere or a cylinder. */
#ifndef QD_GEOMETRY_WRAP_H
#define QD_GEOMETRY_WRAP_H

/* A sphere, or a cylinder of infinite length. */
typedef struct wrap_shape {
  double centre[3];
  double axis[3];  /* unit, of a cylinder */
  double front[3]; /* unit, perpendicular to the axis: the side for a point on the axis */
  double radius;
  int is_cylinder;
} wrap_shape;

/* The arc on which the string touches the surface, from touch[0] to touch[1]. */
typedef struct wrap_course {
  double touch[2][3];
  double length;    /* of the arc */
  double normal[3]; /* unit: axis about which the string's direction rotates */
  double angle;     /* of that rotation, rad */
  int turn;         /* 1: positive, -1: negative rotation, 0: touches a single point, from inside */
} wrap_course;

/* Derivatives of the course: of the two points with respect to the ends of the string and the
 * radius, and of the string's length with respect to the radius. */
typedef struct wrap_slope {
  double by_end[2][2][9]; /* of point [k] with respect to end [e] */
  double by_radius[2][3];
  double length_by_radius;
} wrap_slope;

/* The course of a string between two ends; returns 0 for a straight line. side: a point on the side
 * of the surface where the string passes, or NULL for the shorter way. If this point is nearer to
 * the centre than the radius (also for a cylinder, as in MuJoCo), the string touches from
 * inside. */
int wrap_compute(wrap_course *out, const wrap_shape *shape, const double from[3],
                 const double to[3], const double *side);
void wrap_differentiate(wrap_slope *out, const wrap_course *course, const wrap_shape *shape,
                        const double from[3], const double to[3]);

#endif
