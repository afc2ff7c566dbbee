/* Four doubles side by side. Arithmetic on `lanes` is element by element, so every instruction set
 * gives the same bits as long as the compiler does not fuse multiply and add (-ffp-contract=off).
 */
#ifndef QD_NUMERICS_LANES_H
#define QD_NUMERICS_LANES_H

#include "base/clones.h"

#define LANE_COUNT 4

typedef double lanes __attribute__((vector_size(32), may_alias));

#define LANES_AT(pointer) (*(lanes *)(pointer))
#define LANES_OF(pointer) (*(const lanes *)(pointer))

/* Helpers of cloned functions must be part of them, or they run on the oldest instruction set. */
#if defined(__GNUC__)
#define LANES_INLINE static inline __attribute__((always_inline))
#else
#define LANES_INLINE static inline
#endif

/* By address: passing wide vectors by value depends on the instruction set. */
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

#endif
