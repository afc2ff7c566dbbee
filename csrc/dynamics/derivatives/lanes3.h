/* 3-vectors in four lanes: the formulas of base/vec3.h for four DOFs at once. Destination first. */
#ifndef QD_DYNAMICS_LANES3_H
#define QD_DYNAMICS_LANES3_H

#include "base/lanes.h"

/* r = a x b; r must not be a or b */
LANES_INLINE void lanes3_cross(lanes r[3], const lanes a[3], const lanes b[3]) {
  r[0] = a[1] * b[2] - a[2] * b[1];
  r[1] = a[2] * b[0] - a[0] * b[2];
  r[2] = a[0] * b[1] - a[1] * b[0];
}

/* r += a x p, p the same in all lanes */
LANES_INLINE void lanes3_add_cross(lanes r[3], const lanes a[3], const double p[3]) {
  r[0] += a[1] * p[2] - a[2] * p[1];
  r[1] += a[2] * p[0] - a[0] * p[2];
  r[2] += a[0] * p[1] - a[1] * p[0];
}

/* r -= a x p */
LANES_INLINE void lanes3_subtract_cross(lanes r[3], const lanes a[3], const double p[3]) {
  r[0] -= a[1] * p[2] - a[2] * p[1];
  r[1] -= a[2] * p[0] - a[0] * p[2];
  r[2] -= a[0] * p[1] - a[1] * p[0];
}

/* r += p . a */
LANES_INLINE void lanes3_add_dot(lanes *r, const double p[3], const lanes a[3]) {
  *r += (p[0] * a[0] + p[1] * a[1]) + p[2] * a[2];
}

/* r += s a */
LANES_INLINE void lanes3_axpy(lanes r[3], double s, const lanes a[3]) {
  r[0] += s * a[0];
  r[1] += s * a[1];
  r[2] += s * a[2];
}

LANES_INLINE void lanes3_clear(lanes r[3]) {
  const lanes zero = {0.0, 0.0, 0.0, 0.0};
  r[0] = r[1] = r[2] = zero;
}

#endif
