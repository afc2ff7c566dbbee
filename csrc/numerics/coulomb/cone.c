/* Operations on one Lorentz cone of a path: scaling, Jordan product, step to the boundary. */
#include <math.h>

#include "base/lanes.h"
#include "numerics/coulomb/work.h"

int coulomb_find_scaling(coulomb_cone *cone) {
  const int rows = cone->tails + 1;
  const double dv = sqrt(coulomb_determinant(cone->slack, cone->tails));
  const double dl = sqrt(coulomb_determinant(cone->force, cone->tails));
  if (!(cone->slack[0] > 0.0) || !(cone->force[0] > 0.0) || !(dv > 0.0) || !(dl > 0.0)) {
    return 0;
  }
  double product = 0.0;
  for (int k = 0; k < rows; ++k) {
    product += (cone->slack[k] / dv) * (cone->force[k] / dl);
  }
  const double per = 0.5 / sqrt(0.5 * (1.0 + product));
  for (int k = 0; k < rows; ++k) {
    const double force = cone->force[k] / dl;
    cone->middle[k] = per * (cone->slack[k] / dv + (k == 0 ? force : -force));
  }
  cone->eta = sqrt(dv / dl);
  coulomb_scale(cone, cone->force, 1.0, cone->point);
  return 1;
}

void coulomb_scale(const coulomb_cone *cone, const double *in, double sign, double *out) {
  const double *m = cone->middle, size = sign > 0.0 ? cone->eta : 1.0 / cone->eta;
  double along = 0.0;
  for (int k = 1; k <= cone->tails; ++k) {
    along += m[k] * in[k];
  }
  const double first = in[0], share = along / (1.0 + m[0]) + sign * first;
  for (int k = 1; k <= cone->tails; ++k) {
    out[k] = size * (in[k] + share * m[k]);
  }
  out[0] = size * (m[0] * first + sign * along);
}

/* Replaces b by a with point o a = b (Jordan product). */
static void divide(const coulomb_cone *cone, double *b) {
  const double *p = cone->point;
  double along = 0.0;
  for (int k = 1; k <= cone->tails; ++k) {
    along += p[k] * b[k];
  }
  const double first = (p[0] * b[0] - along) / coulomb_determinant(p, cone->tails);
  for (int k = 1; k <= cone->tails; ++k) {
    b[k] = (b[k] - p[k] * first) / p[0];
  }
  b[0] = first;
}

static void aim_at(coulomb_cone *cone, double target, int corrected) {
  double aim[CONE_ROWS] = {target}, slack[CONE_ROWS], force[CONE_ROWS];
  if (corrected) {
    coulomb_scale(cone, cone->dslack, -1.0, slack);
    coulomb_scale(cone, cone->dforce, 1.0, force);
    for (int k = 0; k <= cone->tails; ++k) {
      aim[0] -= slack[k] * force[k];
      aim[k] -= k == 0 ? 0.0 : slack[0] * force[k] + force[0] * slack[k];
    }
  }
  divide(cone, aim);
  for (int k = 0; k <= cone->tails; ++k) {
    cone->aim[k] = aim[k] - cone->point[k];
  }
}

void coulomb_aim(coulomb_cone *cone, int count, double target, int corrected) {
  for (int c = 0; c < count; ++c) {
    aim_at(cone + c, target, corrected);
  }
}

double coulomb_mean_product(const coulomb_cone *cone, int count) {
  double sum = 0.0;
  for (int c = 0; c < count; ++c) {
    for (int k = 0; k <= cone[c].tails; ++k) {
      sum += cone[c].slack[k] * cone[c].force[k];
    }
  }
  return count > 0 ? sum / count : 0.0;
}

static double reach(const double *from, const double *by, int rows) {
  double a = by[0] * by[0], b = from[0] * by[0];
  for (int k = 1; k < rows; ++k) {
    a -= by[k] * by[k];
    b -= from[k] * by[k];
  }
  const double c = coulomb_determinant(from, rows - 1), root = b * b - a * c;
  double step = HUGE_VAL;
  if (root >= 0.0 && sqrt(root) - b > 0.0) {
    step = c / (sqrt(root) - b);
  }
  return by[0] < 0.0 ? smaller(step, -from[0] / by[0]) : step;
}

double coulomb_reach(const coulomb_cone *cone, int count, double share) {
  double step = HUGE_VAL;
  for (int c = 0; c < count; ++c) {
    step = smaller(reach(cone[c].slack, cone[c].dslack, cone[c].tails + 1), step);
    step = smaller(reach(cone[c].force, cone[c].dforce, cone[c].tails + 1), step);
  }
  return smaller(1.0, share * step);
}

double coulomb_centring(double ahead) { return ahead > 0.1 ? (1.0 - ahead) * (1.0 - ahead) : 0.8; }
