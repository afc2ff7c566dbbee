#include "numerics/conic/program/structure.h"

#include <string.h>

#include "base/bits.h"
#include "numerics/min_degree.h"

#define FEW_TILES 2

static void clear_mask(uint64_t *mask, size_t words) { memset(mask, 0, words * sizeof *mask); }

/* ------------------------------------------------------------ masks */

typedef unsigned long long lane_words __attribute__((vector_size(32)));

/* Moves to the bit of the next tile, within one word. */
LANES_INLINE void next_bit(lane_bits *bit) { *bit = (lane_bits)((lane_words)*bit << 1); }

/* Sets `bit` in *found where a number of the tile is not zero. */
LANES_INLINE void look_at_tile(const double *tile, const lane_bits *bit, lane_bits *found) {
  *found |= (LANES_FROM(tile) != 0.0) & *bit;
}

LANES_INLINE uint64_t all_bits(const lane_bits *found) {
  return (uint64_t)(((*found)[0] | (*found)[1]) | ((*found)[2] | (*found)[3]));
}

/* Bits of the tiles first .. first + 63 of a dense row. `narrow` selects, of the row's last four
 * numbers, those of an incomplete last tile. */
LANES_INLINE uint64_t mask_dense_word(const double *row, int n, int first,
                                      const lane_bits *narrow) {
  const int tiles = n / 4, end = tiles < first + WORD_BITS ? tiles : first + WORD_BITS;
  lane_bits found = {0, 0, 0, 0}, bit = {1, 1, 1, 1};
  for (int t = first; t < end; ++t, next_bit(&bit)) {
    look_at_tile(row + 4 * (size_t)t, &bit, &found);
  }
  if (n % 4 > 0 && end == tiles && end < first + WORD_BITS) {
    if (n >= 4) {
      bit &= *narrow;
      look_at_tile(row + n - 4, &bit, &found);
    } else {
      for (int k = 0; k < n; ++k) {
        found[0] |= row[k] != 0.0;
      }
    }
  }
  return all_bits(&found);
}

LANES_INLINE void mask_sparse_row(const double *row, const int *tiles, int count, size_t words,
                                  uint64_t *mask) {
  for (size_t w = 0; w < words; ++w) {
    mask[w] = 0;
  }
  for (int k = 0; k < count; ++k, row += 4) {
    const lane_bits one = {1, 1, 1, 1};
    lane_bits found = {0, 0, 0, 0};
    look_at_tile(row, &one, &found);
    mask[tiles[k] / WORD_BITS] |= all_bits(&found) << (tiles[k] % WORD_BITS);
  }
}

/* The same if one word holds all tiles. */
LANES_INLINE uint64_t mask_short_row(const double *row, const int *tiles, int count) {
  lane_bits found = {0, 0, 0, 0};
  for (int k = 0; k < count; ++k, row += 4) {
    const long long one = (long long)((uint64_t)1 << tiles[k]);
    const lane_bits bit = {one, one, one, one};
    look_at_tile(row, &bit, &found);
  }
  return all_bits(&found);
}

/* Masks of all rows of a matrix; 1 if a row has no entry. */
QD_MULTIVERSION
static int mask_rows(const row_source *source, int rows, int n, size_t words, uint64_t *mask) {
  const lane_bits lane = {0, 1, 2, 3}, narrow = lane >= 4 - n % 4;
  int any_empty = 0;
  for (int i = 0; i < rows; ++i, mask += words) {
    const double *row = source_row(source, (size_t)i);
    const int *tiles = source->start ? source->tiles + source->start[i] : NULL;
    const int count = source->start ? source->start[i + 1] - source->start[i] : 0;
    if (source->start && words == 1) {
      *mask = mask_short_row(row, tiles, count);
    } else if (source->start) {
      mask_sparse_row(row, tiles, count, words, mask);
    } else {
      for (size_t w = 0; w < words; ++w) {
        mask[w] = mask_dense_word(row, n, WORD_BITS * (int)w, &narrow);
      }
    }
    uint64_t any = 0;
    for (size_t w = 0; w < words; ++w) {
      any |= mask[w];
    }
    any_empty |= any == 0;
  }
  return any_empty;
}

static int rows_finite(const row_source *source, int rows, int n) {
  if (source->start) {
    return all_finite(source->values, 4 * source->start[rows]);
  }
  for (int i = 0; i < rows; ++i) {
    if (!all_finite(source_row(source, (size_t)i), n)) {
      return 0;
    }
  }
  return 1;
}

/* Rows of Q share the mask of their tile. Also tests whether Q is diagonal, and its diagonal
 * nonnegative. */
static void gather_Q(qd_cone_workspace *workspace, const uint64_t *rows, int n, int *nonnegative) {
  const size_t words = (size_t)workspace->structure.mask_words;
  int diagonal = 1;
  *nonnegative = 1;
  for (int i = 0; i < n; ++i, rows += words) {
    uint64_t *mask = workspace->structure.Q_mask + (size_t)(i / 4) * words;
    if (i % 4 == 0) {
      clear_mask(mask, words);
      set_bit(mask, i / 4);
    }
    for (size_t w = 0; w < words; ++w) {
      mask[w] |= rows[w];
    }
    const double *own = source_tile(&workspace->program.source_Q, i, i / 4);
    if (!own) {
      continue;
    }
    *nonnegative &= own[i % 4] >= 0.0;
    for (int k = 0; k < 4 && i / 4 * 4 + k < n; ++k) {
      diagonal &= k == i % 4 || own[k] == 0.0;
    }
  }
  for (int t = 0; 4 * t < n && diagonal; ++t) {
    const uint64_t *mask = workspace->structure.Q_mask + (size_t)t * words;
    for (size_t w = 0; w < words; ++w) {
      const uint64_t own = (size_t)(t / WORD_BITS) == w ? (uint64_t)1 << (t % WORD_BITS) : 0;
      diagonal &= (mask[w] & ~own) == 0;
    }
  }
  workspace->system.Q_is_diagonal = diagonal;
}

qd_status conic_read_masks(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  const size_t words = bit_words((size_t)(n + 3) / 4);
  uint64_t *rows = workspace->structure.row_mask;
  int nonnegative;
  workspace->structure.mask_words = (int)words;
  mask_rows(&workspace->program.source_Q, n, n, words, rows);
  gather_Q(workspace, rows, n, &nonnegative);
  workspace->structure.any_empty_row = mask_rows(&workspace->program.source_G, m, n, words, rows);
  if (p > 0) {
    workspace->structure.any_empty_row |=
        mask_rows(&workspace->program.source_C, p, n, words, rows + (size_t)m * words);
  }
  if (!rows_finite(&workspace->program.source_Q, n, n) || !all_finite(program->b, n) ||
      !all_finite(program->g, m) || !all_finite(program->c, p) ||
      (program->target_mu && !all_finite(program->target_mu, program->cone_count))) {
    return QD_NOT_FINITE;
  }
  return nonnegative ? QD_OK : QD_BAD_ARGUMENT;
}

/* ------------------------------------------------------------ which tiles are coupled */

static uint64_t *tile_set(const qd_cone_workspace *workspace, int tile) {
  return workspace->structure.tile_mask + (size_t)tile * (size_t)workspace->structure.mask_words;
}

/* Couples all tiles of the mask with each other. */
static void couple(qd_cone_workspace *workspace, const uint64_t *mask) {
  const int words = workspace->structure.mask_words;
  for (int w = 0; w < words; ++w) {
    for (uint64_t rest = mask[w]; rest; rest &= rest - 1) {
      uint64_t *own = tile_set(workspace, WORD_BITS * w + lowest_bit(rest));
      for (int k = 0; k < words; ++k) {
        own[k] |= mask[k];
      }
    }
  }
}

/* Couples a row's tiles, unless the row before it has the same tiles. */
static void couple_row(qd_cone_workspace *workspace, int row) {
  const uint64_t *mask = conic_row_mask(workspace, row);
  int same = row > 0;
  for (int w = 0; w < workspace->structure.mask_words && same; ++w) {
    same = mask[w] == mask[w - workspace->structure.mask_words];
  }
  if (!same) {
    couple(workspace, mask);
  }
}

static void couple_all(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int words = workspace->structure.mask_words,
            rows = program->row_count + program->equality_count;
  uint64_t *mask = workspace->structure.scratch_mask;
  int row = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    if (conic_cone_is_linear(workspace, program, k)) {
      for (int i = 0; i < program->cone_dim[k]; ++i) {
        couple_row(workspace, row++);
      }
      continue;
    }
    clear_mask(mask, (size_t)words);
    for (int i = 0; i < program->cone_dim[k]; ++i, ++row) {
      for (int w = 0; w < words; ++w) {
        mask[w] |= conic_row_mask(workspace, row)[w];
      }
    }
    couple(workspace, mask);
  }
  for (; row < rows; ++row) {
    couple_row(workspace, row);
  }
}

/* 1 if all tiles are coupled with each other, so that all orders are equally good. */
static int all_coupled(const qd_cone_workspace *workspace) {
  const int tiles = workspace->system.tile_count, words = workspace->structure.mask_words;
  for (int t = 0; t < tiles; ++t) {
    for (int w = 0; w < words; ++w) {
      const int left = tiles - WORD_BITS * w;
      const uint64_t full = left >= WORD_BITS ? ~(uint64_t)0 : ((uint64_t)1 << left) - 1;
      if (tile_set(workspace, t)[w] != full) {
        return 0;
      }
    }
  }
  return 1;
}

/* Keeps the given order with a dense factor. Returns the number of the factor's tiles. */
static size_t take_all(qd_cone_workspace *workspace) {
  const int tiles = workspace->system.tile_count;
  for (int t = 0; t < tiles; ++t) {
    workspace->structure.tile_position[t] = workspace->structure.tile_original[t] = t;
    if (tiles <= FEW_TILES) {
      workspace->structure.tile_mask[t] = ((uint64_t)1 << tiles) - 1;
    }
  }
  return (size_t)tiles * ((size_t)tiles + 1) / 2;
}

/* Orders tiles by minimum degree. Returns the number of the factor's tiles. */
static size_t order_tiles(qd_cone_workspace *workspace) {
  conic_structure *s = &workspace->structure;
  const elimination e = {workspace->system.tile_count, (size_t)s->mask_words, s->tile_mask,
                         s->tile_degree};
  size_t fill = 0;
  for (int t = 0; t < e.count; ++t) {
    clear_bit(tile_set(workspace, t), t);
  }
  elimination_begin(&e);
  for (int place = 0; place < e.count; ++place) {
    const int best = elimination_next(&e);
    s->tile_position[best] = place;
    s->tile_original[place] = best;
    fill += (size_t)e.degree[best] + 1;
    elimination_take(&e, best);
  }
  return fill;
}

static void clear_bits(uint64_t *mask, int from, int to) {
  for (int w = from / WORD_BITS; WORD_BITS * w < to; ++w) {
    const int low = from - WORD_BITS * w, high = to - WORD_BITS * w;
    const uint64_t behind = high < WORD_BITS ? ~(uint64_t)0 << high : 0;
    mask[w] &= behind | (low > 0 ? ~(~(uint64_t)0 << low) : 0);
  }
}

static int bit_from(const uint64_t *mask, int words, int from) {
  for (int w = from / WORD_BITS; w < words; ++w) {
    const uint64_t rest =
        w == from / WORD_BITS ? mask[w] & (~(uint64_t)0 << (from % WORD_BITS)) : mask[w];
    if (rest != 0) {
      return WORD_BITS * w + lowest_bit(rest);
    }
  }
  return -1;
}

/* Places the first `own` tiles last, in the given order, behind all others (springs of rows;
 * eliminating the first tiles earlier would couple all springs with each other). Symbolic
 * elimination: the first later tile that a tile is coupled with inherits its couplings. Returns the
 * number of the factor's tiles. */
static size_t keep_order(qd_cone_workspace *workspace, int own) {
  const int tiles = workspace->system.tile_count, words = workspace->structure.mask_words;
  size_t fill = 0;
  for (int place = 0; place < tiles; ++place) {
    const int t = (own + place) % tiles;
    uint64_t *mask = tile_set(workspace, t);
    workspace->structure.tile_position[t] = place;
    workspace->structure.tile_original[place] = t;
    clear_bits(mask, t < own ? 0 : own, t); /* tiles before t in the order */
    if (t < own) {
      clear_bits(mask, own, tiles);
    }
    set_bit(mask, t);
    const int behind = bit_from(mask, words, t + 1);
    const int first = behind < 0 ? bit_from(mask, words, 0) : behind; /* t: none */
    for (int w = 0; w < words; ++w) {
      fill += (size_t)bit_count(mask[w]);
      tile_set(workspace, first)[w] |= mask[w];
    }
  }
  return fill;
}

/* ------------------------------------------------------------ columns of the factor */

/* Converts a mask to the new order. */
static void reorder(const qd_cone_workspace *workspace, const uint64_t *mask, uint64_t *out) {
  const int words = workspace->structure.mask_words;
  clear_mask(out, (size_t)words);
  for (int w = 0; w < words; ++w) {
    for (uint64_t rest = mask[w]; rest; rest &= rest - 1) {
      set_bit(out, workspace->structure.tile_position[WORD_BITS * w + lowest_bit(rest)]);
    }
  }
}

static int list_from(const uint64_t *mask, int words, int first, int *list) {
  int count = 0;
  for (int w = first / WORD_BITS; w < words; ++w) {
    uint64_t rest = mask[w];
    if (w == first / WORD_BITS) {
      rest &= ~(uint64_t)0 << (first % WORD_BITS);
    }
    for (; rest; rest &= rest - 1) {
      list[count++] = WORD_BITS * w + lowest_bit(rest);
    }
  }
  return count;
}

int conic_list_tiles(const qd_cone_workspace *workspace, const uint64_t *mask, int *list) {
  reorder(workspace, mask, workspace->structure.scratch_mask);
  return list_from(workspace->structure.scratch_mask, workspace->structure.mask_words, 0, list);
}

/* Lists column j's tiles below the diagonal, of the factor and of Q, and their positions. */
static void make_columns(qd_cone_workspace *workspace) {
  tile_system *system = &workspace->system;
  const int tiles = system->tile_count, words = workspace->structure.mask_words;
  uint64_t *mask = workspace->structure.scratch_mask;
  int count = 0, Q_count = 0;
  for (int j = 0; j < tiles; ++j) {
    const size_t at = (size_t)workspace->structure.tile_original[j] * (size_t)words;
    system->column_start[j] = count;
    system->Q_start[j] = Q_count;
    reorder(workspace, workspace->structure.tile_mask + at, mask);
    count += list_from(mask, words, j + 1, system->column_tiles + count);
    reorder(workspace, workspace->structure.Q_mask + at, mask);
    Q_count += list_from(mask, words, j + 1, system->Q_tiles + Q_count);
    if (tiles > PLACE_TILES) {
      continue;
    }
    system->place[(size_t)j * (size_t)tiles + (size_t)j] = system->column_start[j] + j;
    for (int k = system->column_start[j]; k < count; ++k) {
      system->place[(size_t)system->column_tiles[k] * (size_t)tiles + (size_t)j] = k + j + 1;
    }
  }
  system->column_start[tiles] = count;
  system->Q_start[tiles] = Q_count;
}

int conic_find_structure(qd_cone_workspace *workspace, const qd_cone_program *program,
                         int ordered) {
  const int tiles = (program->variable_count + 3) / 4;
  workspace->system.tile_count = tiles;
  workspace->program.column_count = 4 * tiles;
  if (tiles > FEW_TILES) { /* for fewer tiles, the test costs more than it saves */
    memcpy(workspace->structure.tile_mask, workspace->structure.Q_mask,
           (size_t)tiles * (size_t)workspace->structure.mask_words * sizeof(uint64_t));
    couple_all(workspace, program);
  }
  workspace->wanted.fill = tiles <= FEW_TILES || all_coupled(workspace) ? take_all(workspace)
                           : ordered > 0 ? keep_order(workspace, (ordered + 3) / 4)
                                         : order_tiles(workspace);
  if (workspace->wanted.fill > workspace->capacity.fill) {
    return 0;
  }
  make_columns(workspace);
  return 1;
}
