/* Blocks of the heap that start at a multiple of ARENA_ALIGNMENT. Windows frees such blocks by a
 * function of its own, so what block_allocate gave goes to block_free, never to free. */
#ifndef QD_BASE_BLOCK_H
#define QD_BASE_BLOCK_H

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#ifdef _WIN32
#include <malloc.h>
#endif

/* `bytes` as an arena counts them: a multiple of ARENA_ALIGNMENT. NULL if the heap is exhausted. */
static inline void *block_allocate(size_t bytes) {
#ifdef _WIN32
  return _aligned_malloc(bytes, ARENA_ALIGNMENT);
#else
  return aligned_alloc(ARENA_ALIGNMENT, bytes);
#endif
}

/* A struct and the vectors that `lay_out` gives it, in one block; `first` has what it begins as,
 * sizes included. NULL if the heap is exhausted. */
static inline void *block_create(void *first, size_t size, void (*lay_out)(void *of, arena *a),
                                 size_t *bytes) {
  arena counting = {NULL, 0};
  arena_take(&counting, size);
  lay_out(first, &counting);
  arena laying = {(char *)block_allocate(counting.offset), 0};
  if (laying.base == NULL) {
    return NULL;
  }
#ifndef NDEBUG
  memset(laying.base, 0xff, counting.offset); /* what is read before it is written shows */
#endif
  void *of = arena_take(&laying, size);
  memcpy(of, first, size);
  lay_out(of, &laying);
  *bytes = counting.offset;
  return of;
}

/* `block` may be NULL. */
static inline void block_free(void *block) {
#ifdef _WIN32
  _aligned_free(block);
#else
  free(block);
#endif
}

#endif
