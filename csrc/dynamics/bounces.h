/* Bounces that make no energy. Newton's rule says how fast each contact leaves; where several with
 * friction bounce off each other at once, that can take more energy than the impact had (Kane's
 * paradox), and what is wedged gets faster from step to step. */
#ifndef QD_DYNAMICS_BOUNCES_H
#define QD_DYNAMICS_BOUNCES_H

#include "base/arena.h"
#include "dynamics/step.h"
#include "mechanics/model.h"

/* The trees of one island, as found with all of its bounces, and the search for its share: work is
 * what its contacts do, excess how much that is more than `limit`. */
typedef struct bounce_group {
  int count; /* contacts that bounce */
  int open;  /* 1: its share is looked for */
  double share, work, scale, with_all, without, limit;
  double low, high, low_excess, high_excess;
} bounce_group;

typedef struct bounce_search {
  int *of_tree;        /* (tree_count) group, -1: held */
  bounce_group *group; /* (tree_count) */
} bounce_search;

static inline void bounces_lay_out(bounce_search *b, const qd_model *model, arena *a) {
  b->of_tree = arena_ints(a, (size_t)model->tree_count);
  b->group = arena_take(a, (size_t)model->tree_count * sizeof(bounce_group));
}

/* As attempts_solve. Where the contacts of an island would do more work than none and than they do
 * without bounces, or bounces leave it no motion that satisfies all rows, its coefficients of
 * restitution are multiplied by the largest share found for which that is not so;
 * result->bounce_share is the smallest of these. */
qd_status bounces_solve(const step_call *s);

#endif
