/* Proximal steps: the law with W and a share of its diagonal, centred at the last force,
 *
 *     w = W lambda + q + weight diag(W) (lambda - centre),
 *
 * solved by Newton on Alart and Curnier's equations, with p the projection on the cone of radius
 * aim_n = lambda_n - rho w_n, rho one over the contact's mobility:
 *
 *     lambda_n = max(aim_n, 0),   lambda_tail = p(lambda_tail - rho w_tail).
 *
 * Each is well conditioned where W is not, and its solution, or somewhat beyond it, the next
 * centre: an implicit flow. It passes places that nearly are solutions, where the path turns back
 * and Newton on the law itself stays, but slowly: several hundred to some thousand factors. The
 * last way. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/coulomb/work.h"

#define BLOCK_SIZE ((size_t)(CONE_ROWS * CONE_ROWS))
/* Share of W's diagonal: at first, and its bounds. It falls where Newton is quick, less where it is
 * slow, and rises where it fails. At the least one all that is to be had is had: a solution, or
 * forces that grow without end. */
#define WEIGHT_FIRST 1e-2
#define WEIGHT_LEAST 1e-9
#define WEIGHT_MOST 10.0
#define WEIGHT_FALLS 0.4
#define WEIGHT_FALLS_LITTLE 0.8
#define WEIGHT_RISES 3.0
#define QUICK 3
/* Newton's steps in one, until the residual has fallen so far; by half counts as well as done. */
#define INNER_STEPS 6
#define INNER_FALLS 0.05
#define INNER_HALF 0.5
#define HALVINGS 5
/* How far the centre goes of what a whole step moves: more than all of it, as over-relaxed proximal
 * point methods do. RockPile of Siconos' problems takes 5600 factors with 1, 2700 with 1.3, 2400
 * with 1.5, 3100 with 1.7 and 3200 with 1.9, six of six perturbed ones each. */
#define BEYOND 1.5
/* Factors that the way is worth at most, and of large problems times contacts. */
#define FACTORS 6000
#define FACTORS_TIMES_CONTACTS 4000000
/* Polishing the best force is tried again where its error has fallen so far. */
#define POLISH_AGAIN 0.1

/* Adds a cone's rows: -residual into rhs, A and B of A dlambda + B dw. Returns |residual|^2. */
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

/* Newton's equations at the force, of the law with this weight; the size of their residual. */
static double set_rows(qd_coulomb_workspace *work, double weight) {
  const size_t bytes = (size_t)work->contact_count * BLOCK_SIZE * sizeof(double);
  const double *centre = work->path_force;
  double sum = 0.0;
  coulomb_find_w(work, work->force, work->w);
  for (int t = 0; t < work->tile_count; ++t) {
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
    const double now = set_rows(work, weight);
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
  const double first = set_rows(work, weight);
  double residual = first, now = first;
  int steps = 0;
  while (!work->stopped && steps < INNER_STEPS && residual > INNER_FALLS * first && now >= 0.0) {
    now = step_newton(work, weight, residual, run);
    residual = now >= 0.0 ? now : residual;
    ++steps;
  }
  const int whole = residual <= INNER_FALLS * first;
  const double length = whole ? BEYOND : residual <= INNER_HALF * first ? 1.0 : 0.0;
  for (int i = 0; i < 4 * work->tile_count; ++i) {
    centre[i] += length * (work->force[i] - centre[i]);
  }
  if (!whole) {
    return smaller(WEIGHT_RISES * weight, WEIGHT_MOST);
  }
  return larger((steps <= QUICK ? WEIGHT_FALLS : WEIGHT_FALLS_LITTLE) * weight, WEIGHT_LEAST);
}

void coulomb_flow(qd_coulomb_workspace *work, coulomb_run *run, int *regular) {
  const int room = FACTORS_TIMES_CONTACTS / work->contact_count;
  const int last = run->factorizations + (room < FACTORS ? room : FACTORS);
  double weight = WEIGHT_FIRST, polished = work->best_error;
  *regular = 0;
  memcpy(work->path_force, work->best_force, 4 * (size_t)work->tile_count * sizeof(double));
  while (!work->stopped && run->factorizations < last && work->best_error > run->goal &&
         weight > WEIGHT_LEAST) {
    weight = step_proximal(work, weight, run);
    coulomb_find_w(work, work->force, work->w);
    coulomb_keep_best(work, coulomb_error(work, work->force, work->w));
    if (work->best_error > run->goal && work->best_error <= POLISH_AGAIN * polished) {
      polished = work->best_error;
      coulomb_polish(work, run, regular);
    }
  }
}
