/* Cone programs: the public entry, reading as a table of contents. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "numerics/conic_workspace.h"
#include "numerics/dense_tiles.h"
#include "numerics/lanes.h"

/* The path stops at these relative errors to try the polish: the sooner it verifies the cheaper. A
 * guess counts only with its certificate, so an early failure costs a few factorisations and no
 * accuracy. */
static const double polish_from[] = {3e-2, 1e-3, 1e-6};

/* Tiles that near_rows have room for: more go along the path. */
#define NEAR_TILES 512

/* A smaller iteration limit is one that the caller means. */
#define RETRY_FROM 50

/* What an answer may leave of the optimality conditions, beside the largest number in them. */
#define CERTIFIED 1e-6
#define ROUNDING_UNITS 1e-4 /* natural units that measure what is rounding altogether */
#define PULL_ROUNDING 1e-7  /* times that: what rounding leaves of cancelled motion, and some */

qd_cone_options qd_cone_options_default(void) {
  const qd_cone_options options = {.tolerance = 1e-9, .iteration_limit = 100, .polish = 1};
  return options;
}

/* ------------------------------------------------------------ workspace */

static void lay_out_operator(arena *a, cone_operator *operator, size_t slots, size_t lanes_count) {
  operator->u = arena_doubles(a, slots);
  operator->diagonal = arena_doubles(a, lanes_count);
  operator->cross = arena_doubles(a, lanes_count);
  operator->tangent = arena_doubles(a, lanes_count);
}

/* Rows, with every group's padding: three lanes at most in linear rows, equalities and cones of
 * each dimension; or every cone alone in its group. */
static size_t slot_bound(const conic_size *size) {
  const size_t rows = (size_t)size->rows + (size_t)size->equalities;
  const size_t dim = (size_t)size->largest_cone, padding = 6 + 3 * (dim * (dim + 1) / 2);
  return (padding < 3 * rows ? rows + padding : 4 * rows) + 8;
}

static void lay_out(qd_cone_workspace *w, arena *a) {
  const conic_size *size = &w->capacity;
  const size_t tiles = ((size_t)size->variables + 3) / 4, columns = 4 * tiles;
  const size_t words = (tiles + 63) / 64;
  const size_t rows = (size_t)size->rows + (size_t)size->equalities;
  const size_t dims = (size_t)size->largest_cone + 2;
  const size_t slots = slot_bound(size), lanes_count = slots;
  tile_system *system = &w->system;
  cone_product *product = &w->product;
  system->blocks = arena_take(a, (rows + 1) * sizeof(row_block));
  system->block_tiles = arena_ints(a, size->row_tiles + tiles + 1);
  w->block_from = arena_ints(a, size->row_tiles + tiles + 1);
  system->column_start = arena_ints(a, tiles + 1);
  system->column_tiles = arena_ints(a, size->fill);
  system->Q_start = arena_ints(a, tiles + 1);
  system->Q_tiles = arena_ints(a, size->fill);
  system->place = arena_ints(a, tiles * tiles);
  system->G = arena_doubles(a, 4 * size->row_tiles + 4);
  system->S = arena_doubles(a, 4 * size->row_tiles + 4);
  system->dense_room = dense_tiles_scratch(columns, rows, size->fill);
  system->dense = system->dense_room > 0 ? arena_doubles(a, system->dense_room) : NULL;
  system->Q = arena_doubles(a, 16 * size->fill);
  system->H = arena_doubles(a, 16 * size->fill);
  system->inverse = arena_doubles(a, 32 * tiles);
  product->groups = arena_take(a, (dims + 1) * sizeof(cone_group));
  product->weight = arena_doubles(a, lanes_count);
  product->target = arena_doubles(a, lanes_count);
  for (int k = 0; k < 6; ++k) product->scratch[k] = arena_doubles(a, lanes_count);
  lay_out_operator(a, &product->scaling, slots, lanes_count);
  product->inverse.u = product->scaling.u;
  product->inverse.diagonal = arena_doubles(a, lanes_count);
  product->inverse.cross = arena_doubles(a, lanes_count);
  product->inverse.tangent = arena_doubles(a, lanes_count);
  product->point = arena_doubles(a, slots);
  product->point_norm = arena_doubles(a, lanes_count);
  lay_out_operator(a, &w->rows, slots, lanes_count);
  lay_out_operator(a, &w->stiffness, 0, lanes_count);
  lay_out_operator(a, &w->hard, 0, lanes_count);
  w->stiffness.u = w->hard.u = w->rows.u;
  w->column_of = arena_ints(a, columns);
  w->column_scale = arena_doubles(a, columns);
  w->slot_of = arena_ints(a, rows + 1);
  w->cone_rows = arena_ints(a, rows + 1);
  w->row_scale = arena_doubles(a, rows + 1);
  w->compliance = arena_doubles(a, lanes_count);
  double **over_columns[] = {&w->b,  &w->x,      &w->Qx,       &w->residual_x,
                             &w->dx, &w->work_x, &w->polish_x, &w->newton_x};
  for (size_t k = 0; k < sizeof over_columns / sizeof over_columns[0]; ++k)
    *over_columns[k] = arena_doubles(a, columns);
  double **over_rows[] = {&w->g,           &w->slack,       &w->dual,        &w->residual_row,
                          &w->aim,         &w->rhs,         &w->dslack,      &w->ddual,
                          &w->dslack_aim,  &w->ddual_aim,   &w->work_row,    &w->work_row2,
                          &w->path_slack,  &w->path_dual,   &w->polish_dual, &w->polish_slack,
                          &w->newton_dual, &w->newton_slack};
  for (size_t k = 0; k < sizeof over_rows / sizeof over_rows[0]; ++k)
    *over_rows[k] = arena_doubles(a, slots);
  w->state = arena_ints(a, lanes_count);
  active_set_lay_out(&w->active, columns, a);
  const size_t near_tiles = size->row_tiles < NEAR_TILES ? size->row_tiles : NEAR_TILES;
  near_rows_lay_out(&w->near_rows, rows < NEAR_TILES ? rows : NEAR_TILES, near_tiles, a);
  near_rows_lay_out(&w->near_cones, rows < NEAR_TILES ? rows : NEAR_TILES, near_tiles, a);
  w->penalty = arena_doubles(a, lanes_count);
  w->stiff_blocks = arena_ints(a, rows + 1);
  w->stiff_cones = arena_take(a, (rows + 1) * sizeof(stiff_cone));
  w->stiff_slots = arena_ints(a, rows + 1);
  w->is_near = arena_ints(a, rows + 1);
  w->tail = arena_ints(a, rows + 1);
  w->block4 = arena_doubles(a, 4 * columns);
  w->x4 = arena_doubles(a, 4 * columns);
  w->rhs4 = arena_doubles(a, 4 * columns);
  w->row4 = arena_doubles(a, 4 * slots);
  w->work_row4 = arena_doubles(a, 4 * slots);
  w->moved4 = arena_doubles(a, 4 * slots);
  w->dual4 = arena_doubles(a, 4 * slots);
  w->row_mask = arena_take(a, (rows > columns ? rows : columns) * words * sizeof(uint64_t));
  w->tile_mask = arena_take(a, tiles * words * sizeof(uint64_t));
  w->Q_mask = arena_take(a, tiles * words * sizeof(uint64_t));
  w->scratch_mask = arena_take(a, 2 * words * sizeof(uint64_t));
  w->tile_degree = arena_ints(a, tiles);
  w->tile_position = arena_ints(a, tiles);
  w->tile_original = arena_ints(a, tiles);
  w->dim_count = arena_ints(a, dims);
  w->dim_group = arena_ints(a, dims);
}

conic_size conic_size_dense(int variables, int rows, int equalities) {
  const conic_size size = {variables > 1 ? variables : 1,
                           rows > 0 ? rows : 0,
                           equalities > 0 ? equalities : 0,
                           rows > 0 ? rows : 0,
                           0,
                           0};
  const size_t tiles = ((size_t)size.variables + 3) / 4;
  conic_size all = size;
  all.row_tiles = ((size_t)size.rows + (size_t)size.equalities) * tiles;
  all.fill = tiles * (tiles + 1) / 2;
  return all;
}

size_t conic_workspace_size(const conic_size *size) {
  qd_cone_workspace count = {.capacity = *size};
  arena counting = {NULL, 0};
  arena_take(&counting, sizeof count);
  lay_out(&count, &counting);
  return counting.offset;
}

qd_cone_workspace *conic_workspace_place(void *memory, const conic_size *size) {
  arena laying = {memory, 0};
  qd_cone_workspace *w = arena_take(&laying, sizeof *w);
#ifndef NDEBUG
  /* every double is NaN: what is read before it is written shows */
  memset(memory, 0xff, conic_workspace_size(size));
#endif
  memset(w, 0, sizeof *w);
  w->capacity = *size;
  lay_out(w, &laying);
  w->bytes = laying.offset;
  if (w->system.dense) dense_tiles_use_one_thread();
  return w;
}

int conic_workspace_serves(const qd_cone_workspace *workspace, const conic_size *size) {
  const conic_size *own = &workspace->capacity;
  return size->variables <= own->variables && size->rows <= own->rows &&
         size->equalities <= own->equalities && size->largest_cone <= own->largest_cone &&
         size->row_tiles <= own->row_tiles && size->fill <= own->fill;
}

size_t conic_workspace_fill(const qd_cone_workspace *workspace) { return workspace->wanted.fill; }

qd_cone_workspace *qd_cone_workspace_create(int variable_capacity, int row_capacity,
                                            int equality_capacity) {
  const conic_size size = conic_size_dense(variable_capacity, row_capacity, equality_capacity);
  void *block = aligned_alloc(ARENA_ALIGNMENT, conic_workspace_size(&size));
  return block ? conic_workspace_place(block, &size) : NULL;
}

void qd_cone_workspace_destroy(qd_cone_workspace *workspace) { free(workspace); }

size_t qd_cone_workspace_bytes(const qd_cone_workspace *workspace) {
  return workspace ? workspace->bytes : 0;
}

/* ------------------------------------------------------------ answers in the caller's units */

static void hand_out(const qd_cone_workspace *workspace, const double *x, const double *slack,
                     const double *dual, double *x_out, double *slack_out, double *dual_out,
                     double *dual_eq_out) {
  for (int k = 0; k < workspace->column_count; ++k)
    if (workspace->column_of[k] >= 0)
      x_out[workspace->column_of[k]] = workspace->column_scale[k] * x[k];
  for (int i = 0; i < workspace->row_count; ++i) {
    const int slot = workspace->slot_of[i];
    slack_out[i] = slot < 0 ? 0.0 : slack[slot];
    dual_out[i] = slot < 0 ? 0.0 : dual[slot];
  }
  for (int i = 0; i < workspace->equality_count; ++i) {
    const int at = workspace->row_count + i;
    dual_eq_out[i] = workspace->row_scale[at] * dual[workspace->slot_of[at]];
  }
}

/* row'x over the tiles of its block; four entries at a time, the last tile may be narrower */
LANES_INLINE double row_dot(const qd_cone_workspace *workspace, const row_block *block,
                            const double *row, const double *x) {
  const int n = workspace->variable_count;
  double part[4] = {0.0, 0.0, 0.0, 0.0};
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->tile_original[place], width = n - first;
    const double *from = row + workspace->block_from[block->tile_start + k];
    if (width >= 4)
      for (int j = 0; j < 4; ++j) part[j] += from[j] * x[first + j];
    else
      for (int j = 0; j < width; ++j) part[j] += from[j] * x[first + j];
  }
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/* residual -= factor row */
LANES_INLINE void subtract_row(const qd_cone_workspace *workspace, const row_block *block,
                               const double *row, double factor, double *residual) {
  const int n = workspace->variable_count;
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->tile_original[place], width = n - first;
    const double *from = row + workspace->block_from[block->tile_start + k];
    if (width >= 4)
      for (int j = 0; j < 4; ++j) residual[first + j] -= factor * from[j];
    else
      for (int j = 0; j < width; ++j) residual[first + j] -= factor * from[j];
  }
}

/* 1 if four numbers may be read where a tile of any row of the block begins: in the last tile that
 * may reach into the next row, whose numbers meet zeros. Behind the last row of all there is none.
 */
LANES_INLINE int reads_in_fours(const qd_cone_workspace *workspace, const row_block *block) {
  const int last = block->first_row + block->row_count;
  const int equality = block->first_row >= workspace->row_count;
  const row_source *source = equality ? &workspace->source_C : &workspace->source_G;
  return source->start || workspace->variable_count % 4 == 0 ||
         last < workspace->row_count + (equality ? workspace->equality_count : 0);
}

/* w = rows i .. i + 3 of a block (at most `left` of them) times x, and residual -= their sum with
 * the weights `dual`. Vectors over columns have whole tiles, in the caller's order; x is zero
 * behind the last column. */
LANES_INLINE void measure_four(const qd_cone_workspace *workspace, const row_block *block, int i,
                               int left, const double *x, const double *dual, double *w,
                               double *residual) {
  const double *row[4];
  const int *places = workspace->system.block_tiles + block->tile_start;
  const int *from = workspace->block_from + block->tile_start;
  lanes a0 = {0.0}, a1 = {0.0}, a2 = {0.0}, a3 = {0.0}, sums, load = {0.0};
  for (int k = 0; k < 4; ++k) {
    row[k] = conic_caller_row(workspace, block->first_row + i + (k < left ? k : left - 1));
    load[k] = k < left ? dual[k] : 0.0;
  }
  for (int t = 0; t < block->tile_count; ++t) {
    const lanes at = LANES_OF(x + 4 * (size_t)workspace->tile_original[places[t]]);
    a0 += LANES_FROM(row[0] + from[t]) * at;
    a1 += LANES_FROM(row[1] + from[t]) * at;
    a2 += LANES_FROM(row[2] + from[t]) * at;
    a3 += LANES_FROM(row[3] + from[t]) * at;
  }
  lanes_sums(&sums, &a0, &a1, &a2, &a3);
  for (int k = 0; k < 4 && k < left; ++k) w[k] = sums[k];
  if (load[0] == 0.0 && load[1] == 0.0 && load[2] == 0.0 && load[3] == 0.0) return;
  for (int t = 0; t < block->tile_count; ++t) {
    double *out = residual + 4 * (size_t)workspace->tile_original[places[t]];
    LANES_AT(out) -=
        (load[0] * LANES_FROM(row[0] + from[t]) + load[1] * LANES_FROM(row[1] + from[t])) +
        (load[2] * LANES_FROM(row[2] + from[t]) + load[3] * LANES_FROM(row[3] + from[t]));
  }
}

/* w = rows of a block times x, residual -= rows' dual: `dual` and `w` begin with its first row. */
LANES_INLINE void measure_block(const qd_cone_workspace *workspace, const row_block *block,
                                const double *x, const double *dual, double *w, double *residual) {
  if (reads_in_fours(workspace, block)) {
    for (int i = 0; i < block->row_count; i += 4)
      measure_four(workspace, block, i, block->row_count - i, x, dual + i, w + i, residual);
    return;
  }
  for (int i = 0; i < block->row_count; ++i) {
    const double *row = conic_caller_row(workspace, block->first_row + i);
    w[i] = row_dot(workspace, block, row, x);
    if (dual[i] != 0.0) subtract_row(workspace, block, row, dual[i], residual);
  }
}

/* A row of Q, whole or in tiles, times x */
LANES_INLINE double Q_row_dot(const row_source *source, int i, int diagonal, int n,
                              const double *x) {
  const double *row = source_row(source, (size_t)i);
  double part[4] = {0.0, 0.0, 0.0, 0.0};
  if (diagonal) {
    const double *own = source_tile(source, i, i / 4);
    return own ? own[i % 4] * x[i] : 0.0;
  }
  if (!source->start) {
    int j = 0;
    for (; j + 4 <= n; j += 4)
      for (int k = 0; k < 4; ++k) part[k] += row[j + k] * x[j + k];
    for (; j < n; ++j) part[0] += row[j] * x[j];
  } else {
    for (int e = source->start[i]; e < source->start[i + 1]; ++e, row += 4) {
      const int first = 4 * source->tiles[e];
      if (n - first >= 4)
        for (int k = 0; k < 4; ++k) part[k] += row[k] * x[first + k];
      else
        for (int k = 0; k < n - first; ++k) part[0] += row[k] * x[first + k];
    }
  }
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Qx + b and the objective */
LANES_INLINE double cost_gradient(const qd_cone_workspace *workspace,
                                  const qd_cone_program *program, const double *x,
                                  double *gradient) {
  const int n = program->variable_count, diagonal = workspace->system.Q_is_diagonal;
  double objective = 0.0;
  for (int i = 0; i < n; ++i) {
    const double Qx = Q_row_dot(&workspace->source_Q, i, diagonal, n, x);
    gradient[i] = Qx + program->b[i];
    objective += x[i] * (0.5 * Qx + program->b[i]);
  }
  return objective;
}

/* Residuals from the caller's own numbers, where they are not zero. */
QD_CLONES
static void measure(const qd_cone_workspace *workspace, const qd_cone_program *program,
                    const double *x, const double *slack, const double *dual, const double *dual_eq,
                    qd_cone_info *info) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  double *residual = workspace->work_x, *whole_x = workspace->dx, *w = workspace->work_row2;
  double primal = 0.0, gap = 0.0;
  info->objective = cost_gradient(workspace, program, x, residual);
  for (int k = 0; k < workspace->column_count; ++k) whole_x[k] = k < n ? x[k] : 0.0;
  for (int i = 0; i < m + p; ++i) w[i] = 0.0; /* rows left out */
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    const int first = block->first_row;
    measure_block(workspace, block, whole_x, first < m ? dual + first : dual_eq + (first - m),
                  w + first, residual);
  }
  for (int i = 0; i < p; ++i) primal = larger(primal, fabs(w[m + i] + program->c[i]));
  for (int i = 0; i < m; ++i) w[i] += program->g[i];
  for (int k = 0, row = 0; k < program->cone_count; ++k) {
    const int linear = program->cone_kind[k] == QD_ORTHANT, dim = program->cone_dim[k];
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    if (linear) {
      for (int i = row; i < row + dim; ++i) {
        primal = larger(primal, -w[i]);
        gap = larger(gap, fabs(slack[i] * dual[i] - target));
      }
    } else {
      double size = 0.0, head = slack[row] * dual[row] - target;
      for (int i = row + 1; i < row + dim; ++i) {
        size += w[i] * w[i];
        head += slack[i] * dual[i];
        gap = larger(gap, fabs(slack[row] * dual[i] + dual[row] * slack[i]));
      }
      gap = larger(gap, fabs(head));
      primal = larger(primal, sqrt(size) - w[row]);
    }
    row += dim;
  }
  info->primal_residual = primal;
  info->dual_residual = max_norm(residual, n);
  info->complementarity = gap;
}

/* largest |factor row_j value_j|; value NULL: ones */
LANES_INLINE double largest_term(const qd_cone_workspace *workspace, const row_block *block,
                                 const double *row, double factor, const double *value) {
  const int n = workspace->variable_count;
  double worst = 0.0;
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->tile_original[place];
    const double *from = row + workspace->block_from[block->tile_start + k];
    for (int j = 0; j < 4 && first + j < n; ++j)
      worst = larger(worst, fabs(from[j] * factor * (value ? value[first + j] : 1.0)));
  }
  return worst;
}

/* Largest number that Qx + b - G'dual - C'dual_eq is a sum of, in the caller's units. */
static double largest_force(const qd_cone_workspace *workspace, const qd_cone_program *program,
                            const double *x, const double *dual, const double *dual_eq) {
  const int n = program->variable_count, m = program->row_count;
  double worst = max_norm(program->b, n);
  if (worst == 0.0) { /* no force is given: the natural one, in the units of its least column */
    double scale = 0.0;
    for (int k = 0; k < workspace->column_count; ++k)
      if (workspace->column_of[k] >= 0) scale = larger(scale, workspace->column_scale[k]);
    worst = workspace->b_size / scale;
  }
  for (int i = 0; i < n; ++i)
    for (int tile = 0; 4 * tile < n; ++tile) {
      const double *entry = source_tile(&workspace->source_Q, i, tile);
      for (int j = 4 * tile; entry && j < 4 * tile + 4 && j < n; ++j)
        worst = larger(worst, fabs(entry[j - 4 * tile] * x[j]));
    }
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int row = block->first_row; row < block->first_row + block->row_count; ++row)
      worst = larger(worst, largest_term(workspace, block, conic_caller_row(workspace, row),
                                         row < m ? dual[row] : dual_eq[row - m], NULL));
  }
  return worst;
}

/* Largest number that Gx + g and Cx + c are sums of, or would be where the cost alone sends x: each
 * column by itself. `free_x` (n): scratch. */
static double largest_length(const qd_cone_workspace *workspace, const qd_cone_program *program,
                             const double *x, double *free_x) {
  double worst = larger(max_norm(program->g, program->row_count),
                        max_norm(program->c, program->equality_count));
  for (int k = 0; k < workspace->column_count; ++k)
    if (workspace->column_of[k] >= 0) {
      const int j = workspace->column_of[k];
      const double *own = source_tile(&workspace->source_Q, j, j / 4);
      const int is_held = own != NULL && own[j % 4] > 0.0; /* else only rows can say how far */
      free_x[j] = is_held || worst == 0.0 ? workspace->column_scale[k] * workspace->b[k] : 0.0;
    }
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int row = block->first_row; row < block->first_row + block->row_count; ++row) {
      const double *data = conic_caller_row(workspace, row);
      worst = larger(worst, largest_term(workspace, block, data, 1.0, x));
      /* an equality holds wherever the cost pulls, but for the rounding of that pull */
      worst = larger(worst, largest_term(workspace, block, data,
                                         row < program->row_count ? 1.0 : PULL_ROUNDING, free_x));
    }
  }
  return worst;
}

/* The methods judge residuals in scaled columns, in natural units made of all of them. That can
 * hide a column or a row whose own scale is far smaller: no answer is one unless what is left of
 * the forces and of the rows is this share of what they are sums of, in the caller's own numbers.
 * Costs nothing where b and g alone show it. */
static int is_certified(const qd_cone_workspace *workspace, const qd_cone_program *program,
                        double tolerance, const double *x, const double *dual,
                        const double *dual_eq, const qd_cone_info *info) {
  const double share = larger(CERTIFIED, 10.0 * tolerance);
  const double force = info->dual_residual / share, length = info->primal_residual / share;
  return (force <= max_norm(program->b, program->variable_count) ||
          force <= largest_force(workspace, program, x, dual, dual_eq)) &&
         (length <= ROUNDING_UNITS * workspace->length ||
          length <= max_norm(program->g, program->row_count) ||
          length <= largest_length(workspace, program, x, workspace->work_x));
}

static void clear_outputs(const qd_cone_program *program, double *x, double *slack, double *dual,
                          double *dual_eq) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  if (n > 0 && x) memset(x, 0, (size_t)n * sizeof(double));
  if (m > 0 && slack) memset(slack, 0, (size_t)m * sizeof(double));
  if (m > 0 && dual) memset(dual, 0, (size_t)m * sizeof(double));
  if (p > 0 && dual_eq) memset(dual_eq, 0, (size_t)p * sizeof(double));
}

qd_status qd_cone_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                        const qd_cone_program *program, double *x, double *slack, double *dual,
                        double *dual_eq, qd_cone_info *info) {
  const conic_program dense = {*program, NULL, NULL, NULL};
  return conic_solve(workspace, options, &dense, x, slack, dual, dual_eq, info);
}

qd_status conic_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                      const conic_program *source, double *x, double *slack, double *dual,
                      double *dual_eq, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const qd_cone_options defaults = qd_cone_options_default();
  const qd_cone_options *o = options ? options : &defaults;
  memset(info, 0, sizeof *info);
  info->primal_residual = info->dual_residual = info->complementarity = HUGE_VAL;
  info->status = o->tolerance > 0.0 && o->iteration_limit >= 0 ? conic_load(workspace, source)
                                                               : QD_BAD_ARGUMENT;
  if (info->status != QD_OK) {
    clear_outputs(program, x, slack, dual, dual_eq);
    return info->status;
  }
  const int polish = o->polish && workspace->exact;
  const int stages = polish ? (int)(sizeof polish_from / sizeof polish_from[0]) : 0;
  const int kept = workspace->exact ? (o->iteration_limit < 80 ? o->iteration_limit / 2 : 40) : 0;
  const int path_limit = o->iteration_limit - kept; /* the rest: method of multipliers */
  int polished = 0, done = conic_free_minimum(workspace, info);
  workspace->origin = ORIGIN_FREE;
  if (!done && polish && conic_dual_active_set(workspace)) {
    workspace->origin = ORIGIN_ACTIVE_SET;
    done = 1;
  }
  if (done) polished = polish && conic_polish(workspace, info);
  if (workspace->origin == ORIGIN_ACTIVE_SET) done = polished;
  for (int stage = 0; stage <= stages && !done; ++stage) {
    const double goal = stage < stages ? larger(polish_from[stage], o->tolerance) : o->tolerance;
    info->status = conic_follow_path(workspace, goal, path_limit, stage > 0, info);
    if (info->status != QD_OK) break;
    done = polished = polish && conic_polish(workspace, info);
  }
  if (info->status != QD_OK && info->status != QD_UNBOUNDED && workspace->exact)
    if (conic_rescue(workspace, o->tolerance, o->iteration_limit - info->iterations, o->polish,
                     &polished, info))
      info->status = QD_OK;
  if (!workspace->exact &&
      (info->status == QD_NUMERICAL_TROUBLE ||
       (info->status == QD_ITERATION_LIMIT && o->iteration_limit >= RETRY_FROM)))
    info->status = conic_retry_path(workspace, o->tolerance, o->iteration_limit, info);
  info->polished = polished;
  if (polished)
    hand_out(workspace, workspace->polish_x, workspace->polish_slack, workspace->polish_dual, x,
             slack, dual, dual_eq);
  else
    hand_out(workspace, workspace->x, workspace->slack, workspace->dual, x, slack, dual, dual_eq);
  measure(workspace, program, x, slack, dual, dual_eq, info);
  if (info->status == QD_OK && !isfinite(info->objective + info->primal_residual +
                                         info->dual_residual + info->complementarity))
    info->status = QD_NUMERICAL_TROUBLE; /* numbers beyond the range of a double */
  if (info->status == QD_OK &&
      !is_certified(workspace, program, o->tolerance, x, dual, dual_eq, info))
    info->status = QD_NUMERICAL_TROUBLE;
  return info->status;
}
