#include "dynamics/friction_law.h"

#include <math.h>
#include <string.h>

/* Largest difference of slips and shifts, times the tolerance and a length: solutions of programs
 * are accurate to ten times that (qdsim.h). */
#define ACCURACY 10.0
/* Number of times that an island is softened, each with the slips of the last one. */
#define SOFT_PROGRAMS 100
/* Residuals that keep their direction (the square of its cosine) and decrease by a ratio between
 * SLOW and SLOWEST, after two steps, converge along a line. */
#define STRAIGHT 0.9
#define SLOW 0.3
#define SLOWEST 0.98
#define STEPS_OF_A_LINE 2

/* Lists the contacts whose cones have tails. */
static void list_blocks(const problem *p, island *one) {
  fixed_point *s = &one->fixed_point;
  s->block_count = 0;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const contact_block *block = p->block + p->islands.contact_order[i];
    if (block->rows.count > 1) {
      s->block[s->block_count++] = (fixed_point_block){block->row - one->row, block->rows.count,
                                                       block->rows.kind == QD_LORENTZ};
    }
  }
}

static qd_status solve_convex(problem *p, island *one, const qd_cone_options *options,
                              const island_program *program) {
  const conic_answer out = answer_of(p, one);
  const qd_status status =
      conic_solve(one->cone_workspace, options, &program->program, &out, &one->info);
  effort_add(&p->effort, &one->info);
  return status;
}

/* 1 if the program takes slips into account: not in rough rounds that search for contacts. */
static int has_law(const problem *p, const island *one, const island_program *program) {
  return p->attempt.coulomb && one->fixed_point.block_count > 0 && !program->program.rough;
}

qd_status law_solve(problem *p, island *one, const qd_cone_options *cone_options,
                    const island_program *program) {
  one->report = (fixed_point_report){p->attempt.coulomb, 0.0, 1, 0};
  if (p->attempt.coulomb) {
    list_blocks(p, one);
  }
  if (!has_law(p, one, program)) {
    return solve_convex(p, one, cone_options, program);
  }
  const fixed_point_options law = {ACCURACY * p->options->tolerance * one->length,
                                   p->options->stop_after, cone_options->warm_start,
                                   p->attempt.hurried && p->options->stop_after == 0};
  const conic_answer out = answer_of(p, one);
  const qd_status status =
      fixed_point_solve(&one->fixed_point, one->cone_workspace, cone_options, &law,
                        &program->program, p->program.g + one->row, &out, &one->info, &one->report);
  effort_add(&p->effort, &one->info);
  if (status == QD_OK && one->report.programs > 1) {
    one->info.method = QD_METHOD_COULOMB;
  }
  return status;
}

void law_withdraw(problem *p, island *one, const island_program *program) {
  fixed_point *s = &one->fixed_point;
  if (has_law(p, one, program)) {
    memset(s->next, 0, (size_t)s->block_count * sizeof(double));
    fixed_point_use(s, p->program.g + one->row, s->next);
  }
}

/* The ratio by which residuals have decreased since the last step, if they kept their direction and
 * decrease slowly; else 0. */
static double slow_fall(const fixed_point *s) {
  const double *before = s->before;
  double along = 0.0, own = 0.0, now = 0.0;
  for (int i = 0; i < s->block_count; ++i) {
    along += before[i] * s->miss[i];
    own += before[i] * before[i];
    now += s->miss[i] * s->miss[i];
  }
  const int straight = along > 0.0 && along * along > STRAIGHT * own * now;
  const double ratio = straight ? along / own : 0.0;
  return ratio > SLOW && ratio < SLOWEST ? ratio : 0.0;
}

/* Chooses the slips as shifts or, if these converge along a line, their limit (Aitken). Returns the
 * number of steps since the last extrapolation. */
static int choose_shifts(fixed_point *s, int steps) {
  const double ratio = steps >= STEPS_OF_A_LINE ? slow_fall(s) : 0.0;
  fixed_point_step_to_slips(s, steps == 0);
  for (int i = 0; i < s->block_count && ratio > 0.0; ++i) {
    s->next[i] = s->shift[i] + (s->slip[i] - s->shift[i]) / (1.0 - ratio);
  }
  return ratio > 0.0 ? 0 : steps + 1;
}

/* Plain slips: each time, softening of the island begins anew with raised heads, so that no row is
 * violated only because the convex law separates sliding bodies. */
qd_status law_soften(qd_workspace *w, island *one, const qd_cone_options *cone_options,
                     const island_program *program, recovery_how how) {
  problem *p = &w->problem;
  fixed_point *s = &one->fixed_point;
  qd_status status = recovery_solve(w, one, cone_options, program, how);
  one->report = (fixed_point_report){p->attempt.coulomb, 0.0, 1, 0};
  if (!p->attempt.coulomb || s->block_count == 0) {
    return status;
  }
  fixed_point_begin(s, p->program.g + one->row);
  const double tolerance = ACCURACY * p->options->tolerance * one->length;
  const int most = p->options->stop_after > 0 ? p->options->stop_after : SOFT_PROGRAMS;
  const recovery_how again = how == RECOVERY_PROVEN ? RECOVERY_ROWS : how;
  one->report = (fixed_point_report){.programs = 1, .error = HUGE_VAL};
  for (int steps = 0; status == QD_OK;) {
    one->report.error =
        fixed_point_read(s, p->solution.slack + one->row, p->solution.dual + one->row, one->length);
    if (one->report.error <= tolerance || one->report.programs == most) {
      break;
    }
    steps = choose_shifts(s, steps);
    fixed_point_use(s, p->program.g + one->row, s->next);
    ++one->report.programs;
    status = recovery_solve(w, one, cone_options, program, again);
  }
  return status == QD_OK && !(one->report.error <= tolerance) && p->options->stop_after == 0
             ? QD_LAW_NOT_MET
             : status;
}

void law_report(const island *one, qd_step_result *result) {
  if (one == NULL) {
    result->convex_programs = 0;
    result->law_residual = 0.0;
    result->unique = 1;
    return;
  }
  if (one->report.programs > result->convex_programs) {
    result->convex_programs = one->report.programs;
  }
  result->law_residual = fmax(result->law_residual, one->report.error);
  const int has_law = one->report.programs > 0 && one->fixed_point.block_count > 0;
  const int unique = !one->report.regular ? 0 : has_law ? -1 : 1;
  if (unique == 0 || result->unique == 1) {
    result->unique = unique;
  }
}

/* 1 if slips are part of the island's solution. */
static int is_shifted(const problem *p, const island *one) {
  return p->attempt.coulomb && one->fixed_point.block_count > 0 && !one->softened;
}

static qd_status factor(problem *p, island *one, int *exact) {
  if (!is_shifted(p, one)) {
    conic_settle(one->cone_workspace, &one->info); /* needed for soft pairs */
    return conic_sensitivity_prepare(one->cone_workspace, exact);
  }
  island_program program;
  problem_program(p, one, &program);
  const qd_status status = fixed_point_sensitivity_prepare(
      &one->fixed_point, one->cone_workspace, &program.program, p->solution.slack + one->row,
      p->solution.dual + one->row, &one->info, exact);
  *exact &= !one->report.stale;
  return status;
}

qd_status law_sensitivity_prepare(problem *p, island *one, int *exact) {
  const qd_status status = factor(p, one, exact);
  if (status == QD_OK && one->intervals > 0) {
    conic_sensitivity_limits(one->cone_workspace, p->program.by_lower + one->row,
                             p->program.by_upper + one->row);
  }
  return status;
}

void law_sensitivity_solve(problem *p, island *one, int transposed, const conic_change *change) {
  if (!is_shifted(p, one)) {
    conic_sensitivity_solve(one->cone_workspace, change);
    return;
  }
  island_program program;
  problem_program(p, one, &program);
  fixed_point_sensitivity_solve(&one->fixed_point, one->cone_workspace, &program.program,
                                transposed, change);
}
