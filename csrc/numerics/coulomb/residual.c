/* Distance of a point from Coulomb's law, which judges every method's answer. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/coulomb/work.h"
#include "numerics/vectors.h"

void coulomb_find_w(qd_coulomb_workspace *work, const double *force, double *w) {
  block_matrix_multiply(&work->W, force, w);
  add_scaled(w, 1.0, work->q, 4 * work->tile_count);
}

/* Distance of a tail from sliding: the larger of the force's distance from the boundary, and the
 * distance of w from the nearest speed against the force, |w + s D^-1 force| at the best s. */
static double distance_from_sliding(const double *force, const double *w, const double *weight,
                                    int count, double inside) {
  double against[CONE_ROWS], light = HUGE_VAL, along = 0.0, size = 0.0, miss = 0.0;
  for (int k = 0; k < count; ++k) {
    light = smaller(weight[k], light);
  }
  for (int k = 0; k < count; ++k) {
    against[k] = force[k] * (light / weight[k]);
    along -= against[k] * w[k];
    size += against[k] * against[k];
  }
  const double slip = along > 0.0 ? along / size : 0.0;
  for (int k = 0; k < count; ++k) {
    miss = larger(fabs(w[k] + slip * against[k]), miss);
  }
  return larger(fabs(inside), miss);
}

/* Largest entry of the change that moves the force to the boundary, opposite to D w. */
static double distance_from_drag(const double *force, const double *w, const double *weight,
                                 int count, double normal) {
  double drag[CONE_ROWS], heavy = 0.0, size = 0.0, miss = 0.0;
  for (int k = 0; k < count; ++k) {
    heavy = larger(weight[k], heavy);
  }
  for (int k = 0; k < count; ++k) {
    drag[k] = weight[k] / heavy * w[k];
    size += drag[k] * drag[k];
  }
  if (!(size > 0.0)) {
    return HUGE_VAL;
  }
  const double per = normal / sqrt(size);
  for (int k = 0; k < count; ++k) {
    miss = larger(fabs(force[k] + per * drag[k]), miss);
  }
  return miss;
}

double coulomb_tail_error(const double *force, const double *w, const double *weight, int count,
                          double normal) {
  double size = 0.0, slip = 0.0;
  for (int k = 0; k < count; ++k) {
    size += force[k] * force[k];
    slip = larger(fabs(w[k]), slip);
  }
  size = sqrt(size);
  const double moves = smaller(distance_from_sliding(force, w, weight, count, normal - size),
                               distance_from_drag(force, w, weight, count, larger(normal, 0.0)));
  return larger(size - larger(normal, 0.0), smaller(slip, moves));
}

/* Force and speed (in the caller's units) of a cone's tail, in units. */
static void read_tail(const qd_coulomb_workspace *work, const coulomb_cone *cone,
                      const double *force, const double *w, double *pull, double *speed) {
  for (int k = 0; k < cone->tails; ++k) {
    pull[k] = force[cone->tail + k] / work->force_unit;
    speed[k] = w[cone->tail + k] / work->weight[cone->tail + k] / work->speed_unit;
  }
}

static double contact_error(const qd_coulomb_workspace *work, const coulomb_contact *contact,
                            const double *force, const double *w) {
  const double per_speed = 1.0 / work->speed_unit;
  const double normal = force[contact->at] / work->force_unit, opening = per_speed * w[contact->at];
  if (contact->cones == 0) {
    return per_speed * max_norm_or_infinity(w + contact->at, contact->dim);
  }
  double error = fabs(smaller(normal, opening)), pull[CONE_ROWS], speed[CONE_ROWS];
  for (int k = 0; k < contact->cones; ++k) {
    const coulomb_cone *cone = work->cone + contact->cone + k;
    if (cone->tails > 0 && normal > 0.0) {
      read_tail(work, cone, force, w, pull, speed);
      error = larger(
          coulomb_tail_error(pull, speed, work->weight + cone->tail, cone->tails, normal), error);
    } else if (cone->tails > 0) {
      error = larger(max_norm(force + cone->tail, cone->tails) / work->force_unit, error);
    }
  }
  return error;
}

double coulomb_error(qd_coulomb_workspace *work, const double *force, const double *w) {
  const double size = max_norm_or_infinity(force, 4 * work->tile_count);
  double worst = 0.0;
  if (!(size < HUGE_VAL) || !all_finite(w, 4 * work->tile_count)) {
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
