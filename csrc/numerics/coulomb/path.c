/* Interior point path of Coulomb's law itself, not of its convex relaxation.
 *
 * With v = W lambda + q + sum |v_tail| e (work.h) the path is v o lambda = mu 1 in every cone. Its
 * Newton step consists of Nesterov-Todd's W_nt dlambda + W_nt^-1 dv = r and
 *
 *     dv - e d'dv_tail = W dlambda + (residual),   d = v_tail / |v_tail|,
 *
 * so (W + (I - e d') W_nt^2) dlambda = (I - e d') W_nt r - residual. This is the matrix of the
 * convex program with unsymmetric blocks of the contacts. The corrector includes the curvature of
 * |v_tail|. The law is not monotone, so its path may turn back if the whole slope d is used. If
 * steps get short, a smaller share of the slope (SHARES) can continue, like a fixed-point iteration
 * on |v_tail|, with the same pattern of the factor.
 *
 * On the Siconos problems this takes 7 to 25 factorisations. Tried and dropped: a fixed point on
 * convex programs (up to 60 programs with Anderson memory 3), and Newton's method on active sets
 * from the convex solution (fails on redundant contacts). */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/conic/tuning.h"
#include "numerics/coulomb/work.h"
#include "numerics/vectors.h"

/* Shares of the law's slope, tried in turn until one allows a useful step. */
static const double SHARES[] = {1.0, 0.5, 0.0};
#define SHARE_COUNT ((int)(sizeof SHARES / sizeof *SHARES))

/* ------------------------------------------------------------ the point */

/* Starts every cone on its axis, with `reach` times the largest free speed and the force that this
 * speed requires of the stiffest contact. */
static void start(qd_coulomb_workspace *work, double reach) {
  double stiffest = 0.0;
  for (int t = 0; t < work->tile_count; ++t) {
    for (int e = work->W.row_start[t]; e < work->W.row_start[t + 1]; ++e) {
      for (int a = 0; a < 4 && work->W.column[e] == t; ++a) {
        stiffest = larger(work->W.value[16 * (size_t)e + 5 * (size_t)a], stiffest);
      }
    }
  }
  const double speed = reach * max_norm(work->q, 4 * work->tile_count);
  const double force = stiffest > 0.0 ? speed / stiffest : 1.0;
  memset(work->force, 0, 4 * (size_t)work->tile_count * sizeof(double));
  for (int c = 0; c < work->cone_count; ++c) {
    coulomb_cone *cone = work->cone + c;
    memset(cone->slack, 0, sizeof cone->slack);
    cone->slack[0] = speed;
    work->force[work->contact[cone->contact].at] = force;
  }
}

/* Reads slips, their directions, and forces of cones; returns the mean product of slack and
 * force. */
static double read_point(qd_coulomb_workspace *work) {
  for (int c = 0; c < work->cone_count; ++c) {
    coulomb_cone *cone = work->cone + c;
    cone->force[0] = work->force[work->contact[cone->contact].at];
    for (int k = 1; k <= cone->tails; ++k) {
      cone->force[k] = work->force[cone->tail + k - 1];
    }
    cone->slip = coulomb_tail(cone->slack, cone->tails);
    for (int k = 0; k <= cone->tails; ++k) {
      cone->direction[k] = cone->slip > 0.0 ? cone->slack[k] / cone->slip : 0.0;
    }
  }
  return coulomb_mean_product(work->cone, work->cone_count);
}

/* out = residual of the slacks, w + sum |v_tail| e - v */
static void find_residual(qd_coulomb_workspace *work, double *out) {
  memcpy(out, work->w, 4 * (size_t)work->tile_count * sizeof(double));
  for (int c = 0; c < work->cone_count; ++c) {
    const coulomb_cone *cone = work->cone + c;
    out[work->contact[cone->contact].at] += cone->slip - cone->slack[0];
    for (int k = 1; k <= cone->tails; ++k) {
      out[cone->tail + k - 1] -= cone->slack[k];
    }
  }
}

/* Scales all cones; 0 if a cone's slack or force is not inside. */
static int find_scalings(qd_coulomb_workspace *work) {
  int inside = 1;
  for (int c = 0; c < work->cone_count && inside; ++c) {
    inside = coulomb_find_scaling(work->cone + c);
  }
  return inside;
}

/* ------------------------------------------------------------ the system */

/* Adds W_nt^2 of a cone to its contact's block (36, by columns), with `share` of the slope in the
 * normal's row. */
static void add_scaling(const qd_coulomb_workspace *work, const coulomb_cone *cone, double share,
                        double *block) {
  const double *m = cone->middle, size = cone->eta * cone->eta;
  const int at = work->contact[cone->contact].at;
  for (int b = 0; b <= cone->tails; ++b) {
    const int column = b == 0 ? 0 : cone->tail + b - 1 - at;
    double slope = 0.0;
    for (int a = cone->tails; a >= 0; --a) {
      const int row = a == 0 ? 0 : cone->tail + a - 1 - at;
      double entry = 2.0 * m[a] * m[b];
      if (a == b) {
        entry += a == 0 ? -1.0 : 1.0;
      }
      if (a > 0) {
        slope += cone->direction[a] * entry;
      } else {
        entry -= share * slope;
      }
      block[CONE_ROWS * column + row] += size * entry;
    }
  }
}

static void set_system(qd_coulomb_workspace *work, double share) {
  memset(work->block, 0, (size_t)work->contact_count * CONE_ROWS * CONE_ROWS * sizeof(double));
  for (int c = 0; c < work->cone_count; ++c) {
    const coulomb_cone *cone = work->cone + c;
    add_scaling(work, cone, share, work->block + (size_t)cone->contact * CONE_ROWS * CONE_ROWS);
  }
  work->multiplies = 0;
  work->proximal = CANCELLED;
}

/* Steps of forces and slacks for the cones' aims and the residual in work->rhs. */
static void solve_step(qd_coulomb_workspace *work, double share) {
  const int count = 4 * work->tile_count;
  double *x = work->step;
  negate(x, work->rhs, count);
  for (int c = 0; c < work->cone_count; ++c) {
    coulomb_cone *cone = work->cone + c;
    coulomb_scale(cone, cone->aim, 1.0, cone->dslack);
    double slope = 0.0;
    for (int k = 1; k <= cone->tails; ++k) {
      slope += cone->direction[k] * cone->dslack[k];
      x[cone->tail + k - 1] += cone->dslack[k];
    }
    x[work->contact[cone->contact].at] += cone->dslack[0] - share * slope;
  }
  coulomb_solve_system(work, x);
  for (int c = 0; c < work->cone_count; ++c) { /* dv = W r - W^2 dlambda */
    coulomb_cone *cone = work->cone + c;
    double scaled[CONE_ROWS];
    cone->dforce[0] = x[work->contact[cone->contact].at];
    for (int k = 1; k <= cone->tails; ++k) {
      cone->dforce[k] = x[cone->tail + k - 1];
    }
    coulomb_scale(cone, cone->dforce, 1.0, scaled);
    for (int k = 0; k <= cone->tails; ++k) {
      scaled[k] = cone->aim[k] - scaled[k];
    }
    coulomb_scale(cone, scaled, 1.0, cone->dslack);
  }
}

/* Adds the curvature of |v_tail| along the last step to the residual. */
static void add_bend(qd_coulomb_workspace *work, double step, double share) {
  for (int c = 0; c < work->cone_count; ++c) {
    const coulomb_cone *cone = work->cone + c;
    double slip = 0.0, slope = 0.0;
    for (int k = 1; k <= cone->tails; ++k) {
      const double moved = cone->slack[k] + step * cone->dslack[k];
      slip += moved * moved;
      slope += cone->direction[k] * cone->dslack[k];
    }
    work->rhs[work->contact[cone->contact].at] += sqrt(slip) - cone->slip - share * step * slope;
  }
}

/* ------------------------------------------------------------ steps */

static void take_step(qd_coulomb_workspace *work, double step) {
  add_scaled(work->force, step, work->step, 4 * work->tile_count);
  for (int c = 0; c < work->cone_count; ++c) {
    coulomb_cone *cone = work->cone + c;
    for (int k = 0; k <= cone->tails; ++k) {
      cone->slack[k] += step * cone->dslack[k];
    }
  }
}

/* Computes the step with this share of the slope, in the workspace; returns its length. */
static double find_step(qd_coulomb_workspace *work, double share, double mu) {
  set_system(work, share);
  coulomb_factor(work);
  find_residual(work, work->rhs);
  coulomb_aim(work->cone, work->cone_count, 0.0, 0);
  solve_step(work, share);
  const double predicted = coulomb_reach(work->cone, work->cone_count, 1.0);
  coulomb_aim(work->cone, work->cone_count, coulomb_centring(predicted) * mu, 1);
  add_bend(work, predicted, share);
  solve_step(work, share);
  const double length = coulomb_reach(work->cone, work->cone_count, BACK_OFF);
  if (length >= SHORT_STEP) {
    return length;
  }
  find_residual(work, work->rhs);
  coulomb_aim(work->cone, work->cone_count, mu, 0);
  solve_step(work, share);
  return coulomb_reach(work->cone, work->cone_count, BACK_OFF);
}

/* One iteration; 0 if no step is possible. */
static int iterate(qd_coulomb_workspace *work, double mu, coulomb_run *run) {
  double best = -1.0, best_share = 0.0, length = 0.0;
  int k = 0;
  for (; k < SHARE_COUNT; ++k) {
    length = find_step(work, SHARES[k], mu);
    ++run->factorizations;
    if (length > best) {
      best = length;
      best_share = SHARES[k];
    }
    if (length >= WORTH) {
      break;
    }
  }
  if (k == SHARE_COUNT && best_share != SHARES[SHARE_COUNT - 1]) {
    length = find_step(work, best_share, mu);
    ++run->factorizations;
  }
  if (!(length > 1e-8)) {
    return 0;
  }
  take_step(work, length);
  return 1;
}

void coulomb_follow_path(qd_coulomb_workspace *work, coulomb_run *run) {
  int since_best = 0;
  if (run->resumes) {
    memcpy(work->force, work->path_force, 4 * (size_t)work->tile_count * sizeof(double));
  } else {
    start(work, run->reach);
  }
  for (;; ++run->iterations) {
    const double mu = read_point(work), before = work->best_error;
    coulomb_find_w(work, work->force, work->w);
    const double error = coulomb_error(work, work->force, work->w);
    coulomb_keep_best(work, error);
    since_best = work->best_error < before ? 0 : since_best + 1;
    if (error <= run->goal || run->iterations >= run->iteration_limit ||
        since_best > STALLED_COUNT || work->stopped || !(mu > 0.0) || !find_scalings(work) ||
        !iterate(work, mu, run)) {
      break;
    }
  }
  memcpy(work->path_force, work->force, 4 * (size_t)work->tile_count * sizeof(double));
}
