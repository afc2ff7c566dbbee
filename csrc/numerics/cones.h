/* Cone arithmetic as structure of arrays.
 *
 * Cones of equal kind and dimension form a group of `padded` lanes, a multiple of four. Component i
 * of cone c stands at slot + i * padded + c of a vector over rows; numbers of a whole cone stand at
 * cone + c of a vector over cones. Padded lanes hold the point e = (1, 0, ..) and never move
 * (weight 0). Products follow the Jordan algebra: s o z = (s'z, s_0 z_1 + z_0 s_1), with e as its
 * unit. */
#ifndef QD_NUMERICS_CONES_H
#define QD_NUMERICS_CONES_H

#include <math.h>

#include "base/lanes.h"
#include "numerics/tiles/tiles.h"

/* GROUP_ENDS: the complementary pairs of interval rows, like orthant rows. Interval rows themselves
 * and equalities have no slack of their own (conic/path/box_cone.h). */
typedef enum group_kind {
  GROUP_ORTHANT,
  GROUP_ENDS,
  GROUP_LORENTZ,
  GROUP_EQUALITY,
  GROUP_INTERVAL
} group_kind;

typedef struct cone_group {
  int kind;
  int dim;
  int count;
  int padded;
  int slot;
  int cone;
} cone_group;

/* 1 if the lanes have a slack and a multiplier of their own. */
static inline int group_is_cone(const cone_group *group) {
  return group->kind == GROUP_ORTHANT || group->kind == GROUP_LORENTZ;
}

/* Vectors over cones are scratch within one call, except weight and target. */
typedef struct cone_product {
  int group_count;
  int cone_count; /* sum of counts, without equalities */
  cone_group *groups;
  double *weight;        /* 1, or 0 in padded lanes */
  double *target;        /* target complementarity of each cone; 1 in padded lanes */
  double *scratch[6];    /* over cones */
  cone_operator scaling; /* W^-1 */
  cone_operator inverse; /* W; shares u */
  double *point;         /* W^-1 slack = W dual, over rows */
  double *point_norm;    /* sqrt(det) of point, over cones */
} cone_product;

/* Loop over groups: for (group = product->groups; group < groups_end(product); ++group) */
static inline const cone_group *groups_end(const cone_product *product) {
  return product->groups + product->group_count;
}

/* Nesterov-Todd scaling of the pair; 0 if slack or dual is not strictly inside. */
int cones_scale(cone_product *product, const double *slack, const double *dual);
/* y = A x for each cone */
void cones_apply(const cone_product *product, const cone_operator *A, const double *x, double *y);
/* y += factor A x */
void cones_add(const cone_product *product, const cone_operator *A, double factor, const double *x,
               double *y);
/* p = (target + shift) e o point^-1 - point - point^-1 o (ds o dz); ds NULL: without the last
 * term */
void cones_correct(cone_product *product, double shift, const double *ds, const double *dz,
                   double *p);
/* Largest step <= limit that keeps point + step ds and point + step dz inside. */
double cones_step(const cone_product *product, const double *ds, const double *dz, double limit);
/* Sum over cones of slack'dual. */
double cones_gap(const cone_product *product, const double *slack, const double *dual);
/* Sum over cones of the targets. */
double cones_target(const cone_product *product);
/* Largest |slack o dual - target e| over cones, divided by max(floor, relative * target), or by its
 * rounding error if that is larger. */
double cones_deviation(const cone_product *product, const double *slack, const double *dual,
                       double floor, double relative);
/* Largest violation |w_1..| - w_0 over all cones; negative inside. */
double cones_violation(const cone_product *product, const double *w);
/* 1 if w lies in every cone, up to rounding. */
int cones_hold(const cone_product *product, const double *w);

/* |a| */
LANES_INLINE void lanes_size(lanes *out, const lanes *a) {
  const lane_bits without_sign = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  *out = (lanes)((lane_bits)*a & without_sign);
}

/* |rows_1..| of one cone of a group */
LANES_INLINE double cone_tail(const cone_group *group, int c, const double *rows) {
  double sum = 0.0;
  for (int i = 1; i < group->dim; ++i) {
    const double own = rows[group->slot + i * group->padded + c];
    sum += own * own;
  }
  return sqrt(sum);
}

#endif
