#include "numerics/conic/newton/envelope.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/detail.h"
#include "numerics/conic/task.h"
#include "numerics/vectors.h"

void envelope_lay_out(envelope *e, size_t lane_count, arena *a) {
  ARENA_DOUBLES(a, lane_count, &e->normal, &e->across, &e->stiff, &e->stiff_across, &e->stiff_both,
                &e->root, &e->root_both, &e->lower, &e->upper, &e->rigid, &e->centre, &e->along);
}

/* ------------------------------------------------------------ the program */

/* 1 if all rows of a cone are compliant, with equal compliances in its tail. */
static int cone_gives_way(const double *compliance, int dim) {
  int gives = compliance[0] > 0.0 && compliance[1] > 0.0;
  for (int i = 2; i < dim; ++i) {
    gives &= compliance[i] == compliance[1];
  }
  return gives;
}

int envelope_suits(const qd_cone_program *program) {
  const double *R = program->compliance;
  int soft = 0, rigid = 0;
  for (int k = 0, row = 0; R && k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_dim[k];
    if (program->cone_kind[k] == QD_LORENTZ && dim > 1) {
      if (!cone_gives_way(R + row, dim)) {
        return 0;
      }
      soft += dim;
      continue;
    }
    for (int i = row; i < row + dim; ++i) {
      if (program->cone_kind[k] == QD_INTERVAL && !(R[i] > 0.0)) {
        return 0; /* multipliers would jump between the ends */
      }
      soft += R[i] > 0.0;
      rigid += !(R[i] > 0.0);
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    const int gives = program->compliance_eq && program->compliance_eq[i] > 0.0;
    soft += gives;
    rigid += !gives;
  }
  return soft > rigid;
}

/* The program without compliance, with interval rows as orthant rows. */
static conic_program without_compliance(qd_cone_workspace *workspace, const conic_program *source) {
  conic_program plain = *source;
  qd_cone_program *program = &plain.program;
  int *kind = workspace->soft.written.kind;
  for (int k = 0; k < program->cone_count; ++k) {
    kind[k] = program->cone_kind[k] == QD_INTERVAL ? QD_ORTHANT : program->cone_kind[k];
  }
  program->cone_kind = kind;
  program->target_mu = NULL;
  program->compliance = program->compliance_eq = program->lower = program->upper = NULL;
  return plain;
}

QD_MULTIVERSION
static void clear_lanes(qd_cone_workspace *workspace) {
  envelope *e = &workspace->envelope;
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    e->normal[c] = e->across[c] = 1.0;
    e->lower[c] = e->rigid[c] = e->centre[c] = 0.0;
    e->upper[c] = HUGE_VAL;
  }
  e->any_rigid = 0;
}

/* Reads a linear row, which has a lane of its own. */
static void read_row(qd_cone_workspace *workspace, int lane, double R, double lower, double upper) {
  envelope *e = &workspace->envelope;
  e->normal[lane] = R;
  e->lower[lane] = lower;
  e->upper[lane] = upper;
  if (!(R > 0.0)) {
    const double root = conic_hard_root(workspace, lane);
    e->normal[lane] = 1.0 / (root * root);
    e->rigid[lane] = 1.0;
    e->any_rigid = 1;
  }
}

static void read_rows(qd_cone_workspace *workspace, const qd_cone_program *program) {
  clear_lanes(workspace);
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int kind = program->cone_kind[k];
    if (kind == QD_LORENTZ && workspace->program.cone_rows[k] > 1) {
      const int lane = conic_lane_of(workspace, row);
      workspace->envelope.normal[lane] = program->compliance[row];
      workspace->envelope.across[lane] = program->compliance[row + 1];
      continue;
    }
    for (int i = row; i < row + workspace->program.cone_rows[k]; ++i) {
      read_row(workspace, conic_lane_of(workspace, i), program->compliance[i],
               kind == QD_INTERVAL ? program->lower[i] : 0.0,
               kind == QD_INTERVAL ? program->upper[i] : HUGE_VAL);
    }
  }
  for (int i = 0; i < program->equality_count; ++i) {
    const int row = program->row_count + i;
    const double scale = workspace->program.row_scale[row];
    const double R = program->compliance_eq ? program->compliance_eq[i] : 0.0;
    read_row(workspace, conic_lane_of(workspace, row), R * scale * scale, -HUGE_VAL, HUGE_VAL);
  }
  envelope_find_stiffness(&workspace->envelope, workspace->program.lane_count);
}

/* ------------------------------------------------------------ Newton's method */

/* State of the Newton iteration on newton's x, slack (Gx + g) and dual. */
typedef struct envelope_run {
  qd_cone_info *info;
  double error; /* relative; 0: only rounding is left */
  double best;
  int idle;     /* iterations that have not halved the best error */
  int moved;    /* 1: the centres of rigid rows have moved by more than rounding */
  int changed;  /* 1: states have changed since the last factorisation */
  int flat;     /* 1: some columns have no curvature in the cost; only rows can hold them */
  int held;     /* 1: the last factorisation holds these columns */
  int is_known; /* 1: rounding of stiff rows' multipliers is small beside the cost's forces */
} envelope_run;

/* Multipliers and stiffness at x, the gradient (residual_x), and its relative size. */
QD_MULTIVERSION
static void look(qd_cone_workspace *workspace, envelope_run *run) {
  const int columns = workspace->program.column_count;
  double force;
  run->changed |=
      envelope_respond(workspace, workspace->newton.slack, workspace->newton.dual, &force);
  conic_column_residual(workspace, workspace->newton.x, workspace->newton.dual);
  const double size = larger(workspace->units.b_size, max_norm(workspace->work.Qx, columns));
  const double gradient = max_norm_or_infinity(workspace->work.residual_x, columns);
  const double rounding = columns * DBL_EPSILON * force;
  run->error = gradient <= larger(CANCELLED * size, rounding)
                   ? 0.0
                   : gradient / larger(size, force * DBL_EPSILON);
  run->is_known = rounding <= HALF_DIGITS * size;
}

/* Factors the Newton matrix. With a singular cost, columns that only the diagonal shift holds count
 * as not held. */
static void factor(qd_cone_workspace *workspace, envelope_run *run) {
  const int dropped = conic_factor_rows(workspace, &workspace->active.rows, run->info);
  run->held = dropped == 0 && (!run->flat || workspace->system.weakest_pivot > PROXIMAL_SHIFT);
  run->changed = 0;
}

/* x += t dx, w += t dw */
QD_MULTIVERSION
static void move(qd_cone_workspace *workspace, double t) {
  const double *dx = workspace->work.dx, *dw = workspace->work.row2;
  add_scaled(workspace->newton.x, t, dx, workspace->program.column_count);
  add_scaled(workspace->newton.slack, t, dw, workspace->program.slot_count);
}

/* Length of a step beyond the full one, which has been taken: the root of the slope, which
 * increases from `first` < 0 at the beginning of the step to `last`. */
QD_MULTIVERSION
static double search(qd_cone_workspace *workspace, double first, double last) {
  const double *dx = workspace->work.dx, *dw = workspace->work.row2;
  const double *w = workspace->newton.slack;
  double low = -1.0, high = HUGE_VAL, t = 0.0, slope = last, fall;
  tiles_multiply_Q(&workspace->system, dx, workspace->work.x);
  const double curvature = dot_product(workspace->work.x, dx, workspace->program.column_count);
  const double rest = last + envelope_slope(workspace, 0.0, w, dw, &fall);
  for (int k = 0; k < SEARCH_LIMIT && fabs(slope) > -WELL_LESS * first; ++k) {
    low = slope < 0.0 ? t : low;
    high = slope < 0.0 ? high : t;
    t -= slope / (curvature + fall);
    if (!(t > low && t < high)) {
      t = high < HUGE_VAL ? 0.5 * (low + high) : 2.0 * low + 1.0;
    }
    slope = rest + t * curvature - envelope_slope(workspace, t, w, dw, &fall);
  }
  return t;
}

/* One step from the last evaluated point, and an evaluation. */
QD_MULTIVERSION
static void step(qd_cone_workspace *workspace, envelope_run *run) {
  const int columns = workspace->program.column_count;
  double *dx = workspace->work.dx;
  if (run->changed || run->idle > 0 || run->error > HALF_DIGITS) {
    factor(workspace, run);
  }
  negate(dx, workspace->work.residual_x, columns);
  const double before = run->error;
  tiles_solve(&workspace->system, dx);
  tiles_multiply(&workspace->system, workspace->system.G, dx, workspace->work.row2);
  const double first = dot_product(workspace->work.residual_x, dx, columns);
  move(workspace, 1.0);
  look(workspace, run);
  const double last = dot_product(workspace->work.residual_x, dx, columns);
  if (before > HALF_DIGITS && !(fabs(last) <= -WELL_LESS * first)) {
    move(workspace, search(workspace, first, last));
    look(workspace, run);
  }
  ++run->info->iterations;
}

/* Recomputes the rows from x, since sums over steps have the rounding of the longest one, and moves
 * the centres of rigid rows to the multipliers found. */
static void renew(qd_cone_workspace *workspace, envelope_run *run) {
  const double far = max_norm(workspace->newton.x, workspace->program.column_count);
  conic_slacks_at(workspace, workspace->newton.x, workspace->newton.slack);
  run->moved = workspace->envelope.any_rigid &&
               envelope_move_centres(workspace, workspace->newton.dual, far);
  look(workspace, run);
}

/* Iterates to rounding, or until there is no progress. */
static void descend(qd_cone_workspace *workspace, const qd_cone_options *options,
                    envelope_run *run) {
  int renewed = 0;
  while (run->info->iterations < options->iteration_limit && run->error < HUGE_VAL &&
         (run->held || run->flat) && !conic_is_stopped(workspace)) {
    run->idle = run->error < 0.5 * run->best ? 0 : run->idle + 1;
    run->best = smaller(run->best, run->error);
    if (run->error > 0.0 && (run->idle < 2 || run->error > HALF_DIGITS)) {
      step(workspace, run);
    } else if (!renewed || (run->moved && renewed < FEW_TIMES)) {
      renew(workspace, run);
      run->best = HUGE_VAL;
      ++renewed;
    } else {
      return;
    }
  }
}

static void look_at(qd_cone_workspace *workspace, envelope_run *run) {
  conic_slacks_at(workspace, workspace->newton.x, workspace->newton.slack);
  look(workspace, run);
}

/* 1 if no cone has a positive offset at x = 0. */
static int all_touch(const qd_cone_workspace *workspace) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); ++c) {
      if (workspace->program.g[group->slot + c] > 0.0) {
        return 0;
      }
    }
  }
  return 1;
}

/* Starts at x = 0 if all contacts touch there, since their loads are then near those at rest; else
 * at the minimiser of the cost, which shows the penetrations. */
static void begin(qd_cone_workspace *workspace, envelope_run *run) {
  const int columns = workspace->program.column_count, zero = run->flat || all_touch(workspace);
  double *x = workspace->newton.x;
  for (int i = 0; i < columns; ++i) {
    x[i] = zero ? 0.0 : -workspace->program.b[i];
  }
  if (!zero && !workspace->system.Q_is_diagonal) {
    run->held = conic_factor_cost(workspace);
    ++run->info->factorizations;
    tiles_solve(&workspace->system, x);
  }
  look_at(workspace, run);
  run->changed = 1;
}

/* Starts at the minimum of the cost with the stiffness that the guess' multipliers show:
 * multipliers show the states better than a slightly wrong x. */
static void begin_at_multipliers(qd_cone_workspace *workspace, const double *shown,
                                 envelope_run *run) {
  double *x = workspace->newton.x, *load = workspace->work.rhs, *stiff = workspace->work.dslack;
  double force;
  envelope_respond(workspace, shown, workspace->newton.dual, &force);
  factor(workspace, run);
  for (int i = 0; i < workspace->program.slot_count; ++i) {
    load[i] = shown[i] - workspace->program.g[i];
  }
  cones_apply(&workspace->product, &workspace->active.rows, load, stiff);
  negate(x, workspace->program.b, workspace->program.column_count);
  tiles_add_transposed(&workspace->system, workspace->system.G, workspace->newton.dual, x);
  tiles_add_transposed(&workspace->system, workspace->system.S, stiff, x);
  tiles_solve(&workspace->system, x);
  look_at(workspace, run);
}

/* Starts at the guess' x if its error is small, else from its multipliers. */
static void begin_at_guess(qd_cone_workspace *workspace, const conic_answer *guess,
                           envelope_run *run) {
  double *shown = workspace->work.aim;
  conic_read_start(workspace, guess);
  envelope_move_centres(workspace, workspace->newton.dual, 0.0);
  conic_slacks_at(workspace, workspace->newton.x, shown);
  conic_copy_slots(workspace, workspace->newton.slack, shown);
  envelope_rows_of(workspace, workspace->newton.dual, shown);
  look(workspace, run);
  run->changed = 1;
  if (!(run->error <= WELL_LESS)) {
    begin_at_multipliers(workspace, shown, run);
  }
}

/* ------------------------------------------------------------ the answer */

/* Writes the answer. Multipliers follow from x, so the only error is the gradient. */
static void hand_out(qd_cone_workspace *workspace, const conic_program *source,
                     const conic_answer *out, qd_cone_info *info) {
  const int columns = workspace->program.column_count;
  const double *x = workspace->newton.x;
  double *slack = workspace->iterate.slack;
  envelope_slacks(workspace, workspace->newton.slack, workspace->newton.dual, slack);
  conic_hand_out(workspace, x, slack, workspace->newton.dual, out);
  info->objective = 0.5 * dot_product(workspace->work.Qx, x, columns) +
                    dot_product(workspace->program.b, x, columns);
  info->dual_residual = 0.0;
  for (int i = 0; i < columns; ++i) {
    info->dual_residual = larger(info->dual_residual, fabs(workspace->work.residual_x[i]) /
                                                          workspace->program.column_scale[i]);
  }
  detail_measure_rows(&source->program, out, info);
}

int envelope_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                   const conic_program *source, const conic_answer *out, qd_cone_info *info) {
  const conic_program plain = without_compliance(workspace, source);
  envelope_run run = {.info = info, .best = HUGE_VAL, .changed = 1, .held = 1};
  workspace->envelope.used = 0;
  workspace->soft.natively = 0;
  workspace->stop = (conic_stop){options->stop, options->stop_context, 0};
  if (conic_load(workspace, &plain, ROWS_AS_GIVEN) != QD_OK || workspace->structure.any_empty_row) {
    return 0;
  }
  run.flat = !workspace->program.definite;
  workspace->active.rows.along = workspace->envelope.along;
  workspace->active.hard_penalty = STIFFEST_ROW;
  workspace->units.b_size = max_norm(workspace->program.b, workspace->program.column_count);
  memset(workspace->active.state, 0, (size_t)workspace->program.lane_count * sizeof(int));
  read_rows(workspace, &source->program);
  if (options->warm_start) {
    begin_at_guess(workspace, out, &run);
  } else {
    begin(workspace, &run);
  }
  descend(workspace, options, &run);
  if (run.flat && run.changed) {
    factor(workspace, &run);
  }
  if (!run.held || run.moved || !run.is_known || !(run.error <= HALF_DIGITS)) {
    return 0;
  }
  hand_out(workspace, source, out, info);
  info->method = QD_METHOD_ENVELOPE;
  info->polished = run.error <= ACCEPTED;
  workspace->program.definite = 1; /* together with the active rows */
  workspace->settled = (settled_set){.is_known = 1};
  workspace->envelope.used = 1;
  return 1;
}

/* ------------------------------------------------------------ derivatives */

int envelope_settle(qd_cone_workspace *workspace, int *hard) {
  const cone_operator *held = &workspace->active.hard;
  const size_t bytes = (size_t)workspace->program.lane_count * sizeof(double);
  double force;
  envelope_respond(workspace, workspace->newton.slack, workspace->newton.dual, &force);
  memset(held->cross, 0, bytes);
  memset(held->tangent, 0, bytes);
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    held->diagonal[c] =
        workspace->envelope.rigid[c] > 0.0 && workspace->active.rows.diagonal[c] > 0.0;
  }
  *hard = workspace->envelope.any_rigid;
  return envelope_is_strict(workspace, workspace->newton.slack,
                            WEAK * max_norm(workspace->newton.dual, workspace->program.slot_count));
}

void envelope_share(const qd_cone_workspace *workspace, const qd_cone_program *program,
                    double *by_lower, double *by_upper) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    for (int i = row; i < row + program->cone_dim[k]; ++i) {
      const int limited = program->cone_kind[k] == QD_INTERVAL;
      const double dual = limited ? workspace->newton.dual[workspace->program.slot_of[i]] : 0.0;
      const int low = limited && dual <= program->lower[i];
      const int high = limited && dual >= program->upper[i];
      by_lower[i] = low ? (high ? 0.5 : 1.0) : 0.0;
      by_upper[i] = high ? (low ? 0.5 : 1.0) : 0.0;
    }
  }
}
