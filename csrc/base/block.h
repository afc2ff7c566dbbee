/* Blocks of the heap that start at a multiple of ARENA_ALIGNMENT. Windows frees such blocks by a
 * function of its own, so what block_allocate gave goes to block_free, never to free. */
#ifndef QD_BASE_BLOCK_H
#define QD_BASE_BLOCK_H

#include <stdlib.h>

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

/* `block` may be NULL. */
static inline void block_free(void *block) {
#ifdef _WIN32
  _aligned_free(block);
#else
  free(block);
#endif
}

#endif
