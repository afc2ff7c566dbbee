#include "numerics/coulomb/fixed_point.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/trace.h"
#include "numerics/conic/tuning.h"

/* Limit on factors of the law's own path from each start. Of 29 heap programs whose path converged,
 * one needed more: 369. */
#define PATH_FACTORS 250
/* Factors per program, for the path's limit if the caller limits the number of programs. */
#define PROGRAM_FACTORS 20
/* Damping of the step from shift to slip: the factor falls if the miss changes its sign, and rises
 * otherwise. */
#define SHARE_FALLS 0.7
#define SHARE_RISES 1.1

/* Methods for the fixed point, in turn. Newton's method from the convex program's solution solves
 * nearly all states. It cycles at kinks, and diverges in heaps, where many contacts change from
 * sticking to sliding. Then the path of the law itself is followed, if it supports the contacts.
 * Last, starting from shifts that release all contacts, the damped slips are iterated, with a
 * Newton step whenever the error has fallen much. */
typedef enum fixed_point_way { BY_NEWTON, BY_PATH, BY_SLIPS, WAY_COUNT } fixed_point_way;
/* Limits on convex programs for each method; Newton's method gets a single program in heaps. */
static const int PROGRAMS[WAY_COUNT] = {10, 10, 200};
static const char *const WAY_NAMES[WAY_COUNT] = {"Newton's slips", "Newton's slips",
                                                 "plain slips"}; /* for the trace */

/* State of a solve. */
typedef struct fixed_point_run {
  fixed_point *s;
  qd_cone_workspace *workspace;
  const qd_cone_options *options;
  const conic_program *program;
  double *g;
  const conic_answer *out;
  qd_cone_info *info;
  double tolerance; /* on the error */
  int path_factors; /* limit on factors of the law's path */
  int from_one;     /* 1: that path is followed from one start only */
  int polishes;     /* 1: programs start with the active set of the last solution */
  int programs, iterations, factorizations, tries; /* of all programs */
  double error, best, last;
  int at_best; /* 1: the current solution is the best one */
  fixed_point_way way, last_way;
  int way_ends;        /* number of programs after which the method ends */
  double newton_below; /* error below which Newton's steps are tried */
  int regular;         /* -1: not known */
  int slips;           /* 1: damped slips have been used before */
  int cold;            /* 1: programs start cold */
  int stale;           /* 1: the solution is not that of the last program */
  int opened;          /* 1: the program without shifts is infeasible */
} fixed_point_run;

void fixed_point_begin(fixed_point *s, const double *g) {
  memset(s->shift, 0, (size_t)s->block_count * sizeof(double));
  for (int i = 0; i < s->block_count; ++i) {
    memcpy(s->offset + s->block[i].row, g + s->block[i].row,
           (size_t)s->block[i].count * sizeof(double));
  }
}

void fixed_point_use(fixed_point *s, double *g, const double *shift) {
  for (int i = 0; i < s->block_count; ++i) {
    const fixed_point_block *block = s->block + i;
    const double next = larger(shift[i], 0.0);
    for (int r = 0; r < (block->is_cone ? 1 : block->count); ++r) {
      g[block->row + r] = s->offset[block->row + r] + next;
    }
    s->shift[i] = next;
  }
}

static int is_large(const fixed_point_run *run) {
  return run->program->program.variable_count >= LARGE_PROGRAM;
}

static qd_status solve_program(fixed_point_run *run) {
  qd_cone_options options = *run->options;
  conic_program program = *run->program;
  options.warm_start = !run->cold && (options.warm_start || run->programs > 0);
  program.midway = !run->polishes && (run->programs > 0 ? is_large(run) : program.midway);
  const int row = trace_open(options.trace, "program", run->programs + 1, "%s",
                             run->programs == 0 ? "first slips" : WAY_NAMES[run->way]);
  const qd_status status = conic_solve(run->workspace, &options, &program, run->out, run->info);
  ++run->programs;
  run->iterations += run->info->iterations;
  run->factorizations += run->info->factorizations;
  run->tries += run->info->tries;
  run->last = run->error;
  run->at_best = 0;
  if (status == QD_OK) {
    run->error = fixed_point_read(run->s, run->out->slack, run->out->dual, run->program->length);
  }
  trace_close(options.trace, row, status == QD_OK ? run->error : NAN, qd_status_name(status));
  return status;
}

/* ---------------------------------------------------------------- the next shifts */

/* next += (1 - d slip / d shift)^-1 miss for blocks that slide under load, from the current shifts;
 * 0 if there is no derivative. */
static int step_newton(fixed_point_run *run) {
  fixed_point *s = run->s;
  double step[FIXED_POINT_DENSE];
  int exact;
  if (s->coupled_count > s->matrix_room) {
    return 0;
  }
  conic_settle(run->workspace, run->info);
  if (conic_sensitivity_prepare(run->workspace, &exact) != QD_OK ||
      !fixed_point_factor(s, run->workspace, run->program)) {
    return 0;
  }
  for (int k = 0; k < s->coupled_count; ++k) {
    step[k] = s->miss[s->coupled[k]];
  }
  fixed_point_matrix_solve(s, 0, 1, step);
  run->regular = s->matrix.rank == s->coupled_count && dense_qr_sign(&s->matrix) > 0;
  for (int k = 0; k < s->coupled_count; ++k) {
    s->next[s->coupled[k]] = s->shift[s->coupled[k]] + step[k];
  }
  return all_finite(step, s->coupled_count);
}

static void use_shifts(fixed_point_run *run, const double *shift) {
  fixed_point_use(run->s, run->g, shift);
}

static void use_no_shifts(fixed_point_run *run) {
  memset(run->s->next, 0, (size_t)run->s->block_count * sizeof(double));
  use_shifts(run, run->s->next);
}

void fixed_point_step_to_slips(fixed_point *s, int first) {
  for (int i = 0; i < s->block_count; ++i) {
    const int turned = !first && s->before[i] * s->miss[i] < 0.0;
    s->share[i] = first    ? 1.0
                  : turned ? SHARE_FALLS * s->share[i]
                           : smaller(SHARE_RISES * s->share[i], 1.0);
    s->before[i] = s->miss[i];
    s->next[i] = s->shift[i] + (s->miss[i] != 0.0 ? s->share[i] : 1.0) * (s->slip[i] - s->shift[i]);
  }
}

/* Newton's step, or a damped step to the slips. While slips are iterated, Newton's step is tried
 * after each large fall of the error. */
static void choose_next(fixed_point_run *run) {
  fixed_point *s = run->s;
  memcpy(s->next, s->slip, (size_t)s->block_count * sizeof(double));
  if (run->error <= run->newton_below && step_newton(run)) {
    run->newton_below = run->way == BY_SLIPS ? AGAIN * run->error : HUGE_VAL;
  } else {
    fixed_point_step_to_slips(s, !run->slips);
    run->slips = 1;
  }
}

/* ------------------------------------------------------------ methods */

/* Copies the best solution to its store (keep) or back. */
static void copy_best(fixed_point_run *run, int keep) {
  const qd_cone_program *sizes = &run->program->program;
  double *const own[] = {run->out->x, run->out->slack, run->out->dual, run->out->dual_eq};
  const int count[] = {sizes->variable_count, sizes->row_count, sizes->row_count,
                       sizes->equality_count};
  double *kept = run->s->best_solution;
  for (int i = 0; i < 4; ++i) {
    if (count[i] > 0) {
      memcpy(keep ? kept : own[i], keep ? own[i] : kept, (size_t)count[i] * sizeof(double));
    }
    kept += count[i];
  }
}

/* Keeps the current solution if it is the best so far. */
static void judge(fixed_point_run *run) {
  fixed_point *s = run->s;
  run->at_best = run->error < run->best;
  if (run->at_best) {
    run->best = run->error;
    memcpy(s->best_shift, s->shift, (size_t)s->block_count * sizeof(double));
    copy_best(run, 1);
  }
}

/* 1 if further programs are not worth it. After a polish of the law, programs start at its
 * solution, which they reproduce. */
static int is_enough(const fixed_point_run *run, const fixed_point_options *law) {
  return (law->stop_after > 0 && run->programs >= law->stop_after) ||
         run->error <= (run->polishes ? SMALL : SLIGHT) * law->tolerance ||
         (run->best <= law->tolerance && run->error > WELL_LESS * run->last);
}

/* Sets all shifts to the slips of x, also of contacts without force: otherwise near contacts would
 * be pushed apart by their slip. */
static void use_slips(fixed_point_run *run) {
  fixed_point *s = run->s;
  fixed_point_slack_at(s, run->program, run->out->x, run->g, run->out->slack);
  fixed_point_read(s, run->out->slack, run->out->dual, run->program->length);
  use_shifts(run, s->slip);
}

/* Newton's method on the law from the path's current point; 1 if it solves the law. Programs then
 * start at its solution. */
static int polish_law(fixed_point_run *run) {
  primal_path *path = &run->s->path;
  if (!fixed_point_fits_path(run->s)) {
    return 0;
  }
  const int factored = run->factorizations;
  const int row = trace_open(run->options->trace, "law's Newton", 0, "from the point at hand");
  const int found =
      primal_polish(path, run->program, SMALL * run->tolerance, NEWTON_LIMIT, &run->factorizations);
  trace_effort(run->options->trace, 0, run->factorizations - factored);
  trace_close(run->options->trace, row, NAN, found ? "solved" : "no answer");
  if (!found) {
    return 0;
  }
  primal_path_read(&run->s->path, run->out->x, run->out->dual, run->out->dual_eq);
  run->regular = primal_is_regular(path, run->program);
  run->polishes = 1;
  return 1;
}

/* Starts from the guess' slips; in a large program, from the solution of the law that Newton's
 * method finds from the guess. */
static void start_guessed(fixed_point_run *run) {
  if (is_large(run) && fixed_point_fits_path(run->s) &&
      primal_path_load(&run->s->path, run->program, run->out->x, run->out->dual)) {
    polish_law(run);
  }
  use_slips(run);
}

/* Follows the law's path with all gaps wider by `opening` (m). Returns 1 if its end was found. */
static int follow_path(fixed_point_run *run, double opening) {
  fixed_point *s = run->s;
  for (int i = 0; i < s->block_count; ++i) {
    s->next[i] = opening;
  }
  use_shifts(run, s->next);
  const int factored = run->factorizations;
  const int row = trace_open(run->options->trace, "law's path", 0,
                             opening > 0.0 ? "gaps opened" : "no slips led on");
  const int found = primal_path_follow(&s->path, run->program, ACCEPTED * run->program->length,
                                       run->from_one, run->path_factors, &run->factorizations);
  trace_effort(run->options->trace, 0, run->factorizations - factored);
  trace_close(run->options->trace, row, NAN, found ? "end found" : "no answer");
  return found;
}

/* Starts from the end of the law's path and its slips. 0 if the path fails. Where gaps are tiny,
 * the path may be stuck at motions that jam; it is not if gaps are wider by SMALL of the length.
 * (1,600 steps of pushed boxes that hover by 1e-8 m: 1 fails; 15 with a tenth of that; 23 without.)
 */
static int start_on_path(fixed_point_run *run) {
  if (!is_large(run) && !fixed_point_fits_path(run->s)) {
    return 0;
  }
  if (run->best < HUGE_VAL) {
    copy_best(run, 0); /* the path reads the states of intervals from it */
  }
  if (!follow_path(run, 0.0) &&
      (is_large(run) || run->opened || !follow_path(run, SMALL * run->program->length))) {
    return 0;
  }
  use_no_shifts(run);
  primal_path_read(&run->s->path, run->out->x, run->out->dual, run->out->dual_eq);
  polish_law(run);
  use_slips(run);
  run->polishes = 1;
  return 1;
}

/* Starts a method. BY_PATH falls through to BY_SLIPS if the path fails. */
static void begin_way(fixed_point_run *run, fixed_point_way next) {
  fixed_point *s = run->s;
  run->polishes = 0;
  run->way = next == BY_PATH && !start_on_path(run) ? BY_SLIPS : next;
  run->way_ends = run->programs + PROGRAMS[run->way];
  run->newton_below = run->way == BY_SLIPS ? AGAIN * run->best : HUGE_VAL;
  run->slips = 0;
  for (int i = 0; i < s->block_count && run->way == BY_SLIPS; ++i) {
    s->next[i] = CERTIFICATE_SCALE * run->program->length;
  }
  if (run->way == BY_SLIPS) {
    use_shifts(run, s->next);
  }
}

/* Moves to the next shifts. */
static void go_on(fixed_point_run *run) {
  choose_next(run);
  use_shifts(run, run->s->next);
}

/* Tries an infeasible program at the end of the law's own path: it may be feasible under Coulomb's
 * law, which does not separate sliding contacts. The path is then the last method. 0 if it
 * fails. */
static int open_up(fixed_point_run *run) {
  run->opened = 1;
  run->path_factors = 3 * PROGRAM_FACTORS; /* it may have no end */
  run->last_way = BY_PATH;
  if (fixed_point_fits_path(run->s)) {
    begin_way(run, BY_PATH);
  }
  if (run->way != BY_PATH) {
    use_no_shifts(run);
  }
  return run->way == BY_PATH;
}

/* Restores the certificate that the program without shifts is infeasible, after the path has
 * failed. */
static qd_status close_again(fixed_point_run *run) {
  use_no_shifts(run);
  run->cold = 1;
  run->polishes = 0;
  const qd_status status = solve_program(run);
  return status == QD_OK ? QD_LAW_NOT_MET : status;
}

/* No program was solved so far: 1 if a retry is worth it, cold if there was a guess, or on the
 * law's path. */
static int begin_anew(fixed_point_run *run, const fixed_point_options *law, qd_status status) {
  use_no_shifts(run); /* as at the beginning */
  run->cold = status != QD_OUT_OF_CAPACITY && law->guessed && run->programs == 1;
  return run->cold || (status == QD_INFEASIBLE && !run->opened && open_up(run));
}

static qd_status find_shifts(fixed_point_run *run, const fixed_point_options *law) {
  run->way_ends = is_large(run) ? 1 : PROGRAMS[BY_NEWTON];
  for (;;) {
    const qd_status status = solve_program(run);
    run->cold = 0;
    if (status == QD_OUT_OF_CAPACITY || (status != QD_OK && run->best == HUGE_VAL)) {
      if (!begin_anew(run, law, status)) {
        return status;
      }
      continue;
    }
    if (status == QD_OK) {
      judge(run);
    }
    const int ends = status != QD_OK || run->programs >= run->way_ends;
    if ((status == QD_OK && is_enough(run, law)) || (ends && run->way == run->last_way)) {
      return QD_OK;
    }
    if (!ends) {
      go_on(run);
      continue;
    }
    begin_way(run, run->way + 1);
    if (law->hurried && is_large(run) && !run->polishes) {
      return QD_LAW_NOT_MET;
    }
  }
}

/* Restores the best solution and its properties. Derivatives need its program to be solved last:
 * from the current point, or cold. */
static qd_status settle(fixed_point_run *run, const fixed_point_options *law) {
  for (int cold = 0; run->program->derivatives && !run->at_best && cold < 2; ++cold) {
    const double best = run->best;
    run->cold = cold;
    use_shifts(run, run->s->best_shift);
    run->at_best = solve_program(run) == QD_OK && run->error <= larger(best, law->tolerance);
  }
  if (!run->at_best) {
    run->stale = 1;
    use_shifts(run, run->s->best_shift);
    copy_best(run, 0);
    run->error = fixed_point_read(run->s, run->out->slack, run->out->dual, run->program->length);
    run->regular = run->regular < 0 ? 0 : run->regular;
  }
  if (run->s->coupled_count == 0) {
    run->regular = 1;
  } else if (run->regular < 0) {
    step_newton(run);
  }
  return run->error <= law->tolerance || law->stop_after > 0 ? QD_OK : QD_LAW_NOT_MET;
}

qd_status fixed_point_solve(fixed_point *s, qd_cone_workspace *workspace,
                            const qd_cone_options *options, const fixed_point_options *law,
                            const conic_program *program, double *g, const conic_answer *out,
                            qd_cone_info *info, fixed_point_report *report) {
  fixed_point_run run = {.s = s,
                         .workspace = workspace,
                         .options = options,
                         .program = program,
                         .g = g,
                         .out = out,
                         .info = info,
                         .tolerance = law->tolerance,
                         .path_factors = PATH_FACTORS,
                         .error = HUGE_VAL,
                         .best = HUGE_VAL,
                         .newton_below = HUGE_VAL,
                         .last_way = BY_SLIPS,
                         .regular = -1};
  if (law->stop_after > 0 && law->stop_after < PATH_FACTORS / PROGRAM_FACTORS) {
    run.path_factors = PROGRAM_FACTORS * law->stop_after;
  }
  run.from_one = law->hurried && is_large(&run);
  fixed_point_begin(s, g);
  fixed_point_tell_pairs(s, program->program.row_count);
  s->path.dual = out->dual;
  s->path.dual_eq = out->dual_eq;
  if (law->guessed) {
    start_guessed(&run);
  }
  qd_status status = find_shifts(&run, law);
  if (status == QD_OK) {
    status = settle(&run, law);
  }
  if (run.opened && (status == QD_OK || status == QD_LAW_NOT_MET) &&
      !(run.error <= law->tolerance)) { /* the best of failed programs is no solution */
    status = close_again(&run);
  }
  *report = (fixed_point_report){run.programs, run.error, run.regular > 0, run.stale};
  info->iterations = run.iterations;
  info->factorizations = run.factorizations;
  info->tries = run.tries;
  return info->status = status;
}
