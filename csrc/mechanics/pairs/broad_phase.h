/* Broad phase: candidate pairs that may be in range. Tests bounding spheres, four pairs at a time;
 * in models with many pairs uses sorted boxes if these are faster. No pair in range is left out.
 * The result depends only on the poses. */
#ifndef QD_MECHANICS_BROAD_PHASE_H
#define QD_MECHANICS_BROAD_PHASE_H

#include "geometry/collide.h"
#include "mechanics/model.h"

typedef struct world_box {
  double low[3], high[3];
} world_box;

typedef struct broad_phase {
  int every;         /* 1: all pairs count as in range, and `maybe` is unused */
  uint64_t *maybe;   /* bit p: pair p may be in range */
  world_box *box;    /* (swept_count) in the order of the model's swept geometries */
  world_box *sorted; /* (swept_count) sorted by lower end along the sweep axis */
  uint32_t *key;     /* (4, swept_count) lower ends, their order, and scratch of the sort */
  double *sphere;    /* (geom_count, 4) centre and radius */
  double *mirrored;  /* (geom_count, 4) the same with negated centre */
  double *moved;     /* (2, geom_count, 4) both at the end of a motion */
} broad_phase;

void broad_phase_lay_out(broad_phase *b, const qd_model *model, arena *a);

/* Finds pairs whose shapes may be within max(margin, the pair's margin). */
void broad_phase_in_range(broad_phase *b, const qd_model *model, const placed_shape *shape,
                          double margin);
/* Finds pairs whose bounding spheres may touch if no point of a body moves farther than `travel`
 * (nb). */
void broad_phase_in_reach(broad_phase *b, const qd_model *model, const placed_shape *shape,
                          const double *travel);
/* Keeps the pairs whose bounding spheres may touch while their centres move in straight lines from
 * `shape` to `next`. Only for models without sorted boxes. */
void broad_phase_keep_met(broad_phase *b, const qd_model *model, const placed_shape *shape,
                          const placed_shape *next);
/* Finds pairs whose bounding spheres may touch while their centres move in straight lines from
 * `shape` to `next`. */
void broad_phase_on_the_way(broad_phase *b, const qd_model *model, const placed_shape *shape,
                            const placed_shape *next);

/* The first pair from `pair` on that may be in range; pair_count if there is none. */
static inline int broad_phase_next(const broad_phase *b, const qd_model *model, int pair) {
  if (b->every || pair >= model->pair.count) {
    return pair;
  }
  int word = pair / 64;
  uint64_t bits = b->maybe[word] >> (pair % 64) << (pair % 64);
  while (bits == 0) {
    if (++word == model->pair.table.bitmap_words) {
      return model->pair.count;
    }
    bits = b->maybe[word];
  }
  return 64 * word + __builtin_ctzll(bits);
}

#endif
