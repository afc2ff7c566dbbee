/* Interval rows on the path, and in the active set of an exact program after it. On the path, the
 * multiplier y of an interval has a complementary pair for each end: the distance to the end and
 * the slack that keeps y off it, as in an orthant:
 *
 *     w + R y = s - t,    s (y - lower) = target,    t (upper - y) = target.
 *
 * The pairs are two groups of lanes beside those of the rows, without rows of their own. Both pairs
 * share the motion of y, so that one row of G represents them in the system. With the scalings W of
 * (s, y - lower) and V of (t, upper - y) (conic/path/step.c),
 *
 *     (Q + G'N^-2 G) dx = .., N^2 = R + W^2 + V^2,    N dy = u - N^-1 G dx.
 *
 * Where y is far from both ends, N^2 is nearly zero and its inverse dominates Q. Such rows are
 * limited to the stiffness of equalities: a proximal step on y that leaves a part of the row's
 * residual. */
#ifndef QD_NUMERICS_CONIC_BOX_CONE_H
#define QD_NUMERICS_CONIC_BOX_CONE_H

#include "base/arena.h"
#include "numerics/conic/conic.h"

typedef struct interval_ends {
  int count;                     /* interval rows of the current program */
  int rows, low, high;           /* their groups: rows, and pairs with the lower and upper ends */
  int taken;                     /* number of lanes placed so far */
  double *compliance;            /* over lanes */
  double *lower, *upper;         /* over lanes, 0 for a missing end */
  double *has_lower, *has_upper; /* over lanes: 1 or 0 */
  double *least, *most;          /* over lanes: the ends, infinite where missing */
  double *spring;                /* (columns) what rows with a compliance add to Q_jj */
  double *push;                  /* (columns) G'y of these rows' forces at x = 0 */
  int any_rigid;   /* 1: some row has no compliance, so springs do not represent all rows */
  int any_coupled; /* 1: some row with a compliance has several columns */
  int any_hard;    /* 1: some row was stiffer than the system's limit */
} interval_ends;

void ends_lay_out(interval_ends *ends, size_t lane_count, size_t columns, arena *a);

/* Sets the padding lanes behind the last row to zero forces. */
void conic_ends_clear_padding(qd_cone_workspace *workspace);
/* For loading: places the next row; finds the curvatures of springs. */
void conic_ends_place(qd_cone_workspace *workspace, int row, double offset, double target);
void conic_ends_find_springs(qd_cone_workspace *workspace, const conic_program *source);
/* Finds `push`, once G stands in tiles. */
void conic_ends_find_push(qd_cone_workspace *workspace);

/* Stiffness of the rows as springs with the compliance `more` in series; infinite: only rows that
 * have a compliance. */
void conic_ends_soften(qd_cone_workspace *workspace, double more);
/* x -= G'g / R over rows with a compliance */
void conic_ends_pull(qd_cone_workspace *workspace, double *x);
/* N^-1 of all rows, from the scaling of the pairs. */
void conic_ends_scale(qd_cone_workspace *workspace);
/* Aims p of the rows, from those of their pairs. */
void conic_ends_aim(qd_cone_workspace *workspace, double *p);
/* Directions of the pairs, from those of the rows. */
void conic_ends_follow(qd_cone_workspace *workspace, const double *p, double *dslack,
                       double *ddual);
/* Recomputes forces from their distances to the nearer ends where that is more accurate. */
void conic_ends_settle(qd_cone_workspace *workspace);
/* residual_row = w + R y - s + t; g and the iterate's slack are already subtracted. */
void conic_ends_residual(qd_cone_workspace *workspace);
/* Largest |residual| of these rows over `length`, or over the slacks s + t that hold the force off
 * its ends if that is more: a relative error of them moves the force by the same share of the
 * interval. */
double conic_ends_primal_error(const qd_cone_workspace *workspace, double length);
/* Starts multipliers and pairs where y + (w + R y) / stiffness meets a barrier with the product
 * `product` (times its own target if `of_target`). w is in `slack`. */
void conic_ends_start(qd_cone_workspace *workspace, const double *w, double stiffness,
                      double product, int of_target, const double *guess);
/* Shares of the motion of a row's ends that its multiplier follows, at fixed x. */
void conic_ends_share(const qd_cone_workspace *workspace, int row, double *by_lower,
                      double *by_upper);
/* Forces of an exact program if every row is a spring, w = Gx + g, into `dual`; 1 if no force
 * reaches an end. */
int conic_ends_are_springs(const qd_cone_workspace *workspace, const double *w, double *dual);
/* Projection of rows in an exact program's active set: y = P(-w / R), or P(dual - r w) where R = 0.
 * A row between its ends is CONE_SLIDE (R > 0: a stiffness of 1 / R) or CONE_STICK, a row at an end
 * is CONE_OPEN. change: as in conic_project. */
void conic_ends_project(qd_cone_workspace *workspace, const double *w, const double *dual,
                        double *z, double *projected, double *change);
/* Parts of the Newton step: the held multipliers, and offsets of slacks. */
void conic_ends_hold(const qd_cone_workspace *workspace, const double *projected, double *offset,
                     double *held);
/* Stores Newton's slacks w of rows with a compliance, times r, in polished. */
void conic_ends_keep(qd_cone_workspace *workspace);
/* Removes the pairs from the active set. */
void conic_ends_release(qd_cone_workspace *workspace);
/* Sets the states from the multipliers. */
void conic_ends_read_states(qd_cone_workspace *workspace, const double *dual);
/* Square root of the stiffness of a row in its state. */
double conic_ends_root(const qd_cone_workspace *workspace, int c, double hard_root);
/* 1 if a force is at an end in an exact program's active set. */
int conic_ends_any_at_end(const qd_cone_workspace *workspace);
/* How far a row that moves from w by `move` leaves its state. */
double conic_ends_error(const qd_cone_workspace *workspace, int c, double w, double move);
/* Work along d (columns) of the forces that are at their ends. */
double conic_ends_work(qd_cone_workspace *workspace, const double *d);
/* Cost rate of slipping along w (rows). Raises *opening to motions that no force resists, and *leak
 * to motions against an unlimited force. */
double conic_ends_rise(const qd_cone_workspace *workspace, const double *w, double *opening,
                       double *leak);
/* Sets interval rows to zero in an infeasibility ray. */
void conic_ends_clear(const qd_cone_workspace *workspace, double *ray);

#endif
