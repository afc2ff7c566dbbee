/* Tile kernels for four right-hand sides at once. An entry of a vector is four numbers, one for
 * each right-hand side, so the matrix is read once and there are no horizontal sums. */
#include <string.h>

#include "base/lanes.h"
#include "numerics/tiles/block_kernel.h"
#include "numerics/tiles/tiles.h"

/* y_a += sign * sum_b L[b][a] x_b, with L the tile's column vectors; in registers until the end */
LANES_INLINE void add_tile(double *y, const double *L, const double *x, double sign) {
  lanes y0 = LANES_OF(y), y1 = LANES_OF(y + 4), y2 = LANES_OF(y + 8), y3 = LANES_OF(y + 12);
  for (int b = 0; b < 4; ++b) {
    const lanes xb = sign * LANES_OF(x + 4 * b);
    y0 += L[4 * b] * xb;
    y1 += L[4 * b + 1] * xb;
    y2 += L[4 * b + 2] * xb;
    y3 += L[4 * b + 3] * xb;
  }
  LANES_AT(y) = y0;
  LANES_AT(y + 4) = y1;
  LANES_AT(y + 8) = y2;
  LANES_AT(y + 12) = y3;
}

/* y_b += sign * sum_a L[b][a] x_a */
LANES_INLINE void add_tile_transposed(double *y, const double *L, const double *x, double sign) {
  const lanes x0 = LANES_OF(x), x1 = LANES_OF(x + 4), x2 = LANES_OF(x + 8), x3 = LANES_OF(x + 12);
  for (int b = 0; b < 4; ++b) {
    const double *column = L + 4 * b;
    LANES_AT(y + 4 * b) +=
        sign * (column[0] * x0 + column[1] * x1 + column[2] * x2 + column[3] * x3);
  }
}

QD_MULTIVERSION
void tiles_solve4(const tile_system *system, double *x) {
  lanes work[4];
  double *y = (double *)work;
  for (int j = 0; j < system->tile_count; ++j) {
    double *xj = x + 16 * (size_t)j;
    memset(y, 0, sizeof work);
    add_tile(y, system->inverse + 32 * (size_t)j + 16, xj, 1.0);
    memcpy(xj, y, sizeof work);
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      const int i = system->column_tiles[k];
      add_tile(x + 16 * (size_t)i, system->H + tile_offset(j, k), xj, -1.0);
    }
  }
  for (int j = system->tile_count - 1; j >= 0; --j) {
    double *xj = x + 16 * (size_t)j;
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      const int i = system->column_tiles[k];
      add_tile_transposed(xj, system->H + tile_offset(j, k), x + 16 * (size_t)i, -1.0);
    }
    memset(y, 0, sizeof work);
    add_tile(y, system->inverse + 32 * (size_t)j, xj, 1.0);
    memcpy(xj, y, sizeof work);
  }
}

LANES_INLINE void multiply_block4(const block_call *call, int rows, int tile_count) {
  const row_block *block = call->block;
  const int *tiles = call->system->block_tiles + block->tile_start;
  const double *A = call->A, *x = call->in;
  double *y = call->out;
  for (int i = 0; i < rows; ++i) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < tile_count; ++k) {
      const double *values = A + block->values + 4 * (k * rows + i);
      const double *xk = x + 16 * (size_t)tiles[k];
      sum += (values[0] * LANES_OF(xk) + values[1] * LANES_OF(xk + 4)) +
             (values[2] * LANES_OF(xk + 8) + values[3] * LANES_OF(xk + 12));
    }
    LANES_AT(y + 4 * (size_t)(block->slot + i * block->slot_step)) = sum;
  }
}

QD_MULTIVERSION
void tiles_multiply4(const tile_system *system, const int *blocks, int block_count, const double *A,
                     const double *x, double *y) {
  for (int b = 0; b < block_count; ++b) {
    const block_call call = {system, &system->blocks[blocks[b]], A, x, y, NULL};
    run_block_kernel(multiply_block4, &call);
  }
}

LANES_INLINE void add_transposed_block4(const block_call *call, int rows, int tile_count) {
  const row_block *block = call->block;
  const int *tiles = call->system->block_tiles + block->tile_start;
  const double *values = call->A + block->values, *y = call->in;
  double *x = call->out;
  for (int k = 0; k < tile_count; ++k) {
    double *at = x + 16 * (size_t)tiles[k];
    lanes x0 = LANES_OF(at), x1 = LANES_OF(at + 4), x2 = LANES_OF(at + 8);
    lanes x3 = LANES_OF(at + 12);
    for (int i = 0; i < rows; ++i, values += 4) {
      const lanes yi = LANES_OF(y + 4 * (size_t)(block->slot + i * block->slot_step));
      x0 += values[0] * yi;
      x1 += values[1] * yi;
      x2 += values[2] * yi;
      x3 += values[3] * yi;
    }
    LANES_AT(at) = x0;
    LANES_AT(at + 4) = x1;
    LANES_AT(at + 8) = x2;
    LANES_AT(at + 12) = x3;
  }
}

QD_MULTIVERSION
void tiles_add_transposed4(const tile_system *system, const int *blocks, int block_count,
                           const double *A, const double *y, double *x) {
  for (int b = 0; b < block_count; ++b) {
    const block_call call = {system, &system->blocks[blocks[b]], A, y, x, NULL};
    run_block_kernel(add_transposed_block4, &call);
  }
}

QD_MULTIVERSION
void tiles_multiply_Q4(const tile_system *system, const double *x, double *y) {
  const size_t size = 16 * (size_t)system->tile_count;
  memcpy(y, x, size * sizeof(double));
  if (system->Q_is_diagonal) {
    return;
  }
  memset(y, 0, size * sizeof(double));
  for (int j = 0; j < system->tile_count; ++j) {
    const double *xj = x + 16 * (size_t)j;
    add_tile(y + 16 * (size_t)j, system->Q + tile_offset_diagonal(system->Q_start, j), xj, 1.0);
    for (int k = system->Q_start[j]; k < system->Q_start[j + 1]; ++k) {
      const int i = system->Q_tiles[k];
      const double *A = system->Q + tile_offset(j, k);
      add_tile(y + 16 * (size_t)i, A, xj, 1.0);
      add_tile_transposed(y + 16 * (size_t)j, A, x + 16 * (size_t)i, 1.0);
    }
  }
}
