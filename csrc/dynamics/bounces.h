/* Bounces that do not create energy. Newton's rule determines the rebound speed of each contact. If
 * several contacts with friction bounce at the same time, this can require more energy than the
 * impact had (Kane's paradox), and a wedged object becomes faster from step to step. */
#ifndef QD_DYNAMICS_BOUNCES_H
#define QD_DYNAMICS_BOUNCES_H

#include "base/arena.h"
#include "dynamics/step.h"
#include "mechanics/model.h"

/* The trees of one island, as found with all of its bounces, and the search for its factor: work is
 * the work of its contacts, excess how much it exceeds `limit`. */
typedef struct bounce_group {
  int count; /* contacts that bounce */
  int open;  /* 1: its factor is searched */
  double share, work, scale, with_all, without, limit;
  double low, high, low_excess, high_excess;
} bounce_group;

typedef struct bounce_search {
  int *of_tree;        /* (tree_count) group, -1: held */
  bounce_group *group; /* (tree_count) */
} bounce_search;

static inline void bounces_lay_out(bounce_search *b, const qd_model *model, arena *a) {
  b->of_tree = arena_ints(a, (size_t)model->tree.count);
  b->group = arena_take(a, (size_t)model->tree.count * sizeof(bounce_group));
}

/* As attempts_solve. If the contacts of an island would do positive work, and more than without
 * bounces, or if with bounces no motion satisfies all rows, its coefficients of restitution are
 * multiplied by the largest factor found that avoids this; result->bounce_share is the smallest
 * factor of all islands. */
qd_status bounces_solve(const step_call *s);

#endif
