/* Sparse LU factors of matrices whose pattern is symmetric and whose values need not be.
 *
 * Rows and columns come in tiles of four, eliminated in minimum-degree order; inside a tile pivots
 * are chosen, between tiles not. A tile is stored column by column: number 4 b + a is entry (a, b).
 * Coulomb's equations need it: their rows are those of a symmetric matrix, multiplied contact by
 * contact. */
#ifndef QD_NUMERICS_BLOCK_LU_H
#define QD_NUMERICS_BLOCK_LU_H

#include "base/arena.h"
#include "base/bits.h"

/* The pattern and values of a matrix by rows of tiles, the diagonal's included. */
typedef struct block_matrix {
  int count;      /* tiles of a row */
  int *row_start; /* (count + 1) */
  int *column;    /* ascending in each row */
  double *value;  /* 16 each */
} block_matrix;

/* A's rows and columns from the bits; how many tiles that is, of which no more than `room` are
 * written. */
size_t block_list(block_matrix *A, const uint64_t *mask, size_t room);

typedef struct block_lu {
  int count;
  int three;             /* 1: the fourth rows and columns of all tiles are those of the identity,
                            0: unless the caller says so */
  int fill_room;         /* tiles below the diagonal that there is room for */
  int fill;              /* of the pattern at hand; larger than the room: not analysed */
  int *position;         /* (count) of a tile in the order of elimination */
  int *tile;             /* (count) the tile at a position */
  int *start;            /* (count + 1) into below, lower, upper */
  int *below;            /* positions after k whose tiles column k has, ascending */
  int *row_start;        /* (count + 1) into row_column, row_entry: */
  int *row_column;       /* columns k before j that have j, */
  int *row_entry;        /* and where */
  double *lower, *upper; /* (fill, 16): tiles (i, k) of L and (k, i) of U */
  double *inverse;       /* (count, 16) of U's diagonal tiles */
  double *vector;        /* (4 count) in the order of elimination */
  int *place;            /* (count) scratch */
  uint64_t *mask;        /* (count, words) scratch of the analysis */
  double weakest;        /* pivot beside its tile's own size, of the last factorisation */
  int sign;              /* of the determinant */
} block_lu;

void block_lu_lay_out(block_lu *lu, size_t count, size_t fill, arena *a);
/* Orders and finds the factor's pattern; 0 if there is no room for lu->fill tiles. */
int block_lu_analyse(block_lu *lu, const block_matrix *pattern);
/* Factors a matrix of the pattern; row tile i is given by rows_of(context, i, out): its tiles in
 * the pattern's order. Pivots of rounding are replaced; lu->weakest says how small they were. */
typedef void block_rows(const void *context, int row, double *out);
void block_lu_factor(block_lu *lu, const block_matrix *pattern, block_rows *rows_of,
                     const void *context, double *row_scratch);
/* x = A^-1 x; (4 count) in the caller's order. */
void block_lu_solve(const block_lu *lu, double *x);
/* y = A x */
void block_matrix_multiply(const block_matrix *A, const double *x, double *y);

#endif
