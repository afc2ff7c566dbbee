/* Rows that are looked at again and again, four side by side: their products with x are sums of
 * columns, and nothing is summed across a vector.
 *
 * A quad is four rows of one block, or one Lorentz cone of at most four rows (or two quads, one of
 * at most eight). Rows are scaled to the size of their cone, and what counts as violated is taken
 * off: the least number is the most violated row, and only negative ones are violated. */
#ifndef QD_NUMERICS_NEAR_ROWS_H
#define QD_NUMERICS_NEAR_ROWS_H

#include "base/arena.h"
#include "numerics/tiles/tiles.h"

typedef struct near_rows {
  int quad_capacity, tile_capacity;
  int count;        /* quads */
  int *block, *row; /* (quads) the block, and the first of its rows */
  int *start;       /* (quads + 1) into tiles */
  int *tiles;       /* (tile_capacity) places of their four columns */
  double *values;   /* (tile_capacity, 4, 4) by columns */
  double *offset;   /* (quads, 4) at x = 0 */
  double *w;        /* (quads, 4) at the last x */
  double *weight;   /* (quads) what rows are scaled by, of their own or of their cone; linear: 4 */
} near_rows;

/* Room for so many quads and tiles of them. */
void near_rows_lay_out(near_rows *near, size_t quads, size_t tiles, arena *a);
void near_rows_clear(near_rows *near);
/* Takes up four rows of block b, from row `first` on, or what is left of them. `compliance` (over
 * cones): squared size. Rows are violated below `enough`. 0 if there is no room. */
int near_rows_add(near_rows *near, const tile_system *system, int b, int first, const double *g,
                  const double *compliance, double enough);
/* Slacks count as violated below `enough` instead of `before`; cones: 0 for linear rows. */
void near_rows_tighten(near_rows *near, int cones, double before, double enough);
/* w at x; the most violated of linear rows, 4 quad + its place there, -1: none. */
int near_rows_worst(near_rows *near, const double *x);
/* By how much the cone of quads q .. is inside at the last x, scaled. */
double near_rows_inside(const near_rows *near, int quads, int q);
/* The same for cones of so many quads each: the first quad of the most violated. */
int near_rows_worst_cone(near_rows *near, int quads, const double *x);

#endif
