#include "dynamics/derivatives/step_point.h"

#include <string.h>

#include "base/quat.h"

void ball_part_compute(ball_part *out, const problem *p, const ball_limit *limit,
                       const double *delta) {
  double slope[9], back[3];
  memset(out, 0, sizeof *out);
  const double angle = vec3_norm(limit->turn);
  for (int i = 0; limit->capped && i < 3; ++i) { /* turn's own axis: inverse' turn = turn */
    out->rows[i] = limit->turn[i] / angle;
  }
  rotation_left_jacobian_inverse_slope(slope, limit->turn, delta + limit->dof);
  for (int i = 0; i < 3; ++i) {
    slope[4 * i] += 1.0;
  }
  mat3_mul(out->rows + 3, slope, limit->inverse);
  vec3_scale(back, limit->turn, -1.0); /* the transpose is the inverse at -turn */
  rotation_left_jacobian_inverse_slope(slope, back, p->solution.dual + limit->row + 1);
  mat3_mul(out->force, slope, limit->inverse);
  for (int i = 0; i < 9; ++i) {
    out->force[i] = -out->force[i];
  }
}
