/* Coulomb's law on multipliers: the methods, their order, and the certificate of the answer. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/lanes.h"
#include "base/rounding.h"
#include "numerics/conic/conic.h"
#include "numerics/coulomb/load.h"
#include "numerics/coulomb/work.h"

/* Error at which the path stops for Newton's method on the active set. Stopping at 1e-5 and again
 * at 1e-8: 0.5 % more factors. */
#define STOP 1e-5
/* Starts of the path (coulomb_run.reach), tried in turn: after a path turns back from one start,
 * the next one usually converges. */
static const double STARTS[] = {10.0, 100.0, 1.0};
#define START_COUNT ((int)(sizeof STARTS / sizeof *STARTS))
/* Friction coefficients are first limited to MOST_WEIGHT, then to MORE_WEIGHT times that. With 1e9
 * at once, rounding leaves penetrations above the tolerance. */
#define MOST_WEIGHT 1e6
#define MORE_WEIGHT 1e3
/* Share of the tolerance that methods aim at, since the conversion to the caller's units rounds
 * once more. */
#define SPARE 0.9

qd_coulomb_options qd_coulomb_options_default(void) {
  const qd_coulomb_options options = {.tolerance = 1e-9, .iteration_limit = 150};
  return options;
}

const char *qd_coulomb_method_name(qd_coulomb_method method) {
  static const char *const names[] = {"none", "free", "path", "newton", "proximal"};
  return method >= QD_COULOMB_NONE && method <= QD_COULOMB_PROXIMAL ? names[method] : "unknown";
}

/* ------------------------------------------------------------ memory */

static void lay_out(void *of, arena *a) {
  qd_coulomb_workspace *work = of;
  const coulomb_size *size = &work->capacity;
  const size_t tiles = (size_t)size->tiles, contacts = (size_t)size->contacts;
  const size_t entries = (size_t)size->entries;
  work->contact = arena_take(a, contacts * sizeof *work->contact);
  work->cone = arena_take(a, ((size_t)size->cones + 1) * sizeof *work->cone);
  work->contact_of = arena_ints(a, tiles);
  work->place_of = arena_ints(a, (size_t)size->rows);
  work->W.row_start = arena_ints(a, tiles + 1);
  work->W.column = arena_ints(a, entries);
  work->W.value = arena_doubles(a, 16 * entries);
  block_lu_lay_out(&work->lu, tiles, (size_t)size->fill, a);
  ARENA_DOUBLES(a, 4 * tiles, &work->q, &work->weight, &work->force, &work->w, &work->step,
                &work->rhs, &work->residual, &work->correction, &work->best_force,
                &work->path_force);
  ARENA_DOUBLES(a, contacts * CONE_ROWS * CONE_ROWS, &work->block, &work->factor);
  work->row_tiles = arena_doubles(a, 16 * tiles);
}

static qd_coulomb_workspace *create(const coulomb_size *size) {
  qd_coulomb_workspace first = {.capacity = *size};
  size_t bytes;
  qd_coulomb_workspace *work = block_create(&first, sizeof first, lay_out, &bytes);
  if (work) {
    work->bytes = bytes;
  }
  return work;
}

qd_coulomb_workspace *qd_coulomb_workspace_create(const qd_coulomb_problem *problem) {
  coulomb_size size = {0};
  int row, other;
  if (!coulomb_measure(problem, &size)) {
    return NULL;
  }
  size.fill = 2 * size.entries;
  qd_coulomb_workspace *work = create(&size);
  if (work && coulomb_load(work, problem, &row, &other) == QD_OUT_OF_CAPACITY) {
    size.fill = work->lu.fill;
    block_free(work);
    work = create(&size);
  }
  return work;
}

void qd_coulomb_workspace_destroy(qd_coulomb_workspace *workspace) { block_free(workspace); }

size_t qd_coulomb_workspace_bytes(const qd_coulomb_workspace *workspace) {
  return workspace ? workspace->bytes : 0;
}

/* ------------------------------------------------------------ methods */

/* Tests the solution without forces. */
static int stays_free(qd_coulomb_workspace *work) {
  memset(work->force, 0, 4 * (size_t)work->tile_count * sizeof(double));
  coulomb_find_w(work, work->force, work->w);
  coulomb_keep_best(work, coulomb_error(work, work->force, work->w));
  return work->best_error == 0.0;
}

/* Path from one start, and Newton's method where it stops; 1 if that solves the problem. */
static int solve_from(qd_coulomb_workspace *work, const qd_coulomb_options *options,
                      coulomb_run *run, qd_coulomb_info *info) {
  int regular = 0;
  run->resumes = 0;
  for (int k = 0; k < 2 && !work->stopped; ++k, run->resumes = 1) {
    const int before = run->iterations;
    const double so_far = work->best_error;
    run->goal = k == 0 ? larger(STOP, options->tolerance) : options->tolerance;
    coulomb_follow_path(work, run);
    const double reached = work->best_error;
    if (k > 0 && run->iterations == before) {
      break;
    }
    coulomb_polish(work, run, &regular);
    if (work->best_error < so_far) {
      info->method = work->best_error < reached ? QD_COULOMB_NEWTON : QD_COULOMB_PATH;
    }
    if (work->best_error <= options->tolerance) {
      info->unique = regular;
      return 1;
    }
  }
  return 0;
}

static void solve(qd_coulomb_workspace *work, const qd_coulomb_options *options,
                  qd_coulomb_info *info) {
  coulomb_run run = {.reach = STARTS[0]};
  info->method = QD_COULOMB_FREE;
  info->unique = 1;
  if (stays_free(work)) {
    return;
  }
  info->unique = 0;
  if (options->stop_after > 0) {
    run.iteration_limit = options->stop_after;
    coulomb_follow_path(work, &run);
    info->method = QD_COULOMB_PATH;
  }
  for (int k = 0; k < START_COUNT && options->stop_after == 0 && !work->stopped; ++k) {
    run.reach = STARTS[k];
    run.iteration_limit = run.iterations + options->iteration_limit;
    if (solve_from(work, options, &run, info)) {
      break;
    }
  }
  if (work->best_error > options->tolerance && options->stop_after == 0 &&
      options->iteration_limit >= MEANT_ITERATIONS) {
    run.goal = options->tolerance;
    coulomb_flow(work, &run, &info->unique);
    info->method = QD_COULOMB_PROXIMAL;
  }
  info->iterations = run.iterations;
  info->factorizations = run.factorizations;
}

/* ------------------------------------------------------------ results */

/* Writes forces, scaled by the two powers (work.h); omitted rows have none. */
static void take_forces(const qd_coulomb_workspace *work, double *force) {
  for (int i = 0; i < work->row_count; ++i) {
    const int at = work->place_of[i];
    force[i] = at < 0 ? 0.0 : work->weight[at] * work->best_force[at];
  }
}

static void find_speeds(const qd_coulomb_workspace *work, const qd_coulomb_problem *problem,
                        const double *force, double *w) {
  const double per = ldexp(1.0, -work->matrix_power), per_speed = ldexp(1.0, -work->speed_power);
  for (int i = 0; i < work->row_count; ++i) {
    w[i] = per_speed * problem->q[i];
    for (int e = problem->row_start[i]; e < problem->row_start[i + 1]; ++e) {
      w[i] += per * problem->value[e] * force[problem->column[e]];
    }
  }
}

/* Rows of the caller that belong to one cone and have friction. */
typedef struct tail_rows {
  int count, normal;
  int row[CONE_ROWS];
  double weight[CONE_ROWS], force[CONE_ROWS], w[CONE_ROWS]; /* D, D^-1 force, w */
  double most;                                              /* largest entry of D */
} tail_rows;

/* The first (0) or second cone of a block; it may be empty. */
static tail_rows find_tail(const qd_coulomb_problem *problem, int block, int row, int second,
                           const double *force, const double *w) {
  const int split = problem->block_kind[block] == QD_BLOCK_SPLIT;
  tail_rows tail = {.normal = row};
  for (int k = 1; k < problem->block_dim[block]; ++k) {
    const double weight = problem->weight[row + k];
    if (second != (split && k > 2) || !(weight > 0.0)) {
      continue;
    }
    tail.row[tail.count] = row + k;
    tail.weight[tail.count] = weight;
    tail.force[tail.count] = force[row + k] / weight;
    tail.w[tail.count++] = w[row + k];
    tail.most = larger(weight, tail.most);
  }
  return tail;
}

/* |D w| of a cone over its largest coefficient. */
static double slip_of(const tail_rows *tail) {
  double sum = 0.0;
  for (int k = 0; k < tail->count; ++k) {
    const double one = tail->weight[k] / tail->most * tail->w[k];
    sum += one * one;
  }
  return sqrt(sum);
}

/* Adds friction against sliding for coefficients that were omitted as rounding; 1 if there is
 * any. */
static int add_least_friction(const qd_coulomb_problem *problem, double *force, const double *w) {
  int added = 0;
  for (int i = 0, row = 0; i < problem->block_count; row += problem->block_dim[i++]) {
    for (int c = 0; c < 2 && problem->block_kind[i] != QD_BLOCK_FREE; ++c) {
      const tail_rows tail = find_tail(problem, i, row, c, force, w);
      const double slip = slip_of(&tail);
      for (int k = 0; k < tail.count && tail.most <= NEGLIGIBLE && slip > 0.0; ++k) {
        const double along = tail.weight[k] / tail.most * tail.w[k] / slip;
        force[tail.row[k]] = -tail.weight[k] * force[row] * along;
        added = 1;
      }
    }
  }
  return added;
}

static void note(double *worst, double value) {
  *worst = value <= *worst ? *worst : value; /* NaN counts */
}

/* Unit of force of the certificate: the largest force over its coefficient. */
static double largest_force(const qd_coulomb_problem *problem, const double *force) {
  double most = 0.0;
  for (int i = 0, row = 0; i < problem->block_count; row += problem->block_dim[i++]) {
    const int is_free = problem->block_kind[i] == QD_BLOCK_FREE;
    for (int k = 0; k < problem->block_dim[i]; ++k) {
      const double weight = k == 0 || is_free ? 1.0 : problem->weight[row + k];
      note(&most, weight > 0.0 ? fabs(force[row + k]) / weight : 0.0);
    }
  }
  return most > 0.0 ? most : 1.0;
}

static void certify_tail(tail_rows *tail, double normal, double per_force, double per_speed,
                         qd_coulomb_info *info) {
  double pull = 0.0, product = 0.0;
  const double slip = slip_of(tail);
  for (int k = 0; k < tail->count; ++k) {
    pull += tail->force[k] * tail->force[k];
    product += tail->weight[k] / tail->most * tail->force[k] * tail->w[k];
  }
  note(&info->cone, sqrt(pull) - normal);
  note(&info->slip_power, tail->most * fabs(product + normal * slip));
  for (int k = 0; k < tail->count; ++k) {
    tail->force[k] *= per_force;
    tail->w[k] *= per_speed;
  }
  note(&info->error, coulomb_tail_error(tail->force, tail->w, tail->weight, tail->count,
                                        larger(per_force * normal, 0.0)));
}

/* Error and certificate of the scaled results. */
static void certify(const qd_coulomb_workspace *work, const qd_coulomb_problem *problem,
                    const double *force, const double *w, qd_coulomb_info *info) {
  const double per_force = 1.0 / largest_force(problem, force), per_speed = 1.0 / work->speed_unit;
  info->error = info->penetration = info->cone = info->normal_power = 0.0;
  info->slip_power = info->free = 0.0;
  for (int i = 0, row = 0; i < problem->block_count; row += problem->block_dim[i++]) {
    if (problem->block_kind[i] == QD_BLOCK_FREE) {
      note(&info->free, max_norm_or_infinity(w + row, problem->block_dim[i]));
      note(&info->error, per_speed * info->free);
      continue;
    }
    note(&info->error, fabs(smaller(per_force * force[row], per_speed * w[row])));
    note(&info->penetration, -w[row]);
    note(&info->cone, -force[row]);
    note(&info->normal_power, fabs(force[row] * w[row]));
    for (int c = 0; c < 2; ++c) {
      tail_rows tail = find_tail(problem, i, row, c, force, w);
      if (tail.count > 0) {
        certify_tail(&tail, force[row], per_force, per_speed, info);
      }
    }
  }
}

/* Converts from scaled units to the caller's; 0 if numbers overflow or the largest force
 * underflows. */
static int scale_back(const qd_coulomb_workspace *work, double *force, double *w,
                      qd_coulomb_info *info) {
  const int speed = work->speed_power, power = speed - work->matrix_power;
  const int rows = work->row_count;
  const double most = max_norm(force, rows);
  for (int i = 0; i < rows; ++i) {
    force[i] = ldexp(force[i], power);
    w[i] = ldexp(w[i], speed);
  }
  info->penetration = ldexp(info->penetration, speed);
  info->cone = ldexp(info->cone, power);
  info->normal_power = ldexp(info->normal_power, power + speed);
  info->slip_power = ldexp(info->slip_power, power + speed);
  info->free = ldexp(info->free, speed);
  return all_finite(force, rows) && all_finite(w, rows) &&
         (most == 0.0 || ldexp(most, power) >= DBL_MIN);
}

static void clear(const qd_coulomb_problem *problem, double *force, double *w,
                  qd_coulomb_info *info) {
  size_t rows = 0;
  for (int i = 0; i < problem->block_count; ++i) {
    rows += (size_t)problem->block_dim[i];
  }
  memset(force, 0, rows * sizeof(double));
  memset(w, 0, rows * sizeof(double));
  memset(info, 0, sizeof *info);
  info->error = HUGE_VAL;
  info->row = info->other = -1;
}

/* Solves with coefficients limited to `most`; the certificate uses the caller's coefficients. */
static qd_status solve_up_to(qd_coulomb_workspace *work, const qd_coulomb_options *options,
                             const qd_coulomb_problem *problem, double most, double *force,
                             double *w, qd_coulomb_info *info) {
  qd_coulomb_options within = *options;
  within.tolerance *= SPARE;
  work->most_weight = most;
  const qd_status status = coulomb_load(work, problem, &info->row, &info->other);
  if (status != QD_OK) {
    return status;
  }
  work->best_error = HUGE_VAL;
  memset(work->best_force, 0, 4 * (size_t)work->tile_count * sizeof(double));
  solve(work, &within, info);
  take_forces(work, force);
  find_speeds(work, problem, force, w);
  if (add_least_friction(problem, force, w)) {
    find_speeds(work, problem, force, w);
  }
  certify(work, problem, force, w, info);
  return work->stopped ? QD_STOPPED : QD_OK;
}

static double largest_weight(const qd_coulomb_problem *problem) {
  double most = 0.0;
  for (int i = 0, row = 0; i < problem->block_count; row += problem->block_dim[i++]) {
    for (int k = 1; k < problem->block_dim[i] && problem->block_kind[i] != QD_BLOCK_FREE; ++k) {
      most = larger(problem->weight[row + k], most);
    }
  }
  return most;
}

/* Tries limited friction coefficients first. A contact that sticks at a smaller coefficient also
 * sticks at a larger one, and large coefficients lose forces in rounding. */
static qd_status solve_in_steps(qd_coulomb_workspace *work, const qd_coulomb_options *options,
                                const qd_coulomb_problem *problem, double *force, double *w,
                                qd_coulomb_info *info) {
  const double most = largest_weight(problem);
  int iterations = 0, factorizations = 0;
  for (double weight = MOST_WEIGHT;; weight *= MORE_WEIGHT) {
    info->iterations = info->factorizations = 0;
    const qd_status status = solve_up_to(work, options, problem, weight, force, w, info);
    iterations += info->iterations;
    factorizations += info->factorizations;
    if (status != QD_OK || info->error <= options->tolerance || options->stop_after > 0 ||
        most <= weight || weight >= MOST_WEIGHT * MORE_WEIGHT) {
      info->iterations = iterations;
      info->factorizations = factorizations;
      return status;
    }
  }
}

qd_status qd_coulomb_solve(qd_coulomb_workspace *workspace, const qd_coulomb_options *options,
                           const qd_coulomb_problem *problem, double *force, double *w,
                           qd_coulomb_info *info) {
  const qd_coulomb_options chosen = options ? *options : qd_coulomb_options_default();
  clear(problem, force, w, info);
  if (!(chosen.tolerance > 0.0) || chosen.iteration_limit < 1 || chosen.stop_after < 0) {
    return info->status = QD_BAD_ARGUMENT;
  }
  workspace->stop = chosen.stop;
  workspace->stop_context = chosen.stop_context;
  workspace->stopped = 0;
  info->status = solve_in_steps(workspace, &chosen, problem, force, w, info);
  if (info->status != QD_OK && info->status != QD_STOPPED) {
    return info->status;
  }
  if (!scale_back(workspace, force, w, info)) {
    clear(problem, force, w, info);
    return info->status = QD_NOT_FINITE;
  }
  if (info->status == QD_STOPPED || info->error <= chosen.tolerance || chosen.stop_after > 0) {
    return info->status;
  }
  return info->status =
             info->iterations >= chosen.iteration_limit ? QD_ITERATION_LIMIT : QD_NUMERICAL_TROUBLE;
}
