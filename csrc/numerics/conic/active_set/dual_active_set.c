/* Dual active-set method (Goldfarb, Idnani 1983) with cuts: starting from the minimiser of the
 * cost, it takes the most violated row and moves the multipliers until the row holds, or until
 * another multiplier vanishes and its row is removed.
 *
 * Rows are orthant rows, and cuts w_0 + u'w_1 >= 0 of Lorentz cones, u = -w_1 / |w_1| at the
 * violated point. A cone with a single movable tangent (planar contact) is the intersection of two
 * cuts; if all are of that kind, the method ends exactly, at a vertex of the multipliers. Otherwise
 * it only comes near the solution, and the polish finishes.
 *
 * A few active rows on a few unknowns cost less than one interior point iteration, many cost more.
 * So there are limits, beyond which the caller follows the path. The answer is only a guess: the
 * polish verifies it, with all rows. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/active_set/active_set.h"
#include "numerics/conic/program/structure.h"
#include "numerics/vectors.h"

/* The only nonzero row behind the head of a Lorentz block: 0 if none, -1 if several. */
static int only_tail(const qd_cone_workspace *workspace, const row_block *block) {
  int tail = 0;
  for (int i = 1; i < block->row_count; ++i) {
    const uint64_t *mask = conic_row_mask(workspace, block->first_row + i);
    int is_zero = workspace->program.g[block->slot + i * block->slot_step] == 0.0;
    for (int w = 0; w < workspace->structure.mask_words; ++w) {
      is_zero &= mask[w] == 0;
    }
    if (is_zero) {
      continue;
    }
    if (tail > 0) {
      return -1;
    }
    tail = i;
  }
  return tail;
}

/* Sets tail[block] for every block; 1 if all cones are polyhedral, -1 if a cone is too large for
 * cuts. `quads`: quads of near_rows per Lorentz cone. */
static int find_tails(qd_cone_workspace *workspace, int *quads) {
  int polyhedral = 1;
  *quads = 1;
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    workspace->cuts.tail[b] = block->slot_step == 1 ? 0 : only_tail(workspace, block);
    if (block->slot_step > 1 && block->row_count > 4) {
      *quads = 2;
    }
    if (block->slot_step > 1 && block->row_count > DIMENSION_LIMIT) {
      return -1;
    }
    polyhedral &= workspace->cuts.tail[b] >= 0;
  }
  return polyhedral;
}

/* ------------------------------------------------------------ near blocks */

/* Constants of all rounds. */
typedef struct cuts {
  qd_cone_workspace *workspace;
  active_set *set;
  int polyhedral, quads;
  int near_count, limit; /* blocks */
  double enough;         /* slacks above this slightly negative limit count as satisfied */
} cuts;

/* Distance of a Lorentz cone's slack inside the cone. */
LANES_INLINE double inside(const row_block *block, const double *w) {
  double sum = 0.0;
  for (int i = 1; i < block->row_count; ++i) {
    const double value = w[block->slot + i * block->slot_step];
    sum += value * value;
  }
  return w[block->slot] - sqrt(sum);
}

/* Quads of a block that the slacks w violate, one bit each. */
LANES_INLINE int violated_quads(const row_block *block, double enough, const double *w, int quads) {
  if (block->slot_step > 1) {
    return inside(block, w) < enough ? (1 << quads) - 1 : 0;
  }
  int any = 0, i = 0;
  for (; i + 4 <= block->row_count; i += 4) {
    const lane_bits below = LANES_FROM(w + block->slot + i) < enough;
    any |= (int)(((below[0] | below[1]) | (below[2] | below[3])) & 1) << i / 4;
  }
  for (; i < block->row_count; ++i) {
    any |= (w[block->slot + i] < enough) << i / 4;
  }
  return any;
}

/* Adds far quads that the slacks w violate to the near ones; returns their number, -1 if they are
 * too many. */
LANES_INLINE int list_violated(cuts *c, const double *w) {
  qd_cone_workspace *workspace = c->workspace;
  int count = 0;
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    near_rows *near =
        block->slot_step == 1 ? &workspace->cuts.near_rows : &workspace->cuts.near_cones;
    const int found = violated_quads(block, c->enough, w, c->quads) & ~workspace->cuts.is_near[b];
    if (found == 0) {
      continue;
    }
    c->near_count += workspace->cuts.is_near[b] == 0;
    if (c->near_count > c->limit) {
      return -1;
    }
    workspace->cuts.is_near[b] |= found;
    for (int q = 0; found >> q; ++q, ++count) {
      if (found >> q & 1 && !near_rows_add(near, &workspace->system, b, 4 * q, workspace->program.g,
                                           workspace->program.compliance, c->enough)) {
        return -1;
      }
    }
  }
  return count;
}

/* ------------------------------------------------------------ faces */

/* Face of a violated row; at = 4 quad + index in the near rows. */
LANES_INLINE void row_face(const qd_cone_workspace *workspace, int at, double enough, face *found) {
  const near_rows *near = &workspace->cuts.near_rows;
  const int b = near->block[at / 4];
  const row_block *block = &workspace->system.blocks[b];
  found->block = b;
  found->row = near->row[at / 4] + at % 4;
  found->tail = 0;
  found->sign = 0.0;
  found->value = near->w[at] / near->weight[at] + enough;
  found->offset = workspace->program.g[block->slot + found->row];
}

/* Face of a near cone that its slack violates. */
LANES_INLINE void cone_face(const qd_cone_workspace *workspace, int quad, double enough,
                            face *found) {
  const near_rows *near = &workspace->cuts.near_cones;
  const int b = near->block[quad];
  const row_block *block = &workspace->system.blocks[b];
  const double *w = near->w + 4 * (size_t)quad, *g = workspace->program.g + block->slot;
  const double size = 1.0 / near->weight[4 * (size_t)quad];
  found->block = b;
  found->row = 0;
  found->tail = workspace->cuts.tail[b];
  found->sign = 0.0;
  found->value = w[0] * size + enough;
  found->offset = g[0];
  if (found->tail > 0) {
    found->sign = w[found->tail] > 0.0 ? -1.0 : 1.0;
    found->value += found->sign * w[found->tail] * size;
    found->offset += found->sign * g[found->tail * block->slot_step];
  } else if (found->tail < 0) {
    double sum = 0.0;
    for (int i = 1; i < block->row_count; ++i) {
      sum += w[i] * w[i];
    }
    const double length = sqrt(sum), factor = length > 0.0 ? -1.0 / length : 0.0;
    for (int i = 1; i < block->row_count; ++i) {
      found->direction[i] = factor * w[i];
      found->offset += found->direction[i] * g[i * block->slot_step];
    }
    found->value -= length * size;
  }
}

/* The most violated face of the near rows and cones at x; 0 if all are satisfied. */
LANES_INLINE int worst_face(const cuts *c, const double *x, face *found) {
  qd_cone_workspace *workspace = c->workspace;
  const int row = near_rows_worst(&workspace->cuts.near_rows, x);
  const int cone = workspace->cuts.near_cones.count > 0
                       ? near_rows_worst_cone(&workspace->cuts.near_cones, c->quads, x)
                       : -1;
  if (cone >= 0 && (row < 0 || near_rows_inside(&workspace->cuts.near_cones, c->quads, cone) <
                                   workspace->cuts.near_rows.w[row])) {
    cone_face(workspace, cone, c->enough, found);
  } else if (row >= 0) {
    row_face(workspace, row, c->enough, found);
  }
  return row >= 0 || cone >= 0;
}

/* row (columns) of a face */
LANES_INLINE void read_face(const qd_cone_workspace *workspace, const face *f, double *row) {
  const row_block *block = &workspace->system.blocks[f->block];
  conic_zero_columns(workspace, row);
  for (int k = 0; k < block->tile_count; ++k) {
    const double *values = workspace->system.G + block->values + 4 * (size_t)(k * block->row_count);
    lanes sum = LANES_OF(values + 4 * f->row);
    if (f->tail > 0) {
      sum += f->sign * LANES_OF(values + 4 * f->tail);
    }
    for (int i = 1; f->tail < 0 && i < block->row_count; ++i) {
      sum += f->direction[i] * LANES_OF(values + 4 * i);
    }
    LANES_AT(row + 4 * workspace->system.block_tiles[block->tile_start + k]) = sum;
  }
}

/* Makes a face the candidate of the set. */
LANES_INLINE void read_candidate(qd_cone_workspace *workspace, active_set *set, const face *f) {
  double *image = active_set_image(set, set->count), *row = active_set_row(set, set->count);
  const row_block *block = &workspace->system.blocks[f->block];
  set->tiles = workspace->system.block_tiles + block->tile_start;
  set->tile_count = block->tile_count;
  read_face(workspace, f, row);
  if (image != row) {
    memcpy(image, row, (size_t)set->columns * sizeof(double));
    tiles_solve(&workspace->system, image);
  }
}

/* Brings the candidate into the set; 0 if that is impossible (no room, or infeasible). */
LANES_INLINE int bring_in(qd_cone_workspace *workspace, active_set *set, double *x) {
  face *f = &set->face[set->place[set->count]];
  double multiplier = 0.0;
  read_candidate(workspace, set, f);
  const double own = active_set_measure(set);
  for (;;) {
    const double curvature = active_set_rates(set, own);
    const int independent = curvature > NEGLIGIBLE * own;
    double step = independent ? -f->value / curvature : HUGE_VAL;
    const int leaving = active_set_leaving(set, &step);
    if (step == HUGE_VAL || (leaving < 0 && set->count + 1 >= ACTIVE_LIMIT)) {
      return 0;
    }
    active_set_unload(set, step);
    multiplier += step;
    if (independent) {
      active_set_move(set, step, x);
      f->value += step * curvature;
    }
    if (leaving < 0) {
      active_set_push(set, curvature, multiplier);
      return 1;
    }
    active_set_drop(set, leaving);
  }
}

/* Adds the multiplier of a face to those of its rows. */
LANES_INLINE void add_multiplier(qd_cone_workspace *workspace, const face *f, double multiplier) {
  const row_block *block = &workspace->system.blocks[f->block];
  double *dual = workspace->iterate.dual + block->slot;
  dual[f->row * block->slot_step] += multiplier;
  if (f->tail > 0) {
    dual[f->tail * block->slot_step] += f->sign * multiplier;
  }
  for (int i = 1; f->tail < 0 && i < block->row_count; ++i) {
    dual[i * block->slot_step] += f->direction[i] * multiplier;
  }
}

/* x = base + V multiplier, without the rounding that accumulated on the way. */
LANES_INLINE void set_point(qd_cone_workspace *workspace, const active_set *set,
                            const double *base) {
  memcpy(workspace->iterate.x, base, (size_t)set->columns * sizeof(double));
  active_set_add_images(set, set->multiplier, workspace->iterate.x);
}

/* Refines a vertex by the remaining violation of the active rows. Updates x by a small step:
 * recomputing x would bring back the rounding of base + V multiplier. */
LANES_INLINE void refine(active_set *set, double *x) {
  active_set_multiply(set, x);
  for (int k = 0; k < set->count; ++k) {
    set->product[k] += set->face[set->place[k]].offset;
  }
  active_set_solve(set);
  active_set_unload(set, 1.0);
  negate(set->rate, set->rate, set->count);
  active_set_add_images(set, set->rate, x);
}

/* Load of the candidate, an idle row that depends on the active ones (the fourth ray of a sticking
 * contact, the fourth corner of a box). It minimises the sum of squared multipliers but leaves the
 * others at least half of theirs. 0 if the candidate is independent, i.e. would move the point. */
LANES_INLINE double share_load(active_set *set) {
  const double own = active_set_measure(set), curvature = active_set_rates(set, own);
  double projection = 0.0, size = 1.0, limit = HUGE_VAL, smallest = HUGE_VAL;
  if (curvature > CALLERS_ROUNDING * own) { /* joins the set, for others to depend on */
    if (curvature > SLIGHT * own && set->count + 1 < ACTIVE_LIMIT) {
      active_set_push(set, curvature, 0.0);
    }
    return 0.0;
  }
  for (int k = 0; k < set->count; ++k) {
    projection += set->rate[k] * set->multiplier[k];
    size += set->rate[k] * set->rate[k];
    if (set->multiplier[k] > 0.0) {
      smallest = smaller(smallest, set->multiplier[k]);
    }
    if (set->rate[k] > 0.0) {
      limit = smaller(limit, 0.5 * set->multiplier[k] / set->rate[k]);
    }
  }
  return smaller(larger(projection / size, 0.1 * smallest), limit);
}

LANES_INLINE int is_active(const active_set *set, int block, int row) {
  int found = 0;
  for (int k = 0; k < set->count; ++k) {
    const face *f = &set->face[set->place[k]];
    found |= f->block == block && f->row == row;
  }
  return found;
}

/* Loads a touching idle face and adds its image to `base`. */
LANES_INLINE void load_face(qd_cone_workspace *workspace, active_set *set, const face *f,
                            double *base) {
  set->face[set->place[set->count]] = *f;
  read_candidate(workspace, set, f);
  const double *image = active_set_image(set, set->count), load = share_load(set);
  if (!(load > 0.0)) {
    return;
  }
  active_set_unload(set, load);
  add_scaled(base, load, image, set->columns);
  add_multiplier(workspace, f, load);
}

/* Face of a Lorentz cone at the boundary point that is its slack; along the axis at the apex. */
LANES_INLINE void touched_face(const row_block *block, const double *g, const double *w,
                               double touching, face *f) {
  double sum = 0.0;
  f->tail = -1;
  f->offset = g[block->slot];
  for (int i = 1; i < block->row_count; ++i) {
    f->direction[i] = w[block->slot + i * block->slot_step];
    sum += f->direction[i] * f->direction[i];
  }
  const double factor = sum > touching * touching ? -1.0 / sqrt(sum) : 0.0;
  for (int i = 1; i < block->row_count; ++i) {
    f->direction[i] *= factor;
    f->offset += f->direction[i] * g[block->slot + i * block->slot_step];
  }
}

/* Spreads the load of a vertex, which loads few rows, to touching idle rows that depend on them.
 * These would otherwise be near two states. */
LANES_INLINE void spread_vertex(qd_cone_workspace *workspace, active_set *set, const double *w,
                                double *base) {
  const double touching = WEAK * workspace->units.near_length;
  for (int b = 0; b < workspace->system.block_count && set->count > 0; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    face f = {.block = b};
    if (block->slot_step > 1 && inside(block, w) <= touching && !is_active(set, b, 0)) {
      touched_face(block, workspace->program.g, w, touching, &f);
      load_face(workspace, set, &f, base);
    }
    for (f.row = 0; f.row < block->row_count && block->slot_step == 1; ++f.row) {
      if (w[block->slot + f.row] <= touching && !is_active(set, b, f.row)) {
        f.offset = workspace->program.g[block->slot + f.row];
        load_face(workspace, set, &f, base);
      }
    }
  }
}

/* Writes the set's point and multipliers to the iterate; `vertex`: it is a solution, so its load is
 * spread. */
LANES_INLINE void write_back(qd_cone_workspace *workspace, active_set *set, int vertex,
                             double *base, const double *w) {
  conic_zero_slots(workspace, workspace->iterate.dual);
  if (vertex) {
    spread_vertex(workspace, set, w, base);
  }
  set_point(workspace, set, base);
  if (vertex) {
    refine(set, workspace->iterate.x);
  }
  for (int k = 0; k < set->count; ++k) {
    add_multiplier(workspace, &set->face[set->place[k]], set->multiplier[k]);
  }
}

/* w = Gx + g of all rows */
LANES_INLINE void all_slacks(const qd_cone_workspace *workspace, const double *x, double *w) {
  tiles_multiply(&workspace->system, workspace->system.G, x, w);
  add_scaled(w, 1.0, workspace->program.g, workspace->program.slot_count);
}

/* Adds faces until no cone is violated: 1, or 0 if there are too many or there is no room. */
LANES_INLINE int cut(cuts *c, double *x, double *w) {
  qd_cone_workspace *workspace = c->workspace;
  active_set *set = c->set;
  for (int round = 0; round < CUTS_ROUND_LIMIT && !conic_is_stopped(workspace); ++round) {
    face *found = &set->face[set->place[set->count]];
    if (!worst_face(c, x, found)) { /* no near face is violated: check all rows */
      all_slacks(workspace, x, w);
      const int more = list_violated(c, w);
      if (more == 0) {
        return 1;
      }
      if (more < 0 || !worst_face(c, x, found)) {
        return 0;
      }
    }
    if (!bring_in(workspace, set, x)) {
      return 0;
    }
  }
  return 0;
}

/* Largest number of blocks that may be violated at the minimiser of the cost. */
static int start_limit(const qd_cone_workspace *workspace) {
  const int by_work = CUTS_START_WORK / workspace->program.column_count;
  return by_work < CUTS_START_LIMIT ? by_work : CUTS_START_LIMIT;
}

static double enough_at_first(const qd_cone_workspace *workspace, int polyhedral) {
  return polyhedral ? -larger(NEGLIGIBLE * workspace->units.length,
                              CALLERS_ROUNDING * workspace->units.near_length)
                    : -NEAR_ENOUGH * workspace->units.near_length;
}

cuts_outlook conic_cuts_apply(qd_cone_workspace *workspace) {
  const double *w = workspace->work.rhs;
  cuts c = {.workspace = workspace};
  int count = 0;
  if (!workspace->program.definite || workspace->program.equality_count > 0) {
    return CUTS_NONE;
  }
  c.polyhedral = find_tails(workspace, &c.quads);
  c.enough = enough_at_first(workspace, c.polyhedral);
  for (int b = 0; b < workspace->system.block_count; ++b) {
    count += violated_quads(&workspace->system.blocks[b], c.enough, w, c.quads) != 0;
  }
  if (c.polyhedral < 0 || count > start_limit(workspace)) {
    return CUTS_NONE;
  }
  return c.polyhedral > 0 ? CUTS_EXACT : 3 * count < CUTS_START_LIMIT ? CUTS_FEW : CUTS_MANY;
}

QD_MULTIVERSION
cuts_end conic_dual_active_set(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  active_set *set = &workspace->cuts.set;
  cuts c = {.workspace = workspace, .set = set};
  double *x = workspace->iterate.x, *base = workspace->newton.x;
  double *w = workspace->work.rhs; /* at first those of the minimiser of the cost */
  if (!workspace->program.definite || workspace->program.equality_count > 0) {
    return CUTS_NOWHERE;
  }
  conic_begin_stage(workspace);
  c.polyhedral = find_tails(workspace, &c.quads);
  if (c.polyhedral < 0) {
    return CUTS_NOWHERE;
  }
  c.enough = enough_at_first(workspace, c.polyhedral);
  conic_copy_columns(workspace, base, x);
  memset(workspace->cuts.is_near, 0, (size_t)system->block_count * sizeof(int));
  near_rows_clear(&workspace->cuts.near_rows);
  near_rows_clear(&workspace->cuts.near_cones);
  active_set_clear(set, workspace->program.column_count, system->Q_is_diagonal);
  c.limit = start_limit(workspace);
  if (list_violated(&c, w) < 0) {
    return CUTS_NOWHERE;
  }
  c.limit = system->block_count;
  if (cut(&c, x, w)) {
    write_back(workspace, set, c.polyhedral, base, w);
    return c.polyhedral ? CUTS_AT_VERTEX : CUTS_NEARBY;
  }
  conic_copy_columns(workspace, x, base);
  all_slacks(workspace, x, w);
  return CUTS_NOWHERE;
}

QD_MULTIVERSION
int conic_resume_cuts(qd_cone_workspace *workspace) {
  active_set *set = &workspace->cuts.set;
  cuts c = {.workspace = workspace, .set = set, .limit = workspace->system.block_count};
  double *base = workspace->newton.x;
  const double before = -NEAR_ENOUGH * workspace->units.near_length;
  c.polyhedral = find_tails(workspace, &c.quads);
  c.enough = -WEAK * workspace->units.near_length;
  if (c.polyhedral != 0 || !conic_factor_cost(workspace)) {
    return 0;
  }
  negate(set->rate, set->multiplier, set->count);
  conic_copy_columns(workspace, base, workspace->iterate.x);
  active_set_add_images(set, set->rate, base);
  near_rows_tighten(&workspace->cuts.near_rows, 0, before, c.enough);
  near_rows_tighten(&workspace->cuts.near_cones, 1, before, c.enough);
  if (!cut(&c, workspace->iterate.x, workspace->work.rhs)) {
    return 0;
  }
  write_back(workspace, set, 1, base, workspace->work.rhs);
  return 1;
}
