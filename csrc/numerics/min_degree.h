/* Elimination of a graph, the node of the least degree first: an order against fill. */
#ifndef QD_NUMERICS_MIN_DEGREE_H
#define QD_NUMERICS_MIN_DEGREE_H

#include "base/bits.h"

/* Memory is the caller's. A node that is gone keeps the neighbours that it had then. */
typedef struct elimination {
  int count;
  size_t words;
  uint64_t *mask; /* (count, words) neighbours that are left, without the node itself */
  int *degree;    /* (count) their number; -1: the node is gone */
} elimination;

/* No node is gone: degrees from the masks. */
void elimination_begin(const elimination *e);
/* The lowest of those with the least degree. */
int elimination_next(const elimination *e);
/* Node k goes: its neighbours know each other from now on. */
void elimination_take(const elimination *e, int k);

#endif
