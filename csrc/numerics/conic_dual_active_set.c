/* Dual active set method (Goldfarb, Idnani 1983) with cuts: from the minimiser of the cost, take
 * the most violated row, move the multipliers until it holds or one of theirs vanishes and leaves.
 *
 * Rows are orthant rows, and cuts w_0 + u'w_1 >= 0 of Lorentz cones, u = -w_1 / |w_1| where they
 * are violated. A cone with a single tangent that can move (planar contact) is the intersection of
 * two cuts: then the method ends exactly, at a vertex of the multipliers. Others it only brings
 * near, and the polish takes over.
 *
 * A few active rows on a few unknowns cost less than one interior point iteration, many cost more:
 * so there are limits, beyond which the caller follows the path. The answer is only a guess: the
 * polish verifies it, all rows included. */
#include <math.h>
#include <string.h>

#include "numerics/active_set.h"
#include "numerics/conic_workspace.h"
#include "numerics/lanes.h"

#define START_LIMIT 24   /* violated blocks at the minimiser of the cost: more go along the path */
#define START_WORK 900   /* their number times columns, likewise */
#define ROUND_LIMIT 64   /* rows brought in, and looks at all rows */
#define SATISFIED 1e-12  /* natural lengths, polyhedral programs */
#define NEAR_ENOUGH 3e-3 /* the same where the polish has to finish */
#define DEPENDENT 1e-11  /* of the row's own curvature */
#define REDUNDANT 1e-9   /* likewise, of rows that share a vertex's load */
#define TOUCHING 1e-9    /* near lengths: rows at rest */

/* The only row behind the first of a Lorentz block that is not zero: 0 if none, -1 if several. */
static int only_tail(const qd_cone_workspace *workspace, const row_block *block) {
  int tail = 0;
  for (int i = 1; i < block->row_count; ++i) {
    if (workspace->row_mask[block->first_row + i] == 0 &&
        workspace->g[block->slot + i * block->slot_step] == 0.0)
      continue;
    if (tail > 0) return -1;
    tail = i;
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

/* Slack of one row; `product` = Gx. */
LANES_INLINE double row_value(const qd_cone_workspace *workspace, const row_block *block, int row,
                              const double *product) {
  const int at = block->slot + row * block->slot_step;
  return product[at] + workspace->g[at];
}

/* By how much every cone is violated, relative to the size of its rows, into `score` (over cones,
 * negative if violated). Cones above `enough` (slightly negative) count as satisfied: zero. */
LANES_INLINE void score_cones(const qd_cone_workspace *workspace, double enough,
                              const double *restrict product, double *restrict score) {
  const cone_product *cones = &workspace->product;
  const double *restrict g = workspace->g, *restrict weight = workspace->row_weight;
  for (int k = 0; k < cones->group_count; ++k) {
    const cone_group *group = &cones->groups[k];
    const int n = group->padded, at = group->slot, cone = group->cone;
    for (int c = 0; c < n; ++c) score[cone + c] = 0.0;
    for (int i = 1; i < group->dim; ++i)
      for (int c = 0; c < n; ++c) {
        const double value = product[at + i * n + c] + g[at + i * n + c];
        score[cone + c] += value * value;
      }
    for (int c = 0; c < n; ++c) {
      const double value = (product[at + c] + g[at + c]) - sqrt(score[cone + c]);
      score[cone + c] = value < enough ? value * weight[cone + c] : 0.0;
    }
  }
}

/* The cone that is worst, -1 if all are satisfied. */
LANES_INLINE int worst_cone(const qd_cone_workspace *workspace, const double *score) {
  const double worst = smallest_of(score, workspace->lane_count, 0.0);
  int found = worst < 0.0 ? 0 : -1;
  while (worst < 0.0 && score[found] != worst) ++found;
  return found;
}

/* The face of a cone that its slack violates. */
LANES_INLINE void violated_face(const qd_cone_workspace *workspace, int cone, const double *product,
                                face *found) {
  const int b = workspace->block_of_cone[cone];
  const row_block *block = &workspace->system.blocks[b];
  found->block = b;
  found->row = block->slot_step == 1 ? cone - block->cone : 0;
  found->tail = workspace->tail[b];
  found->sign = 0.0;
  found->value = row_value(workspace, block, found->row, product);
  if (found->tail > 0) {
    const double side = row_value(workspace, block, found->tail, product);
    found->sign = side > 0.0 ? -1.0 : 1.0;
    found->value += found->sign * side;
  } else if (found->tail < 0) {
    double sum = 0.0;
    for (int i = 1; i < block->row_count; ++i) {
      found->direction[i] = row_value(workspace, block, i, product);
      sum += found->direction[i] * found->direction[i];
    }
    const double size = sqrt(sum), factor = size > 0.0 ? -1.0 / size : 0.0;
    for (int i = 1; i < block->row_count; ++i) found->direction[i] *= factor;
    found->value -= size;
  }
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

/* A face as the set's candidate. */
LANES_INLINE void read_candidate(qd_cone_workspace *workspace, active_set *set, const face *f) {
  double *image = active_set_image(set, set->count), *row = active_set_row(set, set->count);
  read_face(workspace, f, row);
  if (image != row) {
    memcpy(image, row, (size_t)set->columns * sizeof(double));
    tiles_solve(&workspace->system, image);
  }
}

/* Brings one violated face into the set; 0 if that cannot be done (no room, or infeasible). */
LANES_INLINE int bring_in(qd_cone_workspace *workspace, active_set *set, face *f, double *x) {
  double multiplier = 0.0;
  read_candidate(workspace, set, f);
  const double own = active_set_measure(set);
  for (;;) {
    const double curvature = active_set_rates(set, own);
    const int independent = curvature > DEPENDENT * own;
    double step = independent ? -f->value / curvature : HUGE_VAL;
    const int leaving = active_set_leaving(set, &step);
    if (step == HUGE_VAL || (leaving < 0 && set->count + 1 >= ACTIVE_LIMIT)) return 0;
    for (int i = 0; i < set->count; ++i) set->multiplier[i] -= step * set->rate[i];
    multiplier += step;
    if (independent) {
      active_set_move(set, step, x);
      f->value += step * curvature;
    }
    if (leaving < 0) {
      set->face[set->place[set->count]] = *f;
      active_set_push(set, curvature, multiplier);
      return 1;
    }
    active_set_drop(set, leaving);
  }
}

/* Slack of a face. */
LANES_INLINE double face_value(const qd_cone_workspace *workspace, const face *f,
                               const double *product) {
  const row_block *block = &workspace->system.blocks[f->block];
  double value = row_value(workspace, block, f->row, product);
  if (f->tail > 0) value += f->sign * row_value(workspace, block, f->tail, product);
  for (int i = 1; f->tail < 0 && i < block->row_count; ++i)
    value += f->direction[i] * row_value(workspace, block, i, product);
  return value;
}

/* Multipliers of faces into those of rows. */
LANES_INLINE void add_multiplier(qd_cone_workspace *workspace, const face *f, double multiplier) {
  const row_block *block = &workspace->system.blocks[f->block];
  double *dual = workspace->dual + block->slot;
  dual[f->row * block->slot_step] += multiplier;
  if (f->tail > 0) dual[f->tail * block->slot_step] += f->sign * multiplier;
  for (int i = 1; f->tail < 0 && i < block->row_count; ++i)
    dual[i * block->slot_step] += f->direction[i] * multiplier;
}

/* x = base + V multiplier, without the rounding that piled up on the way. */
LANES_INLINE void set_point(qd_cone_workspace *workspace, const active_set *set,
                            const double *base) {
  memcpy(workspace->x, base, (size_t)set->columns * sizeof(double));
  active_set_add_images(set, set->multiplier, workspace->x);
}

/* A vertex to rounding: once more what the active rows miss. A small step: x itself would bring
 * back what cancels between base and V multiplier. */
LANES_INLINE void refine(qd_cone_workspace *workspace, active_set *set, int near_count,
                         double *product) {
  tiles_multiply_blocks(&workspace->system, workspace->near_blocks, near_count, workspace->system.G,
                        workspace->x, product);
  for (int k = 0; k < set->count; ++k)
    set->product[k] = face_value(workspace, &set->face[set->place[k]], product);
  active_set_solve(set);
  for (int k = 0; k < set->count; ++k) {
    set->multiplier[k] -= set->rate[k];
    set->rate[k] = -set->rate[k];
  }
  active_set_add_images(set, set->rate, workspace->x);
}

/* Share of the candidate, an idle row that depends on the active ones (the fourth ray of a contact
 * that sticks, the fourth corner of a box): where the multipliers' sum of squares is least, but so
 * that the others keep half. 0 if it moves the point after all. */
LANES_INLINE double share_load(active_set *set) {
  const double own = active_set_measure(set), curvature = active_set_rates(set, own);
  double projection = 0.0, size = 1.0, limit = HUGE_VAL, smallest = HUGE_VAL;
  if (curvature > REDUNDANT * own) return 0.0;
  for (int k = 0; k < set->count; ++k) {
    projection += set->rate[k] * set->multiplier[k];
    size += set->rate[k] * set->rate[k];
    smallest = smaller(smallest, set->multiplier[k]);
    if (set->rate[k] > 0.0) limit = smaller(limit, 0.5 * set->multiplier[k] / set->rate[k]);
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

/* A vertex loads as few rows as it can; idle rows at rest that depend on them take their share.
 * Without it they would be nearer to two states than to one. Adds their images to `base`. */
LANES_INLINE void spread_vertex(qd_cone_workspace *workspace, active_set *set,
                                const double *product, double *base) {
  const double touching = TOUCHING * workspace->near_length;
  for (int b = 0; b < workspace->system.block_count && set->count > 0; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    for (int i = 0; i < block->row_count && block->slot_step == 1; ++i) {
      if (row_value(workspace, block, i, product) > touching || is_active(set, b, i)) continue;
      const face f = {.block = b, .row = i};
      read_candidate(workspace, set, &f);
      const double load = share_load(set), *image = active_set_image(set, set->count);
      if (!(load > 0.0)) continue;
      for (int k = 0; k < set->count; ++k) set->multiplier[k] -= load * set->rate[k];
      for (int c = 0; c < set->columns; ++c) base[c] += load * image[c];
      workspace->dual[block->slot + i] = load;
    }
  }
}

/* The set's point and multipliers into the workspace's iterate. */
LANES_INLINE void write_back(qd_cone_workspace *workspace, active_set *set, int polyhedral,
                             int near_count, double *base, double *product) {
  memset(workspace->dual, 0, (size_t)workspace->slot_count * sizeof(double));
  if (polyhedral) spread_vertex(workspace, set, product, base);
  set_point(workspace, set, base);
  if (polyhedral) refine(workspace, set, near_count, product);
  for (int k = 0; k < set->count; ++k)
    add_multiplier(workspace, &set->face[set->place[k]], set->multiplier[k]);
}

/* Lists the blocks with cones that are violated; returns how many cones are. */
LANES_INLINE int list_violated(qd_cone_workspace *workspace, const double *score, int *near_count) {
  int count = 0;
  for (int c = 0; c < workspace->lane_count; ++c) {
    if (score[c] == 0.0) continue;
    const int b = workspace->block_of_cone[c];
    ++count;
    if (workspace->is_near[b]) continue;
    workspace->is_near[b] = 1;
    workspace->near_blocks[(*near_count)++] = b;
  }
  return count;
}

/* What cuts and polish reckon with: 0 if the program is not for them. */
static int prepare(qd_cone_workspace *workspace, int *polyhedral) {
  if (!workspace->definite || workspace->equality_count > 0) return 0;
  *polyhedral = find_tails(workspace);
  if (*polyhedral < 0) return 0;
  for (int c = 0; c < workspace->lane_count; ++c)
    workspace->row_weight[c] =
        workspace->compliance[c] > 0.0 ? 1.0 / sqrt(workspace->compliance[c]) : HUGE_VAL;
  for (int b = 0; b < workspace->system.block_count; ++b) {
    const row_block *block = &workspace->system.blocks[b];
    workspace->is_near[b] = 0;
    for (int i = 0; i < (block->slot_step == 1 ? block->row_count : 1); ++i)
      workspace->block_of_cone[block->cone + i] = b;
  }
  return 1;
}

QD_CLONES
int conic_dual_active_set(qd_cone_workspace *workspace) {
  const tile_system *system = &workspace->system;
  active_set *set = &workspace->active;
  double *x = workspace->x, *base = workspace->newton_x, *score = workspace->score;
  double *product = workspace->work_row2; /* padded lanes stay zero */
  int near_count = 0, polyhedral;
  if (!prepare(workspace, &polyhedral)) return 0;
  memcpy(base, x, (size_t)workspace->column_count * sizeof(double));
  active_set_clear(set, workspace->column_count, system->Q_is_diagonal);
  const double enough =
      polyhedral ? -SATISFIED * workspace->length : -NEAR_ENOUGH * workspace->near_length;
  tiles_multiply(system, system->G, x, product);
  score_cones(workspace, enough, product, score);
  list_violated(workspace, score, &near_count);
  if (near_count > START_LIMIT || near_count * set->columns > START_WORK) return 0;
  for (int round = 0; round < ROUND_LIMIT; ++round) {
    int worst = worst_cone(workspace, score);
    if (worst < 0) { /* none nearby: look at all */
      tiles_multiply(system, system->G, x, product);
      score_cones(workspace, enough, product, score);
      if (list_violated(workspace, score, &near_count) == 0) {
        write_back(workspace, set, polyhedral, near_count, base, product);
        return 1;
      }
      worst = worst_cone(workspace, score);
    }
    face found;
    violated_face(workspace, worst, product, &found);
    if (score[worst] == -HUGE_VAL || !bring_in(workspace, set, &found, x)) return 0;
    tiles_multiply_blocks(system, workspace->near_blocks, near_count, system->G, x, product);
    score_cones(workspace, enough, product, score);
  }
  return 0;
}
