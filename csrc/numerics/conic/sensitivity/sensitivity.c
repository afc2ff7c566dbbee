/* Derivative of the solution map (formulation section 4).
 *
 * Differentiating the optimality conditions gives ddual = -M (G dx + d_slack) for each cone, with a
 * symmetric stiffness M, so
 *
 *     (Q + G'MG) dx = -d_stationarity - G'M d_slack.
 *
 *     on the path      M = W^-2, the barrier's Hessian times mu at the slack
 *     open             M = 0
 *     sticking         M = infinity in every direction: the rows do not move
 *     sliding          dual = beta (1, u), slack = alpha (1, -u):
 *                      M = infinity along (1, u), 0 along (1, -u), beta / alpha across
 *     weakly active    slack and multiplier both vanish, so M is a choice: M of the path's end, or
 *                      halfway between open and held if there was no path
 *
 * Infinity is replaced by a large penalty, and the solve is repeated on the remaining error (the
 * proximal method of multipliers), so that redundant hard rows share the load. M = R R, S = R G:
 * this is the solver's own system, factored once for all right-hand sides, which are solved four at
 * a time. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"
#include "numerics/vectors.h"

/* Copies the path's scaling of one cone. At the end of an exact program's path, the scaling is
 * limited to the stiffness of a hard row: a larger one would drown Q in rounding. */
static void copy_path(qd_cone_workspace *workspace, const cone_group *group, int c) {
  const cone_operator *path = &workspace->product.scaling;
  const int at = group->cone + c;
  const double limit = workspace->program.exact ? conic_hard_root(workspace, at) : HUGE_VAL;
  const double diagonal = smaller(path->diagonal[at], limit);
  if (group->kind == GROUP_LORENTZ) {
    conic_set_stiffness(workspace, at, smaller(path->diagonal[at] + path->cross[at], limit),
                        smaller(path->diagonal[at] - path->cross[at], limit),
                        smaller(path->tangent[at], limit), 0, 0);
  } else {
    conic_set_stiffness(workspace, at, diagonal, diagonal, diagonal, 0, 0);
  }
  for (int i = 1; i < group->dim; ++i) {
    workspace->active.rows.u[group->slot + i * group->padded + c] =
        path->u[group->slot + i * group->padded + c];
  }
}

/* Stiffness of a weakly active cone without a path: that of its own motion, halfway between open
 * and held. */
static void share_motion(qd_cone_workspace *workspace, int cone) {
  const double compliance = workspace->program.compliance[cone];
  const double root = compliance > 0.0 ? sqrt(1.0 / compliance) : 0.0;
  conic_set_stiffness(workspace, cone, root, root, root, 0, 0);
}

/* Lists blocks with a nonzero stiffness, their cones and rows. The others (open cones) have S = 0
 * and no motion of multipliers. */
static void list_stiff_blocks(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  const cone_operator *rows = &workspace->active.rows;
  workspace->sensitivity.stiff_count = workspace->sensitivity.stiff_cone_count =
      workspace->sensitivity.stiff_slot_count = 0;
  for (int b = 0; b < system->block_count; ++b) {
    const row_block *block = &system->blocks[b];
    const int linear = block->slot_step == 1, cones = linear ? block->row_count : 1;
    int stiff = 0;
    for (int c = block->cone; c < block->cone + cones; ++c) {
      stiff |= rows->diagonal[c] != 0.0 || rows->tangent[c] != 0.0;
    }
    if (!stiff) {
      continue;
    }
    workspace->sensitivity.stiff_blocks[workspace->sensitivity.stiff_count++] = b;
    for (int c = 0; c < cones; ++c) {
      workspace->sensitivity.stiff_cones[workspace->sensitivity.stiff_cone_count++] = (stiff_cone){
          block->slot + c, block->cone + c, linear ? 1 : block->row_count, block->slot_step};
    }
    for (int i = 0; i < block->row_count; ++i) {
      workspace->sensitivity.stiff_slots[workspace->sensitivity.stiff_slot_count++] =
          block->slot + i * block->slot_step;
    }
  }
}

/* Clears right-hand sides over rows: rows of blocks that are not stiff are never written. */
static void clear_rows(qd_cone_workspace *workspace) {
  const size_t bytes = 4 * (size_t)workspace->program.slot_count * sizeof(double);
  memset(workspace->sensitivity.row4, 0, bytes);
  memset(workspace->sensitivity.moved4, 0, bytes);
  memset(workspace->sensitivity.work_row4, 0, bytes);
}

static int multipliers_matter(qd_cone_workspace *workspace);
static int kink_is_near(qd_cone_workspace *workspace);

/* Sets the stiffness of every row; 1 if some direction is hard. */
static int set_stiffnesses(qd_cone_workspace *workspace, int active, int scaled) {
  int hard = workspace->program.equality_count > 0;
  workspace->active.hard_penalty = STIFFEST_ROW;
  if (active) {
    hard |= conic_set_active_rows(workspace, workspace->polished.dual, workspace->polished.slack);
  }
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->padded && group->kind != GROUP_EQUALITY; ++c) {
      if (active && !(c < group->count && workspace->active.state[group->cone + c] == CONE_WEAK)) {
        continue;
      }
      if (scaled) {
        copy_path(workspace, group, c);
      } else {
        share_motion(workspace, group->cone + c);
      }
    }
  }
  conic_set_equalities(workspace);
  return hard;
}

/* Factors the system of all right-hand sides. */
static void factor(qd_cone_workspace *workspace, int hard) {
  const int definite = conic_set_is_definite(workspace);
  tiles_assemble(&workspace->system, &workspace->active.rows, definite ? 0.0 : PROXIMAL_SHIFT);
  tiles_factor(&workspace->system);
  list_stiff_blocks(workspace);
  clear_rows(workspace);
  /* one refinement of a soft system, none if its factor is well conditioned */
  const int compliance_rounds = workspace->system.weakest_pivot > WELL_CONDITIONED ? 0 : 1;
  workspace->sensitivity.rounds = hard || !definite ? ROUNDS : compliance_rounds;
}

qd_status conic_sensitivity_prepare(qd_cone_workspace *workspace, int *exact) {
  const settled_set *set = &workspace->settled;
  assert(set->is_known);
  conic_begin_stage(workspace);
  if (workspace->envelope.used) {
    int hard;
    *exact = envelope_settle(workspace, &hard);
    factor(workspace, hard);
    return QD_OK;
  }
  *exact = set->exact;
  factor(workspace, set_stiffnesses(workspace, set->active, set->scaled));
  if (*exact && workspace->program.exact &&
      (kink_is_near(workspace) || multipliers_matter(workspace))) {
    *exact = 0;
  }
  return QD_OK;
}

/* ------------------------------------------------------------ right-hand sides, four at a time */

/* y = A x for each stiff cone, four right-hand sides */
LANES_INLINE void apply4(const qd_cone_workspace *workspace, const cone_operator *A,
                         const double *x, double *y) {
  for (int k = 0; k < workspace->sensitivity.stiff_cone_count; ++k) {
    const stiff_cone *at = &workspace->sensitivity.stiff_cones[k];
    const size_t first = 4 * (size_t)at->slot, step = 4 * (size_t)at->step;
    const lanes x0 = LANES_OF(x + first);
    const double diagonal = A->diagonal[at->cone];
    if (at->dim == 1) {
      LANES_AT(y + first) = diagonal * x0;
      continue;
    }
    const double *u = A->u + at->slot;
    const double cross = A->cross[at->cone], tangent = A->tangent[at->cone];
    lanes t = {0.0, 0.0, 0.0, 0.0};
    for (int i = 1; i < at->dim; ++i) {
      t += u[i * at->step] * LANES_OF(x + first + (size_t)i * step);
    }
    const lanes shared = cross * x0 + (A->along[at->cone] - tangent) * t;
    LANES_AT(y + first) = diagonal * x0 + cross * t;
    for (int i = 1; i < at->dim; ++i) {
      const size_t row = first + (size_t)i * step;
      LANES_AT(y + row) = tangent * LANES_OF(x + row) + u[i * at->step] * shared;
    }
  }
}

/* The caller's row in row i of the loaded program (G, then C), and its sign; -1: none. */
static int caller_row_of(const qd_cone_workspace *workspace, int i, double *sign) {
  const compliant_program *soft = &workspace->soft;
  const int m = workspace->program.row_count;
  *sign = 1.0;
  if (!compliance_is_written(soft)) {
    return i;
  }
  const int own = i < m ? soft->row_from[i] : soft->equality_from[i - m];
  *sign = own >= 0 && own < soft->rows ? soft->row[own].sign : 1.0;
  return own;
}

/* The inverse: the slot of the caller's row i, and its factor; -1: none. */
static int slot_of_caller(const qd_cone_workspace *workspace, int i, double *factor) {
  const compliant_program *soft = &workspace->soft;
  int row = i;
  *factor = 1.0;
  if (compliance_is_written(soft)) {
    const compliant_row *own = i < soft->rows ? soft->row + i : NULL;
    const int place = own ? own->row : i - soft->rows;
    const int is_equality = !own || own->kind == COMPLIANT_EQUALITY;
    *factor = own ? own->sign : 1.0;
    row = place < 0 || !is_equality ? place : workspace->program.row_count + place;
  }
  *factor *= row < 0 ? 1.0 : workspace->program.row_scale[row];
  return row < 0 ? -1 : workspace->program.slot_of[row];
}

/* Columns first .. first + width of the perturbations of stiff blocks' rows; m: the caller's rows.
 */
static void gather_rows(const qd_cone_workspace *workspace, int count, int first, int width, int m,
                        const double *d_slack, const double *d_equality, double *out) {
  for (int b = 0; b < workspace->sensitivity.stiff_count; ++b) {
    const row_block *block = &workspace->system.blocks[workspace->sensitivity.stiff_blocks[b]];
    for (int i = 0; i < block->row_count; ++i) {
      double sign;
      const int row = caller_row_of(workspace, block->first_row + i, &sign), is_slack = row < m;
      const double *given = row < 0 ? NULL : is_slack ? d_slack : d_equality;
      const double factor = sign * workspace->program.row_scale[block->first_row + i];
      const size_t at = (size_t)(is_slack ? row : row - m) * (size_t)count;
      double *to = out + 4 * (size_t)(block->slot + i * block->slot_step);
      for (int k = 0; k < 4; ++k) {
        to[k] = given && k < width ? factor * given[at + (size_t)(first + k)] : 0.0;
      }
    }
  }
}

/* to[0 .. width) = factor from[0 .. width), width at most four */
LANES_INLINE void scale_few(double *to, double factor, const double *from, int width) {
  if (width == 4) {
    LANES_ANYWHERE(to) = factor * LANES_FROM(from);
  } else {
    for (int k = 0; k < width; ++k) {
      to[k] = factor * from[k];
    }
  }
}

static void gather_columns(const qd_cone_workspace *workspace, int count, int first, int width,
                           const double *d_stationarity, double *out) {
  const int n = conic_caller_columns(workspace);
  memset(out, 0, 4 * (size_t)workspace->program.column_count * sizeof(double));
  for (int i = 0; i < workspace->program.column_count; ++i) {
    if (workspace->program.column_of[i] >= 0 && workspace->program.column_of[i] < n) {
      scale_few(out + 4 * i, workspace->program.column_scale[i],
                d_stationarity + workspace->program.column_of[i] * count + first, width);
    }
  }
}

/* dx and scaled multipliers z, ddual = R z. With moved = R d_slack and e = S dx + moved, soft
 * directions require z + e = 0, hard ones e = 0. From any (dx, z) the step is, with q = e (hard), z
 * + e (soft): H step = -d_stationarity - Q dx + S'(z - q),   z <- z - q - S step. It is exact at
 * once for soft directions and repeated until hard ones converge. */
QD_MULTIVERSION
static void solve_four(qd_cone_workspace *workspace, const double *d_stationarity,
                       const double *moved, double *dx, double *z) {
  const tile_system *system = &workspace->system;
  const int columns = 4 * workspace->program.column_count;
  const int *slots = workspace->sensitivity.stiff_slots,
            slot_count = workspace->sensitivity.stiff_slot_count;
  double *step = workspace->sensitivity.block4, *e = workspace->sensitivity.row4,
         *part = workspace->sensitivity.work_row4;
  memset(dx, 0, (size_t)columns * sizeof(double));
  double before = HUGE_VAL;
  for (int k = 0; k < slot_count; ++k) {
    const size_t at = 4 * (size_t)slots[k];
    LANES_AT(e + at) = LANES_OF(moved + at);
    LANES_AT(z + at) = -LANES_OF(moved + at);
  }
  for (int round = 0; round <= workspace->sensitivity.rounds; ++round) {
    tiles_multiply_Q4(system, dx, step);
    for (int i = 0; i < columns; ++i) {
      step[i] = -d_stationarity[i] - step[i];
    }
    if (round > 0) { /* z - q: hard part of z, minus e */
      apply4(workspace, &workspace->active.hard, z, part);
      for (int k = 0; k < slot_count; ++k) {
        const size_t at = 4 * (size_t)slots[k];
        LANES_AT(z + at) = LANES_OF(part + at) - LANES_OF(e + at);
      }
    }
    tiles_add_transposed4(system, workspace->sensitivity.stiff_blocks,
                          workspace->sensitivity.stiff_count, system->S, z, step);
    tiles_solve4(system, step);
    add_scaled(dx, 1.0, step, columns);
    tiles_multiply4(system, workspace->sensitivity.stiff_blocks, workspace->sensitivity.stiff_count,
                    system->S, step, part);
    for (int k = 0; k < slot_count; ++k) {
      const size_t at = 4 * (size_t)slots[k];
      LANES_AT(e + at) += LANES_OF(part + at);
      LANES_AT(z + at) -= LANES_OF(part + at);
    }
    /* the rounds contract geometrically: stop if the next step would be negligible */
    const double now = max_norm(step, columns);
    if (round > 0 && now * now <= NEGLIGIBLE * before * max_norm(dx, columns)) {
      break;
    }
    before = now;
  }
}

/* ------------------------------------------------------------ multipliers that are not unique */

static void fill_random(double *out, int count, uint64_t state) {
  for (int i = 0; i < count; ++i) {
    out[i] = next_random(&state);
  }
}

/* Freedom of sliding cones' multipliers to shift among each other: random moves along hard
 * directions, minus the part that some dx absorbs. Writes relative shifts to product.scratch[0],
 * the largest 1; returns 0 if the multipliers are unique. */
static int find_shift(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  const int slots = 4 * workspace->program.slot_count;
  double *shift = workspace->product.scratch[0], most = 0.0, largest_shift = 0.0, before = 0.0;
  memset(workspace->sensitivity.rhs4, 0,
         4 * (size_t)workspace->program.column_count * sizeof(double));
  memset(workspace->sensitivity.row4, 0, (size_t)slots * sizeof(double));
  fill_random(workspace->sensitivity.work_row4, slots, 1);
  apply4(workspace, &workspace->active.hard, workspace->sensitivity.work_row4,
         workspace->sensitivity.moved4);
  solve_four(workspace, workspace->sensitivity.rhs4, workspace->sensitivity.moved4,
             workspace->sensitivity.x4, workspace->sensitivity.dual4);
  tiles_multiply4(system, workspace->sensitivity.stiff_blocks, workspace->sensitivity.stiff_count,
                  system->S, workspace->sensitivity.x4, workspace->sensitivity.row4);
  for (int k = 0; k < workspace->sensitivity.stiff_slot_count; ++k) {
    const size_t at = 4 * (size_t)workspace->sensitivity.stiff_slots[k];
    before = larger(before, fabs(workspace->sensitivity.moved4[at]));
    LANES_AT(workspace->sensitivity.row4 + at) += LANES_OF(workspace->sensitivity.moved4 + at);
  }
  apply4(workspace, &workspace->active.hard, workspace->sensitivity.row4,
         workspace->sensitivity.work_row4);
  for (int k = 0; k < workspace->sensitivity.stiff_cone_count; ++k) {
    const stiff_cone *at = &workspace->sensitivity.stiff_cones[k];
    const double left = workspace->sensitivity.work_row4[4 * (size_t)at->slot];
    const double root =
        workspace->active.rows.diagonal[at->cone] + workspace->active.rows.cross[at->cone];
    shift[at->cone] = 0.0;
    if (at->dim > 1 && workspace->active.state[at->cone] == CONE_SLIDE) {
      shift[at->cone] = root * left / workspace->polished.dual[at->slot];
      most = larger(most, fabs(left));
      largest_shift = larger(largest_shift, fabs(shift[at->cone]));
    }
  }
  for (int k = 0; k < workspace->sensitivity.stiff_cone_count && largest_shift > 0.0; ++k) {
    shift[workspace->sensitivity.stiff_cones[k].cone] /= largest_shift;
  }
  return most > SLIGHT * before;
}

/* row4 = shift times the part of row4 across the sliding direction */
static void shift_across(qd_cone_workspace *workspace) {
  for (int k = 0; k < workspace->sensitivity.stiff_cone_count; ++k) {
    const stiff_cone *at = &workspace->sensitivity.stiff_cones[k];
    const double *u = workspace->active.rows.u + at->slot;
    const double shift = workspace->product.scratch[0][at->cone];
    double *row = workspace->sensitivity.row4 + 4 * (size_t)at->slot;
    const size_t step = 4 * (size_t)at->step;
    lanes t = {0.0, 0.0, 0.0, 0.0};
    for (int i = 1; i < at->dim; ++i) {
      t += u[i * at->step] * LANES_OF(row + (size_t)i * step);
    }
    LANES_AT(row) = 0.0 * t;
    for (int i = 1; i < at->dim; ++i) {
      LANES_AT(row + (size_t)i * step) =
          shift * (LANES_OF(row + (size_t)i * step) - u[i * at->step] * t);
    }
  }
}

/* 1 if relative changes of beta / alpha, product.scratch[0] of each sliding cone, change the
 * derivative by more than a small share. Tested on a random dx. */
static int ratios_matter(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  const int columns = 4 * workspace->program.column_count;
  const size_t slot_bytes = 4 * (size_t)workspace->program.slot_count * sizeof(double);
  fill_random(workspace->sensitivity.rhs4, columns, 2);
  memset(workspace->sensitivity.moved4, 0, slot_bytes);
  memset(workspace->sensitivity.row4, 0, slot_bytes);
  solve_four(workspace, workspace->sensitivity.rhs4, workspace->sensitivity.moved4,
             workspace->sensitivity.x4, workspace->sensitivity.dual4);
  const double size = max_norm(workspace->sensitivity.x4, columns);
  memset(workspace->sensitivity.row4, 0, slot_bytes);
  tiles_multiply4(system, workspace->sensitivity.stiff_blocks, workspace->sensitivity.stiff_count,
                  system->S, workspace->sensitivity.x4, workspace->sensitivity.row4);
  shift_across(workspace);
  memset(workspace->sensitivity.rhs4, 0, (size_t)columns * sizeof(double));
  tiles_add_transposed4(system, workspace->sensitivity.stiff_blocks,
                        workspace->sensitivity.stiff_count, system->S, workspace->sensitivity.row4,
                        workspace->sensitivity.rhs4);
  memset(workspace->sensitivity.row4, 0, slot_bytes);
  solve_four(workspace, workspace->sensitivity.rhs4, workspace->sensitivity.moved4,
             workspace->sensitivity.x4, workspace->sensitivity.dual4);
  return max_norm(workspace->sensitivity.x4, columns) > SLIGHT * size;
}

/* 1 if the multipliers are not unique and the derivative depends on their choice. Where more cones
 * slide than their body needs, the load may lie on one or the other, and with it the resistance to
 * a turn of the sliding direction (beta / alpha across). Then x is unique, but the derivative is
 * not. A random shift of the load and a random dx detect this. */
static int multipliers_matter(qd_cone_workspace *workspace) {
  int sliding = 0;
  for (int k = 0; k < workspace->sensitivity.stiff_cone_count; ++k) {
    const stiff_cone *at = &workspace->sensitivity.stiff_cones[k];
    sliding += at->dim > 2 && workspace->active.state[at->cone] == CONE_SLIDE;
  }
  return sliding > 1 && find_shift(workspace) && ratios_matter(workspace);
}

/* 1 if a cone hardly slides or hardly presses, and the derivative depends on it. beta / alpha is
 * then no more accurate than the error of the answer relative to them, and any value is possible at
 * the kink, so that the derivative is one of several that the answer cannot distinguish. */
static int kink_is_near(qd_cone_workspace *workspace) {
  double *doubt = workspace->product.scratch[0], most = 0.0;
  const double error = TENFOLD * workspace->polish.error;
  const double force = error * workspace->units.force,
               length = error * workspace->units.near_length;
  for (int k = 0; k < workspace->sensitivity.stiff_cone_count; ++k) {
    const stiff_cone *at = &workspace->sensitivity.stiff_cones[k];
    doubt[at->cone] = 0.0;
    if (at->dim < 3 || workspace->active.state[at->cone] != CONE_SLIDE) {
      continue;
    }
    doubt[at->cone] =
        force / workspace->polished.dual[at->slot] + length / workspace->polished.slack[at->slot];
    most = larger(most, doubt[at->cone]);
  }
  return most > SLIGHT && ratios_matter(workspace);
}

/* ------------------------------------------------------------ the solve */

/* Multipliers of the caller's rows first_row .. from row4; zero for omitted rows. */
static void scatter_duals(const qd_cone_workspace *workspace, int first_row, int row_count,
                          int count, int first, int width, double *out) {
  for (int i = 0; i < row_count; ++i) {
    static const double zero[4] = {0.0, 0.0, 0.0, 0.0};
    double factor;
    const int slot = slot_of_caller(workspace, first_row + i, &factor);
    scale_few(out + i * count + first, factor,
              slot < 0 ? zero : workspace->sensitivity.row4 + 4 * slot, width);
  }
}

void conic_sensitivity_solve(qd_cone_workspace *workspace, const conic_change *change) {
  const int written = compliance_is_written(&workspace->soft), count = change->count;
  const int n = conic_caller_columns(workspace);
  const int m = written ? workspace->soft.rows : workspace->program.row_count;
  const int p = written ? workspace->soft.equalities : workspace->program.equality_count;
  /* rows that are not stiff are never written and stay zero */
  memset(workspace->sensitivity.row4, 0,
         4 * (size_t)workspace->program.slot_count * sizeof(double));
  memset(workspace->sensitivity.moved4, 0,
         4 * (size_t)workspace->program.slot_count * sizeof(double));
  for (int first = 0; first < count; first += 4) {
    const int width = count - first < 4 ? count - first : 4;
    gather_columns(workspace, count, first, width, change->d_stationarity,
                   workspace->sensitivity.rhs4);
    if (change->d_slack || change->d_equality) {
      gather_rows(workspace, count, first, width, m, change->d_slack, change->d_equality,
                  workspace->sensitivity.work_row4);
      apply4(workspace, &workspace->active.rows, workspace->sensitivity.work_row4,
             workspace->sensitivity.moved4);
    }
    solve_four(workspace, workspace->sensitivity.rhs4, workspace->sensitivity.moved4,
               workspace->sensitivity.x4, workspace->sensitivity.dual4);
    for (int i = 0; i < workspace->program.column_count; ++i) {
      if (workspace->program.column_of[i] >= 0 && workspace->program.column_of[i] < n) {
        scale_few(change->dx + workspace->program.column_of[i] * count + first,
                  workspace->program.column_scale[i], workspace->sensitivity.x4 + 4 * i, width);
      }
    }
    if (!change->d_dual && !change->d_dual_eq) {
      continue;
    }
    apply4(workspace, &workspace->active.rows, workspace->sensitivity.dual4,
           workspace->sensitivity.row4);
    if (change->d_dual) {
      scatter_duals(workspace, 0, m, count, first, width, change->d_dual);
    }
    if (change->d_dual_eq) {
      scatter_duals(workspace, m, p, count, first, width, change->d_dual_eq);
    }
  }
}
