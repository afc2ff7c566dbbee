/* Programs of soft pairs that move too far. While bodies barely press, friction is small, and an
 * object that they carry slips away. The next program then holds the bodies together: its cost
 * resists their relative motion from its starting point, so the term vanishes as the programs
 * converge. */
#ifndef QD_DYNAMICS_PRESSURE_HOLD_H
#define QD_DYNAMICS_PRESSURE_HOLD_H

#include "dynamics/pressure_line.h"

/* Largest number of rejected programs of a step. */
#define PRESSURE_HOLDS_MOST 8

/* Relative motion of pairs in contact. */
typedef struct reach {
  double share;    /* the largest motion, relative to the limit */
  double farthest; /* the largest displacement over the smaller body's length, and rotation */
  double squares;  /* m^2, sum of squares of both over the pairs, rotations times that length */
} reach;

reach pressure_hold_reach(const qd_workspace *w, const double *step);
/* Holds pairs if they move too far; returns 1 if so. */
int pressure_hold_far(pressure_contact *s, const reach *by, const slope *along);
/* Holds all pairs if one has separated. */
void pressure_hold_parted(pressure_contact *s, const reach *by, const slope *along);
/* Reduces the holding term of the next program. */
void pressure_hold_less(pressure_contact *s);

#endif
