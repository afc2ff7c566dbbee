/* Coulomb's law on multipliers: what is tried, in which order, and the certificate that counts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/block.h"
#include "base/lanes.h"
#include "numerics/coulomb/load.h"
#include "numerics/coulomb/work.h"

/* Errors at which the path stops for Newton on the active set that it shows. */
static const double STOPS[] = {1e-5, 1e-8};
#define STOP_COUNT 2
/* Starts of the path (coulomb_run.reach) that are tried in turn: where it turns back from one, it
 * arrives from the next more often than not. */
static const double STARTS[] = {10.0, 100.0, 1.0};
#define START_COUNT 3
#define FLOW_FROM 50 /* a smaller iteration limit is one that the caller means */

qd_coulomb_options qd_coulomb_options_default(void) {
  const qd_coulomb_options options = {.tolerance = 1e-9, .iteration_limit = 150};
  return options;
}

const char *qd_coulomb_method_name(qd_coulomb_method method) {
  static const char *const names[] = {"none", "free", "path", "newton", "proximal"};
  return method >= QD_COULOMB_NONE && method <= QD_COULOMB_PROXIMAL ? names[method] : "unknown";
}

/* ------------------------------------------------------------ memory */

static void lay_out(qd_coulomb_workspace *work, arena *a) {
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
  double **vectors[] = {&work->q,          &work->weight,    &work->force,    &work->w,
                        &work->step,       &work->rhs,       &work->residual, &work->correction,
                        &work->best_force, &work->path_force};
  for (size_t k = 0; k < sizeof vectors / sizeof *vectors; ++k) {
    *vectors[k] = arena_doubles(a, 4 * tiles);
  }
  work->block = arena_doubles(a, contacts * CONE_ROWS * CONE_ROWS);
  work->factor = arena_doubles(a, contacts * CONE_ROWS * CONE_ROWS);
  work->row_tiles = arena_doubles(a, 16 * tiles);
}

static qd_coulomb_workspace *create(const coulomb_size *size) {
  qd_coulomb_workspace count = {.capacity = *size};
  arena counting = {NULL, 0};
  arena_take(&counting, sizeof count);
  lay_out(&count, &counting);
  void *memory = block_allocate(counting.offset);
  if (!memory) {
    return NULL;
  }
  arena laying = {memory, 0};
  qd_coulomb_workspace *work = arena_take(&laying, sizeof *work);
#ifndef NDEBUG
  memset(memory, 0xff, counting.offset); /* what is read before it is written shows */
#endif
  memset(work, 0, sizeof *work);
  work->capacity = *size;
  work->bytes = counting.offset;
  lay_out(work, &laying);
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

/* No force at all. */
static int stays_free(qd_coulomb_workspace *work) {
  memset(work->force, 0, 4 * (size_t)work->tile_count * sizeof(double));
  coulomb_find_w(work, work->force, work->w);
  coulomb_keep_best(work, coulomb_error(work, work->force, work->w));
  return work->best_error == 0.0;
}

/* Path from one start, Newton where it stops; 1 if that solves it. */
static int solve_from(qd_coulomb_workspace *work, const qd_coulomb_options *options,
                      coulomb_run *run, qd_coulomb_info *info) {
  int regular = 0;
  run->resumes = 0;
  for (int k = 0; k <= STOP_COUNT; ++k, run->resumes = 1) {
    const int before = run->iterations;
    const double so_far = work->best_error;
    run->goal = k < STOP_COUNT ? larger(STOPS[k], options->tolerance) : options->tolerance;
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
  for (int k = 0; k < START_COUNT && options->stop_after == 0; ++k) {
    run.reach = STARTS[k];
    run.iteration_limit = run.iterations + options->iteration_limit;
    if (solve_from(work, options, &run, info)) {
      break;
    }
  }
  if (work->best_error > options->tolerance && options->stop_after == 0 &&
      options->iteration_limit >= FLOW_FROM) {
    run.goal = options->tolerance;
    coulomb_flow(work, &run, &info->unique);
    info->method = QD_COULOMB_PROXIMAL;
  }
  info->iterations = run.iterations;
  info->factorizations = run.factorizations;
}

/* ------------------------------------------------------------ the way out */

/* Forces and speeds in the caller's numbers, rows of weight zero included. */
static void hand_out(const qd_coulomb_workspace *work, const qd_coulomb_problem *problem,
                     double *force, double *w) {
  for (int i = 0; i < work->row_count; ++i) {
    const int at = work->place_of[i];
    force[i] = at < 0 ? 0.0 : work->weight[at] * work->best_force[at];
  }
  for (int i = 0; i < work->row_count; ++i) {
    w[i] = problem->q[i];
    for (int e = problem->row_start[i]; e < problem->row_start[i + 1]; ++e) {
      w[i] += problem->value[e] * force[problem->column[e]];
    }
  }
}

static void note(double *worst, double value) {
  *worst = value <= *worst ? *worst : value; /* NaN counts */
}

static void certify_cone(const qd_coulomb_workspace *work, const coulomb_cone *cone, double normal,
                         const double *force, const double *w, double *inside, double *power,
                         const int *row_at) {
  double pull = 0.0, slip = 0.0, product = 0.0;
  (void)work;
  for (int k = 0; k < cone->tails; ++k) {
    const int row = row_at[k];
    const double weight = work->weight[cone->tail + k];
    pull += force[row] / weight * (force[row] / weight);
    slip += weight * w[row] * (weight * w[row]);
    product += force[row] * w[row];
  }
  note(inside, sqrt(pull) - normal);
  note(power, fabs(product + normal * sqrt(slip)));
}

/* The certificate, from the numbers that are handed out. */
static void certify(const qd_coulomb_workspace *work, const qd_coulomb_problem *problem,
                    const double *force, const double *w, qd_coulomb_info *info) {
  for (int i = 0; i < work->contact_count; ++i) {
    const coulomb_contact *contact = work->contact + i;
    const int row = contact->row, dim = problem->block_dim[i];
    int rows[CONE_ROWS] = {0};
    if (contact->cones == 0) {
      note(&info->free, max_norm_or_infinity(w + row, dim));
      continue;
    }
    for (int k = 0; k < dim; ++k) {
      if (work->place_of[row + k] >= 0) {
        rows[work->place_of[row + k] - contact->at] = row + k;
      }
    }
    note(&info->penetration, -w[row]);
    note(&info->cone, -force[row]);
    note(&info->normal_power, fabs(force[row] * w[row]));
    for (int k = 0; k < contact->cones; ++k) {
      const coulomb_cone *cone = work->cone + contact->cone + k;
      certify_cone(work, cone, force[row], force, w, &info->cone, &info->slip_power,
                   rows + (cone->tail - contact->at));
    }
  }
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

qd_status qd_coulomb_solve(qd_coulomb_workspace *workspace, const qd_coulomb_options *options,
                           const qd_coulomb_problem *problem, double *force, double *w,
                           qd_coulomb_info *info) {
  const qd_coulomb_options chosen = options ? *options : qd_coulomb_options_default();
  clear(problem, force, w, info);
  if (!(chosen.tolerance > 0.0) || chosen.iteration_limit < 1 || chosen.stop_after < 0) {
    return info->status = QD_BAD_ARGUMENT;
  }
  info->status = coulomb_load(workspace, problem, &info->row, &info->other);
  if (info->status != QD_OK) {
    return info->status;
  }
  const double speed = max_norm(workspace->q, 4 * workspace->tile_count);
  workspace->speed_unit = speed > 0.0 ? speed : 1.0;
  workspace->best_error = HUGE_VAL;
  solve(workspace, &chosen, info);
  hand_out(workspace, problem, force, w);
  certify(workspace, problem, force, w, info);
  info->error = workspace->best_error;
  if (info->error <= chosen.tolerance || chosen.stop_after > 0) {
    return info->status = QD_OK;
  }
  return info->status =
             info->iterations >= chosen.iteration_limit ? QD_ITERATION_LIMIT : QD_NUMERICAL_TROUBLE;
}
