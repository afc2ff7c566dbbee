#include "numerics/coulomb/shifted.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "base/trace.h"

/* Beside the tolerance: an error that more programs are not worth. */
#define ENOUGH 1e-5
/* An error that is such a part of the one before, within the tolerance, is rounding. */
#define SETTLED 0.3
/* Programs that may fail on the way. */
#define SHIFT_PATIENCE 2
/* Steps that do not lower the error so far are halved, where they are at all, so often. */
#define FALLS 0.9
#define HALVINGS 4
/* Of large programs: an error so many times the best is where Newton's steps run away, on to the
 * next way. */
#define RUNS_AWAY 5.0
/* The path of the law itself, in large programs: forces times slacks that end it, beside the
 * largest force times the length; factors that it may take. */
#define ARRIVED 1e-11
#define PATH_FACTORS 250
/* While more contacts may come in, from one start and no other way; of 29 programs two of those
 * that got there at all took more, 195 and 369. */
#define HURRIED_FACTORS 180
/* The same where the program without shifts has no point, and there may be no end. */
#define OPEN_FACTORS 60
/* Where the caller wants no more than some programs: as many factors as they take. */
#define PROGRAM_FACTORS 20
/* Behind the law's own polish programs begin with its solution, which they find again: so near, as
 * a part of the tolerance, is enough. The polish itself: of its own error, and within so many
 * factors, from the path's end or from the solution with fewer contacts. */
#define POLISHED 1e-2
#define LAW_POLISHED 1e-3
#define POLISH_FACTORS 12
/* How far errors have to fall under mixing before Newton's next step. */
#define AGAIN 0.1
/* Shares of the way from a shift to its slip: where a miss turns round it falls, down to a least,
 * and rises again where it does not. */
#define SHARE_FALLS 0.7
#define SHARE_RISES 1.1
#define SHARE_LEAST 0.1
/* Shifts that let go of everything, beside the length. */
#define OPEN 1e6
/* Of a column of mixing, what the others leave of it: less is rounding. */
#define PARALLEL 1e-8

typedef enum way_from { FROM_START, FROM_BEST, FROM_OPEN, FROM_PATH } way_from;
typedef enum way_by { BY_NEWTON, BY_HALVED_NEWTON, BY_MIXING, BY_DOUBLING, BY_SLIPS } way_by;

/* Ways to the fixed point, each tried for so many programs. The first is the way of nearly all
 * states; kinks, where it runs in circles, and shifts that feed themselves (friction that presses
 * what slides) need others. */
typedef struct way_step {
  way_from from;
  way_by by;
  int programs;
} way_step;

/* For the trace. */
static const char *const BY_NAMES[] = {"Newton's slips", "halved Newton's slips", "mixed slips",
                                       "doubled slips", "plain slips"};

static const way_step WAYS[] = {{FROM_START, BY_NEWTON, 10},   {FROM_PATH, BY_NEWTON, 10},
                                {FROM_BEST, BY_MIXING, 16},    {FROM_START, BY_MIXING, 20},
                                {FROM_OPEN, BY_NEWTON, 12},    {FROM_BEST, BY_HALVED_NEWTON, 16},
                                {FROM_START, BY_DOUBLING, 24}, {FROM_OPEN, BY_MIXING, 20},
                                {FROM_START, BY_SLIPS, 60},    {FROM_BEST, BY_HALVED_NEWTON, 24}};
/* Of large programs: heaps in which many contacts go over from sticking to sliding on the way,
 * where Newton's steps from the convex program's solution run away. After the path of the law
 * itself a few lead on. What mixing remembers is of other contacts by then; plain slips lead past.
 */
static const way_step LARGE_WAYS[] = {
    {FROM_START, BY_NEWTON, 1},  {FROM_PATH, BY_NEWTON, 10},
    {FROM_START, BY_SLIPS, 60},  {FROM_BEST, BY_HALVED_NEWTON, 24},
    {FROM_START, BY_MIXING, 20}, {FROM_BEST, BY_HALVED_NEWTON, 16}};
#define COUNT_OF(ways) ((int)(sizeof(ways) / sizeof *(ways)))

/* A program while shifts are tried. */
typedef struct shifted_run {
  shifted *s;
  qd_cone_workspace *workspace;
  const qd_cone_options *options;
  const conic_program *program;
  double *g;
  double *x, *slack, *dual, *dual_eq;
  qd_cone_info *info;
  double tolerance; /* on the error */
  int path_factors; /* that the law's own path may take */
  int path_starts;
  int polishes; /* 1: programs begin with the active set of the last solution */
  int programs, iterations, factorizations, tries; /* of all programs */
  double error, best, last;
  int at_best; /* 1: the solution at hand is the best one */
  int halved;  /* times that Newton's step is */
  const way_step *ways, *way;
  int way_count;
  int way_ends;        /* after so many programs */
  double newton_below; /* error from which on Newton's steps are tried */
  int regular;         /* -1: not known */
  int mixed;
  int past_count, past_next; /* iterations that mixing knows */
  double stretch;            /* of doubled steps */
  int cold;                  /* 1: programs start from nothing */
  int stale;                 /* 1: the solution is not that of the program solved last */
  int noted;                 /* 1: one of them has begun */
  int opened;                /* 1: the program without shifts has no point */
} shifted_run;

void shifted_begin(shifted *s, const double *g) {
  memset(s->shift, 0, (size_t)s->block_count * sizeof(double));
  for (int i = 0; i < s->block_count; ++i) {
    memcpy(s->offset + s->block[i].row, g + s->block[i].row,
           (size_t)s->block[i].count * sizeof(double));
  }
}

void shifted_use(shifted *s, double *g, const double *shift) {
  for (int i = 0; i < s->block_count; ++i) {
    const shifted_block *block = s->block + i;
    const double next = larger(shift[i], 0.0);
    for (int r = 0; r < (block->is_cone ? 1 : block->count); ++r) {
      g[block->row + r] = s->offset[block->row + r] + next;
    }
    s->shift[i] = next;
  }
}

static int is_large(const shifted_run *run) {
  return run->program->program.variable_count >= SHIFTED_LARGE;
}

static qd_status solve_program(shifted_run *run) {
  qd_cone_options options = *run->options;
  conic_program program = *run->program;
  options.warm_start = !run->cold && (options.warm_start || run->programs > 0);
  program.midway = !run->polishes && (run->programs > 0 ? is_large(run) : program.midway);
  const int row = trace_open(options.trace, "program", run->programs + 1, "%s",
                             run->programs == 0 ? "first slips" : BY_NAMES[run->way->by]);
  const qd_status status = conic_solve(run->workspace, &options, &program, run->x, run->slack,
                                       run->dual, run->dual_eq, run->info);
  ++run->programs;
  run->iterations += run->info->iterations;
  run->factorizations += run->info->factorizations;
  run->tries += run->info->tries;
  run->last = run->error;
  run->at_best = 0;
  if (status == QD_OK) {
    run->error = shifted_read(run->s, run->slack, run->dual, run->program->length);
  }
  trace_close(options.trace, row, status == QD_OK ? run->error : NAN, qd_status_name(status));
  return status;
}

/* ---------------------------------------------------------------- the next shifts */

/* next += (1 - d slip / d shift)^-1 miss of what slides under load, from the shifts at hand; 0:
 * there is no derivative. */
static int step_newton(shifted_run *run) {
  shifted *s = run->s;
  double step[SHIFTED_DENSE];
  int exact;
  if (s->coupled_count > s->matrix_room) {
    return 0;
  }
  conic_settle(run->workspace, run->info);
  if (conic_sensitivity_prepare(run->workspace, &exact) != QD_OK ||
      !shifted_factor(s, run->workspace, run->program)) {
    return 0;
  }
  for (int k = 0; k < s->coupled_count; ++k) {
    step[k] = s->miss[s->coupled[k]];
  }
  shifted_matrix_solve(s, 0, 1, step);
  run->regular = s->rank == s->coupled_count && s->sign > 0;
  for (int k = 0; k < s->coupled_count; ++k) {
    s->next[s->coupled[k]] = s->shift[s->coupled[k]] + step[k];
  }
  return all_finite(step, s->coupled_count);
}

static double product(const double *a, const double *b, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

static double *change_of_miss(const shifted *s, int k) {
  return s->past + (size_t)(2 * k) * (size_t)s->block_count;
}

static double *change_of_shift(const shifted *s, int k) {
  return s->past + (size_t)(2 * k + 1) * (size_t)s->block_count;
}

/* Takes the part along those before it out of change k of the misses, and the same of the shifts';
 * 0 if nothing is left. */
static int make_orthogonal(const shifted *s, int k) {
  const int n = s->block_count;
  double *miss = change_of_miss(s, k), *shift = change_of_shift(s, k);
  const double size = product(miss, miss, n);
  for (int j = 0; j < k; ++j) {
    const double *other = change_of_miss(s, j), *moved = change_of_shift(s, j);
    const double own = product(other, other, n);
    const double part = own > 0.0 ? product(other, miss, n) / own : 0.0;
    for (int i = 0; i < n; ++i) {
      miss[i] -= part * other[i];
      shift[i] -= part * moved[i];
    }
  }
  const int left = product(miss, miss, n) > PARALLEL * PARALLEL * size;
  if (!left) {
    memset(miss, 0, (size_t)n * sizeof(double));
  }
  return left;
}

/* The slips, less what the last iterations say that they miss by: with weights that make |miss -
 * changes| least (Anderson 1965). */
static void step_mixed(shifted_run *run) {
  const shifted *s = run->s;
  const int n = s->block_count;
  for (int k = 0; k < run->past_count; ++k) {
    if (!make_orthogonal(s, k)) {
      continue;
    }
    const double *miss = change_of_miss(s, k), *shift = change_of_shift(s, k);
    const double weight = product(miss, s->miss, n) / product(miss, miss, n);
    for (int i = 0; i < n; ++i) {
      s->next[i] -= weight * (miss[i] + shift[i]);
    }
  }
  run->mixed = 1;
}

/* Before a program what misses and shifts are, and behind it (sign 1) how they have changed. */
static void note_change(shifted_run *run, double sign) {
  const shifted *s = run->s;
  double *miss = change_of_miss(s, run->past_next), *shift = change_of_shift(s, run->past_next);
  for (int i = 0; i < s->block_count; ++i) {
    miss[i] = (sign < 0.0 ? 0.0 : miss[i]) + sign * s->miss[i];
    shift[i] = (sign < 0.0 ? 0.0 : shift[i]) + sign * s->shift[i];
  }
  run->noted = sign < 0.0;
  if (sign > 0.0) {
    run->past_next = (run->past_next + 1) % SHIFTED_MEMORY;
    run->past_count += run->past_count < SHIFTED_MEMORY;
  }
}

static void forget(shifted_run *run) {
  run->past_count = run->past_next = run->noted = run->halved = 0;
  run->stretch = 1.0;
}

static void use_shifts(shifted_run *run, const double *shift) {
  shifted_use(run->s, run->g, shift);
}

static void use_no_shifts(shifted_run *run) {
  memset(run->s->next, 0, (size_t)run->s->block_count * sizeof(double));
  use_shifts(run, run->s->next);
}

void shifted_step_to_slips(shifted *s, int first) {
  double *before = s->past, *share = s->past + s->block_count;
  for (int i = 0; i < s->block_count; ++i) {
    const int turned = !first && before[i] * s->miss[i] < 0.0;
    share[i] = first    ? 1.0
               : turned ? larger(SHARE_FALLS * share[i], SHARE_LEAST)
                        : smaller(SHARE_RISES * share[i], 1.0);
    before[i] = s->miss[i];
    s->next[i] = s->shift[i] + (s->miss[i] != 0.0 ? share[i] : 1.0) * (s->slip[i] - s->shift[i]);
  }
}

/* 1 if Newton's step is tried only once for each fall of the error. */
static int newton_is_rare(const way_step *on) { return on->by == BY_MIXING || on->by == BY_SLIPS; }

static void choose_next(shifted_run *run) {
  shifted *s = run->s;
  memcpy(s->next, s->slip, (size_t)s->block_count * sizeof(double));
  if (run->way->by == BY_DOUBLING) {
    for (int i = 0; i < s->block_count; ++i) {
      s->next[i] = s->shift[i] + run->stretch * (s->slip[i] - s->shift[i]);
    }
    run->stretch *= 2.0;
    return;
  }
  if (run->error <= run->newton_below && step_newton(run)) {
    run->newton_below = newton_is_rare(run->way) ? AGAIN * run->error : run->newton_below;
    return;
  }
  memcpy(s->next, s->slip, (size_t)s->block_count * sizeof(double));
  if (run->way->by == BY_SLIPS) {
    shifted_step_to_slips(s, run->past_count == 0);
    run->past_count = 1;
  } else {
    step_mixed(run);
  }
}

/* ---------------------------------------------------------------- the way */

/* The best solution's numbers, from where they are kept or to there. */
static void copy_best(shifted_run *run, int keep) {
  const qd_cone_program *sizes = &run->program->program;
  double *const own[] = {run->x, run->slack, run->dual, run->dual_eq};
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

/* Notes how good the solution at hand is; 1 if it is better than others. */
static int judge(shifted_run *run) {
  shifted *s = run->s;
  const int falls = run->error < FALLS * run->best;
  run->at_best = run->error < run->best;
  if (run->at_best) {
    run->best = run->error;
    memcpy(s->best_shift, s->shift, (size_t)s->block_count * sizeof(double));
    copy_best(run, 1);
  }
  return falls;
}

/* 1 if no more programs are worth it. */
static int is_enough(const shifted_run *run, const shifted_options *law) {
  return (law->stop_after > 0 && run->programs >= law->stop_after) ||
         run->error <= (run->polishes ? POLISHED : ENOUGH) * law->tolerance ||
         (run->best <= law->tolerance && run->error > SETTLED * run->last);
}

/* 1 if the way has come to its end, or is leading nowhere. In large programs what is good enough
 * only gets better. */
static int way_is_over(const shifted_run *run, qd_status status) {
  const int runs_away =
      is_large(run) && run->way == run->ways && run->error > RUNS_AWAY * run->best;
  const int gets_better = is_large(run) && run->best <= run->tolerance;
  return (run->programs >= run->way_ends && !gets_better) || status != QD_OK || runs_away;
}

/* Shifts that x shows, of contacts without force too: those that are near would else be pushed
 * apart by what they slide. */
static void use_slips(shifted_run *run) {
  shifted *s = run->s;
  shifted_slack_at(s, run->program, run->x, run->g, run->slack);
  shifted_read(s, run->slack, run->dual, run->program->length);
  use_shifts(run, s->slip);
}

/* Newton's steps on the law from the point at hand of its path; 1 if they have solved it. Then
 * programs begin there. */
static int polish_law(shifted_run *run) {
  primal_path *path = &run->s->path;
  if (!shifted_fits_path(run->s)) {
    return 0;
  }
  const int factored = run->factorizations;
  const int row = trace_open(run->options->trace, "law's Newton", 0, "from the point at hand");
  const int found = primal_polish(path, run->program, LAW_POLISHED * run->tolerance, POLISH_FACTORS,
                                  &run->factorizations);
  trace_effort(run->options->trace, 0, run->factorizations - factored);
  trace_close(run->options->trace, row, NAN, found ? "solved" : "no answer");
  if (!found) {
    return 0;
  }
  primal_path_read(&run->s->path, run->x, run->dual, run->dual_eq);
  run->regular = primal_is_regular(path, run->program);
  run->polishes = 1;
  return 1;
}

/* Shifts of the guess; of a large program, of the solution of the law that it leads to. */
static void start_guessed(shifted_run *run) {
  if (is_large(run) && shifted_fits_path(run->s) &&
      primal_path_load(&run->s->path, run->program, run->x, run->dual)) {
    polish_law(run);
  }
  use_slips(run);
}

/* Halfway back to the best. */
static void step_back(shifted_run *run) {
  shifted *s = run->s;
  for (int i = 0; i < s->block_count; ++i) {
    s->next[i] = 0.5 * (s->shift[i] + s->best_shift[i]);
  }
  use_shifts(run, s->next);
}

/* The path's end: its shifts, from its point. 0 if it has none. */
static int start_on_path(shifted_run *run) {
  shifted *s = run->s;
  if (run->best < HUGE_VAL) {
    copy_best(run, 0); /* for what intervals do */
  }
  use_no_shifts(run);
  const int factored = run->factorizations;
  const int row = trace_open(run->options->trace, "law's path", 0, "no slips led on");
  const int found = primal_path_follow(&s->path, run->program, ARRIVED * run->program->length,
                                       run->path_starts, run->path_factors, &run->factorizations);
  trace_effort(run->options->trace, 0, run->factorizations - factored);
  trace_close(run->options->trace, row, NAN, found ? "end found" : "no answer");
  if (!found) {
    return 0;
  }
  primal_path_read(&run->s->path, run->x, run->dual, run->dual_eq);
  polish_law(run);
  use_slips(run);
  run->polishes = 1;
  return 1;
}

/* Shifts that a way begins at: of this one, or of the next where the path leads nowhere. Returns
 * which. */
static int begin_way(shifted_run *run, int index) {
  shifted *s = run->s;
  run->polishes = 0;
  const int knows = is_large(run) || shifted_fits_path(s);
  const int on_path = run->ways[index].from == FROM_PATH && knows && start_on_path(run);
  index += run->ways[index].from == FROM_PATH && !on_path;
  run->way = run->ways + index;
  run->way_ends = run->programs + run->way->programs;
  run->newton_below = newton_is_rare(run->way) ? AGAIN * run->best : HUGE_VAL;
  forget(run);
  for (int i = 0; i < s->block_count && !on_path; ++i) {
    s->next[i] = run->way->from == FROM_OPEN ? OPEN * run->program->length : 0.0;
  }
  if (!on_path) {
    use_shifts(run, run->way->from == FROM_BEST ? s->best_shift : s->next);
  }
  return index;
}

/* The next shifts on the way. */
static void go_on(shifted_run *run, int falls) {
  if (falls) {
    run->halved = 0;
    run->stretch = run->way->by == BY_DOUBLING ? run->stretch : 1.0;
  } else if (run->way->by == BY_HALVED_NEWTON && !run->at_best && run->halved++ < HALVINGS) {
    run->noted = 0;
    step_back(run);
    return;
  }
  run->polishes &= run->error <= SETTLED * run->last;
  choose_next(run);
  if (run->way->by != BY_SLIPS) {
    note_change(run, -1.0);
  }
  use_shifts(run, run->s->next);
}

/* What comes of a program that was not solved. */
typedef enum failure { GIVES_UP, WITHOUT_GUESS, BACK_AT_BEST, NO_FAILURE } failure;

/* Nothing was solved so far: once more without the guess, if there was one. */
static failure fail_at_first(shifted_run *run, const shifted_options *law, qd_status status) {
  use_no_shifts(run); /* as if nothing had been tried */
  return status == QD_OUT_OF_CAPACITY || !law->guessed || run->programs > 1 ? GIVES_UP
                                                                            : WITHOUT_GUESS;
}

/* Counts the failures of a way: a few lead back to its best shifts. */
static failure look_at(shifted_run *run, const shifted_options *law, qd_status status,
                       int *failures) {
  if (status == QD_OUT_OF_CAPACITY || (status != QD_OK && run->best == HUGE_VAL)) {
    return fail_at_first(run, law, status);
  }
  if (status != QD_OK && ++*failures <= SHIFT_PATIENCE) {
    step_back(run);
    forget(run);
    return BACK_AT_BEST;
  }
  return NO_FAILURE;
}

/* A program without a point may have one under Coulomb's law, which wants no room of what slides:
 * at the end of the law's own path. Returns the way from there, or -1. */
static int open_up(shifted_run *run) {
  int way = 0;
  while (run->ways[way].from != FROM_PATH) {
    ++way;
  }
  run->opened = 1;
  run->path_factors = OPEN_FACTORS;
  if (!shifted_fits_path(run->s) || begin_way(run, way) != way) {
    use_no_shifts(run);
    return -1;
  }
  run->way_count = way + 1;
  return way;
}

/* That leads nowhere: the proof that the program without shifts has no point is found again. */
static qd_status close_again(shifted_run *run) {
  use_no_shifts(run);
  run->cold = 1;
  run->polishes = 0;
  const qd_status status = solve_program(run);
  return status == QD_OK ? QD_LAW_NOT_MET : status;
}

static qd_status find_shifts(shifted_run *run, const shifted_options *law) {
  run->way_ends = run->way->programs;
  for (int failures = 0, way = 0;;) {
    const qd_status status = solve_program(run);
    const failure now = look_at(run, law, status, &failures);
    run->cold = now == WITHOUT_GUESS;
    if (now == GIVES_UP) {
      way = status == QD_INFEASIBLE && !run->opened ? open_up(run) : -1;
      if (way < 0) {
        return status;
      }
      continue;
    }
    if (now != NO_FAILURE) {
      continue;
    }
    if (run->noted && status == QD_OK) {
      note_change(run, 1.0);
    }
    const int falls = status == QD_OK && judge(run), ends = way_is_over(run, status);
    if ((status == QD_OK && is_enough(run, law)) || (ends && way + 1 == run->way_count)) {
      return QD_OK;
    }
    if (ends) {
      failures = 0;
      way = begin_way(run, way + 1);
      if (law->hurried && is_large(run) && !run->polishes) {
        return QD_LAW_NOT_MET;
      }
    } else {
      go_on(run, falls);
    }
  }
}

/* The best solution, and what is known of it. Derivatives want its program solved last: from where
 * the way has ended, or from nothing. */
static qd_status settle(shifted_run *run, const shifted_options *law) {
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
    run->error = shifted_read(run->s, run->slack, run->dual, run->program->length);
    run->regular = run->regular < 0 ? 0 : run->regular;
  }
  if (run->s->coupled_count == 0) {
    run->regular = 1;
  } else if (run->regular < 0) {
    step_newton(run);
  }
  return run->error <= law->tolerance || law->stop_after > 0 ? QD_OK : QD_LAW_NOT_MET;
}

qd_status shifted_solve(shifted *s, qd_cone_workspace *workspace, const qd_cone_options *options,
                        const shifted_options *law, const conic_program *program, double *g,
                        double *x, double *slack, double *dual, double *dual_eq, qd_cone_info *info,
                        shifted_report *report) {
  shifted_run run = {.s = s,
                     .workspace = workspace,
                     .options = options,
                     .program = program,
                     .g = g,
                     .x = x,
                     .slack = slack,
                     .dual = dual,
                     .dual_eq = dual_eq,
                     .info = info,
                     .tolerance = law->tolerance,
                     .path_factors = PATH_FACTORS,
                     .path_starts = PRIMAL_STARTS,
                     .error = HUGE_VAL,
                     .best = HUGE_VAL,
                     .newton_below = HUGE_VAL,
                     .stretch = 1.0,
                     .regular = -1};
  const int large = is_large(&run);
  run.ways = run.way = large ? LARGE_WAYS : WAYS;
  run.way_count = large ? COUNT_OF(LARGE_WAYS) : COUNT_OF(WAYS);
  if (law->stop_after > 0 && law->stop_after < PATH_FACTORS / PROGRAM_FACTORS) {
    run.path_factors = PROGRAM_FACTORS * law->stop_after;
  }
  if (law->hurried && large) {
    run.path_starts = 1;
    run.path_factors = run.path_factors < HURRIED_FACTORS ? run.path_factors : HURRIED_FACTORS;
  }
  shifted_begin(s, g);
  shifted_tell_pairs(s, program->program.row_count);
  s->path.dual = dual;
  s->path.dual_eq = dual_eq;
  if (law->guessed) {
    start_guessed(&run);
  }
  qd_status status = find_shifts(&run, law);
  if (status == QD_OK) {
    status = settle(&run, law);
  }
  if (run.opened && (status == QD_OK || status == QD_LAW_NOT_MET) &&
      !(run.error <= law->tolerance)) { /* the best of some programs is none */
    status = close_again(&run);
  }
  *report = (shifted_report){run.programs, run.error, run.regular > 0, run.mixed, run.stale};
  info->iterations = run.iterations;
  info->factorizations = run.factorizations;
  info->tries = run.tries;
  return info->status = status;
}
