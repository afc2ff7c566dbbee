/* Cone programs: the public entry, reading as a table of contents. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/lanes.h"
#include "numerics/conic/delassus.h"
#include "numerics/conic/workspace.h"
#include "numerics/tiles/dense_tiles.h"

/* The path stops for a polish where held and free directions are so many powers of two apart, and
 * again where they are that much farther. A guess counts only with its certificate, so an early
 * failure costs a few factorisations and no accuracy. */
#define FIRST_WIDTH 10
#define NEXT_WIDTH 8

/* What the guess of rest may leave of the rows, beside the largest numbers in them. */
#define REST_HOLDS 1e-10
/* What that of a start may leave besides, of the way to the minimiser of the cost: at rest nothing
 * else has a size. */
#define START_ROUNDING 1e-14

/* Tolerance up to which a guess counts that the polish does not bring to rounding. */
#define LOOSEST 1e-9

/* Tiles that near_rows have room for: more go along the path. */
#define NEAR_TILES 512

/* A polish that comes so close (relative) has the point: what it misses is how redundant rows share
 * the load, and cuts find a vertex from which to spread it. Had it diverged, cuts would go on for
 * longer than the path takes. */
#define CLOSE 1e-6

/* A smaller iteration limit is one that the caller means. */
#define RETRY_FROM 50

/* Dense programs of more variables go into tiles of their own. Smaller ones, as they are: a stack
 * of ten boxes (69) takes a fifth longer otherwise. */
#define FEW_COLUMNS 128

/* Variables up to which equalities are taken out first; beyond, only of programs that are not
 * solved with them: their rows have few entries as a rule, and would have all. */
#define SPACE_LIMIT 64

qd_cone_options qd_cone_options_default(void) {
  const qd_cone_options options = {.tolerance = 1e-9, .iteration_limit = 100, .polish = 1};
  return options;
}

/* ------------------------------------------------------------ workspace */

static void lay_out_operator(arena *a, cone_operator *operator, size_t slots, size_t lanes_count) {
  operator->u = arena_doubles(a, slots);
  operator->diagonal = arena_doubles(a, lanes_count);
  operator->cross = arena_doubles(a, lanes_count);
  operator->tangent = arena_doubles(a, lanes_count);
}

/* Rows, with every group's padding: three lanes at most in linear rows, equalities and cones of
 * each dimension; or every cone alone in its group. */
static size_t slot_bound(const conic_size *size) {
  const size_t rows = (size_t)size->rows + (size_t)size->equalities;
  const size_t dim = (size_t)size->largest_cone, padding = 6 + 3 * (dim * (dim + 1) / 2);
  return (padding < 3 * rows ? rows + padding : 4 * rows) + 8;
}

static void lay_out(qd_cone_workspace *w, arena *a) {
  const conic_size *size = &w->capacity;
  const size_t tiles = ((size_t)size->variables + 3) / 4, columns = 4 * tiles;
  const size_t words = (tiles + 63) / 64;
  const size_t rows = (size_t)size->rows + (size_t)size->equalities;
  const size_t dims = (size_t)size->largest_cone + 2;
  const size_t slots = slot_bound(size), lanes_count = slots;
  tile_system *system = &w->system;
  cone_product *product = &w->product;
  system->blocks = arena_take(a, (rows + 1) * sizeof(row_block));
  system->block_tiles = arena_ints(a, size->row_tiles + tiles + 1);
  w->block_from = arena_ints(a, size->row_tiles + tiles + 1);
  system->column_start = arena_ints(a, tiles + 1);
  system->column_tiles = arena_ints(a, size->fill);
  system->Q_start = arena_ints(a, tiles + 1);
  system->Q_tiles = arena_ints(a, size->fill);
  system->place = arena_ints(a, tiles * tiles);
  system->G = arena_doubles(a, 4 * size->row_tiles + 4);
  system->S = arena_doubles(a, 4 * size->row_tiles + 4);
  system->dense_room = dense_tiles_scratch(columns, rows, size->fill);
  system->dense = system->dense_room > 0 ? arena_doubles(a, system->dense_room) : NULL;
  system->Q = arena_doubles(a, 16 * size->fill);
  system->H = arena_doubles(a, 16 * size->fill);
  system->inverse = arena_doubles(a, 32 * tiles);
  product->groups = arena_take(a, (dims + 1) * sizeof(cone_group));
  product->weight = arena_doubles(a, lanes_count);
  product->target = arena_doubles(a, lanes_count);
  for (int k = 0; k < 6; ++k) product->scratch[k] = arena_doubles(a, lanes_count);
  lay_out_operator(a, &product->scaling, slots, lanes_count);
  product->inverse.u = product->scaling.u;
  product->inverse.diagonal = arena_doubles(a, lanes_count);
  product->inverse.cross = arena_doubles(a, lanes_count);
  product->inverse.tangent = arena_doubles(a, lanes_count);
  product->point = arena_doubles(a, slots);
  product->point_norm = arena_doubles(a, lanes_count);
  lay_out_operator(a, &w->rows, slots, lanes_count);
  lay_out_operator(a, &w->stiffness, 0, lanes_count);
  lay_out_operator(a, &w->hard, 0, lanes_count);
  w->stiffness.u = w->hard.u = w->rows.u;
  w->column_of = arena_ints(a, columns);
  w->column_scale = arena_doubles(a, columns);
  w->slot_of = arena_ints(a, rows + 1);
  w->cone_rows = arena_ints(a, rows + 1);
  w->row_scale = arena_doubles(a, rows + 1);
  w->lane_scale = arena_doubles(a, lanes_count);
  w->compliance = arena_doubles(a, lanes_count);
  double **over_columns[] = {&w->b,  &w->x,      &w->Qx,       &w->residual_x,
                             &w->dx, &w->work_x, &w->polish_x, &w->newton_x};
  for (size_t k = 0; k < sizeof over_columns / sizeof over_columns[0]; ++k)
    *over_columns[k] = arena_doubles(a, columns);
  double **over_rows[] = {&w->g,           &w->slack,        &w->dual,        &w->residual_row,
                          &w->aim,         &w->rhs,          &w->dslack,      &w->ddual,
                          &w->dslack_aim,  &w->ddual_aim,    &w->work_row,    &w->work_row2,
                          &w->path_slack,  &w->path_dual,    &w->polish_dual, &w->polish_slack,
                          &w->newton_dual, &w->newton_slack, &w->ray};
  for (size_t k = 0; k < sizeof over_rows / sizeof over_rows[0]; ++k)
    *over_rows[k] = arena_doubles(a, slots);
  w->state = arena_ints(a, lanes_count);
  active_set_lay_out(&w->active, columns, a);
  conic_delassus_lay_out(&w->delassus, slots, columns, a);
  const size_t near_tiles = size->row_tiles < NEAR_TILES ? size->row_tiles : NEAR_TILES;
  near_rows_lay_out(&w->near_rows, rows < NEAR_TILES ? rows : NEAR_TILES, near_tiles, a);
  near_rows_lay_out(&w->near_cones, rows < NEAR_TILES ? rows : NEAR_TILES, near_tiles, a);
  w->penalty = arena_doubles(a, lanes_count);
  w->split = arena_doubles(a, lanes_count);
  w->per_split = arena_doubles(a, lanes_count);
  w->stiff_blocks = arena_ints(a, rows + 1);
  w->stiff_cones = arena_take(a, (rows + 1) * sizeof(stiff_cone));
  w->stiff_slots = arena_ints(a, rows + 1);
  w->is_near = arena_ints(a, rows + 1);
  w->tail = arena_ints(a, rows + 1);
  w->block4 = arena_doubles(a, 4 * columns);
  w->x4 = arena_doubles(a, 4 * columns);
  w->rhs4 = arena_doubles(a, 4 * columns);
  w->row4 = arena_doubles(a, 4 * slots);
  w->work_row4 = arena_doubles(a, 4 * slots);
  w->moved4 = arena_doubles(a, 4 * slots);
  w->dual4 = arena_doubles(a, 4 * slots);
  w->row_mask = arena_take(a, (rows > columns ? rows : columns) * words * sizeof(uint64_t));
  w->tile_mask = arena_take(a, tiles * words * sizeof(uint64_t));
  w->Q_mask = arena_take(a, tiles * words * sizeof(uint64_t));
  w->scratch_mask = arena_take(a, 3 * words * sizeof(uint64_t));
  w->tile_degree = arena_ints(a, tiles);
  w->tile_position = arena_ints(a, tiles);
  w->tile_original = arena_ints(a, tiles);
  w->dim_count = arena_ints(a, dims);
  w->dim_group = arena_ints(a, dims);
  if (!size->is_dense) return;
  if (size->equalities > 0)
    equality_space_lay_out(&w->space, (size_t)size->variables, (size_t)size->rows,
                           (size_t)size->equalities, a);
  if (size->variables > FEW_COLUMNS)
    aligned_columns_lay_out(&w->aligned, (size_t)size->variables, (size_t)size->rows,
                            (size_t)size->equalities, a);
}

conic_size conic_size_dense(int variables, int rows, int equalities) {
  const conic_size size = {variables > 1 ? variables : 1,
                           rows > 0 ? rows : 0,
                           equalities > 0 ? equalities : 0,
                           rows > 0 ? rows : 0,
                           0,
                           0,
                           0};
  const size_t tiles = ((size_t)size.variables + 3) / 4;
  conic_size all = size;
  all.row_tiles = ((size_t)size.rows + (size_t)size.equalities) * tiles;
  all.fill = tiles * (tiles + 1) / 2;
  return all;
}

size_t conic_workspace_size(const conic_size *size) {
  qd_cone_workspace count = {.capacity = *size};
  arena counting = {NULL, 0};
  arena_take(&counting, sizeof count);
  lay_out(&count, &counting);
  return counting.offset;
}

qd_cone_workspace *conic_workspace_place(void *memory, const conic_size *size) {
  arena laying = {memory, 0};
  qd_cone_workspace *w = arena_take(&laying, sizeof *w);
#ifndef NDEBUG
  /* every double is NaN: what is read before it is written shows */
  memset(memory, 0xff, conic_workspace_size(size));
#endif
  memset(w, 0, sizeof *w);
  w->capacity = *size;
  lay_out(w, &laying);
  w->bytes = laying.offset;
  if (w->system.dense) dense_tiles_use_one_thread();
  return w;
}

int conic_workspace_serves(const qd_cone_workspace *workspace, const conic_size *size) {
  const conic_size *own = &workspace->capacity;
  return size->variables <= own->variables && size->rows <= own->rows &&
         size->equalities <= own->equalities && size->largest_cone <= own->largest_cone &&
         size->row_tiles <= own->row_tiles && size->fill <= own->fill;
}

size_t conic_workspace_fill(const qd_cone_workspace *workspace) { return workspace->wanted.fill; }

qd_cone_workspace *qd_cone_workspace_create(int variable_capacity, int row_capacity,
                                            int equality_capacity) {
  const int columns = variable_capacity > FEW_COLUMNS ? aligned_columns_capacity(variable_capacity)
                                                      : variable_capacity;
  conic_size size = conic_size_dense(columns, row_capacity, equality_capacity);
  size.is_dense = 1;
  void *block = aligned_alloc(ARENA_ALIGNMENT, conic_workspace_size(&size));
  return block ? conic_workspace_place(block, &size) : NULL;
}

void qd_cone_workspace_destroy(qd_cone_workspace *workspace) { free(workspace); }

size_t qd_cone_workspace_bytes(const qd_cone_workspace *workspace) {
  return workspace ? workspace->bytes : 0;
}

/* ------------------------------------------------------------ answers in the caller's units */

typedef struct answer {
  double *x, *slack, *dual, *dual_eq;
} answer;

static void hand_out(const qd_cone_workspace *workspace, const double *x, const double *slack,
                     const double *dual, const answer *out) {
  for (int k = 0; k < workspace->column_count; ++k)
    if (workspace->column_of[k] >= 0)
      out->x[workspace->column_of[k]] = workspace->column_scale[k] * x[k];
  for (int i = 0; i < workspace->row_count; ++i) {
    const int slot = workspace->slot_of[i];
    out->slack[i] = slot < 0 ? 0.0 : slack[slot] / workspace->row_scale[i];
    out->dual[i] = slot < 0 ? 0.0 : dual[slot] * workspace->row_scale[i];
  }
  for (int i = 0; i < workspace->equality_count; ++i) {
    const int at = workspace->row_count + i;
    out->dual_eq[i] = workspace->row_scale[at] * dual[workspace->slot_of[at]];
  }
}

static void clear_outputs(const qd_cone_program *program, double *x, double *slack, double *dual,
                          double *dual_eq) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  if (n > 0 && x) memset(x, 0, (size_t)n * sizeof(double));
  if (m > 0 && slack) memset(slack, 0, (size_t)m * sizeof(double));
  if (m > 0 && dual) memset(dual, 0, (size_t)m * sizeof(double));
  if (p > 0 && dual_eq) memset(dual_eq, 0, (size_t)p * sizeof(double));
}

/* Where the minimiser of the cost is far out (nearly linear programs), natural lengths certify too
 * much: 1 if the rows of an answer found from there hold beside the numbers they are sums of, or to
 * rounding of that far point. */
static int rest_holds(qd_cone_workspace *workspace, double tolerance, double rounding) {
  double *w = workspace->work_row2, offset = 0.0, stretch = 0.0; /* padded lanes stay zero */
  tiles_multiply(&workspace->system, workspace->system.G, workspace->polish_x, w);
  for (int row = 0; row < workspace->row_count; ++row) {
    const int slot = workspace->slot_of[row];
    if (slot < 0) continue;
    w[slot] += workspace->g[slot];
    offset = larger(offset, fabs(workspace->g[slot]));
  }
  for (int c = 0; c < workspace->lane_count; ++c)
    stretch = larger(stretch, workspace->compliance[c]);
  stretch = sqrt(stretch);
  const double moved = max_norm(workspace->polish_x, workspace->column_count);
  const double scale = tolerance * (offset + stretch * moved);
  return cones_violation(&workspace->product, w) <= scale + rounding * stretch * workspace->reach;
}

/* The polish's best as the iterate. */
static void keep_polish(qd_cone_workspace *workspace) {
  const size_t row_bytes = (size_t)workspace->slot_count * sizeof(double);
  memcpy(workspace->x, workspace->polish_x, (size_t)workspace->column_count * sizeof(double));
  memcpy(workspace->slack, workspace->polish_slack, row_bytes);
  memcpy(workspace->dual, workspace->polish_dual, row_bytes);
}

/* From a guess: 1 if that solves the program. `late`: others have failed. Otherwise all is as the
 * free minimum has left it. */
static int solve_from_start(qd_cone_workspace *workspace, const qd_cone_options *o,
                            const answer *guess, int strict, int late, qd_cone_info *info) {
  if (workspace->exact) {
    const int factored = info->factorizations;
    const double limit = late ? HUGE_VAL : conic_start_limit(workspace);
    workspace->start_limit = o->polish ? limit : -1.0;
    if (workspace->start_limit < 0.0) return 0;
    workspace->origin = ORIGIN_START;
    conic_read_start(workspace, guess->x, guess->dual, guess->dual_eq);
    workspace->start_tolerance = strict ? 0.0 : smaller(o->tolerance, LOOSEST);
    info->polished = conic_polish(workspace, info) && !(strict && conic_any_weak(workspace));
    if ((info->polished || workspace->polish_error <= workspace->start_tolerance) &&
        rest_holds(workspace, smaller(o->tolerance, LOOSEST), START_ROUNDING)) {
      keep_polish(workspace);
      return 1;
    }
    info->polished = 0;
    if (workspace->definite && info->factorizations > factored) conic_factor_cost(workspace);
    return 0;
  }
  const int limit = info->iterations + o->iteration_limit;
  conic_read_start(workspace, guess->x, guess->dual, guess->dual_eq);
  /* a path from the cold start needs nothing of what this overwrites */
  return conic_follow_path(workspace, o->tolerance, limit, PATH_WARM, info) == QD_OK;
}

/* The methods in turn, on the program as it was loaded; what they find stays in the workspace. */
static qd_status run_methods(qd_cone_workspace *workspace, const qd_cone_options *o,
                             const answer *guess, int strict, qd_cone_info *info) {
  const int polish = o->polish && workspace->exact;
  const int kept = workspace->exact ? (o->iteration_limit < 80 ? o->iteration_limit / 2 : 40) : 0;
  qd_status status = QD_OK;
  int polished = 0, done = conic_free_minimum(workspace, info);
  workspace->wanted_width = workspace->split_width = 0;
  if (!done && guess && solve_from_start(workspace, o, guess, strict, 0, info)) return QD_OK;
  workspace->origin = ORIGIN_FREE;
  const int first = info->iterations;
  const int path_limit = first + o->iteration_limit - kept; /* the rest: method of multipliers */
  const int by_cuts = polish && !(workspace->definite && conic_wants_path(workspace));
  if (!done && by_cuts) {
    workspace->origin = conic_dual_active_set(workspace) ? ORIGIN_ACTIVE_SET : ORIGIN_REST;
    done = workspace->origin == ORIGIN_ACTIVE_SET || workspace->definite;
  }
  if (done) polished = polish && conic_polish(workspace, info);
  if (polished && workspace->origin == ORIGIN_REST)
    polished = rest_holds(workspace, REST_HOLDS, 0.0);
  if (workspace->origin == ORIGIN_ACTIVE_SET && !polished && !workspace->is_vertex &&
      workspace->polish_error <= CLOSE && conic_resume_cuts(workspace))
    polished = conic_polish(workspace, info);
  if (workspace->origin != ORIGIN_FREE) done = polished;
  if (!done && guess && polish && workspace->start_limit < 0.0 &&
      solve_from_start(workspace, o, guess, strict, 1, info))
    return QD_OK;
  workspace->wanted_width = polish ? FIRST_WIDTH : 0;
  for (path_start from = PATH_COLD; !done; from = PATH_RESUMED) {
    status = conic_follow_path(workspace, o->tolerance, path_limit, from, info);
    if (status != QD_OK) break;
    if (workspace->arrived && polish) conic_find_split(workspace);
    polished = polish && conic_polish(workspace, info);
    done = polished || workspace->arrived;
    workspace->wanted_width = workspace->split_width + NEXT_WIDTH;
  }
  if (polish && status == QD_OK && !polished) {
    workspace->origin = ORIGIN_PATH_END;
    workspace->split_width = 0;
    polished = conic_polish(workspace, info);
    workspace->origin = ORIGIN_PATH;
  }
  if (status != QD_OK && status != QD_UNBOUNDED && workspace->exact)
    if (conic_rescue(workspace, o->tolerance, first + o->iteration_limit - info->iterations,
                     o->polish, &polished, info))
      status = QD_OK;
  info->polished = polished;
  return status;
}

/* The path once more, from a start in other units. */
static qd_status run_elsewhere(qd_cone_workspace *workspace, const qd_cone_options *o, int choice,
                               qd_cone_info *info) {
  conic_clear_rows(workspace);
  conic_free_minimum(workspace, info);
  conic_change_units(workspace, choice);
  workspace->wanted_width = workspace->split_width = info->polished = 0;
  const qd_status status = conic_follow_path(
      workspace, o->tolerance, info->iterations + o->iteration_limit, PATH_ELSEWHERE, info);
  if (status == QD_OK && workspace->exact && o->polish) {
    workspace->origin = ORIGIN_PATH_END;
    info->polished = conic_polish(workspace, info);
  }
  return status;
}

/* Residuals in the caller's numbers; a verdict that they do not bear out is none. */
static qd_status judge(qd_cone_workspace *workspace, const qd_cone_program *program,
                       double tolerance, qd_status status, const answer *out, qd_cone_info *info) {
  conic_measure(workspace, program, out->x, out->slack, out->dual, out->dual_eq, info);
  if (status == QD_INFEASIBLE && !conic_excludes(workspace, program, out->dual, out->dual_eq))
    return QD_NUMERICAL_TROUBLE;
  if (status != QD_OK) return status;
  const double worst = info->objective + info->primal_residual + info->dual_residual +
                       info->complementarity; /* not finite: beyond the range of a double */
  const cone_point point = {out->x, out->slack, out->dual, out->dual_eq};
  return isfinite(worst) && conic_is_certified(workspace, program, tolerance, &point, info)
             ? QD_OK
             : QD_NUMERICAL_TROUBLE;
}

/* The answer in the caller's numbers, judged. */
static qd_status settle(qd_cone_workspace *workspace, const qd_cone_program *program,
                        double tolerance, qd_status status, const answer *out, qd_cone_info *info) {
  if (status == QD_INFEASIBLE)
    hand_out(workspace, workspace->x, workspace->slack, workspace->path_dual, out);
  else if (info->polished)
    hand_out(workspace, workspace->polish_x, workspace->polish_slack, workspace->polish_dual, out);
  else
    hand_out(workspace, workspace->x, workspace->slack, workspace->dual, out);
  status = judge(workspace, program, tolerance, status, out, info);
  if (status == QD_UNBOUNDED)
    hand_out(workspace, workspace->newton_x, workspace->slack, workspace->dual, out);
  return status;
}

static int is_undecided(qd_status status, int limits_too) {
  return status == QD_NUMERICAL_TROUBLE || (status == QD_ITERATION_LIMIT && limits_too);
}

qd_status conic_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                      const conic_program *source, double *x, double *slack, double *dual,
                      double *dual_eq, qd_cone_info *info) {
  const qd_cone_program *program = &source->program;
  const qd_cone_options defaults = qd_cone_options_default();
  const qd_cone_options *o = options ? options : &defaults;
  const answer out = {x, slack, dual, dual_eq};
  const int makes_sense = o->tolerance > 0.0 && o->iteration_limit >= 0;
  if (makes_sense && conic_solve_separable(workspace, source, x, slack, dual, info)) return QD_OK;
  memset(info, 0, sizeof *info);
  info->primal_residual = info->dual_residual = info->complementarity = HUGE_VAL;
  workspace->resolution = o->tolerance * source->length;
  info->status = makes_sense ? conic_load(workspace, source, ROWS_AS_GIVEN) : QD_BAD_ARGUMENT;
  if (info->status != QD_OK) {
    clear_outputs(program, x, slack, dual, dual_eq);
    return info->status;
  }
  if (conic_find_contradiction(workspace, program)) {
    memset(workspace->x, 0, (size_t)workspace->column_count * sizeof(double));
    memset(workspace->slack, 0, (size_t)workspace->slot_count * sizeof(double));
    return info->status = settle(workspace, program, o->tolerance, QD_INFEASIBLE, &out, info);
  }
  const int last_resort = o->iteration_limit >= RETRY_FROM;
  qd_status found = run_methods(workspace, o, o->warm_start ? &out : NULL, source->strict, info);
  info->status = settle(workspace, program, o->tolerance, found, &out, info);
  if (is_undecided(info->status, last_resort) && conic_cost_is_weak(workspace, program) &&
      conic_load(workspace, source, ROWS_AS_GIVEN) == QD_OK) {
    workspace->by_offsets = 1;
    found = run_methods(workspace, o, NULL, 0, info);
    info->status = settle(workspace, program, o->tolerance, found, &out, info);
  }
  if (is_undecided(info->status, last_resort) && conic_rows_are_far_apart(workspace) &&
      conic_load(workspace, source, ROWS_ALIKE) == QD_OK) {
    found = run_methods(workspace, o, NULL, 0, info);
    info->status = settle(workspace, program, o->tolerance, found, &out, info);
  }
  if (is_undecided(info->status, last_resort)) conic_load(workspace, source, ROWS_AS_GIVEN);
  for (int k = 0; k < OTHER_UNITS && is_undecided(info->status, last_resort); ++k) {
    found = run_elsewhere(workspace, o, k, info);
    info->status = settle(workspace, program, o->tolerance, found, &out, info);
  }
  if (is_undecided(info->status, 1) && workspace->ray_reach > 0.0) {
    found = info->status;
    memcpy(workspace->path_dual, workspace->ray, (size_t)workspace->slot_count * sizeof(double));
    info->status = settle(workspace, program, o->tolerance, QD_INFEASIBLE, &out, info);
    if (info->status != QD_INFEASIBLE)
      info->status = settle(workspace, program, o->tolerance, found, &out, info);
  }
  return info->status;
}

/* ------------------------------------------------------------ dense programs */

/* 1 if the equalities contradict each other: then that is the answer. */
static int equalities_contradict(qd_cone_workspace *workspace, const qd_cone_program *program,
                                 const answer *out, qd_cone_info *info) {
  if (equality_space_find(&workspace->space, program, out->dual_eq)) return 0;
  clear_outputs(program, out->x, out->slack, out->dual, NULL);
  return judge(workspace, program, 0.0, QD_INFEASIBLE, out, info) == QD_INFEASIBLE;
}

/* The program on the points that satisfy its equalities: no penalty then, whose accuracy would end
 * where rows are nearly dependent, and the methods for programs without equalities. */
static qd_status solve_in_space(qd_cone_workspace *workspace, const qd_cone_options *options,
                                const qd_cone_program *program, const answer *out,
                                qd_cone_info *info) {
  const conic_program whole = {*program, NULL, NULL, NULL, 0.0, 0, 0};
  equality_space *space = &workspace->space;
  memset(info, 0, sizeof *info);
  info->primal_residual = info->dual_residual = info->complementarity = HUGE_VAL;
  info->status = conic_load(workspace, &whole, ROWS_AS_GIVEN);
  if (info->status != QD_OK) {
    clear_outputs(program, out->x, out->slack, out->dual, out->dual_eq);
    return info->status;
  }
  for (int k = 0; k < workspace->column_count; ++k)
    if (workspace->column_of[k] >= 0)
      space->column_scale[workspace->column_of[k]] = workspace->column_scale[k];
  if (equalities_contradict(workspace, program, out, info)) return info->status = QD_INFEASIBLE;
  const conic_program within = {
      equality_space_restrict(space, program), NULL, NULL, NULL, 0.0, 0, 0};
  if (options->warm_start) equality_space_coordinates(space, out->x, space->y);
  const qd_status status =
      conic_solve(workspace, options, &within, space->y, out->slack, out->dual, NULL, info);
  equality_space_point(space, space->y, status == QD_UNBOUNDED, out->x);
  equality_space_multipliers(space, program, status == QD_INFEASIBLE ? NULL : out->x, out->dual,
                             out->dual_eq);
  if (conic_load(workspace, &whole, ROWS_AS_GIVEN) == QD_OK && status != QD_UNBOUNDED)
    info->status = judge(workspace, program, options->tolerance, status, out, info);
  return info->status;
}

/* As it is given, or in tiles that begin where its blocks do. */
static qd_status solve_dense(qd_cone_workspace *workspace, const qd_cone_options *options,
                             const qd_cone_program *program, const answer *out,
                             qd_cone_info *info) {
  const conic_program dense = {*program, NULL, NULL, NULL, 0.0, 0, 0};
  aligned_columns *aligned = &workspace->aligned;
  const int n = program->variable_count;
  if (!workspace->capacity.is_dense || n <= FEW_COLUMNS ||
      conic_check_sizes(workspace, &dense) != QD_OK || !aligned_columns_find(aligned, program))
    return conic_solve(workspace, options, &dense, out->x, out->slack, out->dual, out->dual_eq,
                       info);
  aligned_columns_enter(aligned, n, out->x);
  conic_solve(workspace, options, &aligned->program, aligned->x, out->slack, out->dual,
              out->dual_eq, info);
  aligned_columns_leave(aligned, n, out->x);
  return info->status;
}

qd_status qd_cone_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                        const qd_cone_program *program, double *x, double *slack, double *dual,
                        double *dual_eq, qd_cone_info *info) {
  qd_cone_options o = options ? *options : qd_cone_options_default();
  const answer out = {x, slack, dual, dual_eq};
  const int in_space = program->variable_count <= SPACE_LIMIT;
  qd_status status = QD_NUMERICAL_TROUBLE;
  if (program->equality_count <= 0 || !(o.tolerance > 0.0) || !workspace->capacity.is_dense)
    return solve_dense(workspace, &o, program, &out, info);
  for (int k = 0; k < 2 && is_undecided(status, o.iteration_limit >= RETRY_FROM); ++k) {
    status = (k == 0) == in_space ? solve_in_space(workspace, &o, program, &out, info)
                                  : solve_dense(workspace, &o, program, &out, info);
    o.warm_start = 0;
  }
  return status;
}
