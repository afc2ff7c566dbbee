/* Contacts that slide under load: the dependence of slips on shifts as a dense matrix. */
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
  dense_qr_lay_out(&s->matrix, room, room, 1, a);
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

/* Normal part of the slack: the head of a cone, the mean of a pyramid's rows. */
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

/* Derivative of the slip by the block's rows; for a pyramid, the mean minus the smallest row. */
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
  s->undecided = 0;
  for (int i = 0; i < s->block_count; ++i) {
    const fixed_point_block *block = s->block + i;
    const double *own = slack + block->row;
    s->slip[i] = slip_of(block, own);
    s->miss[i] = 0.0;
    /* A box that settles on four corners slides at some of them by 1e-12 to 1e-9 of its size, since
     * no motion keeps all of them at rest. Derivatives through the smallest of these slips, which
     * are ratios of rounding errors, were wrong by up to 5 %; without all of them, 0.4 % would be
     * missing. */
    const int slides = s->slip[i] > WORKED_OUT * length;
    const double closing = s->shift[i] - normal_part(block, own);
    if (!(force_of(block, dual + block->row) > NEGLIGIBLE * most) && !(closing > 0.0)) {
      s->undecided |= slides && closing > -WORKED_OUT * length;
      continue;
    }
    s->miss[i] = s->slip[i] - s->shift[i];
    error = larger(fabs(s->miss[i]), error);
    if (slides) {
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

int fixed_point_factor(fixed_point *s, qd_cone_workspace *workspace, const conic_program *program) {
  const int n = s->coupled_count;
  const qd_cone_program *sizes = &program->program;
  const conic_change change = {4, s->four_stationarity, s->four_rows, NULL, s->four_x, NULL, NULL};
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
    conic_sensitivity_solve(workspace, &change);
    fixed_point_take_slopes(s, program, s->four_x, s->four_rows, s->four_shift);
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < width; ++k) {
        s->matrix.factor[(size_t)(first + k) * (size_t)n + (size_t)i] =
            (i == first + k) - s->four_shift[4 * i + k];
      }
    }
  }
  dense_qr_factor(&s->matrix, n, n, SLIGHT);
  return 1;
}

void fixed_point_matrix_solve(const fixed_point *s, int transposed, int width, double *x) {
  const dense_qr *qr = &s->matrix;
  const int n = s->coupled_count;
  double y[FIXED_POINT_DENSE];
  for (int k = 0; k < width && n > 0; ++k) {
    double *own = x + k;
    for (int i = 0; i < n; ++i) {
      y[i] = own[(transposed ? qr->order[i] : i) * width];
    }
    if (!transposed) {
      dense_qr_rotate(qr, 0, 1, y);
    }
    memset(y + qr->rank, 0, (size_t)(n - qr->rank) * sizeof(double));
    dense_qr_solve_R(qr, transposed, y);
    if (transposed) {
      dense_qr_rotate(qr, 1, 1, y);
    }
    for (int i = 0; i < n; ++i) {
      own[(transposed ? i : qr->order[i]) * width] = y[i];
    }
  }
}
