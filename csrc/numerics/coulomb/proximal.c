/* Proximal steps: the law with W and a share of its diagonal, centred at the last force,
 *
 *     w = W lambda + q + weight diag(W) (lambda - centre),
 *
 * solved by Newton (newton.c).
 *
 * Each is well conditioned where W is not, and its solution, or somewhat beyond it, the next
 * centre: an implicit flow. It passes places that nearly are solutions, where the path turns back
 * and Newton on the law itself stays, but slowly: several hundred to some thousand factors. The
 * last way. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/tuning.h"
#include "numerics/coulomb/work.h"

/* Share of W's diagonal, at first. It falls where Newton is quick, half as much where it is slow,
 * and rises where it fails. At rounding of the caller's numbers all that is to be had is had: a
 * solution, or forces that grow without end. */
#define WEIGHT_FALLS 0.4
#define WEIGHT_RISES 3.0
/* Newton's steps in one, until the residual has fallen so far; by half counts as well as done. */
#define INNER_FALLS 0.05
#define HALVINGS 5
/* How far the centre goes of what a whole step moves: more than all of it, as over-relaxed proximal
 * point methods do. RockPile of Siconos' problems takes 5600 factors with 1, 2700 with 1.3, 2400
 * with 1.5, 3100 with 1.7 and 3200 with 1.9, six of six perturbed ones each. */
#define BEYOND 1.5
/* Factors that the way is worth at most, and of large problems times contacts. */
#define FACTORS 6000
#define FACTORS_TIMES_CONTACTS 4000000

/* One Newton step, halved until the residual falls; the residual, or -1 where it does not. */
static double step_newton(qd_coulomb_workspace *work, double weight, double residual,
                          coulomb_run *run) {
  const int count = 4 * work->tile_count;
  const size_t bytes = (size_t)count * sizeof(double);
  double *base = work->correction, length = 1.0;
  coulomb_factor(work);
  ++run->factorizations;
  memcpy(base, work->force, bytes);
  memcpy(work->step, work->rhs, bytes);
  block_lu_solve(&work->lu, work->step);
  for (int k = 0; k < HALVINGS; ++k, length *= 0.5) {
    for (int i = 0; i < count; ++i) {
      work->force[i] = base[i] + length * work->step[i];
    }
    const double now = coulomb_set_newton(work, weight, work->path_force);
    if (now < (1.0 - 0.01 * length) * residual) {
      return now;
    }
  }
  memcpy(work->force, base, bytes);
  return -1.0;
}

/* One proximal step from the centre, which it moves where it gets half the way; the next weight.
 * The force is left where the step has led. */
static double step_proximal(qd_coulomb_workspace *work, double weight, coulomb_run *run) {
  const size_t bytes = 4 * (size_t)work->tile_count * sizeof(double);
  double *centre = work->path_force;
  memcpy(work->force, centre, bytes);
  const double first = coulomb_set_newton(work, weight, work->path_force);
  double residual = first, now = first;
  int steps = 0;
  while (!work->stopped && steps < FEW_TIMES && residual > INNER_FALLS * first && now >= 0.0) {
    now = step_newton(work, weight, residual, run);
    residual = now >= 0.0 ? now : residual;
    ++steps;
  }
  const int whole = residual <= INNER_FALLS * first;
  const double length = whole ? BEYOND : residual <= 0.5 * first ? 1.0 : 0.0;
  for (int i = 0; i < 4 * work->tile_count; ++i) {
    centre[i] += length * (work->force[i] - centre[i]);
  }
  if (!whole) {
    return smaller(WEIGHT_RISES * weight, TENFOLD);
  }
  return larger((2 * steps <= FEW_TIMES ? WEIGHT_FALLS : 2.0 * WEIGHT_FALLS) * weight,
                CALLERS_ROUNDING);
}

void coulomb_flow(qd_coulomb_workspace *work, coulomb_run *run, int *regular) {
  const int room = FACTORS_TIMES_CONTACTS / work->contact_count;
  const int last = run->factorizations + (room < FACTORS ? room : FACTORS);
  double weight = ROUGHLY, polished = work->best_error;
  *regular = 0;
  memcpy(work->path_force, work->best_force, 4 * (size_t)work->tile_count * sizeof(double));
  while (!work->stopped && run->factorizations < last && work->best_error > run->goal &&
         weight > CALLERS_ROUNDING) {
    weight = step_proximal(work, weight, run);
    coulomb_find_w(work, work->force, work->w);
    coulomb_keep_best(work, coulomb_error(work, work->force, work->w));
    if (work->best_error > run->goal && work->best_error <= AGAIN * polished) {
      polished = work->best_error;
      coulomb_polish(work, run, regular);
    }
  }
}
