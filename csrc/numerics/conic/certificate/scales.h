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

/* Largest norm of a cone's rows, as the caller has them, in scaled columns. */
double norm_of_rows(const qd_cone_workspace *workspace, int cone);
scales measure_scales(const qd_cone_workspace *workspace, const qd_cone_program *program);
/* All multipliers in their cones, but for rounding (conic/certificate/certificate.c). */
int duals_hold(const qd_cone_program *program, const double *dual);

#endif
