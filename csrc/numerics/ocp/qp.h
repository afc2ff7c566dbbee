/* Linear-quadratic optimal control with bounds: shared declarations of the files of ocp/.
 *
 * States are reordered into "live" ones, which some A_t reads, and "dead" ones, which only enter
 * the cost. The value function of a dead state is its own cost, so Riccati recursions run over z =
 * (live x, previous u). Every part is padded to whole lanes; padded inputs have unit weight and no
 * gradient, padded states are zero. */
#ifndef QD_NUMERICS_OCP_QP_H
#define QD_NUMERICS_OCP_QP_H

#include <stddef.h>

#include "qdsim/solvers.h"

/* Kinds of bounded quantities. */
enum { OCP_X, OCP_U, OCP_D, OCP_KINDS };

/* One kind of bounded quantity over the horizon, (T, stride). An element without a bound, or whose
 * bound is too far away to be active, has: has 0, bound 0, slack 1, dual 0. */
typedef struct ocp_bounds {
  int is_bounded; /* 0: no bound takes part, and the method skips this kind */
  size_t stride, count;
  double *value;    /* the quantity */
  double *step;     /* its Newton step */
  double *cost;     /* gradient of the cost */
  double *gradient; /* right-hand side of the Newton system */
  double *weight;   /* second derivative of the barrier */
  double *given[2]; /* the caller's bounds, infinite where missing */
  double *has[2];   /* 1 where the lower or upper bound takes part */
  double *bound[2];
  double *slack[2], *dual[2];
  double *slack_step[2], *dual_step[2];
  double *product[2]; /* second-order term of Mehrotra's corrector */
} ocp_bounds;

struct qd_ocp_workspace {
  int T, nx, nu; /* the caller's */
  size_t bytes;
  /* the layout of one problem */
  int live_count, dead_count;
  size_t lp, dp, up;     /* padded sizes: live states, dead states, inputs */
  size_t xp, zp, fp, gp; /* lp + dp; lp + up, of a value function; up + lp, a row of F; fp + up */
  int *order;            /* (nx) position of the caller's state i among xp */
  ocp_bounds bounds[OCP_KINDS];
  double *x_first, *u_before; /* (xp), (up) */
  double *F;                  /* (T, live_count, fp) rows of live states: [B A] */
  double *B_dead;             /* (T, dead_count, up) */
  double *c;                  /* (T, xp) */
  double *Q;                  /* (T, live_count, lp) */
  double *Q_dead;             /* (T, dp) diagonal */
  double *R, *S;              /* (T, up, up) */
  double *linear[OCP_KINDS];  /* linear costs, (T, stride) each */
  double *G;  /* (T, up, gp): [U Y] with Huu = U'U and Y = U^-T [Hux Huw]; 1/U on U's diagonal */
  double *y;  /* (T, up) */
  double *V;  /* (zp, zp) value function */
  double *VF; /* (zp, fp) */
  double *scaled; /* (dead, up) */
  double *z;      /* (zp) */
  double *p, *v;  /* (xp + up), (gp) */
};

/* ocp/load.c: returns QD_OK, QD_INFEASIBLE, QD_NOT_FINITE or QD_BAD_ARGUMENT */
qd_status ocp_load(qd_ocp_workspace *w, const qd_ocp_qp *problem);
void ocp_store(const qd_ocp_workspace *w, const qd_ocp_qp *problem, const qd_ocp_solution *out);

/* ocp/riccati.c */
/* Factors the Newton matrix for the weights in w->bounds; 0 if it is not safely positive
 * definite. */
int ocp_factor(qd_ocp_workspace *w);
/* Newton steps of all quantities, from the gradients in w->bounds. */
void ocp_newton_step(qd_ocp_workspace *w);
/* x and d from u. With feedback (of the latest factors), u reacts to changes of x, so that unstable
 * dynamics do not amplify the rounding between x and u. */
void ocp_roll_out(qd_ocp_workspace *w, int with_feedback);
/* Computes bounds[].cost from the values. */
void ocp_cost_gradient(qd_ocp_workspace *w);
double ocp_objective(const qd_ocp_workspace *w);
/* Size of the gradients by u that the linear costs cause. */
double ocp_given_force(const qd_ocp_workspace *w);
/* Derivative of the Lagrangian by u: largest entry, sum of entries, and largest term. */
typedef struct ocp_stationarity {
  double largest, sum, scale;
} ocp_stationarity;
/* Computes it with costates from the dynamics alone; with_cost 0: terms of the bounds only. */
ocp_stationarity ocp_lagrangian(qd_ocp_workspace *w, int with_cost);
/* Computes it with costates under the feedback of the latest factors (without the sum). costate:
 * (T, xp), or NULL. Overwrites the gradients. */
ocp_stationarity ocp_residual(qd_ocp_workspace *w, double *costate);

/* ocp/bounds.c */
/* Length scale before anything is solved: from the first state, the previous input, the offsets and
 * the nearest nonzero bound. */
double ocp_bounds_nearest(const qd_ocp_workspace *w);
/* Selects the bounds up to this size; returns the number of the others. */
size_t ocp_bounds_select(qd_ocp_workspace *w, double reach);
/* 1 if the values satisfy the bounds that do not take part. */
int ocp_bounds_hold(const qd_ocp_workspace *w);
/* The largest state, input or change. */
double ocp_bounds_values(const qd_ocp_workspace *w);
/* 1 if values, slacks and multipliers are finite. */
int ocp_bounds_are_finite(const qd_ocp_workspace *w);
/* Starts inputs in the middle of their boxes, or as close to the previous input as the boxes
 * allow. */
void ocp_bounds_start_inputs(qd_ocp_workspace *w);
/* Length scale of the first state, offsets and previous input; ocp_bounds_scale includes the bounds
 * that take part. */
double ocp_data_scale(const qd_ocp_workspace *w);
double ocp_bounds_scale(const qd_ocp_workspace *w);
void ocp_bounds_clear_duals(qd_ocp_workspace *w);
/* Starts slacks from the values, at least a share of the unit; all multipliers get the value
 * `dual`. */
void ocp_bounds_start(qd_ocp_workspace *w, double unit, double dual);
/* Mean and largest slack times dual, largest violation of a bound's equation, and the part of that
 * violation beyond rounding. */
typedef struct ocp_gap {
  double mean, largest, residual, beyond_rounding, largest_dual;
  size_t count;
} ocp_gap;
ocp_gap ocp_bounds_gap(const qd_ocp_workspace *w);
void ocp_bounds_weights(qd_ocp_workspace *w);
/* gradient = cost + barrier for this target, with or without the corrector's products. */
void ocp_bounds_gradient(qd_ocp_workspace *w, double target, int with_products);
/* Steps of slacks and duals from those of the values; returns the longest step in (0, 1] that keeps
 * both positive. */
double ocp_bounds_follow(qd_ocp_workspace *w, double target, int with_products);
void ocp_bounds_products(qd_ocp_workspace *w);
/* Mean of slack times dual after a step of this length. */
double ocp_bounds_gap_after(const qd_ocp_workspace *w, double length);
void ocp_bounds_move(qd_ocp_workspace *w, double length);
/* Value of the multipliers as a certificate: if it is positive, they exclude every input. */
double ocp_bounds_certificate(const qd_ocp_workspace *w);

#endif
