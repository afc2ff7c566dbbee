/* Attempts of a step: the failure of one determines the next change of its programs. */
#include "dynamics/step.h"

#include <math.h>

#include "base/trace.h"
#include "dynamics/pressure_newton.h"
#include "dynamics/problem/yield.h"
#include "dynamics/workspace.h"
#include "mechanics/pairs/missed_pairs.h"

static qd_status attempt_once(const step_call *s, const char *reason) {
  const int row = trace_open(s->result->trace, "attempt", ++s->w->attempts, "%s", reason);
  const qd_status status = step_solve_rounds(s);
  trace_close_with(s->result->trace, row, &s->result->info, status);
  return status;
}

/* If joints at the limits of their actuators make the motion unbounded or not unique, or nearly so,
 * their inertia resists in all later programs of the step that need it. */
static qd_status attempt(const step_call *s, const char *reason) {
  problem *p = &s->w->problem;
  const qd_status status = attempt_once(s, reason);
  if (step_is_vague(status) && !(p->attempt.recovery & RECOVER_RESIST) && problem_may_resist(p)) {
    p->attempt.recovery |= RECOVER_RESIST;
    return attempt_once(s, "inertia of joints resists");
  }
  return status;
}

/* ---------------------------------------------------------------- changes */

static int has_constraints(const step_call *s, qd_status status) {
  return step_contradicts(status, s->options) && s->model->constraint.count > 0;
}

static int has_shallow(const step_call *s, qd_status status) {
  int shallow = 0;
  for (int i = 0; i < s->w->collision.count; ++i) {
    shallow += problem_is_shallow(s->model, s->w->collision.contact + i);
  }
  return step_contradicts(status, s->options) && shallow > 0;
}

static int has_no_verdict(const step_call *s, qd_status status) {
  (void)s;
  return status == QD_NUMERICAL_TROUBLE;
}

static int may_soften(const step_call *s, qd_status status) {
  return s->options->soften && step_contradicts(status, s->options);
}

/* Changes for a step without a solution, in this order. Constraints may differ in their last
 * digits. Linearisation errors may leave penetrations that friction does not let the contacts open
 * (a joint whose links slide on each other faster than they separate), so shallow ones are not
 * resolved, but may not deepen. If infeasibility is not proven, rows may be violated slightly. If
 * nothing helps, rows soften if the options allow it, with all contacts in the working set, also
 * those of later rounds.
 */
static const struct {
  const char *name;
  int (*when)(const step_call *s, qd_status status);
  unsigned begins, ends; /* RECOVER_... */
} CHANGES[] = {
    {"constraints give by rounding", has_constraints, RECOVER_ROUND, 0},
    {"shallow penetrations stay", has_shallow, RECOVER_RELAX, 0},
    {"rows give by next to nothing", has_no_verdict, RECOVER_NOTHING, RECOVER_RELAX},
    {"rows soften", may_soften, RECOVER_SOFTEN, RECOVER_RELAX},
};

static qd_status recover(const step_call *s, qd_status status) {
  problem *p = &s->w->problem;
  for (size_t k = 0; k < sizeof CHANGES / sizeof *CHANGES; ++k) {
    if (!CHANGES[k].when(s, status)) {
      continue;
    }
    p->attempt.recovery = (p->attempt.recovery | CHANGES[k].begins) & ~CHANGES[k].ends;
    if (p->attempt.recovery & RECOVER_SOFTEN) {
      working_set_complete(&s->w->set, s->model);
    }
    status = attempt(s, CHANGES[k].name);
  }
  return status;
}

/* ---------------------------------------------------------------- missed pairs */

/* Pairs that were added after the first `before` contacts make the step infeasible, so they are
 * added one by one, and dropped again if they do. A step that was feasible without them stays
 * feasible. */
static qd_status solve_without(const step_call *s, int before) {
  static const char reason[] = "missed pairs one by one";
  collision *c = &s->w->collision;
  qd_status status = QD_OUT_OF_CAPACITY;
  int end = c->count;
  c->count = before;
  while (c->count < end) {
    const int at = c->count;
    while (c->count < end && c->contact[c->count].pair == c->contact[at].pair) {
      ++c->count;
    }
    status = attempt(s, reason);
    if (status == QD_OUT_OF_CAPACITY) {
      return status;
    }
    if (status != QD_OK) {
      collision_remove(c, at, end);
      end -= c->count - at;
      c->count = at;
      ++s->result->dropped_pairs;
    }
  }
  return status == QD_OK ? status : attempt(s, reason);
}

static int find_missed(const step_call *s, int add) {
  return s->result->dropped_pairs > 0
             ? 0
             : missed_pairs_find(&s->w->collision, s->model, s->input->q, s->result->delta,
                                 s->input->mocap, s->options->margin, &s->w->next,
                                 s->result->q_next, add);
}

/* ---------------------------------------------------------------- the step */

static void begin(const step_call *s) {
  problem *p = &s->w->problem;
  step_result_reset(s->result);
  p->attempt.recovery = 0;
  p->loads.are_known = 0;
  p->attempt.proven = -1;
  p->attempt.coulomb = s->options->law == QD_LAW_COULOMB;
  p->soft.count = 0;
  begin_contacts(s->model, s->w, s->options, s->input);
}

static void report(const step_call *s) {
  const problem *p = &s->w->problem;
  s->result->relaxed_contacts = p->report.relaxed;
  s->result->bounces = p->report.bounces;
  s->result->capped_rows = p->report.capped;
  s->result->deep_contacts = p->report.deep;
  s->result->culprit_count = 0;
}

static void settle_soft(const step_call *s) {
  if (s->model->pair.soft_count > 0) {
    s->result->contact_count += pressure_newton_report(s->w);
    pressure_newton_settle(s->w, s->result->bristle);
  }
}

qd_status attempts_solve(const step_call *s, const char *reason) {
  const int add = s->options->add_missed_pairs && isinf(s->options->kappa);
  int before = 0; /* number of contacts in the previous round */
  begin(s);
  for (;; reason = "missed pairs come in") {
    qd_status status = attempt(s, reason);
    if (step_failed(status)) {
      status = s->result->missed_pairs > 0 ? solve_without(s, before) : recover(s, status);
    }
    if (status != QD_OK) {
      return status;
    }
    before = s->w->collision.count;
    report(s);
    const int missed = contacts_yield_in_time(s->options) ? 0 : find_missed(s, add);
    s->result->missed_pairs += missed;
    if (missed == 0 || !add) {
      settle_soft(s);
      return QD_OK; /* every round adds a pair, so the loop ends */
    }
  }
}
