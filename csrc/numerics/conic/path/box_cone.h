/* Rows of intervals on the path, and in the active set of exact programs that it leads to. On the
 * path, a multiplier y has a pair for each end, its distance and
 * what holds it off, as rows of an orthant have:
 *
 *     w + R y = s - t,    s (y - lower) = target,    t (upper - y) = target.
 *
 * Pairs are two groups of lanes beside those of the rows, without rows of their own. Both pairs
 * share one motion of y, so that a row of G stands for them all in the system: with W of s and y -
 * lower, V of t and upper - y (conic/path/step.c),
 *
 *     (Q + G'N^-2 G) dx = .., N^2 = R + W^2 + V^2,    N dy = u - N^-1 G dx.
 *
 * Where both ends are far from a force, N^2 is next to nothing, and its inverse drowns Q: such rows
 * take no less than equalities do, a proximal step on y that leaves a part of the row behind. */
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
  double *least, *most;          /* over lanes: the ends, infinite where there is none */
  double *spring;                /* (columns) what rows with a compliance add to Q_jj */
  double *push;                  /* (columns) G'y of the forces that they have at x = 0 */
  int any_rigid;                 /* a row without compliance: no spring stands for it */
  int any_coupled;               /* a row with a compliance and several columns */
  int any_hard;                  /* a row was stiffer than what the system takes */
} interval_ends;

void ends_lay_out(interval_ends *ends, size_t lane_count, size_t columns, arena *a);

/* Lanes behind the last row: forces of nothing. */
void conic_ends_clear_padding(qd_cone_workspace *workspace);
/* What loading needs: the next row's place; curvatures. */
void conic_ends_place(qd_cone_workspace *workspace, int row, double offset, double target);
void conic_ends_find_springs(qd_cone_workspace *workspace, const conic_program *source);
/* The push of their forces, once G stands in tiles. */
void conic_ends_find_push(qd_cone_workspace *workspace);

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
/* Forces from their distances to the nearer ends, where these know them better. */
void conic_ends_settle(qd_cone_workspace *workspace);
/* residual_row = w + R y - s + t; g and the iterate's slack are taken off already. */
void conic_ends_residual(qd_cone_workspace *workspace);
/* The largest of that over `length`, or over what holds the force off both its ends if that is
 * more: a share of it moves the force by the same share of the interval. */
double conic_ends_primal_error(const qd_cone_workspace *workspace, double length);
/* The iterate's multipliers and pairs where y + (w + R y) / stiffness meets the barrier of products
 * `product` (its own target times that if `of_target`), w in `slack`. */
void conic_ends_start(qd_cone_workspace *workspace, const double *w, double stiffness,
                      double product, int of_target, const double *guess);
/* What the multiplier of a row of the rigid program takes of a motion of its ends, at fixed x. */
void conic_ends_share(const qd_cone_workspace *workspace, int row, double *by_lower,
                      double *by_upper);
/* Where an exact program stands with every row as a spring, w = Gx + g: 1 if no force reaches an
 * end; the forces into `dual`. */
int conic_ends_are_springs(const qd_cone_workspace *workspace, const double *w, double *dual);
/* Rows of an exact program's active set: y = P(-w / R), or P(dual - r w) where R = 0. Between the
 * ends CONE_SLIDE (R > 0: a stiffness of 1 / R) or CONE_STICK, at one of them CONE_OPEN. change: as
 * conic_project. */
void conic_ends_project(qd_cone_workspace *workspace, const double *w, const double *dual,
                        double *z, double *projected, double *change);
/* The Newton step's parts of them: what is held of the multipliers, and offsets of slacks. */
void conic_ends_hold(const qd_cone_workspace *workspace, const double *projected, double *offset,
                     double *held);
/* Into polished: Newton's slacks w of rows with a compliance, times r. */
void conic_ends_keep(qd_cone_workspace *workspace);
/* Pairs have no part in an active set. */
void conic_ends_release(qd_cone_workspace *workspace);
/* The states that multipliers show. */
void conic_ends_read_states(qd_cone_workspace *workspace, const double *dual);
/* Square root of the stiffness of one row's state. */
double conic_ends_root(const qd_cone_workspace *workspace, int c, double hard_root);
/* Of an exact program's active set: 1 if a force is at an end. */
int conic_ends_any_at_end(const qd_cone_workspace *workspace);
/* By how much a row that moves from w by `move` leaves its state. */
double conic_ends_error(const qd_cone_workspace *workspace, int c, double w, double move);
/* Work of the forces at their ends along d (columns). */
double conic_ends_work(qd_cone_workspace *workspace, const double *d);
/* What slipping along w (rows) costs for ever. *opening grows to what no force holds, *leak to what
 * a force without end holds. */
double conic_ends_rise(const qd_cone_workspace *workspace, const double *w, double *opening,
                       double *leak);
/* No part in a proof that there is no point. */
void conic_ends_clear(const qd_cone_workspace *workspace, double *ray);

#endif
