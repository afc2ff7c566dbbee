/* Large dense programs with few entries, rewritten in tiles that begin at the boundaries of column
 * blocks. */
#ifndef QD_NUMERICS_CONIC_COLUMNS_H
#define QD_NUMERICS_CONIC_COLUMNS_H

#include <stdint.h>

#include "base/arena.h"
#include "numerics/conic/conic.h"

/* A sparse matrix while its rows are written. */
typedef struct tile_rows {
  sparse_rows rows;
  int *start, *tiles;
  double *values;
  size_t room; /* tiles */
} tile_rows;

typedef struct aligned_columns {
  int columns;       /* number of columns of the tiled program */
  int *place;        /* (n) position of each column there */
  int *last_seen;    /* (tiles) */
  uint64_t *pattern; /* (n) columns coupled to each column, then rows by their cones */
  uint64_t *of_tile; /* pattern of the current tile */
  tile_rows Q, G, C;
  double *b, *x;
  conic_program program;
} aligned_columns;

/* Number of columns to reserve. */
int aligned_columns_capacity(int variables);
void aligned_columns_lay_out(aligned_columns *aligned, size_t variables, size_t rows,
                             size_t equalities, arena *a);
/* Writes the program; 0 if that would not pay. Sizes and cones are checked. */
int aligned_columns_find(aligned_columns *aligned, const qd_cone_program *program);
/* Converts x to the tiled program and back. */
void aligned_columns_enter(aligned_columns *aligned, int n, const double *x);
void aligned_columns_leave(const aligned_columns *aligned, int n, double *x);

#endif
