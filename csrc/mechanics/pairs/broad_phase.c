/* Models with many pairs use sweep and prune. Boxes are sorted by their lower ends along one axis;
 * a box overlaps only boxes that begin before it ends. Each call sorts from scratch, since steps
 * keep no state. */
#include "mechanics/pairs/broad_phase.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "base/vec3.h"
#include "geometry/bounds.h"

/* Testing each pair is as fast after this many box comparisons per pair of the model. */
#define WORK_PER_PAIR 1

void broad_phase_lay_out(broad_phase *b, const qd_model *model, arena *a) {
  const size_t count = (size_t)model->pair.table.swept_count;
  b->every = 1;
  b->maybe = arena_take(a, (size_t)model->pair.table.bitmap_words * sizeof(uint64_t));
  ARENA_DOUBLES(a, 4 * (size_t)model->geom.count, &b->sphere, &b->mirrored);
  b->moved = arena_doubles(a, 8 * (size_t)model->geom.count);
  if (!model->pair.table.in_use) {
    return;
  }
  b->box = arena_take(a, count * sizeof(world_box));
  b->sorted = arena_take(a, count * sizeof(world_box));
  b->key = arena_take(a, 4 * count * sizeof(uint32_t));
}

/* ---------------------------------------------------------------- sorting */

/* Bits of a float in sorting order. Rounding to float preserves the order of doubles, except that
 * different ones may become equal. */
static uint32_t sort_key(double value) {
  const float rounded = (float)fmin(fmax(value, -FLT_MAX), FLT_MAX);
  uint32_t bits;
  memcpy(&bits, &rounded, sizeof bits);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Insertion sort is used up to this number of boxes: for some 50 boxes it takes as long as four
 * radix passes over 256 counts. */
#define FEW_BOXES 48

/* Sorts `key` (count) and permutes `carried` alike; stable. */
static void insertion_sort(uint32_t *key, uint32_t *carried, int count) {
  for (int i = 1; i < count; ++i) {
    const uint32_t own_key = key[i], own = carried[i];
    int at = i;
    for (; at > 0 && key[at - 1] > own_key; --at) {
      key[at] = key[at - 1];
      carried[at] = carried[at - 1];
    }
    key[at] = own_key;
    carried[at] = own;
  }
}

/* The same by radix sort, lowest byte first. */
static void radix_sort(uint32_t *key, uint32_t *carried, uint32_t *key_spare,
                       uint32_t *carried_spare, int count) {
  uint32_t *from_key = key, *from = carried, *to_key = key_spare, *to = carried_spare;
  for (int shift = 0; shift < 32; shift += 8) {
    uint32_t place[256] = {0}, total = 0;
    for (int i = 0; i < count; ++i) {
      ++place[from_key[i] >> shift & 255u];
    }
    for (int digit = 0; digit < 256; ++digit) {
      const uint32_t here = place[digit];
      place[digit] = total;
      total += here;
    }
    for (int i = 0; i < count; ++i) {
      const uint32_t at = place[from_key[i] >> shift & 255u]++;
      to_key[at] = from_key[i];
      to[at] = from[i];
    }
    uint32_t *swap_key = from_key, *swap = from;
    from_key = to_key;
    from = to;
    to_key = swap_key;
    to = swap;
  } /* after four passes the result is in the first array again */
}

/* ---------------------------------------------------------------- sweeping */

/* The axis along which the boxes' centres spread most; -1 if numbers are not finite. */
static int sweep_axis(const world_box *box, int count) {
  double sum[3] = {0.0, 0.0, 0.0}, square[3] = {0.0, 0.0, 0.0};
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 3; ++k) {
      const double middle = (box[i].low[k] + box[i].high[k]) - (box[0].low[k] + box[0].high[k]);
      sum[k] += middle;
      square[k] += middle * middle;
    }
  }
  int axis = 0;
  for (int k = 0; k < 3; ++k) {
    square[k] -= sum[k] * sum[k] / count;
    if (!isfinite(square[k])) {
      return -1;
    }
    axis = square[k] > square[axis] ? k : axis;
  }
  return axis;
}

static int apart(const world_box *a, const world_box *b) {
  return (a->low[0] > b->high[0]) | (b->low[0] > a->high[0]) | (a->low[1] > b->high[1]) |
         (b->low[1] > a->high[1]) | (a->low[2] > b->high[2]) | (b->low[2] > a->high[2]);
}

static void mark(broad_phase *b, const pair_table *table, int g, int h) {
  const int low = g < h ? g : h, high = g < h ? h : g;
  for (int i = pair_table_find(table, low, high);
       i < table->row_start[low + 1] && table->other[i] == high; ++i) {
    b->maybe[table->pair[i] / 64] |= (uint64_t)1 << (table->pair[i] % 64);
  }
}

/* Marks the pairs of boxes that overlap. Returns 0 if testing every pair is cheaper. */
static int sweep(broad_phase *b, const qd_model *model) {
  const pair_table *table = &model->pair.table;
  const int count = table->swept_count, axis = sweep_axis(b->box, count);
  uint32_t *key = b->key, *order = key + count;
  int64_t work = (int64_t)WORK_PER_PAIR * model->pair.count;
  if (axis < 0) {
    return 0;
  }
  for (int i = 0; i < count; ++i) {
    key[i] = sort_key(b->box[i].low[axis]);
    order[i] = (uint32_t)i;
  }
  if (count <= FEW_BOXES) {
    insertion_sort(key, order, count);
  } else {
    radix_sort(key, order, key + 2 * count, key + 3 * count, count);
  }
  for (int i = 0; i < count; ++i) {
    b->sorted[i] = b->box[order[i]];
  }
  for (int i = 0; i < count; ++i) {
    const world_box *box = b->sorted + i;
    const uint32_t end = sort_key(box->high[axis]);
    for (int j = i + 1; j < count && key[j] <= end; ++j, --work) {
      if (!apart(box, b->sorted + j)) {
        mark(b, table, table->swept[order[i]], table->swept[order[j]]);
      }
    }
    if (work < 0) {
      return 0;
    }
  }
  return 1;
}

/* ---------------------------------------------------------------- spheres */

/* Bounding spheres, enlarged by the travel of their bodies (NULL: none). */
static void place_spheres(double *sphere, double *mirrored, const qd_model *model,
                          const placed_shape *shape, const double *travel) {
  for (int g = 0; g < model->geom.count; ++g) {
    const double *pos = shape[g].pos;
    const double far = travel != NULL ? travel[model->geom.body[g]] : 0.0;
    const lanes own = {pos[0], pos[1], pos[2], model->geom.radius[g] + far};
    const lanes signs = {-1.0, -1.0, -1.0, 1.0};
    LANES_AT(sphere + 4 * g) = own;
    LANES_AT(mirrored + 4 * g) = signs * own;
  }
}

/* For four pairs in lanes: B's centre relative to A's, and the sum of the radii. */
LANES_INLINE void find_between(const double *sphere, const double *mirrored, const int *pair_geom,
                               lanes *out) {
  lanes between[4];
  for (int k = 0; k < 4; ++k) {
    between[k] = LANES_OF(sphere + 4 * (ptrdiff_t)pair_geom[2 * k + 1]) +
                 LANES_OF(mirrored + 4 * (ptrdiff_t)pair_geom[2 * k]);
  }
  lanes_transpose(out, &between[0], &between[1], &between[2], &between[3]);
}

/* Bit mask of four pairs (2 indices each) whose spheres are at most `range` apart. */
LANES_INLINE uint64_t near_bits(const broad_phase *b, const int *pair_geom, const lanes *range) {
  const lane_bits place = {1, 2, 4, 8};
  lanes apart[4];
  find_between(b->sphere, b->mirrored, pair_geom, apart);
  const lanes zero = {0.0, 0.0, 0.0, 0.0}, minus = -*range;
  lanes size, reach;
  lanes_larger(&size, range, &minus);
  reach = (apart[3] + *range) + CALLERS_ROUNDING * (apart[3] + size);
  lanes_larger(&reach, &reach, &zero);
  const lanes squared = (apart[0] * apart[0] + apart[1] * apart[1]) + apart[2] * apart[2];
  const lane_bits far = squared > reach * reach, bits = ~far & place;
  return (uint64_t)((bits[0] | bits[1]) | (bits[2] | bits[3]));
}

/* Marks the pairs whose spheres are within max(margin, own margin of the pair); own NULL: no own
 * margins. */
QD_MULTIVERSION
static void mark_near(broad_phase *b, const qd_model *model, const double *own, double margin) {
  const int count = model->pair.count;
  const lanes common = {margin, margin, margin, margin};
  for (int first = 0; first < count; first += 4) {
    const int left = count - first;
    const int *pair_geom = model->pair.geom + 2 * first;
    int last[8] = {0};
    lanes range = common;
    uint64_t bits;
    if (left >= 4) {
      if (own != NULL) {
        range = LANES_FROM(own + first);
        lanes_larger(&range, &common, &range);
      }
      bits = near_bits(b, pair_geom, &range);
    } else {
      for (int k = 0; k < left; ++k) {
        last[2 * k] = pair_geom[2 * k];
        last[2 * k + 1] = pair_geom[2 * k + 1];
        range[k] = own != NULL && own[first + k] > margin ? own[first + k] : margin;
      }
      bits = near_bits(b, last, &range) & (((uint64_t)1 << left) - 1);
    }
    if (first % 64 == 0) {
      b->maybe[first / 64] = 0;
    }
    b->maybe[first / 64] |= bits << (first % 64);
  }
}

void broad_phase_in_reach(broad_phase *b, const qd_model *model, const placed_shape *shape,
                          const double *travel) {
  b->every = 0;
  place_spheres(b->sphere, b->mirrored, model, shape, travel);
  mark_near(b, model, NULL, 0.0);
}

/* Bit mask of four pairs whose spheres touch, up to rounding, while B's centre relative to A's
 * moves in a straight line between two positions. */
LANES_INLINE uint64_t met_bits(const lanes *from, const lanes *to) {
  const lane_bits place = {1, 2, 4, 8};
  const lanes zero = {0.0, 0.0, 0.0, 0.0}, one = {1.0, 1.0, 1.0, 1.0};
  const lanes least = {DBL_MIN, DBL_MIN, DBL_MIN, DBL_MIN};
  const lanes x = to[0] - from[0], y = to[1] - from[1], z = to[2] - from[2];
  lanes length = (x * x + y * y) + z * z, share, back;
  const lanes size = ((from[0] * from[0] + from[1] * from[1]) + from[2] * from[2]) + length;
  lanes_larger(&length, &length, &least);
  share = ((from[0] * x + from[1] * y) + from[2] * z) / length;
  back = -share;
  lanes_larger(&share, &back, &zero);
  back = one - share;
  lanes_larger(&back, &back, &zero);
  share = one - back; /* between 0 and 1 */
  const lanes a = from[0] + share * x, b = from[1] + share * y, c = from[2] + share * z;
  const lanes reach = from[3] * from[3];
  const lane_bits far = ((a * a + b * b) + c * c) > reach + CALLERS_ROUNDING * (reach + size);
  const lane_bits bits = ~far & place;
  return (uint64_t)((bits[0] | bits[1]) | (bits[2] | bits[3]));
}

QD_MULTIVERSION
void broad_phase_keep_met(broad_phase *b, const qd_model *model, const placed_shape *shape,
                          const placed_shape *next) {
  double *moved = b->moved, *back = moved + 4 * (ptrdiff_t)model->geom.count;
  place_spheres(b->sphere, b->mirrored, model, shape, NULL);
  place_spheres(moved, back, model, next, NULL);
  for (int first = 0; first + 4 <= model->pair.count; first += 4) {
    lanes from[4], to[4];
    const uint64_t four = (uint64_t)15 << (first % 64);
    if ((b->maybe[first / 64] & four) == 0) {
      continue;
    }
    find_between(b->sphere, b->mirrored, model->pair.geom + 2 * first, from);
    find_between(moved, back, model->pair.geom + 2 * first, to);
    b->maybe[first / 64] &= ~four | met_bits(from, to) << (first % 64);
  }
}

static void find(broad_phase *b, const qd_model *model) {
  const pair_table *table = &model->pair.table;
  memcpy(b->maybe, table->unbounded, (size_t)table->bitmap_words * sizeof(uint64_t));
  b->every = table->swept_count > 0 && !sweep(b, model);
}

/* ---------------------------------------------------------------- boxes */

void broad_phase_in_range(broad_phase *b, const qd_model *model, const placed_shape *shape,
                          double margin) {
  const pair_table *table = &model->pair.table;
  b->every = margin == INFINITY;
  if (b->every) {
    return;
  }
  if (!table->in_use) {
    place_spheres(b->sphere, b->mirrored, model, shape, NULL);
    mark_near(b, model, model->pair.margin, margin);
    return;
  }
  for (int i = 0; i < table->swept_count; ++i) {
    const int g = table->swept[i];
    const placed_shape *s = shape + g;
    const double radius = model->geom.radius[g], range = fmax(margin, table->margin[g]);
    double half[3] = {radius, radius, radius};
    shape_half_extents(s, half);
    for (int k = 0; k < 3; ++k) {
      const double reach =
          half[k] + 0.5 * range + CALLERS_ROUNDING * (fabs(s->pos[k]) + radius + fabs(range));
      b->box[i].low[k] = s->pos[k] - reach;
      b->box[i].high[k] = s->pos[k] + reach;
    }
  }
  find(b, model);
}

void broad_phase_on_the_way(broad_phase *b, const qd_model *model, const placed_shape *shape,
                            const placed_shape *next) {
  const pair_table *table = &model->pair.table;
  b->every = 1;
  if (!table->in_use) {
    return;
  }
  for (int i = 0; i < table->swept_count; ++i) {
    const int g = table->swept[i];
    const double *from = shape[g].pos, *to = next[g].pos, radius = model->geom.radius[g];
    for (int k = 0; k < 3; ++k) {
      const double reach = radius + CALLERS_ROUNDING * (fabs(from[k]) + fabs(to[k]) + radius);
      b->box[i].low[k] = fmin(from[k], to[k]) - reach;
      b->box[i].high[k] = fmax(from[k], to[k]) + reach;
    }
  }
  find(b, model);
}
