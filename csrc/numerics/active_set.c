#include "numerics/active_set.h"

#include <math.h>
#include <string.h>

#include "numerics/lanes.h"

void active_set_lay_out(active_set *set, size_t columns, arena *a) {
  set->place = arena_ints(a, ACTIVE_LIMIT);
  set->face = arena_take(a, ACTIVE_LIMIT * sizeof(face));
  set->rows = arena_doubles(a, ACTIVE_LIMIT * columns);
  set->own_images = arena_doubles(a, ACTIVE_LIMIT * columns);
  set->inverse = arena_doubles(a, ACTIVE_LIMIT * ACTIVE_LIMIT);
  double **vectors[] = {&set->multiplier, &set->product, &set->reduced,
                        &set->rate,       &set->kept,    &set->moved};
  for (size_t k = 0; k < sizeof vectors / sizeof vectors[0]; ++k)
    *vectors[k] = arena_doubles(a, ACTIVE_LIMIT + 4);
}

void active_set_clear(active_set *set, int columns, int Q_is_identity) {
  set->count = 0;
  set->columns = columns;
  set->images = Q_is_identity ? set->rows : set->own_images;
  for (int k = 0; k < ACTIVE_LIMIT; ++k) set->place[k] = k;
}

/* To the next multiple of four. */
LANES_INLINE int padded(int count) { return (count + 3) / 4 * 4; }

/* out[0..4) = dots of four vectors with b */
LANES_INLINE void four_dots(double *out, const double *a0, const double *a1, const double *a2,
                            const double *a3, const double *b, int count) {
  lanes s0 = {0.0}, s1 = {0.0}, s2 = {0.0}, s3 = {0.0}, sums;
  for (int i = 0; i < count; i += 4) {
    const lanes bi = LANES_OF(b + i);
    s0 += LANES_OF(a0 + i) * bi;
    s1 += LANES_OF(a1 + i) * bi;
    s2 += LANES_OF(a2 + i) * bi;
    s3 += LANES_OF(a3 + i) * bi;
  }
  lanes_sums(&sums, &s0, &s1, &s2, &s3);
  LANES_AT(out) = sums;
}

QD_CLONES
double active_set_measure(active_set *set) {
  const int n = set->count, columns = set->columns;
  const double *image = active_set_image(set, n);
  for (int k = 0; k < n; k += 4) { /* past the end: the last row once more, cleared below */
    const int last = n - 1;
    four_dots(set->product + k, active_set_row(set, k),
              active_set_row(set, k + 1 < n ? k + 1 : last),
              active_set_row(set, k + 2 < n ? k + 2 : last),
              active_set_row(set, k + 3 < n ? k + 3 : last), image, columns);
  }
  for (int k = n; k < padded(n); ++k) set->product[k] = 0.0;
  const double *row = active_set_row(set, n);
  lanes own = {0.0, 0.0, 0.0, 0.0};
  for (int c = 0; c < columns; c += 4) own += LANES_OF(row + c) * LANES_OF(image + c);
  return lanes_sum(&own);
}

/* reduced = M product, rate = M'reduced */
LANES_INLINE void apply_inverse(active_set *set) {
  const int n = set->count;
  const double *M = set->inverse;
  for (int k = 0; k < n; k += 4) {
    const double *row = M + (size_t)k * ACTIVE_LIMIT;
    four_dots(set->reduced + k, row, row + ACTIVE_LIMIT, row + 2 * ACTIVE_LIMIT,
              row + 3 * ACTIVE_LIMIT, set->product, k + 4);
  }
  for (int k = n; k < padded(n); ++k) set->reduced[k] = 0.0;
  for (int j = 0; j < n; j += 4) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int k = j; k < n; ++k) sum += set->reduced[k] * LANES_OF(M + (size_t)k * ACTIVE_LIMIT + j);
    LANES_AT(set->rate + j) = sum;
  }
}

QD_CLONES
double active_set_rates(active_set *set, double own) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  apply_inverse(set);
  for (int k = 0; k < set->count; k += 4)
    sum += LANES_OF(set->reduced + k) * LANES_OF(set->reduced + k);
  return own - lanes_sum(&sum);
}

QD_CLONES
int active_set_leaving(active_set *set, double *step) {
  const int n = set->count, width = padded(n);
  double *restrict when = set->kept;
  const double *restrict multiplier = set->multiplier, *restrict rate = set->rate;
  for (int k = 0; k < width; ++k) when[k] = rate[k] > 0.0 ? multiplier[k] / rate[k] : HUGE_VAL;
  for (int k = n; k < width; ++k) when[k] = HUGE_VAL;
  const double first = smallest_of(when, width, *step);
  if (!(first < *step)) return -1;
  int found = 0;
  while (when[found] != first) ++found;
  *step = first;
  return found;
}

QD_CLONES
void active_set_solve(active_set *set) {
  for (int k = set->count; k < padded(set->count); ++k) set->product[k] = 0.0;
  apply_inverse(set);
}

QD_CLONES
void active_set_move(const active_set *set, double step, double *x) {
  const double *image = active_set_image(set, set->count);
  for (int c = 0; c < set->columns; c += 4) {
    lanes sum = LANES_OF(image + c);
    for (int k = 0; k < set->count; ++k)
      sum -= set->rate[k] * LANES_OF(active_set_image(set, k) + c);
    LANES_AT(x + c) += step * sum;
  }
}

QD_CLONES
void active_set_add_images(const active_set *set, const double *multiplier, double *x) {
  for (int c = 0; c < set->columns; c += 4) {
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int k = 0; k < set->count; ++k)
      sum += multiplier[k] * LANES_OF(active_set_image(set, k) + c);
    LANES_AT(x + c) += sum;
  }
}

void active_set_push(active_set *set, double curvature, double multiplier) {
  const int n = set->count;
  double *row = set->inverse + (size_t)n * ACTIVE_LIMIT;
  const double last = 1.0 / sqrt(curvature);
  for (int k = 0; k < n; ++k) row[k] = -last * set->rate[k];
  row[n] = last;
  for (int k = n + 1; k < padded(n + 1); ++k) row[k] = 0.0;
  /* dots run over four rows at a time: what is behind the last must be finite */
  for (int i = n + 1; i < padded(n + 1); ++i)
    memset(set->inverse + (size_t)i * ACTIVE_LIMIT, 0, (size_t)padded(n + 1) * sizeof(double));
  set->multiplier[n] = multiplier;
  set->count = n + 1;
}

/* Without row k, M's rows from k on are rotated so that their entries of column k gather in the
 * last of them, which goes, and column k with it. Two passes: side by side, the pair of a sum and a
 * difference becomes one fused instruction in gcc 12, -ffp-contract=off or not, and bits would
 * depend on the instruction set. */
QD_CLONES
void active_set_drop(active_set *set, int k) {
  const int n = set->count, freed = set->place[k];
  double *restrict kept = set->kept, *restrict moved = set->moved;
  double *carried = set->inverse + (size_t)k * ACTIVE_LIMIT;
  memset(moved, 0, ACTIVE_LIMIT * sizeof(double));
  memcpy(moved, carried, (size_t)padded(k + 1) * sizeof(double));
  for (int j = k; j + 1 < n; ++j) {
    double *row = set->inverse + (size_t)j * ACTIVE_LIMIT, *next = row + ACTIVE_LIMIT;
    const double a = moved[k], b = next[k], size = sqrt(a * a + b * b);
    const double cosine = a / size, sine = b / size;
    const int width = padded(j + 2);
    for (int i = 0; i < width; ++i) kept[i] = cosine * next[i] - sine * moved[i];
    for (int i = 0; i < width; ++i) moved[i] = sine * next[i] + cosine * moved[i];
    kept[width] = 0.0;
    memcpy(row, kept, (size_t)k * sizeof(double));
    memcpy(row + k, kept + k + 1, (size_t)(padded(j + 1) - k) * sizeof(double));
  }
  memset(set->inverse + (size_t)(n - 1) * ACTIVE_LIMIT, 0, (size_t)padded(n) * sizeof(double));
  for (int i = k; i + 1 < n; ++i) {
    set->multiplier[i] = set->multiplier[i + 1];
    set->product[i] = set->product[i + 1];
  }
  set->product[n - 1] = 0.0;
  for (int i = k; i < n; ++i) set->place[i] = set->place[i + 1]; /* n: the candidate's */
  set->place[n] = freed;
  set->count = n - 1;
}
