/* Newton's method on Coulomb's law itself, in the program's own variables.
 *
 * With y = lambda - r w of a contact, the law is lambda = P(y) (Alart and Curnier 1991): P(y) = 0
 * where y_head <= 0, y where |y_tail| <= y_head, else y_head (1, t) with t = y_tail / |y_tail|. The
 * active set, i.e. the case of each contact, is determined anew in each step. On it
 *
 *     stick   w = 0,
 *     slide   w_head = 0,  lambda_tail = lambda_head t  (only the part of dw_tail that turns t
 * counts),
 *
 * where w = 0 is enforced by d lambda = -hard w, so that the matrix has the path's pattern: Q + G'
 * H G with d lambda = c - H dw. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/tuning.h"
#include "numerics/coulomb/primal_path.h"
#include "numerics/vectors.h"

/* Stiffness of held directions relative to the largest entry of Q. 1e2: twice as many steps; 1e5:
 * steps overshoot if the active set is not found at once; 1e8: rounding of w, times this, dominates
 * the forces. */
#define HARD 1e3
/* Number of steps without halving the error after which the polish fails. */
#define POLISH_STEPS 3
/* Steps of the power method. The equations are singular if they amplify some motion by more than 1
 * / SLIGHT. */
#define POWER_STEPS 3

/* y of the cone; returns the length of its tail. */
static double set_aim(const primal_path *p, const coulomb_cone *cone, double *y) {
  const double *w = p->gap + cone->tail - 1;
  double size = 0.0;
  y[0] = cone->force[0] - p->stiffness * w[0];
  for (int k = 1; k <= cone->tails; ++k) {
    y[k] = cone->force[k] - p->stiffness * w[k];
    size += y[k] * y[k];
  }
  return sqrt(size);
}

/* State and direction of a cone, and the derivative of the force by a turn of the slip; returns
 * |lambda - P(y)|. */
static double choose_state(const primal_path *p, coulomb_cone *cone) {
  double y[CONE_ROWS];
  const double size = set_aim(p, cone, y), head = larger(y[0], 0.0);
  const double shrink = size > head ? head / size : 1.0, most = p->hard / p->stiffness;
  double error = fabs(cone->force[0] - head);
  for (int k = 1; k <= cone->tails; ++k) {
    error = larger(error, fabs(cone->force[k] - shrink * y[k]));
  }
  cone->state = !(y[0] > 0.0) ? COULOMB_OPEN : size > y[0] ? COULOMB_SLIDE : COULOMB_STICK;
  for (int k = 1; k <= cone->tails && cone->state == COULOMB_SLIDE; ++k) {
    cone->direction[k] = y[k] / size;
  }
  if (cone->state == COULOMB_SLIDE) {
    cone->slip = smaller(1.0 / (1.0 - shrink), most);
    cone->eta = p->stiffness * smaller(shrink * cone->slip, most);
  }
  return error == error ? error : HUGE_VAL;
}

/* States of all cones; returns the residual of the equations, in units of g. */
static double choose_states(primal_path *p) {
  double error = max_norm_or_infinity(p->pull, p->variables);
  for (int c = 0; c < p->cones; ++c) {
    error = larger(choose_state(p, p->cone + c), error);
  }
  return error / p->stiffness;
}

/* c of d lambda = c - H dw */
static void set_push(const primal_path *p, const coulomb_cone *cone, double *push) {
  const double *w = p->gap + cone->tail - 1, *force = cone->force;
  double along = 0.0;
  for (int k = 0; k <= cone->tails; ++k) {
    push[k] = cone->state == COULOMB_OPEN ? -force[k] : -p->hard * w[k];
    along += k > 0 && cone->state == COULOMB_SLIDE ? cone->direction[k] * force[k] : 0.0;
  }
  for (int k = 1; k <= cone->tails && cone->state == COULOMB_SLIDE; ++k) {
    const double across = force[k] - along * cone->direction[k];
    push[k] = (force[0] + push[0] - along) * cone->direction[k] - cone->slip * across;
  }
}

static void step(primal_path *p) {
  for (int c = 0; c < p->cones; ++c) {
    set_push(p, p->cone + c, p->cone[c].aim);
  }
  primal_system_solve(p);
  add_scaled(p->x, 1.0, p->dx, p->variables);
  for (int c = 0; c < p->cones; ++c) {
    coulomb_cone *cone = p->cone + c;
    for (int k = 0; k <= cone->tails; ++k) {
      cone->force[k] += cone->dforce[k];
    }
  }
  primal_springs_choose(p);
}

int primal_path_load(primal_path *p, const conic_program *program, const double *x,
                     const double *dual) {
  if (!primal_system_begin(p, program)) {
    return 0;
  }
  memset(p->x, 0, 4 * (size_t)p->tiles * sizeof(double));
  memcpy(p->x, x, (size_t)p->variables * sizeof(double));
  for (int c = 0; c < p->cones; ++c) {
    coulomb_cone *cone = p->cone + c;
    const double *own = dual + cone->tail - 1;
    memcpy(cone->force, own, (size_t)(cone->tails + 1) * sizeof(double));
    if (p->paired[cone->tail - 1]) {
      cone->force[0] = own[0] + own[1];
      cone->force[1] = own[0] - own[1];
    }
  }
  return 1;
}

void primal_path_read(const primal_path *p, double *x, double *dual, double *dual_eq) {
  primal_springs_read(p, dual, dual_eq);
  memcpy(x, p->x, (size_t)p->variables * sizeof(double));
  for (int c = 0; c < p->cones; ++c) {
    const coulomb_cone *cone = p->cone + c;
    double *own = dual + cone->tail - 1;
    memcpy(own, cone->force, (size_t)(cone->tails + 1) * sizeof(double));
    if (p->paired[cone->tail - 1]) {
      own[0] = 0.5 * (cone->force[0] + cone->force[1]);
      own[1] = 0.5 * (cone->force[0] - cone->force[1]);
    }
  }
}

/* sqrt(x'Qx), with Qx into image */
static double cost_norm(const primal_path *p, const conic_program *program, const double *x,
                        double *image) {
  double sum = 0.0;
  primal_cost_product(p, program, x, image);
  for (int i = 0; i < p->variables; ++i) {
    sum += x[i] * image[i];
  }
  return sqrt(sum);
}

int primal_is_regular(primal_path *p, const conic_program *program) {
  double most = 0.0;
  for (int i = 0; i < 4 * p->tiles; ++i) {
    p->dx[i] = i < p->variables ? 1.0 + 0.5 * sin((double)i) : 0.0; /* a generic motion */
  }
  double size = cost_norm(p, program, p->dx, p->rhs);
  for (int k = 0; k < POWER_STEPS && size > 0.0; ++k) {
    for (int i = 0; i < 4 * p->tiles; ++i) {
      p->dx[i] = p->rhs[i] / size;
    }
    block_lu_solve(&p->lu, p->dx);
    size = cost_norm(p, program, p->dx, p->rhs);
    most = size > most ? size : most;
  }
  return p->lu.sign > 0 && SLIGHT * most < 1.0;
}

int primal_polish(primal_path *p, const conic_program *program, double tolerance, int most_factors,
                  int *factorizations) {
  double best = HUGE_VAL, error = HUGE_VAL;
  p->hold = 0.0;
  p->hard = HARD * p->stiffness;
  for (int c = 0; c < p->cones; ++c) {
    memset(p->cone[c].slack, 0, sizeof p->cone[c].slack);
  }
  for (int steps = 0, since = 0; steps <= most_factors; ++steps) {
    primal_system_measure(p, program);
    error = choose_states(p);
    since = error < 0.5 * best ? 0 : since + 1;
    best = smaller(error, best);
    if ((error <= tolerance && steps > 0) || since > POLISH_STEPS) {
      break;
    }
    primal_system_factor(p, program, 0);
    ++*factorizations;
    if (error <= tolerance) { /* already solved: factored for primal_is_regular */
      break;
    }
    step(p);
  }
  p->hard = 0.0;
  return error <= tolerance;
}
