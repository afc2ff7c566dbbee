/* Friction models as rows of the cone program, from the relative motion at a contact, w = (normal
 * gap, t1, t2, spin, roll1, roll2). */
#ifndef QD_DYNAMICS_FRICTION_H
#define QD_DYNAMICS_FRICTION_H

#include "qdsim.h"

#define MOTION_MAX 6 /* components of the relative motion at a contact */
#define FRICTION_ROWS_MAX (QD_RAYS_MAX + 6)

/* normal w_0 + weight[0] w_component[0] + weight[1] w_component[1] */
typedef struct friction_row {
  double normal;
  double weight[2];
  int component[2];
} friction_row;

typedef struct friction_rows {
  int count;     /* rows */
  int kind;      /* QD_ORTHANT or QD_LORENTZ */
  int log_count; /* logarithms of the barrier per row, or per Lorentz cone */
  int law;       /* QD_CONE or QD_PYRAMID */
  int halves;    /* Lorentz cones of two rows that come first, two per tangent; else 0 */
  int flat;      /* number of tangents without such cones; they share one row, which comes last */
  friction_row *row;
} friction_rows;

/* Unit rays (ray_count, 2) in the (t1, t2) plane; the first is t1. */
void friction_rays(double *rays, int ray_count);

/* The rows of one contact of dimension dim, at most FRICTION_ROWS_MAX, into out->row. Component c
 * cannot move if present[c] = 0, and is left out of the cone. A cone of two rows is written as two
 * half planes (its barrier splits exactly, log(w0^2 - w1^2) = log(w0 - w1) + log(w0 + w1)), and a
 * cone of one row as one row with two logarithms. */
void friction_rows_fill(friction_rows *out, const double *friction, int dim,
                        const int present[MOTION_MAX], int friction_model, int ray_count,
                        const double *rays);
/* The same, but always as one cone, also with two rows: for a contact that is compliant along its
 * normal, which is its first row. */
void friction_rows_fill_cone(friction_rows *out, const double *friction, int dim,
                             const int present[MOTION_MAX]);
/* The same as a sum of planar cones, w_n >= |mu_c w_c|, two for each component c (yield.h), and one
 * row for the components that are left out. This is MuJoCo's pyramid, with edges along plus and
 * minus each component. */
void friction_rows_fill_halves(friction_rows *out, const double *friction, int dim,
                               const int present[MOTION_MAX]);

/* The edges n +- mu_c t_c of MuJoCo's pyramid, for each component c, as rows of an orthant. */
void friction_rows_fill_edges(friction_rows *out, const double *friction, int dim);

/* Derivatives of the weights of row r by the pair's five coefficients: weight[i] has the slope
 * slope[i] by coefficient coefficient[i], -1 if it is constant. In a cone, coefficients that are
 * zero have no row. */
void friction_row_slopes(double slope[2], int coefficient[2], const friction_rows *rows, int r,
                         int dim, int ray_count, const double *rays);

/* A row's value for a motion, or for anything that is linear in it. */
static inline double friction_row_of(const friction_row *row, const double motion[MOTION_MAX]) {
  return row->normal * motion[0] + row->weight[0] * motion[row->component[0]] +
         row->weight[1] * motion[row->component[1]];
}

/* Adds the row's multiplier to a force in the contact frame. */
static inline void friction_row_add_force(double force[MOTION_MAX], const friction_row *row,
                                          double multiplier) {
  force[0] += row->normal * multiplier;
  force[row->component[0]] += row->weight[0] * multiplier;
  force[row->component[1]] += row->weight[1] * multiplier;
}

#endif
