/* Derivatives of a program under Coulomb's law. Let S be the convex program's derivative at the
 * final shifts, P the map from shifts to rows, and C the map from rows to slips:
 *
 *     dx = S(d_stationarity, d_slack + P dshift, d_equality),   dshift = C (G dx + d_slack),
 *
 * so (1 - C G S P) dshift = C (G dx_0 + d_slack), with dx_0 for fixed shifts. S is symmetric, which
 * gives the transposed map: with z, mu, nu of a load y and t = (1 - C G S P)^-T P' mu, the result
 * is that of y + G'C't, with C't added to mu. */
#include <string.h>

#include "numerics/coulomb/fixed_point.h"

static void gather(double *to, const double *from, int rows, int count, int first, int width) {
  memset(to, 0, 4 * (size_t)rows * sizeof(double));
  for (int i = 0; from != NULL && i < rows; ++i) {
    memcpy(to + 4 * (size_t)i, from + (size_t)i * (size_t)count + (size_t)first,
           (size_t)width * sizeof(double));
  }
}

static void scatter(double *to, const double *from, int rows, int count, int first, int width) {
  for (int i = 0; to != NULL && i < rows; ++i) {
    memcpy(to + (size_t)i * (size_t)count + (size_t)first, from + 4 * (size_t)i,
           (size_t)width * sizeof(double));
  }
}

qd_status fixed_point_sensitivity_prepare(fixed_point *s, qd_cone_workspace *workspace,
                                          const conic_program *program, const double *slack,
                                          const double *dual, const qd_cone_info *info,
                                          int *exact) {
  fixed_point_read(s, slack, dual, program->length);
  conic_settle(workspace, info);
  const qd_status status = conic_sensitivity_prepare(workspace, exact);
  if (status != QD_OK) {
    return status;
  }
  *exact &= !s->undecided;
  if (s->coupled_count == 0) {
    return QD_OK;
  }
  if (!fixed_point_factor(s, workspace, program)) {
    return QD_OUT_OF_MEMORY;
  }
  *exact &= s->matrix.rank == s->coupled_count;
  return QD_OK;
}

/* stationarity -= G'C't (coupled, 4) */
static void subtract_slopes(const fixed_point *s, const conic_program *program, const double *t,
                            double *stationarity) {
  const sparse_rows *G = program->G;
  const int n = program->program.variable_count;
  for (int k = 0; k < s->coupled_count; ++k) {
    const fixed_point_block *block = s->block + s->coupled[k];
    for (int r = block->row; r < block->row + block->count; ++r) {
      for (int at = G->start[r]; s->slope[r] != 0.0 && at < G->start[r + 1]; ++at) {
        for (int j = 0; j < 4 && 4 * G->tiles[at] + j < n; ++j) {
          const double factor = s->slope[r] * G->values[4 * (size_t)at + (size_t)j];
          double *out = stationarity + 4 * (size_t)(4 * G->tiles[at] + j);
          for (int lane = 0; lane < 4; ++lane) {
            out[lane] -= factor * t[4 * k + lane];
          }
        }
      }
    }
  }
}

/* Solves four right-hand sides in the scratch of s: with fixed shifts, then with their changes. */
static void solve_forward(fixed_point *s, qd_cone_workspace *workspace,
                          const conic_program *program, const conic_change *four) {
  conic_change fixed = *four;
  fixed.d_dual = fixed.d_dual_eq = NULL;
  conic_sensitivity_solve(workspace, &fixed);
  fixed_point_take_slopes(s, program, s->four_x, s->four_rows, s->four_shift);
  fixed_point_matrix_solve(s, 0, 4, s->four_shift);
  fixed_point_add_shifts(s, s->four_shift, s->four_rows);
  conic_sensitivity_solve(workspace, four);
}

static void solve_transposed(fixed_point *s, qd_cone_workspace *workspace,
                             const conic_program *program, const conic_change *four) {
  conic_change of_load = *four, duals;
  of_load.d_slack = of_load.d_equality = NULL;
  duals = of_load;
  duals.d_dual_eq = NULL;
  conic_sensitivity_solve(workspace, &duals);
  fixed_point_take_shifts(s, s->four_duals, s->four_shift);
  fixed_point_matrix_solve(s, 1, 4, s->four_shift);
  subtract_slopes(s, program, s->four_shift, s->four_stationarity);
  conic_sensitivity_solve(workspace, &of_load);
  fixed_point_add_slopes(s, s->four_shift, s->four_duals);
}

void fixed_point_sensitivity_solve(fixed_point *s, qd_cone_workspace *workspace,
                                   const conic_program *program, int transposed,
                                   const conic_change *change) {
  const qd_cone_program *sizes = &program->program;
  const int n = sizes->variable_count, m = sizes->row_count, p = sizes->equality_count;
  const conic_change four = {4,         s->four_stationarity, s->four_rows,   s->four_equality,
                             s->four_x, s->four_duals,        s->four_dual_eq};
  if (s->coupled_count == 0) {
    conic_sensitivity_solve(workspace, change);
    return;
  }
  for (int first = 0, count = change->count; first < count; first += 4) {
    const int width = count - first < 4 ? count - first : 4;
    gather(s->four_stationarity, change->d_stationarity, n, count, first, width);
    gather(s->four_rows, change->d_slack, m, count, first, width);
    gather(s->four_equality, change->d_equality, p, count, first, width);
    (transposed ? solve_transposed : solve_forward)(s, workspace, program, &four);
    scatter(change->dx, s->four_x, n, count, first, width);
    scatter(change->d_dual, s->four_duals, m, count, first, width);
    scatter(change->d_dual_eq, s->four_dual_eq, p, count, first, width);
  }
}
