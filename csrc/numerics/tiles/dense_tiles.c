#include "numerics/tiles/dense_tiles.h"

#include <string.h>

#include "base/rounding.h"
#include "numerics/tiles/blas.h"

size_t dense_tiles_scratch(size_t columns, size_t rows, size_t fill) {
  const size_t tiles = columns / 4, triangle = tiles * (tiles + 1) / 2;
  if (columns < DENSE_COLUMNS || 2 * fill < triangle) {
    return 0;
  }
  return columns * columns + (fill == triangle ? columns * rows : 0);
}

void dense_tiles_use_one_thread(void) {
#if QD_LAPACK_PREFIXED
  scipy_openblas_set_num_threads(1);
#endif
}

void dense_tiles_choose(tile_system *system) {
  const size_t tiles = (size_t)system->tile_count, columns = 4 * tiles;
  const size_t fill = tiles + (size_t)system->column_start[tiles],
               triangle = tiles * (tiles + 1) / 2;
  size_t rows = 0, entries = 0;
  for (int b = 0; b < system->block_count; ++b) {
    rows += (size_t)system->blocks[b].row_count;
    entries += (size_t)system->blocks[b].row_count * (size_t)system->blocks[b].tile_count;
  }
  system->dense_factor =
      columns >= DENSE_COLUMNS && 2 * fill >= triangle && columns * columns <= system->dense_room;
  system->dense_products = system->dense_factor && fill == triangle &&
                           2 * entries >= rows * tiles &&
                           columns * (columns + rows) <= system->dense_room;
}

/* Packs the rows of S, each with all columns, into a column-major (columns, rows) matrix; returns
 * their number. */
static int pack_rows(const tile_system *system, double *packed) {
  const size_t columns = 4 * (size_t)system->tile_count;
  int rows = 0;
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    const double *values = system->S + block->values;
    double *at = packed + (size_t)rows * columns;
    memset(at, 0, (size_t)block->row_count * columns * sizeof(double));
    for (int k = 0; k < block->tile_count; ++k) {
      const size_t first = 4 * (size_t)system->block_tiles[block->tile_start + k];
      for (int i = 0; i < block->row_count; ++i, values += 4) {
        memcpy(at + (size_t)i * columns + first, values, 4 * sizeof(double));
      }
    }
    rows += block->row_count;
  }
  return rows;
}

/* Position of tile (i, j) in the column-major matrix. */
static double *dense_tile(const tile_system *system, int i, int j) {
  const size_t columns = 4 * (size_t)system->tile_count;
  return system->dense + 4 * (size_t)j * columns + 4 * (size_t)i;
}

void dense_tiles_add_products(tile_system *system) {
  const int columns = 4 * system->tile_count;
  double *packed = system->dense + (size_t)columns * (size_t)columns;
  const int rows = pack_rows(system, packed);
  BLAS_NAME(cblas_dsyrk)
  (CblasColMajor, CblasLower, CblasNoTrans, columns, rows, 1.0, packed, columns, 0.0, system->dense,
   columns);
  for (int i = 0; i < system->tile_count; ++i) {
    for (int j = 0; j <= i; ++j) {
      double *tile = tile_at(system, i, j);
      const double *from = dense_tile(system, i, j);
      for (int b = 0; b < 4; ++b) {
        for (int a = i == j ? b : 0; a < 4; ++a) {
          const double value = from[(size_t)b * (size_t)columns + (size_t)a];
          tile[4 * b + a] += value;
          if (i == j && a > b) {
            tile[4 * a + b] += value;
          }
        }
      }
    }
  }
}

/* Copies H, with zeros for missing tiles. */
static void load_tiles(const tile_system *system) {
  const size_t columns = 4 * (size_t)system->tile_count;
  memset(system->dense, 0, columns * columns * sizeof(double));
  for (int j = 0; j < system->tile_count; ++j) {
    for (int k = system->column_start[j] - 1; k < system->column_start[j + 1]; ++k) {
      const int i = k < system->column_start[j] ? j : system->column_tiles[k];
      for (int b = 0; b < 4; ++b) {
        memcpy(dense_tile(system, i, j) + (size_t)b * columns,
               system->H + tile_offset(j, k) + 4 * b, 4 * sizeof(double));
      }
    }
  }
}

/* Smallest ratio of a pivot to its diagonal entry before elimination. */
static double weakest_pivot(const tile_system *system) {
  const size_t columns = 4 * (size_t)system->tile_count;
  double weakest = 1.0;
  for (size_t k = 0; k < columns; ++k) {
    const double root = system->dense[k * columns + k];
    const double before =
        system->H[tile_offset_diagonal(system->column_start, (int)k / 4) + 5 * (k % 4)];
    const double ratio = root * root / before;
    weakest = ratio < weakest ? ratio : weakest;
  }
  return weakest;
}

/* tile = L L' of the lower triangle L at `from` */
static void square_diagonal(double *tile, const double *from, size_t columns) {
  for (int b = 0; b < 4; ++b) {
    for (int a = 0; a < 4; ++a) {
      double sum = 0.0;
      for (int c = 0; c <= (a < b ? a : b); ++c) {
        sum += from[(size_t)c * columns + (size_t)a] * from[(size_t)c * columns + (size_t)b];
      }
      tile[4 * b + a] = sum;
    }
  }
}

int dense_tiles_factor(tile_system *system) {
  const int columns = 4 * system->tile_count;
  load_tiles(system);
  if (BLAS_NAME(LAPACKE_dpotrf_work)(LAPACK_COL_MAJOR, 'L', columns, system->dense, columns) != 0) {
    return 0;
  }
  const double weakest = weakest_pivot(system);
  if (!(weakest > NEGLIGIBLE)) {
    return 0; /* also for NaN */
  }
  system->weakest_pivot = weakest;
  for (int j = 0; j < system->tile_count; ++j) {
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      for (int b = 0; b < 4; ++b) {
        memcpy(system->H + tile_offset(j, k) + 4 * b,
               dense_tile(system, system->column_tiles[k], j) + (size_t)b * (size_t)columns,
               4 * sizeof(double));
      }
    }
    square_diagonal(system->H + tile_offset_diagonal(system->column_start, j),
                    dense_tile(system, j, j), (size_t)columns);
  }
  return 1;
}
