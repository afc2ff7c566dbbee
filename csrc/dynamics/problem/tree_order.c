#include "dynamics/problem/tree_order.h"

#include <limits.h>
#include <string.h>

#include "numerics/min_degree.h"

/* Smaller islands are nearly dense, and their order does not matter. */
#define ORDER_FROM 12
/* Largest island that is ordered, in trees: masks take the square of this number in bits, 2 MiB. */
#define ORDER_MOST 4096
/* Tiles of the factor per DOF of a row of other trees: a quarter, and padding. */
#define TILES_PER_ROW 0.305

void tree_graph_lay_out(tree_graph *graph, int tree_count, arena *a) {
  const int most = tree_count < ORDER_MOST ? tree_count : ORDER_MOST;
  const size_t capacity = (size_t)(most < ORDER_FROM ? 0 : most);
  const size_t words = bit_words(capacity);
  graph->capacity = (int)capacity;
  graph->mask = arena_take(a, capacity * words * sizeof(uint64_t));
  ARENA_INTS(a, capacity, &graph->degree, &graph->rank, &graph->order, &graph->parent, &graph->size,
             &graph->end, &graph->fill, &graph->width, &graph->rows, &graph->kid, &graph->sibling,
             &graph->merged, &graph->first, &graph->next);
}

int tree_graph_fits(const tree_graph *graph, int count) {
  return count >= ORDER_FROM && count <= graph->capacity;
}

static uint64_t *mask_of(tree_graph *graph, int k) {
  return graph->mask + (size_t)k * (size_t)graph->words;
}

void tree_graph_clear(tree_graph *graph, int count) {
  graph->words = (int)bit_words((size_t)count);
  memset(graph->mask, 0, (size_t)count * (size_t)graph->words * sizeof(uint64_t));
}

void tree_graph_connect(tree_graph *graph, int a, int b) {
  if (a != b) {
    set_bit(mask_of(graph, a), b);
    set_bit(mask_of(graph, b), a);
  }
}

static elimination begin(tree_graph *graph, int count) {
  const elimination e = {count, (size_t)graph->words, graph->mask, graph->degree};
  elimination_begin(&e);
  return e;
}

static void take(tree_graph *graph, const elimination *e, int at, int k) {
  graph->order[at] = k;
  graph->rank[k] = at;
  elimination_take(e, k);
}

/* Pairs of neighbours that are not connected yet, each counted twice. */
QD_MULTIVERSION
static int fill_of(tree_graph *graph, int k) {
  const uint64_t *own = mask_of(graph, k);
  int count = 0;
  for (int w = 0; w < graph->words; ++w) {
    for (uint64_t rest = own[w]; rest; rest &= rest - 1) {
      const uint64_t *mask = mask_of(graph, w * WORD_BITS + lowest_bit(rest));
      for (int i = 0; i < graph->words; ++i) {
        count += bit_count(own[i] & ~mask[i]);
      }
      --count; /* not itself */
    }
  }
  return count;
}

/* The tree of least fill among those of nearly least degree (a quarter more, plus one: with the
 * least degree alone the factor of 1001 spheres has a quarter more products, with any degree as
 * many). */
static int least_fill(tree_graph *graph, const elimination *e) {
  const int least = graph->degree[elimination_next(e)], count = e->count;
  const int most = least + 1 + least / 4;
  int best = -1;
  for (int k = 0; k < count; ++k) {
    if (graph->degree[k] < 0 || graph->degree[k] > most) {
      continue;
    }
    if (graph->fill[k] < 0) {
      graph->fill[k] = fill_of(graph, k);
    }
    if (best < 0 || graph->fill[k] < graph->fill[best] ||
        (graph->fill[k] == graph->fill[best] && graph->degree[k] < graph->degree[best])) {
      best = k;
    }
  }
  return best;
}

/* Minimum fill; values are updated for neighbours of the last eliminated tree only. */
static void find_order_by_fill(tree_graph *graph, int count) {
  const elimination e = begin(graph, count);
  for (int k = 0; k < count; ++k) {
    graph->fill[k] = -1;
  }
  for (int at = 0; at < count; ++at) {
    const int best = least_fill(graph, &e);
    take(graph, &e, at, best);
    for (int w = 0; w < graph->words; ++w) {
      for (uint64_t rest = mask_of(graph, best)[w]; rest; rest &= rest - 1) {
        graph->fill[w * WORD_BITS + lowest_bit(rest)] = -1;
      }
    }
  }
}

/* ---------------------------------------------------------------- elimination tree */

/* The neighbour of an eliminated tree that is eliminated next after it; -1: none is left. */
static int parent_of(tree_graph *graph, int k) {
  int parent = -1;
  for (int w = 0; w < graph->words; ++w) {
    for (uint64_t rest = mask_of(graph, k)[w]; rest; rest &= rest - 1) {
      const int j = w * WORD_BITS + lowest_bit(rest);
      if (parent < 0 || graph->rank[j] < graph->rank[parent]) {
        parent = j;
      }
    }
  }
  return parent;
}

/* ---------------------------------------------------------------- blocks of whole tiles */

/* Products of tiles that the factorisation of a block of columns takes, with this number of rows
 * below. */
static double products_of(int columns, int rows) {
  const int tiles = (columns + 3) / 4;
  double sum = 0.0;
  for (int i = 0; i < tiles; ++i) {
    const double below = TILES_PER_ROW * rows + i;
    sum += 0.5 * below * (below + 1.0);
  }
  return sum;
}

/* Products saved by merging block c into p. */
static double gain_of(const tree_graph *graph, int c, int p) {
  return products_of(graph->width[c], graph->rows[c]) +
         products_of(graph->width[p], graph->rows[p]) -
         products_of(graph->width[c] + graph->width[p], graph->rows[p]);
}

/* The child block whose merger with p saves most, as the link that points to it; NULL: none saves
 * any. */
static int *best_kid(tree_graph *graph, int p) {
  int *best = NULL;
  double most = 0.0;
  for (int *link = graph->kid + p; *link >= 0; link = graph->sibling + *link) {
    const double gain = gain_of(graph, *link, p);
    if (gain > most) {
      most = gain;
      best = link;
    }
  }
  return best;
}

/* Merges block c into p; children of c become children of p. */
static void merge(tree_graph *graph, int *link, int p) {
  const int c = *link;
  *link = graph->sibling[c];
  int *last = graph->kid + p;
  while (*last >= 0) {
    last = graph->sibling + *last;
  }
  *last = graph->kid[c];
  graph->width[p] += graph->width[c];
  graph->merged[c] = p;
}

/* Starts with each tree as a block, and merges children if this saves products: successive
 * neighbours in the elimination share most of their rows, and need less padding. */
static void find_blocks(tree_graph *graph, int count, const int *width) {
  for (int k = 0; k < count; ++k) {
    graph->width[k] = width[k];
    graph->kid[k] = graph->sibling[k] = graph->merged[k] = -1;
    graph->rows[k] = 0;
    for (int w = 0; w < graph->words; ++w) {
      for (uint64_t rest = mask_of(graph, k)[w]; rest; rest &= rest - 1) {
        graph->rows[k] += width[w * WORD_BITS + lowest_bit(rest)];
      }
    }
  }
  for (int at = 0; at < count; ++at) { /* children come before parents */
    const int p = graph->order[at], parent = graph->parent[p];
    for (int *link = best_kid(graph, p); link != NULL; link = best_kid(graph, p)) {
      merge(graph, link, p);
    }
    if (parent >= 0) {
      graph->sibling[p] = graph->kid[parent];
      graph->kid[parent] = p;
    }
  }
}

static int block_of(const tree_graph *graph, int k) {
  while (graph->merged[k] >= 0) {
    k = graph->merged[k];
  }
  return k;
}

/* Members of each block in order of elimination, and the number of trees in it and below it. */
static void count_blocks(tree_graph *graph, int count) {
  for (int k = 0; k < count; ++k) {
    graph->first[k] = -1;
    graph->size[k] = 0;
  }
  for (int at = count - 1; at >= 0; --at) {
    const int k = graph->order[at], block = block_of(graph, k);
    graph->next[k] = graph->first[block];
    graph->first[block] = k;
    ++graph->size[block];
  }
  for (int at = 0; at < count; ++at) {
    const int k = graph->order[at], parent = graph->parent[k];
    if (graph->merged[k] < 0 && parent >= 0) {
      graph->size[block_of(graph, parent)] += graph->size[k];
    }
  }
}

void tree_graph_order(tree_graph *graph, int count, const int *width, int *place, uint8_t *opens) {
  find_order_by_fill(graph, count);
  for (int k = 0; k < count; ++k) {
    graph->parent[k] = parent_of(graph, k);
  }
  find_blocks(graph, count, width);
  count_blocks(graph, count);
  int end = count;
  for (int at = count - 1; at >= 0; --at) {
    const int block = graph->order[at], parent = graph->parent[block];
    if (graph->merged[block] >= 0) {
      continue;
    }
    int *free_end = parent >= 0 ? graph->end + block_of(graph, parent) : &end;
    int members = 0;
    for (int k = graph->first[block]; k >= 0; k = graph->next[k]) {
      ++members;
    }
    int here = *free_end - members;
    *free_end -= graph->size[block];
    graph->end[block] = here;
    for (int k = graph->first[block]; k >= 0; k = graph->next[k]) {
      opens[here] = k == graph->first[block];
      place[k] = here++;
    }
  }
}
