/* MuJoCo's contacts. MuJoCo's rows of a contact,
 *   J a + B J v + K d r + R f in the dual of the friction cone,   r: distance beyond the margin,
 * are those of the second-order step (mujoco_row.h) if r < 0. The spring K d r acts along the
 * normal only, or on each of a pyramid's edges n +- mu t.
 *
 * Without acceleration they are a law for velocities, used by the quasi-dynamic step: a contact
 * yields along its normal until its spring carries the load, and creeps across it as long as
 * friction is loaded. With the spring at the end of the step, r + J delta, and J v = J delta / h,
 * the rows, divided by the factor of delta, are
 *   normal  J delta + h K d / (B + h K d) r + h / (B + h K d) R_n f,
 *   across  J delta + h / B_t R_t f,
 * which creep like MuJoCo's for every h, and never overshoot. Separated bodies yield from the point
 * of contact on: J delta + r replaces the first two terms. Impedance d(r), R = (1 - d) / d times
 * the inverse weights: MuJoCo's documentation, "Solver parameters".
 *
 * In a pyramid every tangent has two edges n +- mu t of compliance R, B (J_n +- mu J_t) v + K d r +
 * R f: a planar cone. With forces (n, t) = (f+ + f-, f+ - f-) its compliance is h/B R/2 along both,
 * and the spring is that of the beginning of the step. With s = -K d r/R, pairs at rest carry
 * n = 2 s if they do not slide, and more if they slide (f- = 0). The cone is replaced by two planar
 * cones in parallel, each of half its stiffness, with k and 1/k times the compliance along the
 * normal. Each carries s at rest, also while sliding, since 1 / (1 + k) + 1 / (1 + 1/k) = 1. With
 * (k + 1/k) / 2 = 1 + x, x = h K d / B, they are together as stiff along the normal as the spring
 * at the end of the step. Tangents without motion are springs along the normal only. */
#ifndef QD_DYNAMICS_YIELD_H
#define QD_DYNAMICS_YIELD_H

#include "dynamics/problem/friction.h"
#include "mechanics/model.h"

#define YIELD_ROWS_MAX ((MOTION_MAX - 1) * 4) /* of a contact: two cones per tangent */
#define LEAST_FRICTION 1e-5                   /* MuJoCo's bound of each coefficient */

/* One kind of rows. */
typedef struct yield_part {
  double offset;         /* of the normal row, m */
  double normal, across; /* compliance of the normal row and of the others, m/N */
} yield_part;

/* Offsets and compliances of a contact's rows. */
typedef struct contact_yield {
  yield_part whole;   /* the cone, also of a single row; or all tangents of a pyramid */
  yield_part half[2]; /* of the two cones of a tangent */
  /* s, second-order step: the relative velocity under v is multiplied by this and added to the
   * offsets; of its normal component and of the others */
  double in_time[2];
} contact_yield;

typedef struct contact_yield_change {
  contact_yield by_distance, by_h;
  contact_yield by_friction; /* by the first coefficient */
} contact_yield_change;

/* 1 if contacts of the pair follow MuJoCo's law: the options say so, and the pair has no stiffness
 * of its own. */
static inline int contact_yields(const qd_model *model, const qd_step_options *o, int pair) {
  return o->contacts == QD_CONTACTS_MUJOCO && !(model->parameters.pair_compliance[pair] > 0.0) &&
         model->pair.soft[pair] < 0;
}

/* change: derivatives, NULL: not wanted. weight_share: factor of the inverse weight, for the
 * second-order step. */
void contact_yield_compute(contact_yield *out, contact_yield_change *change, const qd_model *model,
                           const qd_contact *contact, double weight_share,
                           const qd_step_options *o);

/* 1 if contacts follow MuJoCo's law in the second-order step: separated bodies do not
 * interact within a step. */
static inline int contacts_yield_in_time(const qd_step_options *o) {
  return o->dynamic && o->contacts == QD_CONTACTS_MUJOCO;
}

/* 1 if springs, dampers and actuators have the force of the beginning of such a step. */
static inline int springs_act_early(const qd_model *model, const qd_step_options *o) {
  return contacts_yield_in_time(o) && model->integration != QD_INTEGRATE_LATE;
}

/* 1 if rows of the pair follow MuJoCo's integrator "discrete". */
static inline int contact_yield_is_implicit(const qd_model *model, const qd_step_options *o,
                                            int pair) {
  return o->dynamic && ((int)model->pair.reference[4 * pair + 3] & QD_REFERENCE_IMPLICIT) != 0;
}

/* 1 if its rows are those of a pyramid: planar cones, or in the second-order step its edges. */
static inline int contact_yields_by_edges(const qd_model *model, const qd_step_options *o,
                                          const qd_contact *contact) {
  return contact_yields(model, o, contact->pair) && model->pair.edges[contact->pair] > 0 &&
         contact->dim > 1;
}

/* Offset and compliance of row r. */
static inline void contact_yield_row(double *offset, double *compliance, const contact_yield *of,
                                     const friction_rows *rows, int r) {
  const int is_half = r < 2 * rows->halves;
  const yield_part *part = is_half ? of->half + r / 2 % 2 : &of->whole;
  const int is_normal = rows->row[r].normal != 0.0;
  *offset = is_normal ? part->offset : 0.0;
  *compliance = is_normal ? part->normal : part->across;
  if (!is_half && rows->flat > 0) { /* shared by some tangents only */
    *compliance *= (0.5 * rows->halves + rows->flat) / rows->flat;
  }
}

/* out (rows) = change of a contact's rows by changes of offset, compliance and in_time, under these
 * multipliers and this relative velocity under v. */
static inline void contact_yield_rows(double *out, const contact_yield *change,
                                      const friction_rows *rows, const double *dual,
                                      const double speed[MOTION_MAX]) {
  double moved[MOTION_MAX];
  for (int c = 0; c < MOTION_MAX; ++c) {
    moved[c] = change->in_time[c > 0] * speed[c];
  }
  for (int r = 0; r < rows->count; ++r) {
    double offset, compliance;
    contact_yield_row(&offset, &compliance, change, rows, r);
    out[r] = offset + compliance * dual[r] + friction_row_of(rows->row + r, moved);
  }
}

#endif
