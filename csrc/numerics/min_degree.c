#include "numerics/min_degree.h"

#include "base/multiversion.h"

void elimination_begin(const elimination *e) {
  const uint64_t *word = e->mask;
  for (int k = 0; k < e->count; ++k) {
    e->degree[k] = 0;
    for (size_t w = 0; w < e->words; ++w) {
      e->degree[k] += bit_count(*word++);
    }
  }
}

int elimination_next(const elimination *e) {
  int best = -1;
  for (int k = 0; k < e->count; ++k) {
    if (e->degree[k] >= 0 && (best < 0 || e->degree[k] < e->degree[best])) {
      best = k;
    }
  }
  return best;
}

QD_MULTIVERSION
void elimination_take(const elimination *e, int k) {
  const uint64_t *own = e->mask + (size_t)k * e->words;
  e->degree[k] = -1;
  for (size_t w = 0; w < e->words; ++w) {
    for (uint64_t rest = own[w]; rest; rest &= rest - 1) {
      const int j = (int)w * WORD_BITS + lowest_bit(rest);
      uint64_t *mask = e->mask + (size_t)j * e->words;
      int degree = 0;
      for (size_t i = 0; i < e->words; ++i) {
        mask[i] |= own[i];
        degree += bit_count(mask[i]);
      }
      clear_bit(mask, j);
      clear_bit(mask, k);
      e->degree[j] = degree - 2;
    }
  }
}
