/* Newton's method on Coulomb's law in the form of Alart and Curnier: with the projection p on the
 * ball of radius aim_n = lambda_n - rho w_n, and 1 / rho the contact's mobility,
 *
 *     lambda_n = max(aim_n, 0),   lambda_tail = p(lambda_tail - rho w_tail).
 *
 * The active pieces determine at every step which contacts are open, stick or slide. Redundant
 * contacts make W singular on sticking directions: a share of its diagonal is added and compensated
 * by the repeated steps (a proximal point method), so that forces stay near those of the guess. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/conic/tuning.h"
#include "numerics/coulomb/work.h"
#include "numerics/vectors.h"

#define BLOCK_SIZE ((size_t)(CONE_ROWS * CONE_ROWS))

/* Adds a cone's rows: -residual to rhs, and A and B of A dlambda + B dw. Returns |residual|^2. */
static double set_tail(qd_coulomb_workspace *work, const coulomb_contact *contact,
                       const coulomb_cone *cone, double rho, double radius, double *A, double *B) {
  const double *force = work->force + cone->tail, *w = work->w + cone->tail;
  const int first = cone->tail - contact->at;
  double aim[CONE_ROWS], size = 0.0, sum = 0.0;
  for (int k = 0; k < cone->tails; ++k) {
    aim[k] = force[k] - rho * w[k];
    size += aim[k] * aim[k];
  }
  size = sqrt(size);
  const int slides = size > radius;
  work->strict &= cone->tails == 0 || fabs(size - radius) > WORKED_OUT * work->force_unit;
  const double ratio = slides ? radius / size : 1.0;
  for (int a = 0; a < cone->tails; ++a) {
    const double residual = force[a] - ratio * aim[a], along = aim[a] / size;
    const int row = first + a;
    work->rhs[cone->tail + a] = -residual;
    sum += residual * residual;
    if (!slides) {
      B[(CONE_ROWS + 1) * row] = rho;
      continue;
    }
    A[row] = -along;
    B[row] = rho * along;
    for (int b = 0; b < cone->tails; ++b) {
      const double across = ratio * ((a == b ? 1.0 : 0.0) - along * aim[b] / size);
      A[CONE_ROWS * (first + b) + row] = (a == b ? 1.0 : 0.0) - across;
      B[CONE_ROWS * (first + b) + row] = rho * across;
    }
  }
  return sum;
}

static double set_contact(qd_coulomb_workspace *work, int i) {
  const coulomb_contact *contact = work->contact + i;
  double *A = work->block + BLOCK_SIZE * (size_t)i, *B = work->factor + BLOCK_SIZE * (size_t)i;
  const double rho = 1.0 / coulomb_mobility(work, contact);
  const double *force = work->force + contact->at, *w = work->w + contact->at;
  const double radius = force[0] - rho * w[0];
  const int is_open = contact->cones > 0 && radius <= 0.0;
  const int alone = is_open || contact->cones == 0 ? contact->dim : 1;
  double sum = 0.0;
  work->strict &= contact->cones == 0 || fabs(radius) > WORKED_OUT * work->force_unit;
  for (int k = 0; k < alone; ++k) {
    const double residual = is_open ? force[k] : rho * w[k];
    *(is_open ? A + (CONE_ROWS + 1) * k : B + (CONE_ROWS + 1) * k) = is_open ? 1.0 : rho;
    work->rhs[contact->at + k] = -residual;
    sum += residual * residual;
  }
  for (int c = 0; alone < contact->dim && c < contact->cones; ++c) {
    sum += set_tail(work, contact, work->cone + contact->cone + c, rho, radius, A, B);
  }
  return sum;
}

double coulomb_set_newton(qd_coulomb_workspace *work, double weight, const double *centre) {
  const size_t bytes = (size_t)work->contact_count * BLOCK_SIZE * sizeof(double);
  double sum = 0.0;
  coulomb_find_w(work, work->force, work->w);
  work->strict = 1;
  for (int t = 0; centre != NULL && t < work->tile_count; ++t) {
    for (int e = work->W.row_start[t]; e < work->W.row_start[t + 1]; ++e) {
      for (int a = 4 * t; work->W.column[e] == t && a < 4 * t + 4; ++a) {
        work->w[a] += weight * work->W.value[16 * (size_t)e + 5 * (size_t)(a - 4 * t)] *
                      (work->force[a] - centre[a]);
      }
    }
  }
  memset(work->block, 0, bytes);
  memset(work->factor, 0, bytes);
  memset(work->rhs, 0, 4 * (size_t)work->tile_count * sizeof(double));
  for (int i = 0; i < work->contact_count; ++i) {
    sum += set_contact(work, i);
  }
  work->multiplies = 1;
  work->proximal = weight;
  return sqrt(sum);
}

void coulomb_polish(qd_coulomb_workspace *work, coulomb_run *run, int *regular) {
  const size_t bytes = 4 * (size_t)work->tile_count * sizeof(double);
  double last = HUGE_VAL;
  *regular = 0;
  memcpy(work->force, work->best_force, bytes);
  for (int step = 0;; ++step) {
    coulomb_find_w(work, work->force, work->w);
    const double error = coulomb_error(work, work->force, work->w);
    const int better = error < work->best_error;
    coulomb_keep_best(work, error);
    const int settled = error <= NEGLIGIBLE && error > 0.1 * last; /* redundant forces drift */
    last = error;
    coulomb_set_newton(work, 0.0, NULL);
    if (better || step == 0) {
      *regular = work->strict && step > 0 && work->lu.weakest > HALF_DIGITS && work->lu.sign > 0;
    }
    if (error <= LAST_DIGITS || settled || !(error < HUGE_VAL) || step == NEWTON_LIMIT ||
        work->stopped) {
      return;
    }
    work->proximal = PROXIMAL_SHIFT;
    coulomb_factor(work);
    ++run->factorizations;
    memcpy(work->step, work->rhs, bytes);
    coulomb_solve_system(work, work->step);
    add_scaled(work->force, 1.0, work->step, 4 * work->tile_count);
  }
}
