/* The rigid program of one whose rows give way (soft.h). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/soft.h"
#include "numerics/conic/workspace.h"

/* ------------------------------------------------------------ room */

static int tile_up(int columns) { return (columns + 3) / 4 * 4; }

/* Springs of one Lorentz cone have tiles of their own, slips and other springs share them. */
conic_size soft_rigid_size(const conic_size *size) {
  conic_size rigid = *size;
  const int more = size->is_dense ? size->compliant + size->intervals
                                  : 4 * size->compliant + tile_up(2 * size->intervals) + 8;
  if (size->compliant + size->intervals == 0) {
    return rigid;
  }
  rigid.variables = (size->is_dense ? size->variables : tile_up(size->variables)) + more;
  if (size->is_dense && rigid.variables > FEW_COLUMNS) {
    rigid.variables = aligned_columns_capacity(rigid.variables);
  }
  rigid.rows += size->intervals;
  rigid.equalities += size->intervals;
  rigid.largest_cone = size->is_dense ? rigid.rows : rigid.largest_cone;
  const size_t tiles = ((size_t)rigid.variables + 3) / 4, all = tiles * (tiles + 1) / 2;
  if (size->is_dense) {
    rigid.row_tiles = ((size_t)rigid.rows + (size_t)rigid.equalities) * tiles;
    rigid.fill = all;
  } else {
    const size_t own = ((size_t)size->variables + 3) / 4;
    rigid.row_tiles += (size_t)size->largest_cone * (size_t)size->compliant +
                       4 * (size_t)size->intervals + 2 * (size_t)rigid.rows;
    rigid.fill += (tiles - own) * (own < SOFT_TILES ? own : SOFT_TILES) + 4 * (tiles - own);
    rigid.fill = rigid.fill < all ? rigid.fill : all;
  }
  return rigid;
}

static void lay_out_matrix(soft_matrix *matrix, size_t rows, size_t columns, size_t tiles,
                           int is_dense, arena *a) {
  matrix->room = is_dense ? rows * columns : 4 * tiles;
  matrix->start = arena_ints(a, rows + 1);
  matrix->tiles = arena_ints(a, is_dense ? 0 : tiles);
  matrix->values = arena_doubles(a, matrix->room + 4);
}

void soft_lay_out(soft_program *soft, const conic_size *size, arena *a) {
  const conic_size rigid = soft_rigid_size(size);
  const size_t n = (size_t)rigid.variables, m = (size_t)rigid.rows, p = (size_t)rigid.equalities;
  soft->room = *size;
  soft->row = arena_take(a, ((size_t)size->rows + 1) * sizeof(soft_row));
  soft->spring_eq = arena_ints(a, (size_t)size->equalities);
  lay_out_matrix(&soft->Q, n, n, 8 * rigid.fill + n, size->is_dense, a);
  lay_out_matrix(&soft->G, m, n, rigid.row_tiles, size->is_dense, a);
  lay_out_matrix(&soft->C, p, n, rigid.row_tiles, size->is_dense, a);
  soft->kind = arena_ints(a, m);
  soft->dim = arena_ints(a, m);
  double **over_columns[] = {&soft->b, &soft->x, &soft->term};
  double **over_rows[] = {&soft->g, &soft->target, &soft->slack, &soft->dual};
  double **over_equalities[] = {&soft->c, &soft->dual_eq};
  for (size_t k = 0; k < sizeof over_columns / sizeof over_columns[0]; ++k) {
    *over_columns[k] = arena_doubles(a, n);
  }
  for (size_t k = 0; k < sizeof over_rows / sizeof over_rows[0]; ++k) {
    *over_rows[k] = arena_doubles(a, m);
  }
  for (size_t k = 0; k < sizeof over_equalities / sizeof over_equalities[0]; ++k) {
    *over_equalities[k] = arena_doubles(a, p);
  }
  soft->four_x = arena_doubles(a, 4 * n);
  soft->four_stationarity = arena_doubles(a, 4 * n);
  soft->four_slack = arena_doubles(a, 4 * m);
  soft->four_dual = arena_doubles(a, 4 * m);
  soft->four_equality = arena_doubles(a, 4 * p);
  soft->four_dual_equality = arena_doubles(a, 4 * p);
}

/* ------------------------------------------------------------ checks */

/* A compliance: finite and not negative; counts those that are not zero. */
static qd_status check_compliances(const double *compliance, int count, int *found) {
  for (int i = 0; compliance && i < count; ++i) {
    if (!isfinite(compliance[i])) {
      return QD_NOT_FINITE;
    }
    if (compliance[i] < 0.0) {
      return QD_BAD_ARGUMENT;
    }
    *found += compliance[i] > 0.0;
  }
  return QD_OK;
}

static qd_status check_interval(const qd_cone_program *program, int row, int dim) {
  if (!program->lower || !program->upper) {
    return QD_BAD_ARGUMENT;
  }
  for (int i = row; i < row + dim; ++i) {
    if (isnan(program->lower[i]) || isnan(program->upper[i])) {
      return QD_NOT_FINITE;
    }
    if (program->lower[i] > program->upper[i] || program->lower[i] == HUGE_VAL ||
        program->upper[i] == -HUGE_VAL) {
      return QD_BAD_ARGUMENT;
    }
  }
  return QD_OK;
}

static qd_status check_cones(const soft_program *soft, const qd_cone_program *program) {
  int row = 0, intervals = 0;
  for (int k = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_dim[k], kind = program->cone_kind[k];
    if (dim < 1 || dim > program->row_count - row || kind < QD_ORTHANT || kind > QD_INTERVAL ||
        (program->target_mu && program->target_mu[k] < 0.0)) {
      return QD_BAD_ARGUMENT;
    }
    if (kind == QD_INTERVAL) {
      const qd_status status = check_interval(program, row, dim);
      if (status != QD_OK) {
        return status;
      }
      intervals += dim;
    }
  }
  return row == program->row_count && intervals <= soft->room.intervals ? QD_OK : QD_BAD_ARGUMENT;
}

/* What a program of these sizes needs is there. */
static int is_complete(const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int has_rows =
      (program->G || source->G) && program->g && program->cone_kind && program->cone_dim;
  const int has_equalities = (program->C || source->C) && program->c;
  return (program->Q || source->Q) && program->b && (program->row_count == 0 || has_rows) &&
         (program->equality_count == 0 || has_equalities);
}

qd_status soft_check(const soft_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const conic_size *room = &soft->room;
  int compliant = 0;
  if (program->variable_count < 1 || program->row_count < 0 || program->equality_count < 0 ||
      program->cone_count < 0 || program->variable_count > room->variables ||
      program->row_count > room->rows || program->equality_count > room->equalities ||
      !is_complete(source) || room->compliant + room->intervals == 0 ||
      (!source->Q) != room->is_dense) {
    return QD_BAD_ARGUMENT;
  }
  qd_status status = check_cones(soft, program);
  if (status == QD_OK) {
    status = check_compliances(program->compliance, program->row_count, &compliant);
  }
  if (status == QD_OK) {
    status = check_compliances(program->compliance_eq, program->equality_count, &compliant);
  }
  if (status != QD_OK) {
    return status;
  }
  if (compliant > room->compliant + room->intervals) {
    return QD_BAD_ARGUMENT;
  }
  return all_finite(program->b, program->variable_count) &&
                 all_finite(program->g, program->row_count) &&
                 all_finite(program->c, program->equality_count)
             ? QD_OK
             : QD_NOT_FINITE;
}

/* ------------------------------------------------------------ rows of a matrix */

static void matrix_open(soft_matrix *matrix, int columns, int is_dense) {
  matrix->rows = matrix->is_full = 0;
  matrix->columns = is_dense ? columns : 0;
  matrix->start[0] = 0;
}

static int has_room(soft_matrix *matrix, size_t numbers) {
  const size_t taken = matrix->columns > 0 ? (size_t)matrix->rows * (size_t)matrix->columns
                                           : 4 * (size_t)matrix->start[matrix->rows];
  matrix->is_full |= taken + numbers > matrix->room;
  return !matrix->is_full;
}

/* The next row: `factor` times row i of the source, whose rows have n numbers; nothing if i < 0. */
static void matrix_add_row(soft_matrix *matrix, const double *dense, const sparse_rows *tiles,
                           int n, int i, double factor) {
  const int count = tiles && i >= 0 ? tiles->start[i + 1] - tiles->start[i] : 0;
  if (!has_room(matrix, matrix->columns > 0 ? (size_t)matrix->columns : 4 * (size_t)count)) {
    return;
  }
  double *to =
      matrix->values + (matrix->columns > 0 ? (size_t)matrix->rows * (size_t)matrix->columns
                                            : 4 * (size_t)matrix->start[matrix->rows]);
  if (matrix->columns > 0) {
    memset(to, 0, (size_t)matrix->columns * sizeof(double));
    for (int j = 0; j < n && i >= 0; ++j) {
      to[j] = factor * dense[(size_t)i * (size_t)n + (size_t)j];
    }
  }
  for (int k = 0; k < count; ++k) {
    const size_t at = (size_t)(tiles->start[i] + k);
    matrix->tiles[matrix->start[matrix->rows] + k] = tiles->tiles[at];
    for (int j = 0; j < 4; ++j) {
      to[4 * k + j] = factor * tiles->values[4 * at + (size_t)j];
    }
  }
  matrix->start[matrix->rows + 1] = matrix->start[matrix->rows] + count;
  ++matrix->rows;
}

/* The last row gets this tile, behind those that it has, unless it is there. */
static void matrix_add_tile(soft_matrix *matrix, int tile) {
  int *end = matrix->start + matrix->rows;
  if (matrix->columns > 0 || matrix->is_full ||
      (*end > end[-1] && matrix->tiles[*end - 1] == tile) || !has_room(matrix, 4)) {
    return;
  }
  memset(matrix->values + 4 * (size_t)*end, 0, 4 * sizeof(double));
  matrix->tiles[(*end)++] = tile;
}

/* Into the last row, behind the columns that it has. */
static void matrix_put(soft_matrix *matrix, int column, double value) {
  matrix_add_tile(matrix, column / 4);
  if (matrix->is_full) {
    return;
  }
  if (matrix->columns > 0) {
    matrix->values[(size_t)(matrix->rows - 1) * (size_t)matrix->columns + (size_t)column] = value;
  } else {
    matrix->values[4 * (size_t)(matrix->start[matrix->rows] - 1) + (size_t)(column % 4)] = value;
  }
}

/* ------------------------------------------------------------ rows of the program */

static double compliance_of(const double *compliance, int row) {
  return compliance ? compliance[row] : 0.0;
}

static double curvature_at(const conic_program *source, int j) {
  const int n = source->program.variable_count;
  if (!source->Q) {
    return source->program.Q[(size_t)j * (size_t)n + (size_t)j];
  }
  for (int k = source->Q->start[j]; k < source->Q->start[j + 1]; ++k) {
    if (source->Q->tiles[k] == j / 4) {
      return source->Q->values[4 * (size_t)k + (size_t)(j % 4)];
    }
  }
  return 0.0;
}

/* From the nearer end, which takes the fewest digits from the multiplier. */
static void choose_end(soft_row *row, double lower, double upper) {
  const int from_lower = isfinite(lower) && (!isfinite(upper) || fabs(lower) <= fabs(upper));
  row->kind = SOFT_END;
  row->sign = from_lower ? 1.0 : -1.0;
  row->base = from_lower ? lower : upper;
  row->width = upper - lower;
  if (!isfinite(lower) && !isfinite(upper)) {
    row->kind = SOFT_EQUALITY;
    row->sign = 1.0;
    row->base = 0.0;
  } else if (lower == upper) {
    row->kind = SOFT_FORCE;
  }
  row->width = row->width < HUGE_VAL ? row->width : -1.0;
}

static void treat_rows(soft_program *soft, const qd_cone_program *program) {
  for (int k = 0, i = 0; k < program->cone_count; ++k) {
    for (int end = i + program->cone_dim[k]; i < end; ++i) {
      soft_row *row = soft->row + i;
      *row = (soft_row){.compliance = compliance_of(program->compliance, i),
                        .sign = 1.0,
                        .width = -1.0,
                        .row = -1,
                        .spring = -1,
                        .slip = -1,
                        .slip_row = -1};
      if (program->cone_kind[k] == QD_INTERVAL) {
        choose_end(row, program->lower[i], program->upper[i]);
      }
    }
  }
}

/* A variable behind all others. */
static int take_variable(soft_program *soft) { return soft->next++; }

/* Springs of a Lorentz cone keep to themselves: others would be coupled with it. */
static void close_tile(soft_program *soft) {
  soft->next = soft->room.is_dense ? soft->next : tile_up(soft->next);
}

/* Variables of all rows: soft->next is where they end. */
static void take_variables(soft_program *soft, const qd_cone_program *program) {
  soft->next = program->variable_count;
  close_tile(soft);
  for (int k = 0, i = 0; k < program->cone_count; ++k) {
    const int alone = program->cone_kind[k] == QD_LORENTZ && program->compliance;
    if (alone) {
      close_tile(soft);
    }
    for (int end = i + program->cone_dim[k]; i < end; ++i) {
      soft_row *row = soft->row + i;
      if (row->compliance > 0.0 && row->kind != SOFT_FORCE) {
        row->spring = take_variable(soft);
      }
      if (row->kind == SOFT_END && row->width >= 0.0) {
        row->slip = take_variable(soft);
      }
    }
    if (alone) {
      close_tile(soft);
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    soft->spring_eq[i] = compliance_of(program->compliance_eq, i) > 0.0 ? take_variable(soft) : -1;
  }
  close_tile(soft);
}

/* ------------------------------------------------------------ the parts */

/* x's cost, and that of springs; slips have none. */
static void write_cost(soft_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  double *own = soft->term, largest = 0.0;
  for (int j = 0; j < n; ++j) {
    largest = larger(largest, curvature_at(source, j));
  }
  soft->curvature = largest > 0.0 ? largest : 1.0;
  for (int j = n; j < soft->next; ++j) {
    own[j] = soft->curvature;
    soft->b[j] = 0.0;
  }
  for (int i = 0; i < program->row_count; ++i) {
    if (soft->row[i].slip >= 0) {
      own[soft->row[i].slip] = 0.0;
      soft->b[soft->row[i].slip] = soft->row[i].width;
    }
  }
  matrix_open(&soft->Q, soft->next, soft->room.is_dense);
  for (int j = 0; j < soft->next; ++j) {
    matrix_add_row(&soft->Q, program->Q, source->Q, n, j < n ? j : -1, 1.0);
    if (j >= n && own[j] > 0.0) {
      matrix_put(&soft->Q, j, own[j]);
    }
  }
  memcpy(soft->b, program->b, (size_t)n * sizeof(double));
}

/* b -= force times row i of G */
static void push(soft_program *soft, const conic_program *source, int i, double force) {
  const int n = source->program.variable_count;
  for (int j = 0; !source->G && j < n; ++j) {
    soft->b[j] -= force * source->program.G[(size_t)i * (size_t)n + (size_t)j];
  }
  for (int k = source->G ? source->G->start[i] : 0; source->G && k < source->G->start[i + 1]; ++k) {
    for (int j = 0; j < 4 && 4 * source->G->tiles[k] + j < n; ++j) {
      soft->b[4 * source->G->tiles[k] + j] -= force * source->G->values[4 * (size_t)k + (size_t)j];
    }
  }
}

/* The tiles of springs of rows first .. first + count, for each of them alike. */
static void write_spring_tiles(soft_program *soft, int first, int count, int of) {
  const double spring = sqrt(soft->row[of].compliance) * sqrt(soft->curvature);
  for (int i = first; i < first + count; ++i) {
    if (soft->row[i].spring < 0) {
      continue;
    }
    matrix_put(&soft->G, soft->row[i].spring, i == of ? spring : 0.0);
  }
}

/* A row of a cone as it is. */
static void write_cone_row(soft_program *soft, const conic_program *source, int first, int count,
                           int i) {
  const qd_cone_program *program = &source->program;
  soft->row[i].row = soft->G.rows;
  soft->g[soft->G.rows] = program->g[i];
  matrix_add_row(&soft->G, program->G, source->G, program->variable_count, i, 1.0);
  write_spring_tiles(soft, first, count, i);
}

/* sign (w + R base) + sqrt(R) v + t >= 0 */
static void write_end(soft_program *soft, const conic_program *source, int i) {
  const qd_cone_program *program = &source->program;
  soft_row *row = soft->row + i;
  push(soft, source, i, row->base);
  row->row = soft->G.rows;
  soft->g[soft->G.rows] = row->sign * (program->g[i] + row->compliance * row->base);
  matrix_add_row(&soft->G, program->G, source->G, program->variable_count, i, row->sign);
  write_spring_tiles(soft, i, 1, i);
  if (row->slip >= 0) {
    matrix_put(&soft->G, row->slip, 1.0);
  }
}

static void add_cone(conic_program *rigid, const soft_program *soft, int kind, int dim,
                     double target) {
  if (dim > 0) {
    soft->kind[rigid->program.cone_count] = kind;
    soft->dim[rigid->program.cone_count] = dim;
    soft->target[rigid->program.cone_count++] = target;
  }
}

/* Rows of a cone, one cone again; those of slips come behind. */
static void write_cone(soft_program *soft, const conic_program *source, int k, int first) {
  const qd_cone_program *program = &source->program;
  const int dim = program->cone_dim[k], kind = program->cone_kind[k], before = soft->G.rows;
  const double target = program->target_mu ? program->target_mu[k] : 0.0;
  for (int i = first; i < first + dim; ++i) {
    const soft_row *row = soft->row + i;
    if (row->kind == SOFT_CONE) {
      const int alone = kind == QD_ORTHANT;
      write_cone_row(soft, source, alone ? i : first, alone ? 1 : dim, i);
    } else if (row->kind == SOFT_END) {
      write_end(soft, source, i);
    } else if (row->kind == SOFT_FORCE) {
      push(soft, source, i, row->base);
    }
  }
  add_cone(&soft->rigid, soft, kind == QD_INTERVAL ? QD_ORTHANT : kind, soft->G.rows - before,
           target);
  const int slips = soft->G.rows;
  for (int i = first; i < first + dim; ++i) {
    if (soft->row[i].slip >= 0) {
      soft->row[i].slip_row = soft->G.rows;
      soft->g[soft->G.rows] = 0.0;
      matrix_add_row(&soft->G, NULL, NULL, 0, -1, 1.0);
      matrix_put(&soft->G, soft->row[i].slip, 1.0);
    }
  }
  add_cone(&soft->rigid, soft, QD_ORTHANT, soft->G.rows - slips, target);
}

static void write_equality(soft_program *soft, const double *dense, const sparse_rows *tiles, int n,
                           int i, double offset, int spring, double compliance) {
  soft->c[soft->C.rows] = offset;
  matrix_add_row(&soft->C, dense, tiles, n, i, 1.0);
  if (spring >= 0) {
    matrix_put(&soft->C, spring, sqrt(compliance) * sqrt(soft->curvature));
  }
}

static void write_equalities(soft_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  matrix_open(&soft->C, soft->next, soft->room.is_dense);
  for (int i = 0; i < program->equality_count; ++i) {
    write_equality(soft, program->C, source->C, n, i, program->c[i], soft->spring_eq[i],
                   compliance_of(program->compliance_eq, i));
  }
  for (int i = 0; i < program->row_count; ++i) {
    soft_row *row = soft->row + i;
    if (row->kind == SOFT_EQUALITY) {
      row->row = soft->C.rows;
      write_equality(soft, program->G, source->G, n, i, program->g[i], row->spring,
                     row->compliance);
    }
  }
}

static const sparse_rows *view(soft_matrix *matrix, sparse_rows *rows, const double **dense) {
  *dense = matrix->values;
  *rows = (sparse_rows){matrix->start, matrix->tiles, matrix->values};
  return matrix->columns > 0 ? NULL : rows;
}

int soft_write(soft_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  qd_cone_program *rigid = &soft->rigid.program;
  soft->rigid = *source;
  soft->variables = program->variable_count;
  soft->rows = program->row_count;
  soft->equalities = program->equality_count;
  rigid->cone_count = 0;
  treat_rows(soft, program);
  take_variables(soft, program);
  write_cost(soft, source);
  matrix_open(&soft->G, soft->next, soft->room.is_dense);
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    write_cone(soft, source, k, row);
  }
  write_equalities(soft, source);
  rigid->variable_count = soft->next;
  rigid->row_count = soft->G.rows;
  rigid->equality_count = soft->C.rows;
  rigid->b = soft->b;
  rigid->g = soft->g;
  rigid->c = soft->c;
  rigid->cone_kind = soft->kind;
  rigid->cone_dim = soft->dim;
  rigid->target_mu = program->target_mu ? soft->target : NULL;
  rigid->compliance = rigid->compliance_eq = rigid->lower = rigid->upper = NULL;
  soft->rigid.Q = view(&soft->Q, &soft->Q_rows, &rigid->Q);
  soft->rigid.G = view(&soft->G, &soft->G_rows, &rigid->G);
  soft->rigid.C = view(&soft->C, &soft->C_rows, &rigid->C);
  return !(soft->Q.is_full || soft->G.is_full || soft->C.is_full);
}
