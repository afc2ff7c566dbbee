/* Newton's method on the Moreau envelope, for exact programs with compliant rows. With the
 * compliance R of a row (for a cone diag(R), one number for its tail), the multiplier at x is that
 * of the envelope of its cone,
 *
 *     y = argmax -y'w - 1/2 y'R y over the cone (or the interval),    w = Gx + g.
 *
 * The function 1/2 x'Qx + b'x + (sum of these maxima) has no constraints and a continuous gradient
 * Qx + b - G'y. Newton's method with the generalised Hessian Q + G'HG and a line search on the
 * slope converges globally; where no cone slides, the last step is exact. The multiplier of a cone
 * is
 *
 *     stick    -R^-1 w                                      if that lies in the cone,
 *     open     0                                            if w does,
 *     slide    b (1, -w_1/|w_1|),  b = (|w_1| - w_0) / (R_0 + R_1)
 *
 * (Todorov 2014, "Convex and analytically-invertible dynamics with contacts and constraints"; in
 * MuJoCo's documentation, "Computation", the primal problem).
 *
 * A few rigid rows are allowed, but no rigid intervals, whose multipliers would jump between their
 * ends. A rigid row becomes a stiff one about a centre, y = P(centre - w / R), and the centre moves
 * to the multiplier until it converges (method of multipliers, Rockafellar 1976). Where the cost
 * has columns without curvature, the answer counts if the active rows hold them. */
#ifndef QD_NUMERICS_CONIC_ENVELOPE_H
#define QD_NUMERICS_CONIC_ENVELOPE_H

#include "base/arena.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/conic.h"

/* All arrays are over lanes. */
typedef struct envelope {
  int used;       /* 1: the last program was solved this way */
  int any_rigid;  /* 1: it had rigid rows */
  double *normal; /* compliance of linear rows, and of the first rows of cones */
  double *across; /* of the other rows of cones */
  double *stiff, *stiff_across, *stiff_both; /* inverses of these, and of their sum */
  double *root, *root_both;                  /* roots of the first, and of half the last */
  double *lower, *upper;                     /* of linear rows' multipliers */
  double *rigid, *centre;                    /* 1 for rigid rows; their centre, else 0 */
  double *along;                             /* `along` of the operator active.rows */
} envelope;

void envelope_lay_out(envelope *e, size_t lane_count, arena *a);

/* 1 if the program is of this kind. */
int envelope_suits(const qd_cone_program *program);
/* Loads and solves the program, from the guess in `out` if requested. Returns 1 on success, with
 * out, method and polished (1: converged to rounding) set. */
int envelope_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                   const conic_program *source, const conic_answer *out, qd_cone_info *info);
/* Stiffness of all rows at the answer, for derivatives; 1 if no row is near two states. *hard: 1 if
 * some row is rigid. */
int envelope_settle(qd_cone_workspace *workspace, int *hard);
/* conic_sensitivity_limits for this method. */
void envelope_share(const qd_cone_workspace *workspace, const qd_cone_program *program,
                    double *by_lower, double *by_upper);

/* ------------------------------------------------------------ rows (envelope_rows.c) */

/* Stiffness from compliance. */
void envelope_find_stiffness(envelope *e, int lane_count);
/* Multipliers at w, and the square root of their stiffness (active.rows); 1 if some cone changed
 * its state. *force: the largest multiplier (or term of the difference that gives it) times the
 * norm of its row. */
int envelope_respond(qd_cone_workspace *workspace, const double *w, double *dual, double *force);
/* Product of the multipliers at w + t dw with dw. *fall: its rate of decrease with t. */
double envelope_slope(const qd_cone_workspace *workspace, double t, const double *w,
                      const double *dw, double *fall);
/* Rows w whose multipliers are those of a guess; the given w shows how far cones have slid. */
void envelope_rows_of(const qd_cone_workspace *workspace, const double *dual, double *w);
/* slack = w + R (dual - centre) */
void envelope_slacks(const qd_cone_workspace *workspace, const double *w, const double *dual,
                     double *slack);
/* Moves the centres of rigid rows to their multipliers; 1 if some row is violated by more than the
 * rounding of its terms at an x of size `far`. */
int envelope_move_centres(qd_cone_workspace *workspace, const double *dual, double far);
/* 1 if every row's multiplier differs from those of other states by more than `least`. */
int envelope_is_strict(const qd_cone_workspace *workspace, const double *w, double least);

#endif
