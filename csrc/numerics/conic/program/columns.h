/* Large dense programs with few entries, in tiles that begin where blocks of columns do. */
#ifndef QD_NUMERICS_CONIC_COLUMNS_H
#define QD_NUMERICS_CONIC_COLUMNS_H

#include <stdint.h>

#include "base/arena.h"
#include "numerics/conic/conic.h"

/* A matrix while its rows are written. */
typedef struct tile_rows {
  sparse_rows rows;
  int *start, *tiles;
  double *values;
  size_t room; /* tiles */
} tile_rows;

typedef struct aligned_columns {
  int columns;       /* of the program in tiles */
  int *place;        /* (n) where a column stands there */
  int *last_seen;    /* (tiles) */
  uint64_t *pattern; /* (n) what each column is coupled to: columns, then rows by their cones */
  uint64_t *of_tile; /* of the tile that is open */
  tile_rows Q, G, C;
  double *b, *x;
  conic_program program;
} aligned_columns;

/* Columns that there must be room for. */
int aligned_columns_capacity(int variables);
void aligned_columns_lay_out(aligned_columns *aligned, size_t variables, size_t rows,
                             size_t equalities, arena *a);
/* Writes the program; 0 if that would not pay. Sizes and cones are checked. */
int aligned_columns_find(aligned_columns *aligned, const qd_cone_program *program);
/* x of the one program from that of the other. */
void aligned_columns_enter(aligned_columns *aligned, int n, const double *x);
void aligned_columns_leave(const aligned_columns *aligned, int n, double *x);

#endif
