/* MuJoCo's law of equalities in the second-order step: offsets and compliances of their rows, and
 * their derivatives. The rows of a connect or a weld move, so their acceleration has a term (dC/dt)
 * v, and their impedance depends on the length of the whole violation. */
#include "dynamics/problem/metric_share.h"
#include "dynamics/problem/parts.h"
#include "mechanics/inverse_weights.h"

/* ---------------------------------------------------------------- couplings */

/* C v of a coupling. */
static double coupling_speed(const problem *p, const constraint_state *s) {
  double speed = 0.0;
  for (int side = 0; side < 2; ++side) {
    const double share = side == 0 ? 1.0 : -s->slope;
    if (s->tendon[side] >= 0) {
      speed += share * tendon_displacement(p, s->tendon[side], p->state.v);
    } else if (s->dof[side] >= 0) {
      speed += share * p->state.v[s->dof[side]];
    }
  }
  return speed;
}

static double coupling_weight(const qd_model *model, const constraint_state *s) {
  double weight = 0.0;
  for (int side = 0; side < 2; ++side) {
    weight += s->tendon[side] >= 0 ? model->tendon.invweight[s->tendon[side]]
              : s->dof[side] >= 0  ? model->dof.invweight[s->dof[side]]
                                   : 0.0;
  }
  return weight;
}

static mujoco_reference law_of(const qd_model *model, const equality_row *row, double weight) {
  return mujoco_reference_of(model->constraint.solver + 8 * row->constraint, weight);
}

static void couple(problem *p, const mujoco_reference *of, int i) {
  const constraint_state *s = p->constraint + p->equality[i].constraint;
  mujoco_row law;
  mujoco_row_compute(&law, NULL, NULL, of, -fabs(s->violation[0]), p->options->h);
  p->program.c[i] = law.in_time * coupling_speed(p, s) + law.spring * s->violation[0];
  p->program.compliance_eq[i] = law.compliance;
}

/* ---------------------------------------------------------------- points and frames */

double constraint_length(const constraint_state *s) {
  double squared = 0.0;
  for (int i = 0; i < s->rows; ++i) {
    squared += s->violation[i] * s->violation[i];
  }
  return sqrt(squared);
}

static double anchor_weight(const qd_model *model, const constraint_state *s, int component) {
  return model_weight_between(model, s->body[0], s->body[1], component >= 3);
}

/* Speed and drift of the rows under v. */
static void fill_law(problem *p, int constraint) {
  const constraint_state *s = p->constraint + constraint;
  constraint_law *law = p->law + constraint;
  memset(law, 0, sizeof *law);
  for (int side = 0; side < 2; ++side) {
    const screw *T = p->state.velocity.body + s->body[side];
    const double sign = side == 0 ? -1.0 : 1.0;
    screw_add_point_velocity(law->speed, sign, T, s->anchor[side]);
    vec3_axpy(law->speed + 3, sign, T->w);
  }
  constraint_turn_rows(s, law->speed + 3);
  constraint_drift(law->drift, s, &p->state.drift);
}

/* Factor of (dC/dt) v, a term of the acceleration: h^2, or its value in the implicit row. */
static double drift_share(const mujoco_reference *of, const mujoco_row *law, double h) {
  return of->kind & QD_REFERENCE_IMPLICIT ? -h * law->in_time : h * h;
}

static void anchor(problem *p, const mujoco_reference *of, int i) {
  const equality_row *row = p->equality + i;
  const constraint_state *s = p->constraint + row->constraint;
  const constraint_law *at = p->law + row->constraint;
  mujoco_row law;
  if (i == 0 || row[-1].constraint != row->constraint) {
    fill_law(p, row->constraint);
  }
  mujoco_row_compute(&law, NULL, NULL, of, -constraint_length(s), p->options->h);
  p->program.c[i] = law.in_time * at->speed[row->component] +
                    law.spring * s->violation[row->component] +
                    drift_share(of, &law, p->options->h) * at->drift[row->component];
  p->program.compliance_eq[i] = law.compliance;
}

anchor_change problem_anchor_change(const problem *p, int row) {
  const equality_row *equality = p->equality + row;
  const constraint_state *s = p->constraint + equality->constraint;
  const int component = equality->component;
  if (!(equality->weight > 0.0)) {
    const int capped = s->capped[component / 3];
    return (anchor_change){.spring = 1.0,
                           .by_h = capped ? s->violation[component] / p->options->h : 0.0};
  }
  const mujoco_reference of = law_of(p->model, equality, equality->weight);
  const int implicit = (of.kind & QD_REFERENCE_IMPLICIT) != 0;
  const constraint_law *at = p->law + equality->constraint;
  const double speed = at->speed[component], drift = at->drift[component];
  const double c = s->violation[component], force = p->solution.dual_eq[row];
  mujoco_row law, by_depth, by_h;
  mujoco_row_compute(&law, &by_depth, &by_h, &of, -constraint_length(s), p->options->h);
  const double drift_by_depth = implicit ? -p->options->h * by_depth.in_time : 0.0;
  const double drift_by_h =
      implicit ? -law.in_time - p->options->h * by_h.in_time : 2.0 * p->options->h;
  return (anchor_change){
      .in_time = law.in_time,
      .spring = law.spring,
      .drift = drift_share(&of, &law, p->options->h),
      .along = by_depth.in_time * speed + by_depth.spring * c + by_depth.compliance * force +
               drift_by_depth * drift,
      .by_h = by_h.in_time * speed + by_h.spring * c + by_h.compliance * force + drift_by_h * drift,
  };
}

/* ---------------------------------------------------------------- all equalities */

void equality_yield(problem *p, const island *one, int i) {
  equality_row *row = p->equality + one->equality + i;
  const constraint_state *s = p->constraint + row->constraint;
  mujoco_reference of = law_of(p->model, row,
                               s->rows == 1 ? coupling_weight(p->model, s)
                                            : anchor_weight(p->model, s, row->component));
  row->shares = metric_share_weigh(&of, p, one, &one->C, i);
  row->weight = of.weight;
  if (s->rows == 1) {
    couple(p, &of, one->equality + i);
  } else {
    anchor(p, &of, one->equality + i);
  }
  ++p->report.timed;
}

/* ---------------------------------------------------------------- derivatives of couplings */

coupling_change problem_coupling_change(const problem *p, int row) {
  const equality_row *equality = p->equality + row;
  const constraint_state *s = p->constraint + equality->constraint;
  double change[3];
  if (!(equality->weight > 0.0)) {
    return s->capped[0] ? (coupling_change){0.0, 0.0, s->violation[0] / p->options->h}
                        : (coupling_change){1.0, 0.0, 0.0};
  }
  const double side = s->violation[0] > 0.0 ? -1.0 : 1.0; /* makes it a depth (<= 0) */
  const mujoco_reference of =
      mujoco_reference_of(p->model->constraint.solver + 8 * equality->constraint, equality->weight);
  mujoco_row_change(change, &of, side * s->violation[0], p->options->h, side * coupling_speed(p, s),
                    side * p->solution.dual_eq[row]);
  return (coupling_change){change[0], change[1], side * change[2]};
}
