/* Groups rows into blocks of rows that touch the same tiles: one Lorentz cone, or a run of linear
 * rows. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/program/structure.h"

/* 1 if `mask` is that of the last block; stores it as the last mask. */
static int is_same_mask(qd_cone_workspace *workspace, const uint64_t *mask) {
  const int words = workspace->structure.mask_words;
  uint64_t *last = workspace->structure.scratch_mask + 2 * words, differs = 0;
  for (int w = 0; w < words; ++w) {
    differs |= last[w] ^ mask[w];
    last[w] = mask[w];
  }
  return differs == 0 && workspace->system.block_count > 1;
}

/* Opens a block whose rows all touch `mask` (original tile order). */
static row_block *open_block(qd_cone_workspace *workspace, const uint64_t *mask, int first_row,
                             int step, int cone, int *tile_total) {
  tile_system *system = &workspace->system;
  row_block *block = &system->blocks[system->block_count++];
  int at;
  const row_source *source = conic_source_of(workspace, first_row, &at);
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

/* Source and destination of a block's rows. */
typedef struct block_copy {
  const double *from; /* first row; the next rows follow at `stride` */
  size_t stride;
  const int *offsets, *places; /* of its tiles */
  int tile_count;
  int narrow;     /* index of the incomplete tile, -1: none */
  int width;      /* of the incomplete tile */
  lane_bits keep; /* mask of its numbers */
  int is_last;    /* 1: four numbers cannot be read there */
  const double *column_scale, *row_scale;
  double *values; /* of the first tile; the next tiles follow at `step` */
  size_t step;
} block_copy;

/* Reads an incomplete tile; the numbers behind its width belong to the next row or do not exist. */
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

/* Writes a scaled tile of a row, and adds its squares to the sum. */
LANES_INLINE void put_tile(const lanes *tile, const lanes *scale, double row_scale, double *out,
                           lanes *sum) {
  const lanes value = *tile * *scale * row_scale;
  LANES_AT(out) = value;
  *sum += value * value;
}

/* Reads tile k of `count` rows; `tile` is that of the first row. */
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

/* Copies `count` rows (at most four) from i on, scaled; also returns their squared norms. */
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

/* Copies a block's rows, and sets the compliance of its cones: the largest squared row norm, which
 * is the motion of the slack per unit of the multiplier (Q = I). Returns the sum of all squares. */
QD_MULTIVERSION
static double fill_block(qd_cone_workspace *workspace, const row_block *block) {
  int at;
  const int in_tiles = conic_source_of(workspace, block->first_row, &at)->start != NULL;
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

/* 1 if two rows touch the same tiles and store them in the same places. */
static int rows_match(const qd_cone_workspace *workspace, int a, int b) {
  const size_t words = (size_t)workspace->structure.mask_words;
  const uint64_t *of_a = conic_row_mask(workspace, a), *of_b = conic_row_mask(workspace, b);
  for (size_t w = 0; w < words; ++w) {
    if (of_a[w] != of_b[w]) {
      return 0;
    }
  }
  int at;
  const row_source *source = conic_source_of(workspace, a, &at);
  if (!source->start) {
    return 1;
  }
  const int *of_first = source->start + at, *of_second = of_first + (b - a);
  const int count = of_first[1] - of_first[0];
  return of_second[1] - of_second[0] == count &&
         memcmp(source->tiles + *of_first, source->tiles + *of_second,
                (size_t)count * sizeof(int)) == 0;
}

/* Position in the rows: the next row, and the number of rows left in its cone. */
typedef struct row_walk {
  const qd_cone_program *program;
  int row, cone, left_in_cone;
} row_walk;

static int is_interval(const qd_cone_program *program, int cone) {
  return program->cone_kind[cone] == QD_INTERVAL;
}

/* Number of linear rows from `first` on for one block; the walk ends in the last row's cone. */
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

/* Number of rows of the current cone; adds their tiles to `mask`. */
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

/* Makes the next block; returns the sum of its squared numbers. */
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

/* Makes the blocks of all rows; returns the sum of all squared numbers. */
double conic_make_blocks(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int rows = program->row_count + program->equality_count;
  row_walk walk = {program, 0, 0, 0};
  size_t values = 0;
  double squares = 0.0;
  int tile_total = 0;
  workspace->system.block_count = 0;
  while (walk.row < rows) {
    if (workspace->program.slot_of[walk.row] >= 0) {
      squares += make_block(workspace, &walk, &tile_total, &values);
    } else { /* omitted row behind a cone that kept one row */
      ++walk.row;
      --walk.left_in_cone;
    }
  }
  return squares;
}
