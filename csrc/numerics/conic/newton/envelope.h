/* Newton's method on the envelope, for exact programs whose rows give way. With the compliance R of
 * a row (or diag(R) of a cone, one number for its tail) its multiplier at x is that of the Moreau
 * envelope of its cone,
 *
 *     y = argmax -y'w - 1/2 y'R y over the cone (or the interval),    w = Gx + g,
 *
 * so that 1/2 x'Qx + b'x + (the sum of these maxima) has no rows at all, and a continuous gradient
 * Qx + b - G'y. Newton's method with the generalised Hessian Q + G'HG and a line search on the
 * slope arrives from anywhere; where no cone slides the last step is exact. A cone's multiplier is
 *
 *     stick    -R^-1 w                                      if that is in the cone,
 *     open     0                                            if w is,
 *     slide    b (1, -w_1/|w_1|),  b = (|w_1| - w_0) / (R_0 + R_1)
 *
 * (Todorov 2014, "Convex and analytically-invertible dynamics with contacts and constraints"; in
 * MuJoCo's documentation, "Computation", the primal problem).
 *
 * Few rigid rows beside them (none of intervals, whose multipliers would jump from end to end) are
 * taken as stiff ones about a centre, y = P(centre - w / R), which moves to the multipliers found
 * until it rests (method of multipliers, Rockafellar 1976). Where the cost has flat columns, the
 * answer counts if the rows that act hold them. */
#ifndef QD_NUMERICS_CONIC_ENVELOPE_H
#define QD_NUMERICS_CONIC_ENVELOPE_H

#include "base/arena.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/conic.h"

/* All over lanes. */
typedef struct envelope {
  int used;       /* the program that was solved last was solved so */
  int any_rigid;  /* and had rigid rows */
  double *normal; /* compliance of linear rows, and of the first rows of cones */
  double *across; /* of the other rows of cones */
  double *stiff, *stiff_across, *stiff_both; /* inverses of these, and of their sum */
  double *root, *root_both;                  /* roots of the first, and of half the last */
  double *lower, *upper;                     /* of linear rows' multipliers */
  double *rigid, *centre;                    /* 1 for rigid rows; theirs, else 0 */
  double *along;                             /* of the operator active.rows */
} envelope;

void envelope_lay_out(envelope *e, size_t lane_count, arena *a);

/* 1 if the program is of the kind. */
int envelope_suits(const qd_cone_program *program);
/* Loads and solves it, from the guess in `out` if that is asked for; 1 if it has helped: then it
 * fills out, method and polished (the error has come down to rounding). */
int envelope_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                   const conic_program *source, const conic_answer *out, qd_cone_info *info);
/* Stiffness of all rows at the answer, for its derivatives; 1 if no row is near two states. *hard:
 * some row is rigid. */
int envelope_settle(qd_cone_workspace *workspace, int *hard);
/* conic_sensitivity_limits of it. */
void envelope_share(const qd_cone_workspace *workspace, const qd_cone_program *program,
                    double *by_lower, double *by_upper);

/* ------------------------------------------------------------ rows (envelope_rows.c) */

/* Stiffness from compliance. */
void envelope_find_stiffness(envelope *e, int lane_count);
/* Multipliers at w, and the square root of their stiffness (active.rows); 1 if some cone is in
 * another state than it was. *force: the largest multiplier, or what it is a difference of, times
 * the norm of its row. */
int envelope_respond(qd_cone_workspace *workspace, const double *w, double *dual, double *force);
/* Of the multipliers at w + t dw: their product with dw, and by how much that falls with t. */
double envelope_slope(const qd_cone_workspace *workspace, double t, const double *w,
                      const double *dw, double *fall);
/* Rows w at which multipliers are those of a guess; w itself shows how far cones have slid. */
void envelope_rows_of(const qd_cone_workspace *workspace, const double *dual, double *w);
/* slack = w + R (dual - centre) */
void envelope_slacks(const qd_cone_workspace *workspace, const double *w, const double *dual,
                     double *slack);
/* Centres of rigid rows to their multipliers; 1 if some row is off by more than rounding of what it
 * is a sum of, where x is `far` out. */
int envelope_move_centres(qd_cone_workspace *workspace, const double *dual, double far);
/* 1 if every row's multiplier is farther from that of other states than `least`. */
int envelope_is_strict(const qd_cone_workspace *workspace, const double *w, double least);

#endif
