/* Newton on an active set with Coulomb's rows.
 *
 * Every contact is open (lambda = 0), or closed (w_n = 0) with each of its cones stuck (w_tail = 0)
 * or sliding: with d = w_tail / |w_tail|,
 *
 *     lambda_tail + lambda_n d = 0,
 *     dlambda_tail + d dlambda_n + (lambda_n / |w_tail|) (I - d d') W dlambda = ... .
 *
 * The set is read anew at every step, off lambda - w in units. Redundant contacts leave W singular
 * on what sticks: a share of its diagonal is added, and taken away again by the repeated steps (a
 * proximal point method), so forces stay near those of the guess. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/coulomb/work.h"

#define BLOCK_SIZE ((size_t)(CONE_ROWS * CONE_ROWS))
/* Steps of a run, and rises of the error that end it. */
#define STEPS 15
#define RISES 3
/* Errors that count as rounding: nothing more is gained; and below which a step that gains less
 * than a factor of ten is the last: what is redundant moves on for long. */
#define MAP_ROUNDING 1e-15
#define FINE 1e-12
/* of W's diagonal */
#define NEWTON_PROXIMAL 1e-11
/* A pivot beside its tile below which forces are not unique, */
#define WEAKEST_PIVOT 1e-8
/* and a cone that is so near to another state, in units, leaves the set undecided. */
#define UNDECIDED 1e-10

/* States of all cones at (force, w); 1 if all are clear. */
static int read_states(qd_coulomb_workspace *work) {
  const double per_force = 1.0 / work->force_unit, per_speed = 1.0 / work->speed_unit;
  int strict = 1;
  for (int i = 0; i < work->contact_count; ++i) {
    const coulomb_contact *contact = work->contact + i;
    const double normal = per_force * work->force[contact->at];
    const double aim = normal - per_speed * work->w[contact->at];
    strict &= contact->cones == 0 || fabs(aim) > UNDECIDED;
    for (int k = 0; k < contact->cones; ++k) {
      coulomb_cone *cone = work->cone + contact->cone + k;
      const double per_slip = per_speed / cone->weight;
      double size = 0.0;
      for (int t = 0; t < cone->tails; ++t) {
        const double tail =
            per_force * work->force[cone->tail + t] - per_slip * work->w[cone->tail + t];
        size += tail * tail;
      }
      size = sqrt(size);
      cone->state = aim <= 0.0                    ? COULOMB_OPEN
                    : size <= larger(normal, 0.0) ? COULOMB_STICK
                                                  : COULOMB_SLIDE;
      strict &= cone->state == COULOMB_OPEN || cone->tails == 0 || fabs(size - normal) > UNDECIDED;
    }
  }
  return strict;
}

/* Rows of a sliding cone: A and B of A dlambda + B W dlambda = rhs, in units of speed (`mobility`
 * speeds a force) and so that neither is large. */
static void set_slide(const qd_coulomb_workspace *work, const coulomb_contact *contact,
                      const coulomb_cone *cone, double mobility, double *A, double *B,
                      double *rhs) {
  const double *force = work->force + cone->tail, *w = work->w + cone->tail;
  const double normal = work->force[contact->at];
  const int first = cone->tail - contact->at;
  double d[CONE_ROWS], slip = 0.0, pull = 0.0;
  for (int k = 0; k < cone->tails; ++k) {
    slip += w[k] * w[k];
    pull += force[k] * force[k];
  }
  slip = sqrt(slip);
  pull = sqrt(pull);
  const int stands =
      !(slip > 1e-14 * work->speed_unit * cone->weight); /* then the force says which way */
  for (int k = 0; k < cone->tails; ++k) {
    d[k] = stands ? (pull > 0.0 ? -force[k] / pull : 0.0) : w[k] / slip;
  }
  const double ratio = stands ? 0.0 : larger(normal, 0.0) * mobility / slip;
  const double per = 1.0 / (1.0 + ratio);
  for (int a = 0; a < cone->tails; ++a) {
    const int row = first + a;
    A[row] += per * mobility * d[a];
    A[CONE_ROWS * row + row] += per * mobility;
    rhs[cone->tail + a] = -per * mobility * (force[a] + normal * d[a]);
    for (int b = 0; b < cone->tails; ++b) {
      B[CONE_ROWS * (first + b) + row] += per * ratio * ((a == b ? 1.0 : 0.0) - d[a] * d[b]);
    }
  }
}

static void set_contact(qd_coulomb_workspace *work, int i) {
  const coulomb_contact *contact = work->contact + i;
  const coulomb_cone *cone = work->cone + contact->cone;
  double *A = work->block + BLOCK_SIZE * (size_t)i, *B = work->factor + BLOCK_SIZE * (size_t)i;
  const double mobility = coulomb_mobility(work, contact);
  const int open = contact->cones > 0 && cone->state == COULOMB_OPEN;
  for (int k = 0; k < contact->dim; ++k) {
    double *diagonal = open ? A : B;
    diagonal[(CONE_ROWS + 1) * k] = open ? mobility : 1.0;
    work->rhs[contact->at + k] =
        open ? -mobility * work->force[contact->at + k] : -work->w[contact->at + k];
  }
  for (int c = 0; c < contact->cones && !open; ++c, ++cone) {
    if (cone->state != COULOMB_SLIDE) {
      continue;
    }
    for (int k = 0; k < cone->tails; ++k) {
      B[(CONE_ROWS + 1) * (cone->tail - contact->at + k)] = 0.0;
    }
    set_slide(work, contact, cone, mobility, A, B, work->rhs);
  }
}

static void set_rows(qd_coulomb_workspace *work) {
  const size_t bytes = (size_t)work->contact_count * BLOCK_SIZE * sizeof(double);
  memset(work->block, 0, bytes);
  memset(work->factor, 0, bytes);
  memset(work->rhs, 0, 4 * (size_t)work->tile_count * sizeof(double));
  for (int i = 0; i < work->contact_count; ++i) {
    set_contact(work, i);
  }
  work->multiplies = 1;
  work->proximal = NEWTON_PROXIMAL;
}

void coulomb_polish(qd_coulomb_workspace *work, coulomb_run *run, int *regular) {
  const size_t bytes = 4 * (size_t)work->tile_count * sizeof(double);
  double last = HUGE_VAL;
  int rises = 0, strict = 0;
  *regular = 0;
  memcpy(work->force, work->best_force, bytes);
  for (int step = 0;; ++step) {
    coulomb_find_w(work, work->force, work->w);
    const double error = coulomb_error(work, work->force, work->w);
    const int better = error < work->best_error;
    coulomb_keep_best(work, error);
    rises += !(error < last);
    const int settled = error <= FINE && error > 0.1 * last;
    last = error;
    strict = read_states(work);
    if (better || step == 0) {
      *regular = strict && step > 0 && work->lu.weakest > WEAKEST_PIVOT && work->lu.sign > 0;
    }
    if (error <= MAP_ROUNDING || settled || !(error < HUGE_VAL) || rises > RISES || step == STEPS ||
        work->stopped) {
      return;
    }
    set_rows(work);
    coulomb_factor(work);
    ++run->factorizations;
    memcpy(work->step, work->rhs, bytes);
    coulomb_solve_system(work, work->step);
    for (int i = 0; i < 4 * work->tile_count; ++i) {
      work->force[i] += work->step[i];
    }
  }
}
