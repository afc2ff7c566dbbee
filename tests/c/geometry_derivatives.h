/* Derivatives of contacts against fourth-order central differences. */
#ifndef QD_TESTS_GEOMETRY_DERIVATIVES_H
#define QD_TESTS_GEOMETRY_DERIVATIVES_H

#include "geometry_scenes.h"

typedef struct tally {
  double error[3]; /* largest error of dist, pos, normal rows */
  int compared, skipped;
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
    double quotient[7];
    const double unit = j < 3 ? 1.0 : 1.0 / length;
    const double step = 1e-3 * curved / ample * (j < 3 ? fmin(angle, length / scale) : length);
    if (!difference_quotient(a, b, contact, j, step, quotient)) {
      ++result->skipped;
      continue;
    }
    ++result->compared;
    result->error[0] =
        fmax(result->error[0], fabs(quotient[0] - derivative.dist[j]) / (unit * scale * ample));
    for (int i = 0; i < 3; ++i) {
      const double pos = derivative.pos[6 * i + j], normal = derivative.normal[6 * i + j];
      const double pos_size = ample * fmax(unit * scale, fabs(pos));
      const double normal_size = noise * ample * fmax(unit, fabs(normal));
      result->error[1] = fmax(result->error[1], fabs(quotient[1 + i] - pos) / pos_size);
      result->error[2] = fmax(result->error[2], fabs(quotient[4 + i] - normal) / normal_size);
    }
  }
}

#endif
