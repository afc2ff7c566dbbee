/* Coulomb's law at a point: the one measure by which every method's answer counts. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/coulomb/work.h"

void coulomb_find_w(qd_coulomb_workspace *work, const double *force, double *w) {
  block_matrix_multiply(&work->W, force, w);
  for (int i = 0; i < 4 * work->tile_count; ++i) {
    w[i] += work->q[i];
  }
}

/* |tail - P(tail - speed)| with P on the disc of this radius */
static double disc_error(const double *tail, const double *speed, int count, double radius,
                         double per_force, double per_speed) {
  double aim[CONE_ROWS], size = 0.0, error = 0.0;
  for (int k = 0; k < count; ++k) {
    aim[k] = per_force * tail[k] - per_speed * speed[k];
    size += aim[k] * aim[k];
  }
  size = sqrt(size);
  const double shrink = size > radius ? radius / size : 1.0;
  for (int k = 0; k < count; ++k) {
    error = larger(fabs(per_force * tail[k] - shrink * aim[k]), error);
  }
  return size == size ? error : HUGE_VAL;
}

static double contact_error(const qd_coulomb_workspace *work, const coulomb_contact *contact,
                            const double *force, const double *w) {
  const double per_force = 1.0 / work->force_unit, per_speed = 1.0 / work->speed_unit;
  const double normal = per_force * force[contact->at], opening = per_speed * w[contact->at];
  if (contact->cones == 0) {
    return per_speed * max_norm_or_infinity(w + contact->at, contact->dim);
  }
  double error = fabs(smaller(normal, opening));
  for (int k = 0; k < contact->cones; ++k) {
    const coulomb_cone *cone = work->cone + contact->cone + k;
    if (cone->tails > 0) {
      error = larger(disc_error(force + cone->tail, w + cone->tail, cone->tails,
                                larger(normal, 0.0), per_force, per_speed),
                     error);
    }
  }
  return error;
}

double coulomb_error(qd_coulomb_workspace *work, const double *force, const double *w) {
  const double size = max_norm_or_infinity(force, 4 * work->tile_count);
  double worst = 0.0;
  if (!(size < HUGE_VAL)) {
    return HUGE_VAL;
  }
  work->force_unit = size > 0.0 ? size : 1.0;
  for (int i = 0; i < work->contact_count; ++i) {
    const double error = contact_error(work, work->contact + i, force, w);
    worst = error <= worst ? worst : error; /* NaN counts */
  }
  return worst == worst ? worst : HUGE_VAL;
}

void coulomb_keep_best(qd_coulomb_workspace *work, double error) {
  if (error < work->best_error) {
    work->best_error = error;
    memcpy(work->best_force, work->force, 4 * (size_t)work->tile_count * sizeof(double));
  }
}
