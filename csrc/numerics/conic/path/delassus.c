/* Few contacts on many unknowns: with D = G Q^-1 G', the Delassus matrix, the path's system
 *
 *     (Q + S'S) dx = r + S'u,    v = u - S dx,    S = W^-1 G,
 *
 * is (Sherman, Morrison, Woodbury)
 *
 *     (I + W^-1 D W^-1) v = u - S Q^-1 r,    dx = Q^-1 r + (Q^-1 G') W^-1 v:
 *
 * Q is factored once for the program, an iteration factors a matrix over rows. Barriers only: exact
 * programs with few contacts are solved by cuts, which work on active rows anyway, and the ends of
 * their paths are what rounding is hardest on. */
#include "numerics/conic/path/delassus.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"

void conic_delassus_lay_out(conic_delassus *delassus, size_t slots, size_t columns, arena *a) {
  const size_t limit = slots < SLOT_LIMIT ? slots : SLOT_LIMIT;
  delassus->slot_room = (int)limit;
  delassus->room = limit * columns < ROOM_LIMIT ? limit * columns : ROOM_LIMIT;
  delassus->images = arena_doubles(a, delassus->room);
  delassus->matrix = arena_doubles(a, limit * limit);
  delassus->factor = arena_doubles(a, limit * limit);
  delassus->inverse = arena_doubles(a, limit);
  delassus->y = arena_doubles(a, columns);
}

/* Additions and products of one factorisation with its assembly and of one solve, in x. */
static void count_in_x(const tile_system *system, double *factor, double *solve) {
  *factor = *solve = 0.0;
  for (int j = 0; j < system->tile_count; ++j) {
    const double below = system->column_start[j + 1] - system->column_start[j];
    *factor += 128.0 * (1.0 + below + 0.5 * below * (below + 1.0));
    *solve += 64.0 * (1.0 + below);
  }
  for (int b = 0; b < system->block_count; ++b) {
    const double tiles = system->blocks[b].tile_count, rows = system->blocks[b].row_count;
    *factor += 16.0 * rows * tiles * (tiles + 1.0);
  }
}

static int is_worth_it(const qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  const double slots = workspace->program.slot_count, rows = workspace->program.row_count;
  const double columns = workspace->program.column_count;
  double factor, solve;
  count_in_x(system, &factor, &solve);
  const double back = system->Q_is_diagonal ? 0.0 : solve, product = 2.0 * slots * columns;
  const double once = rows * (back + product);
  const double often =
      ITERATION_OVERHEAD + back + slots * (slots * slots / 3.0 + 24.0 * slots) + 3.0 * product;
  return BARRIER_ITERATIONS * (factor + 2.0 * solve) >
         TILE_ADVANTAGE * (once + BARRIER_ITERATIONS * often);
}

int conic_delassus_prepare(qd_cone_workspace *workspace) {
  conic_delassus *delassus = &workspace->delassus;
  const tile_system *system = &workspace->system;
  const size_t columns = (size_t)workspace->program.column_count,
               slots = (size_t)workspace->program.slot_count;
  if (workspace->program.exact || workspace->ends.count > 0 || !workspace->program.definite ||
      slots > (size_t)delassus->slot_room || slots * columns > delassus->room ||
      !is_worth_it(workspace)) {
    return 0;
  }
  memset(delassus->images, 0, slots * columns * sizeof(double));
  memset(delassus->matrix, 0, slots * slots * sizeof(double));
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    for (int i = 0; i < block->row_count; ++i) {
      const size_t slot = (size_t)(block->slot + i * block->slot_step);
      double *image = delassus->images + slot * columns;
      for (int k = 0; k < block->tile_count; ++k) {
        memcpy(image + 4 * (size_t)system->block_tiles[block->tile_start + k],
               system->G + block->values + 4 * (size_t)(k * block->row_count + i),
               4 * sizeof(double));
      }
      if (!system->Q_is_diagonal) {
        tiles_solve(system, image);
      }
      tiles_multiply(system, system->G, image, delassus->matrix + slot * slots);
    }
  }
  return 1;
}

/* Every row of M times the symmetric A. */
static void scale_rows(const qd_cone_workspace *workspace, const cone_operator *A, double *M) {
  const size_t slots = (size_t)workspace->program.slot_count;
  for (size_t i = 0; i < slots; ++i) {
    memcpy(workspace->work.row, M + i * slots, slots * sizeof(double));
    cones_apply(&workspace->product, A, workspace->work.row, M + i * slots);
  }
}

static void transpose(double *A, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double kept = A[i * n + j];
      A[i * n + j] = A[j * n + i];
      A[j * n + i] = kept;
    }
  }
}

/* U with A = U'U, by rows: row k behind the diagonal is subtracted from the rows below, side by
 * side. Zero before the diagonal in its group of four. Eigenvalues of A are one at least: no pivot
 * fails. */
QD_CLONES
static void factor_rows(double *A, double *inverse, int n) {
  for (int k = 0; k < n; ++k) {
    double *row = A + (size_t)k * (size_t)n;
    const double per = 1.0 / sqrt(row[k]);
    inverse[k] = per;
    for (int j = k / 4 * 4; j < k; ++j) {
      row[j] = 0.0;
    }
    for (int j = k / 4 * 4; j < n; j += 4) {
      LANES_AT(row + j) *= per;
    }
    for (int i = k + 1; i < n; ++i) {
      double *below = A + (size_t)i * (size_t)n;
      const double factor = row[i];
      for (int j = i / 4 * 4; j < n; j += 4) {
        LANES_AT(below + j) -= factor * LANES_OF(row + j);
      }
    }
  }
}

void conic_delassus_factor(qd_cone_workspace *workspace, const cone_operator *scaling) {
  conic_delassus *delassus = &workspace->delassus;
  const size_t slots = (size_t)workspace->program.slot_count;
  double *factor = delassus->factor;
  memcpy(factor, delassus->matrix, slots * slots * sizeof(double));
  scale_rows(workspace, scaling, factor);
  transpose(factor, slots);
  scale_rows(workspace, scaling, factor);
  for (size_t i = 0; i < slots; ++i) {
    factor[i * slots + i] += 1.0;
  }
  factor_rows(factor, delassus->inverse, (int)slots);
}

/* v = (U'U)^-1 v */
QD_CLONES
static void solve_rows(const double *U, const double *inverse, int n, double *v) {
  for (int k = 0; k < n; ++k) {
    const double *row = U + (size_t)k * (size_t)n, value = v[k] * inverse[k];
    for (int j = k / 4 * 4; j < n; j += 4) {
      LANES_AT(v + j) -= value * LANES_OF(row + j);
    }
    v[k] = value;
  }
  for (int k = n - 1; k >= 0; --k) {
    const double *row = U + (size_t)k * (size_t)n, value = v[k];
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    v[k] = 0.0;
    for (int j = k / 4 * 4; j < n; j += 4) {
      sum += LANES_OF(row + j) * LANES_OF(v + j);
    }
    v[k] = (value - lanes_sum(&sum)) * inverse[k];
  }
}

/* x += images'v */
QD_CLONES
static void add_images(const conic_delassus *delassus, int slots, int columns, const double *v,
                       double *x) {
  for (int k = 0; k < slots; ++k) {
    const double *image = delassus->images + (size_t)k * (size_t)columns;
    if (v[k] == 0.0) {
      continue;
    }
    for (int c = 0; c < columns; c += 4) {
      LANES_AT(x + c) += v[k] * LANES_OF(image + c);
    }
  }
}

void conic_delassus_solve(qd_cone_workspace *workspace, const cone_operator *scaling,
                          const double *y, double *v, double *x) {
  const conic_delassus *delassus = &workspace->delassus;
  const tile_system *system = &workspace->system;
  const int slots = workspace->program.slot_count, columns = workspace->program.column_count;
  double *rows = workspace->work.row2, *scaled = workspace->work.row; /* padded lanes stay zero */
  tiles_multiply(system, system->G, y, rows);
  cones_apply(&workspace->product, scaling, rows, scaled);
  for (int i = 0; i < slots; ++i) {
    v[i] -= scaled[i];
  }
  solve_rows(delassus->factor, delassus->inverse, slots, v);
  cones_apply(&workspace->product, scaling, v, scaled);
  memcpy(x, y, (size_t)columns * sizeof(double));
  add_images(delassus, slots, columns, scaled, x);
}
