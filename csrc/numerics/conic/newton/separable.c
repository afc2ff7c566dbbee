/* Exact programs with uncoupled variables: a diagonal cost, and linear rows of one entry each (a
 * finger that touches nothing, with its joint limits). The minimiser -b / Q of each variable moves
 * to the farthest bound that it violates, and the row of that bound takes the whole multiplier (Q x
 * + b) / a. This needs no scaling, factorisation or loading. */
#include <math.h>
#include <string.h>

#include "numerics/conic/workspace.h"

/* The only entry of row i and its column; 0 if there are others. */
static int single_entry(const sparse_rows *rows, int i, int *column, double *value) {
  const int tile = rows->start[i];
  if (rows->start[i + 1] - tile != 1) {
    return 0;
  }
  const double *at = rows->values + 4 * (size_t)tile;
  int count = 0, place = 0;
  for (int k = 0; k < 4; ++k) {
    place = at[k] != 0.0 ? k : place;
    count += at[k] != 0.0;
  }
  *column = 4 * rows->tiles[tile] + place;
  *value = at[place];
  return count == 1;
}

static int cones_are_linear(const qd_cone_program *program) {
  for (int k = 0; k < program->cone_count; ++k) {
    const int kind = program->cone_kind[k];
    if (kind == QD_INTERVAL || (kind != QD_ORTHANT && program->cone_dim[k] > 1) ||
        (program->target_mu && program->target_mu[k] != 0.0)) {
      return 0;
    }
  }
  return 1;
}

/* x = -b / Q, and diagonal = Q; 0 if Q is not diagonal with positive entries for all variables */
static int minimise_cost(const conic_program *source, double *x, double *diagonal) {
  const qd_cone_program *program = &source->program;
  double least = HUGE_VAL, largest = 0.0;
  for (int i = 0; i < program->variable_count; ++i) {
    int column;
    if (!single_entry(source->Q, i, &column, diagonal + i) || column != i) {
      return 0;
    }
    least = smaller(diagonal[i], least);
    largest = larger(diagonal[i], largest);
    x[i] = -program->b[i] / diagonal[i];
  }
  return least > NO_COST * largest && largest < HUGE_VAL;
}

/* Moves x to the bounds that it violates; 0 if a row has more than one entry. */
static int move_to_bounds(const conic_program *source, double *x) {
  const double *g = source->program.g;
  for (int row = 0; row < source->program.row_count; ++row) {
    int column;
    double a;
    if (!single_entry(source->G, row, &column, &a)) {
      return 0;
    }
    if (a * x[column] + g[row] < 0.0) {
      x[column] = -g[row] / a;
    }
  }
  return 1;
}

/* Slacks and multipliers at x. force (n) = Q x + b is the load of the rows. Returns 0 if a row is
 * violated (bounds that cross), or if no single row can take a load. */
static int share_forces(const qd_cone_program *program, const sparse_rows *G, const double *x,
                        double *force, double *slack, double *dual) {
  for (int row = 0; row < program->row_count; ++row) {
    int column;
    double a;
    if (!single_entry(G, row, &column, &a)) {
      return 0;
    }
    slack[row] = a * x[column] + program->g[row];
    dual[row] = 0.0;
    const double rounding = LAST_DIGITS * fabs(program->g[row]);
    if (!isfinite(slack[row]) || !(rounding < HUGE_VAL)) {
      return 0;
    }
    if (slack[row] > rounding) {
      continue;
    }
    if (slack[row] < -rounding || isnan(force[column])) {
      return 0;
    }
    slack[row] = 0.0;
    if (a * force[column] > 0.0) {
      dual[row] = force[column] / a;
      force[column] = NAN; /* taken */
    }
  }
  return 1;
}

/* force = Q x + b where a bound holds x, 0 elsewhere; objective and dual residual of the answer. */
static void measure_cost(const qd_cone_program *program, const double *x, const double *diagonal,
                         double *force, qd_cone_info *info) {
  for (int i = 0; i < program->variable_count; ++i) {
    const int is_free = x[i] == -program->b[i] / diagonal[i];
    const double gradient = diagonal[i] * x[i] + program->b[i];
    force[i] = is_free ? 0.0 : gradient;
    if (is_free) {
      info->dual_residual = larger(fabs(gradient), info->dual_residual);
    }
    info->objective += x[i] * (0.5 * diagonal[i] * x[i] + program->b[i]);
  }
}

int conic_solve_separable(qd_cone_workspace *workspace, const conic_program *source, double *x,
                          double *slack, double *dual, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  double *diagonal = workspace->work.x, *force = workspace->work.dx;
  qd_cone_info found = {.polished = 1, .method = QD_METHOD_SEPARABLE, .tries = 1};
  if (!source->answer_only || !source->Q || !source->G || program->equality_count > 0 ||
      !cones_are_linear(program) || !minimise_cost(source, x, diagonal) ||
      !move_to_bounds(source, x)) {
    return 0;
  }
  measure_cost(program, x, diagonal, force, &found);
  if (!share_forces(program, source->G, x, force, slack, dual)) {
    return 0;
  }
  for (int i = 0; i < program->variable_count; ++i) {
    if (force[i] != 0.0 && !isnan(force[i])) {
      return 0;
    }
  }
  if (!isfinite(found.objective)) {
    return 0;
  }
  *info = found;
  workspace->program.definite = 1; /* the answer is unique */
  workspace->ends.count = 0;       /* of an earlier program */
  return 1;
}
