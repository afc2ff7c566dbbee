#include "dynamics/problem/tree_order.h"

#include <string.h>

#define BITS 64
/* Smaller islands are all but dense: their order does not matter. */
#define ORDER_FROM 12
/* Trees of the largest island that is ordered: masks take this number squared in bits, 2 MiB. */
#define ORDER_MOST 4096

void tree_graph_lay_out(tree_graph *graph, int tree_count, arena *a) {
  const int most = tree_count < ORDER_MOST ? tree_count : ORDER_MOST;
  const size_t capacity = (size_t)(most < ORDER_FROM ? 0 : most);
  const size_t words = (capacity + BITS - 1) / BITS;
  graph->capacity = (int)capacity;
  graph->mask = arena_take(a, capacity * words * sizeof(uint64_t));
  graph->left = arena_take(a, words * sizeof(uint64_t));
  graph->degree = arena_ints(a, capacity);
  graph->rank = arena_ints(a, capacity);
  graph->order = arena_ints(a, capacity);
  graph->parent = arena_ints(a, capacity);
  graph->size = arena_ints(a, capacity);
  graph->end = arena_ints(a, capacity);
}

int tree_graph_fits(const tree_graph *graph, int count) {
  return count >= ORDER_FROM && count <= graph->capacity;
}

static uint64_t *mask_of(tree_graph *graph, int k) {
  return graph->mask + (size_t)k * (size_t)graph->words;
}

static uint64_t bit_of(int k) { return (uint64_t)1 << (k % BITS); }

static int popcount(uint64_t word) {
#if defined(__GNUC__)
  return __builtin_popcountll(word);
#else
  int count = 0;
  for (; word; word &= word - 1) {
    ++count;
  }
  return count;
#endif
}

void tree_graph_clear(tree_graph *graph, int count) {
  graph->words = (count + BITS - 1) / BITS;
  memset(graph->mask, 0, (size_t)count * (size_t)graph->words * sizeof(uint64_t));
}

void tree_graph_connect(tree_graph *graph, int a, int b) {
  if (a != b) {
    mask_of(graph, a)[b / BITS] |= bit_of(b);
    mask_of(graph, b)[a / BITS] |= bit_of(a);
  }
}

/* The neighbours of k know each other from now on; k is gone. */
static void eliminate(tree_graph *graph, int k) {
  const uint64_t *own = mask_of(graph, k);
  graph->left[k / BITS] &= ~bit_of(k);
  for (int w = 0; w < graph->words; ++w) {
    for (uint64_t rest = own[w]; rest; rest &= rest - 1) {
      const int j = w * BITS + popcount((rest & (~rest + 1)) - 1);
      uint64_t *mask = mask_of(graph, j);
      int degree = 0;
      for (int i = 0; i < graph->words; ++i) {
        mask[i] = (mask[i] | own[i]) & graph->left[i];
        degree += popcount(mask[i]);
      }
      mask[j / BITS] &= ~bit_of(j);
      graph->degree[j] = degree - 1; /* its own bit came with its neighbour's mask */
    }
  }
}

/* Minimum degree, the lowest of equals first. */
static void find_order(tree_graph *graph, int count) {
  memset(graph->left, 0, (size_t)graph->words * sizeof(uint64_t));
  for (int k = 0; k < count; ++k) {
    graph->left[k / BITS] |= bit_of(k);
    graph->degree[k] = 0;
    for (int w = 0; w < graph->words; ++w) {
      graph->degree[k] += popcount(mask_of(graph, k)[w]);
    }
  }
  for (int at = 0; at < count; ++at) {
    int best = -1;
    for (int k = 0; k < count; ++k) {
      if (graph->degree[k] >= 0 && (best < 0 || graph->degree[k] < graph->degree[best])) {
        best = k;
      }
    }
    graph->order[at] = best;
    graph->rank[best] = at;
    eliminate(graph, best);
    graph->degree[best] = -1;
  }
}

/* Of those that an eliminated tree still knew, the one that went first; -1: it was the last. */
static int parent_of(tree_graph *graph, int k) {
  int parent = -1;
  for (int w = 0; w < graph->words; ++w) {
    for (uint64_t rest = mask_of(graph, k)[w]; rest; rest &= rest - 1) {
      const int j = w * BITS + popcount((rest & (~rest + 1)) - 1);
      if (parent < 0 || graph->rank[j] < graph->rank[parent]) {
        parent = j;
      }
    }
  }
  return parent;
}

void tree_graph_order(tree_graph *graph, int count, int *place) {
  find_order(graph, count);
  for (int k = 0; k < count; ++k) {
    graph->parent[k] = parent_of(graph, k);
    graph->size[k] = 1;
  }
  for (int at = 0; at < count; ++at) { /* children come before parents */
    const int k = graph->order[at], parent = graph->parent[k];
    if (parent >= 0) {
      graph->size[parent] += graph->size[k];
    }
  }
  int end = count; /* the places of a subtree end where its parent's last free ones do */
  for (int at = count - 1; at >= 0; --at) {
    const int k = graph->order[at], parent = graph->parent[k];
    int *free_end = parent >= 0 ? graph->end + parent : &end;
    place[k] = *free_end - 1;
    *free_end -= graph->size[k];
    graph->end[k] = place[k];
  }
}
