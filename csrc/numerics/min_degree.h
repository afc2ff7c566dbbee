/* Minimum-degree elimination of a graph: an order that reduces fill-in. */
#ifndef QD_NUMERICS_MIN_DEGREE_H
#define QD_NUMERICS_MIN_DEGREE_H

#include "base/bits.h"

/* State of an elimination, in the caller's memory. An eliminated node keeps its neighbours at the
 * time of its elimination. */
typedef struct elimination {
  int count;
  size_t words;
  uint64_t *mask; /* (count, words) remaining neighbours, without the node itself */
  int *degree;    /* (count) number of neighbours; -1: eliminated */
} elimination;

/* Starts with all nodes: degrees from the masks. */
void elimination_begin(const elimination *e);
/* The lowest-numbered node of minimum degree. */
int elimination_next(const elimination *e);
/* Eliminates node k: its neighbours become neighbours of each other. */
void elimination_take(const elimination *e, int k);

#endif
