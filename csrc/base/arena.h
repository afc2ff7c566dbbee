/* An arena hands out parts of one block of memory. Run the code that lays out the block twice: with
 * a NULL base it counts the size; after the allocation it hands out the pointers. */
#ifndef QD_BASE_ARENA_H
#define QD_BASE_ARENA_H

#include <stddef.h>

#define ARENA_ALIGNMENT 64

typedef struct arena {
  char *base;    /* NULL: only count */
  size_t offset; /* bytes handed out so far */
} arena;

static inline void *arena_take(arena *a, size_t bytes) {
  const size_t start = a->offset;
  a->offset = (start + bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
  return a->base ? a->base + start : NULL;
}

/* Room for `count` doubles; NULL while counting. */
static inline double *arena_doubles(arena *a, size_t count) {
  return (double *)arena_take(a, count * sizeof(double));
}

/* The current position, for arena_release. */
static inline size_t arena_mark(const arena *a) { return a->offset; }

/* Gives back everything taken since the mark, and raises `*farthest` to the largest offset that was
 * reached. Several users can so share memory: after the last of them, set the offset to
 * `*farthest`. */
static inline void arena_release(arena *a, size_t mark, size_t *farthest) {
  *farthest = a->offset > *farthest ? a->offset : *farthest;
  a->offset = mark;
}

static inline int *arena_ints(arena *a, size_t count) {
  return (int *)arena_take(a, count * sizeof(int));
}

/* Room for `count` numbers behind each of the listed pointers. */
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
