/* Derivatives of contacts against fourth-order central differences. */
#ifndef QD_TESTS_GEOMETRY_DERIVATIVES_H
#define QD_TESTS_GEOMETRY_DERIVATIVES_H

#include "geometry_scenes.h"

typedef struct tally {
  double error[3];   /* largest error of dist, pos, normal rows */
  uint64_t scene[3]; /* where they were */
  int compared, skipped;
  double tolerance; /* of each; a quotient that is not as close is asked again at other steps */
} tally;

/* Fourth-order central difference of one contact for one unit twist of b about the contact. Returns
 * 0 where a point of the stencil is on another branch. */
static inline int difference_quotient(shape *a, const shape *b, const contact_point *contact,
                                      int direction, double step, double out[7]) {
  static const double OFFSET[4] = {-2.0, -1.0, 1.0, 2.0};
  static const double WEIGHT[4] = {1.0 / 12.0, -2.0 / 3.0, 2.0 / 3.0, -1.0 / 12.0};
  memset(out, 0, 7 * sizeof(double));
  for (int k = 0; k < 4; ++k) {
    double twist[6] = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    contact_point contacts[CONTACTS_PER_PAIR_MAX];
    shape moved = *b;
    twist[direction] = OFFSET[k] * step;
    shape_move(&moved, twist, contact->pos, twist + 3);
    const int count = shapes_collide(placed(a), placed(&moved), INFINITY, contacts);
    const contact_point *found = find_feature(contacts, count, contact->feature);
    if (!found || vec3_error(found->normal, contact->normal) > 0.1) {
      return 0;
    }
    const double weight = WEIGHT[k] / step;
    out[0] += weight * (found->dist - contact->dist);
    for (int i = 0; i < 3; ++i) {
      out[1 + i] += weight * (found->pos[i] - contact->pos[i]);
      out[4 + i] += weight * (found->normal[i] - contact->normal[i]);
    }
  }
  return 1;
}

/* How much faster than the shapes themselves the contact moves and turns: steps must be smaller by
 * that. length: of the gap. */
static inline double amplification(const contact_point_derivative *derivative, double length,
                                   double scale) {
  double largest = 1.0;
  for (int k = 0; k < 18; ++k) {
    const double unit = k % 6 < 3 ? 1.0 : 1.0 / length;
    largest = fmax(largest, fabs(derivative->pos[k]) / (unit * scale));
    largest = fmax(largest, fabs(derivative->normal[k]) / unit);
  }
  return largest;
}

static inline void tally_add(tally *result, int k, double error) {
  if (!(error <= result->error[k])) {
    result->error[k] = error;
    result->scene[k] = scene_state;
  }
}

/* A difference quotient of dist, pos and normal. */
typedef int quotient_function(shape *a, const shape *b, const contact_point *contact, int direction,
                              double step, double out[7]);

/* What errors of the rows of dist, pos and normal are parts of: factor times the least, or times
 * the derivative itself where that is larger. */
typedef struct row_size {
  double factor[3], least[3];
  int relative;
} row_size;

static inline double row_error(const row_size *rows, int k, double quotient, double derivative) {
  const double size = rows->relative ? fmax(rows->least[k], fabs(derivative)) : rows->least[k];
  const double error = fabs(quotient - derivative) / (rows->factor[k] * size);
  return isnan(error) ? INFINITY : error;
}

static inline double largest_of(const double error[3]) {
  return fmax(error[0], fmax(error[1], error[2]));
}

/* Compares one direction. Where the quotient is not within the tolerance the step is halved: that
 * of a smooth contact then comes closer by 16, and a kink or another branch in reach of the stencil
 * is left behind. Then longer steps are tried, in which rounding counts less. A wrong derivative is
 * wrong at all of them. The smallest errors count. */
static inline void compare_direction(shape *a, const shape *b, const contact_point *contact,
                                     const contact_point_derivative *derivative, int j, double step,
                                     quotient_function *difference, const row_size *rows,
                                     tally *result) {
  static const double STEPS[] = {1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125, 4.0, 16.0};
  double least[3] = {INFINITY, INFINITY, INFINITY}, quotient[7];
  if (!difference(a, b, contact, j, step, quotient)) {
    ++result->skipped;
    return;
  }
  ++result->compared;
  for (int k = 0; k < 8 && !(largest_of(least) < result->tolerance); ++k) {
    if (k == 0 || difference(a, b, contact, j, STEPS[k] * step, quotient)) {
      double error[3] = {row_error(rows, 0, quotient[0], derivative->dist[j]), 0.0, 0.0};
      for (int i = 0; i < 3; ++i) {
        const double pos = derivative->pos[6 * i + j], normal = derivative->normal[6 * i + j];
        error[1] = fmax(error[1], row_error(rows, 1, quotient[1 + i], pos));
        error[2] = fmax(error[2], row_error(rows, 2, quotient[4 + i], normal));
      }
      if (largest_of(error) < largest_of(least)) {
        memcpy(least, error, sizeof least);
      }
    }
  }
  for (int k = 0; k < 3; ++k) {
    tally_add(result, k, least[k]);
  }
}

/* Compares in the pair's own units: lengths in gap (distance between the cores), the scale on which
 * the normal turns. */
static inline void compare_derivative(shape *a, shape *b, const contact_point *contact,
                                      double scale, double angle, tally *result) {
  contact_point_derivative derivative;
  shapes_collide_derivative(placed(a), placed(b), contact, &derivative);
  const double gap = fabs(contact->dist + skin(a) + skin(b));
  if (gap < 1e-4 * scale) {
    ++result->skipped;
    return;
  }
  const double length = fmin(gap, scale), ample = amplification(&derivative, length, scale);
  /* two vertices: the normal holds rounding / gap, the quotient that / step */
  const double noise = fmax(1.0, 1e-4 * pow(scale / length, 2.0));
  /* tips of ellipsoids and rims bend within a part of the sizes */
  const double curved = fmax(a->placed.type, b->placed.type) >= QD_CYLINDER ? 0.2 : 1.0;
  for (int j = 0; j < 6; ++j) {
    const double unit = j < 3 ? 1.0 : 1.0 / length;
    const double step = 1e-3 * curved / ample * (j < 3 ? fmin(angle, length / scale) : length);
    const row_size rows = {{ample, ample, noise * ample}, {unit * scale, unit * scale, unit}, 1};
    compare_direction(a, b, contact, &derivative, j, step, difference_quotient, &rows, result);
  }
}

#endif
