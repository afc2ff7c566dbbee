/* Products with rows and tiles of the path's equations. */
#ifndef QD_NUMERICS_COULOMB_PRIMAL_ROWS_H
#define QD_NUMERICS_COULOMB_PRIMAL_ROWS_H

#include "base/lanes.h"
#include "numerics/coulomb/primal_path.h"

static inline double primal_row_product(const sparse_rows *rows, int r, const double *x) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  for (int t = rows->start[r]; t < rows->start[r + 1]; ++t) {
    sum += LANES_FROM(rows->values + 4 * (size_t)t) * LANES_AT(x + 4 * (size_t)rows->tiles[t]);
  }
  return lanes_sum(&sum);
}

/* out += factor times row r */
LANES_INLINE void primal_row_add(const sparse_rows *rows, int r, double factor, double *out) {
  for (int t = rows->start[r]; t < rows->start[r + 1]; ++t) {
    LANES_AT(out + 4 * (size_t)rows->tiles[t]) += factor * LANES_FROM(rows->values + 4 * (size_t)t);
  }
}

/* Entry of a tile row with this column, from entry `at` on; it must exist. */
static inline int primal_find_entry(const block_matrix *A, int column, int at) {
  while (A->column[at] != column) {
    ++at;
  }
  return at;
}

#endif
