#include "dynamics/step.h"

#include <math.h>
#include <string.h>

#include "base/trace.h"
#include "dynamics/begin.h"
#include "dynamics/culprits.h"
#include "dynamics/law.h"
#include "dynamics/soft_newton.h"
#include "dynamics/soften.h"
#include "dynamics/workspace.h"
#include "mechanics/pairs/missed_pairs.h"

#define RELAX_FROM 50 /* a smaller iteration limit is one that the caller means */
/* Rounds with a part of the contacts, before all of them are in the program: fewer, if they are at
 * most as many as those that are in it already. */
#define ROUNDS 2
#define ROUNDS_MOST 6
/* Rough rounds at most; one more only where such a part of all contacts has come in. */
#define ROUGH_ROUNDS 4
#define MANY_MORE 0.11
/* Rounds of large models at most: those that carry nothing stay out. */
#define ROUNDS_LARGE 20

/* A step in which nothing can move: every DOF is held. */
static void nothing_moves(const qd_model *model, qd_workspace *w, qd_step_result *result) {
  memset(&result->info, 0, sizeof result->info);
  result->info.status = QD_OK;
  w->problem.limit_count = w->problem.ball_limit_count = 0;
  w->problem.equality_count = w->problem.tendon_row_count = w->problem.force_row_count = 0;
  problem_forces(&w->problem, model, &w->collision, result->limit_force);
}

/* What a caller sees of many programs beside their effort: the worst residuals. */
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

/* Whether a program has no solution, or none that was found for all that was tried. */
static int contradicts(qd_status status, const qd_step_options *options) {
  return status == QD_INFEASIBLE || status == QD_NUMERICAL_TROUBLE ||
         (status == QD_ITERATION_LIMIT && options->iteration_limit >= RELAX_FROM);
}

/* Whether something moves without end, or anywhere. */
static int lets_go(qd_status status) { return status == QD_UNBOUNDED || status == QD_NOT_UNIQUE; }

/* Whether that may be so: where it nearly is, methods fail, too. */
static int is_vague(qd_status status) {
  return lets_go(status) || status == QD_NUMERICAL_TROUBLE || status == QD_ITERATION_LIMIT;
}

/* OK becomes NOT_UNIQUE, and x of UNBOUNDED is moved, where a direction is free. */
static qd_status find_direction(const problem *p, const island *one, qd_status status,
                                double *direction) {
  if (status == QD_UNBOUNDED) {
    memcpy(direction, p->x + one->variable, (size_t)one->variable_count * sizeof(double));
  } else if (status == QD_OK &&
             conic_find_free_direction(one->cone_workspace, &one->info, direction)) {
    return QD_NOT_UNIQUE;
  }
  return status;
}

static qd_status solve_program(problem *p, island *one, const qd_step_options *options,
                               const qd_cone_options *cone_options, const island_program *program,
                               double *direction) {
  const qd_status status = law_solve(p, one, options, cone_options, program);
  const conic_look *look = program->program.look;
  return program->program.rough || (look != NULL && look->stopped)
             ? status
             : find_direction(p, one, status, direction);
}

/* Keeps a proof that an island has no solution: what softens it has all its rows, and more. */
static void note_proof(problem *p, const island *one, qd_status status) {
  if (status == QD_INFEASIBLE && !p->softening && !p->coulomb) {
    p->proven = p->dof_of_variable[one->variable];
  }
}

static int is_proven(const problem *p, const island *one) {
  const int variable = p->proven >= 0 ? p->variable_of_dof[p->proven] - one->variable : -1;
  return variable >= 0 && variable < one->variable_count;
}

/* One island, by all that the step allows. direction: what moves without end, or anywhere. */
static qd_status solve_island(const qd_model *model, qd_workspace *w,
                              const qd_step_options *options, const qd_cone_options *cone_options,
                              island *one, const island_program *program, double *direction) {
  problem *p = &w->problem;
  const int waits = p->softening && is_proven(p, one);
  qd_status status =
      waits ? QD_INFEASIBLE : solve_program(p, one, options, cone_options, program, direction);
  const int resists =
      p->resisting && is_vague(status) && problem_resist(p, model, options, one) > 0;
  if (resists) {
    law_withdraw(p, one, program);
    const int row = trace_open(cone_options->trace, "again", 0, "inertia of joints resists");
    status = solve_program(p, one, options, cone_options, program, direction);
    trace_close_with(cone_options->trace, row, &one->info, status);
  }
  if (status != QD_OK && !waits) {
    law_withdraw(p, one, program);
  }
  if (p->rounding && one->equality_count > 0 && contradicts(status, options)) {
    status = law_soften(w, one, options, cone_options, program, SOFTEN_ROUND);
    status = find_direction(p, one, status, direction);
  }
  if (p->crowded && contradicts(status, options)) {
    status = law_soften(w, one, options, cone_options, program, SOFTEN_NOTHING);
    status = find_direction(p, one, status, direction);
  }
  if (p->softening && contradicts(status, options)) {
    const soften_how how = status == QD_INFEASIBLE ? SOFTEN_PROVEN : SOFTEN_ROWS;
    if (!resists) {
      problem_resist(p, model, options, one);
    }
    status = law_soften(w, one, options, cone_options, program, how);
    if (status != QD_OK) { /* beside rows so stiff any cost looks like none, so x counts */
      status = find_direction(p, one, status, direction);
    }
  }
  note_proof(p, one, status);
  return status;
}

/* Rows that give way are several programs, soft pairs, too; these ask for derivatives. */
static int is_large(const island *one) {
  return one->variable_count >= LARGE_ISLAND && one->compliant == 0 && one->intervals == 0 &&
         one->soft_pairs == 0;
}

/* What a look at an island's motion is about. */
typedef struct island_look {
  const qd_model *model;
  qd_workspace *w;
  const qd_step_options *options;
  const island *one;
  double *delta; /* of all, as far as it is known */
} island_look;

/* 1 if contacts are missing. */
static int misses_contacts(void *of, const double *x) {
  const island_look *at = of;
  const int *dof = at->w->problem.dof_of_variable + at->one->variable;
  for (int i = 0; i < at->one->variable_count; ++i) {
    if (dof[i] >= 0) {
      at->delta[dof[i]] = x[i];
    }
  }
  return working_set_misses(&at->w->set, at->model, at->options, &at->w->kinematics,
                            &at->w->collision, at->delta) > 0;
}

/* Programs that go on from the last round's with more contacts, while some are still left out. */
static int may_look(const qd_workspace *w) {
  const problem *p = &w->problem;
  return w->looks && !w->rough && w->warm.goes_on && w->set.left_out > 0 && !p->coulomb &&
         !p->softening && !p->crowded && !p->rounding && !p->resisting;
}

/* How an island's program is solved, and from where. */
static void choose_effort(const qd_workspace *w, const island *one, int derivatives,
                          island_program *program, qd_cone_options *options) {
  const int large = is_large(one);
  program->program.rough = w->rough && large;
  program->program.derivatives = derivatives && !program->program.rough;
  program->program.answer_only = !derivatives && !w->problem.coulomb && one->soft_pairs == 0;
  program->program.midway = w->warm.goes_on && large;
  options->warm_start = w->warm.from != NULL && (!w->warm.goes_on || large);
}

/* Solves the islands one after the other, up to one that fails. */
static qd_status solve(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                       int derivatives, qd_step_result *result) {
  problem *p = &w->problem;
  w->unfinished = w->rough;
  p->failed_island = -1;
  if (p->n == 0) {
    nothing_moves(model, w, result);
    return QD_OK;
  }
  qd_cone_options cone_options = qd_cone_options_default();
  cone_options.tolerance = options->tolerance;
  cone_options.iteration_limit = options->iteration_limit;
  cone_options.trace = result->trace;
  if (w->warm.from != NULL) {
    warm_start_fill(&w->warm, model, &w->collision, p);
  }
  memset(&result->info, 0, sizeof result->info);
  result->info.polished = 1;
  law_report(NULL, result);
  for (int i = 0; i < p->islands.count; ++i) {
    island *one = p->islands.island + i;
    island_program program;
    problem_program(p, one, &program);
    choose_effort(w, one, derivatives, &program, &cone_options);
    island_look look;
    if (program.program.midway && may_look(w)) {
      look = (island_look){model, w, options, one, result->delta};
      w->look = (conic_look){misses_contacts, &look, 0};
      program.program.look = &w->look;
    }
    double *direction = p->mass_row;
    const int row = trace_open(result->trace, "island", i + 1, "%d variables, %d rows",
                               one->variable_count, one->row_count + one->equality_count);
    qd_status status = solve_island(model, w, options, &cone_options, one, &program, direction);
    trace_close_with(result->trace, row, &one->info, status);
    add_info(&result->info, &one->info);
    law_report(one, result);
    if (status == QD_BAD_ARGUMENT) { /* a diagonal of masses that rounding made negative */
      status = QD_NUMERICAL_TROUBLE;
    }
    if (status == QD_OUT_OF_CAPACITY) {
      workspace_note_fill(w, one);
    } else if (status == QD_INFEASIBLE) {
      culprits_of_contradiction(model, w, one, result);
    } else if (lets_go(status)) {
      culprits_of_motion(model, w, one, direction, result);
    }
    if (status != QD_OK) {
      p->failed_island = i;
      return status;
    }
    w->unfinished |= program.program.look != NULL && w->look.stopped;
  }
  problem_forces(p, model, &w->collision, result->limit_force);
  const int may_give = p->softening || p->crowded || p->rounding;
  result->softened = may_give ? soften_mark(w, options->tolerance) : 0;
  return QD_OK;
}

static void report_contacts(const qd_workspace *w, qd_step_result *result) {
  result->contacts = w->collision.contact;
  result->contact_count = w->collision.count;
  result->row_count = w->problem.row_count;
}

static void scatter_delta(const qd_model *model, const problem *p, double *delta) {
  for (int dof = 0; dof < model->nv; ++dof) {
    const int variable = p->variable_of_dof[dof];
    delta[dof] = variable >= 0 ? p->x[variable] : 0.0;
  }
}

/* Programs of the islands found, solved. */
static qd_status solve_programs(const qd_model *model, qd_workspace *w,
                                const qd_step_options *options, const qd_step_input *input,
                                const step_columns *kept, qd_step_result *result) {
  problem *p = &w->problem;
  islands_find(&p->islands, model, options, &w->collision, &w->set, &p->soft);
  problem_number_variables(p, model, options->held);
  for (int i = 0; (p->softening || p->rounding || p->crowded) && i < p->islands.count; ++i) {
    soften_make_room(p->islands.island + i, p->softening);
  }
  static const step_columns none = {0, 0, 0, 0}; /* soft pairs ask programs for their derivatives */
  const int asks = kept == NULL && p->soft.count > 0;
  qd_status status = workspace_place_islands(w, model, asks ? &none : kept);
  if (status == QD_OK) {
    problem_assemble(p, model, options, &w->kinematics, &w->inertia, &w->collision, &w->set, input);
    status = solve(model, w, options, kept != NULL, result);
    report_contacts(w, result);
    scatter_delta(model, p, result->delta);
  }
  return status;
}

/* The same with soft pairs: one program after the other. */
static qd_status solve_soft(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                            const qd_step_input *input, const step_columns *kept,
                            qd_step_result *result) {
  soft_contact *soft = &w->problem.soft;
  qd_status status;
  if (!soft_newton_begin(w, model, input->bristle)) {
    return solve_programs(model, w, options, input, kept, result);
  }
  if (w->collision.count + soft->count > w->collision.capacity) {
    return QD_OUT_OF_CAPACITY;
  }
  do {
    const int row = trace_open(result->trace, "pressure", soft->programs + 1, "soft pairs");
    status = soft_newton_evaluate(w, model, options);
    status = status == QD_OK ? solve_programs(model, w, options, input, kept, result) : status;
    trace_close_with(result->trace, row, &result->info, status);
  } while (status == QD_OK && !soft_newton_advance(w, model, options, result->delta, kept != NULL));
  status = status == QD_OK && soft->is_full ? QD_OUT_OF_CAPACITY : status;
  result->soft_programs = soft->programs;
  result->soft_converged = soft->converged && !soft->bounded;
  return status;
}

/* What a caller sees of the working set's programs besides: forces, q_next. */
static void fill_result(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                        const qd_step_input *input, qd_step_result *result) {
  const problem *p = &w->problem;
  for (int dof = 0; result->v_next != NULL && dof < model->nv; ++dof) {
    result->v_next[dof] = result->delta[dof] / options->h;
  }
  if (model->constraint_count > 0 && result->constraint_force != NULL) {
    memcpy(result->constraint_force, p->constraint_force,
           (size_t)(model->constraint_count * QD_CONSTRAINT_FORCE) * sizeof(double));
  }
  if (result->tendon_force != NULL) {
    memcpy(result->tendon_force, p->tendon_force, (size_t)model->tendon_count * sizeof(double));
  }
  if (result->actuator_force != NULL) {
    problem_actuator_forces(p, model, options, input, result->delta, result->actuator_force);
  }
  qd_integrate(model, input->q, result->delta, result->q_next);
}

/* The programs of the working set, solved: fills delta and q_next. */
static qd_status solve_working_set(const qd_model *model, qd_workspace *w,
                                   const qd_step_options *options, const qd_step_input *input,
                                   const step_columns *kept, qd_step_result *result) {
  qd_status status = w->collision.count <= w->collision.capacity ? QD_OK : QD_OUT_OF_CAPACITY;
  if (status == QD_OK) {
    status = model->soft_pair_count > 0 ? solve_soft(model, w, options, input, kept, result)
                                        : solve_programs(model, w, options, input, kept, result);
  }
  if (status == QD_OUT_OF_CAPACITY) {
    result->contact_count = w->collision.count + w->problem.soft.count;
  } else if (status == QD_OK) {
    fill_result(model, w, options, input, result);
  }
  return status;
}

/* 1 if the contacts that a round has added are so many that the next one is rough, too. */
static int is_rough_again(const qd_workspace *w, int round, int added) {
  return w->rough && round < ROUGH_ROUNDS && (double)added > MANY_MORE * w->collision.count;
}

/* Contacts and limits that come in after a round; -1: what it has found is the answer. If any do,
 * of a large model with all that they may push others into. */
static int extend(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                  const qd_step_input *input, const qd_step_result *result, int large) {
  int added = 0;
  for (int rough = w->rough; rough < 2; ++rough) {
    added += working_set_extend(&w->set, model, options, &w->kinematics, &w->collision, input,
                                result->delta, rough);
    if (!large || (added == 0 && !w->unfinished)) {
      break;
    }
  }
  return added == 0 && !w->unfinished ? -1 : added;
}

/* 1 if the first round is rough: of large models that move, most contacts come in before any
 * program is solved. */
static int begins_rough(const qd_model *model, const qd_workspace *w,
                        const qd_step_options *options, int large) {
  return large && options->dynamic && w->warm.from == NULL && w->set.left_out > 0 &&
         model->soft_pair_count == 0;
}

/* 1 if more contacts change nothing about how a round ended: there are none, there is no room, or
 * what contradicts itself has no solution with more either. */
static int is_last(const qd_workspace *w, qd_status status) {
  const int waiting = w->set.left_out + w->set.forces_left_out;
  return status == QD_OUT_OF_CAPACITY || (waiting == 0 && !w->rough) ||
         (status == QD_INFEASIBLE && !w->problem.coulomb);
}

/* Rounds before all contacts come in. */
static int most_rounds(const qd_workspace *w, int large) {
  const int few = 2 * w->set.left_out <= w->collision.count;
  return large ? ROUNDS_LARGE : few ? ROUNDS : ROUNDS_MOST;
}

/* The programs of all contacts in the list, solved: the working set grows until nothing that is
 * left out matters, in a few rounds. What has no solution that is unique may have one with more
 * contacts. Large models go on from one round to the next. */
static qd_status solve_rounds(const qd_model *model, qd_workspace *w,
                              const qd_step_options *options, const qd_step_input *input,
                              const step_columns *kept, qd_step_result *result) {
  const int large = model->nv >= LARGE_ISLAND && isinf(options->kappa);
  w->rough = begins_rough(model, w, options, large);
  w->looks = large;
  for (int round = 1;; ++round) {
    w->problem.hurried = large && w->set.left_out > 0;
    const int row = trace_open(result->trace, "round", round, "%d contacts, %d rows left out",
                               w->collision.count, w->set.left_out + w->set.forces_left_out);
    const qd_status status = solve_working_set(model, w, options, input, kept, result);
    trace_close_with(result->trace, row, &result->info, status);
    if (large && status != QD_OK) {
      warm_start_go_on(&w->warm, &w->collision, &w->problem, NULL);
    }
    if (is_last(w, status)) {
      return status;
    }
    const int added = status == QD_OK ? extend(model, w, options, input, result, large) : 0;
    if (added < 0) {
      return QD_OK;
    }
    const int most = most_rounds(w, large);
    w->looks &= added > 0; /* where one was wrong, the rounds that follow are whole */
    w->rough = is_rough_again(w, round, added);
    if (large && status == QD_OK) {
      warm_start_go_on(&w->warm, &w->collision, &w->problem, result);
    }
    if (status != QD_OK || round >= most) {
      working_set_complete(&w->set, model);
    }
  }
}

/* An attempt of the step, with a row of the trace. */
static qd_status solve_attempt(const qd_model *model, qd_workspace *w,
                               const qd_step_options *options, const qd_step_input *input,
                               const step_columns *kept, qd_step_result *result) {
  const int row = trace_open(result->trace, "attempt", ++w->attempts, "%s", w->reason);
  const qd_status status = solve_rounds(model, w, options, input, kept, result);
  trace_close_with(result->trace, row, &result->info, status);
  return status;
}

/* Where joints at the limits of their actuators move without end, or anywhere, or nearly so, their
 * inertia resists, from then on in all programs of the step that need it. */
static qd_status solve_contacts(const qd_model *model, qd_workspace *w,
                                const qd_step_options *options, const qd_step_input *input,
                                const step_columns *kept, qd_step_result *result) {
  problem *p = &w->problem;
  const qd_status status = solve_attempt(model, w, options, input, kept, result);
  if (is_vague(status) && !p->resisting && problem_may_resist(p, model, options)) {
    p->resisting = 1;
    w->reason = "inertia of joints resists";
    return solve_attempt(model, w, options, input, kept, result);
  }
  return status;
}

/* Pairs that were added behind the first `before` contacts leave no motion, so they come in one by
 * one: what leaves none is dropped again. A step that was possible without them stays so. */
static qd_status solve_without(const qd_model *model, qd_workspace *w,
                               const qd_step_options *options, const qd_step_input *input,
                               const step_columns *kept, int before, qd_step_result *result) {
  collision *c = &w->collision;
  qd_status status = QD_OUT_OF_CAPACITY;
  int end = c->count;
  c->count = before;
  w->reason = "missed pairs one by one";
  while (c->count < end) {
    const int at = c->count;
    while (c->count < end && c->contact[c->count].pair == c->contact[at].pair) {
      ++c->count;
    }
    status = solve_contacts(model, w, options, input, kept, result);
    if (status == QD_OUT_OF_CAPACITY) {
      return status;
    }
    if (status != QD_OK) {
      collision_remove(c, at, end);
      end -= c->count - at;
      c->count = at;
      ++result->dropped_pairs;
    }
  }
  return status == QD_OK ? status : solve_contacts(model, w, options, input, kept, result);
}

/* What linearisation left of penetrations may be more than friction lets the contacts open by: a
 * joint whose links slide on each other faster than they part. Steps that fail for that are solved
 * again with shallow penetrations kept from deepening only; *status is then that program's. Before
 * that with constraints that need not agree in their last digits, and last, where nothing says that
 * there is no solution, with rows that give way by next to nothing. */
static void solve_relaxed(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                          const qd_step_input *input, const step_columns *kept,
                          qd_step_result *result, qd_status *status) {
  int shallow = 0;
  for (int i = 0; i < w->collision.count; ++i) {
    shallow += problem_is_shallow(model, w->collision.contact + i);
  }
  if (contradicts(*status, options) && model->constraint_count > 0) {
    w->problem.rounding = 1;
    w->reason = "constraints give by rounding";
    *status = solve_contacts(model, w, options, input, kept, result);
  }
  if (contradicts(*status, options) && shallow > 0) {
    w->problem.relaxed = 1;
    w->reason = "shallow penetrations stay";
    *status = solve_contacts(model, w, options, input, kept, result);
  }
  if (*status == QD_NUMERICAL_TROUBLE) {
    w->problem.relaxed = 0;
    w->problem.crowded = 1;
    w->reason = "rows give by next to nothing";
    *status = solve_contacts(model, w, options, input, kept, result);
  }
}

/* What no relaxing helps gives way where the options say so. The contacts of all rounds that follow
 * do, too. */
static void solve_softened(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                           const qd_step_input *input, const step_columns *kept,
                           qd_step_result *result, qd_status *status) {
  if (options->soften && contradicts(*status, options)) {
    w->problem.relaxed = 0;
    w->problem.softening = 1;
    w->reason = "rows soften";
    working_set_complete(&w->set, model);
    *status = solve_contacts(model, w, options, input, kept, result);
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

qd_status step_solve(const qd_model *model, qd_workspace *w, const qd_step_options *options,
                     const qd_step_input *input, const step_columns *kept, qd_step_result *result) {
  const int add = options->add_missed_pairs && isinf(options->kappa);
  int before = 0; /* contacts of the round before */
  step_result_reset(result);
  w->problem.relaxed = w->problem.softening = w->problem.rounding = w->problem.resisting = 0;
  w->problem.crowded = 0;
  w->problem.loads_are_known = 0;
  w->problem.proven = -1;
  w->problem.coulomb = options->law == QD_LAW_COULOMB;
  w->problem.soft.count = 0;
  begin_contacts(model, w, options, input);
  for (;;) {
    qd_status status = solve_contacts(model, w, options, input, kept, result);
    if (step_failed(status) && result->missed_pairs > 0) {
      status = solve_without(model, w, options, input, kept, before, result);
    } else if (step_failed(status)) {
      solve_relaxed(model, w, options, input, kept, result, &status);
      solve_softened(model, w, options, input, kept, result, &status);
    }
    if (status != QD_OK) {
      return status;
    }
    before = w->collision.count;
    result->relaxed_contacts = w->problem.relaxed_count;
    result->bounces = w->problem.bounce_count;
    result->capped_rows = w->problem.capped_count;
    result->deep_contacts = w->problem.deep_count;
    result->culprit_count = 0;
    const int missed =
        result->dropped_pairs > 0
            ? 0
            : missed_pairs_find(&w->collision, model, input->q, result->delta, input->mocap,
                                options->margin, &w->next, result->q_next, add);
    result->missed_pairs += missed;
    w->reason = "missed pairs come in";
    if (missed == 0 || !add) {
      if (model->soft_pair_count > 0) {
        result->contact_count += soft_newton_report(w, model);
        soft_newton_settle(w, model, options, result->bristle);
      }
      return QD_OK; /* every round adds a pair, so the rounds end */
    }
  }
}
