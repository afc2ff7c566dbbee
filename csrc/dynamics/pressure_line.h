/* The energy of a step's soft pairs along the step of a program: its slope, and a line search. */
#ifndef QD_DYNAMICS_PRESSURE_LINE_H
#define QD_DYNAMICS_PRESSURE_LINE_H

#include "dynamics/problem/pressure_energy.h"
#include "dynamics/workspace.h"

/* The slope of a program's cost along its step: at the beginning, and the contribution at the end
 * of the multipliers of guards (contacts that limit the depth of pairs). Sums over islands with
 * soft pairs in range. */
typedef struct slope {
  double own;     /* step'Q step, without the pairs */
  double pairs;   /* step'Q step of the pairs */
  double load;    /* load of the pairs at the beginning, times the step */
  double bounded; /* <= 0 */
} slope;

/* 1 if a pair has a contact in a program. */
static inline int pressure_takes_part(const qd_workspace *w, const soft_pair *pair) {
  return pair->contact >= 0 && w->problem.islands.of_contact[pair->contact] >= 0;
}

/* Change of the numbers of a pair's bodies for a change of the displacement. */
void pressure_line_numbers(double numbers[PRESSURE_NUMBERS], const qd_workspace *w,
                           const soft_pair *pair, const double *change);
slope pressure_line_slope(const qd_workspace *w, const double *step);
/* Forces of all guards, N. */
double pressure_line_guards(const qd_workspace *w);
/* delta = from + share step */
void pressure_line_move(pressure_contact *s, const double *from, double share, const double *step);
/* From the end of the last program's step, where patches have been evaluated, back to where the
 * slope is nearly zero, by regula falsi. Returns 0 if it is nearly zero at the end already. */
int pressure_line_search(qd_workspace *w, const slope *along);

#endif
