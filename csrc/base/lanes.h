/* Four doubles in one vector. Arithmetic on `lanes` is element by element, so every instruction set
 * gives the same bits if the compiler does not fuse multiply and add (-ffp-contract=off). */
#ifndef QD_BASE_LANES_H
#define QD_BASE_LANES_H

#include <math.h>
#include <stdint.h>

#include "base/multiversion.h"

#define LANE_COUNT 4

typedef double lanes __attribute__((vector_size(32), may_alias));
typedef double lanes_anywhere __attribute__((vector_size(32), aligned(8), may_alias));

#define LANES_AT(pointer) (*(lanes *)(pointer))
#define LANES_OF(pointer) (*(const lanes *)(pointer))
/* The same for addresses that are not multiples of 32. */
#define LANES_ANYWHERE(pointer) (*(lanes_anywhere *)(pointer))
#define LANES_FROM(pointer) (*(const lanes_anywhere *)(pointer))

/* Helpers of cloned functions must be inlined: otherwise they use the oldest instruction set. */
#if defined(__GNUC__)
#define LANES_INLINE static inline __attribute__((always_inline))
#else
#define LANES_INLINE static inline
#endif

/* fmax and fmin call the library because of NaN; these do not. They return b if a is NaN. */
LANES_INLINE double larger(double a, double b) { return a > b ? a : b; }
LANES_INLINE double smaller(double a, double b) { return a < b ? a : b; }

typedef long long lane_bits __attribute__((vector_size(32), may_alias));

/* a where the mask is set, else b */
LANES_INLINE void lanes_choose(lanes *out, const lane_bits *mask, const lanes *a, const lanes *b) {
  *out = (lanes)((*mask & (lane_bits)*a) | (~*mask & (lane_bits)*b));
}

/* a where the mask is set, else 0 */
LANES_INLINE void lanes_keep(lanes *out, const lane_bits *mask, const lanes *a) {
  *out = (lanes)(*mask & (lane_bits)*a);
}

LANES_INLINE void lanes_sqrt(lanes *out, const lanes *a) {
  const lanes of = *a;
  *out = (lanes){sqrt(of[0]), sqrt(of[1]), sqrt(of[2]), sqrt(of[3])};
}

/* Element by element a > b ? a : b, so b where a is NaN. */
LANES_INLINE void lanes_larger(lanes *out, const lanes *a, const lanes *b) {
  const lane_bits mask = *a > *b;
  lanes_choose(out, &mask, a, b);
}

LANES_INLINE double dot_product(const double *a, const double *b, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

LANES_INLINE int all_finite(const double *a, int count) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  int i = 0;
  for (; i + LANE_COUNT <= count; i += LANE_COUNT) {
    sum += LANES_FROM(a + i) * 0.0;
  }
  for (; i < count; ++i) {
    sum[0] += a[i] * 0.0;
  }
  return (sum[0] + sum[1]) + (sum[2] + sum[3]) == 0.0;
}

/* max |a_i|, without NaNs */
LANES_INLINE double max_norm(const double *a, int count) {
  const lane_bits sign = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
  lanes most = {0.0, 0.0, 0.0, 0.0};
  int i = 0;
  for (; i + LANE_COUNT <= count; i += LANE_COUNT) {
    const lanes value = LANES_FROM(a + i), size = (lanes)((lane_bits)value & ~sign);
    lanes_larger(&most, &size, &most);
  }
  for (; i < count; ++i) {
    most[0] = larger(a[i] < 0.0 ? -a[i] : a[i], most[0]);
  }
  return larger(larger(most[0], most[1]), larger(most[2], most[3]));
}

/* max |a_i|, or infinity if an entry is NaN or infinite. For comparisons that accept an answer. */
LANES_INLINE double max_norm_or_infinity(const double *a, int count) {
  const double most = max_norm(a, count);
  return all_finite(a, count) ? most : __builtin_inf();
}

/* 0 if squares in the sum have overflowed, or if relevant squares may have underflowed. */
LANES_INLINE int squares_are_safe(double sum) { return sum > 1e-280 && sum < __builtin_inf(); }

/* The smallest of `count` (a multiple of four) numbers and `ceiling`; NaNs are ignored. */
LANES_INLINE double smallest_of(const double *a, int count, double ceiling) {
  double part[LANE_COUNT] = {ceiling, ceiling, ceiling, ceiling};
  for (int i = 0; i < count; i += LANE_COUNT) {
    for (int k = 0; k < LANE_COUNT; ++k) {
      part[k] = smaller(a[i + k], part[k]);
    }
  }
  return smaller(smaller(part[0], part[1]), smaller(part[2], part[3]));
}

/* Vectors are passed by address: passing them by value depends on the instruction set. */
LANES_INLINE double lanes_sum(const lanes *a) { return ((*a)[0] + (*a)[1]) + ((*a)[2] + (*a)[3]); }

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define LANES_HAVE_SHUFFLE
#endif
#endif

/* out[k] = sum of a_k, in the same order as lanes_sum */
LANES_INLINE void lanes_sums(lanes *out, const lanes *a0, const lanes *a1, const lanes *a2,
                             const lanes *a3) {
#ifdef LANES_HAVE_SHUFFLE
  const lanes low =
      __builtin_shufflevector(*a0, *a1, 0, 4, 2, 6) + __builtin_shufflevector(*a0, *a1, 1, 5, 3, 7);
  const lanes high =
      __builtin_shufflevector(*a2, *a3, 0, 4, 2, 6) + __builtin_shufflevector(*a2, *a3, 1, 5, 3, 7);
  *out = __builtin_shufflevector(low, high, 0, 1, 4, 5) +
         __builtin_shufflevector(low, high, 2, 3, 6, 7);
#else
  *out = (lanes){lanes_sum(a0), lanes_sum(a1), lanes_sum(a2), lanes_sum(a3)};
#endif
}

/* out[k] = (a0[k], a1[k], a2[k], a3[k]) */
LANES_INLINE void lanes_transpose(lanes *out, const lanes *a0, const lanes *a1, const lanes *a2,
                                  const lanes *a3) {
#ifdef LANES_HAVE_SHUFFLE
  const lanes even01 = __builtin_shufflevector(*a0, *a1, 0, 4, 2, 6);
  const lanes odd01 = __builtin_shufflevector(*a0, *a1, 1, 5, 3, 7);
  const lanes even23 = __builtin_shufflevector(*a2, *a3, 0, 4, 2, 6);
  const lanes odd23 = __builtin_shufflevector(*a2, *a3, 1, 5, 3, 7);
  out[0] = __builtin_shufflevector(even01, even23, 0, 1, 4, 5);
  out[1] = __builtin_shufflevector(odd01, odd23, 0, 1, 4, 5);
  out[2] = __builtin_shufflevector(even01, even23, 2, 3, 6, 7);
  out[3] = __builtin_shufflevector(odd01, odd23, 2, 3, 6, 7);
#else
  for (int k = 0; k < 4; ++k) {
    out[k] = (lanes){(*a0)[k], (*a1)[k], (*a2)[k], (*a3)[k]};
  }
#endif
}

/* out = a x b of the first three lanes; the fourth lane is a[3] b[3] - a[3] b[3]. */
LANES_INLINE void lanes_cross(lanes *out, const lanes *a, const lanes *b) {
#ifdef LANES_HAVE_SHUFFLE
  *out = __builtin_shufflevector(*a, *a, 1, 2, 0, 3) * __builtin_shufflevector(*b, *b, 2, 0, 1, 3) -
         __builtin_shufflevector(*a, *a, 2, 0, 1, 3) * __builtin_shufflevector(*b, *b, 1, 2, 0, 3);
#else
  const lanes x = *a, y = *b;
  *out = (lanes){x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0],
                 x[3] * y[3] - x[3] * y[3]};
#endif
}

#endif
