#include "numerics/tiles.h"

#include <math.h>
#include <string.h>

#include "numerics/lanes.h"

/* A pivot below this fraction of its diagonal entry before elimination is rounding. */
#define PIVOT_FLOOR 1e-15

static inline void tile_clear(double *tile) { memset(tile, 0, 16 * sizeof(double)); }

/* ------------------------------------------------------------ assembly */

/* S = scaling * G for one Lorentz cone: with t = u'G, rows
 * S_0 = diagonal G_0 + cross t, S_i = tangent G_i + u_i (cross G_0 + (diagonal - tangent) t). */
static inline void scale_cone(const row_block *block, const double *G, double *S,
                              const cone_operator *scaling) {
  const int rows = block->row_count, step = block->slot_step;
  const double *u = scaling->u + block->slot;
  const double diagonal = scaling->diagonal[block->cone], cross = scaling->cross[block->cone];
  const double tangent = scaling->tangent[block->cone];
  for (int k = 0; k < block->tile_count; ++k, G += 4 * rows, S += 4 * rows) {
    const lanes first = LANES_OF(G);
    lanes t = {0.0, 0.0, 0.0, 0.0};
    for (int i = 1; i < rows; ++i) t += u[i * step] * LANES_OF(G + 4 * i);
    const lanes shared = cross * first + (diagonal - tangent) * t;
    LANES_AT(S) = diagonal * first + cross * t;
    for (int i = 1; i < rows; ++i)
      LANES_AT(S + 4 * i) = tangent * LANES_OF(G + 4 * i) + u[i * step] * shared;
  }
}

static inline void scale_rows(const row_block *block, const double *G, double *S,
                              const cone_operator *scaling) {
  const int rows = block->row_count;
  const double *diagonal = scaling->diagonal + block->cone;
  for (int k = 0; k < block->tile_count; ++k, G += 4 * rows, S += 4 * rows)
    for (int i = 0; i < rows; ++i) LANES_AT(S + 4 * i) = diagonal[i] * LANES_OF(G + 4 * i);
}

/* tile += A_i' A_j */
static inline void tile_add_product(double *tile, const double *Ai, const double *Aj, int rows) {
  lanes c0 = LANES_OF(tile), c1 = LANES_OF(tile + 4), c2 = LANES_OF(tile + 8);
  lanes c3 = LANES_OF(tile + 12);
  for (int r = 0; r < rows; ++r, Ai += 4, Aj += 4) {
    const lanes a = LANES_OF(Ai);
    c0 += a * Aj[0];
    c1 += a * Aj[1];
    c2 += a * Aj[2];
    c3 += a * Aj[3];
  }
  LANES_AT(tile) = c0;
  LANES_AT(tile + 4) = c1;
  LANES_AT(tile + 8) = c2;
  LANES_AT(tile + 12) = c3;
}

static void start_from_Q(tile_system *system, double shift) {
  for (int j = 0; j < system->tile_count; ++j) {
    double *diagonal = system->H + tile_offset(j, j);
    if (system->Q_is_diagonal) {
      tile_clear(diagonal);
      for (int k = 0; k < 4; ++k) diagonal[5 * k] = 1.0 + shift;
    } else {
      memcpy(diagonal, system->Q + tile_offset(j, j), 16 * sizeof(double));
      for (int k = 0; k < 4; ++k) diagonal[5 * k] += shift;
    }
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k)
      tile_clear(system->H + tile_offset(system->column_tiles[k], j));
    for (int k = system->Q_start[j]; k < system->Q_start[j + 1]; ++k) {
      const size_t at = tile_offset(system->Q_tiles[k], j);
      memcpy(system->H + at, system->Q + at, 16 * sizeof(double));
    }
  }
}

QD_CLONES
void tiles_assemble(tile_system *system, const cone_operator *scaling, double shift) {
  start_from_Q(system, shift);
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    const int *tiles = system->block_tiles + block->tile_start;
    double *S = system->S + block->values;
    if (block->slot_step == 1)
      scale_rows(block, system->G + block->values, S, scaling);
    else
      scale_cone(block, system->G + block->values, S, scaling);
    const int width = 4 * block->row_count;
    for (int i = 0; i < block->tile_count; ++i)
      for (int j = 0; j <= i; ++j)
        tile_add_product(system->H + tile_offset(tiles[i], tiles[j]), S + i * width, S + j * width,
                         block->row_count);
  }
}

/* ------------------------------------------------------------ factorisation */

/* Cholesky factor and its inverse of one 4 x 4 tile. by_rows: inverse[a][b]; by_columns: its
 * transpose. */
static inline int factor_diagonal(double *tile, double *by_rows, double *by_columns,
                                  double *weakest) {
  double L[4][4], M[4][4];
  int dropped = 0;
  for (int j = 0; j < 4; ++j) {
    const double before = tile[5 * j];
    double pivot = before;
    for (int k = 0; k < j; ++k) pivot -= L[j][k] * L[j][k];
    double reciprocal;
    if (pivot < *weakest * before) *weakest = pivot / before;
    if (pivot > PIVOT_FLOOR * before) {
      reciprocal = 1.0 / sqrt(pivot);
      L[j][j] = pivot * reciprocal;
    } else { /* dependent column: this unknown stays zero */
      reciprocal = 0.0;
      L[j][j] = 0.0;
      ++dropped;
    }
    M[j][j] = reciprocal;
    for (int i = j + 1; i < 4; ++i) {
      double sum = tile[4 * j + i];
      for (int k = 0; k < j; ++k) sum -= L[i][k] * L[j][k];
      L[i][j] = sum * reciprocal;
    }
  }
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < j; ++i) M[i][j] = 0.0;
    for (int i = j + 1; i < 4; ++i) {
      double sum = 0.0;
      for (int k = j; k < i; ++k) sum -= L[i][k] * M[k][j];
      M[i][j] = sum * M[i][i];
    }
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      by_rows[4 * i + j] = M[i][j];
      by_columns[4 * j + i] = M[i][j];
    }
  return dropped;
}

/* L_ij' = M H_ij' with M the inverse diagonal factor: vector b is sum over c <= b of M[b][c] vector
 * c */
static inline void tile_divide(double *tile, const double *M) {
  const lanes h0 = LANES_OF(tile), h1 = LANES_OF(tile + 4), h2 = LANES_OF(tile + 8);
  const lanes h3 = LANES_OF(tile + 12);
  LANES_AT(tile) = M[0] * h0;
  LANES_AT(tile + 4) = M[4] * h0 + M[5] * h1;
  LANES_AT(tile + 8) = (M[8] * h0 + M[9] * h1) + M[10] * h2;
  LANES_AT(tile + 12) = (M[12] * h0 + M[13] * h1) + (M[14] * h2 + M[15] * h3);
}

/* H_ik -= L_ij L_kj' : vector c loses sum over b of L_kj[c][b] (vector b of L_ij) */
static inline void tile_subtract_product(double *tile, const double *Lij, const double *Lkj) {
  lanes c0 = LANES_OF(tile), c1 = LANES_OF(tile + 4), c2 = LANES_OF(tile + 8);
  lanes c3 = LANES_OF(tile + 12);
  for (int b = 0; b < 4; ++b) {
    const lanes a = LANES_OF(Lij + 4 * b);
    c0 -= Lkj[4 * b] * a;
    c1 -= Lkj[4 * b + 1] * a;
    c2 -= Lkj[4 * b + 2] * a;
    c3 -= Lkj[4 * b + 3] * a;
  }
  LANES_AT(tile) = c0;
  LANES_AT(tile + 4) = c1;
  LANES_AT(tile + 8) = c2;
  LANES_AT(tile + 12) = c3;
}

QD_CLONES
int tiles_factor(tile_system *system) {
  int dropped = 0;
  double weakest = 1.0;
  for (int j = 0; j < system->tile_count; ++j) {
    double *inverse = system->inverse + 32 * (size_t)j;
    dropped += factor_diagonal(system->H + tile_offset(j, j), inverse, inverse + 16, &weakest);
    const int *tiles = system->column_tiles + system->column_start[j];
    const int count = system->column_start[j + 1] - system->column_start[j];
    for (int i = 0; i < count; ++i) {
      double *Lij = system->H + tile_offset(tiles[i], j);
      tile_divide(Lij, inverse);
      for (int k = 0; k <= i; ++k)
        tile_subtract_product(system->H + tile_offset(tiles[i], tiles[k]), Lij,
                              system->H + tile_offset(tiles[k], j));
    }
  }
  system->weakest_pivot = weakest;
  return dropped;
}

/* ------------------------------------------------------------ solves and products */

QD_CLONES
void tiles_solve(const tile_system *system, double *x) {
  for (int j = 0; j < system->tile_count; ++j) {
    const double *columns = system->inverse + 32 * (size_t)j + 16;
    double *xj = x + 4 * (size_t)j;
    const lanes y = (xj[0] * LANES_OF(columns) + xj[1] * LANES_OF(columns + 4)) +
                    (xj[2] * LANES_OF(columns + 8) + xj[3] * LANES_OF(columns + 12));
    LANES_AT(xj) = y;
    for (int k = system->column_start[j]; k < system->column_start[j + 1]; ++k) {
      const int i = system->column_tiles[k];
      const double *L = system->H + tile_offset(i, j);
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
      const double *L = system->H + tile_offset(i, j);
      const lanes xi = LANES_OF(x + 4 * (size_t)i);
      a0 += xi * LANES_OF(L);
      a1 += xi * LANES_OF(L + 4);
      a2 += xi * LANES_OF(L + 8);
      a3 += xi * LANES_OF(L + 12);
    }
    const double z0 = xj[0] - lanes_sum(&a0), z1 = xj[1] - lanes_sum(&a1);
    const double z2 = xj[2] - lanes_sum(&a2), z3 = xj[3] - lanes_sum(&a3);
    LANES_AT(xj) = (z0 * LANES_OF(rows) + z1 * LANES_OF(rows + 4)) +
                   (z2 * LANES_OF(rows + 8) + z3 * LANES_OF(rows + 12));
  }
}

QD_CLONES
void tiles_multiply(const tile_system *system, const double *A, const double *x, double *y) {
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    const int *tiles = system->block_tiles + block->tile_start;
    const double *values = A + block->values;
    const size_t width = 4 * (size_t)block->row_count;
    for (int i = 0; i < block->row_count; ++i) {
      lanes sum = {0.0, 0.0, 0.0, 0.0};
      for (int k = 0; k < block->tile_count; ++k)
        sum += LANES_OF(values + (size_t)k * width + 4 * i) * LANES_OF(x + 4 * (size_t)tiles[k]);
      y[block->slot + i * block->slot_step] = lanes_sum(&sum);
    }
  }
}

QD_CLONES
void tiles_add_transposed(const tile_system *system, const double *A, const double *y, double *x) {
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    const int *tiles = system->block_tiles + block->tile_start;
    const double *values = A + block->values, *rows = y + block->slot;
    for (int k = 0; k < block->tile_count; ++k) {
      double *at = x + 4 * (size_t)tiles[k];
      lanes sum = LANES_OF(at);
      for (int i = 0; i < block->row_count; ++i, values += 4)
        sum += rows[i * block->slot_step] * LANES_OF(values);
      LANES_AT(at) = sum;
    }
  }
}

QD_CLONES
void tiles_multiply_Q(const tile_system *system, const double *x, double *y) {
  const size_t size = 4 * (size_t)system->tile_count;
  memcpy(y, x, size * sizeof(double));
  if (system->Q_is_diagonal) return;
  memset(y, 0, size * sizeof(double));
  for (int j = 0; j < system->tile_count; ++j) {
    const double *D = system->Q + tile_offset(j, j), *xj = x + 4 * (size_t)j;
    lanes yj = LANES_OF(y + 4 * (size_t)j);
    yj += (xj[0] * LANES_OF(D) + xj[1] * LANES_OF(D + 4)) +
          (xj[2] * LANES_OF(D + 8) + xj[3] * LANES_OF(D + 12));
    for (int k = system->Q_start[j]; k < system->Q_start[j + 1]; ++k) {
      const int i = system->Q_tiles[k];
      const double *A = system->Q + tile_offset(i, j);
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
