/* A string around a sphere or a cylinder. Floor: geometry. */
#ifndef QD_GEOMETRY_WRAP_H
#define QD_GEOMETRY_WRAP_H

/* A sphere, or a cylinder without ends. */
typedef struct wrap_shape {
  double centre[3];
  double axis[3];  /* unit, of a cylinder */
  double front[3]; /* unit, across it: the side that a point on the axis tells */
  double radius;
  int is_cylinder;
} wrap_shape;

/* The string touches the surface from the first point to the second one. */
typedef struct wrap_course {
  double touch[2][3];
  double length;    /* between them */
  double normal[3]; /* unit: the axis that the string turns about */
  double angle;     /* by how much */
  int turn;         /* 1: positively, -1: negatively, 0: it touches one point, from inside */
} wrap_course;

/* How the course changes: the two points with either end of the string and the radius, the whole
 * string's length with the radius. */
typedef struct wrap_slope {
  double by_end[2][2][9]; /* of point [k] by end [e] */
  double by_radius[2][3];
  double length_by_radius;
} wrap_slope;

/* The course of a string from one end to the other; 0: it goes straight. side: a point on the side
 * of the surface where the string passes, or nearer to the centre than the radius (also of a
 * cylinder, as MuJoCo has it), where it touches from inside; NULL: it takes the shorter way. */
int wrap_compute(wrap_course *out, const wrap_shape *shape, const double from[3],
                 const double to[3], const double *side);
void wrap_differentiate(wrap_slope *out, const wrap_course *course, const wrap_shape *shape,
                        const double from[3], const double to[3]);

#endif
