/* Vector operations. Floor: numerics. */
#ifndef QD_NUMERICS_VECTORS_H
#define QD_NUMERICS_VECTORS_H

#include <stdint.h>

#include "base/lanes.h"

/* to += factor from; the vectors do not overlap */
LANES_INLINE void add_scaled(double *restrict to, double factor, const double *restrict from,
                             int count) {
  for (int i = 0; i < count; ++i) {
    to[i] += factor * from[i];
  }
}

/* to = -from */
LANES_INLINE void negate(double *to, const double *from, int count) {
  for (int i = 0; i < count; ++i) {
    to[i] = -from[i];
  }
}

/* The next pseudorandom number in [-1, 1); deterministic. */
static inline double next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(*state >> 11) / 4503599627370496.0 - 1.0;
}

#endif
