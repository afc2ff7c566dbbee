/* Contacts have three columns and bodies six, so tiles of four consecutive columns would join
 * uncoupled blocks: the factor of 463 contacts of a pile of rocks would take 150 times the
 * operations. Here a tile ends where the next column is coupled to something else, and is padded
 * with uncoupled columns. */
#include "numerics/conic/program/columns.h"

#include <math.h>
#include <string.h>

#include "base/bits.h"

#define FULL 0.1 /* largest share of entries in tiles; above it, any order fills in */

static size_t words_of(size_t variables, size_t rows) { return (variables + rows) / WORD_BITS + 1; }

int aligned_columns_capacity(int variables) { return variables + variables / 3 + 4; }

static void lay_out_rows(tile_rows *matrix, size_t rows, size_t columns, arena *a) {
  matrix->room = (size_t)(FULL * (double)(rows * columns) / 4.0) + rows;
  matrix->start = arena_ints(a, rows + 1);
  matrix->tiles = arena_ints(a, matrix->room);
  matrix->values = arena_doubles(a, 4 * matrix->room);
}

void aligned_columns_lay_out(aligned_columns *aligned, size_t variables, size_t rows,
                             size_t equalities, arena *a) {
  const size_t words = words_of(variables, rows + equalities);
  const size_t columns = (size_t)aligned_columns_capacity((int)variables);
  aligned->place = arena_ints(a, variables);
  aligned->last_seen = arena_ints(a, columns / 4 + 1);
  aligned->pattern = arena_take(a, variables * words * sizeof(uint64_t));
  aligned->of_tile = arena_take(a, words * sizeof(uint64_t));
  lay_out_rows(&aligned->Q, columns, columns, a);
  lay_out_rows(&aligned->G, rows, columns, a);
  lay_out_rows(&aligned->C, equalities, columns, a);
  ARENA_DOUBLES(a, columns, &aligned->b, &aligned->x);
}

/* ------------------------------------------------------------ patterns */

/* Index of the row's next nonzero from j on; n: none. */
LANES_INLINE int next_entry(const double *row, int j, int n) {
  for (; j + 8 <= n; j += 8) {
    const lane_bits any = (LANES_FROM(row + j) != 0.0) | (LANES_FROM(row + j + 4) != 0.0);
    if ((any[0] | any[1]) | (any[2] | any[3])) {
      break;
    }
  }
  while (j < n && row[j] == 0.0) {
    ++j;
  }
  return j;
}

LANES_INLINE void note_row(aligned_columns *aligned, const double *row, int n, size_t words,
                           size_t bit) {
  const uint64_t mask = (uint64_t)1 << (bit % WORD_BITS);
  uint64_t *word = aligned->pattern + bit / WORD_BITS;
  for (int j = next_entry(row, 0, n); j < n; j = next_entry(row, j + 1, n)) {
    word[(size_t)j * words] |= mask;
  }
}

QD_MULTIVERSION
static void find_patterns(aligned_columns *aligned, const qd_cone_program *program, size_t words) {
  const int n = program->variable_count;
  size_t bit = (size_t)n, row = 0;
  memset(aligned->pattern, 0, (size_t)n * words * sizeof(uint64_t));
  for (int i = 0; i < n; ++i) {
    note_row(aligned, program->Q + (size_t)i * (size_t)n, n, words, (size_t)i);
  }
  for (int k = 0; k < program->cone_count; ++k) {
    for (int i = 0; i < program->cone_dim[k]; ++i, ++row) {
      note_row(aligned, program->G + row * (size_t)n, n, words, bit);
      bit += program->cone_kind[k] == QD_ORTHANT || i + 1 == program->cone_dim[k];
    }
  }
  for (int i = 0; i < program->equality_count; ++i, ++bit) {
    note_row(aligned, program->C + (size_t)i * (size_t)n, n, words, bit);
  }
}

static int count_bits(uint64_t word) {
  int count = 0;
  for (; word; word &= word - 1) {
    ++count; /* most words are zero */
  }
  return count;
}

/* 1 if column j belongs to the open tile of columns first .. j - 1: they share at least half of
 * their couplings, not counting couplings among themselves. */
static int is_like(const aligned_columns *aligned, int first, int j, size_t words) {
  const uint64_t *own = aligned->pattern + (size_t)j * words;
  int common = 0, all = 0;
  for (size_t w = 0; w < words; ++w) {
    uint64_t inside = 0;
    for (int i = first; i <= j; ++i) {
      if ((size_t)i / WORD_BITS == w) {
        inside |= (uint64_t)1 << (i % WORD_BITS);
      }
    }
    common += count_bits(own[w] & aligned->of_tile[w] & ~inside);
    all += count_bits((own[w] | aligned->of_tile[w]) & ~inside);
  }
  return 2 * common >= all;
}

/* Sets the places of all columns; 0 if there is no room for the tiles. */
static int place_columns(aligned_columns *aligned, int n, size_t words) {
  const int limit = aligned_columns_capacity(n) / 4;
  int tile = -1, first = 0;
  for (int j = 0; j < n; ++j) {
    const uint64_t *own = aligned->pattern + (size_t)j * words;
    if (j == 0 || j - first == 4 || !is_like(aligned, first, j, words)) {
      first = j;
      if (++tile == limit) {
        return 0;
      }
      memset(aligned->of_tile, 0, words * sizeof(uint64_t));
    }
    for (size_t w = 0; w < words; ++w) {
      aligned->of_tile[w] |= own[w];
    }
    aligned->place[j] = 4 * tile + (j - first);
  }
  aligned->columns = 4 * (tile + 1);
  return 1;
}

/* ------------------------------------------------------------ rows */

static void forget_tiles(aligned_columns *aligned) {
  for (int t = 0; 4 * t < aligned->columns; ++t) {
    aligned->last_seen[t] = -1;
  }
}

/* Writes `count` rows from `first` on as rows `at` .. of the matrix, each with the tiles of all of
 * them; 0 if there is no room. */
QD_MULTIVERSION
static int put_rows(aligned_columns *aligned, tile_rows *matrix, const double *values, int n,
                    int first, int count, int at) {
  const size_t begin = (size_t)matrix->start[at];
  size_t tiles = 0, end = begin;
  for (int i = first; i < first + count; ++i) {
    const double *row = values + (size_t)i * (size_t)n;
    for (int j = next_entry(row, 0, n); j < n; j = next_entry(row, j + 1, n)) {
      int *seen = aligned->last_seen + aligned->place[j] / 4;
      tiles += *seen != at;
      *seen = at;
    }
  }
  if (begin + (size_t)count * tiles > matrix->room) {
    return 0;
  }
  for (int t = 0; end < begin + tiles; ++t) {
    if (aligned->last_seen[t] == at) {
      matrix->tiles[end++] = t;
    }
  }
  memset(matrix->values + 4 * begin, 0, 4 * (size_t)count * tiles * sizeof(double));
  for (int i = 0; i < count; ++i) {
    const double *row = values + (size_t)(first + i) * (size_t)n;
    size_t k = begin + (size_t)i * tiles;
    if (i > 0) {
      memcpy(matrix->tiles + k, matrix->tiles + begin, tiles * sizeof(int));
    }
    for (int j = next_entry(row, 0, n); j < n; j = next_entry(row, j + 1, n)) {
      while (matrix->tiles[k] < aligned->place[j] / 4) {
        ++k;
      }
      matrix->values[4 * k + (size_t)(aligned->place[j] % 4)] = row[j];
    }
    matrix->start[at + i + 1] = (int)(begin + (size_t)(i + 1) * tiles);
  }
  return 1;
}

/* Writes a padding column, which has only a diagonal entry. */
static int put_padding(tile_rows *matrix, int at, double curvature) {
  const size_t k = (size_t)matrix->start[at];
  if (k == matrix->room) {
    return 0;
  }
  memset(matrix->values + 4 * k, 0, 4 * sizeof(double));
  matrix->values[4 * k + (size_t)(at % 4)] = curvature;
  matrix->tiles[k] = at / 4;
  matrix->start[at + 1] = (int)k + 1;
  return 1;
}

static void open_rows(tile_rows *matrix) {
  matrix->start[0] = 0;
  matrix->rows = (sparse_rows){matrix->start, matrix->tiles, matrix->values};
}

static int put_cost(aligned_columns *aligned, const qd_cone_program *program) {
  const int n = program->variable_count;
  double curvature = 0.0;
  for (int j = 0; j < n; ++j) {
    curvature = larger(curvature, program->Q[(size_t)j * (size_t)n + (size_t)j]);
  }
  if (!(curvature > 0.0)) {
    curvature = 1.0;
  }
  open_rows(&aligned->Q);
  forget_tiles(aligned);
  memset(aligned->b, 0, (size_t)aligned->columns * sizeof(double));
  for (int at = 0, j = 0; at < aligned->columns; ++at) {
    if (j == n || aligned->place[j] != at) {
      if (!put_padding(&aligned->Q, at, curvature)) {
        return 0;
      }
    } else {
      aligned->b[at] = program->b[j];
      if (!put_rows(aligned, &aligned->Q, program->Q, n, j++, 1, at)) {
        return 0;
      }
    }
  }
  return 1;
}

static int put_constraints(aligned_columns *aligned, const qd_cone_program *program) {
  const int n = program->variable_count;
  int row = 0;
  open_rows(&aligned->G);
  open_rows(&aligned->C);
  forget_tiles(aligned);
  for (int k = 0; k < program->cone_count; ++k) {
    const int count = program->cone_kind[k] == QD_LORENTZ ? program->cone_dim[k] : 1;
    for (int end = row + program->cone_dim[k]; row < end; row += count) {
      if (!put_rows(aligned, &aligned->G, program->G, n, row, count, row)) {
        return 0;
      }
    }
  }
  forget_tiles(aligned);
  for (int i = 0; i < program->equality_count; ++i) {
    if (!put_rows(aligned, &aligned->C, program->C, n, i, 1, i)) {
      return 0;
    }
  }
  return 1;
}

int aligned_columns_find(aligned_columns *aligned, const qd_cone_program *program) {
  const int n = program->variable_count;
  const size_t words = words_of((size_t)n, (size_t)(program->row_count + program->equality_count));
  find_patterns(aligned, program, words);
  if (!place_columns(aligned, n, words) || !put_cost(aligned, program) ||
      !put_constraints(aligned, program)) {
    return 0;
  }
  aligned->program = (conic_program){
      .program = *program, .Q = &aligned->Q.rows, .G = &aligned->G.rows, .C = &aligned->C.rows};
  aligned->program.program.variable_count = aligned->columns;
  aligned->program.program.b = aligned->b;
  return 1;
}

void aligned_columns_enter(aligned_columns *aligned, int n, const double *x) {
  memset(aligned->x, 0, (size_t)aligned->columns * sizeof(double));
  for (int j = 0; j < n; ++j) {
    aligned->x[aligned->place[j]] = x[j];
  }
}

void aligned_columns_leave(const aligned_columns *aligned, int n, double *x) {
  for (int j = 0; j < n; ++j) {
    x[j] = aligned->x[aligned->place[j]];
  }
}
