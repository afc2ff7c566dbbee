/* The order of an island's kinematic trees in its program.
 *
 * The solver eliminates tiles of four variables in an order that reduces fill. Bodies have six
 * variables, so a tile may hold parts of two bodies, and couples all their neighbours. Trees are
 * sorted by a minimum-fill order, as a postorder of its elimination tree, so that successive trees
 * have nearly the same neighbours: in the order of the file, a box of 270 spheres has 5 times as
 * many products in its factor.
 *
 * In large islands, blocks of trees that are eliminated together begin at a new tile, and the rest
 * of the previous tile is padding. Then no tile couples unrelated trees, and the tiles stay in this
 * order. */
#ifndef QD_DYNAMICS_TREE_ORDER_H
#define QD_DYNAMICS_TREE_ORDER_H

#include <stdint.h>

#include "base/arena.h"

/* Scratch for islands of up to `capacity` trees. */
typedef struct tree_graph {
  int capacity, words;
  uint64_t *mask;     /* (capacity, words) neighbours */
  int *degree, *rank; /* (capacity) number of remaining neighbours; position in the elimination */
  int *order, *parent, *size, *end; /* (capacity) */
  int *fill;          /* (capacity) fill that eliminating the tree would create, -1: not known */
  int *width, *rows;  /* (capacity) DOFs of a block, and of its later neighbours */
  int *kid, *sibling; /* (capacity) child blocks, -1: none */
  int *merged;        /* (capacity) the block into which it was merged, -1: none */
  int *first, *next;  /* (capacity) trees of a block */
} tree_graph;

void tree_graph_lay_out(tree_graph *graph, int tree_count, arena *a);
/* Whether an island of `count` trees is large enough for an order, and fits. */
int tree_graph_fits(const tree_graph *graph, int count);
void tree_graph_clear(tree_graph *graph, int count);
void tree_graph_connect(tree_graph *graph, int a, int b);
/* place[k] = the position of the k-th tree, which has width[k] DOFs; opens[position] = 1 where a
 * block of whole tiles begins. */
void tree_graph_order(tree_graph *graph, int count, const int *width, int *place, uint8_t *opens);

#endif
