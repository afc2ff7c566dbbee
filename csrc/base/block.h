/* Heap blocks aligned to ARENA_ALIGNMENT. Windows frees aligned blocks with a function of its own:
 * free blocks of block_allocate with block_free, never with free. */
#ifndef QD_BASE_BLOCK_H
#define QD_BASE_BLOCK_H

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#ifdef _WIN32
#include <malloc.h>
#endif

/* `bytes`: a multiple of ARENA_ALIGNMENT, as an arena counts. NULL if memory is exhausted. */
static inline void *block_allocate(size_t bytes) {
#ifdef _WIN32
  return _aligned_malloc(bytes, ARENA_ALIGNMENT);
#else
  return aligned_alloc(ARENA_ALIGNMENT, bytes);
#endif
}

/* Allocates a struct and its vectors in one block. `first` holds the initial value of the struct,
 * sizes included; `lay_out` sets the pointers to the vectors. *bytes: the size of the block. NULL
 * if memory is exhausted. */
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
  memset(laying.base, 0xff, counting.offset); /* NaN: shows uninitialised reads */
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
