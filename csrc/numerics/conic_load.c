/* From the caller's dense program to tiles and groups. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "numerics/conic_workspace.h"
#include "numerics/dense_tiles.h"
#include "numerics/lanes.h"

#define MASK_BITS 64
#define BLOCK_ROWS 8 /* most orthant rows in one block */

/* ------------------------------------------------------------ checks */

static qd_status check_sizes(const qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  if (n < 1 || m < 0 || p < 0 || program->cone_count < 0 || !program->Q || !program->b)
    return QD_BAD_ARGUMENT;
  if (n > workspace->variable_capacity || m > workspace->row_capacity ||
      p > workspace->equality_capacity)
    return QD_BAD_ARGUMENT;
  if ((m > 0 && (!program->G || !program->g || !program->cone_kind || !program->cone_dim)) ||
      (p > 0 && (!program->C || !program->c)))
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

/* Tiles of four that hold a nonzero; *poison becomes NaN if any number is not finite. */
LANES_INLINE uint64_t row_tiles(const double *row, int n, lanes *poison) {
  uint64_t mask = 0;
  int t = 0;
  for (; 4 * t + 4 <= n; ++t) {
    lanes values;
    uint64_t bits[4];
    memcpy(&values, row + 4 * t, sizeof values);
    memcpy(bits, row + 4 * t, sizeof bits);
    *poison += values * 0.0;
    mask |= (uint64_t)(((bits[0] | bits[1]) | (bits[2] | bits[3])) << 1 != 0) << (t % MASK_BITS);
  }
  for (int k = 4 * t; k < n; ++k) {
    (*poison)[0] += row[k] * 0.0;
    mask |= (uint64_t)(row[k] != 0.0) << (t % MASK_BITS);
  }
  return n > 4 * MASK_BITS ? ~(uint64_t)0 : mask;
}

/* Masks of all rows of a matrix; 0 if a number is not finite. */
QD_CLONES
static int mask_rows(const double *matrix, int rows, int n, uint64_t *mask) {
  lanes poison = {0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < rows; ++i) mask[i] = row_tiles(matrix + (size_t)i * (size_t)n, n, &poison);
  return lanes_sum(&poison) == 0.0;
}

/* The same for Q, where tile rows share a mask. Also: is it diagonal, is the diagonal nonnegative?
 */
QD_CLONES
static int mask_Q(const double *Q, int n, uint64_t *mask, int *diagonal, int *nonnegative) {
  lanes poison = {0.0, 0.0, 0.0, 0.0};
  *diagonal = *nonnegative = 1;
  for (int i = 0; i < n; ++i) {
    const double *row = Q + (size_t)i * (size_t)n;
    const uint64_t tiles = row_tiles(row, n, &poison);
    const uint64_t own = (uint64_t)1 << (i / 4 % MASK_BITS);
    mask[i / 4] = (i % 4 ? mask[i / 4] : own) | tiles;
    *nonnegative &= row[i] >= 0.0;
    if (n > 4 * MASK_BITS) {
      for (int j = 0; j < n; ++j) *diagonal &= i == j || row[j] == 0.0;
    } else {
      *diagonal &= (tiles & ~own) == 0;
      for (int j = i / 4 * 4; j < i / 4 * 4 + 4 && j < n; ++j) *diagonal &= i == j || row[j] == 0.0;
    }
  }
  return lanes_sum(&poison) == 0.0;
}

/* Finiteness, signs, and on the way which tiles every row touches. */
static qd_status read_masks(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  int nonnegative;
  if (!mask_Q(program->Q, n, workspace->Q_mask, &workspace->system.Q_is_diagonal, &nonnegative) ||
      !mask_rows(program->G, m, n, workspace->row_mask) ||
      !mask_rows(program->C, p, n, workspace->row_mask + m))
    return QD_NOT_FINITE;
  if (!all_finite(program->b, n) || !all_finite(program->g, m) || !all_finite(program->c, p) ||
      (program->target_mu && !all_finite(program->target_mu, program->cone_count)))
    return QD_NOT_FINITE;
  return nonnegative ? QD_OK : QD_BAD_ARGUMENT;
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
      while (rows > 1 && workspace->row_mask[row + rows - 1] == 0 &&
             program->g[row + rows - 1] == 0.0)
        --rows;
    workspace->cone_rows[k] = rows;
  }
}

static int cone_is_linear(const qd_cone_workspace *workspace, const qd_cone_program *program,
                          int k) {
  return program->cone_kind[k] == QD_ORTHANT || workspace->cone_rows[k] == 1;
}

/* One group for all linear rows, one for each dimension of Lorentz cones, one for equalities. */
static void make_groups(qd_cone_workspace *workspace, const qd_cone_program *program) {
  int largest = 1;
  workspace->slot_count = workspace->lane_count = 0;
  workspace->product.group_count = workspace->product.cone_count = 0;
  workspace->dim_count[1] = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim = cone_is_linear(workspace, program, k) ? 1 : workspace->cone_rows[k];
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
    const int linear = cone_is_linear(workspace, program, k),
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

/* ------------------------------------------------------------ which tiles are coupled */

static int bit_count(uint64_t mask) {
#if defined(__GNUC__)
  return __builtin_popcountll(mask);
#else
  int count = 0;
  for (; mask; mask &= mask - 1) ++count;
  return count;
#endif
}

static int lowest_bit(uint64_t mask) {
#if defined(__GNUC__)
  return __builtin_ctzll(mask);
#else
  int bit = 0;
  while (!(mask >> bit & 1)) ++bit;
  return bit;
#endif
}

static void couple(qd_cone_workspace *workspace, uint64_t mask) {
  for (uint64_t rest = mask; rest; rest &= rest - 1) workspace->tile_mask[lowest_bit(rest)] |= mask;
}

/* Minimum degree on tiles: few tiles, so the plain algorithm does. */
static void order_tiles(qd_cone_workspace *workspace) {
  const int tiles = workspace->system.tile_count;
  uint64_t left = tiles == MASK_BITS ? ~(uint64_t)0 : ((uint64_t)1 << tiles) - 1;
  for (int place = 0; place < tiles; ++place) {
    int best = -1, best_degree = MASK_BITS + 1;
    for (uint64_t rest = left; rest; rest &= rest - 1) {
      const int t = lowest_bit(rest), degree = bit_count(workspace->tile_mask[t] & left);
      if (degree < best_degree) {
        best = t;
        best_degree = degree;
      }
    }
    workspace->tile_position[best] = place;
    workspace->tile_original[place] = best;
    left &= ~((uint64_t)1 << best);
    const uint64_t clique = workspace->tile_mask[best] & left;
    for (uint64_t rest = clique; rest; rest &= rest - 1)
      workspace->tile_mask[lowest_bit(rest)] |= clique;
  }
}

/* Mask in the new order. */
static uint64_t reorder(const qd_cone_workspace *workspace, uint64_t mask) {
  uint64_t out = 0;
  for (; mask; mask &= mask - 1) out |= (uint64_t)1 << workspace->tile_position[lowest_bit(mask)];
  return out;
}

static int list_tiles(uint64_t mask, int tiles, int *list) {
  int count = 0;
  if (tiles > MASK_BITS)
    for (; count < tiles; ++count) list[count] = count;
  else
    for (; mask; mask &= mask - 1) list[count++] = lowest_bit(mask);
  return count;
}

/* Column j's tiles below the diagonal, of the factor and of Q. */
static void make_columns(qd_cone_workspace *workspace) {
  tile_system *system = &workspace->system;
  const int tiles = system->tile_count, masked = tiles <= MASK_BITS;
  int count = 0, Q_count = 0;
  uint64_t *column = workspace->row_mask + workspace->row_count + workspace->equality_count;
  if (masked)
    for (int j = 0; j < tiles; ++j) column[j] = 0;
  if (masked)
    for (int t = 0; t < tiles; ++t) /* after elimination tile_mask holds the factor's pattern */
      column[workspace->tile_position[t]] = reorder(workspace, workspace->tile_mask[t]);
  for (int j = 0; j < tiles; ++j) {
    system->column_start[j] = count;
    system->Q_start[j] = Q_count;
    if (masked) {
      const uint64_t below = j == MASK_BITS - 1 ? 0 : ~(uint64_t)0 << (j + 1);
      count += list_tiles(column[j] & below, tiles, system->column_tiles + count);
      const uint64_t Q = reorder(workspace, workspace->Q_mask[workspace->tile_original[j]]);
      Q_count += list_tiles(Q & below, tiles, system->Q_tiles + Q_count);
    } else {
      for (int i = j + 1; i < tiles; ++i) {
        system->column_tiles[count++] = i;
        if (!system->Q_is_diagonal) system->Q_tiles[Q_count++] = i;
      }
    }
  }
  system->column_start[tiles] = count;
  system->Q_start[tiles] = Q_count;
}

static void find_structure(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int n = program->variable_count, m = program->row_count;
  const int rows = m + program->equality_count, tiles = (n + 3) / 4;
  workspace->system.tile_count = tiles;
  workspace->column_count = 4 * tiles;
  for (int t = 0; t < tiles; ++t) {
    workspace->tile_position[t] = workspace->tile_original[t] = t;
  }
  if (tiles <= MASK_BITS) {
    for (int t = 0; t < tiles; ++t) workspace->tile_mask[t] = workspace->Q_mask[t];
    int row = 0;
    for (int k = 0; k < program->cone_count; ++k) {
      const int linear = cone_is_linear(workspace, program, k);
      uint64_t mask = 0;
      for (int i = 0; i < program->cone_dim[k]; ++i, ++row) {
        mask |= workspace->row_mask[row];
        if (linear) {
          couple(workspace, mask);
          mask = 0;
        }
      }
      couple(workspace, mask);
    }
    for (; row < rows; ++row) couple(workspace, workspace->row_mask[row]);
    order_tiles(workspace);
  }
  make_columns(workspace);
}

/* ------------------------------------------------------------ scaled copies */

/* Unit diagonal of Q. A column without cost takes the size of its rows instead. */
static void scale_columns(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const size_t n = (size_t)program->variable_count;
  double largest = 0.0;
  for (size_t i = 0; i < n; ++i) largest = larger(largest, program->Q[i * n + i]);
  workspace->definite = 1;
  for (int k = 0; k < workspace->column_count; ++k) {
    const int column = 4 * workspace->tile_original[k / 4] + k % 4;
    workspace->column_of[k] = column < program->variable_count ? column : -1;
    workspace->column_scale[k] = 1.0;
    workspace->b[k] = 0.0;
    if (workspace->column_of[k] < 0) continue;
    const size_t j = (size_t)column;
    const double q = program->Q[j * n + j];
    if (q > 1e-20 * largest) {
      workspace->column_scale[k] = 1.0 / sqrt(q);
    } else {
      double size = 0.0;
      for (size_t i = 0; i < (size_t)program->row_count; ++i)
        size = larger(size, fabs(program->G[i * n + j]));
      for (size_t i = 0; i < (size_t)program->equality_count; ++i)
        size = larger(size, fabs(program->C[i * n + j]));
      workspace->column_scale[k] = size > 0.0 ? 1.0 / size : 1.0;
      workspace->definite = 0;
    }
    workspace->b[k] = program->b[j] * workspace->column_scale[k];
  }
  if (!workspace->definite) workspace->system.Q_is_diagonal = 0;
}

/* Four scaled columns of a row: internal columns 4 place .. 4 place + 3. */
LANES_INLINE void read_tile(const qd_cone_workspace *workspace, const double *row, int place,
                            double scale, double *out) {
  const int first = 4 * workspace->tile_original[place];
  const int width = workspace->variable_count - first;
  const double *column_scale = workspace->column_scale + 4 * place;
  if (width >= 4) {
    for (int k = 0; k < 4; ++k) out[k] = row[first + k] * column_scale[k] * scale;
  } else {
    for (int k = 0; k < 4; ++k) out[k] = k < width ? row[first + k] * column_scale[k] * scale : 0.0;
  }
}

static void copy_Q(qd_cone_workspace *workspace, const qd_cone_program *program) {
  tile_system *system = &workspace->system;
  if (system->Q_is_diagonal) return;
  for (int j = 0; j < system->tile_count; ++j)
    for (int k = system->Q_start[j] - 1; k < system->Q_start[j + 1]; ++k) {
      const int i = k < system->Q_start[j] ? j : system->Q_tiles[k];
      double *tile = system->Q + tile_offset(i, j);
      for (int b = 0; b < 4; ++b) { /* Q is symmetric: column 4j + b of tile row i is row 4j + b */
        const int column = workspace->column_of[4 * j + b];
        if (column >= 0)
          read_tile(workspace, program->Q + (size_t)column * (size_t)program->variable_count, i,
                    workspace->column_scale[4 * j + b], tile + 4 * b);
        else
          for (int a = 0; a < 4; ++a) tile[4 * b + a] = i == j && a == b ? 1.0 : 0.0;
      }
    }
}

/* Opens a block of rows that all touch `mask` (original tile order). */
static row_block *open_block(qd_cone_workspace *workspace, uint64_t mask, int first_row, int step,
                             int cone, int *tile_total) {
  tile_system *system = &workspace->system;
  row_block *block = &system->blocks[system->block_count++];
  const int tiles = system->tile_count;
  block->row_count = 0;
  block->first_row = first_row;
  block->tile_start = *tile_total;
  block->tile_count = list_tiles(tiles > MASK_BITS ? mask : reorder(workspace, mask), tiles,
                                 system->block_tiles + *tile_total);
  *tile_total += block->tile_count;
  block->slot = workspace->slot_of[first_row];
  block->slot_step = step;
  block->cone = cone;
  return block;
}

QD_CLONES
static void fill_block(qd_cone_workspace *workspace, const qd_cone_program *program,
                       const row_block *block, int first_row) {
  const size_t n = (size_t)program->variable_count;
  const int m = program->row_count;
  double *values = workspace->system.G + block->values;
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    for (int i = 0; i < block->row_count; ++i, values += 4) {
      const int row = first_row + i;
      const double *source =
          row < m ? program->G + (size_t)row * n : program->C + (size_t)(row - m) * n;
      read_tile(workspace, source, place, workspace->row_scale[row], values);
    }
  }
}

static void make_blocks(qd_cone_workspace *workspace, const qd_cone_program *program) {
  tile_system *system = &workspace->system;
  const cone_product *product = &workspace->product;
  const int rows = program->row_count + program->equality_count;
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
    uint64_t mask = workspace->row_mask[row];
    int count, step = 1, at;
    if (!equality && !cone_is_linear(workspace, program, cone - 1)) {
      count = workspace->cone_rows[cone - 1];
      left_in_cone -= count;
      const cone_group *group = &product->groups[workspace->dim_group[count]];
      for (int i = 1; i < count; ++i) mask |= workspace->row_mask[row + i];
      step = group->padded;
      at = group->cone + workspace->slot_of[row] - group->slot;
    } else {
      const cone_group *group =
          &product->groups[equality ? product->group_count - 1 : workspace->dim_group[1]];
      at = group->cone + workspace->slot_of[row] - group->slot;
      count = 1;
      left_in_cone -= 1;
      while (count < BLOCK_ROWS && row + count < (equality ? rows : program->row_count) &&
             workspace->row_mask[row + count] == mask && workspace->slot_of[row + count] >= 0) {
        if (!equality && left_in_cone == 0) {
          if (cone == program->cone_count || !cone_is_linear(workspace, program, cone)) break;
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
    fill_block(workspace, program, block, first);
  }
}

static void scale_equalities(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int n = program->variable_count;
  for (int i = 0; i < program->equality_count; ++i) {
    const double *row = program->C + (size_t)i * (size_t)n;
    double sum = 0.0;
    for (int k = 0; k < workspace->column_count; ++k)
      if (workspace->column_of[k] >= 0) {
        const double value = row[workspace->column_of[k]] * workspace->column_scale[k];
        sum += value * value;
      }
    const double scale = sum > 0.0 ? 1.0 / sqrt(sum) : 1.0;
    workspace->row_scale[program->row_count + i] = scale;
    workspace->g[workspace->slot_of[program->row_count + i]] = program->c[i] * scale;
  }
}

/* Largest squared row norm of each cone: a unit of its multiplier moves its slack so much (Q = I).
 */
static void measure_compliance(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  for (int c = 0; c < workspace->lane_count; ++c) workspace->compliance[c] = 0.0;
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    for (int i = 0; i < block->row_count; ++i) {
      const double *values = system->G + block->values + 4 * i;
      double sum = 0.0;
      for (int k = 0; k < block->tile_count; ++k, values += 4 * block->row_count)
        sum += (values[0] * values[0] + values[1] * values[1]) +
               (values[2] * values[2] + values[3] * values[3]);
      double *at = &workspace->compliance[block->cone + (block->slot_step == 1 ? i : 0)];
      *at = sum > *at ? sum : *at;
    }
  }
}

static void clear_rows(qd_cone_workspace *workspace) {
  const size_t bytes = (size_t)workspace->slot_count * sizeof(double);
  memset(workspace->work_row, 0, bytes); /* padded lanes that products never write */
  memset(workspace->work_row2, 0, bytes);
  memset(workspace->residual_row, 0, bytes);
  memset(workspace->row4, 0, 4 * bytes);
  memset(workspace->moved4, 0, 4 * bytes);
  memset(workspace->work_row4, 0, 4 * bytes);
}

qd_status conic_load(qd_cone_workspace *workspace, const qd_cone_program *program) {
  qd_status status = check_sizes(workspace, program);
  if (status == QD_OK) status = read_masks(workspace, program);
  if (status != QD_OK) return status;
  workspace->variable_count = program->variable_count;
  workspace->row_count = program->row_count;
  workspace->equality_count = program->equality_count;
  count_cone_rows(workspace, program);
  make_groups(workspace, program);
  place_cones(workspace, program);
  find_structure(workspace, program);
  scale_columns(workspace, program);
  copy_Q(workspace, program);
  scale_equalities(workspace, program);
  make_blocks(workspace, program);
  workspace->system.is_dense = dense_tiles_is_dense(&workspace->system);
  measure_compliance(workspace);
  clear_rows(workspace);
  return QD_OK;
}
