/* The order of an island's kinematic trees in its program.
 *
 * The solver eliminates tiles of four variables against fill. Bodies have six, so a tile may hold a
 * part of two of them, and couples whatever they touch. Neighbours in an order of little fill of
 * the trees, put behind each other as a postorder of its elimination tree, touch nearly the same:
 * with trees in the order of the file a box of 270 spheres has 5 times as many products in its
 * factor.
 *
 * In large islands, blocks of trees that are eliminated together begin at a tile of their own: what
 * is left of the tile before is padding. With that no tile couples what does not touch, and the
 * tiles stay in this order.
 */
#ifndef QD_DYNAMICS_TREE_ORDER_H
#define QD_DYNAMICS_TREE_ORDER_H

#include <stdint.h>

#include "base/arena.h"

/* Scratch for islands of up to `capacity` trees. */
typedef struct tree_graph {
  int capacity, words;
  uint64_t *mask;                   /* (capacity, words) neighbours */
  int *degree, *rank;               /* (capacity) of neighbours that are left; when eliminated */
  int *order, *parent, *size, *end; /* (capacity) */
  int *fill;                        /* (capacity) that a tree would make, -1: not known */
  int *width, *rows;                /* (capacity) DOFs of a block, and of what it knows later */
  int *kid, *sibling;               /* (capacity) blocks below, -1: none */
  int *merged;                      /* (capacity) the block that it became a part of, -1: none */
  int *first, *next;                /* (capacity) trees of a block */
} tree_graph;

void tree_graph_lay_out(tree_graph *graph, int tree_count, arena *a);
/* Whether an island of `count` trees is worth an order, and has room for one. */
int tree_graph_fits(const tree_graph *graph, int count);
void tree_graph_clear(tree_graph *graph, int count);
void tree_graph_connect(tree_graph *graph, int a, int b);
/* place[k] = the position of the k-th tree, which has so many DOFs; opens[position] = 1 where a
 * block of whole tiles begins. */
void tree_graph_order(tree_graph *graph, int count, const int *width, int *place, uint8_t *opens);

#endif
