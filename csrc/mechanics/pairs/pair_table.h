/* Lookup of the candidate pair of two geometries, for models with so many pairs that testing each
 * is slower than sorting boxes. Built with the model. */
#ifndef QD_MECHANICS_PAIR_TABLE_H
#define QD_MECHANICS_PAIR_TABLE_H

#include <stdint.h>

#include "base/arena.h"
#include "qdsim.h"

/* Row g lists the pairs in which g is the lower geometry index, sorted by the higher index; equal
 * ones keep their order. */
typedef struct pair_table {
  int bitmap_words;    /* number of 64-bit words with one bit per pair */
  int in_use;          /* 0: a small model; the fields below are empty */
  int *row_start;      /* (geom_count + 1) */
  int *other;          /* (pair_count) the geometry of higher index */
  int *pair;           /* (pair_count) */
  int swept_count;     /* number of geometries with bounds that may touch another one with bounds */
  int *swept;          /* (geom_count) their indices */
  double *margin;      /* (geom_count) the largest margin of its pairs */
  uint64_t *unbounded; /* bit p: one geometry of pair p has no bounds */
} pair_table;

int pair_table_wanted(const qd_model_spec *spec);
void pair_table_lay_out(pair_table *table, int geom_count, int pair_count, arena *a);
/* radius (geom_count): of bounding spheres, infinite for geometries without bounds. */
void pair_table_fill(pair_table *table, const qd_model_spec *spec, const double *radius);

/* The first index in row `low` at which the higher geometry is at least `high`. */
int pair_table_find(const pair_table *table, int low, int high);

#endif
