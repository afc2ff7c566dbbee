/* Shares of the motion of intervals' ends in the derivatives of programs with compliant rows. */
#include <math.h>

#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/workspace.h"

/* Stiffness of an end's pair: slack / distance. */
static double stiffness(double slack, double distance) {
  return slack > 0.0 ? (distance > 0.0 ? slack / distance : HUGE_VAL) : 0.0;
}

/* Shares of the motions of an interval's ends that its multiplier follows: of the end from which
 * the row is measured, and of the other. */
static void share_motion(const compliant_program *soft, const compliant_row *row, double *own,
                         double *other) {
  const double near = stiffness(soft->found.slack[row->row], soft->found.dual[row->row]);
  const double far = row->slip_row >= 0 ? stiffness(soft->found.slack[row->slip_row],
                                                    soft->found.dual[row->slip_row])
                                        : 0.0;
  const double all = row->compliance + near + far;
  *own = near == HUGE_VAL ? 1.0 : all > 0.0 ? near / all : 0.0;
  *other = far == HUGE_VAL ? 1.0 : all > 0.0 ? far / all : 0.0;
}

void conic_sensitivity_limits(const qd_cone_workspace *workspace, double *by_lower,
                              double *by_upper) {
  const compliant_program *soft = &workspace->soft;
  if (workspace->envelope.used) {
    envelope_share(workspace, &soft->source.program, by_lower, by_upper);
    return;
  }
  for (int i = 0; soft->used && i < soft->rows; ++i) {
    const compliant_row *row = soft->row + i;
    double own = 0.0, other = 0.0;
    if (row->kind == COMPLIANT_FORCE) {
      own = other = 0.5;
    } else if (row->kind == COMPLIANT_END) {
      share_motion(soft, row, &own, &other);
    } else if (row->kind == COMPLIANT_LIMITED && row->is_interval) {
      conic_ends_share(workspace, row->row, &own, &other);
    }
    by_lower[i] = row->sign > 0.0 ? own : other;
    by_upper[i] = row->sign > 0.0 ? other : own;
  }
}
