/* The null space method of quadratic programs (Nocedal, Wright, 16.2). */
#include "numerics/conic/program/equalities.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/tuning.h"
#include "numerics/vectors.h"

#define ROUNDING_UNITS 8.0 /* units of rounding in the distance of a dependent row */

void equality_space_lay_out(equality_space *space, size_t variables, size_t rows, size_t equalities,
                            arena *a) {
  dense_qr_lay_out(&space->qr, variables, equalities, variables + rows, a);
  ARENA_DOUBLES(a, equalities, &space->row_scale, &space->offset);
  ARENA_DOUBLES(a, variables, &space->column_scale, &space->work, &space->b, &space->y);
  space->Q = arena_doubles(a, variables * variables);
  space->G = arena_doubles(a, rows * variables);
  space->g = arena_doubles(a, rows);
}

static double *row_of(const equality_space *space, int k) {
  return space->qr.factor + (size_t)k * (size_t)space->variables;
}

/* ------------------------------------------------------------ factor */

static void read_rows(equality_space *space, const qd_cone_program *program) {
  const int n = space->variables;
  for (int i = 0; i < space->equalities; ++i) {
    double *row = row_of(space, i), size = 0.0;
    for (int j = 0; j < n; ++j) {
      row[j] = program->C[(size_t)i * (size_t)n + (size_t)j] * space->column_scale[j];
      size = larger(size, fabs(row[j]));
    }
    for (int j = 0; j < n && size > 0.0; ++j) {
      row[j] /= size; /* squares stay finite */
    }
    const double norm = sqrt(dot_product(row, row, n));
    for (int j = 0; j < n && size > 0.0; ++j) {
      row[j] /= norm;
    }
    space->row_scale[i] = size > 0.0 ? 1.0 / size / norm : 1.0;
  }
}

/* Computes y_1; returns the first violated dependent row, or -1. */
static int solve_rows(equality_space *space, const double *c) {
  double *y = space->offset;
  for (int j = 0; j < space->equalities; ++j) {
    const int i = space->qr.order[j], known = j < space->qr.rank ? j : space->qr.rank;
    const double *R = row_of(space, j), own = space->row_scale[i] * c[i];
    double sum = own, size = fabs(own);
    for (int k = 0; k < known; ++k) {
      sum += R[k] * y[k];
      size += fabs(R[k] * y[k]);
    }
    if (j < space->qr.rank) {
      y[j] = -sum / R[j];
    } else if (fabs(sum) > CALLERS_ROUNDING * size) {
      return j;
    }
  }
  return -1;
}

/* Certificate: a dependent row minus the combination of the others that equals it. */
static void prove(equality_space *space, const double *c, int row, double *dual_eq) {
  double *share = space->work, value = 0.0;
  memcpy(share, row_of(space, row), (size_t)space->qr.rank * sizeof(double));
  dense_qr_solve_R(&space->qr, 0, share);
  memset(dual_eq, 0, (size_t)space->equalities * sizeof(double));
  dual_eq[space->qr.order[row]] = space->row_scale[space->qr.order[row]];
  for (int j = 0; j < space->qr.rank; ++j) {
    dual_eq[space->qr.order[j]] = -share[j] * space->row_scale[space->qr.order[j]];
  }
  for (int i = 0; i < space->equalities; ++i) {
    value += dual_eq[i] * c[i];
  }
  for (int i = 0; i < space->equalities && value > 0.0; ++i) {
    dual_eq[i] = -dual_eq[i];
  }
}

int equality_space_find(equality_space *space, const qd_cone_program *program, double *dual_eq) {
  space->variables = program->variable_count;
  space->equalities = program->equality_count;
  read_rows(space, program);
  dense_qr_factor(&space->qr, space->variables, space->equalities,
                  ROUNDING_UNITS * DBL_EPSILON * (space->variables + space->equalities));
  const int row = solve_rows(space, program->c);
  if (row >= 0) {
    prove(space, program->c, row, dual_eq);
  }
  return row < 0;
}

/* ------------------------------------------------------------ the smaller program */

/* H'(DQD)H, of which only the part behind the first `rank` rows and columns is used. */
static void restrict_cost(equality_space *space, const double *Q) {
  const size_t n = (size_t)space->variables;
  double *M = space->Q;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < n; ++j) {
      M[i * n + j] = space->column_scale[i] * Q[i * n + j] * space->column_scale[j];
    }
  }
  dense_qr_rotate(&space->qr, 0, space->variables, M);
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const double kept = M[i * n + j];
      M[i * n + j] = M[j * n + i];
      M[j * n + i] = kept;
    }
  }
  dense_qr_rotate(&space->qr, 0, space->variables, M);
  for (size_t i = 0; i < n; ++i) { /* symmetric up to rounding */
    for (size_t j = 0; j < i; ++j) {
      M[i * n + j] = M[j * n + i];
    }
  }
}

/* M (rows, n) without its first `rank` columns */
static void pack_columns(const equality_space *space, double *M, int first_row, int rows) {
  const size_t n = (size_t)space->variables, left = n - (size_t)space->qr.rank;
  for (size_t i = 0; i < (size_t)rows; ++i) {
    memmove(M + i * left, M + ((size_t)first_row + i) * n + (size_t)space->qr.rank,
            left * sizeof(double));
  }
}

/* Clears rows and columns whose curvature is rounding. */
static void clear_rounding(double *Q, int count, double rounding) {
  for (int i = 0; i < count; ++i) {
    if (Q[(size_t)i * (size_t)count + (size_t)i] > rounding) {
      continue;
    }
    for (int j = 0; j < count; ++j) {
      Q[(size_t)i * (size_t)count + (size_t)j] = Q[(size_t)j * (size_t)count + (size_t)i] = 0.0;
    }
  }
}

static void restrict_rows(equality_space *space, const double *G, int rows) {
  const size_t n = (size_t)space->variables;
  for (size_t i = 0; i < (size_t)rows * n; ++i) {
    space->G[i] = G[i] * space->column_scale[i % n];
  }
  dense_qr_rotate(&space->qr, 0, rows, space->G);
}

/* Adds an uncoupled variable if no variable is left. */
static int leave_idle_variable(equality_space *space, qd_cone_program *program) {
  if (space->qr.rank < space->variables) {
    return 0;
  }
  space->Q[0] = 1.0;
  space->b[0] = 0.0;
  memset(space->G, 0, (size_t)program->row_count * sizeof(double));
  return 1;
}

qd_cone_program equality_space_restrict(equality_space *space, const qd_cone_program *program) {
  qd_cone_program out = *program;
  const int n = space->variables, m = program->row_count, left = n - space->qr.rank;
  double *x = space->y;
  equality_space_point(space, NULL, 0, x);
  for (int i = 0; i < m; ++i) {
    space->g[i] = program->g[i] + dot_product(program->G + (size_t)i * (size_t)n, x, n);
  }
  for (int i = 0; i < n; ++i) {
    space->b[i] = space->column_scale[i] *
                  (program->b[i] + dot_product(program->Q + (size_t)i * (size_t)n, x, n));
  }
  dense_qr_rotate(&space->qr, 0, 1, space->b);
  memmove(space->b, space->b + space->qr.rank, (size_t)left * sizeof(double));
  restrict_cost(space, program->Q);
  pack_columns(space, space->Q, space->qr.rank, left);
  clear_rounding(space->Q, left, ROUNDING_UNITS * DBL_EPSILON * n);
  restrict_rows(space, program->G, m);
  pack_columns(space, space->G, 0, m);
  out.variable_count = left + leave_idle_variable(space, &out);
  out.equality_count = 0;
  out.Q = space->Q;
  out.b = space->b;
  out.G = space->G;
  out.g = space->g;
  out.C = out.c = NULL;
  return out;
}

/* ------------------------------------------------------------ converting back */

void equality_space_coordinates(equality_space *space, const double *x, double *y) {
  const int n = space->variables;
  for (int j = 0; j < n; ++j) {
    space->work[j] = x[j] / space->column_scale[j];
  }
  dense_qr_rotate(&space->qr, 0, 1, space->work);
  memcpy(y, space->work + space->qr.rank, (size_t)(n - space->qr.rank) * sizeof(double));
}

void equality_space_point(const equality_space *space, const double *y, int is_direction,
                          double *x) {
  const int n = space->variables;
  for (int j = 0; j < n; ++j) {
    x[j] = j >= space->qr.rank ? (y ? y[j - space->qr.rank] : 0.0)
                               : (is_direction ? 0.0 : space->offset[j]);
  }
  dense_qr_rotate(&space->qr, 1, 1, x);
  for (int j = 0; j < n; ++j) {
    x[j] *= space->column_scale[j];
  }
}

void equality_space_multipliers(equality_space *space, const qd_cone_program *program,
                                const double *x, const double *dual, double *dual_eq) {
  const int n = space->variables;
  double *left = space->work;
  for (int j = 0; j < n; ++j) {
    left[j] = x ? program->b[j] + dot_product(program->Q + (size_t)j * (size_t)n, x, n) : 0.0;
  }
  for (int i = 0; i < program->row_count; ++i) {
    add_scaled(left, -dual[i], program->G + (size_t)i * (size_t)n, n);
  }
  for (int j = 0; j < n; ++j) {
    left[j] *= space->column_scale[j];
  }
  dense_qr_rotate(&space->qr, 0, 1, left);
  dense_qr_solve_R(&space->qr, 0, left);
  for (int j = 0; j < space->equalities; ++j) {
    dual_eq[space->qr.order[j]] =
        j < space->qr.rank ? left[j] * space->row_scale[space->qr.order[j]] : 0.0;
  }
}
