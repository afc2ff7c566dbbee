/* What counts as an answer, in the caller's own numbers.
 *
 * The methods judge residuals in scaled columns, in natural units made of all cones together. That
 * can hide a row or a column whose own scale is far smaller; and no method is a witness of itself.
 * So each verdict is checked here against the program as it was given, row by row and column by
 * column (qdsim.h has the definition in words). With d_j the scale of a column, 1 / sqrt(Q_jj) or
 * one over its largest entry where there is no curvature, s the share, and e what counts as zero in
 * rows (tolerance times the length of what they are about, 0 where nobody said):
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
 *     columns   |residual_j| d_j <= s S_j, and no larger beside the largest term as it stands
 *     products  |dual o slack - target| <= s max(S_i R_i, target), and so |dual| |Gx + g - slack|
 *     duals     outside by no more than rounding, or |G_i d| times that <= s S_i
 *
 * Without any b, S is at least R; without b and offsets, R is at least 1. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/structure.h"

#define CERTIFIED 1e-6 /* s at least */
#define PLAIN 1e-12    /* share of the largest numbers of all: then none of their places matters */
#define OFFSET_SHARE 1e-2 /* of the distance to offsets, in R */
#define MOTION_SHARE 1e-3 /* of x, in R */
#define NO_OFFSET 1e-14   /* of how far the cost alone sends x: rounding of zero */
#define FREE_SHARE 1e-8   /* of that, in R, where there is no offset */
#define WEAK_COST 1e3     /* that distance over the one to offsets */
#define EXCLUDED 1e3      /* distances to offsets that a proof of infeasibility covers */
#define ROUNDED 1e-14     /* of a squared head that counts as rounding */
#define TINIEST 1e-290    /* products below are not all there */
#define FAR_APART 1e-4    /* row norms that want scaling */
#define NOTHING 1e-15     /* of the largest offset: what a row without entries may be outside */
#define BARRIER_FLAT 1e-6 /* g'dual beside its terms that counts as zero for a barrier */

/* ------------------------------------------------------------ residuals */

/* row'x over the tiles of its block; four entries at a time, the last tile may be narrower */
LANES_INLINE double row_dot(const qd_cone_workspace *workspace, const row_block *block,
                            const double *row, const double *x) {
  const int n = workspace->program.variable_count;
  double part[4] = {0.0, 0.0, 0.0, 0.0};
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->structure.tile_original[place], width = n - first;
    const double *from = row + workspace->structure.block_from[block->tile_start + k];
    if (width >= 4) {
      for (int j = 0; j < 4; ++j) {
        part[j] += from[j] * x[first + j];
      }
    } else {
      for (int j = 0; j < width; ++j) {
        part[j] += from[j] * x[first + j];
      }
    }
  }
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/* residual -= factor row */
LANES_INLINE void subtract_row(const qd_cone_workspace *workspace, const row_block *block,
                               const double *row, double factor, double *residual) {
  const int n = workspace->program.variable_count;
  for (int k = 0; k < block->tile_count; ++k) {
    const int place = workspace->system.block_tiles[block->tile_start + k];
    const int first = 4 * workspace->structure.tile_original[place], width = n - first;
    const double *from = row + workspace->structure.block_from[block->tile_start + k];
    if (width >= 4) {
      for (int j = 0; j < 4; ++j) {
        residual[first + j] -= factor * from[j];
      }
    } else {
      for (int j = 0; j < width; ++j) {
        residual[first + j] -= factor * from[j];
      }
    }
  }
}

/* w = four rows of a block (at most `left` of them) times x, and residual -= their sum with the
 * weights `dual`. Vectors over columns have whole tiles, in the caller's order; x is zero
 * behind the last column. */
LANES_INLINE void measure_four(const qd_cone_workspace *workspace, const row_block *block,
                               const double *first, size_t stride, int left, const double *x,
                               const double *dual, double *w, double *residual) {
  const double *row[4];
  const int *places = workspace->system.block_tiles + block->tile_start;
  const int *from = workspace->structure.block_from + block->tile_start;
  lanes a0 = {0.0}, a1 = {0.0}, a2 = {0.0}, a3 = {0.0}, sums, load = {0.0};
  for (int k = 0; k < 4; ++k) {
    row[k] = first + (size_t)(k < left ? k : left - 1) * stride;
    load[k] = k < left ? dual[k] : 0.0;
  }
  for (int t = 0; t < block->tile_count; ++t) {
    const lanes at = LANES_OF(x + 4 * (size_t)workspace->structure.tile_original[places[t]]);
    a0 += LANES_FROM(row[0] + from[t]) * at;
    a1 += LANES_FROM(row[1] + from[t]) * at;
    a2 += LANES_FROM(row[2] + from[t]) * at;
    a3 += LANES_FROM(row[3] + from[t]) * at;
  }
  lanes_sums(&sums, &a0, &a1, &a2, &a3);
  for (int k = 0; k < 4 && k < left; ++k) {
    w[k] = sums[k];
  }
  if (load[0] == 0.0 && load[1] == 0.0 && load[2] == 0.0 && load[3] == 0.0) {
    return;
  }
  for (int t = 0; t < block->tile_count; ++t) {
    double *out = residual + 4 * (size_t)workspace->structure.tile_original[places[t]];
    LANES_AT(out) -=
        (load[0] * LANES_FROM(row[0] + from[t]) + load[1] * LANES_FROM(row[1] + from[t])) +
        (load[2] * LANES_FROM(row[2] + from[t]) + load[3] * LANES_FROM(row[3] + from[t]));
  }
}

/* w = rows of a block times x, residual -= rows' dual: `dual` and `w` begin with its first row. */
LANES_INLINE void measure_block(const qd_cone_workspace *workspace, const row_block *block,
                                const double *x, const double *dual, double *w, double *residual) {
  if (conic_reads_in_fours(workspace, block)) {
    const size_t stride = conic_row_stride(workspace, block);
    const double *first = conic_caller_row(workspace, block->first_row);
    for (int i = 0; i < block->row_count; i += 4, first += 4 * stride) {
      measure_four(workspace, block, first, stride, block->row_count - i, x, dual + i, w + i,
                   residual);
    }
    return;
  }
  for (int i = 0; i < block->row_count; ++i) {
    const double *row = conic_caller_row(workspace, block->first_row + i);
    w[i] = row_dot(workspace, block, row, x);
    if (dual[i] != 0.0) {
      subtract_row(workspace, block, row, dual[i], residual);
    }
  }
}

/* A row of Q, whole or in tiles, times x */
LANES_INLINE double Q_row_dot(const row_source *source, int i, int diagonal, int n,
                              const double *x) {
  const double *row = source_row(source, (size_t)i);
  double part[4] = {0.0, 0.0, 0.0, 0.0};
  if (diagonal) {
    const double *own = source_tile(source, i, i / 4);
    return own ? own[i % 4] * x[i] : 0.0;
  }
  if (!source->start) {
    int j = 0;
    for (; j + 4 <= n; j += 4) {
      for (int k = 0; k < 4; ++k) {
        part[k] += row[j + k] * x[j + k];
      }
    }
    for (; j < n; ++j) {
      part[0] += row[j] * x[j];
    }
  } else {
    for (int e = source->start[i]; e < source->start[i + 1]; ++e, row += 4) {
      const int first = 4 * source->tiles[e];
      if (n - first >= 4) {
        for (int k = 0; k < 4; ++k) {
          part[k] += row[k] * x[first + k];
        }
      } else {
        for (int k = 0; k < n - first; ++k) {
          part[0] += row[k] * x[first + k];
        }
      }
    }
  }
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/* Qx + b and the objective */
LANES_INLINE double cost_gradient(const qd_cone_workspace *workspace,
                                  const qd_cone_program *program, const double *x,
                                  double *gradient) {
  const int n = program->variable_count, diagonal = workspace->system.Q_is_diagonal;
  double objective = 0.0;
  for (int i = 0; i < n; ++i) {
    const double Qx = Q_row_dot(&workspace->program.source_Q, i, diagonal, n, x);
    gradient[i] = Qx + program->b[i];
    objective += x[i] * (0.5 * Qx + program->b[i]);
  }
  return objective;
}

/* |a|, where squares neither overflow nor vanish */
LANES_INLINE double norm_of(const double *a, int count) {
  double sum = 0.0, scaled = 0.0;
  for (int i = 0; i < count; ++i) {
    sum += a[i] * a[i];
  }
  if (squares_are_safe(sum)) {
    return sqrt(sum);
  }
  const double largest = max_norm_or_infinity(a, count);
  if (!(largest > 0.0 && largest < HUGE_VAL)) {
    return largest;
  }
  for (int i = 0; i < count; ++i) {
    scaled += (a[i] / largest) * (a[i] / largest);
  }
  return largest * sqrt(scaled);
}

/* What one cone misses: by how much w = Gx + g is outside, and its products. */
typedef struct cone_errors {
  double outside; /* of w, 0 inside */
  double gap;     /* |dual o slack - target| */
  double apart;   /* |dual| |w - slack| */
  double unsure;  /* 0, or NaN */
} cone_errors;

/* Onto the largest so far. */
LANES_INLINE void measure_cone(const double *w, const double *slack, const double *dual, int dim,
                               double target, cone_errors *most) {
  double head = slack[0] * dual[0] - target;
  most->apart = larger(most->apart, fabs((w[0] - slack[0]) * dual[0]));
  for (int i = 1; i < dim; ++i) {
    head += slack[i] * dual[i];
    most->gap = larger(most->gap, fabs(slack[0] * dual[i] + dual[0] * slack[i]));
    most->apart = larger(most->apart, fabs((w[i] - slack[i]) * dual[0]));
  }
  most->gap = larger(most->gap, fabs(head));
  most->outside = larger(most->outside, (dim > 1 ? norm_of(w + 1, dim - 1) : 0.0) - w[0]);
  most->unsure += head * 0.0;
}

/* Cone by cone, of rows w = Gx + g. */
LANES_INLINE void measure_cones(const qd_cone_program *program, const double *w,
                                const double *slack, const double *dual, cone_errors *most) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_dim[k];
    const double target = program->target_mu ? program->target_mu[k] : 0.0;
    if (program->cone_kind[k] == QD_INTERVAL) {
      continue; /* conic/soft.c */
    }
    if (program->cone_kind[k] == QD_LORENTZ) {
      measure_cone(w + row, slack + row, dual + row, dim, target, most);
    } else {
      for (int i = row; i < row + dim; ++i) {
        measure_cone(w + i, slack + i, dual + i, 1, target, most);
      }
    }
  }
}

/* Residuals in the caller's numbers; infinite where one of them is NaN. */
QD_CLONES
void conic_measure(qd_cone_workspace *workspace, const qd_cone_program *program, const double *x,
                   const double *slack, const double *dual, const double *dual_eq,
                   qd_cone_info *info) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  double *residual = workspace->work.x, *whole_x = workspace->work.dx, *w = workspace->work.row2;
  double primal = 0.0;
  cone_errors most = {0.0, 0.0, 0.0, 0.0};
  info->objective = cost_gradient(workspace, program, x, residual);
  for (int k = 0; k < workspace->program.column_count; ++k) {
    whole_x[k] = k < n ? x[k] : 0.0;
  }
  for (int i = 0; i < m + p; ++i) {
    w[i] = 0.0; /* rows left out */
  }
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    const int first = block->first_row;
    measure_block(workspace, block, whole_x, first < m ? dual + first : dual_eq + (first - m),
                  w + first, residual);
  }
  for (int i = 0; i < p; ++i) {
    primal = larger(primal, fabs(w[m + i] + program->c[i]));
  }
  for (int i = 0; i < m; ++i) {
    w[i] += program->g[i];
  }
  measure_cones(program, w, slack, dual, &most);
  const int rows_finite = all_finite(w, m + p), sums_finite = most.unsure == 0.0;
  const int answers_finite = all_finite(slack, m) && all_finite(dual, m) && all_finite(dual_eq, p);
  info->primal_residual = rows_finite ? larger(primal, most.outside) : HUGE_VAL;
  info->dual_residual = max_norm_or_infinity(residual, n);
  info->complementarity = sums_finite && answers_finite ? most.gap : HUGE_VAL;
  workspace->slack_error = most.apart;
}

/* ------------------------------------------------------------ scales */

/* What the program alone gives. */
typedef struct scales {
  double b;                          /* max |b_j| */
  double b_scaled;                   /* max |b_j| d_j */
  double free;                       /* the same where there is curvature */
  double offset;                     /* max |g|, |c| over the largest row norm */
  double reach;                      /* R without x */
  double weakest_row, strongest_row; /* row norms */
  double target;                     /* largest */
} scales;

/* Largest squared row norm of a cone, as the caller has it, in scaled columns. */
static double squared_norm(const qd_cone_workspace *workspace, int cone) {
  const double scale = workspace->program.lane_scale[cone];
  return workspace->program.compliance[cone] / scale / scale; /* the square might overflow */
}

static double norm_of_rows(const qd_cone_workspace *workspace, int cone) {
  return sqrt(squared_norm(workspace, cone));
}

/* Largest and least squared norm of a group's cones. */
LANES_INLINE void note_norms(const qd_cone_workspace *workspace, const cone_group *group,
                             double *strongest, double *weakest) {
  const lanes lane = {0.0, 1.0, 2.0, 3.0}, none = {HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
  for (int c = 0; c < group->padded; c += 4) {
    const lanes scale = LANES_OF(workspace->program.lane_scale + group->cone + c);
    lanes norm = LANES_OF(workspace->program.compliance + group->cone + c) / scale / scale;
    const lane_bits real = lane < (double)(group->count - c);
    for (int k = 0; k < 4; ++k) {
      *strongest = larger(norm[k], *strongest);
    }
    lanes_choose(&norm, &real, &norm, &none);
    for (int k = 0; k < 4; ++k) {
      *weakest = smaller(norm[k], *weakest);
    }
  }
}

QD_CLONES
static scales measure_scales(const qd_cone_workspace *workspace, const qd_cone_program *program) {
  const cone_product *product = &workspace->product;
  scales s = {.weakest_row = HUGE_VAL};
  double strongest = 0.0;
  const int with_push = workspace->ends.count > 0 && workspace->program.exact;
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] < 0) {
      continue;
    }
    const double own = workspace->program.b[k];
    const double b = fabs(with_push ? own - workspace->ends.push[k] : own);
    s.b_scaled = larger(s.b_scaled, b);
    if (workspace->program.definite ||
        conic_curvature(workspace, workspace->program.column_of[k]) > 0.0) {
      s.free = larger(s.free, b);
    }
  }
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    if (group->kind == GROUP_ENDS) {
      continue;
    }
    note_norms(workspace, group, &strongest, &s.weakest_row);
    if (workspace->program.exact || group->kind >= GROUP_EQUALITY) {
      continue;
    }
    for (int c = group->cone; c < group->cone + group->count; ++c) {
      s.target = larger(s.target, product->target[c]);
    }
  }
  const double offset = larger(max_norm(program->g, program->row_count),
                               max_norm(program->c, program->equality_count));
  s.offset = strongest > 0.0 ? offset / sqrt(strongest) : 0.0;
  s.weakest_row = strongest > 0.0 ? sqrt(s.weakest_row) : 0.0;
  s.strongest_row = sqrt(strongest);
  s.reach = OFFSET_SHARE * s.offset;
  if (!workspace->program.exact) {
    s.reach = larger(s.reach, s.free);
  } else if (s.offset <= NO_OFFSET * s.free) {
    s.reach = FREE_SHARE * s.free;
  }
  s.b = with_push ? workspace->ends.largest_push : max_norm(program->b, program->variable_count);
  return s;
}

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
  return dual[0] >= 0.0 && norm_of(dual + 1, dim - 1) <= (1.0 + 0.5 * ROUNDED) * dual[0];
}

/* All multipliers in their cones, but for rounding. */
static int duals_hold(const qd_cone_program *program, const double *dual) {
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

/* term (n): the largest number in each column of Qx + b - G'dual - C'dual_eq */
static void find_terms(const qd_cone_workspace *workspace, const qd_cone_program *program,
                       const double *x, const double *dual, const double *dual_eq, double *term) {
  const int n = program->variable_count, m = program->row_count;
  for (int i = 0; i < n; ++i) {
    term[i] = fabs(program->b[i]);
    for (int tile = 0; 4 * tile < n; ++tile) {
      const double *entry = source_tile(&workspace->program.source_Q, i, tile);
      for (int j = 4 * tile; entry && j < 4 * tile + 4 && j < n; ++j) {
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
    for (int tile = 0; 4 * tile < n; ++tile) {
      const double *entry = source_tile(&workspace->program.source_Q, i, tile);
      for (int j = 4 * tile; entry && j < 4 * tile + 4 && j < n; ++j) {
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

/* Row by row and column by column; what it needs of scratch is free once conic_measure is done. */
static int holds_in_detail(qd_cone_workspace *workspace, const qd_cone_program *program,
                           double share, const scales *s, const cone_point *at,
                           const qd_cone_info *info) {
  const int n = program->variable_count;
  const double *residual = workspace->work.x;
  double *term = workspace->work.dx, *scale = workspace->work.Qx;
  const local_scales local = {workspace->multipliers.penalty, workspace->polish.per_split,
                              workspace->work.residual_x,
                              NOTHING * max_norm(program->g, program->row_count)};
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
  for (int j = 0; j < n; ++j) {
    if (!(fabs(residual[j]) * scale[j] <= share * local.column[j])) {
      return 0;
    }
  }
  return cones_are_satisfied(workspace, program, at, share, &local) &&
         equalities_are_satisfied(workspace, program, at->x, share, &local);
}

int conic_is_certified(qd_cone_workspace *workspace, const qd_cone_program *program,
                       double tolerance, const cone_point *at, const qd_cone_info *info) {
  const double share = larger(CERTIFIED, 10.0 * tolerance);
  const scales s = measure_scales(workspace, program);
  const double plain = PLAIN * s.b_scaled, zero = workspace->units.resolution;
  const double looked = s.strongest_row > 0.0 ? zero / (share * s.strongest_row) : 0.0;
  const double reach = larger(s.reach, looked);
  const double gap = larger(info->complementarity, workspace->slack_error) - share * s.target;
  if (product_is_safe(share, s.b_scaled, reach) &&
      scaled_norm(workspace, workspace->work.x, 0) <= plain && info->dual_residual <= PLAIN * s.b &&
      gap <= (info->polished ? share * s.b_scaled : plain) * reach &&
      info->primal_residual <= larger(share * s.reach * s.weakest_row, zero) &&
      duals_hold(program, at->dual)) {
    return 1;
  }
  return holds_in_detail(workspace, program, share, &s, at, info);
}

/* ------------------------------------------------------------ no point at all */

/* What multipliers say that are to prove that there is no point. */
typedef struct proof_sums {
  double sum, size, force; /* g'dual + c'dual_eq, its largest term, the largest force */
  double moved;            /* |G'dual + C'dual_eq| in scaled columns, summed */
} proof_sums;

static proof_sums sum_proof(const qd_cone_workspace *workspace, const qd_cone_program *program,
                            const double *dual, const double *dual_eq) {
  double *push = workspace->work.x;
  const int m = program->row_count;
  proof_sums proof = {0.0, 0.0, 0.0, 0.0};
  memset(push, 0, (size_t)program->variable_count * sizeof(double));
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int i = 0; i < block->row_count; ++i) {
      const int row = block->first_row + i;
      const double factor = row < m ? dual[row] : dual_eq[row - m];
      const double term = factor * (row < m ? program->g[row] : program->c[row - m]);
      const int cone = block->cone + (block->slot_step == 1 ? i : 0);
      proof.sum += term;
      proof.size = larger(proof.size, fabs(term));
      proof.force = larger(proof.force, fabs(factor) * norm_of_rows(workspace, cone));
      subtract_row(workspace, block, conic_caller_row(workspace, row), factor, push);
    }
  }
  for (int k = 0; k < workspace->program.column_count; ++k) {
    if (workspace->program.column_of[k] >= 0) {
      proof.moved +=
          fabs(push[workspace->program.column_of[k]]) * workspace->program.column_scale[k];
    }
  }
  return proof;
}

/* A multiplier in its cone with G'dual + C'dual_eq = 0 and g'dual + c'dual_eq < 0 excludes every x.
 * In numbers that are rounded: every x that is not EXCLUDED times farther away than offsets and
 * cost send it, offsets of all rows or of those that carry the proof. For a barrier the sum may be
 * zero: then no x lies inside. */
int conic_excludes(const qd_cone_workspace *workspace, const qd_cone_program *program,
                   const double *dual, const double *dual_eq) {
  const scales s = measure_scales(workspace, program);
  if (!duals_hold(program, dual)) {
    return 0;
  }
  const proof_sums p = sum_proof(workspace, program, dual, dual_eq);
  const double rows = p.force > 0.0 ? larger(s.offset, p.size / p.force) : s.offset;
  double reach = EXCLUDED * larger(s.free, rows);
  if (!(p.size > TINIEST && p.size < HUGE_VAL && isfinite(p.sum) && isfinite(p.force))) {
    return 0;
  }
  if (reach == 0.0) {
    reach = EXCLUDED;
  }
  return p.sum + p.moved * reach < 0.0 ||
         (!workspace->program.exact && p.sum <= BARRIER_FLAT * p.size &&
          p.moved <= BARRIER_FLAT * p.force);
}

/* A row without entries is what it is; one that is zero but for the rounding of a difference is
 * zero. */
int conic_find_contradiction(qd_cone_workspace *workspace, const qd_cone_program *program) {
  const int m = program->row_count;
  const double nothing = workspace->program.exact ? -NOTHING * max_norm(program->g, m) : 0.0;
  double *ray = workspace->best.dual;
  if (!workspace->structure.any_empty_row) {
    return 0;
  }
  for (int i = 0; i < program->equality_count; ++i) {
    if (program->c[i] != 0.0 && conic_row_is_empty(workspace, m + i)) {
      memset(ray, 0, (size_t)workspace->program.slot_count * sizeof(double));
      ray[workspace->program.slot_of[m + i]] = program->c[i] > 0.0 ? -1.0 : 1.0;
      return 1;
    }
  }
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    for (int i = row; i < row + program->cone_dim[k]; ++i) {
      if (!conic_cone_is_linear(workspace, program, k) && i > row) {
        break;
      }
      if (i - row >= workspace->program.cone_rows[k] || !(program->g[i] < 0.0) ||
          !conic_row_is_empty(workspace, i)) {
        continue;
      }
      if (program->g[i] >= nothing) {
        workspace->program.g[workspace->program.slot_of[i]] = 0.0;
        continue;
      }
      memset(ray, 0, (size_t)workspace->program.slot_count * sizeof(double));
      ray[workspace->program.slot_of[i]] = 1.0;
      return 1;
    }
  }
  return 0;
}

int conic_cost_is_weak(const qd_cone_workspace *workspace, const qd_cone_program *program) {
  const scales s = measure_scales(workspace, program);
  const double given = s.reach > 0.0 ? s.offset : 1.0; /* R = 1: nothing else says how far */
  return given > 0.0 && s.b_scaled > WEAK_COST * given;
}

int conic_rows_are_far_apart(const qd_cone_workspace *workspace) {
  const cone_product *product = &workspace->product;
  double strongest = 0.0, weakest = HUGE_VAL;
  for (int k = 0; k < product->group_count; ++k) {
    const cone_group *group = &product->groups[k];
    for (int c = group->cone; c < group->cone + group->count; ++c) {
      const double norm = group->kind == GROUP_EQUALITY ? 0.0 : norm_of_rows(workspace, c);
      strongest = larger(strongest, norm);
      weakest = norm > 0.0 ? smaller(weakest, norm) : weakest;
    }
  }
  return weakest < FAR_APART * strongest;
}
