/* Errors of one cone, for residuals and certificates. */
#ifndef QD_NUMERICS_CONIC_MEASURE_H
#define QD_NUMERICS_CONIC_MEASURE_H

#include <math.h>

#include "base/lanes.h"
#include "numerics/conic/program/structure.h"

/* |a|, safe against overflow and underflow of the squares */
LANES_INLINE double norm_of(const double *a, int count) {
  double sum = 0.0, scaled = 0.0;
  for (int i = 0; i < count; ++i) {
    sum += a[i] * a[i];
  }
  if (squares_are_safe(sum)) {
    return sqrt(sum);
  }
  const double largest = max_norm_or_infinity(a, count);
  if (!(largest > 0.0 && largest < HUGE_VAL)) {
    return largest;
  }
  for (int i = 0; i < count; ++i) {
    scaled += (a[i] / largest) * (a[i] / largest);
  }
  return largest * sqrt(scaled);
}

/* Distance of a multiplier outside its cone. */
LANES_INLINE double outside_cone(const double *dual, int dim) {
  return larger(norm_of(dual + 1, dim - 1) - dual[0], 0.0);
}

/* 1 if a multiplier lies in its cone, up to rounding. */
LANES_INLINE int is_in_cone(const double *dual, int dim) {
  return dual[0] >= 0.0 && norm_of(dual + 1, dim - 1) <= (1.0 + 0.5 * SUM_ROUNDING) * dual[0];
}

/* Errors of one cone: violation of w = Gx + g, and products. */
typedef struct cone_errors {
  double outside; /* violation of w, 0 inside */
  double gap;     /* |dual o slack - target| */
  double apart;   /* |dual| |w - slack| */
  double unsure;  /* 0, or NaN if the inputs are not finite */
} cone_errors;

/* Raises *most to the errors of this cone. */
LANES_INLINE void measure_cone(const double *w, const double *slack, const double *dual, int dim,
                               double target, cone_errors *most) {
  double head = slack[0] * dual[0] - target;
  most->apart = larger(most->apart, fabs((w[0] - slack[0]) * dual[0]));
  for (int i = 1; i < dim; ++i) {
    head += slack[i] * dual[i];
    most->gap = larger(most->gap, fabs(slack[0] * dual[i] + dual[0] * slack[i]));
    most->apart = larger(most->apart, fabs((w[i] - slack[i]) * dual[0]));
  }
  most->gap = larger(most->gap, fabs(head));
  most->outside = larger(most->outside, (dim > 1 ? norm_of(w + 1, dim - 1) : 0.0) - w[0]);
  most->unsure += head * 0.0;
}

#endif
