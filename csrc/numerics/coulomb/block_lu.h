/* Sparse LU factors of matrices with a symmetric pattern and possibly unsymmetric values.
 *
 * Rows and columns are grouped in tiles of four, eliminated in minimum-degree order; pivots are
 * chosen within a tile, not between tiles. A tile is stored column by column: number 4 b + a is
 * entry (a, b). Coulomb's equations need unsymmetric factors: their rows are those of a symmetric
 * matrix, multiplied contact by contact. */
#ifndef QD_NUMERICS_BLOCK_LU_H
#define QD_NUMERICS_BLOCK_LU_H

#include "base/arena.h"
#include "base/bits.h"

/* A sparse matrix by rows of tiles, including the diagonal's. */
typedef struct block_matrix {
  int count;      /* number of tiles per row and column */
  int *row_start; /* (count + 1) */
  int *column;    /* ascending in each row */
  double *value;  /* 16 per tile */
} block_matrix;

/* Fills A's rows and columns from the bit mask; returns the number of tiles, of which at most
 * `room` are written. */
size_t block_list(block_matrix *A, const uint64_t *mask, size_t room);
/* Position of a number in the ascending list[low .. high - 1]; it must be there. */
static inline int ascending_find(const int *list, int low, int high, int number) {
  while (low + 1 < high) {
    const int middle = (low + high) / 2;
    *(list[middle] <= number ? &low : &high) = middle;
  }
  return low;
}

typedef struct block_lu {
  int count;
  int three;     /* 1: the fourth row and column of every tile are those of the identity; set by the
                    caller, else 0 */
  int fill_room; /* capacity in tiles below the diagonal */
  int fill;      /* of the current pattern; larger than the capacity: not analysed */
  int *position; /* (count) position of each tile in the order of elimination */
  int *tile;     /* (count) the tile at a position */
  int *start;    /* (count + 1) into below, lower, upper */
  int *below;    /* positions of the tiles below the diagonal in column k, ascending */
  int *row_start;        /* (count + 1) into row_column, row_entry: */
  int *row_column;       /* the columns k < j with a tile in row j */
  int *row_entry;        /* and the entries of these tiles */
  double *lower, *upper; /* (fill, 16): tiles (i, k) of L and (k, i) of U */
  double *inverse;       /* (count, 16) inverses of U's diagonal tiles */
  double *vector;        /* (4 count) in the order of elimination */
  int *place;            /* (count) scratch: current entry of each position */
  uint64_t *mask;        /* (count, words) scratch of the analysis */
  double weakest;        /* smallest pivot over its tile's largest entry, last factorisation */
  int sign;              /* of the determinant */
} block_lu;

void block_lu_lay_out(block_lu *lu, size_t count, size_t fill, arena *a);
/* Orders the tiles and finds the factor's pattern; 0 if there is no room for lu->fill tiles. */
int block_lu_analyse(block_lu *lu, const block_matrix *pattern);
/* Factors a matrix of the pattern. rows_of(context, i, out) gives row tile i: its tiles in the
 * pattern's order. Replaces pivots that are rounding; lu->weakest is the smallest pivot. */
typedef void block_rows(const void *context, int row, double *out);
void block_lu_factor(block_lu *lu, const block_matrix *pattern, block_rows *rows_of,
                     const void *context, double *row_scratch);
/* x = A^-1 x; (4 count) in the caller's order. */
void block_lu_solve(const block_lu *lu, double *x);
/* y = A x */
void block_matrix_multiply(const block_matrix *A, const double *x, double *y);

#endif
