/* Converts the caller's program to tiles and groups: rows become blocks of tiles, columns are
 * scaled. conic/program/structure.c finds the structure. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/program/structure.h"
#include "numerics/tiles/dense_tiles.h"

/* ------------------------------------------------------------ checks */

/* 1 if all arrays that a program of these sizes needs are given. */
static int is_complete(const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int has_Q = program->Q || source->Q, has_G = program->G || source->G;
  const int has_C = program->C || source->C;
  const int has_rows = has_G && program->g && program->cone_kind && program->cone_dim;
  return has_Q && program->b && (program->row_count == 0 || has_rows) &&
         (program->equality_count == 0 || (has_C && program->c));
}

/* 1 if all cones have known kinds up to `last` and together cover all rows. */
static int cones_fit(const qd_cone_program *program, int last) {
  const int m = program->row_count;
  int rows = 0;
  for (int k = 0; k < program->cone_count; ++k) {
    const int dim = program->cone_dim[k], kind = program->cone_kind[k];
    if (dim < 1 || dim > m - rows || kind < QD_ORTHANT || kind > last ||
        (program->target_mu && program->target_mu[k] < 0.0)) {
      return 0;
    }
    rows += dim;
  }
  return rows == m;
}

int conic_makes_sense(const conic_size *room, const conic_program *source, int last_kind) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  const int are_sizes = n >= 1 && m >= 0 && p >= 0 && program->cone_count >= 0;
  const int has_room = n <= room->variables && m <= room->rows && p <= room->equalities;
  return are_sizes && has_room && is_complete(source) && cones_fit(program, last_kind);
}

/* ------------------------------------------------------------ scaled copies */

/* Curvature that interval rows add to a column. */
static double spring_of(const qd_cone_workspace *workspace, int j) {
  return workspace->ends.count > 0 ? workspace->ends.spring[j] : 0.0;
}

/* Scales columns to a unit diagonal of Q plus springs. A column without curvature is scaled by its
 * largest row entry instead. */
static void scale_columns(qd_cone_workspace *workspace, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  double largest = 0.0, *size = workspace->work.x;
  int sprung = 0;
  if (workspace->ends.count > 0) {
    conic_ends_find_springs(workspace, source);
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
    if (q > NO_COST * largest) {
      workspace->program.column_scale[k] = 1.0 / sqrt(q);
    } else {
      if (workspace->program.definite) {
        rows_find_largest(source, size);
      }
      workspace->program.column_scale[k] = size[column] > 0.0 ? 1.0 / size[column] : 1.0;
      workspace->program.definite = 0;
    }
    workspace->program.b[k] = program->b[column] * workspace->program.column_scale[k];
  }
  workspace->program.springs_alone = workspace->system.Q_is_diagonal && sprung &&
                                     workspace->program.definite && !workspace->ends.any_coupled;
  if (!workspace->program.definite || sprung) {
    workspace->system.Q_is_diagonal = 0; /* Q is not the identity then */
  }
}

/* Reads four scaled columns of a row, internal columns 4 place .. 4 place + 3, starting at
 * `from`. */
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

/* Scales of the columns in the caller's order. */
static const double *caller_scales(const qd_cone_workspace *workspace) {
  double *scale = workspace->work.dx;
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      scale[workspace->program.column_of[k]] = workspace->program.column_scale[k];
    }
  }
  return scale;
}

static void scale_equalities(qd_cone_workspace *workspace, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const double *columns = program->equality_count > 0 ? caller_scales(workspace) : NULL;
  for (int i = 0; i < program->equality_count; ++i) {
    const int row = program->row_count + i;
    const double norm = rows_norm(source, row, columns);
    /* a row that vanishes in scaled columns gives infinite numbers, which are reported */
    const double scale = norm > 0.0 || !conic_row_is_empty(workspace, row) ? 1.0 / norm : 1.0;
    workspace->program.row_scale[row] = scale;
    workspace->program.lane_scale[conic_lane_of(workspace, row)] = scale;
    workspace->program.g[workspace->program.slot_of[row]] = program->c[i] * scale;
  }
}

/* Scales the rows of every cone to the largest norm of all, or less where the cone's offset would
 * then exceed the free motion and the offsets of violated cones: such a cone is out of reach.
 * Scales are powers of two, which do not round. */
static void make_rows_alike(qd_cone_workspace *workspace, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const double *columns = caller_scales(workspace);
  double *norm = workspace->program.lane_scale, *offset = workspace->program.compliance;
  double largest = 0.0, way = max_norm(workspace->program.b, workspace->program.column_count);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    norm[c] = offset[c] = 0.0;
  }
  for (int row = 0; row < program->row_count; ++row) {
    if (workspace->program.slot_of[row] < 0 || conic_is_interval_row(workspace, row)) {
      continue;
    }
    const int lane = conic_lane_of(workspace, row);
    norm[lane] = larger(norm[lane], rows_norm(source, row, columns));
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
    if (workspace->program.slot_of[row] < 0 || conic_is_interval_row(workspace, row)) {
      continue;
    }
    workspace->program.row_scale[row] = norm[conic_lane_of(workspace, row)];
    workspace->program.g[workspace->program.slot_of[row]] *= workspace->program.row_scale[row];
  }
  memset(workspace->program.compliance, 0, (size_t)workspace->program.lane_count * sizeof(double));
}

void conic_clear_rows(qd_cone_workspace *workspace) {
  conic_zero_slots(workspace, workspace->work.row); /* padded lanes, which products never write */
  conic_zero_slots(workspace, workspace->work.row2);
  conic_zero_slots(workspace, workspace->work.residual_row);
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

/* 1 if rows given as tiles fit; dense rows always fit. */
static int rows_fit(const qd_cone_workspace *workspace, const conic_program *source) {
  const size_t G = source->G ? (size_t)source->G->start[source->program.row_count] : 0;
  const size_t C = source->C ? (size_t)source->C->start[source->program.equality_count] : 0;
  return G + C <= workspace->capacity.row_tiles;
}

qd_status conic_load(qd_cone_workspace *workspace, const conic_program *source,
                     row_scaling scaling) {
  const qd_cone_program *program = &source->program;
  const int last_kind = workspace->soft.natively ? QD_INTERVAL : QD_LORENTZ;
  if (!conic_makes_sense(&workspace->capacity, source, last_kind) || !rows_fit(workspace, source)) {
    return QD_BAD_ARGUMENT;
  }
  workspace->active.hard_penalty = HARD_ROW_PENALTY;
  workspace->active.rows.along = workspace->active.rows.diagonal;
  workspace->units.by_offsets = 0;
  workspace->path.ray_reach = 0.0;
  workspace->program.variable_count = program->variable_count;
  workspace->program.row_count = program->row_count;
  workspace->program.equality_count = program->equality_count;
  workspace->program.source_Q = source_of(program->Q, program->variable_count, source->Q);
  workspace->program.source_G = source_of(program->G, program->variable_count, source->G);
  workspace->program.source_C = source_of(program->C, program->variable_count, source->C);
  const qd_status status = conic_read_masks(workspace, program);
  if (status != QD_OK) {
    return status;
  }
  conic_make_groups(workspace, program);
  conic_place_cones(workspace, program);
  if (!conic_find_structure(workspace, program, source->ordered)) {
    return QD_OUT_OF_CAPACITY;
  }
  scale_columns(workspace, source);
  copy_Q(workspace);
  if (scaling == ROWS_ALIKE) {
    make_rows_alike(workspace, source);
  }
  scale_equalities(workspace, source);
  const double squares = conic_make_blocks(workspace, program);
  dense_tiles_choose(&workspace->system);
  tiles_note_products(&workspace->system);
  conic_clear_rows(workspace);
  if (workspace->ends.count > 0) {
    conic_ends_find_push(workspace);
  }
  return squares < HUGE_VAL ? QD_OK : QD_NOT_FINITE;
}
