/* Writes the rigid program of a program with compliant rows (compliance.h). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/workspace.h"

/* ------------------------------------------------------------ room */

static int tile_up(int columns) { return (columns + 3) / 4 * 4; }

/* Each Lorentz cone with springs has spring tiles of its own; slips and other springs share
 * tiles. */
conic_size compliance_rigid_size(const conic_size *size) {
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
    rigid.fill +=
        (tiles - own) * (own < COMPLIANT_TILES ? own : COMPLIANT_TILES) + 4 * (tiles - own);
    rigid.fill = rigid.fill < all ? rigid.fill : all;
  }
  return rigid;
}

static void lay_out_matrix(compliance_matrix *matrix, size_t rows, size_t columns, size_t tiles,
                           int is_dense, arena *a) {
  matrix->room = is_dense ? rows * columns : 4 * tiles;
  matrix->start = arena_ints(a, rows + 1);
  matrix->tiles = arena_ints(a, is_dense ? 0 : tiles);
  matrix->values = arena_doubles(a, matrix->room + 4);
}

void compliance_lay_out(compliant_program *soft, const conic_size *size, arena *a) {
  const conic_size rigid = compliance_rigid_size(size);
  const size_t n = (size_t)rigid.variables, m = (size_t)rigid.rows, p = (size_t)rigid.equalities;
  soft->room = *size;
  soft->plain = 0;
  soft->row = arena_take(a, ((size_t)size->rows + 1) * sizeof(compliant_row));
  soft->spring_eq = arena_ints(a, (size_t)size->equalities);
  lay_out_matrix(&soft->written.Q, n, n, 8 * rigid.fill + n, size->is_dense, a);
  lay_out_matrix(&soft->written.G, m, n, rigid.row_tiles, size->is_dense, a);
  lay_out_matrix(&soft->written.C, p, n, rigid.row_tiles, size->is_dense, a);
  ARENA_INTS(a, m, &soft->written.kind, &soft->written.dim, &soft->row_from);
  soft->equality_from = arena_ints(a, p);
  ARENA_DOUBLES(a, n, &soft->written.b, &soft->found.x, &soft->term);
  ARENA_DOUBLES(a, m, &soft->written.g, &soft->written.target, &soft->found.slack,
                &soft->found.dual, &soft->limits.compliance, &soft->limits.lower,
                &soft->limits.upper);
  ARENA_DOUBLES(a, p, &soft->written.c, &soft->found.dual_eq);
}

/* ------------------------------------------------------------ rows of a matrix */

static void matrix_open(compliance_matrix *matrix, int columns, int is_dense) {
  matrix->rows = matrix->is_full = 0;
  matrix->columns = is_dense ? columns : 0;
  matrix->start[0] = 0;
}

static int has_room(compliance_matrix *matrix, size_t numbers) {
  const size_t taken = matrix->columns > 0 ? (size_t)matrix->rows * (size_t)matrix->columns
                                           : 4 * (size_t)matrix->start[matrix->rows];
  matrix->is_full |= taken + numbers > matrix->room;
  return !matrix->is_full;
}

/* Appends `factor` times row i of the source, whose rows have n numbers; an empty row if i < 0. */
static void matrix_add_row(compliance_matrix *matrix, const double *dense, const sparse_rows *tiles,
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

/* Appends a tile to the last row, unless it is already its last tile. */
static void matrix_add_tile(compliance_matrix *matrix, int tile) {
  int *end = matrix->start + matrix->rows;
  if (matrix->columns > 0 || matrix->is_full ||
      (*end > end[-1] && matrix->tiles[*end - 1] == tile) || !has_room(matrix, 4)) {
    return;
  }
  memset(matrix->values + 4 * (size_t)*end, 0, 4 * sizeof(double));
  matrix->tiles[(*end)++] = tile;
}

/* Writes an entry of the last row, behind its last column. */
static void matrix_put(compliance_matrix *matrix, int column, double value) {
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

/* Takes the next free variable. */
static int take_variable(compliant_program *soft) { return soft->next++; }

/* Starts a new tile, so that springs of a Lorentz cone are not coupled with others. */
static void close_tile(compliant_program *soft) {
  soft->next = soft->room.is_dense ? soft->next : tile_up(soft->next);
}

/* Variables of all rows; soft->next is then the number of variables. */
static void take_variables(compliant_program *soft, const qd_cone_program *program) {
  soft->plain = 0;
  soft->next = program->variable_count;
  close_tile(soft);
  for (int k = 0, i = 0; k < program->cone_count; ++k) {
    const int alone = program->cone_kind[k] == QD_LORENTZ && program->compliance;
    if (alone) {
      close_tile(soft);
    }
    for (int end = i + program->cone_dim[k]; i < end; ++i) {
      compliant_row *row = soft->row + i;
      const int stands = row->kind < COMPLIANT_FORCE;
      row->row = row->slip_row = -1;
      row->spring = stands && row->compliance > 0.0 ? take_variable(soft) : -1;
      row->slip = row->kind == COMPLIANT_END && row->width >= 0.0 ? take_variable(soft) : -1;
    }
    if (alone) {
      close_tile(soft);
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    soft->spring_eq[i] =
        rows_compliance(program, program->row_count + i) > 0.0 ? take_variable(soft) : -1;
  }
  close_tile(soft);
}

/* ------------------------------------------------------------ the parts */

/* Cost of x and of springs; slips have a linear cost only. */
static void write_cost(compliant_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  double *own = soft->term, largest = 0.0;
  for (int j = 0; j < n; ++j) {
    largest = larger(largest, rows_curvature(source, j));
  }
  soft->curvature = largest > 0.0 ? largest : 1.0;
  for (int j = n; j < soft->next; ++j) {
    own[j] = soft->curvature;
    soft->written.b[j] = 0.0;
  }
  for (int i = 0; i < program->row_count; ++i) {
    if (soft->row[i].slip >= 0) {
      own[soft->row[i].slip] = 0.0;
      soft->written.b[soft->row[i].slip] = soft->row[i].width;
    }
  }
  matrix_open(&soft->written.Q, soft->next, soft->room.is_dense);
  for (int j = 0; j < n; ++j) {
    matrix_add_row(&soft->written.Q, program->Q, source->Q, n, j, 1.0);
  }
  for (int j = n; j < soft->next; ++j) {
    matrix_add_row(&soft->written.Q, NULL, NULL, 0, -1, 1.0);
    if (own[j] > 0.0) {
      matrix_put(&soft->written.Q, j, own[j]);
    }
  }
  memcpy(soft->written.b, program->b, (size_t)n * sizeof(double));
}

/* Appends the spring tiles of all rows first .. first + count to row `of`, so that the rows have
 * the same tiles. */
static void write_spring_tiles(compliant_program *soft, int first, int count, int of) {
  const double spring = sqrt(soft->row[of].compliance) * sqrt(soft->curvature);
  for (int i = first; i < first + count; ++i) {
    if (soft->row[i].spring < 0) {
      continue;
    }
    matrix_put(&soft->written.G, soft->row[i].spring, i == of ? spring : 0.0);
  }
}

/* The next row of G, which stands for row i. */
static int open_row(compliant_program *soft, int i) {
  soft->row_from[soft->written.G.rows] = i;
  return soft->row[i].row = soft->written.G.rows;
}

/* Writes a row of a cone unchanged. */
static void write_cone_row(compliant_program *soft, const conic_program *source, int first,
                           int count, int i) {
  const qd_cone_program *program = &source->program;
  soft->written.g[open_row(soft, i)] = program->g[i];
  matrix_add_row(&soft->written.G, program->G, source->G, program->variable_count, i, 1.0);
  write_spring_tiles(soft, first, count, i);
}

/* sign (w + R base) + sqrt(R) v + t >= 0 */
static void write_end(compliant_program *soft, const conic_program *source, int i) {
  const qd_cone_program *program = &source->program;
  compliant_row *row = soft->row + i;
  rows_add(source, i, -row->base, soft->written.b);
  soft->written.g[open_row(soft, i)] = row->sign * (program->g[i] + row->compliance * row->base);
  matrix_add_row(&soft->written.G, program->G, source->G, program->variable_count, i, row->sign);
  write_spring_tiles(soft, i, 1, i);
  if (row->slip >= 0) {
    matrix_put(&soft->written.G, row->slip, 1.0);
  }
}

/* Stores the compliance and limits of a native row. */
static void note_limits(compliant_program *soft, const compliant_row *row) {
  soft->natively = 1;
  soft->limits.compliance[row->row] = row->compliance;
  soft->limits.lower[row->row] = row->lower;
  soft->limits.upper[row->row] = row->upper;
}

/* Writes a native row. */
static void write_limited(compliant_program *soft, const conic_program *source, int i) {
  const qd_cone_program *program = &source->program;
  soft->written.g[open_row(soft, i)] = program->g[i];
  note_limits(soft, soft->row + i);
  matrix_add_row(&soft->written.G, program->G, source->G, program->variable_count, i, 1.0);
}

static void add_cone(conic_program *rigid, const compliant_program *soft, int kind, int dim,
                     double target) {
  if (dim > 0) {
    soft->written.kind[rigid->program.cone_count] = kind;
    soft->written.dim[rigid->program.cone_count] = dim;
    soft->written.target[rigid->program.cone_count++] = target;
  }
}

/* Writes the rows of a cone, again as one cone, and then the rows of its slips. */
static void write_cone(compliant_program *soft, const conic_program *source, int k, int first) {
  const qd_cone_program *program = &source->program;
  const int dim = program->cone_dim[k], kind = program->cone_kind[k], before = soft->written.G.rows;
  const double target = program->target_mu ? program->target_mu[k] : 0.0;
  for (int i = first; i < first + dim; ++i) {
    const compliant_row *row = soft->row + i;
    if (row->kind == COMPLIANT_CONE) {
      const int alone = kind == QD_ORTHANT;
      write_cone_row(soft, source, alone ? i : first, alone ? 1 : dim, i);
    } else if (row->kind == COMPLIANT_END) {
      write_end(soft, source, i);
    } else if (row->kind == COMPLIANT_FORCE) {
      rows_add(source, i, -row->base, soft->written.b);
    }
  }
  add_cone(&soft->written.rigid, soft, kind == QD_INTERVAL ? QD_ORTHANT : kind,
           soft->written.G.rows - before, target);
  const int limited = soft->written.G.rows;
  for (int i = first; i < first + dim; ++i) {
    if (soft->row[i].kind == COMPLIANT_LIMITED) {
      write_limited(soft, source, i);
    }
  }
  add_cone(&soft->written.rigid, soft, QD_INTERVAL, soft->written.G.rows - limited, target);
  const int slips = soft->written.G.rows;
  for (int i = first; i < first + dim; ++i) {
    if (soft->row[i].slip >= 0) {
      soft->row[i].slip_row = soft->written.G.rows;
      soft->row_from[soft->written.G.rows] = -1;
      soft->written.g[soft->written.G.rows] = 0.0;
      matrix_add_row(&soft->written.G, NULL, NULL, 0, -1, 1.0);
      matrix_put(&soft->written.G, soft->row[i].slip, 1.0);
    }
  }
  add_cone(&soft->written.rigid, soft, QD_ORTHANT, soft->written.G.rows - slips, target);
}

/* `from`: the caller's row. */
static void write_equality(compliant_program *soft, const double *dense, const sparse_rows *tiles,
                           int n, int i, int from, double offset, int spring, double compliance) {
  soft->equality_from[soft->written.C.rows] = from;
  soft->written.c[soft->written.C.rows] = offset;
  matrix_add_row(&soft->written.C, dense, tiles, n, i, 1.0);
  if (spring >= 0) {
    matrix_put(&soft->written.C, spring, sqrt(compliance) * sqrt(soft->curvature));
  }
}

static void write_equalities(compliant_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count;
  matrix_open(&soft->written.C, soft->next, soft->room.is_dense);
  for (int i = 0; i < program->equality_count; ++i) {
    write_equality(soft, program->C, source->C, n, i, program->row_count + i, program->c[i],
                   soft->spring_eq[i], rows_compliance(program, program->row_count + i));
  }
  for (int i = 0; i < program->row_count; ++i) {
    compliant_row *row = soft->row + i;
    if (row->kind == COMPLIANT_EQUALITY) {
      row->row = soft->written.C.rows;
      write_equality(soft, program->G, source->G, n, i, i, program->g[i], row->spring,
                     row->compliance);
    }
  }
}

static const sparse_rows *view(compliance_matrix *matrix, sparse_rows *rows, const double **dense) {
  *dense = matrix->values;
  *rows = (sparse_rows){matrix->start, matrix->tiles, matrix->values};
  return matrix->columns > 0 ? NULL : rows;
}

int compliance_rows_can_stay(const compliant_program *soft, const qd_cone_program *program) {
  int limited = 0;
  for (int i = 0; program->compliance_eq && i < soft->equalities; ++i) {
    if (program->compliance_eq[i] > 0.0) {
      return 0;
    }
  }
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    limited += soft->row[i].kind == COMPLIANT_LIMITED;
  }
  return limited > 0 && !soft->any_between && limited == soft->rows - soft->first_interval;
}

/* Keeps the program's own rows. */
static void write_limits(compliant_program *soft) {
  for (int i = soft->first_interval; i < soft->rows; ++i) {
    compliant_row *row = soft->row + i;
    row->row = i;
    row->spring = row->slip = row->slip_row = -1;
    note_limits(soft, row);
  }
  for (int i = 0; i < soft->equalities; ++i) {
    soft->spring_eq[i] = -1;
  }
  soft->next = soft->variables;
}

int compliance_write(compliant_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  qd_cone_program *rigid = &soft->written.rigid.program;
  soft->written.rigid = *source;
  rigid->compliance = rigid->compliance_eq = rigid->lower = rigid->upper = NULL;
  soft->natively = 0;
  soft->as_it_is = compliance_rows_can_stay(soft, program);
  if (soft->as_it_is) {
    write_limits(soft);
    return 1;
  }
  rigid->cone_count = 0;
  take_variables(soft, program);
  write_cost(soft, source);
  matrix_open(&soft->written.G, soft->next, soft->room.is_dense);
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    write_cone(soft, source, k, row);
  }
  write_equalities(soft, source);
  rigid->variable_count = soft->next;
  rigid->row_count = soft->written.G.rows;
  rigid->equality_count = soft->written.C.rows;
  rigid->b = soft->written.b;
  rigid->g = soft->written.g;
  rigid->c = soft->written.c;
  rigid->cone_kind = soft->written.kind;
  rigid->cone_dim = soft->written.dim;
  rigid->target_mu = program->target_mu ? soft->written.target : NULL;
  soft->written.rigid.Q = view(&soft->written.Q, &soft->written.Q_rows, &rigid->Q);
  soft->written.rigid.G = view(&soft->written.G, &soft->written.G_rows, &rigid->G);
  soft->written.rigid.C = view(&soft->written.C, &soft->written.C_rows, &rigid->C);
  return !(soft->written.Q.is_full || soft->written.G.is_full || soft->written.C.is_full);
}
