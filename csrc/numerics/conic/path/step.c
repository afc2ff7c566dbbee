/* One step of the interior point method for
 *
 *     Qx + b - G'dual = 0,    Gx + g - slack = 0,    slack o dual = target.
 *
 * With the Nesterov-Todd scaling W of (slack, dual), v = W^-1 slack = W dual and S = W^-1 G, a
 * Newton step is
 *
 *     (Q + S'S) dx = -residual_x + S'u,    u = p - W^-1 residual_row,
 *     W ddual = u - S dx,
 *     W^-1 dslack = p - W ddual,
 *
 * where v o p = target - v o v - (second-order term). Equality rows have p = 0, W^-1 =
 * sqrt(penalty) and no slack: a proximal step on their multipliers, which becomes exact as the
 * iteration converges.
 *
 * Predictor and corrector follow Mehrotra, except:
 *
 * - the predictor aims at the final target, not at 0: aiming at 0 overshoots a smoothed problem;
 * - sigma = (1 - alpha)^3;
 * - an exact program's second-order term is recomputed from the corrected step, in a large program
 *   as long as the step gets longer;
 * - a corrected step below SHORT_STEP is replaced by pure centring without the second-order term;
 * - if that step is tiny, too (infeasible programs), the step ignores the residuals: multipliers
 *   then grow in proportion and soon prove infeasibility. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

void conic_scale_equalities(qd_cone_workspace *workspace, cone_operator *scaling) {
  const cone_product *product = &workspace->product;
  if (workspace->program.equality_count == 0) {
    return;
  }
  const cone_group *group = &product->groups[product->group_count - 1];
  for (int c = 0; c < group->padded; ++c) {
    scaling->diagonal[group->cone + c] = conic_hard_root(workspace, group->cone + c);
  }
}

int conic_factor_rows(qd_cone_workspace *workspace, const cone_operator *scaling,
                      qd_cone_info *info) {
  ++info->factorizations;
  tiles_assemble(&workspace->system, scaling, workspace->program.definite ? 0.0 : PROXIMAL_SHIFT);
  return tiles_factor(&workspace->system);
}

/* ddual (scaled), dslack (scaled) and dx for the aim p, removing `share` of the residuals; `rhs`
 * holds W^-1 residual_row. */
QD_MULTIVERSION
static void solve_direction(qd_cone_workspace *workspace, const double *p, double share,
                            double *dslack, double *ddual, int refinements) {
  const tile_system *system = &workspace->system;
  double *dx = workspace->work.dx;
  const int slots = workspace->program.slot_count, columns = workspace->program.column_count;
  double *restrict product = workspace->work.row2; /* padded lanes stay zero */
  for (int i = 0; i < slots; ++i) {
    ddual[i] = p[i] - share * workspace->work.rhs[i];
  }
  for (int i = 0; i < columns; ++i) {
    dx[i] = -share * workspace->work.residual_x[i];
  }
  tiles_add_transposed(system, system->S, ddual, dx);
  tiles_solve(system, dx);
  tiles_multiply(system, system->S, dx, product);
  add_scaled(ddual, -1.0, product, slots);
  for (int round = 0; round < refinements; ++round) {
    double *correction = workspace->work.x;
    tiles_multiply_Q(system, dx, correction);
    for (int i = 0; i < columns; ++i) {
      correction[i] = -share * workspace->work.residual_x[i] - correction[i];
    }
    tiles_add_transposed(system, system->S, ddual, correction);
    tiles_solve(system, correction);
    tiles_multiply(system, system->S, correction, product);
    add_scaled(dx, 1.0, correction, columns);
    add_scaled(ddual, -1.0, product, slots);
  }
  for (int i = 0; i < slots; ++i) {
    dslack[i] = p[i] - ddual[i];
  }
  if (workspace->ends.count > 0) {
    conic_ends_follow(workspace, p, dslack, ddual);
  }
}

/* Aims p of all rows. */
static void correct(qd_cone_workspace *workspace, double shift, const double *ds, const double *dz,
                    double *p) {
  cones_correct(&workspace->product, shift, ds, dz, p);
  if (workspace->ends.count > 0) {
    conic_ends_aim(workspace, p);
  }
}

static double common_step(qd_cone_workspace *workspace, const double *dslack, const double *ddual,
                          double fraction) {
  return smaller(1.0, fraction * cones_step(&workspace->product, dslack, ddual, 1e3));
}

QD_MULTIVERSION
static void advance(qd_cone_workspace *workspace, double alpha, double share) {
  const cone_product *product = &workspace->product;
  cones_add(product, &product->inverse, alpha, workspace->work.dslack, workspace->iterate.slack);
  cones_add(product, &product->scaling, alpha, workspace->work.ddual, workspace->iterate.dual);
  for (int i = 0; i < workspace->program.column_count; ++i) {
    workspace->iterate.x[i] += alpha * workspace->work.dx[i];
    workspace->work.residual_x[i] *= 1.0 - share * alpha; /* Q dx - G'ddual = -share residual_x */
  }
  /* G dx - dslack = -share residual_row */
  for (int i = 0; i < workspace->program.slot_count; ++i) {
    workspace->work.residual_row[i] *= 1.0 - share * alpha;
  }
}

/* Largest |a_i - b_i| */
QD_MULTIVERSION
static double difference(const double *a, const double *b, int count) {
  lanes most = {0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < count; i += LANE_COUNT) {
    const lanes d = LANES_OF(a + i) - LANES_OF(b + i), other = -d;
    lanes_larger(&most, &d, &most);
    lanes_larger(&most, &other, &most);
  }
  return larger(larger(most[0], most[1]), larger(most[2], most[3]));
}

static void exchange(double **a, double **b) {
  double *kept = *a;
  *a = *b;
  *b = kept;
}

/* Recomputes the second-order term, which came from the predictor, from the corrected step. If it
 * differs by much, relative to products of about `mu`, solves again: one back-solve, and a fifth
 * fewer iterations. Keeps and returns the longer step. */
static double correct_again(qd_cone_workspace *workspace, double mu, double shift, double alpha) {
  double *aim = workspace->work.row;
  correct(workspace, shift, workspace->work.dslack, workspace->work.ddual, aim);
  if (!(difference(aim, workspace->work.aim, workspace->program.slot_count) >
        TINY_STEP * sqrt(mu))) {
    return alpha;
  }
  conic_copy_columns(workspace, workspace->newton.x, workspace->work.dx);
  solve_direction(workspace, aim, 1.0, workspace->work.dslack_aim, workspace->work.ddual_aim, 0);
  const double next =
      common_step(workspace, workspace->work.dslack_aim, workspace->work.ddual_aim, STEP_FRACTION);
  if (!(next >= alpha)) {
    conic_copy_columns(workspace, workspace->work.dx, workspace->newton.x);
    return alpha;
  }
  exchange(&workspace->work.dslack, &workspace->work.dslack_aim);
  exchange(&workspace->work.ddual, &workspace->work.ddual_aim);
  return next;
}

/* Corrects once, or in large programs with a definite cost as long as the step gets longer. */
static double correct_repeatedly(qd_cone_workspace *workspace, double mu, double shift,
                                 double alpha) {
  const int is_large =
      workspace->program.variable_count >= LARGE_PROGRAM && workspace->program.definite;
  const int times = is_large ? CORRECTIONS : 1;
  double before = 0.0;
  for (int k = 0; k < times && alpha > before; ++k) {
    before = alpha;
    alpha = correct_again(workspace, mu, shift, alpha);
  }
  return alpha;
}

/* One predictor-corrector step; returns its length, 0 if the scaling or the factor failed. */
double conic_take_step(qd_cone_workspace *workspace, double mu, double target, int refinements,
                       int plain, qd_cone_info *info) {
  cone_product *product = &workspace->product;
  if (!cones_scale(product, workspace->iterate.slack, workspace->iterate.dual)) {
    return 0.0;
  }
  conic_scale_equalities(workspace, &product->scaling);
  if (workspace->ends.count > 0) {
    conic_ends_scale(workspace);
  }
  conic_factor_rows(workspace, &product->scaling, info);
  cones_apply(product, &product->scaling, workspace->work.residual_row, workspace->work.rhs);
  correct(workspace, 0.0, NULL, NULL, workspace->work.aim);
  solve_direction(workspace, workspace->work.aim, 1.0, workspace->work.dslack_aim,
                  workspace->work.ddual_aim, 0);
  double alpha = common_step(workspace, workspace->work.dslack_aim, workspace->work.ddual_aim, 1.0);
  const double sigma = (1.0 - alpha) * (1.0 - alpha) * (1.0 - alpha);
  const double excess = larger(mu - target, 0.0);
  correct(workspace, sigma * excess, plain ? NULL : workspace->work.dslack_aim,
          plain ? NULL : workspace->work.ddual_aim, workspace->work.aim);
  solve_direction(workspace, workspace->work.aim, 1.0, workspace->work.dslack,
                  workspace->work.ddual, refinements);
  alpha = common_step(workspace, workspace->work.dslack, workspace->work.ddual, STEP_FRACTION);
  if (workspace->program.exact &&
      refinements == 0) { /* for a barrier it costs as much as it saves */
    alpha = correct_repeatedly(workspace, mu, sigma * excess, alpha);
  }
  if (alpha < SHORT_STEP) {
    correct(workspace, excess, NULL, NULL, workspace->work.aim);
    solve_direction(workspace, workspace->work.aim, 1.0, workspace->work.dslack,
                    workspace->work.ddual, refinements);
    alpha = common_step(workspace, workspace->work.dslack, workspace->work.ddual, STEP_FRACTION);
  }
  double share = 1.0;
  if (alpha < TINY_STEP) { /* residuals cannot shrink: let multipliers grow, for a proof */
    share = 0.0;
    correct(workspace, TENFOLD * excess, NULL, NULL, workspace->work.aim);
    cones_apply(product, &product->scaling, workspace->work.residual_row, workspace->work.rhs);
    solve_direction(workspace, workspace->work.aim, share, workspace->work.dslack,
                    workspace->work.ddual, refinements);
    alpha = common_step(workspace, workspace->work.dslack, workspace->work.ddual, STEP_FRACTION);
  }
  workspace->path.share = share;
  if (!all_finite(workspace->work.dx, workspace->program.column_count)) {
    return 0.0;
  }
  advance(workspace, alpha, share);
  return alpha;
}
