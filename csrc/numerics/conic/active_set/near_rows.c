#include "numerics/conic/active_set/near_rows.h"

#include <math.h>

#include "base/lanes.h"

void near_rows_lay_out(near_rows *near, size_t quads, size_t tiles, arena *a) {
  near->quad_capacity = (int)quads;
  near->tile_capacity = (int)tiles;
  ARENA_INTS(a, quads, &near->block, &near->row);
  near->start = arena_ints(a, quads + 1);
  near->tiles = arena_ints(a, tiles);
  near->values = arena_doubles(a, 16 * tiles);
  near->offset = arena_doubles(a, 4 * quads);
  near->w = arena_doubles(a, 4 * quads + 32); /* and padding for cones that do not exist */
  near->weight = arena_doubles(a, 4 * quads);
}

void near_rows_clear(near_rows *near) {
  near->count = 0;
  near->start[0] = 0;
}

/* Copies four rows of a block, from row `first` on, scaled. A weight of zero marks a missing
 * row. */
LANES_INLINE void copy_rows(near_rows *near, const tile_system *system, const row_block *block,
                            int first, const lanes *weight) {
  const int q = near->count, last = block->row_count - 1, start = near->start[q];
  const int tile_count = block->tile_count;
  const size_t width = 4 * (size_t)block->row_count;
  const double *from = system->G + block->values;
  const double *a = from + 4 * (size_t)first,
               *b = from + 4 * (size_t)(first < last ? first + 1 : last);
  const double *c = from + 4 * (size_t)(first + 1 < last ? first + 2 : last);
  const double *d = from + 4 * (size_t)(first + 2 < last ? first + 3 : last);
  const int *block_tiles = system->block_tiles + block->tile_start;
  int *tiles = near->tiles + start;
  double *out = near->values + 16 * (size_t)start;
  for (int k = 0; k < tile_count; ++k) {
    tiles[k] = block_tiles[k];
  }
  for (int k = 0; k < tile_count; ++k, out += 16) {
    const size_t at = width * (size_t)k;
    lanes columns[4];
    lanes_transpose(columns, &LANES_OF(a + at), &LANES_OF(b + at), &LANES_OF(c + at),
                    &LANES_OF(d + at));
    for (int j = 0; j < 4; ++j) {
      LANES_AT(out + 4 * j) = *weight * columns[j];
    }
  }
  near->start[q + 1] = start + tile_count;
}

QD_MULTIVERSION
int near_rows_add(near_rows *near, const tile_system *system, int b, int first, const double *g,
                  const double *compliance, double enough) {
  const row_block *block = &system->blocks[b];
  const int q = near->count, step = block->slot_step, left = block->row_count - first;
  if (q == near->quad_capacity || near->start[q] + block->tile_count > near->tile_capacity) {
    return 0;
  }
  const double *size = compliance + block->cone, *at = g + block->slot + first * step;
  const lanes nothing = {0.0, 0.0, 0.0, 0.0}, one = {1.0, 1.0, 1.0, 1.0};
  const lanes rows = {0.0, 1.0, 2.0, 3.0};
  lanes squared, offset, weight;
  near->block[q] = b;
  near->row[q] = first;
  if (step == 1 && left >= 4) {
    squared = LANES_FROM(size + first);
    offset = LANES_FROM(at) - enough;
  } else {
    squared = offset = nothing;
    for (int i = 0; i < 4 && i < left; ++i) {
      squared[i] = size[step == 1 ? first + i : 0];
      offset[i] = at[i * step] - (step == 1 || first + i == 0 ? enough : 0.0);
    }
  }
  const lane_bits none = rows >= (double)left, is_zero = squared == 0.0;
  lanes_choose(&squared, &is_zero, &one, &squared);
  for (int i = 0; i < 4; ++i) {
    weight[i] = sqrt(squared[i]);
  }
  weight = 1.0 / weight;
  lanes_choose(&weight, &none, &nothing, &weight);
  offset *= weight;
  if (step == 1) {
    lanes_choose(&offset, &none, &one, &offset); /* missing rows are never violated */
  }
  LANES_AT(near->weight + 4 * (size_t)q) = weight;
  LANES_AT(near->offset + 4 * (size_t)q) = offset;
  copy_rows(near, system, block, first, &weight);
  ++near->count;
  return 1;
}

/* Start of the quads, and the rest of near_rows in local variables, which stores cannot alias. */
typedef struct quad_reader {
  const int *start, *tiles;
  const double *values, *offset, *x;
} quad_reader;

LANES_INLINE quad_reader read_quads(const near_rows *near, const double *x) {
  const quad_reader reader = {near->start, near->tiles, near->values, near->offset, x};
  return reader;
}

/* Quad q times x; its tiles are start .. end - 1. */
LANES_INLINE void multiply_quad(const quad_reader *from, int q, int start, int end, lanes *out) {
  lanes even = LANES_OF(from->offset + 4 * (size_t)q), odd = {0.0, 0.0, 0.0, 0.0};
  const double *values = from->values + 16 * (size_t)start;
  const int *tile = from->tiles + start, *const last = from->tiles + end;
  for (; tile < last; ++tile, values += 16) {
    const double *at = from->x + 4 * (size_t)*tile;
    even += at[0] * LANES_OF(values);
    odd += at[1] * LANES_OF(values + 4);
    even += at[2] * LANES_OF(values + 8);
    odd += at[3] * LANES_OF(values + 12);
  }
  *out = even + odd;
}

/* Code of the lane with the smallest negative score; -1 if none is negative. */
LANES_INLINE int place_of_least(const lanes *score, const lanes *code) {
  int found = -1;
  double least = 0.0;
  for (int k = 0; k < 4; ++k) {
    if ((*score)[k] < least) {
      least = (*score)[k];
      found = (int)(*code)[k];
    }
  }
  return found;
}

QD_MULTIVERSION
int near_rows_worst(near_rows *near, const double *x) {
  lanes score = {0.0, 0.0, 0.0, 0.0}, code = score;
  lanes here = {0.0, 1.0, 2.0, 3.0};
  const quad_reader from = read_quads(near, x);
  double *out = near->w;
  const int count = near->count;
  for (int q = 0, start = 0; q < count; ++q, here += 4.0, out += 4) {
    const int end = from.start[q + 1];
    lanes w;
    multiply_quad(&from, q, start, end, &w);
    start = end;
    LANES_AT(out) = w;
    const lane_bits worse = w < score;
    lanes_choose(&score, &worse, &w, &score);
    lanes_choose(&code, &worse, &here, &code);
  }
  return place_of_least(&score, &code);
}

/* Squared tail |w_1|^2 of a cone. */
LANES_INLINE void square_tail(const double *w, int quads, lanes *out) {
  const lanes tail = {0.0, 1.0, 1.0, 1.0};
  *out = LANES_OF(w) * LANES_OF(w) * tail;
  if (quads > 1) {
    *out += LANES_OF(w + 4) * LANES_OF(w + 4);
  }
}

QD_MULTIVERSION
int near_rows_worst_cone(near_rows *near, int quads, const double *x) {
  const lanes nothing = {1.0, 0.0, 0.0, 0.0};
  lanes score = {0.0, 0.0, 0.0, 0.0}, code = score;
  lanes here = {0.0, 1.0, 2.0, 3.0};
  const size_t size = 4 * (size_t)quads;
  const int count = near->count, cones = count / quads;
  const quad_reader from = read_quads(near, x);
  double *out = near->w;
  for (int q = 0, start = 0; q < count; ++q) {
    const int end = from.start[q + 1];
    lanes w;
    multiply_quad(&from, q, start, end, &w);
    start = end;
    LANES_AT(out + 4 * (size_t)q) = w;
  }
  for (int q = count; q < count + 3 * quads; ++q) {
    LANES_AT(out + 4 * (size_t)q) = nothing;
  }
  for (int c = 0; c < cones; c += 4, here += 4.0) {
    const double *w = out + size * (size_t)c;
    lanes s0, s1, s2, s3, sums, inside;
    square_tail(w, quads, &s0);
    square_tail(w + size, quads, &s1);
    square_tail(w + 2 * size, quads, &s2);
    square_tail(w + 3 * size, quads, &s3);
    lanes_sums(&sums, &s0, &s1, &s2, &s3);
    for (int k = 0; k < 4; ++k) {
      inside[k] = w[(size_t)k * size] - sqrt(sums[k]);
    }
    const lane_bits worse = inside < score;
    lanes_choose(&score, &worse, &inside, &score);
    lanes_choose(&code, &worse, &here, &code);
  }
  return quads * place_of_least(&score, &code);
}

double near_rows_inside(const near_rows *near, int quads, int q) {
  const double *w = near->w + 4 * (size_t)q;
  double sum = 0.0;
  for (int i = 1; i < 4 * quads; ++i) {
    sum += w[i] * w[i];
  }
  return w[0] - sqrt(sum);
}

void near_rows_tighten(near_rows *near, int cones, double before, double enough) {
  for (int q = 0; q < near->count; ++q) {
    const int rows = cones ? near->row[q] == 0 : 4; /* of a cone, only the head */
    for (int k = 4 * q; k < 4 * q + rows; ++k) {
      near->offset[k] += near->weight[k] * (before - enough);
    }
  }
}
