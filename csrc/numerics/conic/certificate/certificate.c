/* What counts as an answer, in the caller's own numbers.
 *
 * The methods judge residuals in scaled columns, in natural units made of all cones together. That
 * can hide a row or a column whose own scale is far smaller; and no method is a witness of itself.
 * So each verdict is checked here against the program as it was given, row by row and column by
 * column (qdsim/solvers.h has the definition in words). With d_j the scale of a column, 1 /
 * sqrt(Q_jj) or one over its largest entry where there is no curvature, s the share, and e what
 * counts as zero in rows (tolerance times the length of what they are about, 0 where nobody said):
 *
 *     R_i = largest of 0.1 % of |x_j| / d_j over columns of row (or cone) i, of e / (s |G_i d|) and
 *         of 1 % of o, the largest offset |g|, |c| over the largest row norm |G_i d|: how far x
 * goes, or might; S_i = largest d_j |term| over these columns, of any term of Qx + b - G'dual -
 * C'dual_eq; S_j of a column: the largest S_i of the rows that it is part of.
 *
 * What is far away, or as heavy, in another part of the program does not count. How far the cost
 * alone sends x, f = max |b_j| d_j where there is curvature, is no measure: in nearly linear
 * programs that is far beyond rows. But where o is rounding of f, R is f / 1e8, and of a barrier f
 * at least.
 *
 *     rows      outside by no more than s max(|g_i|, |G_i d| R_i), or e, or rounding of the
 *               largest |g|
 *     columns   |residual_j| d_j <= s S_j, and no larger beside the largest term as it stands; or
 *               rounding of the forces that springs of intervals' rows are a difference of, or of
 *               the largest S of all columns that rows and Q connect with it
 *     products  |dual o slack - target| <= s max(S_i R_i, target), and so |dual| |Gx + g - slack|
 *     gap       the products' sum <= s times the terms of objective and dual objective, or rounding
 *               (1e-12) of the sum of S_i R_i; not where e says what rows are about
 *     duals     outside by no more than rounding, or |G_i d| times that <= s S_i
 *
 * Without any b, S is at least R; without b and offsets, R is at least 1. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/measure.h"
#include "numerics/conic/certificate/scales.h"

/* ------------------------------------------------------------ multipliers */

static double least(const double *values, int count) {
  double low = HUGE_VAL;
  for (int i = 0; i < count; ++i) {
    low = smaller(low, values[i]);
  }
  return low;
}

/* How far a multiplier is outside its cone. */
static double outside(const double *dual, int dim) {
  return larger(norm_of(dual + 1, dim - 1) - dual[0], 0.0);
}

/* 1 if a multiplier lies in its cone, but for the rounding of its numbers. */
static int is_in_cone(const double *dual, int dim) {
  return dual[0] >= 0.0 && norm_of(dual + 1, dim - 1) <= (1.0 + 0.5 * SUM_ROUNDING) * dual[0];
}

/* All multipliers in their cones, but for rounding. */
int duals_hold(const qd_cone_program *program, const double *dual) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int linear = program->cone_kind[k] == QD_ORTHANT, dim = program->cone_dim[k];
    if (program->cone_kind[k] == QD_INTERVAL) {
      continue;
    }
    if (!(linear ? least(dual + row, dim) >= 0.0 : is_in_cone(dual + row, dim))) {
      return 0;
    }
  }
  return 1;
}

/* ------------------------------------------------------------ columns */

static void note_terms(const qd_cone_workspace *workspace, const row_block *block,
                       const double *row, double factor, double *term) {
  const int n = workspace->program.variable_count;
  for (int k = 0; k < block->tile_count; ++k) {
    const int first =
        4 *
        workspace->structure.tile_original[workspace->system.block_tiles[block->tile_start + k]];
    const double *from = row + workspace->structure.block_from[block->tile_start + k];
    for (int j = 0; j < 4 && first + j < n; ++j) {
      term[first + j] = larger(term[first + j], fabs(from[j] * factor));
    }
  }
}

/* Tiles of row i of Q, in turn: the k-th one, -1 behind the last. */
static int tile_of_Q(const qd_cone_workspace *workspace, int i, int k) {
  const row_source *Q = &workspace->program.source_Q;
  if (!Q->start) {
    return 4 * k < workspace->program.variable_count ? k : -1;
  }
  return k < Q->start[i + 1] - Q->start[i] ? Q->tiles[Q->start[i] + k] : -1;
}

/* term (n): the largest number in each column of Qx + b - G'dual - C'dual_eq */
static void find_terms(const qd_cone_workspace *workspace, const qd_cone_program *program,
                       const double *x, const double *dual, const double *dual_eq, double *term) {
  const int n = program->variable_count, m = program->row_count;
  for (int i = 0; i < n; ++i) {
    term[i] = fabs(program->b[i]);
    const double *entry = source_row(&workspace->program.source_Q, (size_t)i);
    for (int k = 0, tile; (tile = tile_of_Q(workspace, i, k)) >= 0; ++k, entry += 4) {
      for (int j = 4 * tile; j < 4 * tile + 4 && j < n; ++j) {
        term[i] = larger(term[i], fabs(entry[j - 4 * tile] * x[j]));
      }
    }
  }
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int row = block->first_row; row < block->first_row + block->row_count; ++row) {
      note_terms(workspace, block, conic_caller_row(workspace, row),
                 row < m ? dual[row] : dual_eq[row - m], term);
    }
  }
}

/* max |value_j| d_j (or / d_j) */
static double scaled_norm(const qd_cone_workspace *workspace, const double *value, int divide) {
  double worst = 0.0;
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      const double v = fabs(value[workspace->program.column_of[k]]),
                   d = workspace->program.column_scale[k];
      worst = larger(worst, divide ? v / d : v * d);
    }
  }
  return worst;
}

/* Whether a product of these is a number with all its digits, or rightly zero: what overflows is
 * above every residual, and what vanishes hides them. */
static int product_is_safe(double share, double force, double reach) {
  const double product = share * force * reach;
  return force == 0.0 || reach == 0.0 ? product == 0.0 : product > TINIEST && product < HUGE_VAL;
}

/* ------------------------------------------------------------ row by row */

/* What residuals are compared with: over cones, and over columns in the caller's order. */
typedef struct local_scales {
  double *reach, *force; /* R_i, S_i */
  double *column;        /* S_j */
  double rounding;       /* of the largest offset */
} local_scales;

/* A row's columns: onto the reach and force of its cone, or the cone's force onto the columns. */
static void visit_row(const qd_cone_workspace *workspace, const row_block *block, int i,
                      const double *scale, const double *x, const double *term, int back,
                      const local_scales *out) {
  const int cone = block->cone + (block->slot_step == 1 ? i : 0);
  const double *row = conic_caller_row(workspace, block->first_row + i);
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->structure.tile_original[place];
    const double *from = row + workspace->structure.block_from[block->tile_start + k];
    for (int j = first; j < first + 4 && j < workspace->program.variable_count; ++j) {
      if (from[j - first] == 0.0) {
        continue;
      }
      if (back) {
        out->column[j] = larger(out->column[j], out->force[cone]);
      } else {
        out->reach[cone] = larger(out->reach[cone], MOTION_SHARE * fabs(x[j]) / scale[j]);
        out->force[cone] = larger(out->force[cone], term[j] * scale[j]);
      }
    }
  }
}

/* R_i, S_i and S_j from x and the largest terms, at least `reach` and `force`. */
static void find_local_scales(const qd_cone_workspace *workspace, const double *scale,
                              const double *x, const double *term, double reach, double force,
                              const local_scales *out) {
  const int n = workspace->program.variable_count;
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    out->reach[c] = reach;
    out->force[c] = force;
  }
  for (int j = 0; j < n; ++j) {
    out->column[j] = larger(term[j] * scale[j], force);
  }
  for (int i = 0; i < n; ++i) {
    const double *entry = source_row(&workspace->program.source_Q, (size_t)i);
    for (int k = 0, tile; (tile = tile_of_Q(workspace, i, k)) >= 0; ++k, entry += 4) {
      for (int j = 4 * tile; j < 4 * tile + 4 && j < n; ++j) {
        if (entry[j - 4 * tile] != 0.0) {
          out->column[i] = larger(out->column[i], term[j] * scale[j]);
        }
      }
    }
  }
  for (int back = 0; back < 2; ++back) {
    for (int b = 0; b < workspace->system.block_count; ++b) {
      const row_block *block = &workspace->system.blocks[b];
      for (int i = 0; i < block->row_count; ++i) {
        visit_row(workspace, block, i, scale, x, term, back, out);
      }
    }
  }
}

/* Of columns whose residual is too large beside their own terms: whether it is rounding of those
 * that rows and Q connect them with. What no number of a column exceeds is often what elimination
 * has left of numbers that are far larger. Other columns' residuals are zero here. */
static int is_rounding(const qd_cone_workspace *workspace, const double *residual,
                       const double *scale, const double *x, double *term,
                       const local_scales *local) {
  const int n = workspace->program.variable_count;
  int spreads = 1;
  for (int ring = 0; ring < n && spreads; ++ring) {
    spreads = 0;
    for (int j = 0; j < n; ++j) {
      spreads |= local->column[j] > (1.0 + CALLERS_ROUNDING) * (term[j] * scale[j]);
      term[j] = local->column[j] / scale[j];
    }
    find_local_scales(workspace, scale, x, term, 0.0, 0.0, local);
  }
  for (int j = 0; j < n; ++j) {
    if (!(fabs(residual[j]) * scale[j] <= LAST_DIGITS * local->column[j])) {
      return 0;
    }
  }
  return 1;
}

/* One cone, or one row of an orthant. */
static int cone_holds(const qd_cone_workspace *workspace, const qd_cone_program *program,
                      const cone_point *at, int row, int dim, double target, double share,
                      const local_scales *local) {
  const int lane = conic_lane_of(workspace, row);
  const double norm = norm_of_rows(workspace, lane), force = local->force[lane];
  const double zero = workspace->units.resolution, moved = share * local->reach[lane];
  const double reach = larger(moved, norm > 0.0 ? zero / norm : 0.0);
  const double *dual = at->dual + row, *w = workspace->work.row2 + row;
  const double *slack = norm > 0.0 ? at->slack + row : w; /* no x moves what is left of it */
  cone_errors found = {0.0, 0.0, 0.0, 0.0};
  measure_cone(w, slack, dual, dim, target, &found);
  const double offset = larger(share * max_norm(program->g + row, dim), local->rounding);
  /* an exact row without entries whose offset is rounding of zero: any multiplier */
  const int is_nothing = norm == 0.0 && target == 0.0 && max_norm(w, dim) <= local->rounding;
  return found.outside <= larger(larger(moved * norm, zero), offset) &&
         (is_nothing || larger(found.gap, found.apart) <= force * reach + share * target) &&
         (is_in_cone(dual, dim) || outside(dual, dim) * norm <= share * force);
}

static int cones_are_satisfied(const qd_cone_workspace *workspace, const qd_cone_program *program,
                               const cone_point *at, double share, const local_scales *local) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    if (program->cone_kind[k] == QD_INTERVAL) {
      continue;
    }
    const int dim = program->cone_kind[k] == QD_ORTHANT ? 1 : program->cone_dim[k];
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    for (int i = row; i < row + program->cone_dim[k]; i += dim) {
      if (workspace->program.slot_of[i] >= 0 &&
          !cone_holds(workspace, program, at, i, dim, target, share, local)) {
        return 0;
      }
    }
  }
  return 1;
}

static int equalities_are_satisfied(const qd_cone_workspace *workspace,
                                    const qd_cone_program *program, const double *x, double share,
                                    const local_scales *local) {
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int row = block->first_row; row < block->first_row + block->row_count; ++row) {
      if (row < program->row_count) {
        continue;
      }
      const double c = program->c[row - program->row_count];
      const double reach =
          local->reach[conic_lane_of(workspace, row)] / workspace->program.row_scale[row];
      const double out = fabs(row_dot(workspace, block, conic_caller_row(workspace, row), x) + c);
      if (!(out <= larger(share * larger(fabs(c), reach), workspace->units.resolution))) {
        return 0;
      }
    }
  }
  return 1;
}

/* Of forces in column j that intervals' rows have with a compliance: small differences of numbers
 * that are no terms of the column, of x or as far as offsets say that it might go. */
static double spring_rounding(const qd_cone_workspace *workspace, int j, double far) {
  return workspace->ends.count > 0 ? LAST_DIGITS * workspace->ends.spring[j] * far : 0.0;
}

/* Row by row and column by column; what it needs of scratch is free once conic_measure is done. */
static int holds_in_detail(qd_cone_workspace *workspace, const qd_cone_program *program,
                           double share, const scales *s, const cone_point *at,
                           const qd_cone_info *info) {
  const int n = program->variable_count;
  double *residual = workspace->work.x;
  double *term = workspace->work.dx, *scale = workspace->work.Qx;
  conic_begin_stage(workspace);
  const local_scales local = {workspace->certificate.reach, workspace->certificate.force,
                              workspace->work.residual_x,
                              LAST_DIGITS * max_norm(program->g, program->row_count)};
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      scale[workspace->program.column_of[k]] = workspace->program.column_scale[k];
    }
  }
  find_terms(workspace, program, at->x, at->dual, at->dual_eq, term);
  const double reach = s->reach == 0.0 && workspace->units.resolution == 0.0
                           ? larger(scaled_norm(workspace, at->x, 1), 1.0)
                           : s->reach;
  const double force = s->b > 0.0 ? 0.0 : larger(reach, scaled_norm(workspace, at->x, 1));
  if (s->b > 0.0 && info->dual_residual > share * max_norm(term, n)) {
    return 0;
  }
  if (!product_is_safe(share, larger(force, scaled_norm(workspace, term, 0)),
                       larger(reach, scaled_norm(workspace, at->x, 1)))) {
    return 0;
  }
  find_local_scales(workspace, scale, at->x, term, reach, force, &local);
  int any_left = 0;
  for (int j = 0; j < n; ++j) {
    const double far = larger(fabs(at->x[j]), reach * scale[j]);
    const double rounding = spring_rounding(workspace, j, far);
    if (fabs(residual[j]) * scale[j] <= larger(share * local.column[j], rounding * scale[j])) {
      residual[j] = 0.0;
    } else {
      any_left = 1;
    }
  }
  return cones_are_satisfied(workspace, program, at, share, &local) &&
         equalities_are_satisfied(workspace, program, at->x, share, &local) &&
         (!any_left || is_rounding(workspace, residual, scale, at->x, term, &local));
}

/* The largest that forces of intervals ask of a column, scaled and in the caller's numbers, or b.
 */
static void raise_to_pull(qd_cone_workspace *workspace, const double *dual, double *scaled,
                          double *own) {
  double *force = workspace->work.row, *pull = workspace->work.Qx; /* padded lanes stay zero */
  for (int i = 0; i < workspace->program.row_count; ++i) {
    if (conic_is_interval_row(workspace, i)) {
      force[workspace->program.slot_of[i]] = dual[i];
    }
  }
  conic_zero_columns(workspace, pull);
  tiles_add_transposed(&workspace->system, workspace->system.G, force, pull);
  conic_zero_slots(workspace, force);
  for (int k = 0; k < workspace->program.column_count; ++k) {
    *scaled = larger(*scaled, fabs(pull[k]));
    *own = larger(*own, fabs(pull[k]) / workspace->program.column_scale[k]);
  }
}

/* The largest value that the sum of the products can have. */
static double natural_gap(const qd_cone_workspace *workspace, const qd_cone_program *program) {
  double natural = 0.0;
  for (int i = 0; i < program->row_count; ++i) {
    if (workspace->program.slot_of[i] >= 0) {
      const int lane = conic_lane_of(workspace, i);
      natural += workspace->certificate.reach[lane] * workspace->certificate.force[lane];
    }
  }
  return natural;
}

/* Whether the duality gap, the sum of an exact program's products, is at most `rounding`, or small
 * beside the terms of the objective and of its dual, -1/2 x'Qx - g'dual - c'dual_eq. Products that
 * are small row by row are not enough: the objective may be far smaller than these. */
static int gap_is_small(const qd_cone_workspace *workspace, const qd_cone_program *program,
                        double share, double rounding, const cone_point *at, double objective) {
  const double *w = workspace->work.row2;
  double sum = 0.0, linear = 0.0, size = 0.0;
  for (int i = 0; i < program->row_count; ++i) {
    sum += w[i] * at->dual[i];
    size += fabs(program->g[i] * at->dual[i]);
  }
  for (int i = 0; i < program->equality_count; ++i) {
    size += fabs(program->c[i] * at->dual_eq[i]);
  }
  for (int j = 0; j < program->variable_count; ++j) {
    linear += program->b[j] * at->x[j];
    size += fabs(program->b[j] * at->x[j]);
  }
  size += fabs(2.0 * (objective - linear));
  return fabs(sum) <= larger(share * size, rounding);
}

int conic_is_certified(qd_cone_workspace *workspace, const qd_cone_program *program,
                       double tolerance, const cone_point *at, const qd_cone_info *info) {
  const double share = larger(SLIGHT, 10.0 * tolerance);
  const scales s = measure_scales(workspace, program);
  const double zero = workspace->units.resolution;
  double asked = s.b_scaled, b = s.b;
  if (workspace->ends.count > 0 && !workspace->program.exact) {
    raise_to_pull(workspace, at->dual, &asked, &b);
  }
  const double plain = NEGLIGIBLE * asked;
  const double looked = s.strongest_row > 0.0 ? zero / (share * s.strongest_row) : 0.0;
  const double reach = larger(s.reach, looked);
  const double gap = larger(info->complementarity, workspace->slack_error) - share * s.target;
  const int is_step = zero > 0.0, has_gap = workspace->program.exact && workspace->ends.count == 0;
  const int judges_gap = !is_step && has_gap;
  if (product_is_safe(share, s.b_scaled, reach) &&
      scaled_norm(workspace, workspace->work.x, 0) <= plain &&
      info->dual_residual <= NEGLIGIBLE * b &&
      gap <= (info->polished ? share * s.b_scaled : plain) * reach &&
      info->primal_residual <= larger(share * s.reach * s.weakest_row, zero) &&
      duals_hold(program, at->dual)) {
    if (!judges_gap || workspace->certificate.any_gap ||
        gap_is_small(workspace, program, share, 0.0, at, info->objective)) {
      return 1;
    }
    workspace->certificate.gap_was_large = 1;
  }
  if (!holds_in_detail(workspace, program, share, &s, at, info)) {
    return 0;
  }
  return !judges_gap ||
         gap_is_small(workspace, program, share, NEGLIGIBLE * natural_gap(workspace, program), at,
                      info->objective);
}
