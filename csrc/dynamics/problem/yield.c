#include "dynamics/problem/yield.h"

#include <math.h>

/* MuJoCo's bounds of impedances, frictions and R. */
#define LEAST_IMPEDANCE 1e-4
#define MOST_IMPEDANCE 0.9999
#define LEAST_FRICTION 1e-5
#define LEAST_R 1e-15

static double clip(double x) { return fmin(fmax(x, LEAST_IMPEDANCE), MOST_IMPEDANCE); }

/* d at depth -r, and its slope by r, of solimp: two powers that meet at the midpoint. */
static double impedance(double *slope, const double solimp[5], double r) {
  const double least = clip(solimp[0]), most = clip(solimp[1]), middle = clip(solimp[3]);
  const double width = fmax(solimp[2], 0.0), power = fmax(solimp[4], 1.0);
  *slope = 0.0;
  if (width <= LEAST_R || least == most) {
    return 0.5 * (least + most);
  }
  const double x = fmax(-r, 0.0) / width;
  if (x >= 1.0) {
    return most;
  }
  double y = x, by_x = 1.0;
  if (power > 1.0 && x <= middle) {
    y = x * pow(x / middle, power - 1.0);
    by_x = power * pow(x / middle, power - 1.0);
  } else if (power > 1.0) {
    const double left = (1.0 - x) / (1.0 - middle);
    y = 1.0 - (1.0 - x) * pow(left, power - 1.0);
    by_x = power * pow(left, power - 1.0);
  }
  *slope = r < 0.0 ? -by_x * (most - least) / width : 0.0;
  return least + y * (most - least);
}

/* R of the normal row and of the others for one unit of (1 - d) / d times the inverse weights, and
 * their slopes by the friction coefficient. */
static void shares(double of[2], double slope[2], const qd_model *model,
                   const qd_contact *contact) {
  const int pair = contact->pair, edges = model->pair_edges[pair];
  const double mu = fmax(contact->friction[0], LEAST_FRICTION), ratio = model->pair_impratio[pair];
  const double moves = contact->friction[0] > LEAST_FRICTION ? 1.0 : 0.0;
  of[0] = 1.0;
  slope[0] = 0.0;
  of[1] = mu * mu / ratio;
  slope[1] = moves * 2.0 * mu / ratio;
  if (edges > 0 && contact->dim > 1) {
    const double edge = 2.0 * mu * mu * (1.0 + mu * mu) / ratio;
    const double by_mu = moves * (4.0 * mu + 8.0 * mu * mu * mu) / ratio;
    of[0] = edge / edges;
    slope[0] = by_mu / edges;
    of[1] = 0.5 * edge;
    slope[1] = 0.5 * by_mu;
  }
}

void contact_yield_compute(contact_yield *out, contact_yield_change *change, const qd_model *model,
                           const qd_contact *contact, double h) {
  const int pair = contact->pair;
  const double *reference = model->pair_reference + 3 * pair;
  const double K = reference[0], B = reference[1], across = h / reference[2];
  const double r = contact->dist - model->pair_margin[pair], weight = model->pair_weight[pair];
  double by_r, share[2], by_mu[2];
  const double d = impedance(&by_r, model->pair_impedance + 5 * pair, r);
  shares(share, by_mu, model, contact);
  const double unit = fmax((1.0 - d) / d * weight, LEAST_R);
  const double rate = B + h * K * d, along = h / rate, undone = along * K * d;
  const double still = r > 0.0 ? 1.0 : undone; /* of r */
  *out = (contact_yield){still * r, along * unit * share[0], across * unit * share[1]};
  if (change == NULL) {
    return;
  }
  const double unit_by_r = unit > LEAST_R ? -by_r / (d * d) * weight : 0.0;
  const double along_by_r = -along * h * K * by_r / rate;
  const double undone_by_r = along * K * by_r + along_by_r * K * d;
  change->by_distance = (contact_yield){r > 0.0 ? 1.0 : undone + undone_by_r * r,
                                        (along_by_r * unit + along * unit_by_r) * share[0],
                                        across * unit_by_r * share[1]};
  const double along_by_h = B / (rate * rate);
  change->by_h = (contact_yield){r > 0.0 ? 0.0 : along_by_h * K * d * r,
                                 along_by_h * unit * share[0], out->across / h};
  change->by_friction = (contact_yield){0.0, along * unit * by_mu[0], across * unit * by_mu[1]};
}
