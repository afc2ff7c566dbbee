/* One of MuJoCo's rows, J a + B J v + K d r + R f, in the second-order step. r is the position
 * that is to be zero, d its impedance, R = (1 - d) / d times an inverse weight. The acceleration
 * satisfies h a = delta / h - v. Multiplied by h^2, the row becomes
 *   J delta + in_time J v + spring r + compliance f.
 * With a = h B and k = h^2 K d, the coefficients are
 *   explicit: in_time = h (a - 1), spring = k, compliance = h^2 R;
 *   implicit: in_time = -h / (1 + a + k), spring = k / (1 + a + k),
 *             compliance = h^2 R / (1 + a + k).
 * The implicit form belongs to MuJoCo's integrator "discrete", whose reference uses velocity and
 * position at the end of the step. If solref gives times, a and k are bounded against overshoot:
 * explicit a to that of a time constant of 2 h, with k reduced by the square of that ratio;
 * implicit k to 1, with a divided by the root of k. MuJoCo's documentation, "Solver parameters". */
#ifndef QD_DYNAMICS_MUJOCO_ROW_H
#define QD_DYNAMICS_MUJOCO_ROW_H

/* The law of a row. */
typedef struct mujoco_reference {
  double K, B;   /* 1/s^2, 1/s */
  int kind;      /* a sum of qd_reference_kind */
  double weight; /* approximately J M^-1 J', a constant */
  const double *solimp;
} mujoco_reference;

typedef struct mujoco_row {
  double in_time;    /* s */
  double spring;     /* multiplies r */
  double compliance; /* m/N */
} mujoco_row;

/* From solver parameters in the model's order: K, B, kind, solimp. */
static inline mujoco_reference mujoco_reference_of(const double solver[8], double weight) {
  const mujoco_reference of = {solver[0], solver[1], (int)solver[2], weight, solver + 3};
  return of;
}

/* The same of dry friction, which has no spring. */
static inline mujoco_reference mujoco_friction_of(const double solver[8], double weight) {
  mujoco_reference of = mujoco_reference_of(solver, weight);
  of.K = 0.0;
  return of;
}

/* d at a depth (< 0) beyond the margin, and its slope. */
double mujoco_impedance(double *slope, const double solimp[5], double depth);

/* (1 - d) / d times a weight, at least MuJoCo's smallest R; slope: its derivative, where d has the
 * slope d_slope. */
double mujoco_regularisation(double *slope, double d, double d_slope, double weight);

/* The row at a `depth` <= 0; by_depth, by_h: derivatives, NULL: not wanted. */
void mujoco_row_compute(mujoco_row *out, mujoco_row *by_depth, mujoco_row *by_h,
                        const mujoco_reference *of, double depth, double h);

/* change = derivatives by r, by J v and by h, under this force, of a row whose r is the depth. */
void mujoco_row_change(double change[3], const mujoco_reference *of, double depth, double h,
                       double speed, double force);

#endif
