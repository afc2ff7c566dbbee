/* Steps of soft pairs' programs that lead too far: where bodies have hardly begun to press,
 * friction is that of little force, and what they are to carry flies off. The next program then
 * holds the bodies together: in the cost, it resists their motion against each other, from the
 * place where it begins, so that nothing of it is left where the programs converge. Floor:
 * dynamics. */
#ifndef QD_DYNAMICS_PRESSURE_HOLD_H
#define QD_DYNAMICS_PRESSURE_HOLD_H

#include "dynamics/pressure_line.h"

/* Programs of a step whose answer may be refused. */
#define PRESSURE_HOLDS_MOST 8

/* How pairs that press move against each other. */
typedef struct reach {
  double share;    /* of what is too far, the largest */
  double farthest; /* the largest shift over the smaller thing's length, and turn */
  double squares;  /* m^2, sum over the pairs of both, turns by that length */
} reach;

reach pressure_hold_reach(const qd_workspace *w, const qd_model *model, const double *step);
/* Holds pairs if that is too far; 1: it does. */
int pressure_hold_far(pressure_contact *s, const qd_model *model, const reach *by,
                      const slope *along);
/* Holds pairs of which one has come apart. */
void pressure_hold_parted(pressure_contact *s, const qd_model *model, const reach *by,
                          const slope *along);
/* Of the next program. */
void pressure_hold_less(pressure_contact *s, const qd_model *model);

#endif
