#include "numerics/coulomb/primal_path.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/tuning.h"
#include "numerics/vectors.h"

/* Shares of mu. AHEAD: target of a step where Mehrotra's step is short, and of a flow behind a turn
 * (with 0.3 and 0.1, flows end elsewhere, if at all). TURNS: smallest reduction of mu by a step;
 * with less, the path counts as turning. */
#define AHEAD 0.6
#define TURNS 0.1
/* Smallest eigenvalue of a product, relative to mu, below which a centring step is preferred. */
#define OFF_CENTRE 0.2
/* 1 / dt of a flow, initially 1: a short step multiplies it, a long one divides it. */
#define HOLD_RISES 4.0
#define HOLD_MOST 1e4
#define NO_STEP 0.05
#define LONG 0.8
/* Smallest and inverse largest eigenvalue of a product, relative to mu, beyond which a flow
 * recentres a cone. */
#define ASTRAY 0.05
/* Number of steps after which an unconverged flow increases its mu. */
#define FLOW_STEPS 40
/* Slacks of the starts, tried in turn, relative to the largest free one. */
static const double STARTS[] = {1.0, 100.0};

typedef struct primal_run {
  primal_path *path;
  const conic_program *program;
  double mu, target;
  double reach; /* of the start */
  double least; /* smallest eigenvalue of a product */
  int flows;    /* 1: in a flow past a turn, at mu = target */
  int flow_steps;
  int factors;
} primal_run;

/* ------------------------------------------------------------ the point */

static double largest_force(const primal_path *p) {
  double most = 0.0;
  for (int c = 0; c < p->cones; ++c) {
    most = larger(p->cone[c].force[0], most);
  }
  return most;
}

/* The smallest and largest eigenvalue of a scaled product. */
static void eigenvalues(const coulomb_cone *cone, double *low, double *high) {
  const double tail = coulomb_tail(cone->point, cone->tails);
  *low = (cone->point[0] - tail) * (cone->point[0] - tail);
  *high = (cone->point[0] + tail) * (cone->point[0] + tail);
}

/* out = mu from^-1 */
static void set_inverse(const double *from, int tails, double mu, double *out) {
  const double per = mu / coulomb_determinant(from, tails);
  for (int k = 0; k <= tails; ++k) {
    out[k] = (k == 0 ? per : -per) * from[k];
  }
}

/* Recentres a cone: replaces the smaller of slack and force, in units. */
static int recentre(const primal_run *run, coulomb_cone *cone) {
  const double stiffness = run->path->stiffness, unit = stiffness * stiffness;
  if (coulomb_determinant(cone->force, cone->tails) >
      unit * coulomb_determinant(cone->slack, cone->tails)) {
    set_inverse(cone->force, cone->tails, run->mu, cone->slack);
  } else {
    set_inverse(cone->slack, cone->tails, run->mu, cone->force);
  }
  return coulomb_find_scaling(cone);
}

/* Scales all cones, and in a flow recentres cones that are far from the centre. 0 if a cone has no
 * interior point left. */
static int read_cones(primal_run *run) {
  run->least = HUGE_VAL;
  for (int c = 0; c < run->path->cones; ++c) {
    coulomb_cone *cone = run->path->cone + c;
    double low, high;
    if (!coulomb_find_scaling(cone)) {
      return 0;
    }
    eigenvalues(cone, &low, &high);
    if (run->flows && (low < ASTRAY * run->mu || high > run->mu / ASTRAY)) {
      if (!recentre(run, cone)) {
        return 0;
      }
      low = run->mu;
    }
    run->least = smaller(low, run->least);
  }
  return 1;
}

/* ------------------------------------------------------------ steps */

/* Adds to the gaps the curvature of the shifts along `ahead` of the current step. */
static void add_bends(primal_path *p, double ahead) {
  for (int c = 0; c < p->cones; ++c) {
    const coulomb_cone *cone = p->cone + c;
    double moved[CONE_ROWS], slope = 0.0;
    if (cone->tails == 0) {
      continue;
    }
    moved[0] = cone->slack[0] + ahead * cone->dslack[0];
    for (int k = 1; k <= cone->tails; ++k) {
      const double ratio = cone->slack[k] / cone->slack[0];
      moved[k] = cone->slack[k] + ahead * cone->dslack[k];
      slope += ratio * (2.0 * cone->dslack[k] - ratio * cone->dslack[0]);
    }
    p->gap[cone->tail - 1] +=
        primal_shift(moved, cone->tails) - primal_shift(cone->slack, cone->tails) - ahead * slope;
  }
}

/* Computes the step to products of `share` times mu; returns its length. */
static double try_step(primal_run *run, double share) {
  primal_path *p = run->path;
  coulomb_aim(p->cone, p->cones, share * run->mu, 0);
  primal_system_solve(p);
  return coulomb_reach(p->cone, p->cones, BACK_OFF);
}

static void take(primal_path *p, double length) {
  add_scaled(p->x, length, p->dx, p->variables);
  for (int c = 0; c < p->cones; ++c) {
    coulomb_cone *cone = p->cone + c;
    for (int k = 0; k <= cone->tails; ++k) {
      cone->slack[k] += length * cone->dslack[k];
      cone->force[k] += length * cone->dforce[k];
    }
  }
}

static void factor(primal_run *run) {
  primal_system_factor(run->path, run->program, 0);
  ++run->factors;
}

/* ------------------------------------------------------------ along the path */

/* Mehrotra's step; returns the relative reduction of mu, and the length. */
static double look_ahead(primal_run *run, double *length) {
  primal_path *p = run->path;
  coulomb_aim(p->cone, p->cones, 0.0, 0);
  primal_system_solve(p);
  const double ahead = coulomb_reach(p->cone, p->cones, 1.0), share = coulomb_centring(ahead);
  coulomb_aim(p->cone, p->cones, share * run->mu, ahead > 0.0);
  add_bends(p, ahead);
  primal_system_solve(p);
  *length = coulomb_reach(p->cone, p->cones, BACK_OFF);
  return *length * (1.0 - share);
}

/* Takes a step along the path, or starts a flow where the path turns. */
static void step_along(primal_run *run) {
  primal_path *p = run->path;
  double length;
  factor(run);
  double falls = look_ahead(run, &length);
  if (falls < WORTH) {
    primal_system_measure(p, run->program); /* without the curvature */
    const double first = falls;
    length = try_step(run, AHEAD);
    falls = (1.0 - AHEAD) * length;
    if (larger(falls, first) < WORTH && run->least < OFF_CENTRE * run->mu) {
      const double centring = try_step(run, 1.0);
      if (centring > SHORT_STEP) {
        take(p, centring);
        return;
      }
    }
    if (larger(falls, first) < TURNS) {
      run->flows = 1;
      run->flow_steps = 0;
      run->target = AHEAD * run->mu;
      p->hold = 1.0;
      return;
    }
    if (first >= falls) {
      look_ahead(run, &length);
    } else {
      length = try_step(run, AHEAD);
    }
  }
  take(p, length);
}

/* ------------------------------------------------------------ past a turn */

static void step_flow(primal_run *run) {
  primal_path *p = run->path;
  double length;
  for (;;) {
    factor(run);
    length = try_step(run, 1.0);
    if (length >= SHORT_STEP) {
      break;
    }
    const double before = p->hold;
    p->hold = smaller(larger(HOLD_RISES * p->hold, 1.0), HOLD_MOST);
    if (length >= NO_STEP || before == HOLD_MOST) {
      break;
    }
  }
  if (length > LONG) {
    p->hold /= HOLD_RISES;
  }
  if (p->hold < ROUGHLY) { /* almost none */
    p->hold = 0.0;
  }
  take(p, length);
  run->flows = p->hold > 0.0 || length < 1.0;
  if (++run->flow_steps == FLOW_STEPS) {
    run->target *= TENFOLD;
    run->flow_steps = 0;
  }
}

/* ------------------------------------------------------------ solve */

/* Starts at the minimiser without contacts, with slacks on the axes of their cones and
 * corresponding forces. */
static int start(primal_run *run) {
  primal_path *p = run->path;
  double speed = 0.0;
  memcpy(p->x, run->program->program.b, (size_t)p->variables * sizeof(double));
  p->hold = 0.0;
  primal_system_factor(p, run->program, 1);
  ++run->factors;
  block_lu_solve(&p->lu, p->x);
  negate(p->x, p->x, p->variables);
  primal_system_measure(p, run->program); /* slacks are zero */
  speed = max_norm_or_infinity(p->gap, p->rows);
  speed = run->reach * larger(speed, 1e-6 * run->program->length);
  for (int c = 0; c < p->cones; ++c) {
    p->cone[c].slack[0] = speed;
    p->cone[c].force[0] = p->stiffness * speed;
  }
  return speed < HUGE_VAL;
}

static int follow(primal_run *run, double accuracy, int most_factors) {
  int arrives = 0;
  for (int goes = start(run); goes && !arrives && run->factors < most_factors;) {
    run->mu = run->flows ? run->target : coulomb_mean_product(run->path->cone, run->path->cones);
    goes = run->mu > 0.0 && read_cones(run);
    arrives = goes && !run->flows && run->mu <= accuracy * largest_force(run->path);
    if (goes && !arrives) {
      primal_system_measure(run->path, run->program);
      if (run->flows) {
        step_flow(run);
      } else {
        step_along(run);
      }
    }
  }
  return arrives && all_finite(run->path->x, run->path->variables);
}

int primal_path_follow(primal_path *p, const conic_program *program, double accuracy, int from_one,
                       int most_factors, int *factorizations) {
  int arrives = primal_system_begin(p, program);
  const size_t starts = from_one ? 1 : sizeof STARTS / sizeof *STARTS;
  for (size_t k = 0, goes = (size_t)arrives; k < starts && goes && (k == 0 || !arrives); ++k) {
    primal_run run = {.path = p, .program = program, .reach = STARTS[k]};
    memset(p->x, 0, 4 * (size_t)p->tiles * sizeof(double));
    arrives = follow(&run, accuracy, most_factors);
    *factorizations += run.factors;
  }
  return arrives;
}
