#ifndef QD_NUMERICS_CONIC_SCALES_H
#define QD_NUMERICS_CONIC_SCALES_H

#include "numerics/conic/workspace.h"

#define TINIEST 1e-290 /* products below are not all there */
/* Of scales: */
#define OFFSET_SHARE 1e-2 /* of the distance to offsets, in R */
#define MOTION_SHARE 1e-3 /* of x, in R */
#define MEANT 1e-40       /* of that: offsets below are no rounding either, unless zero */
/* Of proofs: */
#define EXCLUDED 1e3 /* distances to offsets that a proof of infeasibility covers */

/* 1 if offsets say nothing about lengths, because there are none or they are rounding beside
 * `free`, how far the cost alone sends x. */
static inline int offsets_are_none(double offset, double free) {
  return offset == 0.0 || (offset <= SUM_ROUNDING * free && offset >= MEANT * free);
}

/* R without x. */
static inline double reach_of(double offset, double free, int exact) {
  const double reach = OFFSET_SHARE * offset;
  if (!exact) {
    return larger(reach, free);
  }
  return offsets_are_none(offset, free) ? HALF_DIGITS * free : reach;
}

/* Whether a product of these is a number with all its digits, or rightly zero: what overflows is
 * above every residual, and what vanishes hides them. */
static inline int product_is_safe(double share, double force, double reach) {
  const double product = share * force * reach;
  return force == 0.0 || reach == 0.0 ? product == 0.0 : product > TINIEST && product < HUGE_VAL;
}

/* What the program alone gives. */
typedef struct scales {
  double b;                          /* max |b_j| */
  double b_scaled;                   /* max |b_j| d_j */
  double free;                       /* the same where there is curvature */
  double offset;                     /* max |g|, |c| over the largest row norm */
  double reach;                      /* R without x */
  double weakest_row, strongest_row; /* row norms */
  double target;                     /* largest */
} scales;

scales measure_scales(const qd_cone_workspace *workspace, const qd_cone_program *program);
/* All multipliers in their cones, but for rounding (conic/certificate/certificate.c). */
int duals_hold(const qd_cone_program *program, const double *dual);

#endif
