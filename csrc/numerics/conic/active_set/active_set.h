/* Active rows of the dual active-set method, and how one more row changes the point.
 *
 * N are the active rows (as columns), V = Q^-1 N their images and N'V = L L'. The inverse M = L^-1
 * is stored, because products with it vectorise over rows, whereas each step of a triangular solve
 * waits for the one before. A new row a with image v = Q^-1 a needs
 *
 *     d = M V'a,    rate = M'd,    curvature = a'v - d'd:
 *
 * the multipliers change at the rate -rate, the point moves along v - V rate, and the row's value
 * grows at the rate `curvature`, which is zero if the row depends on the others. Rows are sparse
 * and images are dense: products use the new row's tiles only. */
#ifndef QD_NUMERICS_ACTIVE_SET_H
#define QD_NUMERICS_ACTIVE_SET_H

#include <stddef.h>

#include "base/arena.h"

#define ACTIVE_LIMIT 48   /* largest number of active rows, a multiple of four */
#define DIMENSION_LIMIT 8 /* largest number of rows of a Lorentz cone that is cut */

/* A row of an orthant (sign 0), a cut w_0 + sign w_tail of a Lorentz cone (sign +-1), or a cut
 * along `direction` (tail -1). */
typedef struct face {
  int block, row, tail;
  double sign, value; /* w at the current point, negative if violated */
  double offset;      /* w at x = 0 */
  double direction[DIMENSION_LIMIT];
} face;

/* Row k of the set is at place[k]; the candidate row is at place[count]. */
typedef struct active_set {
  int count, columns;
  const int *tiles; /* tiles where the candidate's row is not zero */
  int tile_count;
  int *place;      /* (ACTIVE_LIMIT) a permutation */
  face *face;      /* (ACTIVE_LIMIT) by place */
  double *rows;    /* (ACTIVE_LIMIT, columns) by place */
  double *images;  /* Q^-1 rows, by place; the rows themselves where Q = I */
  double *inverse; /* (ACTIVE_LIMIT, ACTIVE_LIMIT) M; zero right of the diagonal, up to a multiple
                      of four */
  double *multiplier; /* (ACTIVE_LIMIT), like product, reduced, rate; zero up to four */
  double *product, *reduced, *rate;
  double *kept, *moved; /* (ACTIVE_LIMIT + 4) scratch */
  double *own_images;   /* memory for images */
} active_set;

void active_set_lay_out(active_set *set, size_t columns, arena *a);
void active_set_clear(active_set *set, int columns, int Q_is_identity);
/* product = V'a for the candidate's row a; returns a'v with its own image v. */
double active_set_measure(active_set *set);
/* Rates for the candidate, with own = a'v; returns the curvature. */
double active_set_rates(active_set *set, double own);
/* The row whose multiplier vanishes first within *step, which is reduced to that step; -1: none. */
int active_set_leaving(active_set *set, double *step);
/* multiplier -= step rate */
void active_set_unload(active_set *set, double step);
/* x += step (image - images' rate) */
void active_set_move(const active_set *set, double step, double *x);
/* x += images' multiplier */
void active_set_add_images(const active_set *set, const double *multiplier, double *x);
/* Makes the candidate an active row. */
void active_set_push(active_set *set, double curvature, double multiplier);
/* Removes row k. */
void active_set_drop(active_set *set, int k);
/* product = N'x */
void active_set_multiply(active_set *set, const double *x);
/* rate = (N'V)^-1 product */
void active_set_solve(active_set *set);

static inline double *active_set_row(const active_set *set, int k) {
  return set->rows + (size_t)set->place[k] * (size_t)set->columns;
}

static inline double *active_set_image(const active_set *set, int k) {
  return set->images + (size_t)set->place[k] * (size_t)set->columns;
}

#endif
