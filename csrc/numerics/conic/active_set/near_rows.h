/* Rows that are evaluated repeatedly, stored four side by side: their products with x are sums of
 * columns, without horizontal sums.
 *
 * A quad is four rows of one block, or one Lorentz cone of at most four rows; a cone of five to
 * eight rows has two quads. Rows are scaled by the size of their cone, and the tolerated violation
 * is subtracted: the row with the smallest value is the most violated one, and only negative values
 * are violations. */
#ifndef QD_NUMERICS_NEAR_ROWS_H
#define QD_NUMERICS_NEAR_ROWS_H

#include "base/arena.h"
#include "numerics/tiles/tiles.h"

typedef struct near_rows {
  int quad_capacity, tile_capacity;
  int count;        /* quads */
  int *block, *row; /* (quads) the block, and the first row in it */
  int *start;       /* (quads + 1) into tiles */
  int *tiles;       /* (tile_capacity) positions of their four columns */
  double *values;   /* (tile_capacity, 4, 4) by columns */
  double *offset;   /* (quads, 4) at x = 0 */
  double *w;        /* (quads, 4) at the last x */
  double *weight;   /* (quads, 4) scale of each row: of its own norm, or of its cone's */
} near_rows;

/* Memory for this many quads and tiles. */
void near_rows_lay_out(near_rows *near, size_t quads, size_t tiles, arena *a);
void near_rows_clear(near_rows *near);
/* Adds four rows of block b from row `first` on, or the remaining ones. `compliance` (over cones):
 * squared row norm. Rows count as violated below `enough`. Returns 0 if there is no room. */
int near_rows_add(near_rows *near, const tile_system *system, int b, int first, const double *g,
                  const double *compliance, double enough);
/* Lowers the violation limit from `before` to `enough`; cones: 0 for linear rows. */
void near_rows_tighten(near_rows *near, int cones, double before, double enough);
/* w at x; the most violated linear row as 4 quad + index, -1: none. */
int near_rows_worst(near_rows *near, const double *x);
/* Scaled distance inside the cone of quads q .. at the last x. */
double near_rows_inside(const near_rows *near, int quads, int q);
/* The same as near_rows_worst for cones of `quads` quads each; returns the first quad of the most
 * violated cone. */
int near_rows_worst_cone(near_rows *near, int quads, const double *x);

#endif
