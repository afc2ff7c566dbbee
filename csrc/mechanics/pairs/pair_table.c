#include "mechanics/pairs/pair_table.h"

#include <math.h>
#include <string.h>

/* With fewer pairs, in total or per geometry, testing each pair is as fast. */
#define PAIRS_MIN 300
#define PAIRS_PER_GEOM_MIN 8

int pair_table_wanted(const qd_model_spec *spec) {
  return spec->pair_count >= PAIRS_MIN && spec->pair_count / PAIRS_PER_GEOM_MIN >= spec->geom_count;
}

void pair_table_lay_out(pair_table *table, int geom_count, int pair_count, arena *a) {
  const size_t ng = (size_t)geom_count, np = (size_t)pair_count;
  table->bitmap_words = (int)((np + 63) / 64);
  if (!table->in_use) {
    return;
  }
  table->row_start = arena_ints(a, ng + 1);
  ARENA_INTS(a, np, &table->other, &table->pair);
  table->swept = arena_ints(a, ng);
  table->margin = arena_doubles(a, ng);
  table->unbounded = arena_take(a, (size_t)table->bitmap_words * sizeof(uint64_t));
}

static int pair_end(const qd_model_spec *spec, int pair, int high) {
  const int a = spec->pair_geom[2 * pair], b = spec->pair_geom[2 * pair + 1];
  return (a > b) == high ? a : b;
}

/* Sorts pairs by one of their geometries. The sort is stable, so sorting by the higher one first
 * sorts the rows. counts (geom_count + 1): on return, the starts of the rows. from NULL: pairs in
 * their order. */
static void sort_by_end(const qd_model_spec *spec, int high, const int *from, int *to,
                        int *counts) {
  memset(counts, 0, ((size_t)spec->geom_count + 1) * sizeof(int));
  for (int i = 0; i < spec->pair_count; ++i) {
    ++counts[pair_end(spec, i, high) + 1];
  }
  for (int g = 0; g < spec->geom_count; ++g) {
    counts[g + 1] += counts[g];
  }
  for (int i = 0; i < spec->pair_count; ++i) {
    const int pair = from == NULL ? i : from[i];
    to[counts[pair_end(spec, pair, high)]++] = pair;
  }
  for (int g = spec->geom_count; g > 0; --g) {
    counts[g] = counts[g - 1];
  }
  counts[0] = 0;
}

void pair_table_fill(pair_table *table, const qd_model_spec *spec, const double *radius) {
  if (!table->in_use) {
    return;
  }
  sort_by_end(spec, 1, NULL, table->other, table->row_start);
  sort_by_end(spec, 0, table->other, table->pair, table->row_start);
  for (int g = 0; g < spec->geom_count; ++g) {
    table->margin[g] = -INFINITY;
    table->swept[g] = 0;
  }
  for (int i = 0; i < spec->pair_count; ++i) {
    const int a = spec->pair_geom[2 * i], b = spec->pair_geom[2 * i + 1];
    table->other[i] = pair_end(spec, table->pair[i], 1);
    if (isinf(radius[a]) || isinf(radius[b])) {
      table->unbounded[i / 64] |= (uint64_t)1 << (i % 64);
      continue;
    }
    for (int k = 0; k < 2; ++k) {
      const int g = spec->pair_geom[2 * i + k];
      table->margin[g] = fmax(table->margin[g], spec->pair_margin[i]);
      table->swept[g] = 1;
    }
  }
  for (int g = 0; g < spec->geom_count; ++g) {
    if (table->swept[g]) {
      table->swept[table->swept_count++] = g;
    }
  }
}

int pair_table_find(const pair_table *table, int low, int high) {
  int begin = table->row_start[low], end = table->row_start[low + 1];
  if (begin < end) {
    /* in a row without gaps the index is known */
    const int guess = begin + high - table->other[begin];
    if (guess >= begin && guess < end && table->other[guess] == high &&
        (guess == begin || table->other[guess - 1] < high)) {
      return guess;
    }
  }
  while (begin < end) {
    const int middle = begin + (end - begin) / 2;
    if (table->other[middle] < high) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}
