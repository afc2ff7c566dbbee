/* One block, laid out by the code that counted it: run the layout once with a NULL arena to learn
 * the size, allocate, run it again to hand out pointers. */
#ifndef QD_BASE_ARENA_H
#define QD_BASE_ARENA_H

#include <stddef.h>

#define ARENA_ALIGNMENT 64

typedef struct arena {
  char *base;    /* NULL while counting */
  size_t offset; /* bytes handed out so far */
} arena;

static inline void *arena_take(arena *a, size_t bytes) {
  const size_t start = a->offset;
  a->offset = (start + bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
  return a->base ? a->base + start : NULL;
}

/* (double *) room for count numbers */
static inline double *arena_doubles(arena *a, size_t count) {
  return (double *)arena_take(a, count * sizeof(double));
}

/* Where the arena stands: what is taken from here on can be given back. */
static inline size_t arena_mark(const arena *a) { return a->offset; }

/* Gives back all that was taken since the mark, and keeps in `*farthest` how far that went: the
 * arena goes on from there once everybody who shares the memory has been laid out. */
static inline void arena_release(arena *a, size_t mark, size_t *farthest) {
  *farthest = a->offset > *farthest ? a->offset : *farthest;
  a->offset = mark;
}

static inline int *arena_ints(arena *a, size_t count) {
  return (int *)arena_take(a, count * sizeof(int));
}

/* The same for each of these, which are all `count` numbers long. */
static inline void arena_share_doubles(arena *a, size_t count, double **const *each) {
  for (; *each != NULL; ++each) {
    **each = arena_doubles(a, count);
  }
}
static inline void arena_share_ints(arena *a, size_t count, int **const *each) {
  for (; *each != NULL; ++each) {
    **each = arena_ints(a, count);
  }
}
#define ARENA_DOUBLES(a, count, ...)                                                               \
  arena_share_doubles(a, count, (double **const[]){__VA_ARGS__, NULL})
#define ARENA_INTS(a, count, ...) arena_share_ints(a, count, (int **const[]){__VA_ARGS__, NULL})

#endif
