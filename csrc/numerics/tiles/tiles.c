#include "numerics/tiles/tiles.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/tiles/block_kernel.h"
#include "numerics/tiles/dense_tiles.h"

/* Largest number of columns with the same tiles that are factored together: their updates of other
 * columns are summed before they are written to memory. */
#define PANEL 8

LANES_INLINE void tile_clear(double *tile) {
  const lanes zero = {0.0, 0.0, 0.0, 0.0};
  for (int k = 0; k < 16; k += 4) {
    LANES_AT(tile + k) = zero;
  }
}

LANES_INLINE void tile_copy(double *tile, const double *from) {
  for (int k = 0; k < 16; k += 4) {
    LANES_AT(tile + k) = LANES_OF(from + k);
  }
}

/* ------------------------------------------------------------ assembly */

/* S = scaling * G for one Lorentz cone: with t = u'G, rows
 * S_0 = diagonal G_0 + cross t, S_i = tangent G_i + u_i (cross G_0 + (along - tangent) t). */
LANES_INLINE void scale_cone(const row_block *block, const double *G, double *S,
                             const cone_operator *scaling, int rows, int tile_count) {
  const int step = block->slot_step;
  const double *u = scaling->u + block->slot;
  const double diagonal = scaling->diagonal[block->cone], cross = scaling->cross[block->cone];
  const double tangent = scaling->tangent[block->cone], along = scaling->along[block->cone];
  for (int k = 0; k < tile_count; ++k, G += 4 * rows, S += 4 * rows) {
    const lanes first = LANES_OF(G);
    lanes t = {0.0, 0.0, 0.0, 0.0};
    for (int i = 1; i < rows; ++i) {
      t += u[i * step] * LANES_OF(G + 4 * i);
    }
    const lanes shared = cross * first + (along - tangent) * t;
    LANES_AT(S) = diagonal * first + cross * t;
    for (int i = 1; i < rows; ++i) {
      LANES_AT(S + 4 * i) = tangent * LANES_OF(G + 4 * i) + u[i * step] * shared;
    }
  }
}

LANES_INLINE void scale_rows(const row_block *block, const double *G, double *S,
                             const cone_operator *scaling, int rows) {
  const double *diagonal = scaling->diagonal + block->cone;
  for (int k = 0; k < block->tile_count; ++k, G += 4 * rows, S += 4 * rows) {
    for (int i = 0; i < rows; ++i) {
      LANES_AT(S + 4 * i) = diagonal[i] * LANES_OF(G + 4 * i);
    }
  }
}

/* tile += A_i' A_j; the product is summed in registers first, which avoids chains of stores and
 * loads between blocks that share a tile */
LANES_INLINE void tile_add_product(double *tile, const double *Ai, const double *Aj, int rows) {
  const lanes first = LANES_OF(Ai);
  lanes c0 = first * Aj[0], c1 = first * Aj[1], c2 = first * Aj[2], c3 = first * Aj[3];
  for (int r = 1; r < rows; ++r) {
    const lanes a = LANES_OF(Ai + 4 * r);
    c0 += a * Aj[4 * r];
    c1 += a * Aj[4 * r + 1];
    c2 += a * Aj[4 * r + 2];
    c3 += a * Aj[4 * r + 3];
  }
  LANES_AT(tile) += c0;
  LANES_AT(tile + 4) += c1;
  LANES_AT(tile + 8) += c2;
  LANES_AT(tile + 12) += c3;
}

LANES_INLINE void start_from_Q(tile_system *system, double shift) {
  for (int j = 0; j < system->tile_count; ++j) {
    double *diagonal = system->H + tile_offset_diagonal(system->column_start, j);
    if (system->Q_is_diagonal) {
      tile_clear(diagonal);
      for (int k = 0; k < 4; ++k) {
        diagonal[5 * k] = 1.0 + shift;
      }
    } else {
      tile_copy(diagonal, system->Q + tile_offset_diagonal(system->Q_start, j));
      for (int k = 0; k < 4; ++k) {
        diagonal[5 * k] += shift;
      }
    }
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      tile_clear(system->H + tile_offset(j, k));
    }
    if (system->Q_is_diagonal) {
      continue;
    }
    for (int k = system->Q_start[j]; k < system->Q_start[j + 1]; ++k) {
      tile_copy(tile_at(system, system->Q_tiles[k], j), system->Q + tile_offset(j, k));
    }
  }
}

/* 1 if no direction of the block has a stiffness: S = 0, which is not stored. */
LANES_INLINE int is_open(const row_block *block, const cone_operator *scaling, int rows) {
  const double *diagonal = scaling->diagonal + block->cone;
  if (block->slot_step != 1) {
    return diagonal[0] == 0.0 && scaling->tangent[block->cone] == 0.0;
  }
  int first = 0;
  while (first < rows && diagonal[first] == 0.0) {
    ++first;
  }
  return first == rows;
}

void tiles_note_products(tile_system *system) {
  size_t noted = 0;
  for (int b = 0; b < system->block_count && system->tile_count > PLACE_TILES; ++b) {
    row_block *block = system->blocks + b;
    const int *tiles = system->block_tiles + block->tile_start, count = block->tile_count;
    const size_t pairs = (size_t)count * ((size_t)count + 1) / 2;
    block->products = -1;
    if (noted + pairs > system->product_room) {
      continue;
    }
    block->products = (int)noted;
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j <= i; ++j) {
        system->product_tiles[noted++] = (int)tile_find(system, tiles[i], tiles[j]);
      }
    }
  }
}

/* Writes stiff rows to S and adds their products to H, whose tile positions stand in the table or
 * in lists. */
LANES_INLINE void add_block(const block_call *call, int rows, int tile_count, int by_table) {
  const tile_system *system = call->system;
  const row_block *block = call->block;
  const cone_operator *scaling = call->scaling;
  const int *tiles = system->block_tiles + block->tile_start;
  const double *G = system->G + block->values;
  double *S = system->S + block->values;
  if (is_open(block, scaling, rows)) {
    if (system->dense_products) {
      memset(S, 0, (size_t)(4 * rows * tile_count) * sizeof(double));
    }
    return;
  }
  if (block->slot_step == 1) {
    scale_rows(block, G, S, scaling, rows);
  } else {
    scale_cone(block, G, S, scaling, rows, tile_count);
  }
  if (system->dense_products) {
    return;
  }
  const int *noted =
      by_table || block->products < 0 ? NULL : system->product_tiles + block->products;
  for (int i = 0; i < tile_count; ++i) {
    for (int j = 0; j <= i; ++j) {
      const size_t place = by_table        ? tile_place(system, tiles[i], tiles[j])
                           : noted != NULL ? (size_t)*noted++
                                           : tile_find(system, tiles[i], tiles[j]);
      tile_add_product(system->H + 16 * place, S + 4 * rows * i, S + 4 * rows * j, rows);
    }
  }
}

/* As block_kernel. */
LANES_INLINE void add_block_by_table(const block_call *call, int rows, int tile_count) {
  add_block(call, rows, tile_count, 1);
}

LANES_INLINE void add_block_by_list(const block_call *call, int rows, int tile_count) {
  add_block(call, rows, tile_count, 0);
}

QD_MULTIVERSION
void tiles_assemble(tile_system *system, const cone_operator *scaling, double shift) {
  start_from_Q(system, shift);
  const int by_table = system->tile_count <= PLACE_TILES;
  for (int b = 0; b < system->block_count && by_table; ++b) {
    const block_call call = {system, &system->blocks[b], NULL, NULL, NULL, scaling};
    run_block_kernel(add_block_by_table, &call);
  }
  for (int b = 0; b < system->block_count && !by_table; ++b) {
    const block_call call = {system, &system->blocks[b], NULL, NULL, NULL, scaling};
    run_block_kernel(add_block_by_list, &call);
  }
  if (system->dense_products) {
    dense_tiles_add_products(system);
  }
}

/* ------------------------------------------------------------ factorisation */

/* 1/pivot, or 0 for a dependent column, whose unknown then stays zero. `before`: the diagonal entry
 * before other columns of the tile were eliminated; `whole`: before any elimination. */
LANES_INLINE double pivot_reciprocal(double pivot, double before, double whole, double *weakest,
                                     int *dropped) {
  if (pivot < *weakest * whole) {
    *weakest = pivot / whole;
  }
  if (pivot > LAST_DIGITS * before) {
    return 1.0 / pivot;
  }
  ++*dropped;
  return 0.0;
}

/* Stores a tile's diagonal for factor_diagonal. */
LANES_INLINE void keep_diagonal(const double *tile, double *by_rows) {
  for (int k = 0; k < 4; ++k) {
    by_rows[k] = tile[5 * k];
  }
}

/* Inverse M of the Cholesky factor of one tile, by rows (M[a][b]) and by columns. On entry,
 * `by_rows` starts with the diagonal before any elimination. Factors H = U D U' with unit U first:
 * this chain has one division per column, and the four square roots are independent. */
LANES_INLINE int factor_diagonal(const double *tile, double *by_rows, double *by_columns,
                                 double *weakest) {
  int dropped = 0;
  const double whole[] = {by_rows[0], by_rows[1], by_rows[2], by_rows[3]};
  const double r0 = pivot_reciprocal(tile[0], tile[0], whole[0], weakest, &dropped);
  const double u10 = tile[1] * r0, u20 = tile[2] * r0, u30 = tile[3] * r0;
  const double r1 = pivot_reciprocal(tile[5] - u10 * tile[1], tile[5], whole[1], weakest, &dropped);
  const double c21 = tile[6] - u20 * tile[1], c31 = tile[7] - u30 * tile[1];
  const double u21 = c21 * r1, u31 = c31 * r1;
  const double r2 = pivot_reciprocal((tile[10] - u20 * tile[2]) - u21 * c21, tile[10], whole[2],
                                     weakest, &dropped);
  const double c32 = (tile[11] - u30 * tile[2]) - u31 * c21;
  const double u32 = c32 * r2;
  const double r3 = pivot_reciprocal(((tile[15] - u30 * tile[3]) - u31 * c31) - u32 * c32, tile[15],
                                     whole[3], weakest, &dropped);
  const double m20 = u21 * u10 - u20, m31 = u32 * u21 - u31;
  const double m30 = (u31 * u10 - u30) - u32 * m20;
  const double s0 = sqrt(r0), s1 = sqrt(r1), s2 = sqrt(r2), s3 = sqrt(r3);
  const lanes scale = {s0, s1, s2, s3};
  LANES_AT(by_columns) = scale * (lanes){1.0, -u10, m20, m30};
  LANES_AT(by_columns + 4) = scale * (lanes){0.0, 1.0, -u21, m31};
  LANES_AT(by_columns + 8) = scale * (lanes){0.0, 0.0, 1.0, -u32};
  LANES_AT(by_columns + 12) = scale * (lanes){0.0, 0.0, 0.0, 1.0};
  LANES_AT(by_rows) = s0 * (lanes){1.0, 0.0, 0.0, 0.0};
  LANES_AT(by_rows + 4) = s1 * (lanes){-u10, 1.0, 0.0, 0.0};
  LANES_AT(by_rows + 8) = s2 * (lanes){m20, -u21, 1.0, 0.0};
  LANES_AT(by_rows + 12) = s3 * (lanes){m30, m31, -u32, 1.0};
  return dropped;
}

/* L_ij' = M H_ij' with M the inverse diagonal factor: vector b is sum over c <= b of M[b][c] vector
 * c */
LANES_INLINE void tile_divide(double *tile, const double *M) {
  const lanes h0 = LANES_OF(tile), h1 = LANES_OF(tile + 4), h2 = LANES_OF(tile + 8);
  const lanes h3 = LANES_OF(tile + 12);
  LANES_AT(tile) = M[0] * h0;
  LANES_AT(tile + 4) = M[4] * h0 + M[5] * h1;
  LANES_AT(tile + 8) = (M[8] * h0 + M[9] * h1) + M[10] * h2;
  LANES_AT(tile + 12) = (M[12] * h0 + M[13] * h1) + (M[14] * h2 + M[15] * h3);
}

/* H_ik -= sum over columns j of L_ij L_kj', for the tiles of two rows i at once: vector c loses the
 * sum over b of L_kj[c][b] (vector b of L_ij). `column[j]` + the offset of a row is L of column
 * j. */
LANES_INLINE void subtract_two(double *first, double *second, double *const *column, int count,
                               size_t i, size_t k) {
  lanes c0 = LANES_OF(first), c1 = LANES_OF(first + 4), c2 = LANES_OF(first + 8);
  lanes c3 = LANES_OF(first + 12), d0 = LANES_OF(second), d1 = LANES_OF(second + 4);
  lanes d2 = LANES_OF(second + 8), d3 = LANES_OF(second + 12);
  for (int j = 0; j < count; ++j) {
    const double *Li = column[j] + i, *Lk = column[j] + k;
    for (int b = 0; b < 16; b += 4) {
      const lanes a = LANES_OF(Li + b), o = LANES_OF(Li + 16 + b);
      c0 -= Lk[b] * a;
      d0 -= Lk[b] * o;
      c1 -= Lk[b + 1] * a;
      d1 -= Lk[b + 1] * o;
      c2 -= Lk[b + 2] * a;
      d2 -= Lk[b + 2] * o;
      c3 -= Lk[b + 3] * a;
      d3 -= Lk[b + 3] * o;
    }
  }
  LANES_AT(first) = c0;
  LANES_AT(first + 4) = c1;
  LANES_AT(first + 8) = c2;
  LANES_AT(first + 12) = c3;
  LANES_AT(second) = d0;
  LANES_AT(second + 4) = d1;
  LANES_AT(second + 8) = d2;
  LANES_AT(second + 12) = d3;
}

/* The same for one row. */
LANES_INLINE void subtract_one(double *tile, double *const *column, int count, size_t i, size_t k) {
  lanes c0 = LANES_OF(tile), c1 = LANES_OF(tile + 4), c2 = LANES_OF(tile + 8);
  lanes c3 = LANES_OF(tile + 12);
  for (int j = 0; j < count; ++j) {
    const double *Li = column[j] + i, *Lk = column[j] + k;
    for (int b = 0; b < 16; b += 4) {
      const lanes a = LANES_OF(Li + b);
      c0 -= Lk[b] * a;
      c1 -= Lk[b + 1] * a;
      c2 -= Lk[b + 2] * a;
      c3 -= Lk[b + 3] * a;
    }
  }
  LANES_AT(tile) = c0;
  LANES_AT(tile + 4) = c1;
  LANES_AT(tile + 8) = c2;
  LANES_AT(tile + 12) = c3;
}

/* Number of columns from j on that have the same tiles below the last of them, at most PANEL: the
 * tiles of each are the next column's diagonal and that column's tiles. */
static int panel_width(const tile_system *system, int j) {
  const int *start = system->column_start;
  int width = 1;
  while (width < PANEL && start[j + width] > start[j + width - 1] &&
         system->column_tiles[start[j + width - 1]] == j + width &&
         start[j + width + 1] - start[j + width] == start[j + width] - start[j + width - 1] - 1) {
    ++width;
  }
  return width;
}

/* Subtracts the panel's products from column K, the k-th of the tiles below the panel, from its
 * diagonal on. */
LANES_INLINE void update_column(tile_system *system, double *const *column, int width,
                                const int *tiles, int count, int k) {
  const int K = tiles[k];
  const size_t at = 16 * (size_t)k;
  double *diagonal = system->H + tile_offset_diagonal(system->column_start, K);
  double *own = diagonal + 16;
  const int *list = system->column_tiles + system->column_start[K];
  int i = k + 1, place = 0;
  subtract_one(diagonal, column, width, at, at);
  for (; i + 1 < count; i += 2) {
    while (list[place] != tiles[i]) {
      ++place;
    }
    double *first = own + 16 * (size_t)place;
    while (list[place] != tiles[i + 1]) {
      ++place;
    }
    subtract_two(first, own + 16 * (size_t)place, column, width, 16 * (size_t)i, at);
  }
  if (i < count) {
    while (list[place] != tiles[i]) {
      ++place;
    }
    subtract_one(own + 16 * (size_t)place, column, width, 16 * (size_t)i, at);
  }
}

/* Factors column j, which `left` columns of its panel follow: computes its tiles of L and updates
 * the rest of the panel. Returns the number of dropped pivots. */
LANES_INLINE int factor_column(tile_system *system, int j, int left, double *weakest) {
  const int *start = system->column_start;
  const int count = start[j + 1] - start[j];
  double *inverse = system->inverse + 32 * (size_t)j;
  double *column = system->H + tile_offset(j, start[j]);
  const int dropped =
      factor_diagonal(system->H + tile_offset_diagonal(start, j), inverse, inverse + 16, weakest);
  for (int i = 0; i < count; ++i) {
    tile_divide(column + 16 * (size_t)i, inverse);
  }
  for (int k = 0; k < left; ++k) { /* column j + 1 + k has the same tiles from the k-th on */
    double *tile = system->H + tile_offset_diagonal(start, j + 1 + k);
    const size_t at = 16 * (size_t)k;
    int i = k;
    for (; i + 1 < count; i += 2, tile += 32) {
      subtract_two(tile, tile + 16, &column, 1, 16 * (size_t)i, at);
    }
    if (i < count) {
      subtract_one(tile, &column, 1, 16 * (size_t)i, at);
    }
  }
  return dropped;
}

/* Factors columns j to j + width - 1 and updates all later columns. */
LANES_INLINE int factor_panel(tile_system *system, int j, int width, double *weakest) {
  const int *start = system->column_start, last = j + width - 1;
  const int count = start[last + 1] - start[last];
  double *column[PANEL];
  int dropped = 0;
  for (int c = 0; c < width; ++c) {
    dropped += factor_column(system, j + c, width - 1 - c, weakest);
    column[c] = system->H + tile_offset(j + c, start[j + c] + width - 1 - c);
  }
  for (int k = 0; k < count; ++k) {
    update_column(system, column, width, system->column_tiles + start[last], count, k);
  }
  return dropped;
}

QD_MULTIVERSION
int tiles_factor(tile_system *system) {
  int dropped = 0;
  double weakest = 1.0;
  if (system->dense_factor && dense_tiles_factor(system)) {
    for (int j = 0; j < system->tile_count; ++j) {
      double *inverse = system->inverse + 32 * (size_t)j;
      const double *tile = system->H + tile_offset_diagonal(system->column_start, j);
      keep_diagonal(tile, inverse);
      factor_diagonal(tile, inverse, inverse + 16, &weakest);
    }
    return 0;
  }
  for (int j = 0; j < system->tile_count; ++j) {
    keep_diagonal(system->H + tile_offset_diagonal(system->column_start, j),
                  system->inverse + 32 * (size_t)j);
  }
  for (int j = 0, width; j < system->tile_count; j += width) {
    width = panel_width(system, j);
    dropped += factor_panel(system, j, width, &weakest);
  }
  system->weakest_pivot = weakest;
  return dropped;
}

/* ------------------------------------------------------------ solves and products */

QD_MULTIVERSION
void tiles_solve(const tile_system *system, double *x) {
  for (int j = 0; j < system->tile_count; ++j) {
    const double *columns = system->inverse + 32 * (size_t)j + 16;
    double *xj = x + 4 * (size_t)j;
    const lanes y = (xj[0] * LANES_OF(columns) + xj[1] * LANES_OF(columns + 4)) +
                    (xj[2] * LANES_OF(columns + 8) + xj[3] * LANES_OF(columns + 12));
    LANES_AT(xj) = y;
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      const int i = system->column_tiles[k];
      const double *L = system->H + tile_offset(j, k);
      LANES_AT(x + 4 * (size_t)i) -= (y[0] * LANES_OF(L) + y[1] * LANES_OF(L + 4)) +
                                     (y[2] * LANES_OF(L + 8) + y[3] * LANES_OF(L + 12));
    }
  }
  for (int j = system->tile_count - 1; j >= 0; --j) {
    const double *rows = system->inverse + 32 * (size_t)j;
    double *xj = x + 4 * (size_t)j;
    lanes a0 = {0.0}, a1 = {0.0}, a2 = {0.0}, a3 = {0.0};
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      const int i = system->column_tiles[k];
      const double *L = system->H + tile_offset(j, k);
      const lanes xi = LANES_OF(x + 4 * (size_t)i);
      a0 += xi * LANES_OF(L);
      a1 += xi * LANES_OF(L + 4);
      a2 += xi * LANES_OF(L + 8);
      a3 += xi * LANES_OF(L + 12);
    }
    lanes z;
    lanes_sums(&z, &a0, &a1, &a2, &a3);
    z = LANES_OF(xj) - z;
    LANES_AT(xj) = (z[0] * LANES_OF(rows) + z[1] * LANES_OF(rows + 4)) +
                   (z[2] * LANES_OF(rows + 8) + z[3] * LANES_OF(rows + 12));
  }
}

/* y = A x for one block */
LANES_INLINE void multiply_block(const block_call *call, int rows, int tile_count) {
  const row_block *block = call->block;
  const int *tiles = call->system->block_tiles + block->tile_start;
  const double *values = call->A + block->values, *x = call->in;
  double *out = call->out + block->slot;
  const int step = block->slot_step;
  int i = 0;
  for (; i + 3 <= rows; i += 4) { /* three or four rows at a time */
    const int four = i + 3 < rows;
    lanes a0 = {0.0}, a1 = {0.0}, a2 = {0.0}, a3 = {0.0}, sums;
    const double *v = values + 4 * i;
    for (int k = 0; k < tile_count; ++k, v += 4 * rows) {
      const lanes xk = LANES_OF(x + 4 * (size_t)tiles[k]);
      a0 += LANES_OF(v) * xk;
      a1 += LANES_OF(v + 4) * xk;
      a2 += LANES_OF(v + 8) * xk;
      if (four) {
        a3 += LANES_OF(v + 12) * xk;
      }
    }
    lanes_sums(&sums, &a0, &a1, &a2, &a3);
    out[i * step] = sums[0];
    out[(i + 1) * step] = sums[1];
    out[(i + 2) * step] = sums[2];
    if (four) {
      out[(i + 3) * step] = sums[3];
    }
  }
  for (; i < rows; ++i) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    const double *v = values + 4 * i;
    for (int k = 0; k < tile_count; ++k, v += 4 * rows) {
      sum += LANES_OF(v) * LANES_OF(x + 4 * (size_t)tiles[k]);
    }
    out[i * step] = lanes_sum(&sum);
  }
}

QD_MULTIVERSION
void tiles_multiply(const tile_system *system, const double *A, const double *x, double *y) {
  for (int b = 0; b < system->block_count; ++b) {
    const block_call call = {system, &system->blocks[b], A, x, y, NULL};
    run_block_kernel(multiply_block, &call);
  }
}

/* x += A'y for one block */
LANES_INLINE void add_transposed_block(const block_call *call, int rows, int tile_count) {
  const row_block *block = call->block;
  const int *tiles = call->system->block_tiles + block->tile_start;
  const double *values = call->A + block->values, *in = call->in + block->slot;
  double *x = call->out;
  const int step = block->slot_step;
  int first = 0; /* rows of open cones are zero */
  while (first < rows && in[first * step] == 0.0) {
    ++first;
  }
  if (first == rows) {
    return;
  }
  for (int k = 0; k < tile_count; ++k, values += 4 * rows) {
    lanes sum = in[0] * LANES_OF(values);
    for (int i = 1; i < rows; ++i) {
      sum += in[i * step] * LANES_OF(values + 4 * i);
    }
    LANES_AT(x + 4 * (size_t)tiles[k]) += sum;
  }
}

QD_MULTIVERSION
void tiles_add_transposed(const tile_system *system, const double *A, const double *y, double *x) {
  for (int b = 0; b < system->block_count; ++b) {
    const block_call call = {system, &system->blocks[b], A, y, x, NULL};
    run_block_kernel(add_transposed_block, &call);
  }
}

QD_MULTIVERSION
void tiles_multiply_Q(const tile_system *system, const double *x, double *y) {
  const size_t size = 4 * (size_t)system->tile_count;
  memcpy(y, x, size * sizeof(double));
  if (system->Q_is_diagonal) {
    return;
  }
  memset(y, 0, size * sizeof(double));
  for (int j = 0; j < system->tile_count; ++j) {
    const double *D = system->Q + tile_offset_diagonal(system->Q_start, j), *xj = x + 4 * (size_t)j;
    lanes yj = LANES_OF(y + 4 * (size_t)j);
    yj += (xj[0] * LANES_OF(D) + xj[1] * LANES_OF(D + 4)) +
          (xj[2] * LANES_OF(D + 8) + xj[3] * LANES_OF(D + 12));
    for (int k = system->Q_start[j]; k < system->Q_start[j + 1]; ++k) {
      const int i = system->Q_tiles[k];
      const double *A = system->Q + tile_offset(j, k);
      const lanes xi = LANES_OF(x + 4 * (size_t)i);
      LANES_AT(y + 4 * (size_t)i) += (xj[0] * LANES_OF(A) + xj[1] * LANES_OF(A + 4)) +
                                     (xj[2] * LANES_OF(A + 8) + xj[3] * LANES_OF(A + 12));
      for (int b = 0; b < 4; ++b) {
        const lanes product = xi * LANES_OF(A + 4 * b);
        yj[b] += lanes_sum(&product);
      }
    }
    LANES_AT(y + 4 * (size_t)j) = yj;
  }
}
