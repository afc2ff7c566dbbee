/* One of MuJoCo's rows, J a + B J v + K d r + R f, in the second-order step: r the position that is
 * to be zero, d the impedance there, R = (1 - d) / d times an inverse weight. With h a = delta / h
 * - v, and times h^2, it is J delta + in_time J v + spring r + compliance f, which is, with a = h B
 * and k = h^2 K d, explicit  in_time = h (a - 1),            spring = k, compliance = h^2 R,
 *   implicit  in_time = -h / (1 + a + k),     spring = k / (1 + a + k),    compliance = h^2 R / (1
 * + a + k). The latter is that of MuJoCo's integrator "discrete", where velocity and position of
 * the reference are those at the end of the step. What would overshoot is bounded, where solref
 * gives times: a to that of a time constant of 2 h, with k less by the square of that; implicit k
 * to 1, a by the root. MuJoCo's documentation, "Solver parameters". Floor: dynamics. */
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
  double spring;     /* of r */
  double compliance; /* m/N */
} mujoco_row;

/* Of solver parameters as the model has them: K, B, kind, solimp. */
static inline mujoco_reference mujoco_reference_of(const double solver[8], double weight) {
  const mujoco_reference of = {solver[0], solver[1], (int)solver[2], weight, solver + 3};
  return of;
}

/* d at a depth (< 0) beyond the margin, and its slope. */
double mujoco_impedance(double *slope, const double solimp[5], double depth);

/* The largest d, within MuJoCo's bounds. */
double mujoco_largest_impedance(const double solimp[5]);

/* (1 - d) / d times a weight, no less than MuJoCo's least R; slope: by what slope is d's. */
double mujoco_regularisation(double *slope, double d, double d_slope, double weight);

/* At a `depth` <= 0; by_depth, by_h: derivatives, NULL: not wanted. */
void mujoco_row_compute(mujoco_row *out, mujoco_row *by_depth, mujoco_row *by_h,
                        const mujoco_reference *of, double depth, double h);

/* change = derivatives of a row whose r is the depth, by r, by J v and by h, under this force. */
void mujoco_row_change(double change[3], const mujoco_reference *of, double depth, double h,
                       double speed, double force);

#endif
