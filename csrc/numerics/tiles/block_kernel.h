/* Kernels over one block of rows, specialised for common sizes: with constant sizes, the compiler
 * unrolls loops and keeps sums in registers. */
#ifndef QD_NUMERICS_BLOCK_KERNEL_H
#define QD_NUMERICS_BLOCK_KERNEL_H

#include "base/lanes.h"
#include "numerics/tiles/tiles.h"

/* Arguments of a kernel. */
typedef struct block_call {
  const tile_system *system;
  const row_block *block;
  const double *A; /* G or S */
  const double *in;
  double *out;
  const cone_operator *scaling;
} block_call;

typedef void block_kernel(const block_call *call, int rows, int tile_count);

/* Runs `kernel` with the call's block sizes, specialised for contacts (three rows) of two and three
 * tiles and for other common numbers of rows. The kernel must be inlined for each branch to become
 * a kernel of its own. */
LANES_INLINE void run_block_kernel(block_kernel *kernel, const block_call *call) {
  const int rows = call->block->row_count, tile_count = call->block->tile_count;
  switch (rows) {
  case 1:
    kernel(call, 1, tile_count);
    break;
  case 2:
    kernel(call, 2, tile_count);
    break;
  case 3:
    if (tile_count == 3) {
      kernel(call, 3, 3);
    } else if (tile_count == 2) {
      kernel(call, 3, 2);
    } else {
      kernel(call, 3, tile_count);
    }
    break;
  case 4:
    kernel(call, 4, tile_count);
    break;
  default:
    kernel(call, rows, tile_count);
  }
}

#endif
