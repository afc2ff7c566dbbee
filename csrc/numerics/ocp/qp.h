/* Linear-quadratic optimal control with bounds: what the files ocp_*.c share.
 *
 * States are reordered into those that some A_t reads ("live") and those that only cost ("dead"):
 * the value function of a dead state is its own cost, so Riccati recursions run over z = (live x,
 * previous u). Every part is padded to whole lanes; padded inputs have unit weight and no gradient,
 * padded states are zero. */
#ifndef QD_NUMERICS_OCP_QP_H
#define QD_NUMERICS_OCP_QP_H

#include <stddef.h>

#include "qdsim/solvers.h"

/* What is bounded, in this order. */
enum { OCP_X, OCP_U, OCP_D, OCP_KINDS };

/* One kind of bounded quantity over the horizon, (T, stride). Without a bound, or with one that is
 * left out because nothing comes near it: has 0, bound 0, slack 1, dual 0. */
typedef struct ocp_bounds {
  int is_bounded; /* 0: no bound at all, and the arrays below `weight` are not touched */
  size_t stride, count;
  double *value;    /* the quantity itself */
  double *step;     /* Newton step of it */
  double *cost;     /* gradient of the cost */
  double *gradient; /* right-hand side of the Newton system */
  double *weight;   /* second derivative of the barrier */
  double *given[2]; /* the caller's bounds, infinite where there is none */
  double *has[2];   /* 1 where a lower, an upper bound takes part */
  double *bound[2];
  double *slack[2], *dual[2];
  double *slack_step[2], *dual_step[2];
  double *product[2]; /* second-order term of Mehrotra's corrector */
} ocp_bounds;

struct qd_ocp_workspace {
  int T, nx, nu; /* of the caller */
  size_t bytes;
  /* the layout of one problem */
  int live_count, dead_count;
  size_t lp, dp, up;     /* padded: live states, dead states, inputs */
  size_t xp, zp, fp, gp; /* lp + dp; lp + up: a value function; up + lp: a row of F; fp + up */
  int *order;            /* (nx) where the caller's state i lives among xp */
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

/* ocp/load.c: 0, or QD_INFEASIBLE, QD_NOT_FINITE, QD_BAD_ARGUMENT */
qd_status ocp_load(qd_ocp_workspace *w, const qd_ocp_qp *problem);
void ocp_store(const qd_ocp_workspace *w, const qd_ocp_qp *problem, const qd_ocp_solution *out);

/* ocp/riccati.c */
/* Factors the Newton matrix of the weights in w->bounds; 0 if it is not safely positive definite.
 */
int ocp_factor(qd_ocp_workspace *w);
/* Steps of all quantities from the gradients in w->bounds. */
void ocp_newton_step(qd_ocp_workspace *w);
/* x from u, and d. With feedback (of the latest factors) u reacts to where x is not what it was:
 * what rounding leaves between x and u is not blown up by unstable dynamics. */
void ocp_roll_out(qd_ocp_workspace *w, int with_feedback);
/* bounds[].cost from the values. */
void ocp_cost_gradient(qd_ocp_workspace *w);
double ocp_objective(const qd_ocp_workspace *w);
/* How large gradients by u the linear costs make. */
double ocp_given_force(const qd_ocp_workspace *w);
/* The derivative by u of the Lagrangian: largest and summed entry, and the largest term in it. */
typedef struct ocp_stationarity {
  double largest, sum, scale;
} ocp_stationarity;
/* By costates from the dynamics alone; with_cost 0: of the bounds' terms alone. */
ocp_stationarity ocp_lagrangian(qd_ocp_workspace *w, int with_cost);
/* By costates under the feedback of the latest factors (no sum); (T, xp) of them where wanted.
 * Overwrites the gradients. */
ocp_stationarity ocp_residual(qd_ocp_workspace *w, double *costate);

/* ocp/bounds.c */
/* What says how far things go before anything is solved: first state, input before, offsets and the
 * nearest bound that is not zero. */
double ocp_bounds_nearest(const qd_ocp_workspace *w);
/* Bounds up to this size take part; returns how many are left out. */
size_t ocp_bounds_select(qd_ocp_workspace *w, double reach);
/* 1 if the values hold the bounds that were left out. */
int ocp_bounds_hold(const qd_ocp_workspace *w);
/* The largest state, input or change. */
double ocp_bounds_values(const qd_ocp_workspace *w);
/* 1 if values, slacks and multipliers are finite. */
int ocp_bounds_are_finite(const qd_ocp_workspace *w);
/* Inputs in the middle of their boxes, or as near to the one before as these allow. */
void ocp_bounds_start_inputs(qd_ocp_workspace *w);
/* A length that first state, offsets and the input before have; with the bounds that take part. */
double ocp_data_scale(const qd_ocp_workspace *w);
double ocp_bounds_scale(const qd_ocp_workspace *w);
void ocp_bounds_clear_duals(qd_ocp_workspace *w);
/* Slacks from the values, at least a share of the unit; all multipliers alike. */
void ocp_bounds_start(qd_ocp_workspace *w, double unit, double dual);
/* Mean of slack times dual, the largest one, the largest violation of a bound's equation and the
 * same beside what rounding leaves of it. */
typedef struct ocp_gap {
  double mean, largest, residual, beyond_rounding, largest_dual;
  size_t count;
} ocp_gap;
ocp_gap ocp_bounds_gap(const qd_ocp_workspace *w);
void ocp_bounds_weights(qd_ocp_workspace *w);
/* gradient = cost + barrier at this target, with the corrector's products or without. */
void ocp_bounds_gradient(qd_ocp_workspace *w, double target, int with_products);
/* Steps of slacks and duals that follow from those of the values; returns the longest step in (0,
 * 1] that keeps both positive. */
double ocp_bounds_follow(qd_ocp_workspace *w, double target, int with_products);
void ocp_bounds_products(qd_ocp_workspace *w);
/* Mean of slack times dual after this step. */
double ocp_bounds_gap_after(const qd_ocp_workspace *w, double length);
void ocp_bounds_move(qd_ocp_workspace *w, double length);
/* How far the multipliers, as a certificate, exclude every input: > 0 by so much. */
double ocp_bounds_certificate(const qd_ocp_workspace *w);

#endif
