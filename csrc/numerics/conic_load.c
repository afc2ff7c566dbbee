/* From the caller's program to tiles and groups: rows become blocks of tiles, columns are scaled.
 * The structure is found in conic_structure.c. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "numerics/conic_structure.h"
#include "numerics/dense_tiles.h"
#include "numerics/lanes.h"

/* ------------------------------------------------------------ checks */

static qd_status check_sizes(const qd_cone_workspace *workspace, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  const conic_size *capacity = &workspace->capacity;
  if (n < 1 || m < 0 || p < 0 || program->cone_count < 0 || (!program->Q && !source->Q) ||
      !program->b)
    return QD_BAD_ARGUMENT;
  if (n > capacity->variables || m > capacity->rows || p > capacity->equalities)
    return QD_BAD_ARGUMENT;
  if ((m > 0 &&
       ((!program->G && !source->G) || !program->g || !program->cone_kind || !program->cone_dim)) ||
      (p > 0 && ((!program->C && !source->C) || !program->c)))
    return QD_BAD_ARGUMENT;
  int rows = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim = program->cone_dim[k], kind = program->cone_kind[k];
    if (dim < 1 || dim > m - rows || (kind != QD_ORTHANT && kind != QD_LORENTZ))
      return QD_BAD_ARGUMENT;
    if (program->target_mu && program->target_mu[k] < 0.0) return QD_BAD_ARGUMENT;
    rows += dim;
  }
  return rows == m ? QD_OK : QD_BAD_ARGUMENT;
}

/* ------------------------------------------------------------ groups of cones */

static void add_group(qd_cone_workspace *workspace, int kind, int dim, int count) {
  cone_product *product = &workspace->product;
  cone_group *group = &product->groups[product->group_count++];
  group->kind = kind;
  group->dim = dim;
  group->count = count;
  group->padded = (count + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT;
  group->slot = workspace->slot_count;
  group->cone = workspace->lane_count;
  workspace->slot_count += dim * group->padded;
  workspace->lane_count += group->padded;
  if (kind != GROUP_EQUALITY) product->cone_count += count;
}

/* Rows of each cone that can matter: trailing ones without entry and offset (tangents that a planar
 * contact cannot move along, friction zero) stay at zero whatever x is, and are left out. */
static void count_cone_rows(qd_cone_workspace *workspace, const qd_cone_program *program) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k], ++k) {
    int rows = program->cone_dim[k];
    if (program->cone_kind[k] == QD_LORENTZ)
      while (rows > 1 && conic_row_is_empty(workspace, row + rows - 1) &&
             program->g[row + rows - 1] == 0.0)
        --rows;
    workspace->cone_rows[k] = rows;
  }
}

/* One group for all linear rows, one for each dimension of Lorentz cones, one for equalities. */
static void make_groups(qd_cone_workspace *workspace, const qd_cone_program *program) {
  int largest = 1;
  workspace->slot_count = workspace->lane_count = 0;
  workspace->product.group_count = workspace->product.cone_count = 0;
  workspace->dim_count[1] = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim = conic_cone_is_linear(workspace, program, k) ? 1 : workspace->cone_rows[k];
    for (; largest < dim; ++largest) workspace->dim_count[largest + 1] = 0;
    workspace->dim_count[dim] += dim == 1 ? workspace->cone_rows[k] : 1;
  }
  for (int dim = 1; dim <= largest; ++dim)
    if (workspace->dim_count[dim] > 0) {
      workspace->dim_group[dim] = workspace->product.group_count;
      add_group(workspace, dim == 1 ? GROUP_ORTHANT : GROUP_LORENTZ, dim,
                workspace->dim_count[dim]);
      workspace->dim_count[dim] = 0; /* from here on: lanes given out */
    }
  if (program->equality_count > 0) add_group(workspace, GROUP_EQUALITY, 1, program->equality_count);
}

/* Lanes for cones, in row order; g, targets and weights. */
static void place_cones(qd_cone_workspace *workspace, const qd_cone_program *program) {
  cone_product *product = &workspace->product;
  memset(workspace->g, 0, (size_t)workspace->slot_count * sizeof(double));
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    for (int c = 0; c < group->padded; ++c) {
      const int real = c < group->count && group->kind != GROUP_EQUALITY;
      product->weight[group->cone + c] = real ? 1.0 : 0.0;
      product->target[group->cone + c] = 1.0;
      product->inverse.diagonal[group->cone + c] = 0.0; /* equalities have no slack to move */
      if (!real && group->kind != GROUP_EQUALITY) workspace->g[group->slot + c] = 1.0;
    }
  }
  int row = 0;
  workspace->exact = 1;
  for (int k = 0; k < program->cone_count; ++k) {
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    const int linear = conic_cone_is_linear(workspace, program, k),
              dim = linear ? 1 : workspace->cone_rows[k];
    const cone_group *group = &product->groups[workspace->dim_group[dim]];
    if (target > 0.0) workspace->exact = 0;
    for (int copy = 0; copy < (linear ? workspace->cone_rows[k] : 1); ++copy) {
      const int lane = workspace->dim_count[dim]++;
      product->target[group->cone + lane] = target;
      for (int i = 0; i < dim; ++i, ++row) {
        workspace->slot_of[row] = group->slot + i * group->padded + lane;
        workspace->g[workspace->slot_of[row]] = program->g[row];
        workspace->row_scale[row] = 1.0;
      }
    }
    for (int i = workspace->cone_rows[k]; i < program->cone_dim[k]; ++i, ++row) {
      workspace->slot_of[row] = -1;
      workspace->row_scale[row] = 1.0;
    }
  }
  for (int i = 0; i < program->equality_count; ++i)
    workspace->slot_of[row + i] = product->groups[product->group_count - 1].slot + i;
}

/* ------------------------------------------------------------ scaled copies */

/* size (column_count) = largest entry of each column in the rows */
static void measure_columns(const qd_cone_workspace *workspace, double *size) {
  const int n = workspace->variable_count;
  memset(size, 0, (size_t)workspace->column_count * sizeof(double));
  for (int row = 0; row < workspace->row_count + workspace->equality_count; ++row) {
    const double *values = conic_caller_row(workspace, row);
    const int equality = row >= workspace->row_count;
    const row_source *source = equality ? &workspace->source_C : &workspace->source_G;
    const int at = equality ? row - workspace->row_count : row;
    if (!source->start) {
      for (int j = 0; j < n; ++j) size[j] = larger(size[j], fabs(values[j]));
      continue;
    }
    for (int k = source->start[at]; k < source->start[at + 1]; ++k, values += 4)
      for (int j = 0; j < 4; ++j) {
        double *own = size + 4 * source->tiles[k] + j;
        *own = larger(*own, fabs(values[j]));
      }
  }
}

static double Q_diagonal(const qd_cone_workspace *workspace, int i) {
  const double *own = source_tile(&workspace->source_Q, i, i / 4);
  return own ? own[i % 4] : 0.0;
}

/* Unit diagonal of Q. A column without cost takes the size of its rows instead. */
static void scale_columns(qd_cone_workspace *workspace, const qd_cone_program *program) {
  double largest = 0.0, *size = workspace->work_x;
  for (int i = 0; i < program->variable_count; ++i)
    largest = larger(largest, Q_diagonal(workspace, i));
  workspace->definite = 1;
  for (int k = 0; k < workspace->column_count; ++k) {
    const int column = 4 * workspace->tile_original[k / 4] + k % 4;
    workspace->column_of[k] = column < program->variable_count ? column : -1;
    workspace->column_scale[k] = 1.0;
    workspace->b[k] = 0.0;
    if (workspace->column_of[k] < 0) continue;
    const double q = Q_diagonal(workspace, column);
    if (q > 1e-20 * largest) {
      workspace->column_scale[k] = 1.0 / sqrt(q);
    } else {
      if (workspace->definite) measure_columns(workspace, size);
      workspace->column_scale[k] = size[column] > 0.0 ? 1.0 / size[column] : 1.0;
      workspace->definite = 0;
    }
    workspace->b[k] = program->b[column] * workspace->column_scale[k];
  }
  if (!workspace->definite) workspace->system.Q_is_diagonal = 0;
}

/* Four scaled columns of a row, internal columns 4 place .. 4 place + 3, from where they begin. */
LANES_INLINE void read_tile(const qd_cone_workspace *workspace, const double *from, int place,
                            double scale, double *out) {
  const int width = workspace->variable_count - 4 * workspace->tile_original[place];
  const double *column_scale = workspace->column_scale + 4 * place;
  if (width >= 4) {
    for (int k = 0; k < 4; ++k) out[k] = from[k] * column_scale[k] * scale;
  } else {
    for (int k = 0; k < 4; ++k) out[k] = k < width ? from[k] * column_scale[k] * scale : 0.0;
  }
}

static void copy_Q(qd_cone_workspace *workspace) {
  tile_system *system = &workspace->system;
  if (system->Q_is_diagonal) return;
  for (int j = 0; j < system->tile_count; ++j)
    for (int k = system->Q_start[j] - 1; k < system->Q_start[j + 1]; ++k) {
      const int i = k < system->Q_start[j] ? j : system->Q_tiles[k];
      double *tile = system->Q + tile_offset(j, k);
      for (int b = 0; b < 4; ++b) { /* Q is symmetric: column 4j + b of tile row i is row 4j + b */
        const int column = workspace->column_of[4 * j + b];
        const double *from =
            column < 0 ? NULL
                       : source_tile(&workspace->source_Q, column, workspace->tile_original[i]);
        if (from)
          read_tile(workspace, from, i, workspace->column_scale[4 * j + b], tile + 4 * b);
        else
          for (int a = 0; a < 4; ++a) tile[4 * b + a] = column < 0 && i == j && a == b ? 1.0 : 0.0;
      }
    }
}

/* Opens a block of rows that all touch `mask` (original tile order). */
static row_block *open_block(qd_cone_workspace *workspace, const uint64_t *mask, int first_row,
                             int step, int cone, int *tile_total) {
  tile_system *system = &workspace->system;
  row_block *block = &system->blocks[system->block_count++];
  const int equality = first_row >= workspace->row_count;
  const row_source *source = equality ? &workspace->source_C : &workspace->source_G;
  const int at = equality ? first_row - workspace->row_count : first_row;
  int *tiles = system->block_tiles + *tile_total, *from = workspace->block_from + *tile_total;
  block->row_count = 0;
  block->first_row = first_row;
  block->tile_start = *tile_total;
  block->tile_count = conic_list_tiles(workspace, mask, tiles);
  for (int k = 0; k < block->tile_count; ++k)
    from[k] = source_offset(source, at, workspace->tile_original[tiles[k]]);
  *tile_total += block->tile_count;
  block->slot = workspace->slot_of[first_row];
  block->slot_step = step;
  block->cone = cone;
  return block;
}

/* Rows of a block have the same tiles: so many numbers lie between one and the next. */
LANES_INLINE size_t row_stride(const qd_cone_workspace *workspace, const row_block *block) {
  const int equality = block->first_row >= workspace->row_count;
  const row_source *source = equality ? &workspace->source_C : &workspace->source_G;
  const int at = equality ? block->first_row - workspace->row_count : block->first_row;
  return source->start ? 4 * (size_t)(source->start[at + 1] - source->start[at]) : source->stride;
}

QD_CLONES
static void fill_block(qd_cone_workspace *workspace, const row_block *block) {
  const size_t stride = row_stride(workspace, block);
  const int equality = block->first_row >= workspace->row_count;
  const int in_tiles = (equality ? &workspace->source_C : &workspace->source_G)->start != NULL;
  const double *rows = conic_caller_row(workspace, block->first_row);
  const double *row_scale = workspace->row_scale + block->first_row;
  double *values = workspace->system.G + block->values;
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const double *from = rows + workspace->block_from[block->tile_start + k];
    if (in_tiles || workspace->variable_count - 4 * workspace->tile_original[place] >= 4) {
      const lanes scale = LANES_OF(workspace->column_scale + 4 * place);
      for (int i = 0; i < block->row_count; ++i, values += 4, from += stride)
        LANES_AT(values) = LANES_FROM(from) * scale * row_scale[i];
    } else {
      for (int i = 0; i < block->row_count; ++i, values += 4, from += stride)
        read_tile(workspace, from, place, row_scale[i], values);
    }
  }
}

/* 1 if two rows touch the same tiles and keep them in the same places. */
static int rows_match(const qd_cone_workspace *workspace, int a, int b) {
  const size_t words = (size_t)workspace->mask_words;
  const uint64_t *of_a = conic_row_mask(workspace, a), *of_b = conic_row_mask(workspace, b);
  for (size_t w = 0; w < words; ++w)
    if (of_a[w] != of_b[w]) return 0;
  const int equality = a >= workspace->row_count;
  const row_source *source = equality ? &workspace->source_C : &workspace->source_G;
  if (!source->start) return 1;
  const int *start = source->start - (equality ? workspace->row_count : 0);
  const int count = start[a + 1] - start[a];
  int match = start[b + 1] - start[b] == count;
  for (int k = 0; k < count && match; ++k)
    match = source->tiles[start[a] + k] == source->tiles[start[b] + k];
  return match;
}

static void make_blocks(qd_cone_workspace *workspace, const qd_cone_program *program) {
  tile_system *system = &workspace->system;
  const cone_product *product = &workspace->product;
  const int rows = program->row_count + program->equality_count, words = workspace->mask_words;
  uint64_t *mask = workspace->scratch_mask + words;
  size_t values = 0;
  int tile_total = 0, row = 0, cone = 0, left_in_cone = 0;
  system->block_count = 0;
  while (row < rows) {
    if (workspace->slot_of[row] < 0) { /* left out, behind a cone of one row */
      ++row;
      --left_in_cone;
      continue;
    }
    const int first = row;
    if (left_in_cone == 0 && cone < program->cone_count) left_in_cone = program->cone_dim[cone++];
    const int equality = first >= program->row_count;
    int count, step = 1, at;
    memcpy(mask, conic_row_mask(workspace, row), (size_t)words * sizeof(uint64_t));
    if (!equality && !conic_cone_is_linear(workspace, program, cone - 1)) {
      count = workspace->cone_rows[cone - 1];
      left_in_cone -= count;
      const cone_group *group = &product->groups[workspace->dim_group[count]];
      for (int i = 1; i < count; ++i)
        for (int w = 0; w < words; ++w) mask[w] |= conic_row_mask(workspace, row + i)[w];
      step = group->padded;
      at = group->cone + workspace->slot_of[row] - group->slot;
    } else {
      const cone_group *group =
          &product->groups[equality ? product->group_count - 1 : workspace->dim_group[1]];
      at = group->cone + workspace->slot_of[row] - group->slot;
      count = 1;
      left_in_cone -= 1;
      while (count < BLOCK_ROWS && row + count < (equality ? rows : program->row_count) &&
             rows_match(workspace, row, row + count) && workspace->slot_of[row + count] >= 0) {
        if (!equality && left_in_cone == 0) {
          if (cone == program->cone_count || !conic_cone_is_linear(workspace, program, cone)) break;
          left_in_cone = program->cone_dim[cone++];
        }
        ++count;
        left_in_cone -= 1;
      }
      if (equality) left_in_cone = 0;
    }
    row += count;
    row_block *block = open_block(workspace, mask, first, step, at, &tile_total);
    block->row_count = count;
    block->values = values;
    values += (size_t)block->tile_count * (size_t)count * 4;
    fill_block(workspace, block);
  }
}

static void scale_equalities(qd_cone_workspace *workspace, const qd_cone_program *program) {
  int *tiles = workspace->block_from; /* not filled yet */
  for (int i = 0; i < program->equality_count; ++i) {
    const int count =
        conic_list_tiles(workspace, conic_row_mask(workspace, program->row_count + i), tiles);
    double sum = 0.0;
    for (int k = 0; k < count; ++k) {
      const double *from = source_tile(&workspace->source_C, i, workspace->tile_original[tiles[k]]);
      for (int a = 0; a < 4; ++a)
        if (workspace->column_of[4 * tiles[k] + a] >= 0) {
          const double value = from[a] * workspace->column_scale[4 * tiles[k] + a];
          sum += value * value;
        }
    }
    const double scale = sum > 0.0 ? 1.0 / sqrt(sum) : 1.0;
    workspace->row_scale[program->row_count + i] = scale;
    workspace->lane_scale[conic_lane_of(workspace, program->row_count + i)] = scale;
    workspace->g[workspace->slot_of[program->row_count + i]] = program->c[i] * scale;
  }
}

/* Squared norm of a row of G in scaled columns. */
static double squared_row(const qd_cone_workspace *workspace, int row, int *tiles) {
  const int count = conic_list_tiles(workspace, conic_row_mask(workspace, row), tiles);
  double sum = 0.0;
  for (int k = 0; k < count; ++k) {
    const double *from = source_tile(&workspace->source_G, row, workspace->tile_original[tiles[k]]);
    for (int a = 0; a < 4 && from; ++a)
      if (workspace->column_of[4 * tiles[k] + a] >= 0) {
        const double value = from[a] * workspace->column_scale[4 * tiles[k] + a];
        sum += value * value;
      }
  }
  return sum;
}

/* The largest norm of all for the rows of every cone, less for one whose offset would then exceed
 * what the cost's free motion and violated cones make of it: a cone that nothing reaches. By powers
 * of two, which round nothing. */
static void make_rows_alike(qd_cone_workspace *workspace, const qd_cone_program *program) {
  double *norm = workspace->lane_scale, *offset = workspace->compliance;
  int *tiles = workspace->block_from; /* not filled yet */
  double largest = 0.0, way = max_norm(workspace->b, workspace->column_count);
  for (int c = 0; c < workspace->lane_count; ++c) norm[c] = offset[c] = 0.0;
  for (int row = 0; row < program->row_count; ++row) {
    if (workspace->slot_of[row] < 0) continue;
    const int lane = conic_lane_of(workspace, row);
    norm[lane] = larger(norm[lane], sqrt(squared_row(workspace, row, tiles)));
    offset[lane] = larger(offset[lane], fabs(program->g[row]));
    largest = larger(largest, norm[lane]);
    if (program->g[row] < 0.0 && norm[lane] > 0.0) way = larger(way, -program->g[row] / norm[lane]);
  }
  for (int c = 0; c < workspace->lane_count; ++c) {
    double scale = norm[c] > 0.0 ? largest / norm[c] : 1.0;
    if (offset[c] * scale > way * largest && way > 0.0)
      scale = larger(1.0, way * largest / offset[c]);
    norm[c] = scale < HUGE_VAL ? exp2(floor(log2(scale))) : 1.0;
  }
  for (int row = 0; row < program->row_count; ++row) {
    if (workspace->slot_of[row] < 0) continue;
    workspace->row_scale[row] = norm[conic_lane_of(workspace, row)];
    workspace->g[workspace->slot_of[row]] *= workspace->row_scale[row];
  }
}

/* Largest squared row norm of each cone: a unit of its multiplier moves its slack so much (Q = I).
 */
QD_CLONES
static void measure_compliance(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  for (int c = 0; c < workspace->lane_count; ++c) workspace->compliance[c] = 0.0;
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    const size_t width = 4 * (size_t)block->row_count;
    double *out = workspace->compliance + block->cone;
    for (int i = 0; i < block->row_count; ++i) {
      const double *values = system->G + block->values + 4 * i;
      lanes sum = {0.0, 0.0, 0.0, 0.0};
      for (int k = 0; k < block->tile_count; ++k, values += width)
        sum += LANES_OF(values) * LANES_OF(values);
      const double size = lanes_sum(&sum);
      *out = larger(size, *out);
      if (block->slot_step == 1) ++out;
    }
  }
}

static void clear_rows(qd_cone_workspace *workspace) {
  const size_t bytes = (size_t)workspace->slot_count * sizeof(double);
  memset(workspace->work_row, 0, bytes); /* padded lanes that products never write */
  memset(workspace->work_row2, 0, bytes);
  memset(workspace->residual_row, 0, bytes);
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
  qd_status status = check_sizes(workspace, source);
  if (status != QD_OK) return status;
  if (!rows_fit(workspace, source)) return QD_BAD_ARGUMENT;
  workspace->hard_penalty = HARD_ROW_PENALTY;
  workspace->variable_count = program->variable_count;
  workspace->row_count = program->row_count;
  workspace->equality_count = program->equality_count;
  workspace->source_Q = source_of(program->Q, program->variable_count, source->Q);
  workspace->source_G = source_of(program->G, program->variable_count, source->G);
  workspace->source_C = source_of(program->C, program->variable_count, source->C);
  status = conic_read_masks(workspace, program);
  if (status != QD_OK) return status;
  count_cone_rows(workspace, program);
  make_groups(workspace, program);
  place_cones(workspace, program);
  if (!conic_find_structure(workspace, program)) return QD_OUT_OF_CAPACITY;
  scale_columns(workspace, program);
  copy_Q(workspace);
  for (int c = 0; c < workspace->lane_count; ++c) workspace->lane_scale[c] = 1.0;
  if (scaling == ROWS_ALIKE) make_rows_alike(workspace, program);
  scale_equalities(workspace, program);
  make_blocks(workspace, program);
  dense_tiles_choose(&workspace->system);
  measure_compliance(workspace);
  clear_rows(workspace);
  return QD_OK;
}
