/* Linear systems of the methods: rows of W, multiplied by a matrix of their contact, plus that
 * contact's own block. */
#include <string.h>

#include "base/lanes.h"
#include "numerics/coulomb/work.h"
#include "numerics/vectors.h"

#define BLOCK_SIZE ((size_t)(CONE_ROWS * CONE_ROWS))

/* Adds a contact's block to its tile (row, column); rows of padding get a unit diagonal. */
static void add_block(const coulomb_contact *contact, const double *block, int row, int column,
                      double *tile) {
  const int first_row = 4 * row - contact->at, first_column = 4 * column - contact->at;
  for (int b = 0; b < 4; ++b) {
    for (int a = 0; a < 4; ++a) {
      const int i = first_row + a, j = first_column + b;
      if (i < contact->dim && j < contact->dim) {
        tile[4 * b + a] += block[CONE_ROWS * j + i];
      } else if (i == j) {
        tile[4 * b + a] = 1.0;
      }
    }
  }
}

/* out += factor tile times `from` tile */
LANES_INLINE void add_product(const double *factor, const double *from, double *out) {
  for (int b = 0; b < 16; b += 4) {
    LANES_AT(out + b) += (LANES_OF(factor) * from[b] + LANES_OF(factor + 4) * from[b + 1]) +
                         (LANES_OF(factor + 8) * from[b + 2] + LANES_OF(factor + 12) * from[b + 3]);
  }
}

/* Tile (row, column) of a contact's matrix, padded with zeros. */
static void read_tile(const coulomb_contact *contact, const double *block, int row, int column,
                      double *tile) {
  const int first_row = 4 * row - contact->at, first_column = 4 * column - contact->at;
  for (int b = 0; b < 4; ++b) {
    for (int a = 0; a < 4; ++a) {
      const int i = first_row + a, j = first_column + b;
      tile[4 * b + a] = i < contact->dim && j < contact->dim ? block[CONE_ROWS * j + i] : 0.0;
    }
  }
}

double coulomb_mobility(const qd_coulomb_workspace *work, const coulomb_contact *contact) {
  double sum = 0.0;
  for (int k = 0; k < contact->dim; ++k) {
    const int tile = (contact->at + k) / 4, a = (contact->at + k) % 4;
    for (int e = work->W.row_start[tile]; e < work->W.row_start[tile + 1]; ++e) {
      if (work->W.column[e] == tile) {
        sum += work->W.value[16 * (size_t)e + 5 * (size_t)a];
      }
    }
  }
  return sum > 0.0 ? sum / contact->dim : 1.0;
}

/* A row of tiles of factor W, with W's diagonal slightly enlarged. All tile rows of a contact have
 * the same columns, except for its own tiles. */
static void multiply_row(const qd_coulomb_workspace *work, const coulomb_contact *contact,
                         const double *factor, int row, double *out) {
  const int begin = work->W.row_start[row], count = work->W.row_start[row + 1] - begin;
  const int tiles = (contact->dim + 3) / 4;
  memset(out, 0, 16 * (size_t)count * sizeof(double));
  for (int t = 0; t < tiles; ++t) {
    const int other = contact->at / 4 + t;
    double own[16] __attribute__((aligned(32)));
    int at = 0;
    read_tile(contact, factor, row, other, own);
    for (int e = work->W.row_start[other]; e < work->W.row_start[other + 1]; ++e) {
      const int column = work->W.column[e];
      while (at < count && work->W.column[begin + at] < column) {
        ++at;
      }
      if (at == count || work->W.column[begin + at] != column) {
        continue;
      }
      const double *from = work->W.value + 16 * (size_t)e;
      double more[16] __attribute__((aligned(32)));
      if (column == other) {
        memcpy(more, from, sizeof more);
        for (int a = 0; a < 4; ++a) {
          more[5 * a] += work->proximal * more[5 * a];
        }
        from = more;
      }
      add_product(own, from, out + 16 * (size_t)at);
    }
  }
}

static void write_row(const void *context, int row, double *out) {
  const qd_coulomb_workspace *work = context;
  const int own = work->contact_of[row];
  const coulomb_contact *contact = work->contact + own;
  const double *factor = work->factor + BLOCK_SIZE * (size_t)own;
  if (work->multiplies) {
    multiply_row(work, contact, factor, row, out);
  }
  for (int e = work->W.row_start[row]; e < work->W.row_start[row + 1]; ++e, out += 16) {
    const int column = work->W.column[e];
    if (!work->multiplies) {
      memcpy(out, work->W.value + 16 * (size_t)e, 16 * sizeof(double));
      for (int a = 0; a < 4 && column == row; ++a) {
        out[5 * a] += work->proximal * out[5 * a];
      }
    }
    if (work->contact_of[column] == own) {
      add_block(contact, work->block + BLOCK_SIZE * (size_t)own, row, column, out);
    }
  }
}

void coulomb_factor(qd_coulomb_workspace *work) {
  work->stopped = work->stopped || (work->stop != NULL && work->stop(work->stop_context));
  block_lu_factor(&work->lu, &work->W, write_row, work, work->row_tiles);
}

/* y -= blocks x, one block per contact */
static void subtract_blocks(const qd_coulomb_workspace *work, const double *blocks, const double *x,
                            double *y) {
  for (int i = 0; i < work->contact_count; ++i) {
    const coulomb_contact *contact = work->contact + i;
    const double *block = blocks + BLOCK_SIZE * (size_t)i;
    for (int b = 0; b < contact->dim; ++b) {
      for (int a = 0; a < contact->dim; ++a) {
        y[contact->at + a] -= block[CONE_ROWS * b + a] * x[contact->at + b];
      }
    }
  }
}

void coulomb_solve_system(qd_coulomb_workspace *work, double *x) {
  const int count = 4 * work->tile_count;
  double *left = work->residual, *image = work->correction;
  memcpy(left, x, (size_t)count * sizeof(double));
  block_lu_solve(&work->lu, x);
  block_matrix_multiply(&work->W, x, image);
  if (work->multiplies) {
    subtract_blocks(work, work->factor, image, left);
  } else {
    add_scaled(left, -1.0, image, count);
  }
  subtract_blocks(work, work->block, x, left);
  block_lu_solve(&work->lu, left);
  add_scaled(x, 1.0, left, count);
}
