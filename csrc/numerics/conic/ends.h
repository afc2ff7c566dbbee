/* Rows of intervals on a barrier's path. A multiplier y has a pair for each end, its distance and
 * what holds it off, as rows of an orthant have:
 *
 *     w + R y = s - t,    s (y - lower) = target,    t (upper - y) = target.
 *
 * Pairs are two groups of lanes beside those of the rows, without rows of their own. Both pairs
 * share one motion of y, so that a row of G stands for them all in the system: with W of s and y -
 * lower, V of t and upper - y (conic/step.c),
 *
 *     (Q + G'N^-2 G) dx = .., N^2 = R + W^2 + V^2,    N dy = u - N^-1 G dx. */
#ifndef QD_NUMERICS_CONIC_ENDS_H
#define QD_NUMERICS_CONIC_ENDS_H

#include "base/arena.h"
#include "numerics/conic/conic.h"

typedef struct interval_ends {
  int count;                     /* rows of intervals in the program at hand */
  int rows, low, high;           /* their groups: rows, and pairs with the lower and upper ends */
  int taken;                     /* lanes given out */
  double *compliance;            /* over lanes */
  double *lower, *upper;         /* over lanes, 0 where there is no end */
  double *has_lower, *has_upper; /* over lanes: 1 or 0 */
  double *spring;                /* (columns) what rows with a compliance add to Q_jj */
} interval_ends;

void ends_lay_out(interval_ends *ends, size_t lane_count, size_t columns, arena *a);

/* What loading needs: two groups of pairs and one of rows; the next row's place; curvatures. */
void conic_ends_add_groups(qd_cone_workspace *workspace, int count);
void conic_ends_place(qd_cone_workspace *workspace, int row, double offset, double target);
void conic_ends_find_springs(qd_cone_workspace *workspace);

/* Rows as springs with this compliance besides their own; infinite: only those that have one. */
void conic_ends_soften(qd_cone_workspace *workspace, double more);
/* x -= G'g / R of rows with a compliance */
void conic_ends_pull(qd_cone_workspace *workspace, double *x);
/* N^-1 of all rows, after the scaling of the pairs. */
void conic_ends_scale(qd_cone_workspace *workspace);
/* The rows' aims p, from those of their pairs. */
void conic_ends_aim(qd_cone_workspace *workspace, double *p);
/* The pairs' directions from the rows'. */
void conic_ends_follow(qd_cone_workspace *workspace, const double *p, double *dslack,
                       double *ddual);
/* residual_row = w + R y - s + t; g and the iterate's slack are taken off already. */
void conic_ends_residual(qd_cone_workspace *workspace);
/* The iterate's multipliers and pairs where y + (w + R y) / stiffness meets the barrier of products
 * `product` (its own target times that if `of_target`), w in `slack`. */
void conic_ends_start(qd_cone_workspace *workspace, const double *w, double stiffness,
                      double product, int of_target, const double *guess);
/* What the multiplier of a row of the rigid program takes of a motion of its ends, at fixed x. */
void conic_ends_share(const qd_cone_workspace *workspace, int row, double *by_lower,
                      double *by_upper);
/* No part in a proof that there is no point. */
void conic_ends_clear(const qd_cone_workspace *workspace, double *ray);

#endif
