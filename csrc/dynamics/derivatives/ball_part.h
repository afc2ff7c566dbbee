/* How the limit of a ball joint moves with its configuration. Floor: dynamics. */
#ifndef QD_DYNAMICS_BALL_PART_H
#define QD_DYNAMICS_BALL_PART_H

#include "dynamics/problem/problem.h"

/* By the joint's three tangent coordinates: of the rows most - what may be undone, and turn +
 * inverse d, at fixed d (4, 3), and of the generalised force inverse' lambda at fixed lambda. */
typedef struct ball_part {
  double rows[3 * BALL_ROWS];
  double force[9];
} ball_part;

void ball_part_compute(ball_part *out, const problem *p, const ball_limit *limit,
                       const double *delta);

#endif
