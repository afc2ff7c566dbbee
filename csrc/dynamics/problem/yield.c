#include "dynamics/problem/yield.h"

#include <math.h>

#include "dynamics/problem/mujoco_row.h"

/* R of the normal row, of the others and of a pyramid's edge, per unit of (1 - d) / d times the
 * inverse weights, and their slopes by the friction coefficient. */
static void shares(double of[3], double slope[3], const qd_model *model,
                   const qd_contact *contact) {
  const int pair = contact->pair, edges = model->pair.edges[pair];
  const double mu = fmax(contact->friction[0], LEAST_FRICTION), ratio = model->pair.impratio[pair];
  const double moves = contact->friction[0] > LEAST_FRICTION ? 1.0 : 0.0;
  of[0] = 1.0;
  slope[0] = 0.0;
  of[1] = mu * mu / ratio;
  slope[1] = moves * 2.0 * mu / ratio;
  of[2] = 2.0 * mu * mu * (1.0 + mu * mu) / ratio;
  slope[2] = moves * (4.0 * mu + 8.0 * mu * mu * mu) / ratio;
  if (edges > 0 && contact->dim > 1) {
    of[0] = of[2] / edges;
    slope[0] = slope[2] / edges;
  }
}

/* k and 1/k with (k + 1/k) / 2 = 1 + x, and their slopes by x. */
static void stiff_and_soft(double k[2], double slope[2], double x) {
  const double root = sqrt(x * x + 2.0 * x);
  k[1] = 1.0 + x + root;
  k[0] = 1.0 / k[1];
  slope[1] = root > 0.0 ? k[1] / root : 0.0;
  slope[0] = root > 0.0 ? -k[0] / root : 0.0;
}

/* The two cones of a tangent. With e = h / B and x = e K d: offsets k x r (r if separated),
 * compliances k e R and e R, R of an edge. by: derivatives of x, e, R, r by an input; NULL:
 * computes the values themselves. */
typedef struct edge_change {
  double x, e, R, r;
} edge_change;

static void compute_halves(yield_part half[2], double r, double x, double e, double R,
                           const edge_change *by) {
  double k[2], slope[2];
  stiff_and_soft(k, slope, x);
  for (int i = 0; i < 2; ++i) {
    if (by == NULL) {
      half[i] = (yield_part){r > 0.0 ? r : k[i] * x * r, k[i] * e * R, e * R};
      continue;
    }
    const double dk = slope[i] * by->x;
    half[i].offset = r > 0.0 ? by->r : (dk * x + k[i] * by->x) * r + k[i] * x * by->r;
    half[i].across = by->e * R + e * by->R;
    half[i].normal = dk * e * R + k[i] * half[i].across;
  }
}

/* The second-order step: a normal row, or an edge, and the tangents. */
static void compute_in_time(contact_yield *out, contact_yield_change *change, const qd_model *model,
                            const qd_contact *contact, double weight_share, double h) {
  const int pair = contact->pair, by_edges = model->pair.edges[pair] > 0 && contact->dim > 1;
  const double *reference = model->pair.reference + 4 * pair;
  const double r = contact->dist - model->pair.margin[pair];
  mujoco_reference of = {.K = reference[0],
                         .B = reference[1],
                         .kind = (int)reference[3],
                         .weight = weight_share * model->pair.weight[pair],
                         .solimp = model->pair.impedance + 5 * pair};
  mujoco_row n, t, n_by_r, t_by_r, n_by_h, t_by_h;
  double share[3], by_mu[3];
  shares(share, by_mu, model, contact);
  const int own = by_edges ? 2 : 0;
  mujoco_row_compute(&n, &n_by_r, &n_by_h, &of, r, h);
  of.K = 0.0;
  of.B = reference[2];
  mujoco_row_compute(&t, &t_by_r, &t_by_h, &of, r, h);
  if (by_edges) {
    t = n;
    t_by_r = n_by_r;
    t_by_h = n_by_h;
  }
  *out =
      (contact_yield){.whole = {n.spring * r, n.compliance * share[own], n.compliance * share[1]},
                      .in_time = {n.in_time, t.in_time}};
  if (change == NULL) {
    return;
  }
  change->by_distance =
      (contact_yield){.whole = {n.spring + n_by_r.spring * r, n_by_r.compliance * share[own],
                                n_by_r.compliance * share[1]},
                      .in_time = {n_by_r.in_time, t_by_r.in_time}};
  change->by_h = (contact_yield){
      .whole = {n_by_h.spring * r, n_by_h.compliance * share[own], n_by_h.compliance * share[1]},
      .in_time = {n_by_h.in_time, t_by_h.in_time}};
  change->by_friction =
      (contact_yield){.whole = {0.0, n.compliance * by_mu[own], n.compliance * by_mu[1]}};
}

/* The quasi-dynamic step. */
static void compute_at_rest(contact_yield *out, contact_yield_change *change, const qd_model *model,
                            const qd_contact *contact, double h) {
  const int pair = contact->pair;
  const double *reference = model->pair.reference + 4 * pair;
  const double K = reference[0], B = reference[1], across = h / reference[2], e = h / B;
  const double r = contact->dist - model->pair.margin[pair];
  double by_r, unit_by_r, share[3], by_mu[3];
  const double d = mujoco_impedance(&by_r, model->pair.impedance + 5 * pair, r);
  const double unit = mujoco_regularisation(&unit_by_r, d, by_r, model->pair.weight[pair]);
  shares(share, by_mu, model, contact);
  const double rate = B + h * K * d, along = h / rate, undone = along * K * d;
  const double still = r > 0.0 ? 1.0 : undone; /* multiplies r */
  const double x = e * K * d, R = unit * share[2];
  *out = (contact_yield){.whole = {still * r, along * unit * share[0], across * unit * share[1]}};
  compute_halves(out->half, r, x, e, R, NULL);
  if (change == NULL) {
    return;
  }
  *change = (contact_yield_change){0};
  const double along_by_r = -along * h * K * by_r / rate;
  const double undone_by_r = along * K * by_r + along_by_r * K * d;
  change->by_distance.whole = (yield_part){r > 0.0 ? 1.0 : undone + undone_by_r * r,
                                           (along_by_r * unit + along * unit_by_r) * share[0],
                                           across * unit_by_r * share[1]};
  const double along_by_h = B / (rate * rate);
  change->by_h.whole = (yield_part){r > 0.0 ? 0.0 : along_by_h * K * d * r,
                                    along_by_h * unit * share[0], out->whole.across / h};
  change->by_friction.whole = (yield_part){0.0, along * unit * by_mu[0], across * unit * by_mu[1]};
  const edge_change by_distance = {e * K * by_r, 0.0, unit_by_r * share[2], 1.0};
  const edge_change by_h = {x / h, e / h, 0.0, 0.0};
  const edge_change by_friction = {0.0, 0.0, unit * by_mu[2], 0.0};
  compute_halves(change->by_distance.half, r, x, e, R, &by_distance);
  compute_halves(change->by_h.half, r, x, e, R, &by_h);
  compute_halves(change->by_friction.half, r, x, e, R, &by_friction);
}

void contact_yield_compute(contact_yield *out, contact_yield_change *change, const qd_model *model,
                           const qd_contact *contact, double weight_share,
                           const qd_step_options *o) {
  if (o->dynamic) {
    compute_in_time(out, change, model, contact, weight_share, o->h);
  } else {
    compute_at_rest(out, change, model, contact, o->h);
  }
}
