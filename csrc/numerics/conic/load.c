/* From the caller's program to tiles and groups: rows become blocks of tiles, columns are scaled.
 * The structure is found in conic/structure.c. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/structure.h"
#include "numerics/tiles/dense_tiles.h"

/* ------------------------------------------------------------ checks */

/* What a program of these sizes needs is there. */
static int is_complete(const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int has_Q = program->Q || source->Q, has_G = program->G || source->G;
  const int has_C = program->C || source->C;
  const int has_rows = has_G && program->g && program->cone_kind && program->cone_dim;
  return has_Q && program->b && (program->row_count == 0 || has_rows) &&
         (program->equality_count == 0 || (has_C && program->c));
}

/* The cones are of known kinds and take up all rows. */
static int cones_fit(const qd_cone_program *program, int intervals) {
  const int m = program->row_count;
  int rows = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim = program->cone_dim[k], kind = program->cone_kind[k];
    if (dim < 1 || dim > m - rows || kind < QD_ORTHANT ||
        kind > (intervals ? QD_INTERVAL : QD_LORENTZ)) {
      return 0;
    }
    if (program->target_mu && program->target_mu[k] < 0.0) {
      return 0;
    }
    rows += dim;
  }
  return rows == m;
}

qd_status conic_check_sizes(const qd_cone_workspace *workspace, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  const conic_size *capacity = &workspace->capacity;
  const int makes_sense = n >= 1 && m >= 0 && p >= 0 && program->cone_count >= 0;
  const int has_room = n <= capacity->variables && m <= capacity->rows && p <= capacity->equalities;
  return makes_sense && has_room && is_complete(source) &&
                 cones_fit(program, workspace->soft.natively)
             ? QD_OK
             : QD_BAD_ARGUMENT;
}

/* ------------------------------------------------------------ groups of cones */

static void add_group(qd_cone_workspace *workspace, int kind, int dim, int count) {
  cone_product *product = &workspace->product;
  cone_group *group = &product->groups[product->group_count++];
  group->kind = kind;
  group->dim = dim;
  group->count = count;
  group->padded = (count + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT;
  group->slot = workspace->program.slot_count;
  group->cone = workspace->program.lane_count;
  workspace->program.slot_count += dim * group->padded;
  workspace->program.lane_count += group->padded;
  if (kind == GROUP_ORTHANT || kind == GROUP_LORENTZ) {
    product->cone_count += count;
  }
}

/* Rows of each cone that can matter: trailing ones without entry and offset (tangents that a planar
 * contact cannot move along, friction zero) stay at zero whatever x is, and are left out. */
static void count_cone_rows(qd_cone_workspace *workspace, const qd_cone_program *program) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k], ++k) {
    int rows = program->cone_dim[k];
    if (program->cone_kind[k] == QD_LORENTZ) {
      while (rows > 1 && conic_row_is_empty(workspace, row + rows - 1) &&
             program->g[row + rows - 1] == 0.0) {
        --rows;
      }
    }
    workspace->program.cone_rows[k] = rows;
  }
}

/* One group for all linear rows, one for each dimension of Lorentz cones, one for equalities. */
static void make_groups(qd_cone_workspace *workspace, const qd_cone_program *program) {
  int largest = 1;
  workspace->program.slot_count = workspace->program.lane_count = 0;
  workspace->product.group_count = workspace->product.cone_count = 0;
  workspace->structure.dim_count[1] = 0;
  int intervals = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim =
        conic_cone_is_linear(workspace, program, k) ? 1 : workspace->program.cone_rows[k];
    if (program->cone_kind[k] == QD_INTERVAL) {
      intervals += program->cone_dim[k];
      continue;
    }
    for (; largest < dim; ++largest) {
      workspace->structure.dim_count[largest + 1] = 0;
    }
    workspace->structure.dim_count[dim] += dim == 1 ? workspace->program.cone_rows[k] : 1;
  }
  for (int dim = 1; dim <= largest; ++dim) {
    if (workspace->structure.dim_count[dim] > 0) {
      workspace->structure.dim_group[dim] = workspace->product.group_count;
      add_group(workspace, dim == 1 ? GROUP_ORTHANT : GROUP_LORENTZ, dim,
                workspace->structure.dim_count[dim]);
      workspace->structure.dim_count[dim] = 0; /* from here on: lanes given out */
    }
  }
  workspace->ends.count = intervals;
  if (intervals > 0) {
    interval_ends *ends = &workspace->ends;
    ends->taken = ends->any_rigid = 0;
    ends->low = workspace->product.group_count;
    ends->high = ends->low + 1;
    ends->rows = ends->low + 2;
    add_group(workspace, GROUP_ENDS, 1, intervals);
    add_group(workspace, GROUP_ENDS, 1, intervals);
    add_group(workspace, GROUP_INTERVAL, 1, intervals);
    conic_ends_clear_padding(workspace);
  }
  if (program->equality_count > 0) {
    add_group(workspace, GROUP_EQUALITY, 1, program->equality_count);
  }
}

/* What holds for every lane until a cone takes it. */
static void clear_lanes(qd_cone_workspace *workspace) {
  cone_product *product = &workspace->product;
  const size_t bytes = (size_t)workspace->program.lane_count * sizeof(double);
  memset(workspace->program.g, 0, (size_t)workspace->program.slot_count * sizeof(double));
  memset(product->weight, 0, bytes);
  memset(product->inverse.diagonal, 0, bytes); /* equalities have no slack to move */
  memset(workspace->program.compliance, 0, bytes);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    product->target[c] = 1.0;
    workspace->program.lane_scale[c] = 1.0;
  }
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = 0; c < group->count; ++c) {
      product->weight[group->cone + c] = 1.0;
    }
    for (int c = group->count; c < group->padded; ++c) {
      workspace->program.g[group->slot + c] = 1.0;
    }
  }
}

/* `count` linear rows from `row` on: lanes side by side. */
static void place_rows(qd_cone_workspace *workspace, const double *g, double target, int row,
                       int count) {
  const cone_group *group = &workspace->product.groups[workspace->structure.dim_group[1]];
  const int lane = workspace->structure.dim_count[1], slot = group->slot + lane;
  int *slot_of = workspace->program.slot_of + row;
  double *own_target = workspace->product.target + group->cone + lane;
  workspace->structure.dim_count[1] += count;
  for (int i = 0; i < count; ++i) {
    slot_of[i] = slot + i;
  }
  for (int i = 0; i < count; ++i) {
    own_target[i] = target;
  }
  memcpy(workspace->program.g + slot, g + row, (size_t)count * sizeof(double));
}

static void place_cone(qd_cone_workspace *workspace, const double *g, double target, int row,
                       int dim) {
  const cone_group *group = &workspace->product.groups[workspace->structure.dim_group[dim]];
  const int lane = workspace->structure.dim_count[dim]++;
  workspace->product.target[group->cone + lane] = target;
  for (int i = 0; i < dim; ++i) {
    const int slot = group->slot + i * group->padded + lane;
    workspace->program.slot_of[row + i] = slot;
    workspace->program.g[slot] = g[row + i];
  }
}

/* Lanes for cones, in row order; g, targets and weights. */
static void place_cones(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const cone_product *product = &workspace->product;
  int row = 0;
  clear_lanes(workspace);
  workspace->program.exact = 1;
  for (int i = 0; i < program->row_count; ++i) {
    workspace->program.row_scale[i] = 1.0;
  }
  for (int k = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    const int kept = workspace->program.cone_rows[k];
    if (target > 0.0) {
      workspace->program.exact = 0;
    }
    if (program->cone_kind[k] == QD_INTERVAL) {
      for (int i = row; i < row + kept; ++i) {
        conic_ends_place(workspace, i, program->g[i], target);
      }
    } else if (conic_cone_is_linear(workspace, program, k)) {
      place_rows(workspace, program->g, target, row, kept);
    } else {
      place_cone(workspace, program->g, target, row, kept);
    }
    for (int i = kept; i < program->cone_dim[k]; ++i) {
      workspace->program.slot_of[row + i] = -1;
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    workspace->program.slot_of[row + i] = product->groups[product->group_count - 1].slot + i;
  }
}

/* ------------------------------------------------------------ scaled copies */

/* size (column_count) = largest entry of each column in the rows */
static void measure_columns(const qd_cone_workspace *workspace, double *size) {
  const int n = workspace->program.variable_count;
  memset(size, 0, (size_t)workspace->program.column_count * sizeof(double));
  for (int row = 0; row < workspace->program.row_count + workspace->program.equality_count; ++row) {
    const double *values = conic_caller_row(workspace, row);
    const int equality = row >= workspace->program.row_count;
    const row_source *source =
        equality ? &workspace->program.source_C : &workspace->program.source_G;
    const int at = equality ? row - workspace->program.row_count : row;
    if (!source->start) {
      for (int j = 0; j < n; ++j) {
        size[j] = larger(size[j], fabs(values[j]));
      }
      continue;
    }
    for (int k = source->start[at]; k < source->start[at + 1]; ++k, values += 4) {
      for (int j = 0; j < 4; ++j) {
        double *own = size + 4 * source->tiles[k] + j;
        *own = larger(*own, fabs(values[j]));
      }
    }
  }
}

/* What intervals' rows add to the curvature of a column. */
static double spring_of(const qd_cone_workspace *workspace, int j) {
  return workspace->ends.count > 0 ? workspace->ends.spring[j] : 0.0;
}

/* Unit diagonal of Q, and of what is like it. A column without cost takes the size of its rows
 * instead. */
static void scale_columns(qd_cone_workspace *workspace, const qd_cone_program *program) {
  double largest = 0.0, *size = workspace->work.x;
  int sprung = 0;
  if (workspace->ends.count > 0) {
    conic_ends_find_springs(workspace);
  }
  for (int i = 0; i < program->variable_count; ++i) {
    largest = larger(largest, conic_curvature(workspace, i) + spring_of(workspace, i));
  }
  workspace->program.definite = 1;
  for (int k = 0; k < workspace->program.column_count; ++k) {
    const int column = 4 * workspace->structure.tile_original[k / 4] + k % 4;
    workspace->program.column_of[k] = column < program->variable_count ? column : -1;
    workspace->program.column_scale[k] = 1.0;
    workspace->program.b[k] = 0.0;
    if (workspace->program.column_of[k] < 0) {
      continue;
    }
    const double spring = spring_of(workspace, column);
    const double q = conic_curvature(workspace, column) + spring;
    sprung |= spring > 0.0;
    if (q > 1e-20 * largest) {
      workspace->program.column_scale[k] = 1.0 / sqrt(q);
    } else {
      if (workspace->program.definite) {
        measure_columns(workspace, size);
      }
      workspace->program.column_scale[k] = size[column] > 0.0 ? 1.0 / size[column] : 1.0;
      workspace->program.definite = 0;
    }
    workspace->program.b[k] = program->b[column] * workspace->program.column_scale[k];
  }
  if (!workspace->program.definite || sprung) {
    workspace->system.Q_is_diagonal = 0; /* it is not the identity */
  }
}

/* Four scaled columns of a row, internal columns 4 place .. 4 place + 3, from where they begin. */
LANES_INLINE void read_tile(const qd_cone_workspace *workspace, const double *from, int place,
                            double scale, double *out) {
  const int width =
      workspace->program.variable_count - 4 * workspace->structure.tile_original[place];
  const double *column_scale = workspace->program.column_scale + 4 * place;
  if (width >= 4) {
    for (int k = 0; k < 4; ++k) {
      out[k] = from[k] * column_scale[k] * scale;
    }
  } else {
    for (int k = 0; k < 4; ++k) {
      out[k] = k < width ? from[k] * column_scale[k] * scale : 0.0;
    }
  }
}

static void copy_Q(qd_cone_workspace *workspace) {
  tile_system *system = &workspace->system;
  if (system->Q_is_diagonal) {
    return;
  }
  for (int j = 0; j < system->tile_count; ++j) {
    for (int k = system->Q_start[j] - 1; k < system->Q_start[j + 1]; ++k) {
      const int i = k < system->Q_start[j] ? j : system->Q_tiles[k];
      double *tile = system->Q + tile_offset(j, k);
      for (int b = 0; b < 4; ++b) { /* Q is symmetric: column 4j + b of tile row i is row 4j + b */
        const int column = workspace->program.column_of[4 * j + b];
        const double *from = column < 0 ? NULL
                                        : source_tile(&workspace->program.source_Q, column,
                                                      workspace->structure.tile_original[i]);
        if (from) {
          read_tile(workspace, from, i, workspace->program.column_scale[4 * j + b], tile + 4 * b);
        } else {
          for (int a = 0; a < 4; ++a) {
            tile[4 * b + a] = column < 0 && i == j && a == b ? 1.0 : 0.0;
          }
        }
      }
    }
  }
}

/* 1 if that is the mask of the last block; it is from now on. */
static int is_same_mask(qd_cone_workspace *workspace, const uint64_t *mask) {
  const int words = workspace->structure.mask_words;
  uint64_t *last = workspace->structure.scratch_mask + 2 * words, differs = 0;
  for (int w = 0; w < words; ++w) {
    differs |= last[w] ^ mask[w];
    last[w] = mask[w];
  }
  return differs == 0 && workspace->system.block_count > 1;
}

/* Opens a block of rows that all touch `mask` (original tile order). */
static row_block *open_block(qd_cone_workspace *workspace, const uint64_t *mask, int first_row,
                             int step, int cone, int *tile_total) {
  tile_system *system = &workspace->system;
  row_block *block = &system->blocks[system->block_count++];
  const int equality = first_row >= workspace->program.row_count;
  const row_source *source = equality ? &workspace->program.source_C : &workspace->program.source_G;
  const int at = equality ? first_row - workspace->program.row_count : first_row;
  int *tiles = system->block_tiles + *tile_total,
      *from = workspace->structure.block_from + *tile_total;
  block->row_count = 0;
  block->first_row = first_row;
  block->tile_start = *tile_total;
  if (is_same_mask(workspace, mask)) {
    block->tile_count = block[-1].tile_count;
    for (int k = 0; k < block->tile_count; ++k) {
      tiles[k] = tiles[k - block->tile_count];
    }
  } else {
    block->tile_count = conic_list_tiles(workspace, mask, tiles);
  }
  for (int k = 0; k < block->tile_count; ++k) {
    from[k] = source_offset(source, at, workspace->structure.tile_original[tiles[k]]);
  }
  *tile_total += block->tile_count;
  block->slot = workspace->program.slot_of[first_row];
  block->slot_step = step;
  block->cone = cone;
  return block;
}

/* What the rows of a block are copied from and to. */
typedef struct block_copy {
  const double *from; /* its first row, each next one `stride` behind */
  size_t stride;
  const int *offsets, *places; /* of its tiles */
  int tile_count;
  int narrow;     /* the tile that is not whole, -1: none */
  int width;      /* of that one */
  lane_bits keep; /* its numbers */
  int is_last;    /* behind the block there is too little to read */
  const double *column_scale, *row_scale;
  double *values; /* of its first tile, each next one `step` behind */
  size_t step;
} block_copy;

/* A tile of a row; the last of its numbers belong to the next row, or are not there at all. */
LANES_INLINE void read_last(const block_copy *copy, const double *from, lanes *tile) {
  const lanes nothing = {0.0, 0.0, 0.0, 0.0};
  if (copy->is_last) {
    *tile = nothing;
    for (int j = 0; j < copy->width; ++j) {
      (*tile)[j] = from[j];
    }
  } else {
    *tile = LANES_FROM(from);
    lanes_choose(tile, &copy->keep, tile, &nothing);
  }
}

/* A tile of a row, scaled; its squares onto the sum. */
LANES_INLINE void put_tile(const lanes *tile, const lanes *scale, double row_scale, double *out,
                           lanes *sum) {
  const lanes value = *tile * *scale * row_scale;
  LANES_AT(out) = value;
  *sum += value * value;
}

/* Tile k of `count` rows, the first of them at `tile`. */
LANES_INLINE void read_tiles(const block_copy *copy, int k, const double *tile, int count,
                             lanes *out) {
  const size_t stride = copy->stride;
  if (k != copy->narrow) {
    out[0] = LANES_FROM(tile);
    if (count > 1) {
      out[1] = LANES_FROM(tile + stride);
    }
    if (count > 2) {
      out[2] = LANES_FROM(tile + 2 * stride);
    }
    if (count > 3) {
      out[3] = LANES_FROM(tile + 3 * stride);
    }
    return;
  }
  for (int r = 0; r < count; ++r) {
    read_last(copy, tile + (size_t)r * stride, out + r);
  }
}

/* `count` rows (at most four) from i on, scaled; their squared norms. */
LANES_INLINE void copy_rows(const block_copy *copy, int i, int count, double *squares) {
  const double *from = copy->from + (size_t)i * copy->stride, *scales = copy->row_scale + i;
  const double one = scales[0], two = scales[count > 1 ? 1 : 0], three = scales[count > 2 ? 2 : 0];
  const double four = scales[count > 3 ? 3 : 0];
  double *values = copy->values + 4 * i;
  lanes s0 = {0.0}, s1 = {0.0}, s2 = {0.0}, s3 = {0.0}, sums;
  for (int k = 0; k < copy->tile_count; ++k, values += copy->step) {
    const lanes scale = LANES_OF(copy->column_scale + 4 * (size_t)copy->places[k]);
    lanes v[4];
    read_tiles(copy, k, from + copy->offsets[k], count, v);
    put_tile(v, &scale, one, values, &s0);
    if (count > 1) {
      put_tile(v + 1, &scale, two, values + 4, &s1);
    }
    if (count > 2) {
      put_tile(v + 2, &scale, three, values + 8, &s2);
    }
    if (count > 3) {
      put_tile(v + 3, &scale, four, values + 12, &s3);
    }
  }
  lanes_sums(&sums, &s0, &s1, &s2, &s3);
  for (int r = 0; r < count; ++r) {
    squares[r] = sums[r];
  }
}

/* A block's values; compliance of its cones: the largest squared row norm of each, what a unit of
 * its multiplier moves its slack by (Q = I). Returns the sum of all squares. */
QD_CLONES
static double fill_block(qd_cone_workspace *workspace, const row_block *block) {
  const int equality = block->first_row >= workspace->program.row_count;
  const int in_tiles =
      (equality ? &workspace->program.source_C : &workspace->program.source_G)->start != NULL;
  const int whole = workspace->program.variable_count / 4, rows = block->row_count;
  const int width = workspace->program.variable_count - 4 * whole;
  const lane_bits lane = {0, 1, 2, 3};
  double *compliance = workspace->program.compliance + block->cone, squares[4], total = 0.0;
  block_copy copy = {conic_caller_row(workspace, block->first_row),
                     conic_row_stride(workspace, block),
                     workspace->structure.block_from + block->tile_start,
                     workspace->system.block_tiles + block->tile_start,
                     block->tile_count,
                     -1,
                     width,
                     lane < (long long)width,
                     0,
                     workspace->program.column_scale,
                     workspace->program.row_scale + block->first_row,
                     workspace->system.G + block->values,
                     4 * (size_t)rows};
  copy.is_last = !conic_reads_in_fours(workspace, block);
  if (!in_tiles && width > 0) {
    for (int k = 0; k < copy.tile_count; ++k) {
      if (copy.offsets[k] == 4 * whole) {
        copy.narrow = k;
      }
    }
  }
  for (int i = 0; i < rows; i += 4) {
    const int left = rows - i, count = left < 4 ? left : 4;
    switch (count) {
    case 4:
      copy_rows(&copy, i, 4, squares);
      break;
    case 3:
      copy_rows(&copy, i, 3, squares);
      break;
    case 2:
      copy_rows(&copy, i, 2, squares);
      break;
    default:
      copy_rows(&copy, i, 1, squares);
      break;
    }
    for (int r = 0; r < count; ++r) {
      total += squares[r];
      double *own = compliance + (block->slot_step == 1 ? i + r : 0);
      *own = larger(squares[r], *own);
    }
  }
  return total;
}

/* 1 if two rows touch the same tiles and keep them in the same places. */
static int rows_match(const qd_cone_workspace *workspace, int a, int b) {
  const size_t words = (size_t)workspace->structure.mask_words;
  const uint64_t *of_a = conic_row_mask(workspace, a), *of_b = conic_row_mask(workspace, b);
  for (size_t w = 0; w < words; ++w) {
    if (of_a[w] != of_b[w]) {
      return 0;
    }
  }
  const int equality = a >= workspace->program.row_count;
  const row_source *source = equality ? &workspace->program.source_C : &workspace->program.source_G;
  if (!source->start) {
    return 1;
  }
  const int *start = source->start - (equality ? workspace->program.row_count : 0);
  const int count = start[a + 1] - start[a];
  int match = start[b + 1] - start[b] == count;
  for (int k = 0; k < count && match; ++k) {
    match = source->tiles[start[a] + k] == source->tiles[start[b] + k];
  }
  return match;
}

/* Where rows become blocks: the next row, and what is left of its cone. */
typedef struct row_walk {
  const qd_cone_program *program;
  int row, cone, left_in_cone;
} row_walk;

static int is_interval(const qd_cone_program *program, int cone) {
  return program->cone_kind[cone] == QD_INTERVAL;
}

/* How many linear rows from `first` on go into one block; the walk is in the last one's cone. */
static int linear_rows(const qd_cone_workspace *workspace, row_walk *walk, int first, int end) {
  const qd_cone_program *program = walk->program;
  const int equality = first >= program->row_count;
  int count = 1;
  walk->left_in_cone -= 1;
  while (count < BLOCK_ROWS && first + count < end && rows_match(workspace, first, first + count) &&
         workspace->program.slot_of[first + count] >= 0) {
    if (!equality && walk->left_in_cone == 0) {
      if (walk->cone == program->cone_count ||
          !conic_cone_is_linear(workspace, program, walk->cone) ||
          is_interval(program, walk->cone) != is_interval(program, walk->cone - 1)) {
        break;
      }
      walk->left_in_cone = program->cone_dim[walk->cone++];
    }
    ++count;
    walk->left_in_cone -= 1;
  }
  if (equality) {
    walk->left_in_cone = 0;
  }
  return count;
}

/* The rows of the cone at hand; `mask`: the tiles of all of them. */
static int cone_rows(const qd_cone_workspace *workspace, row_walk *walk, uint64_t *mask) {
  const int count = workspace->program.cone_rows[walk->cone - 1];
  walk->left_in_cone -= count;
  for (int i = 1; i < count; ++i) {
    for (int w = 0; w < workspace->structure.mask_words; ++w) {
      mask[w] |= conic_row_mask(workspace, walk->row + i)[w];
    }
  }
  return count;
}

/* The next block; the sum of its squared numbers. */
static double make_block(qd_cone_workspace *workspace, row_walk *walk, int *tile_total,
                         size_t *values) {
  const qd_cone_program *program = walk->program;
  const cone_product *product = &workspace->product;
  const int words = workspace->structure.mask_words, first = walk->row;
  const int equality = first >= program->row_count;
  uint64_t *mask = workspace->structure.scratch_mask + words;
  if (walk->left_in_cone == 0 && walk->cone < program->cone_count) {
    walk->left_in_cone = program->cone_dim[walk->cone++];
  }
  memcpy(mask, conic_row_mask(workspace, first), (size_t)words * sizeof(uint64_t));
  const int linear = equality || conic_cone_is_linear(workspace, program, walk->cone - 1);
  const int end = program->row_count + (equality ? program->equality_count : 0);
  const int count =
      linear ? linear_rows(workspace, walk, first, end) : cone_rows(workspace, walk, mask);
  const int kind = equality ? product->group_count - 1
                   : is_interval(program, walk->cone - 1)
                       ? workspace->ends.rows
                       : workspace->structure.dim_group[linear ? 1 : count];
  const cone_group *group = &product->groups[kind];
  const int at = group->cone + workspace->program.slot_of[first] - group->slot;
  row_block *block = open_block(workspace, mask, first, linear ? 1 : group->padded, at, tile_total);
  block->row_count = count;
  block->values = *values;
  *values += (size_t)block->tile_count * (size_t)count * 4;
  walk->row += count;
  return fill_block(workspace, block);
}

/* Blocks of all rows; the sum of all squared numbers. */
static double make_blocks(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int rows = program->row_count + program->equality_count;
  row_walk walk = {program, 0, 0, 0};
  size_t values = 0;
  double squares = 0.0;
  int tile_total = 0;
  workspace->system.block_count = 0;
  while (walk.row < rows) {
    if (workspace->program.slot_of[walk.row] >= 0) {
      squares += make_block(workspace, &walk, &tile_total, &values);
    } else { /* left out, behind a cone of one row */
      ++walk.row;
      --walk.left_in_cone;
    }
  }
  return squares;
}

/* Sum of squares over `unit` squared of an equality's row in scaled columns; *largest: its largest
 * entry. */
static double squared_equality(const qd_cone_workspace *workspace, int i, const int *tiles,
                               int count, double unit, double *largest) {
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    const double *from =
        source_tile(&workspace->program.source_C, i, workspace->structure.tile_original[tiles[k]]);
    for (int a = 0; a < 4; ++a) {
      if (workspace->program.column_of[4 * tiles[k] + a] >= 0) {
        const double value = from[a] * workspace->program.column_scale[4 * tiles[k] + a] / unit;
        *largest = larger(fabs(value), *largest);
        sum += value * value;
      }
    }
  }
  return sum;
}

static void scale_equalities(qd_cone_workspace *workspace, const qd_cone_program *program) {
  int *tiles = workspace->structure.block_from; /* not filled yet */
  for (int i = 0; i < program->equality_count; ++i) {
    const int count =
        conic_list_tiles(workspace, conic_row_mask(workspace, program->row_count + i), tiles);
    double unit = 1.0, largest = 0.0;
    double sum = squared_equality(workspace, i, tiles, count, unit, &largest);
    if (!squares_are_safe(sum) && largest > 0.0) {
      unit = largest;
      sum = squared_equality(workspace, i, tiles, count, unit, &largest);
    }
    /* a row that vanishes in scaled columns makes its numbers infinite, which is then said */
    const double scale = sum > 0.0 ? 1.0 / sqrt(sum) / unit : (count > 0 ? HUGE_VAL : 1.0);
    workspace->program.row_scale[program->row_count + i] = scale;
    workspace->program.lane_scale[conic_lane_of(workspace, program->row_count + i)] = scale;
    workspace->program.g[workspace->program.slot_of[program->row_count + i]] =
        program->c[i] * scale;
  }
}

/* Squared norm of a row of G in scaled columns. */
static double squared_row(const qd_cone_workspace *workspace, int row, int *tiles) {
  const int count = conic_list_tiles(workspace, conic_row_mask(workspace, row), tiles);
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    const double *from = source_tile(&workspace->program.source_G, row,
                                     workspace->structure.tile_original[tiles[k]]);
    for (int a = 0; a < 4 && from; ++a) {
      if (workspace->program.column_of[4 * tiles[k] + a] >= 0) {
        const double value = from[a] * workspace->program.column_scale[4 * tiles[k] + a];
        sum += value * value;
      }
    }
  }
  return sum;
}

/* Whose compliance and limits are in the caller's numbers. */
static int is_interval_row(const qd_cone_workspace *workspace, int row) {
  const cone_group *group = workspace->product.groups + workspace->ends.rows;
  return workspace->ends.count > 0 && workspace->program.slot_of[row] >= group->slot &&
         workspace->program.slot_of[row] < group->slot + group->count;
}

/* The largest norm of all for the rows of every cone, less for one whose offset would then exceed
 * what the cost's free motion and violated cones make of it: a cone that nothing reaches. By powers
 * of two, which round nothing. */
static void make_rows_alike(qd_cone_workspace *workspace, const qd_cone_program *program) {
  double *norm = workspace->program.lane_scale, *offset = workspace->program.compliance;
  int *tiles = workspace->structure.block_from; /* not filled yet */
  double largest = 0.0, way = max_norm(workspace->program.b, workspace->program.column_count);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    norm[c] = offset[c] = 0.0;
  }
  for (int row = 0; row < program->row_count; ++row) {
    if (workspace->program.slot_of[row] < 0 || is_interval_row(workspace, row)) {
      continue;
    }
    const int lane = conic_lane_of(workspace, row);
    norm[lane] = larger(norm[lane], sqrt(squared_row(workspace, row, tiles)));
    offset[lane] = larger(offset[lane], fabs(program->g[row]));
    largest = larger(largest, norm[lane]);
    if (program->g[row] < 0.0 && norm[lane] > 0.0) {
      way = larger(way, -program->g[row] / norm[lane]);
    }
  }
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    double scale = norm[c] > 0.0 ? largest / norm[c] : 1.0;
    if (offset[c] * scale > way * largest && way > 0.0) {
      scale = larger(1.0, way * largest / offset[c]);
    }
    norm[c] = scale < HUGE_VAL ? exp2(floor(log2(scale))) : 1.0;
  }
  for (int row = 0; row < program->row_count; ++row) {
    if (workspace->program.slot_of[row] < 0 || is_interval_row(workspace, row)) {
      continue;
    }
    workspace->program.row_scale[row] = norm[conic_lane_of(workspace, row)];
    workspace->program.g[workspace->program.slot_of[row]] *= workspace->program.row_scale[row];
  }
  memset(workspace->program.compliance, 0, (size_t)workspace->program.lane_count * sizeof(double));
}

void conic_clear_rows(qd_cone_workspace *workspace) {
  const size_t bytes = (size_t)workspace->program.slot_count * sizeof(double);
  memset(workspace->work.row, 0, bytes); /* padded lanes that products never write */
  memset(workspace->work.row2, 0, bytes);
  memset(workspace->work.residual_row, 0, bytes);
}

static row_source source_of(const double *dense, int columns, const sparse_rows *sparse) {
  row_source source = {dense, (size_t)columns, NULL, NULL};
  if (sparse) {
    source.values = sparse->values;
    source.start = sparse->start;
    source.tiles = sparse->tiles;
  }
  return source;
}

/* 1 if the rows given as tiles fit; dense ones do. */
static int rows_fit(const qd_cone_workspace *workspace, const conic_program *source) {
  const size_t G = source->G ? (size_t)source->G->start[source->program.row_count] : 0;
  const size_t C = source->C ? (size_t)source->C->start[source->program.equality_count] : 0;
  return G + C <= workspace->capacity.row_tiles;
}

qd_status conic_load(qd_cone_workspace *workspace, const conic_program *source,
                     row_scaling scaling) {
  const qd_cone_program *program = &source->program;
  qd_status status = conic_check_sizes(workspace, source);
  if (status != QD_OK) {
    return status;
  }
  if (!rows_fit(workspace, source)) {
    return QD_BAD_ARGUMENT;
  }
  workspace->active.hard_penalty = HARD_ROW_PENALTY;
  workspace->units.by_offsets = 0;
  workspace->path.ray_reach = 0.0;
  workspace->program.variable_count = program->variable_count;
  workspace->program.row_count = program->row_count;
  workspace->program.equality_count = program->equality_count;
  workspace->program.source_Q = source_of(program->Q, program->variable_count, source->Q);
  workspace->program.source_G = source_of(program->G, program->variable_count, source->G);
  workspace->program.source_C = source_of(program->C, program->variable_count, source->C);
  status = conic_read_masks(workspace, program);
  if (status != QD_OK) {
    return status;
  }
  count_cone_rows(workspace, program);
  make_groups(workspace, program);
  place_cones(workspace, program);
  if (!conic_find_structure(workspace, program)) {
    return QD_OUT_OF_CAPACITY;
  }
  scale_columns(workspace, program);
  copy_Q(workspace);
  if (scaling == ROWS_ALIKE) {
    make_rows_alike(workspace, program);
  }
  scale_equalities(workspace, program);
  const double squares = make_blocks(workspace, program);
  dense_tiles_choose(&workspace->system);
  conic_clear_rows(workspace);
  if (workspace->ends.count > 0) {
    conic_ends_find_push(workspace);
  }
  return squares < HUGE_VAL ? QD_OK : QD_NOT_FINITE;
}
