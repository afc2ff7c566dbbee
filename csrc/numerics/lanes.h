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

/* By address: passing wide vectors by value depends on the instruction set. */
static inline double lanes_sum(const lanes *a) { return ((*a)[0] + (*a)[1]) + ((*a)[2] + (*a)[3]); }

#endif
