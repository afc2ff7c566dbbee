/* What slides under load: how slips follow from shifts, as a dense matrix. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/conic/tuning.h"
#include "numerics/coulomb/fixed_point.h"

void fixed_point_lay_out(fixed_point *s, const fixed_point_sizes *sizes, arena *a) {
  const size_t blocks = (size_t)sizes->blocks, rows = (size_t)sizes->rows;
  const size_t room = blocks < FIXED_POINT_DENSE ? blocks : FIXED_POINT_DENSE;
  s->block = arena_take(a, blocks * sizeof *s->block);
  ARENA_DOUBLES(a, blocks, &s->shift, &s->slip, &s->miss);
  ARENA_DOUBLES(a, rows, &s->offset, &s->slope);
  s->coupled = arena_ints(a, blocks);
  s->matrix_room = (int)room;
  s->matrix = arena_doubles(a, room * room);
  ARENA_INTS(a, room, &s->row_of, &s->column_of);
  s->best_shift = arena_doubles(a, blocks);
  s->best_solution =
      arena_doubles(a, (size_t)sizes->variables + 2 * rows + (size_t)sizes->equalities);
  ARENA_DOUBLES(a, blocks, &s->next, &s->before, &s->share);
  ARENA_DOUBLES(a, 4 * rows, &s->four_rows, &s->four_duals);
  ARENA_DOUBLES(a, 4 * (size_t)sizes->variables, &s->four_stationarity, &s->four_x);
  ARENA_DOUBLES(a, 4 * (size_t)sizes->equalities, &s->four_equality, &s->four_dual_eq);
  s->four_shift = arena_doubles(a, 4 * room);
  s->coupled_count = 0;
  const primal_sizes path = {sizes->variables, sizes->rows,    sizes->equalities,
                             sizes->row_tiles, sizes->entries, sizes->fill};
  primal_path_lay_out(&s->path, &path, a);
}

int fixed_point_fits_path(const fixed_point *s) {
  int i = 0;
  while (i < s->block_count && (s->block[i].is_cone || s->block[i].count == 2)) {
    ++i;
  }
  return i == s->block_count;
}

void fixed_point_tell_pairs(fixed_point *s, int rows) {
  if (s->path.entry_room > 0) {
    memset(s->path.paired, 0, (size_t)rows);
    for (int i = 0; i < s->block_count; ++i) {
      s->path.paired[s->block[i].row] = !s->block[i].is_cone && s->block[i].count == 2;
    }
  }
}

/* ---------------------------------------------------------------- slips */

/* The normal's part of the slack: the head, or of a pyramid the mean. */
static double normal_part(const fixed_point_block *block, const double *slack) {
  double sum = slack[0];
  for (int r = 1; r < block->count && !block->is_cone; ++r) {
    sum += slack[r];
  }
  return block->is_cone ? sum : sum / block->count;
}

static double slip_of(const fixed_point_block *block, const double *slack) {
  if (block->is_cone) {
    double sum = 0.0;
    for (int r = 1; r < block->count; ++r) {
      sum += slack[r] * slack[r];
    }
    return sqrt(sum);
  }
  double least = slack[0];
  for (int r = 1; r < block->count; ++r) {
    least = smaller(slack[r], least);
  }
  return normal_part(block, slack) - least;
}

static double force_of(const fixed_point_block *block, const double *dual) {
  double sum = dual[0];
  for (int r = 1; r < block->count && !block->is_cone; ++r) {
    sum += dual[r];
  }
  return sum;
}

/* How the slip changes with the block's rows: of a pyramid, the mean less the smallest. */
static void set_slope(const fixed_point_block *block, const double *slack, double slip,
                      double *slope) {
  int least = 0;
  for (int r = 0; r < block->count; ++r) {
    slope[r] = !block->is_cone ? 1.0 / block->count : r > 0 ? slack[r] / slip : 0.0;
    least = slack[r] < slack[least] ? r : least;
  }
  slope[least] -= block->is_cone ? 0.0 : 1.0;
}

double fixed_point_read(fixed_point *s, const double *slack, const double *dual, double length) {
  double most = 0.0, error = 0.0;
  for (int i = 0; i < s->block_count; ++i) {
    most = larger(force_of(s->block + i, dual + s->block[i].row), most);
  }
  s->coupled_count = 0;
  for (int i = 0; i < s->block_count; ++i) {
    const fixed_point_block *block = s->block + i;
    const double *own = slack + block->row;
    s->slip[i] = slip_of(block, own);
    s->miss[i] = 0.0;
    const double closing = s->shift[i] - normal_part(block, own);
    if (!(force_of(block, dual + block->row) > NEGLIGIBLE * most) && !(closing > 0.0)) {
      continue;
    }
    s->miss[i] = s->slip[i] - s->shift[i];
    error = larger(fabs(s->miss[i]), error);
    if (s->slip[i] > UNDECIDED * length) {
      set_slope(block, own, s->slip[i], s->slope + block->row);
      s->coupled[s->coupled_count++] = i;
    }
  }
  return error;
}

void fixed_point_slack_at(const fixed_point *s, const conic_program *program, const double *x,
                          const double *g, double *slack) {
  for (int i = 0; i < s->block_count; ++i) {
    for (int r = s->block[i].row; r < s->block[i].row + s->block[i].count; ++r) {
      slack[r] = g[r] + sparse_row_product(program->G, r, x, program->program.variable_count);
    }
  }
}

/* ---------------------------------------------------------------- four at a time */

void fixed_point_add_slopes(const fixed_point *s, const double *t, double *rows) {
  for (int k = 0; k < s->coupled_count; ++k) {
    const fixed_point_block *block = s->block + s->coupled[k];
    const lanes own = LANES_FROM(t + 4 * (size_t)k);
    for (int r = block->row; r < block->row + block->count; ++r) {
      LANES_ANYWHERE(rows + 4 * (size_t)r) += s->slope[r] * own;
    }
  }
}

/* sum += factor times row r of G times x (variables, 4) */
LANES_INLINE void add_row(lanes *sum, double factor, const conic_program *program, int r,
                          const double *x) {
  const sparse_rows *G = program->G;
  const int n = program->program.variable_count;
  for (int t = G->start[r]; t < G->start[r + 1]; ++t) {
    const int first = 4 * G->tiles[t];
    for (int k = 0; k < 4 && first + k < n; ++k) {
      *sum +=
          factor * G->values[4 * (size_t)t + (size_t)k] * LANES_FROM(x + 4 * (size_t)(first + k));
    }
  }
}

void fixed_point_take_slopes(const fixed_point *s, const conic_program *program, const double *x,
                             const double *rows, double *t) {
  for (int k = 0; k < s->coupled_count; ++k) {
    const fixed_point_block *block = s->block + s->coupled[k];
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int r = block->row; r < block->row + block->count; ++r) {
      if (s->slope[r] != 0.0) {
        add_row(&sum, s->slope[r], program, r, x);
        sum += s->slope[r] * LANES_FROM(rows + 4 * (size_t)r);
      }
    }
    LANES_ANYWHERE(t + 4 * (size_t)k) = sum;
  }
}

void fixed_point_add_shifts(const fixed_point *s, const double *t, double *rows) {
  for (int k = 0; k < s->coupled_count; ++k) {
    const fixed_point_block *block = s->block + s->coupled[k];
    for (int r = 0; r < (block->is_cone ? 1 : block->count); ++r) {
      LANES_ANYWHERE(rows + 4 * (size_t)(block->row + r)) += LANES_FROM(t + 4 * (size_t)k);
    }
  }
}

void fixed_point_take_shifts(const fixed_point *s, const double *rows, double *t) {
  for (int k = 0; k < s->coupled_count; ++k) {
    const fixed_point_block *block = s->block + s->coupled[k];
    lanes sum = {0.0, 0.0, 0.0, 0.0};
    for (int r = 0; r < (block->is_cone ? 1 : block->count); ++r) {
      sum += LANES_FROM(rows + 4 * (size_t)(block->row + r));
    }
    LANES_ANYWHERE(t + 4 * (size_t)k) = sum;
  }
}

/* ---------------------------------------------------------------- the matrix */

static void swap_ints(int *a, int *b) {
  const int kept = *a;
  *a = *b;
  *b = kept;
}

/* The largest entry of what is left, at *row, *column of the pivots' order. */
static double find_pivot(const fixed_point *s, int k, int *row, int *column) {
  const int n = s->coupled_count;
  double best = -1.0;
  for (int i = k; i < n; ++i) {
    const double *own = s->matrix + (size_t)s->row_of[i] * (size_t)n;
    for (int j = k; j < n; ++j) {
      const double size = fabs(own[s->column_of[j]]);
      if (size > best) {
        best = size;
        *row = i;
        *column = j;
      }
    }
  }
  return best;
}

/* LU by complete pivoting: what is singular has its rank. */
static void factor_matrix(fixed_point *s) {
  const int n = s->coupled_count;
  double first = 0.0;
  s->sign = 1;
  for (int i = 0; i < n; ++i) {
    s->row_of[i] = s->column_of[i] = i;
  }
  for (s->rank = 0; s->rank < n; ++s->rank) {
    const int k = s->rank;
    int row = k, column = k;
    const double size = find_pivot(s, k, &row, &column);
    first = k == 0 ? size : first;
    if (!(size > SINGULAR * first)) {
      return;
    }
    s->sign = (row != k) != (column != k) ? -s->sign : s->sign;
    swap_ints(s->row_of + k, s->row_of + row);
    swap_ints(s->column_of + k, s->column_of + column);
    const double *own = s->matrix + (size_t)s->row_of[k] * (size_t)n;
    const double pivot = own[s->column_of[k]];
    s->sign = pivot < 0.0 ? -s->sign : s->sign;
    for (int i = k + 1; i < n; ++i) {
      double *other = s->matrix + (size_t)s->row_of[i] * (size_t)n;
      const double factor = other[s->column_of[k]] / pivot;
      other[s->column_of[k]] = factor;
      for (int j = k + 1; j < n && factor != 0.0; ++j) {
        other[s->column_of[j]] -= factor * own[s->column_of[j]];
      }
    }
  }
}

int fixed_point_factor(fixed_point *s, qd_cone_workspace *workspace, const conic_program *program) {
  const int n = s->coupled_count;
  const qd_cone_program *sizes = &program->program;
  if (n > s->matrix_room) {
    return 0;
  }
  memset(s->four_stationarity, 0, 4 * (size_t)sizes->variable_count * sizeof(double));
  for (int first = 0; first < n; first += 4) {
    double unit[4 * FIXED_POINT_DENSE];
    const int width = n - first < 4 ? n - first : 4;
    memset(unit, 0, 4 * (size_t)n * sizeof(double));
    for (int k = 0; k < width; ++k) {
      unit[4 * (first + k) + k] = 1.0;
    }
    memset(s->four_rows, 0, 4 * (size_t)sizes->row_count * sizeof(double));
    fixed_point_add_shifts(s, unit, s->four_rows);
    conic_sensitivity_solve(workspace, 4, s->four_stationarity, s->four_rows, NULL, s->four_x, NULL,
                            NULL);
    fixed_point_take_slopes(s, program, s->four_x, s->four_rows, s->four_shift);
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < width; ++k) {
        s->matrix[(size_t)i * (size_t)n + (size_t)(first + k)] =
            (i == first + k) - s->four_shift[4 * i + k];
      }
    }
  }
  factor_matrix(s);
  return 1;
}

/* One right-hand side in the order of pivots: y = U^-1 L^-1 y, what is beyond the rank zero. */
static void solve_in_order(const fixed_point *s, double *y) {
  const int n = s->coupled_count, rank = s->rank;
  for (int i = 1; i < rank; ++i) {
    const double *own = s->matrix + (size_t)s->row_of[i] * (size_t)n;
    for (int j = 0; j < i; ++j) {
      y[i] -= own[s->column_of[j]] * y[j];
    }
  }
  for (int i = rank - 1; i >= 0; --i) {
    const double *own = s->matrix + (size_t)s->row_of[i] * (size_t)n;
    for (int j = i + 1; j < rank; ++j) {
      y[i] -= own[s->column_of[j]] * y[j];
    }
    y[i] /= own[s->column_of[i]];
  }
  for (int i = rank; i < n; ++i) {
    y[i] = 0.0;
  }
}

/* The same of the transposed matrix: y = L'^-1 U'^-1 y */
static void solve_transposed_in_order(const fixed_point *s, double *y) {
  const int n = s->coupled_count, rank = s->rank;
  for (int i = 0; i < rank; ++i) {
    const double *own = s->matrix + (size_t)s->row_of[i] * (size_t)n;
    y[i] /= own[s->column_of[i]];
    for (int j = i + 1; j < rank; ++j) {
      y[j] -= own[s->column_of[j]] * y[i];
    }
  }
  for (int i = rank - 1; i > 0; --i) {
    const double *own = s->matrix + (size_t)s->row_of[i] * (size_t)n;
    for (int j = 0; j < i; ++j) {
      y[j] -= own[s->column_of[j]] * y[i];
    }
  }
  for (int i = rank; i < n; ++i) {
    y[i] = 0.0;
  }
}

void fixed_point_matrix_solve(const fixed_point *s, int transposed, int width, double *x) {
  const int n = s->coupled_count;
  const int *from = transposed ? s->column_of : s->row_of;
  const int *to = transposed ? s->row_of : s->column_of;
  double y[FIXED_POINT_DENSE];
  for (int k = 0; k < width; ++k) {
    for (int i = 0; i < n; ++i) {
      y[i] = x[(size_t)from[i] * (size_t)width + (size_t)k];
    }
    if (transposed) {
      solve_transposed_in_order(s, y);
    } else {
      solve_in_order(s, y);
    }
    for (int i = 0; i < n; ++i) {
      x[(size_t)to[i] * (size_t)width + (size_t)k] = y[i];
    }
  }
}
