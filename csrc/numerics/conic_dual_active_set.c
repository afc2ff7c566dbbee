/* Dual active set method (Goldfarb, Idnani 1983) with cuts: from the minimiser of the cost, take
 * the most violated row, move the multipliers until it holds or one of theirs vanishes and leaves.
 *
 * Rows are orthant rows, and cuts w_0 + u'w_1 >= 0 of Lorentz cones, u = -w_1 / |w_1| where they
 * are violated. A cone with a single tangent that can move (planar contact) is the intersection of
 * two cuts: then the method ends exactly. Others it only brings near, and the polish takes over.
 *
 * With V = Q^-1 N the images of the active rows N, and N'V = L L', a new row a needs
 *
 *     d = L^-1 N'Q^-1 a,    r = L^-T d,    delta = a'Q^-1 a - d'd:
 *
 * multipliers change at the rate -r, x moves along Q^-1 a - V r, the row's value grows at the rate
 * delta; delta = 0 means that the row depends on the others.
 *
 * A few active rows on a few unknowns cost less than one interior point iteration, many cost more:
 * so there are limits, beyond which the caller follows the path. The answer is only a guess: the
 * polish verifies it, all rows included. */
#include <math.h>
#include <string.h>

#include "numerics/conic_workspace.h"
#include "numerics/lanes.h"

#define START_LIMIT 24   /* violated blocks at the minimiser of the cost: more go along the path */
#define START_WORK 900   /* their number times columns, likewise */
#define ROUND_LIMIT 64   /* rows brought in, and looks at all rows */
#define SATISFIED 1e-12  /* natural lengths, polyhedral programs */
#define NEAR_ENOUGH 1e-2 /* the same where the polish has to finish */
#define DEPENDENT 1e-11  /* of the row's own curvature */

/* A row of an orthant (sign 0), a cut w_0 + sign w_tail (sign +-1), or one along `direction` (tail
 * -1). */
typedef struct face {
  int block, row, tail;
  double sign, value; /* w at the current point, negative if violated */
  double direction[DIMENSION_LIMIT];
} face;

static const face no_face = {-1, 0, 0, 0.0, 0.0, {0.0}};

/* The only row behind the first of a Lorentz block that is not zero: 0 if none, -1 if several. */
static int only_tail(const qd_cone_workspace *workspace, const row_block *block) {
  int tail = 0;
  for (int i = 1; i < block->row_count; ++i) {
    const double *values = workspace->system.G + block->values + 4 * i;
    int any = workspace->g[block->slot + i * block->slot_step] != 0.0;
    for (int k = 0; k < block->tile_count && !any; ++k)
      for (int j = 0; j < 4; ++j) any |= values[4 * k * block->row_count + j] != 0.0;
    if (any && tail > 0) return -1;
    if (any) tail = i;
  }
  return tail;
}

/* tail[block] for every block; 1 if all cones are polyhedral, -1 if a cone is too large for cuts.
 */
static int find_tails(qd_cone_workspace *workspace) {
  int polyhedral = 1;
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    workspace->tail[b] = block->slot_step == 1 ? 0 : only_tail(workspace, block);
    if (workspace->tail[b] >= 0) continue;
    if (block->row_count > DIMENSION_LIMIT) return -1;
    polyhedral = 0;
  }
  return polyhedral;
}

/* The most violated face of a block, relative to the size of its rows, if worse than *worst. Faces
 * above `enough` (slightly negative) count as satisfied. */
LANES_INLINE void worst_face(const qd_cone_workspace *workspace, int b, double enough,
                             const double *w, double *worst, face *found) {
  const row_block *block = &workspace->system.blocks[b];
  if (block->slot_step == 1) {
    for (int i = 0; i < block->row_count; ++i) {
      const double value = w[block->slot + i];
      if (value < enough && value * workspace->row_weight[block->cone + i] < *worst) {
        *worst = value * workspace->row_weight[block->cone + i];
        found->block = b;
        found->row = i;
        found->tail = 0;
        found->sign = 0.0;
        found->value = value;
      }
    }
    return;
  }
  const int tail = workspace->tail[b], step = block->slot_step;
  double side = 0.0, sign = 0.0;
  if (tail > 0) {
    sign = w[block->slot + tail * step] > 0.0 ? -1.0 : 1.0;
    side = sign * w[block->slot + tail * step];
  } else if (tail < 0) {
    for (int i = 1; i < block->row_count; ++i)
      side += w[block->slot + i * step] * w[block->slot + i * step];
    side = -sqrt(side);
  }
  const double value = w[block->slot] + side;
  if (value >= enough || value * workspace->row_weight[block->cone] >= *worst) return;
  *worst = value * workspace->row_weight[block->cone];
  found->block = b;
  found->row = 0;
  found->tail = tail;
  found->sign = sign;
  found->value = value;
  for (int i = 1; i < block->row_count && tail < 0; ++i)
    found->direction[i] = side < 0.0 ? w[block->slot + i * step] / side : 0.0;
}

/* row (columns) of a face */
LANES_INLINE void read_face(const qd_cone_workspace *workspace, const face *f, double *row) {
  const row_block *block = &workspace->system.blocks[f->block];
  memset(row, 0, (size_t)workspace->column_count * sizeof(double));
  for (int k = 0; k < block->tile_count; ++k) {
    const double *values = workspace->system.G + block->values + 4 * (size_t)(k * block->row_count);
    lanes sum = LANES_OF(values + 4 * f->row);
    if (f->tail > 0) sum += f->sign * LANES_OF(values + 4 * f->tail);
    for (int i = 1; f->tail < 0 && i < block->row_count; ++i)
      sum += f->direction[i] * LANES_OF(values + 4 * i);
    LANES_AT(row + 4 * workspace->system.block_tiles[block->tile_start + k]) = sum;
  }
}

LANES_INLINE double dot(const double *a, const double *b, int count) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  for (int i = 0; i < count; i += 4) sum += LANES_OF(a + i) * LANES_OF(b + i);
  return lanes_sum(&sum);
}

LANES_INLINE void add_scaled(double *a, double factor, const double *b, int count) {
  for (int i = 0; i < count; i += 4) LANES_AT(a + i) += factor * LANES_OF(b + i);
}

/* Takes row k out of the factor: rows below move up, and Givens rotations restore the triangle. */
LANES_INLINE void drop_row(active_set *set, int k) {
  const int n = set->count, columns = set->columns;
  for (int i = k + 1; i < n; ++i) {
    double *row = set->factor + (size_t)(i - 1) * ACTIVE_LIMIT;
    memcpy(row, set->factor + (size_t)i * ACTIVE_LIMIT, (size_t)(i + 1) * sizeof(double));
    set->multiplier[i - 1] = set->multiplier[i];
    set->product[i - 1] = set->product[i];
    set->id[i - 1] = set->id[i];
    memcpy(set->directions + (size_t)(i - 1) * DIMENSION_LIMIT,
           set->directions + (size_t)i * DIMENSION_LIMIT, DIMENSION_LIMIT * sizeof(double));
    memcpy(set->rows + (size_t)(i - 1) * (size_t)columns, set->rows + (size_t)i * (size_t)columns,
           (size_t)columns * sizeof(double));
    if (set->images != set->rows)
      memcpy(set->images + (size_t)(i - 1) * (size_t)columns,
             set->images + (size_t)i * (size_t)columns, (size_t)columns * sizeof(double));
  }
  set->count = n - 1;
  for (int j = k; j < n - 1; ++j) { /* row j has one entry too many, at j + 1 */
    double *pivot = set->factor + (size_t)j * ACTIVE_LIMIT;
    const double size = sqrt(pivot[j] * pivot[j] + pivot[j + 1] * pivot[j + 1]);
    const double cosine = pivot[j] / size, sine = pivot[j + 1] / size;
    /* two passes: side by side, the pair of a sum and a difference becomes one fused instruction in
     * gcc 12, -ffp-contract=off or not, and bits would depend on the instruction set */
    double *kept = set->rate, *moved = set->reduced;
    for (int i = j + 1; i < n - 1; ++i) {
      const double *row = set->factor + (size_t)i * ACTIVE_LIMIT;
      kept[i] = cosine * row[j] + sine * row[j + 1];
    }
    for (int i = j + 1; i < n - 1; ++i) {
      const double *row = set->factor + (size_t)i * ACTIVE_LIMIT;
      moved[i] = cosine * row[j + 1] - sine * row[j];
    }
    for (int i = j + 1; i < n - 1; ++i) {
      double *row = set->factor + (size_t)i * ACTIVE_LIMIT;
      row[j] = kept[i];
      row[j + 1] = moved[i];
    }
    pivot[j] = size;
    pivot[j + 1] = 0.0;
    set->reciprocal[j] = 1.0 / size;
  }
}

/* d = L^-1 product (product = N'image), rate = L^-T d; returns the curvature left for the new row.
 * Rows of the factor are zero behind their diagonal, so that dots may run to the next multiple of
 * four. */
LANES_INLINE double solve_rates(active_set *set, double own) {
  const int n = set->count;
  double *restrict reduced = set->reduced, *restrict rate = set->rate;
  memset(reduced, 0, ACTIVE_LIMIT * sizeof(double));
  for (int i = 0; i < n; ++i) {
    const double *row = set->factor + (size_t)i * ACTIVE_LIMIT;
    reduced[i] = (set->product[i] - dot(row, reduced, (i + 3) / 4 * 4)) * set->reciprocal[i];
    own -= reduced[i] * reduced[i];
    rate[i] = reduced[i];
  }
  for (int i = n - 1; i >= 0; --i) {
    const double *restrict row = set->factor + (size_t)i * ACTIVE_LIMIT;
    rate[i] *= set->reciprocal[i];
    for (int j = 0; j < i; ++j) rate[j] -= row[j] * rate[i];
  }
  return own;
}

/* Brings one violated face into the set; 0 if that cannot be done (no room, or infeasible). */
LANES_INLINE int bring_in(qd_cone_workspace *workspace, active_set *set, face *f, double *x) {
  const int columns = set->columns;
  double *row = set->rows + (size_t)set->count * (size_t)columns, *image = row;
  read_face(workspace, f, row);
  if (set->images != set->rows) {
    image = set->images + (size_t)set->count * (size_t)columns;
    memcpy(image, row, (size_t)columns * sizeof(double));
    tiles_solve(&workspace->system, image);
  }
  const double own = dot(row, image, columns);
  for (int i = 0; i < set->count; ++i)
    set->product[i] = dot(set->rows + (size_t)i * (size_t)columns, image, columns);
  double multiplier = 0.0;
  for (;;) {
    const double curvature = solve_rates(set, own);
    const int independent = curvature > DEPENDENT * own;
    double step = independent ? -f->value / curvature : HUGE_VAL;
    int leaving = -1;
    for (int i = 0; i < set->count; ++i)
      if (set->rate[i] > 0.0 && set->multiplier[i] < step * set->rate[i]) {
        step = set->multiplier[i] / set->rate[i];
        leaving = i;
      }
    if (step == HUGE_VAL || (leaving < 0 && set->count + 1 >= ACTIVE_LIMIT)) return 0;
    for (int i = 0; i < set->count; ++i) set->multiplier[i] -= step * set->rate[i];
    multiplier += step;
    if (independent) {
      add_scaled(x, step, image, columns);
      for (int i = 0; i < set->count; ++i)
        add_scaled(x, -step * set->rate[i], set->images + (size_t)i * (size_t)columns, columns);
      f->value += step * curvature;
    }
    if (leaving < 0) {
      double *last = set->factor + (size_t)set->count * ACTIVE_LIMIT;
      memcpy(last, set->reduced, ACTIVE_LIMIT * sizeof(double)); /* zero behind count */
      last[set->count] = sqrt(curvature);
      set->reciprocal[set->count] = 1.0 / last[set->count];
      set->multiplier[set->count] = multiplier;
      set->id[set->count] = (face_id){f->block, f->row, f->tail, f->sign};
      memcpy(set->directions + (size_t)set->count * DIMENSION_LIMIT, f->direction,
             sizeof f->direction);
      set->count += 1;
      return 1;
    }
    drop_row(set, leaving);
    memcpy(set->rows + (size_t)set->count * (size_t)columns, row, (size_t)columns * sizeof(double));
    row = set->rows + (size_t)set->count * (size_t)columns;
    if (set->images != set->rows) {
      memcpy(set->images + (size_t)set->count * (size_t)columns, image,
             (size_t)columns * sizeof(double));
      image = set->images + (size_t)set->count * (size_t)columns;
    } else {
      image = row;
    }
  }
}

/* Multipliers into the workspace's iterate, and x = x0 + V multipliers, without the rounding that
 * piled up on the way. */
static void write_back(qd_cone_workspace *workspace, const active_set *set, const double *x0) {
  memcpy(workspace->x, x0, (size_t)set->columns * sizeof(double));
  for (int k = 0; k < set->count; ++k)
    add_scaled(workspace->x, set->multiplier[k], set->images + (size_t)k * (size_t)set->columns,
               set->columns);
  memset(workspace->dual, 0, (size_t)workspace->slot_count * sizeof(double));
  for (int k = 0; k < set->count; ++k) {
    const face_id *id = &set->id[k];
    const row_block *block = &workspace->system.blocks[id->block];
    workspace->dual[block->slot + id->row * block->slot_step] += set->multiplier[k];
    if (id->tail > 0)
      workspace->dual[block->slot + id->tail * block->slot_step] += id->sign * set->multiplier[k];
    for (int i = 1; id->tail < 0 && i < block->row_count; ++i)
      workspace->dual[block->slot + i * block->slot_step] +=
          set->directions[(size_t)k * DIMENSION_LIMIT + (size_t)i] * set->multiplier[k];
  }
}

QD_CLONES
int conic_dual_active_set(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  active_set *set = &workspace->active;
  double *w = workspace->rhs, *x = workspace->x, *x0 = workspace->newton_x;
  int near_count = 0;
  if (!workspace->definite || workspace->equality_count > 0) return 0;
  const int polyhedral = find_tails(workspace);
  if (polyhedral < 0) return 0;
  set->count = 0;
  memcpy(x0, x, (size_t)workspace->column_count * sizeof(double));
  set->columns = workspace->column_count;
  if (system->Q_is_diagonal)
    set->images = set->rows;
  else
    set->images = workspace->active_images;
  for (int c = 0; c < workspace->lane_count; ++c)
    workspace->row_weight[c] =
        workspace->compliance[c] > 0.0 ? 1.0 / sqrt(workspace->compliance[c]) : HUGE_VAL;
  const double enough = -(polyhedral ? SATISFIED : NEAR_ENOUGH) * workspace->length;
  for (int b = 0; b < system->block_count; ++b) { /* w: rows at the minimiser of the cost */
    double worst = 0.0;
    face found = no_face;
    workspace->is_near[b] = 0;
    worst_face(workspace, b, enough, w, &worst, &found);
    if (worst == 0.0) continue;
    workspace->is_near[b] = 1;
    workspace->near_blocks[near_count++] = b;
  }
  if (near_count > START_LIMIT || near_count * set->columns > START_WORK) return 0;
  for (int round = 0; round < ROUND_LIMIT; ++round) {
    double worst = 0.0;
    face found = no_face;
    for (int k = 0; k < near_count; ++k)
      worst_face(workspace, workspace->near_blocks[k], enough, w, &worst, &found);
    if (worst == 0.0) { /* none nearby: look at all */
      int added = 0;
      tiles_multiply(system, system->G, x, w);
      for (int i = 0; i < workspace->slot_count; ++i) w[i] += workspace->g[i];
      for (int b = 0; b < system->block_count; ++b) {
        double own = 0.0;
        face violated = no_face;
        worst_face(workspace, b, enough, w, &own, &violated);
        if (own == 0.0) continue;
        if (!workspace->is_near[b]) {
          workspace->is_near[b] = 1;
          workspace->near_blocks[near_count++] = b;
        }
        ++added;
      }
      if (added == 0) {
        write_back(workspace, set, x0);
        return 1;
      }
      continue;
    }
    if (worst == -HUGE_VAL || !bring_in(workspace, set, &found, x)) return 0;
    tiles_multiply_blocks(system, workspace->near_blocks, near_count, system->G, x, w);
    for (int k = 0; k < near_count; ++k) {
      const row_block *block = &system->blocks[workspace->near_blocks[k]];
      for (int i = 0; i < block->row_count; ++i) {
        const int at = block->slot + i * block->slot_step;
        w[at] += workspace->g[at];
      }
    }
  }
  return 0;
}
