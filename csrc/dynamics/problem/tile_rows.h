/* Rows of a cone program under construction: sparse_rows (numerics/conic/conic.h) that grow row by
 * row. */
#ifndef QD_DYNAMICS_TILE_ROWS_H
#define QD_DYNAMICS_TILE_ROWS_H

#include <string.h>

#include "base/arena.h"
#include "numerics/conic/conic.h"

typedef struct tile_rows {
  int count;      /* rows */
  int *start;     /* (rows + 1) */
  int *tiles;     /* tiles of each row, ascending */
  double *values; /* four per tile */
} tile_rows;

/* The tiles of a few rows that have the same columns. */
typedef struct tile_list {
  int count;
  int *tiles; /* ascending */
} tile_list;

static inline void tile_rows_lay_out(tile_rows *rows, size_t row_count, size_t tile_count,
                                     arena *a) {
  rows->start = arena_ints(a, row_count + 1);
  rows->tiles = arena_ints(a, tile_count);
  rows->values = arena_doubles(a, 4 * tile_count);
}

static inline void tile_rows_clear(tile_rows *rows) {
  rows->count = 0;
  rows->start[0] = 0;
}

static inline sparse_rows tile_rows_view(const tile_rows *rows) {
  const sparse_rows view = {rows->start, rows->tiles, rows->values};
  return view;
}

/* Adds the tile of a column to the list. */
static inline void tile_list_add(tile_list *list, int column) {
  const int tile = column / 4;
  int at = list->count;
  while (at > 0 && list->tiles[at - 1] >= tile) {
    --at;
  }
  if (at < list->count && list->tiles[at] == tile) {
    return;
  }
  memmove(list->tiles + at + 1, list->tiles + at, (size_t)(list->count - at) * sizeof(int));
  list->tiles[at] = tile;
  ++list->count;
}

/* Appends a row with these tiles; returns its values, which the caller must write. Values of
 * successive rows are contiguous. */
static inline double *tile_rows_open(tile_rows *rows, const tile_list *list) {
  const int at = rows->start[rows->count];
  for (int k = 0; k < list->count; ++k) {
    rows->tiles[at + k] = list->tiles[k];
  }
  rows->start[++rows->count] = at + list->count;
  return rows->values + 4 * (size_t)at;
}

/* The same, as a row of zeros. */
static inline double *tile_rows_append(tile_rows *rows, const tile_list *list) {
  double *values = tile_rows_open(rows, list);
  for (int k = 0; k < 4 * list->count; ++k) {
    values[k] = 0.0;
  }
  return values;
}

/* Appends a row with a single entry. */
static inline void tile_rows_append_entry(tile_rows *rows, int column, double value) {
  int tile = column / 4;
  const tile_list list = {1, &tile};
  tile_rows_append(rows, &list)[column % 4] = value;
}

#endif
