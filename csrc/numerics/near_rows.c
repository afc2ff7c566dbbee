#include "numerics/near_rows.h"

#include <math.h>

#include "numerics/lanes.h"

void near_rows_lay_out(near_rows *near, size_t quads, size_t tiles, arena *a) {
  near->quad_capacity = (int)quads;
  near->tile_capacity = (int)tiles;
  near->block = arena_ints(a, quads);
  near->row = arena_ints(a, quads);
  near->start = arena_ints(a, quads + 1);
  near->tiles = arena_ints(a, tiles);
  near->values = arena_doubles(a, 16 * tiles);
  near->offset = arena_doubles(a, 4 * quads);
  near->w = arena_doubles(a, 4 * quads + 32); /* and cones that are none */
  near->weight = arena_doubles(a, 4 * quads);
}

void near_rows_clear(near_rows *near) {
  near->count = 0;
  near->start[0] = 0;
}

/* Four rows of a block, from row `first` on, scaled; a weight of zero: the row is none. */
LANES_INLINE void copy_rows(near_rows *near, const tile_system *system, const row_block *block,
                            int first, const double *weight) {
  const int q = near->count, last = block->row_count - 1;
  const size_t width = 4 * (size_t)block->row_count;
  const double *from = system->G + block->values, *rows[4];
  int *tiles = near->tiles + near->start[q];
  double *out = near->values + 16 * (size_t)near->start[q];
  for (int i = 0; i < 4; ++i) rows[i] = from + 4 * (size_t)(first + i < last ? first + i : last);
  for (int k = 0; k < block->tile_count; ++k, out += 16) {
    const size_t at = width * (size_t)k;
    const lanes r0 = weight[0] * LANES_OF(rows[0] + at), r1 = weight[1] * LANES_OF(rows[1] + at);
    const lanes r2 = weight[2] * LANES_OF(rows[2] + at), r3 = weight[3] * LANES_OF(rows[3] + at);
    tiles[k] = system->block_tiles[block->tile_start + k];
    lanes_transpose((lanes *)out, &r0, &r1, &r2, &r3);
  }
  near->start[q + 1] = near->start[q] + block->tile_count;
}

QD_CLONES
int near_rows_add(near_rows *near, const tile_system *system, int b, int first, const double *g,
                  const double *compliance, double enough) {
  const row_block *block = &system->blocks[b];
  const int q = near->count, linear = block->slot_step == 1, left = block->row_count - first;
  double *weight = near->weight + 4 * (size_t)q, *offset = near->offset + 4 * (size_t)q;
  if (q == near->quad_capacity || near->start[q] + block->tile_count > near->tile_capacity)
    return 0;
  near->block[q] = b;
  near->row[q] = first;
  for (int i = 0; i < 4; ++i)
    weight[i] = i < left ? compliance[block->cone + (linear ? first + i : 0)] : 0.0;
  for (int i = 0; i < 4; ++i) weight[i] = 1.0 / sqrt(weight[i] + (double)(weight[i] == 0.0));
  for (int i = 0; i < 4; ++i) {
    const double limit = linear || first + i == 0 ? enough : 0.0;
    if (i < left) {
      offset[i] = weight[i] * (g[block->slot + (first + i) * block->slot_step] - limit);
    } else { /* a row that is none is never violated */
      weight[i] = 0.0;
      offset[i] = (double)linear;
    }
  }
  copy_rows(near, system, block, first, weight);
  ++near->count;
  return 1;
}

/* Quad q times x. */
LANES_INLINE void multiply_quad(const near_rows *near, int q, const double *x, lanes *out) {
  lanes even = LANES_OF(near->offset + 4 * (size_t)q), odd = {0.0, 0.0, 0.0, 0.0};
  const int end = near->start[q + 1];
  const double *values = near->values + 16 * (size_t)near->start[q];
  for (int k = near->start[q]; k < end; ++k, values += 16) {
    const double *at = x + 4 * (size_t)near->tiles[k];
    even += at[0] * LANES_OF(values);
    odd += at[1] * LANES_OF(values + 4);
    even += at[2] * LANES_OF(values + 8);
    odd += at[3] * LANES_OF(values + 12);
  }
  *out = even + odd;
}

/* Place of the smallest of four negative numbers among those that others have been compared with.
 */
LANES_INLINE int place_of_least(const lanes *score, const lanes *code) {
  int found = -1;
  double least = 0.0;
  for (int k = 0; k < 4; ++k)
    if ((*score)[k] < least) {
      least = (*score)[k];
      found = (int)(*code)[k];
    }
  return found;
}

QD_CLONES
int near_rows_worst(near_rows *near, const double *x) {
  lanes score = {0.0, 0.0, 0.0, 0.0}, code = score;
  lanes here = {0.0, 1.0, 2.0, 3.0};
  for (int q = 0; q < near->count; ++q, here += 4.0) {
    lanes w;
    multiply_quad(near, q, x, &w);
    LANES_AT(near->w + 4 * (size_t)q) = w;
    const lane_bits worse = w < score;
    lanes_choose(&score, &worse, &w, &score);
    lanes_choose(&code, &worse, &here, &code);
  }
  return place_of_least(&score, &code);
}

/* |w_1| squared of a cone. */
LANES_INLINE void square_tail(const double *w, int quads, lanes *out) {
  const lanes tail = {0.0, 1.0, 1.0, 1.0};
  *out = LANES_OF(w) * LANES_OF(w) * tail;
  if (quads > 1) *out += LANES_OF(w + 4) * LANES_OF(w + 4);
}

QD_CLONES
int near_rows_worst_cone(near_rows *near, int quads, const double *x) {
  const lanes nothing = {1.0, 0.0, 0.0, 0.0};
  lanes score = {0.0, 0.0, 0.0, 0.0}, code = score;
  lanes here = {0.0, 1.0, 2.0, 3.0};
  const size_t size = 4 * (size_t)quads;
  const int cones = near->count / quads;
  for (int q = 0; q < near->count; ++q) {
    lanes w;
    multiply_quad(near, q, x, &w);
    LANES_AT(near->w + 4 * (size_t)q) = w;
  }
  for (int c = cones; c < cones + 3; ++c)
    for (int q = 0; q < quads; ++q) LANES_AT(near->w + size * (size_t)c + 4 * q) = nothing;
  for (int c = 0; c < cones; c += 4, here += 4.0) {
    const double *w = near->w + size * (size_t)c;
    lanes s0, s1, s2, s3, sums, inside;
    square_tail(w, quads, &s0);
    square_tail(w + size, quads, &s1);
    square_tail(w + 2 * size, quads, &s2);
    square_tail(w + 3 * size, quads, &s3);
    lanes_sums(&sums, &s0, &s1, &s2, &s3);
    for (int k = 0; k < 4; ++k) inside[k] = w[(size_t)k * size] - sqrt(sums[k]);
    const lane_bits worse = inside < score;
    lanes_choose(&score, &worse, &inside, &score);
    lanes_choose(&code, &worse, &here, &code);
  }
  return quads * place_of_least(&score, &code);
}

double near_rows_inside(const near_rows *near, int quads, int q) {
  const double *w = near->w + 4 * (size_t)q;
  double sum = 0.0;
  for (int i = 1; i < 4 * quads; ++i) sum += w[i] * w[i];
  return w[0] - sqrt(sum);
}

void near_rows_tighten(near_rows *near, int cones, double before, double enough) {
  for (int q = 0; q < near->count; ++q) {
    const int rows = cones ? near->row[q] == 0 : 4; /* of a cone, the first alone */
    for (int k = 4 * q; k < 4 * q + rows; ++k)
      near->offset[k] += near->weight[k] * (before - enough);
  }
}
