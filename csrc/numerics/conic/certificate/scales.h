#ifndef QD_NUMERICS_CONIC_SCALES_H
#define QD_NUMERICS_CONIC_SCALES_H

#include "numerics/conic/workspace.h"

#define TINIEST 1e-290 /* smaller products may have underflowed */
/* Shares for scales: */
#define OFFSET_SHARE 1e-2 /* of the distance to offsets, in R */
#define MOTION_SHARE 1e-3 /* of x, in R */
#define MEANT 1e-40       /* of the free motion: smaller nonzero offsets are no rounding either */
/* For proofs: */
#define EXCLUDED 1e3 /* multiple of the distance to offsets that an infeasibility proof covers */

/* 1 if offsets give no length scale: there are none, or they are rounding compared with `free`, the
 * distance that the cost alone moves x. */
static inline int offsets_are_none(double offset, double free) {
  return offset == 0.0 || (offset <= SUM_ROUNDING * free && offset >= MEANT * free);
}

/* R without the terms in x. */
static inline double reach_of(double offset, double free, int exact) {
  const double reach = OFFSET_SHARE * offset;
  if (!exact) {
    return larger(reach, free);
  }
  return offsets_are_none(offset, free) ? HALF_DIGITS * free : reach;
}

/* 1 if the product is accurate, or zero because a factor is. An overflow would exceed every
 * residual, and an underflow would hide residuals. */
static inline int product_is_safe(double share, double force, double reach) {
  const double product = share * force * reach;
  return force == 0.0 || reach == 0.0 ? product == 0.0 : product > TINIEST && product < HUGE_VAL;
}

/* Scales that follow from the program alone. */
typedef struct scales {
  double b;                          /* max |b_j| */
  double b_scaled;                   /* max |b_j| d_j */
  double free;                       /* the same over columns with curvature */
  double offset;                     /* max |g|, |c| over the largest row norm */
  double reach;                      /* R without x */
  double weakest_row, strongest_row; /* row norms */
  double target;                     /* largest target */
} scales;

scales measure_scales(const qd_cone_workspace *workspace, const qd_cone_program *program);
/* 1 if all multipliers lie in their cones, up to rounding (conic/certificate/certificate.c). */
int duals_hold(const qd_cone_program *program, const double *dual);

#endif
