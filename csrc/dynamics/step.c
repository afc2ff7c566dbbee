#include "dynamics/step.h"

#include <math.h>
#include <string.h>

#include "base/trace.h"
#include "dynamics/friction_law.h"
#include "dynamics/pressure_newton.h"
#include "dynamics/recovery.h"
#include "dynamics/workspace.h"

/* Rounds with a part of the contacts, before all of them are in the program: few, if at most as
 * many contacts are left out as are in it. */
#define ROUNDS_FEW 2
#define ROUNDS_MOST 6
/* Largest number of rough rounds; another one only if the last added this share of all contacts. */
#define ROUGH_ROUNDS 4
#define MANY_MORE 0.11
/* Largest number of rounds of large models, in which contacts without load stay out. */
#define ROUNDS_LARGE 20

/* The result of a step in which every DOF is held. */
static void nothing_moves(const step_call *s) {
  memset(&s->result->info, 0, sizeof s->result->info);
  s->result->info.status = QD_OK;
  s->w->problem.count.limits = s->w->problem.count.ball_limits = s->w->problem.count.turn_rows = 0;
  s->w->problem.count.equalities = s->w->problem.count.tendon_rows =
      s->w->problem.count.force_rows = 0;
  problem_forces(&s->w->problem, &s->w->collision, s->result->limit_force);
}

/* Combines the reports of programs: the worst residuals. */
static void add_info(qd_cone_info *sum, const qd_cone_info *one) {
  sum->status = one->status;
  sum->polished &= one->polished;
  sum->primal_residual = fmax(sum->primal_residual, one->primal_residual);
  sum->dual_residual = fmax(sum->dual_residual, one->dual_residual);
  sum->complementarity = fmax(sum->complementarity, one->complementarity);
  sum->objective += one->objective;
  if (one->method > sum->method) {
    sum->method = one->method;
  }
}

/* If a direction is free: OK becomes NOT_UNIQUE. Fills the direction, for UNBOUNDED from x. */
static qd_status find_direction(const problem *p, const island *one, qd_status status,
                                double *direction) {
  if (status == QD_UNBOUNDED) {
    memcpy(direction, p->solution.x + one->variable, (size_t)one->variable_count * sizeof(double));
  } else if (status == QD_OK &&
             conic_find_free_direction(one->cone_workspace, &one->info, direction)) {
    return QD_NOT_UNIQUE;
  }
  return status;
}

static qd_status solve_program(problem *p, island *one, const qd_cone_options *cone_options,
                               const island_program *program, double *direction) {
  const qd_status status = law_solve(p, one, cone_options, program);
  const stop_callback *look = program->program.look;
  return program->program.rough || (look != NULL && look->stopped)
             ? status
             : find_direction(p, one, status, direction);
}

/* Keeps a proof that an island is infeasible: its softened program has all of its rows, and more.
 */
static void note_proof(problem *p, const island *one, qd_status status) {
  if (status == QD_INFEASIBLE && !(p->attempt.recovery & RECOVER_SOFTEN) && !p->attempt.coulomb) {
    p->attempt.proven = p->dof_of_variable[one->variable];
  }
}

static int is_proven(const problem *p, const island *one) {
  const int variable =
      p->attempt.proven >= 0 ? p->variable_of_dof[p->attempt.proven] - one->variable : -1;
  return variable >= 0 && variable < one->variable_count;
}

/* Solves one island with all recovery that the step allows. direction: unbounded or free motion. */
static qd_status solve_island(const step_call *s, const qd_cone_options *cone_options, island *one,
                              const island_program *program, double *direction) {
  problem *p = &s->w->problem;
  const int waits = (p->attempt.recovery & RECOVER_SOFTEN) && is_proven(p, one);
  qd_status status =
      waits ? QD_INFEASIBLE : solve_program(p, one, cone_options, program, direction);
  const int resists =
      (p->attempt.recovery & RECOVER_RESIST) && step_is_vague(status) && problem_resist(p, one) > 0;
  if (resists) {
    law_withdraw(p, one, program);
    const int row = trace_open(cone_options->trace, "again", 0, "inertia of joints resists");
    status = solve_program(p, one, cone_options, program, direction);
    trace_close_with(cone_options->trace, row, &one->info, status);
  }
  if (status != QD_OK && !waits) {
    law_withdraw(p, one, program);
  }
  if ((p->attempt.recovery & RECOVER_ROUND) && one->equality_count > 0 &&
      step_contradicts(status, s->options)) {
    status = law_soften(s->w, one, cone_options, program, RECOVERY_ROUND);
    status = find_direction(p, one, status, direction);
  }
  if ((p->attempt.recovery & RECOVER_NOTHING) && step_contradicts(status, s->options)) {
    status = law_soften(s->w, one, cone_options, program, RECOVERY_NOTHING);
    status = find_direction(p, one, status, direction);
  }
  if ((p->attempt.recovery & RECOVER_SOFTEN) && step_contradicts(status, s->options)) {
    const recovery_how how = status == QD_INFEASIBLE ? RECOVERY_PROVEN : RECOVERY_ROWS;
    if (!resists) {
      problem_resist(p, one);
    }
    status = law_soften(s->w, one, cone_options, program, how);
    if (status != QD_OK) { /* if it succeeds: relative to such stiff rows any cost looks like zero,
                              so x counts */
      status = find_direction(p, one, status, direction);
    }
  }
  note_proof(p, one, status);
  return status;
}

/* Compliant rows and soft pairs need several programs, which use derivatives. */
static int is_large(const island *one) {
  return one->variable_count >= LARGE_PROGRAM && one->compliant == 0 && one->intervals == 0 &&
         one->soft_pairs == 0;
}

/* Context of the callback that inspects an island's motion. */
typedef struct island_look {
  const step_call *step; /* its delta is filled as far as it is known */
  const island *one;
} island_look;

/* 1 if contacts are missing. */
static int misses_contacts(void *of, const double *x) {
  const island_look *at = of;
  const step_call *s = at->step;
  const int *dof = s->w->problem.dof_of_variable + at->one->variable;
  for (int i = 0; i < at->one->variable_count; ++i) {
    if (dof[i] >= 0) {
      s->result->delta[dof[i]] = x[i];
    }
  }
  return working_set_misses(&s->w->set, s->model, s->options, &s->w->kinematics, &s->w->collision,
                            s->result->delta) > 0;
}

/* 1 for programs that continue the last round's with more contacts, while others are left out. */
static int may_look(const qd_workspace *w) {
  const problem *p = &w->problem;
  return w->effort == ROUND_UNTIL_MISSED && w->warm.goes_on && w->set.left_out > 0 &&
         !p->attempt.coulomb && !(p->attempt.recovery & (RECOVER_GIVES | RECOVER_RESIST));
}

/* 1 if a program continues that of the previous round: large ones, and Newton's method on the
 * envelope. */
static int goes_on(const island *one) { return is_large(one) || one->compliant > 0; }

/* Chooses how an island's program is solved, and from which start. */
static void choose_effort(const qd_workspace *w, const island *one, int derivatives,
                          island_program *program, qd_cone_options *options) {
  const int large = is_large(one);
  program->program.rough = w->effort == ROUND_ROUGH && large;
  program->program.derivatives = derivatives && !program->program.rough;
  program->program.answer_only =
      !derivatives && !w->problem.attempt.coulomb && one->soft_pairs == 0;
  program->program.midway = w->warm.goes_on && large;
  options->warm_start = w->warm.from != NULL && (!w->warm.goes_on || goes_on(one));
}

/* Solves the islands one after the other, until one fails. */
static qd_status solve(const step_call *s) {
  problem *p = &s->w->problem;
  s->w->unfinished = s->w->effort == ROUND_ROUGH;
  p->attempt.failed_island = -1;
  if (p->n == 0) {
    nothing_moves(s);
    return QD_OK;
  }
  qd_cone_options cone_options = qd_cone_options_default();
  cone_options.tolerance = s->options->tolerance;
  cone_options.iteration_limit = s->options->iteration_limit;
  cone_options.trace = s->result->trace;
  if (s->w->warm.from != NULL) {
    warm_start_fill(&s->w->warm, p);
  }
  memset(&s->result->info, 0, sizeof s->result->info);
  s->result->info.polished = 1;
  law_report(NULL, s->result);
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    island_program program;
    problem_program(p, one, &program);
    choose_effort(s->w, one, s->kept != NULL, &program, &cone_options);
    island_look look;
    if (program.program.midway && may_look(s->w)) {
      look = (island_look){s, one};
      s->w->look = (stop_callback){misses_contacts, &look, 0};
      program.program.look = &s->w->look;
    }
    double *direction = p->scratch.variables;
    const int row = trace_open(s->result->trace, "island", i + 1, "%d variables, %d rows",
                               one->variable_count, one->row_count + one->equality_count);
    qd_status status = solve_island(s, &cone_options, one, &program, direction);
    trace_close_with(s->result->trace, row, &one->info, status);
    add_info(&s->result->info, &one->info);
    law_report(one, s->result);
    if (status == QD_BAD_ARGUMENT) { /* rounding made a diagonal mass negative */
      status = QD_NUMERICAL_TROUBLE;
    }
    if (status == QD_OUT_OF_CAPACITY) {
      workspace_note_fill(s->w, one);
    } else if (status == QD_INFEASIBLE) {
      culprits_of_contradiction(s->w, one, s->result);
    } else if (step_lets_go(status)) {
      culprits_of_motion(s->w, one, direction, s->result);
    }
    if (status != QD_OK) {
      p->attempt.failed_island = i;
      return status;
    }
    s->w->unfinished |= program.program.look != NULL && s->w->look.stopped;
  }
  problem_forces(p, &s->w->collision, s->result->limit_force);
  const int may_give = p->attempt.recovery & RECOVER_GIVES;
  s->result->softened = may_give ? recovery_mark(s->w, s->options->tolerance) : 0;
  return QD_OK;
}

static void report_contacts(const step_call *s) {
  s->result->contacts = s->w->collision.contact;
  s->result->contact_count = s->w->collision.count;
  s->result->row_count = s->w->problem.count.rows;
}

static void scatter_delta(const problem *p, double *delta) {
  for (int dof = 0; dof < p->model->nv; ++dof) {
    const int variable = p->variable_of_dof[dof];
    delta[dof] = variable >= 0 ? p->solution.x[variable] : 0.0;
  }
}

/* Finds the islands and solves their programs. */
static qd_status solve_programs(const step_call *s) {
  problem *p = &s->w->problem;
  islands_find(&p->islands, s->model, s->options, &s->w->collision, &s->w->set, &p->soft);
  problem_number_variables(p, s->model, s->options->held);
  for (int i = 0; (p->attempt.recovery & RECOVER_GIVES) && i < p->islands.count; ++i) {
    recovery_make_room(p->islands.island + i, (p->attempt.recovery & RECOVER_SOFTEN));
  }
  static const step_columns none = {0, 0, 0, 0}; /* soft pairs use derivatives of programs */
  const int asks = s->kept == NULL && p->soft.count > 0;
  qd_status status = workspace_place_islands(s->w, s->model, asks ? &none : s->kept);
  if (status == QD_OK) {
    problem_assemble(p, &s->w->inertia);
    status = solve(s);
    report_contacts(s);
    scatter_delta(p, s->result->delta);
  }
  return status;
}

/* The same with soft pairs: a sequence of programs. */
static qd_status solve_soft(const step_call *s) {
  pressure_contact *soft = &s->w->problem.soft;
  qd_status status;
  if (!pressure_newton_begin(s->w, s->model, s->input->bristle)) {
    return solve_programs(s);
  }
  if (s->w->collision.count + soft->count > s->w->collision.capacity) {
    return QD_OUT_OF_CAPACITY;
  }
  do {
    const int row = trace_open(s->result->trace, "pressure", soft->programs + 1, "soft pairs");
    status = pressure_newton_evaluate(s->w);
    status = status == QD_OK ? solve_programs(s) : status;
    trace_close_with(s->result->trace, row, &s->result->info, status);
  } while (status == QD_OK && !pressure_newton_advance(s->w, s->result->delta, s->kept != NULL));
  status = status == QD_OK && soft->is_full ? QD_OUT_OF_CAPACITY : status;
  s->result->soft_programs = soft->programs;
  s->result->soft_converged = soft->converged && !soft->bounded;
  return status;
}

/* Fills the rest of the result: forces, q_next. */
static void fill_result(const step_call *s) {
  const problem *p = &s->w->problem;
  for (int dof = 0; s->result->v_next != NULL && dof < s->model->nv; ++dof) {
    s->result->v_next[dof] = s->result->delta[dof] / s->options->h;
  }
  if (s->model->constraint.count > 0 && s->result->constraint_force != NULL) {
    memcpy(s->result->constraint_force, p->solution.constraint_force,
           (size_t)(s->model->constraint.count * QD_CONSTRAINT_FORCE) * sizeof(double));
  }
  if (s->result->tendon_force != NULL) {
    memcpy(s->result->tendon_force, p->solution.tendon_force,
           (size_t)s->model->tendon.count * sizeof(double));
  }
  if (s->result->actuator_force != NULL) {
    problem_actuator_forces(p, s->result->delta, s->result->actuator_force);
  }
  qd_integrate(s->model, s->input->q, s->result->delta, s->result->q_next);
}

/* Solves the programs of the working set; fills delta and q_next. */
static qd_status solve_working_set(const step_call *s) {
  qd_status status = s->w->collision.count <= s->w->collision.capacity ? QD_OK : QD_OUT_OF_CAPACITY;
  if (status == QD_OK) {
    status = s->model->pair.soft_count > 0 ? solve_soft(s) : solve_programs(s);
  }
  if (status == QD_OUT_OF_CAPACITY) {
    s->result->contact_count = s->w->collision.count + s->w->problem.soft.count;
  } else if (status == QD_OK) {
    fill_result(s);
  }
  return status;
}

/* The effort of the next round. It stays rough while rounds add many contacts. After a round that
 * stopped for contacts that were not missing, the next ones are whole. */
static round_effort effort_after(const qd_workspace *w, int round, int added) {
  const int adds_many = (double)added > MANY_MORE * w->collision.count;
  if (w->effort == ROUND_WHOLE || added == 0) {
    return ROUND_WHOLE;
  }
  return w->effort == ROUND_ROUGH && round < ROUGH_ROUNDS && adds_many ? ROUND_ROUGH
                                                                       : ROUND_UNTIL_MISSED;
}

/* Adds contacts and limits after a round; returns their number, -1 if the round's result is final.
 * If a large model needs any, it also adds those that they may push others into. */
static int extend(const step_call *s, int large) {
  int added = 0;
  for (int rough = s->w->effort == ROUND_ROUGH; rough < 2; ++rough) {
    added += working_set_extend(&s->w->set, s->model, s->options, &s->w->kinematics,
                                &s->w->collision, s->input, s->result->delta, rough);
    if (!large || (added == 0 && !s->w->unfinished)) {
      break;
    }
  }
  return added == 0 && !s->w->unfinished ? -1 : added;
}

/* The effort of the first round. In the second-order step of large models, most contacts are added
 * before a program is solved. */
static round_effort first_effort(const step_call *s, int large) {
  const int rough = s->options->dynamic && s->w->warm.from == NULL && s->w->set.left_out > 0 &&
                    s->model->pair.soft_count == 0;
  return !large ? ROUND_WHOLE : rough ? ROUND_ROUGH : ROUND_UNTIL_MISSED;
}

/* 1 if more contacts do not change the result of a round: there are none, there is no room, or an
 * infeasible program stays infeasible. */
static int is_last(const qd_workspace *w, qd_status status) {
  const int waiting = w->set.left_out + w->set.forces_left_out;
  return status == QD_OUT_OF_CAPACITY || (waiting == 0 && w->effort != ROUND_ROUGH) ||
         (status == QD_INFEASIBLE && !w->problem.attempt.coulomb);
}

/* Largest number of rounds before all contacts are added. */
static int most_rounds(const qd_workspace *w, int large) {
  const int few = 2 * w->set.left_out <= w->collision.count;
  return large ? ROUNDS_LARGE : few ? ROUNDS_FEW : ROUNDS_MOST;
}

/* Solves the programs of all contacts in the list: the working set grows until no row outside it
 * matters, in a few rounds. A program without a unique solution may have one with more contacts.
 * Large models, and contacts that yield, continue from one round to the next. */
qd_status step_solve_rounds(const step_call *s) {
  const int large = s->model->nv >= LARGE_PROGRAM && isinf(s->options->kappa);
  const int yields = s->options->contacts == QD_CONTACTS_MUJOCO && isinf(s->options->kappa);
  workspace_begin(s->w, s->model, s->options, s->input);
  s->w->effort = first_effort(s, large);
  for (int round = 1;; ++round) {
    s->w->problem.attempt.hurried = large && s->w->set.left_out > 0;
    const int row =
        trace_open(s->result->trace, "round", round, "%d contacts, %d rows left out",
                   s->w->collision.count, s->w->set.left_out + s->w->set.forces_left_out);
    const qd_status status = solve_working_set(s);
    trace_close_with(s->result->trace, row, &s->result->info, status);
    if ((large || yields) && status != QD_OK) {
      warm_start_go_on(&s->w->warm, &s->w->problem, NULL);
    }
    if (is_last(s->w, status)) {
      return status;
    }
    const int added = status == QD_OK ? extend(s, large) : 0;
    if (added < 0) {
      return QD_OK;
    }
    const int most = most_rounds(s->w, large);
    s->w->effort = effort_after(s->w, round, added);
    if ((large || yields) && status == QD_OK) {
      warm_start_go_on(&s->w->warm, &s->w->problem, s->result);
    }
    if (status != QD_OK || round >= most) {
      working_set_complete(&s->w->set, s->model);
    }
  }
}

void step_result_reset(qd_step_result *result) {
  memset(&result->info, 0, sizeof result->info);
  result->contacts = NULL;
  result->contact_count = 0;
  result->row_count = 0;
  result->missed_pairs = result->dropped_pairs = result->relaxed_contacts = 0;
  result->softened = 0;
  result->soft_programs = 0;
  result->soft_converged = 1;
  result->bounces = result->capped_rows = result->deep_contacts = 0;
  result->bounce_share = 1.0;
  law_report(NULL, result);
  result->culprit_count = 0;
  result->derivative_exact = 0;
}
