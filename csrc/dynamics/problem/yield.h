/* MuJoCo's contacts at rest. MuJoCo's rows of a contact,
 *   J a + B J v + K d r + R f in the dual of the friction cone,   r: distance beyond the margin,
 * are with no acceleration a law of velocities: a contact yields along its normal until its spring
 * carries the load, and creeps across it for as long as friction is loaded. With the spring at the
 * end of the step, r + J delta, and J v = J delta / h, rows divided by what multiplies delta are
 *   normal  J delta + h K d / (B + h K d) r + h / (B + h K d) R_n f,
 *   across  J delta + h / B_t R_t f,
 * which creep as MuJoCo's do whatever h is, and never overshoot. What is apart yields from where it
 * touches: J delta + r in place of the first two terms. Impedance d(r), R = (1 - d) / d times the
 * inverse weights: MuJoCo's documentation, "Solver parameters". A pyramid of n edges, whose R is
 * that of an edge, yields where all of them act as a cone with R / n along and R / 2 across, rows
 * of friction times motion. Floor: dynamics. */
#ifndef QD_DYNAMICS_YIELD_H
#define QD_DYNAMICS_YIELD_H

#include "mechanics/model.h"

/* What the rows of a contact have, and how it changes. */
typedef struct contact_yield {
  double offset;         /* of the normal row, m */
  double normal, across; /* compliance of the normal row and of the others, m/N */
} contact_yield;

typedef struct contact_yield_change {
  contact_yield by_distance, by_h;
  contact_yield by_friction; /* by the first coefficient */
} contact_yield_change;

/* 1 if contacts of the pair are MuJoCo's: the options say so, and it has no stiffness of its own.
 */
static inline int contact_yields(const qd_model *model, const qd_step_options *o, int pair) {
  return o->contacts == QD_CONTACTS_MUJOCO && !(model->parameters.pair_compliance[pair] > 0.0) &&
         model->pair_soft[pair] < 0;
}

/* change: NULL, or filled too. */
void contact_yield_compute(contact_yield *out, contact_yield_change *change, const qd_model *model,
                           const qd_contact *contact, double h);

/* out (rows) = what a change of both offset and compliance does to a contact's rows under these
 * multipliers. */
static inline void contact_yield_rows(double *out, const contact_yield *change, int rows,
                                      const double *dual) {
  for (int r = 0; r < rows; ++r) {
    out[r] = r == 0 ? change->offset + change->normal * dual[0] : change->across * dual[r];
  }
}

#endif
