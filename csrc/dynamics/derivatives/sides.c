/* If a row that holds a position (a limit, a wall, a constraint) and a row that resists motion
 * (stuck friction) carry the same load, their multipliers are not unique, and after a change not
 * both hold: when q moves, positions follow it, and friction slips. A factor with both of them
 * active does not give a derivative.
 *
 * Such islands are detected as follows: if rows of positions change as with a change of q, and the
 * other rows do not, no dx satisfies all active rows. The island is then solved again with these
 * offsets moved a little to one side and to the other. If the derivatives on both sides agree, the
 * derivative exists (directional derivatives of a program with several multipliers: Ralph and Dempe
 * 1995), and that side's factor gives it; otherwise the step is at a kink. */
#include "dynamics/derivatives/differential.h"

#include <math.h>

#include "dynamics/friction_law.h"
#include "dynamics/workspace.h"
#include "mechanics/kinematics.h"

/* Relative to the change of the offsets: rows with larger errors cannot all hold. Consistent rows
 * have errors from the solver's penalty, below 1e-6; others of a tenth and more. Also the largest
 * difference between the derivatives on two sides; a larger one is a kink. */
#define MISSES 1e-4
/* Relative to an island's length: displacement of the offsets. Smaller: solutions do not
 * distinguish slip from rest (conic/tuning.h, WEAK); larger: bodies that slide elsewhere in the
 * island change the derivative. */
#define SIDE 1e-7

/* Number of joint motions along which sides are compared. */
#define WAYS 2

/* Reproducible random numbers of size 0.5 to 1 and of both signs. */
static void fill_way(double *way, int count, uint64_t state) {
  for (int i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double size = 0.5 + 0.5 * (double)(state >> 12) / 4503599627370496.0;
    way[i] = (state >> 11) & 1 ? size : -size;
  }
}

/* The normal velocity at a contact. */
static double opening_along(const solved_step *s, const qd_contact *contact, const double *way) {
  screw a, b;
  double point[3];
  body_twist(&a, s->model, &s->w->kinematics, contact->body_a, way);
  body_twist(&b, s->model, &s->w->kinematics, contact->body_b, way);
  screw_sub(&b, &b, &a);
  screw_point_velocity(point, &b, contact->pos);
  return vec3_dot(contact->frame, point);
}

/* ---------------------------------------------------------------- rows of positions */

static void move_contacts(const solved_step *s, const island *one, const double *way, double *w) {
  const problem *p = &s->w->problem;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    const contact_block *block = p->block + index;
    if (block->rows.count == 0 || block->offset != OFFSET_GAP) {
      continue;
    }
    const double opening = opening_along(s, s->w->collision.contact + index, way);
    for (int r = 0; r < block->rows.count; ++r) {
      w[block->row + r - one->row] = block->rows.row[r].normal * opening;
    }
  }
}

static void move_tendons(const problem *p, const island *one, const double *way, double *w) {
  for (int i = one->tendon_row; i < one->tendon_row + one->tendon_row_count; ++i) {
    const tendon_row *row = p->tendon_row + i;
    if (tendon_row_has_length(row) && !row->capped) {
      w[row->row - one->row] = problem_row_along(p, one, &one->G, row->row - one->row, way);
    }
  }
}

static void move_limits(const problem *p, const island *one, const double *way, double *w) {
  for (int i = one->limit; i < one->limit + one->limit_count; ++i) {
    const limit_row *limit = p->limit + i;
    w[limit->row - one->row] = limit->capped ? 0.0 : limit->sign * way[limit->dof];
  }
  for (int i = one->ball_limit; i < one->ball_limit + one->ball_limit_count; ++i) {
    const int row = p->ball_limit[i].row - one->row;
    for (int r = 1; r < BALL_ROWS && !p->ball_limit[i].capped; ++r) {
      w[row + r] = problem_row_along(p, one, &one->G, row + r, way);
    }
  }
}

/* Change of an island's offsets when its joints move along `way` (nv): w (rows), e (equalities). */
static void move_positions(const solved_step *s, const island *one, const double *way, double *w,
                           double *e) {
  const problem *p = &s->w->problem;
  memset(w, 0, (size_t)one->row_count * sizeof(double));
  move_contacts(s, one, way, w);
  move_tendons(p, one, way, w);
  move_limits(p, one, way, w);
  for (int i = 0; i < one->equality_count; ++i) {
    const constraint_state *state = p->constraint + p->equality[one->equality + i].constraint;
    const int held = state->capped[0] || state->capped[1];
    e[i] = held ? 0.0 : problem_row_along(p, one, &one->C, i, way);
  }
}

/* ---------------------------------------------------------------- errors of active rows */

/* The problem's compliance is filled only for islands with compliant rows. */
static int is_rigid(const problem *p, const island *one, int row) {
  return one->compliant == 0 || p->program.compliance[row] == 0.0;
}

/* Whether friction of a joint or tendon sticks: within its limits, and rigid. */
static int sticks(const problem *p, const island *one, int row, double force) {
  return is_rigid(p, one, row) && p->program.lower[row] < p->program.upper[row] &&
         p->solution.dual[row] - p->program.lower[row] > force &&
         p->program.upper[row] - p->solution.dual[row] > force;
}

/* Largest error of the active rows of one cone; `miss`: G dx + w in its rows. */
static double cone_miss(const problem *p, const island *one, int kind, int row, int dim,
                        double force, const double *miss) {
  double most = 0.0, across = 0.0, along = 0.0;
  if (kind == QD_ORTHANT && p->attempt.coulomb) { /* slip moves these rows; other rows show it */
    return 0.0;
  }
  for (int i = 0; i < dim && kind != QD_LORENTZ; ++i) {
    const int active = kind == QD_INTERVAL
                           ? sticks(p, one, row + i, force)
                           : is_rigid(p, one, row + i) && p->solution.dual[row + i] > force;
    most = active ? fmax(most, fabs(miss[i])) : most;
  }
  if (kind != QD_LORENTZ || !is_rigid(p, one, row) || !(p->solution.dual[row] > force)) {
    return most;
  }
  for (int i = 1; i < dim; ++i) {
    across += p->solution.dual[row + i] * p->solution.dual[row + i];
    along += p->solution.dual[row + i] * miss[i];
    most = fmax(most, fabs(miss[i]));
  }
  across = sqrt(across);
  if (p->solution.dual[row] - across > force) { /* it sticks */
    return fmax(most, fabs(miss[0]));
  }
  return fabs(miss[0] + (p->attempt.coulomb ? 0.0 : along / across));
}

static double largest_force(const problem *p, const island *one) {
  double largest = 0.0;
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    largest = fmax(largest, fabs(p->solution.dual[i]));
  }
  return largest;
}

/* Friction that does not slip, whatever its force. */
static int rests(const problem *p, const island *one, int row) {
  return is_rigid(p, one, row) && p->program.lower[row] < p->program.upper[row] &&
         fabs(p->solution.slack[row]) <= SIDE * one->length;
}

/* Whether an island has friction of joints or tendons that does not slip (*friction), and rows that
 * may share its load. */
static int may_share(const problem *p, const island *one, int *friction) {
  const double force = NO_FORCE * largest_force(p, one);
  int stuck = 0, holds = one->equality_count;
  for (int k = one->cone, row = one->row; k < one->cone + one->cone_count;
       row += p->program.cone_dim[k++]) {
    for (int i = row; i < row + p->program.cone_dim[k]; ++i) {
      stuck += p->program.cone_kind[k] == QD_INTERVAL && rests(p, one, i);
      holds += p->program.cone_kind[k] != QD_INTERVAL && p->solution.dual[i] > force;
    }
  }
  *friction = stuck > 0;
  return holds > 1 || (stuck > 0 && holds > 0);
}

/* 1 if no dx satisfies all active rows when offsets move with q. */
static int rows_disagree(const solved_step *s, island *one, const double *way) {
  problem *p = &s->w->problem;
  differential *d = &s->w->differential;
  double *w = p->scratch.four_w + one->row, *e = d->four_e + one->equality;
  double size = 0.0, most = 0.0;
  const double force = NO_FORCE * largest_force(p, one);
  memset(d->four_r, 0, (size_t)one->variable_count * sizeof(double));
  move_positions(s, one, way, w, e);
  const conic_change change = {1, d->four_r, w, e, d->four_x, NULL, NULL};
  law_sensitivity_solve(p, one, 0, &change);
  memset(d->by_delta, 0, (size_t)s->model->nv * sizeof(double));
  for (int i = 0; i < one->variable_count; ++i) {
    if (p->dof_of_variable[one->variable + i] >= 0) {
      d->by_delta[p->dof_of_variable[one->variable + i]] = d->four_x[i];
    }
  }
  for (int i = 0; i < one->row_count; ++i) {
    size = fmax(size, fabs(w[i]));
    w[i] += problem_row_along(p, one, &one->G, i, d->by_delta);
  }
  for (int i = 0; i < one->equality_count; ++i) {
    if (one->compliant == 0 || p->program.compliance_eq[one->equality + i] == 0.0) {
      size = fmax(size, fabs(e[i]));
      most = fmax(most, fabs(e[i] + problem_row_along(p, one, &one->C, i, d->by_delta)));
    }
  }
  for (int k = one->cone, row = 0; k < one->cone + one->cone_count;
       row += p->program.cone_dim[k++]) {
    const double miss = cone_miss(p, one, p->program.cone_kind[k], one->row + row,
                                  p->program.cone_dim[k], force, w + row);
    most = fmax(most, miss);
  }
  return most > MISSES * size;
}

/* A contact without force on a certified active set stays without force, so its rows do not matter.
 */
void derivatives_choose_contacts(const solved_step *s, const island *one) {
  const problem *p = &s->w->problem;
  const int exact_active_set = isinf(s->options->kappa) && one->exact;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    s->w->differential.counts[index] = problem_contact_counts(p, index, exact_active_set);
  }
}

/* ---------------------------------------------------------------- the two sides */

/* Solves the island's program with the present offsets, and factors it. */
static qd_status solve_side(const solved_step *s, island *one) {
  problem *p = &s->w->problem;
  island_program program;
  problem_program(p, one, &program);
  program.program.derivatives = 1;
  qd_cone_options options = qd_cone_options_default();
  options.tolerance = s->options->tolerance;
  options.iteration_limit = s->options->iteration_limit;
  one->exact = 1;
  const qd_status status = law_solve(p, one, &options, &program);
  return status == QD_OK ? law_sensitivity_prepare(p, one, &one->exact) : status;
}

/* dx along random changes of q, with all terms, from the present factor. */
static void fill_response(const solved_step *s, island *one, double *limit_force, double *out) {
  qd_workspace *w = s->w;
  problem *p = &w->problem;
  differential *d = &w->differential;
  for (int i = 0; i < p->islands.count; ++i) {
    derivatives_choose_contacts(s, p->islands.island + i);
  }
  d->poses_known = 0;
  problem_forces(p, &w->collision, limit_force);
  step_point_compute(&w->point, s);
  for (int k = 0; k < DIRECTIONS; ++k) {
    const double *tangent[QD_ARGUMENT_COUNT] = {NULL};
    fill_way(d->masked, s->model->nv, (uint64_t)k + 2);
    tangent[QD_BY_Q] = d->masked;
    pushforward_compute(s, tangent, d->four_r + k, p->scratch.four_w + k, d->four_e + k,
                        DIRECTIONS);
  }
  const conic_change change = {.count = DIRECTIONS,
                               .d_stationarity = d->four_r + one->variable * DIRECTIONS,
                               .d_slack = p->scratch.four_w + one->row * DIRECTIONS,
                               .d_equality = d->four_e + one->equality * DIRECTIONS,
                               .dx = out};
  law_sensitivity_solve(p, one, 0, &change);
}

static void copy(double *to, const double *from, int count) {
  memcpy(to, from, (size_t)count * sizeof(double));
}

static void save(problem *p, const island *one) {
  const int n = one->row_count, m = one->equality_count;
  copy(p->scratch.saved_rows, p->program.g + one->row, n);
  copy(p->scratch.saved_rows + n, p->solution.slack + one->row, n);
  copy(p->scratch.saved_rows + 2 * n, p->solution.dual + one->row, n);
  copy(p->scratch.saved_equalities, p->program.c + one->equality, m);
  copy(p->scratch.saved_equalities + m, p->solution.dual_eq + one->equality, m);
}

/* Restores the offsets; with `solution` 1 also the solution. */
static void restore(const solved_step *s, const island *one, int solution) {
  problem *p = &s->w->problem;
  const int n = one->row_count, m = one->equality_count;
  copy(p->program.g + one->row, p->scratch.saved_rows, n);
  copy(p->program.c + one->equality, p->scratch.saved_equalities, m);
  if (!solution) {
    return;
  }
  copy(p->solution.slack + one->row, p->scratch.saved_rows + n, n);
  copy(p->solution.dual + one->row, p->scratch.saved_rows + 2 * n, n);
  copy(p->solution.dual_eq + one->equality, p->scratch.saved_equalities + m, m);
  for (int i = one->variable; i < one->variable + one->variable_count; ++i) {
    p->solution.x[i] = p->dof_of_variable[i] >= 0 ? s->delta[p->dof_of_variable[i]] : 0.0;
  }
}

/* Solves the island with its offsets moved. */
static qd_status go_to_side(const solved_step *s, island *one, const double *way, double far) {
  problem *p = &s->w->problem;
  double *w = p->scratch.four_w + one->row, *e = s->w->differential.four_e + one->equality;
  restore(s, one, 0);
  move_positions(s, one, way, w, e);
  for (int i = 0; i < one->row_count; ++i) {
    p->program.g[one->row + i] += far * w[i];
  }
  for (int i = 0; i < one->equality_count; ++i) {
    p->program.c[one->equality + i] += far * e[i];
  }
  return solve_side(s, one);
}

static int sides_agree(const double *a, const double *b, int count) {
  double size = 1.0;
  for (int i = 0; i < count; ++i) {
    size = fmax(size, fmax(fabs(a[i]), fabs(b[i])));
  }
  for (int i = 0; i < count; ++i) {
    if (!(fabs(a[i] - b[i]) <= MISSES * size)) {
      return 0;
    }
  }
  return 1;
}

/* Side 0, 1, ... of the island: along the first motion and back, then along the next. */
static qd_status look_at_side(const solved_step *s, island *one, int side, double *limit_force,
                              double *out) {
  double *way = s->w->differential.z;
  fill_way(way, s->model->nv, 1);
  for (int i = 1; i < s->model->nv && side >= 2; i += 2) {
    way[i] = -way[i];
  }
  const qd_status status =
      go_to_side(s, one, way, side % 2 == 0 ? SIDE * one->length : -SIDE * one->length);
  if (status == QD_OK) {
    fill_response(s, one, limit_force, out);
  }
  return status;
}

static qd_status look_at_sides(const solved_step *s, island *one, double *limit_force) {
  problem *p = &s->w->problem;
  differential *d = &s->w->differential;
  const int count = DIRECTIONS * one->variable_count;
  qd_status status = look_at_side(s, one, 0, limit_force, d->side_x);
  int same = one->exact;
  for (int side = 1; side < 2 * WAYS && status == QD_OK && same; ++side) {
    status = look_at_side(s, one, side, limit_force, d->four_x);
    same = one->exact && sides_agree(d->side_x, d->four_x, count);
  }
  if (status != QD_OK) { /* a side has no solution: keep the original derivative */
    restore(s, one, 0);
    status = solve_side(s, one);
    same = 0;
  }
  one->exact = same;
  restore(s, one, 1);
  problem_forces(p, &s->w->collision, limit_force);
  return status;
}

qd_status derivatives_settle_sides(const solved_step *s, island *one, double *limit_force) {
  problem *p = &s->w->problem;
  double *way = s->w->differential.z;
  int friction;
  if (one->soft_pairs > 0 || !may_share(p, one, &friction) || (!friction && !one->exact)) {
    return QD_OK;
  }
  fill_way(way, s->model->nv, 1);
  if (one->exact && !rows_disagree(s, one, way)) {
    return QD_OK;
  }
  if (!friction) { /* contacts only: sliding opens them in every direction */
    one->exact = 0;
    return QD_OK;
  }
  if (p->attempt.coulomb) {
    island_program program;
    problem_program(p, one, &program);
    law_withdraw(p, one, &program);
  }
  save(p, one);
  return look_at_sides(s, one, limit_force);
}
