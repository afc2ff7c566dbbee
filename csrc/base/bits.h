/* Sets of small integers, stored as bits of 64-bit words. */
#ifndef QD_BASE_BITS_H
#define QD_BASE_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/lanes.h"

#define WORD_BITS 64

LANES_INLINE int bit_count(uint64_t word) {
#if defined(__GNUC__)
  return __builtin_popcountll(word);
#else
  int count = 0;
  for (; word; word &= word - 1) {
    ++count;
  }
  return count;
#endif
}

LANES_INLINE int lowest_bit(uint64_t word) {
#if defined(__GNUC__)
  return __builtin_ctzll(word);
#else
  return bit_count((word & (~word + 1)) - 1);
#endif
}

LANES_INLINE size_t bit_words(size_t count) { return (count + WORD_BITS - 1) / WORD_BITS; }

LANES_INLINE uint64_t bit_of(int i) { return (uint64_t)1 << (i % WORD_BITS); }

LANES_INLINE void set_bit(uint64_t *mask, int i) { mask[i / WORD_BITS] |= bit_of(i); }

LANES_INLINE void clear_bit(uint64_t *mask, int i) { mask[i / WORD_BITS] &= ~bit_of(i); }

/* Sets entry (row, column) of a matrix of bits with `words` words per row. */
LANES_INLINE void note_entry(uint64_t *mask, size_t words, int row, int column) {
  set_bit(mask + (size_t)row * words, column);
}

#endif
