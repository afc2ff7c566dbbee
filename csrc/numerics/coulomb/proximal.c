/* Proximal steps: Coulomb's law with a share of W's diagonal added, centred at the last force,
 *
 *     w = W lambda + q + weight diag(W) (lambda - centre),
 *
 * solved by Newton's method (newton.c).
 *
 * Each step is well conditioned even if W is not, and its solution, or a point somewhat beyond it,
 * is the next centre: an implicit flow. It passes near-solutions at which the path turns back and
 * Newton's method on the law itself gets stuck, but it is slow: several hundred to some thousand
 * factors. It is tried last. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/tuning.h"
#include "numerics/coulomb/work.h"

/* Changes of the share of W's diagonal. It falls where Newton's method is fast, by half as much
 * where it is slow, and rises where it fails. Once it is below the rounding of the caller's
 * numbers, further steps gain nothing: the force is a solution, or grows without bound. */
#define WEIGHT_FALLS 0.4
#define WEIGHT_RISES 3.0
/* A proximal step runs Newton's method until the residual has fallen to INNER_FALLS; a halved one
 * is accepted, too. Each Newton step is halved at most HALVINGS times. */
#define INNER_FALLS 0.05
#define HALVINGS 5
/* Step of the centre relative to the proximal step; above 1: over-relaxation. RockPile of Siconos'
 * problems takes 5600 factors with 1, 2700 with 1.3, 2400 with 1.5, 3100 with 1.7 and 3200 with
 * 1.9, over six perturbed problems each. */
#define BEYOND 1.5
/* Limit on factors, and for large problems on factors times contacts. */
#define FACTORS 6000
#define FACTORS_TIMES_CONTACTS 4000000

/* One Newton step, halved until the residual falls; returns the residual, or -1 if it does not
 * fall. */
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

/* One proximal step from the centre. Moves the centre if the residual falls at least by half;
 * returns the next weight. Leaves the force at the end of the step. */
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
