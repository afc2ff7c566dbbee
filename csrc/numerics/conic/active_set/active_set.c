#include "numerics/conic/active_set/active_set.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"

void active_set_lay_out(active_set *set, size_t columns, arena *a) {
  set->place = arena_ints(a, ACTIVE_LIMIT);
  set->face = arena_take(a, ACTIVE_LIMIT * sizeof(face));
  ARENA_DOUBLES(a, ACTIVE_LIMIT * columns, &set->rows, &set->own_images);
  set->inverse = arena_doubles(a, ACTIVE_LIMIT * ACTIVE_LIMIT);
  ARENA_DOUBLES(a, ACTIVE_LIMIT + 4, &set->multiplier, &set->product, &set->reduced, &set->rate,
                &set->kept, &set->moved);
}

void active_set_clear(active_set *set, int columns, int Q_is_identity) {
  set->count = 0;
  set->columns = columns;
  set->images = Q_is_identity ? set->rows : set->own_images;
  for (int k = 0; k < ACTIVE_LIMIT; ++k) {
    set->place[k] = k;
  }
}

/* `count` rounded up to a multiple of four. */
LANES_INLINE int padded(int count) { return (count + 3) / 4 * 4; }

/* out[0..4) = dot products of four vectors with b, over the first `count` tiles or over `tiles`. */
LANES_INLINE void four_dots(double *out, const double *a0, const double *a1, const double *a2,
                            const double *a3, const double *b, const int *tiles, int count) {
  lanes s0 = {0.0}, s1 = {0.0}, s2 = {0.0}, s3 = {0.0}, sums;
  for (int t = 0; t < count; ++t) {
    const int i = 4 * (tiles ? tiles[t] : t);
    const lanes bi = LANES_OF(b + i);
    s0 += LANES_OF(a0 + i) * bi;
    s1 += LANES_OF(a1 + i) * bi;
    s2 += LANES_OF(a2 + i) * bi;
    s3 += LANES_OF(a3 + i) * bi;
  }
  lanes_sums(&sums, &s0, &s1, &s2, &s3);
  LANES_AT(out) = sums;
}

/* Zeroes numbers behind the last, up to a multiple of four. */
LANES_INLINE void clear_end(double *a, int count) {
  for (int k = count; k < padded(count); ++k) {
    a[k] = 0.0;
  }
}

QD_MULTIVERSION
double active_set_measure(active_set *set) {
  const int n = set->count, last = n - 1, tile_count = set->tile_count;
  const int *tiles = set->tiles;
  const double *row = active_set_row(set, n), *image = active_set_image(set, n);
  for (int k = 0; k < n; k += 4) { /* past the end: repeats the last row, cleared below */
    four_dots(set->product + k, active_set_image(set, k),
              active_set_image(set, k + 1 < n ? k + 1 : last),
              active_set_image(set, k + 2 < n ? k + 2 : last),
              active_set_image(set, k + 3 < n ? k + 3 : last), row, tiles, tile_count);
  }
  clear_end(set->product, n);
  lanes own = {0.0, 0.0, 0.0, 0.0};
  for (int t = 0; t < tile_count; ++t) {
    own += LANES_OF(row + 4 * tiles[t]) * LANES_OF(image + 4 * tiles[t]);
  }
  return lanes_sum(&own);
}

QD_MULTIVERSION
void active_set_multiply(active_set *set, const double *x) {
  const int n = set->count, last = n - 1;
  for (int k = 0; k < n; k += 4) {
    four_dots(set->product + k, active_set_row(set, k),
              active_set_row(set, k + 1 < n ? k + 1 : last),
              active_set_row(set, k + 2 < n ? k + 2 : last),
              active_set_row(set, k + 3 < n ? k + 3 : last), x, NULL, set->columns / 4);
  }
  clear_end(set->product, n);
}

/* reduced = M product, rate = M'reduced */
LANES_INLINE void apply_inverse(active_set *set) {
  const int n = set->count;
  const double *M = set->inverse;
  for (int k = 0; k < n; k += 4) {
    const double *row = M + (size_t)k * ACTIVE_LIMIT;
    four_dots(set->reduced + k, row, row + ACTIVE_LIMIT, row + 2 * ACTIVE_LIMIT,
              row + 3 * ACTIVE_LIMIT, set->product, NULL, k / 4 + 1);
  }
  clear_end(set->reduced, n);
  for (int j = 0; j < n; j += 4) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int k = j; k < n; ++k) {
      sum += set->reduced[k] * LANES_OF(M + (size_t)k * ACTIVE_LIMIT + j);
    }
    LANES_AT(set->rate + j) = sum;
  }
}

QD_MULTIVERSION
double active_set_rates(active_set *set, double own) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  apply_inverse(set);
  for (int k = 0; k < set->count; k += 4) {
    sum += LANES_OF(set->reduced + k) * LANES_OF(set->reduced + k);
  }
  return own - lanes_sum(&sum);
}

QD_MULTIVERSION
int active_set_leaving(active_set *set, double *step) {
  const int width = padded(set->count);
  double *restrict when = set->kept;
  const double *restrict multiplier = set->multiplier, *restrict rate = set->rate;
  for (int k = 0; k < width; k += 4) {
    for (int i = k; i < k + 4; ++i) {
      when[i] = rate[i] > 0.0 ? multiplier[i] / rate[i] : HUGE_VAL;
    }
  }
  const double first = smallest_of(when, width, *step);
  if (!(first < *step)) {
    return -1;
  }
  int found = 0;
  while (when[found] != first) {
    ++found;
  }
  *step = first;
  return found;
}

QD_MULTIVERSION
void active_set_unload(active_set *set, double step) {
  for (int k = 0; k < set->count; k += 4) {
    LANES_AT(set->multiplier + k) -= step * LANES_OF(set->rate + k);
  }
}

QD_MULTIVERSION
void active_set_solve(active_set *set) { apply_inverse(set); }

QD_MULTIVERSION
void active_set_move(const active_set *set, double step, double *x) {
  const int n = set->count, columns = set->columns;
  const double *image = active_set_image(set, n), *rate = set->rate, *images[ACTIVE_LIMIT];
  for (int k = 0; k < n; ++k) {
    images[k] = active_set_image(set, k);
  }
  int c = 0;
  for (; c + 8 <= columns; c += 8) {
    lanes a = LANES_OF(image + c), b = LANES_OF(image + c + 4);
    for (int k = 0; k < n; ++k) {
      a -= rate[k] * LANES_OF(images[k] + c);
      b -= rate[k] * LANES_OF(images[k] + c + 4);
    }
    LANES_AT(x + c) += step * a;
    LANES_AT(x + c + 4) += step * b;
  }
  if (c < columns) {
    lanes a = LANES_OF(image + c);
    for (int k = 0; k < n; ++k) {
      a -= rate[k] * LANES_OF(images[k] + c);
    }
    LANES_AT(x + c) += step * a;
  }
}

QD_MULTIVERSION
void active_set_add_images(const active_set *set, const double *multiplier, double *x) {
  for (int c = 0; c < set->columns; c += 4) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < set->count; ++k) {
      sum += multiplier[k] * LANES_OF(active_set_image(set, k) + c);
    }
    LANES_AT(x + c) += sum;
  }
}

void active_set_push(active_set *set, double curvature, double multiplier) {
  const int n = set->count, width = padded(n + 1);
  double *row = set->inverse + (size_t)n * ACTIVE_LIMIT;
  const double last = 1.0 / sqrt(curvature);
  for (int k = 0; k < n; ++k) {
    row[k] = -last * set->rate[k];
  }
  row[n] = last;
  for (int k = n + 1; k < width; ++k) {
    row[k] = 0.0;
  }
  /* dot products run over four rows at a time, so the rows behind the last must be finite */
  for (int i = n + 1; i < width; ++i) {
    for (int k = 0; k < width; k += 4) {
      LANES_AT(set->inverse + (size_t)i * ACTIVE_LIMIT + k) = (lanes){0.0, 0.0, 0.0, 0.0};
    }
  }
  set->multiplier[n] = multiplier;
  for (int k = n + 1; k < width; ++k) {
    set->multiplier[k] = 0.0;
  }
  set->count = n + 1;
}

/* One rotation of M's rows: `next`, the row below, and the row carried so far. The finished row
 * goes to `out`, without column k. Two passes: in one pass, gcc 12 fuses the pair of a sum and a
 * difference into one instruction, even with -ffp-contract=off, and bits would depend on the
 * instruction set. */
LANES_INLINE void rotate_rows(double *restrict out, const double *restrict next,
                              double *restrict moved, double *restrict kept, double cosine,
                              double sine, int k, int width) {
  for (int i = 0; i < width; i += 4) {
    LANES_AT(kept + i) = cosine * LANES_OF(next + i) - sine * LANES_OF(moved + i);
  }
  for (int i = 0; i < width; i += 4) {
    LANES_AT(moved + i) = sine * LANES_OF(next + i) + cosine * LANES_OF(moved + i);
  }
  LANES_AT(kept + width) = (lanes){0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < k; i += 4) {
    LANES_AT(out + i) = LANES_OF(kept + i);
  }
  for (int i = k; i < width; i += 4) {
    LANES_ANYWHERE(out + i) = LANES_ANYWHERE(kept + i + 1);
  }
}

/* Rotations that gather the entries b of a column in the last row: with s_j = b_0^2 + .. + b_j^2,
 * the j-th has the cosine sqrt(s_j / s_j+1) and the sine b_j+1 / sqrt(s_j+1). Sums come first, so
 * that no root waits for another. */
LANES_INLINE void find_rotations(const active_set *set, int k, double *cosine, double *sine) {
  const double *entry = set->inverse + (size_t)k * ACTIVE_LIMIT + k;
  double sum = *entry * *entry;
  const int count = set->count - 1 - k;
  for (int j = 0; j < count; ++j) {
    entry += ACTIVE_LIMIT;
    const double before = sum;
    sum += *entry * *entry;
    cosine[j] = before / sum;
    sine[j] = *entry / sqrt(sum);
  }
  for (int j = 0; j < count; ++j) {
    cosine[j] = sqrt(cosine[j]);
  }
}

/* Removes row k: M's rows from k on are rotated so that their entries of column k gather in the
 * last of them, which is dropped together with column k. */
QD_MULTIVERSION
void active_set_drop(active_set *set, int k) {
  const int n = set->count, freed = set->place[k];
  double *row = set->inverse + (size_t)k * ACTIVE_LIMIT, cosine[ACTIVE_LIMIT], sine[ACTIVE_LIMIT];
  find_rotations(set, k, cosine, sine);
  for (int i = 0; i < padded(n); i += 4) {
    LANES_AT(set->moved + i) = i <= k ? LANES_OF(row + i) : (lanes){0.0, 0.0, 0.0, 0.0};
  }
  if (row[k] < 0.0) { /* the sign of M's row is free; continue with the positive one */
    for (int i = 0; i <= k; i += 4) {
      LANES_AT(set->moved + i) = -LANES_OF(set->moved + i);
    }
  }
  for (int j = k; j + 1 < n; ++j, row += ACTIVE_LIMIT) {
    rotate_rows(row, row + ACTIVE_LIMIT, set->moved, set->kept, cosine[j - k], sine[j - k], k,
                padded(j + 2));
  }
  for (int i = 0; i < padded(n); i += 4) {
    LANES_AT(row + i) = (lanes){0.0, 0.0, 0.0, 0.0};
  }
  for (int i = k; i + 1 < n; ++i) {
    set->multiplier[i] = set->multiplier[i + 1];
    set->product[i] = set->product[i + 1];
  }
  set->multiplier[n - 1] = set->product[n - 1] = 0.0;
  for (int i = k; i < n; ++i) {
    set->place[i] = set->place[i + 1]; /* n: the candidate's */
  }
  set->place[n] = freed;
  set->count = n - 1;
}
