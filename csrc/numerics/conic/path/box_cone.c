#include "numerics/conic/path/box_cone.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/program/structure.h"

void ends_lay_out(interval_ends *ends, size_t lane_count, size_t columns, arena *a) {
  ARENA_DOUBLES(a, lane_count, &ends->compliance, &ends->lower, &ends->upper, &ends->has_lower,
                &ends->has_upper, &ends->least, &ends->most);
  ARENA_DOUBLES(a, columns, &ends->spring, &ends->push);
}

/* Positions of lane c of each kind. */
typedef struct lane_place {
  int row, low, high;                /* slots */
  int row_cone, low_cone, high_cone; /* over cones */
} lane_place;

LANES_INLINE lane_place place_of(const qd_cone_workspace *workspace, int c) {
  const interval_ends *ends = &workspace->ends;
  const cone_group *groups = workspace->product.groups;
  const cone_group *row = groups + ends->rows, *low = groups + ends->low,
                   *high = groups + ends->high;
  return (lane_place){row->slot + c, low->slot + c, high->slot + c,
                      row->cone + c, low->cone + c, high->cone + c};
}

/* A force, clamped to its ends. */
static double within_ends(const interval_ends *ends, int c, double force) {
  return smaller(larger(force, ends->least[c]), ends->most[c]);
}

/* ------------------------------------------------------------ loading */

void conic_ends_clear_padding(qd_cone_workspace *workspace) {
  interval_ends *ends = &workspace->ends;
  for (int c = ends->count; c < workspace->product.groups[ends->rows].padded; ++c) {
    ends->compliance[c] = ends->least[c] = ends->most[c] = 0.0;
    ends->has_lower[c] = ends->has_upper[c] = 0.0;
  }
}

void conic_ends_place(qd_cone_workspace *workspace, int row, double offset, double target) {
  interval_ends *ends = &workspace->ends;
  cone_product *product = &workspace->product;
  const compliant_program *soft = &workspace->soft;
  const int c = ends->taken++;
  const lane_place at = place_of(workspace, c);
  const double lower = soft->limits.lower[row], upper = soft->limits.upper[row];
  workspace->program.slot_of[row] = at.row;
  workspace->program.g[at.row] = offset;
  ends->compliance[c] = soft->limits.compliance[row];
  ends->any_rigid |= !(soft->limits.compliance[row] > 0.0);
  ends->has_lower[c] = lower > -HUGE_VAL;
  ends->has_upper[c] = upper < HUGE_VAL;
  ends->least[c] = lower;
  ends->most[c] = upper;
  ends->lower[c] = lower > -HUGE_VAL ? lower : 0.0;
  ends->upper[c] = upper < HUGE_VAL ? upper : 0.0;
  product->weight[at.row_cone] = 0.0;
  product->weight[at.low_cone] = ends->has_lower[c];
  product->weight[at.high_cone] = ends->has_upper[c];
  product->target[at.low_cone] = ends->has_lower[c] > 0.0 ? target : 1.0;
  product->target[at.high_cone] = ends->has_upper[c] > 0.0 ? target : 1.0;
  product->cone_count += (ends->has_lower[c] > 0.0) + (ends->has_upper[c] > 0.0);
  workspace->program.g[at.low] = workspace->program.g[at.high] = 1.0;
}

/* Adds the curvature of a row with compliance R to its columns; returns the number of its
 * entries. */
static int add_springs(double *spring, row_reader row, double R) {
  int count = 0;
  while (rows_next(&row)) {
    const lanes entry = LANES_FROM(row.values);
    LANES_AT(spring + row.first) += entry * entry / R;
    for (int j = 0; j < 4; ++j) {
      count += row.values[j] != 0.0;
    }
  }
  return count;
}

void conic_ends_find_springs(qd_cone_workspace *workspace, const conic_program *source) {
  interval_ends *ends = &workspace->ends;
  const compliant_program *soft = &workspace->soft;
  const cone_group *group = workspace->product.groups + ends->rows;
  conic_zero_columns(workspace, ends->spring);
  ends->any_coupled = 0;
  for (int row = 0; row < workspace->program.row_count; ++row) {
    const int lane = workspace->program.slot_of[row] - group->slot;
    if (lane >= 0 && lane < group->count && soft->limits.compliance[row] > 0.0) {
      ends->any_coupled |=
          add_springs(ends->spring, rows_open(source, row), soft->limits.compliance[row]) > 1;
    }
  }
}

/* x += G' of the forces that the rows' springs exert at x = 0, within their ends if `limited`. */
static void add_spring_forces(qd_cone_workspace *workspace, int limited, double *x) {
  const interval_ends *ends = &workspace->ends;
  double *force = workspace->work.row2; /* padded lanes stay zero */
  conic_zero_slots(workspace, force);
  for (int c = 0; c < ends->count; ++c) {
    const int at = place_of(workspace, c).row;
    if (ends->compliance[c] > 0.0) {
      force[at] = -workspace->program.g[at] / ends->compliance[c];
      force[at] = limited ? within_ends(ends, c, force[at]) : force[at];
    }
  }
  tiles_add_transposed(&workspace->system, workspace->system.G, force, x);
  conic_zero_slots(workspace, force);
}

void conic_ends_find_push(qd_cone_workspace *workspace) {
  conic_zero_columns(workspace, workspace->ends.push);
  add_spring_forces(workspace, 1, workspace->ends.push);
}

/* ------------------------------------------------------------ the system */

void conic_ends_soften(qd_cone_workspace *workspace, double more) {
  const interval_ends *ends = &workspace->ends;
  for (int c = 0; c < ends->count; ++c) {
    const double own = ends->compliance[c] + (more < HUGE_VAL ? more : 0.0);
    workspace->active.rows.diagonal[place_of(workspace, c).row_cone] =
        own > 0.0 ? 1.0 / sqrt(own) : 0.0;
  }
}

void conic_ends_pull(qd_cone_workspace *workspace, double *x) {
  add_spring_forces(workspace, 0, x);
}

/* N^-1 for four rows. */
LANES_INLINE void scale_four(qd_cone_workspace *workspace, int c, lane_bits *hardest) {
  const interval_ends *ends = &workspace->ends;
  const lane_place at = place_of(workspace, c);
  const double *W = workspace->product.inverse.diagonal;
  const lanes lane = {0.0, 1.0, 2.0, 3.0}, zero = {0.0, 0.0, 0.0, 0.0};
  const lane_bits real = lane < (double)(ends->count - c);
  const lanes low = LANES_OF(ends->has_lower + c) * LANES_OF(W + at.low_cone);
  const lanes high = LANES_OF(ends->has_upper + c) * LANES_OF(W + at.high_cone);
  const lanes squared = LANES_OF(workspace->program.compliance + at.row_cone);
  const lane_bits any = squared > 0.0;
  const lanes one = {1.0, 1.0, 1.0, 1.0};
  lanes root, hard = LANES_OF(ends->compliance + c) + low * low + high * high;
  lanes_choose(&hard, &real, &hard, &one);
  lanes_sqrt(&root, &hard);
  root = 1.0 / root;
  lanes_choose(&hard, &any, &squared, &one);
  hard = workspace->active.hard_penalty / hard;
  lanes_sqrt(&hard, &hard);
  const lane_bits is_hard = (root > hard) & real;
  *hardest |= is_hard;
  lanes_choose(&root, &is_hard, &hard, &root);
  lanes_choose(&root, &real, &root, &zero);
  LANES_AT(workspace->product.scaling.diagonal + at.row_cone) = root;
}

QD_MULTIVERSION
void conic_ends_scale(qd_cone_workspace *workspace) {
  lane_bits hardest = {0, 0, 0, 0};
  for (int c = 0; c < workspace->ends.count; c += LANE_COUNT) {
    scale_four(workspace, c, &hardest);
  }
  workspace->ends.any_hard = (hardest[0] | hardest[1] | hardest[2] | hardest[3]) != 0;
}

QD_MULTIVERSION
void conic_ends_aim(qd_cone_workspace *workspace, double *p) {
  const lane_place at = place_of(workspace, 0);
  const double *root = workspace->product.scaling.diagonal + at.row_cone;
  const double *low = workspace->product.inverse.diagonal + at.low_cone;
  const double *high = workspace->product.inverse.diagonal + at.high_cone;
  const double *has_lower = workspace->ends.has_lower, *has_upper = workspace->ends.has_upper;
  const int count = workspace->ends.count;
  for (int c = 0; c < count; c += LANE_COUNT) {
    const lanes by_lower = LANES_OF(has_lower + c) * LANES_OF(low + c),
                by_upper = LANES_OF(has_upper + c) * LANES_OF(high + c);
    LANES_AT(p + at.row + c) = LANES_OF(root + c) * (by_lower * LANES_OF(p + at.low + c) -
                                                     by_upper * LANES_OF(p + at.high + c));
  }
}

QD_MULTIVERSION
void conic_ends_follow(qd_cone_workspace *workspace, const double *p, double *dslack,
                       double *ddual) {
  const lane_place at = place_of(workspace, 0);
  const double *root = workspace->product.scaling.diagonal + at.row_cone;
  const double *low = workspace->product.inverse.diagonal + at.low_cone;
  const double *high = workspace->product.inverse.diagonal + at.high_cone;
  const double *has_lower = workspace->ends.has_lower, *has_upper = workspace->ends.has_upper;
  const int count = workspace->ends.count;
  for (int c = 0; c < count; c += LANE_COUNT) {
    const lanes dy = LANES_OF(root + c) * LANES_OF(ddual + at.row + c);
    const lanes lower = LANES_OF(has_lower + c), upper = LANES_OF(has_upper + c);
    const lanes by_lower = lower * LANES_OF(low + c) * dy,
                by_upper = -(upper * LANES_OF(high + c) * dy);
    LANES_AT(ddual + at.low + c) = by_lower;
    LANES_AT(ddual + at.high + c) = by_upper;
    LANES_AT(dslack + at.low + c) = lower * (LANES_OF(p + at.low + c) - by_lower);
    LANES_AT(dslack + at.high + c) = upper * (LANES_OF(p + at.high + c) - by_upper);
  }
}

QD_MULTIVERSION
void conic_ends_residual(qd_cone_workspace *workspace) {
  const interval_ends *ends = &workspace->ends;
  const lane_place at = place_of(workspace, 0);
  const double *slack = workspace->iterate.slack, *dual = workspace->iterate.dual + at.row;
  const lanes lane = {0.0, 1.0, 2.0, 3.0}, zero = {0.0, 0.0, 0.0, 0.0};
  double *residual = workspace->work.residual_row;
  for (int c = 0; c < ends->count; c += LANE_COUNT) {
    const lane_bits real = lane < (double)(ends->count - c);
    lanes own = LANES_OF(residual + at.row + c) +
                LANES_OF(ends->compliance + c) * LANES_OF(dual + c) -
                LANES_OF(ends->has_lower + c) * LANES_OF(slack + at.low + c) +
                LANES_OF(ends->has_upper + c) * LANES_OF(slack + at.high + c);
    lanes_choose(&own, &real, &own, &zero);
    LANES_AT(residual + at.row + c) = own;
    LANES_AT(residual + at.low + c) = LANES_AT(residual + at.high + c) = zero;
  }
}

/* A force as an end plus the distance to it, unless one of these is more than four times the force:
 * the force itself has accumulated rounding on the path. */
static double settled_force(double force, double end, double distance) {
  return isfinite(end) && 4.0 * fabs(force) >= larger(fabs(end), fabs(distance)) ? end + distance
                                                                                 : force;
}

void conic_ends_settle(qd_cone_workspace *workspace) {
  const interval_ends *ends = &workspace->ends;
  double *dual = workspace->iterate.dual;
  for (int c = 0; c < ends->count; ++c) {
    const lane_place at = place_of(workspace, c);
    const int by_lower =
        ends->has_lower[c] > 0.0 && !(ends->has_upper[c] > 0.0 && dual[at.high] < dual[at.low]);
    dual[at.row] = by_lower ? settled_force(dual[at.row], ends->least[c], dual[at.low])
                            : settled_force(dual[at.row], ends->most[c], -dual[at.high]);
  }
}

QD_MULTIVERSION
double conic_ends_primal_error(const qd_cone_workspace *workspace, double length) {
  const interval_ends *ends = &workspace->ends;
  const double *slack = workspace->iterate.slack;
  const lanes least = {length, length, length, length};
  lanes worst = {0.0, 0.0, 0.0, 0.0};
  for (int c = 0; c < ends->count; c += LANE_COUNT) {
    const lane_place at = place_of(workspace, c);
    const lanes residual = LANES_OF(workspace->work.residual_row + at.row), against = -residual;
    lanes error, hold = LANES_OF(ends->has_lower + c) * LANES_OF(slack + at.low) +
                        LANES_OF(ends->has_upper + c) * LANES_OF(slack + at.high);
    lanes_larger(&error, &residual, &against);
    lanes_larger(&hold, &hold, &least);
    error /= hold;
    lanes_larger(&worst, &error, &worst);
  }
  return larger(larger(worst[0], worst[1]), larger(worst[2], worst[3]));
}

/* ------------------------------------------------------------ start */

/* a > 0 with p + r a = product / a */
static double one_end(double p, double r, double product) {
  const double root = sqrt(p * p + 4.0 * r * product);
  return p > 0.0 ? 2.0 * product / (p + root) : 0.5 * (root - p) / r;
}

/* The same with the other end at `width`: p + r a = product / a - product / (width - a), the root
 * in the nearer half. Newton's method from below, which does not overshoot. */
static double two_ends(double p, double r, double product, double width) {
  double a = smaller(one_end(p + 2.0 * product / width, r, product), 0.5 * width);
  double change = HUGE_VAL;
  for (int k = 0; k < FEW_TIMES && change > SLIGHT * a; ++k) {
    const double b = width - a, above = product / a, below = product / b;
    const double step = (p + r * a - above + below) / (r + above / a + below / b);
    change = fabs(step);
    a = smaller(larger(a - step, 0.5 * a), 0.5 * width);
  }
  return a;
}

/* y where w + r y meets the barrier, and its distances from both ends. */
static double meet(const interval_ends *ends, int c, double w, double r, double product,
                   double *above, double *below) {
  const double lower = ends->lower[c], upper = ends->upper[c];
  const int has_lower = ends->has_lower[c] > 0.0, has_upper = ends->has_upper[c] > 0.0;
  *above = *below = 1.0;
  if (!has_lower && !has_upper) {
    return -w / r;
  }
  if (has_lower && (!has_upper || w + 0.5 * r * (lower + upper) >= 0.0)) {
    const double width = upper - lower;
    *above =
        has_upper ? two_ends(w + r * lower, r, product, width) : one_end(w + r * lower, r, product);
    *below = has_upper ? width - *above : 1.0;
    return lower + *above;
  }
  const double width = upper - lower;
  *below =
      has_lower ? two_ends(-w - r * upper, r, product, width) : one_end(-w - r * upper, r, product);
  *above = has_lower ? width - *below : 1.0;
  return upper - *below;
}

/* Compliance of a row at the start of the path, besides its own. It is zero for the guess of a
 * barrier: the position of the spring on the barrier determines the force better than the guess. */
static double softness(const qd_cone_workspace *workspace, int c, double stiffness, int of_target) {
  const double squared = workspace->program.compliance[place_of(workspace, c).row_cone];
  if (stiffness > 0.0) {
    return 1.0 / stiffness;
  }
  return of_target && workspace->ends.compliance[c] > 0.0 ? 0.0 : squared > 0.0 ? squared : 1.0;
}

void conic_ends_start(qd_cone_workspace *workspace, const double *w, double stiffness,
                      double product, int of_target, const double *guess) {
  const interval_ends *ends = &workspace->ends;
  double *slack = workspace->iterate.slack, *dual = workspace->iterate.dual;
  for (int c = 0; c < workspace->product.groups[ends->rows].padded; ++c) {
    const lane_place at = place_of(workspace, c);
    slack[at.row] = dual[at.row] = 0.0;
    slack[at.low] = dual[at.low] = slack[at.high] = dual[at.high] = 1.0;
    if (c >= ends->count) {
      continue;
    }
    const double soft = softness(workspace, c, stiffness, of_target);
    const double target =
        workspace->product.target[ends->has_lower[c] > 0.0 ? at.low_cone : at.high_cone];
    const double own = of_target ? product * target : product;
    dual[at.row] = meet(ends, c, w[at.row] - (guess ? soft * guess[at.row] : 0.0),
                        ends->compliance[c] + soft, own, dual + at.low, dual + at.high);
    slack[at.low] = ends->has_lower[c] > 0.0 ? own / dual[at.low] : 1.0;
    slack[at.high] = ends->has_upper[c] > 0.0 ? own / dual[at.high] : 1.0;
  }
}

/* ------------------------------------------------------------ active sets of exact programs */

int conic_ends_are_springs(const qd_cone_workspace *workspace, const double *w, double *dual) {
  const interval_ends *ends = &workspace->ends;
  int springs = !ends->any_rigid;
  for (int c = 0; c < ends->count; ++c) {
    const int at = place_of(workspace, c).row;
    dual[at] = ends->compliance[c] > 0.0 ? -w[at] / ends->compliance[c] : 0.0;
    springs &= dual[at] == within_ends(ends, c, dual[at]);
  }
  return springs;
}

/* States of four rows from their multipliers before projection. */
LANES_INLINE void state_lanes(const interval_ends *ends, int c, const lanes *above,
                              const lanes *below, const lanes *beyond, double force, lanes *state) {
  const lanes open_state = {CONE_OPEN, CONE_OPEN, CONE_OPEN, CONE_OPEN};
  const lanes stick_state = {CONE_STICK, CONE_STICK, CONE_STICK, CONE_STICK};
  const lanes slide_state = {CONE_SLIDE, CONE_SLIDE, CONE_SLIDE, CONE_SLIDE};
  const lanes weak_state = {CONE_WEAK, CONE_WEAK, CONE_WEAK, CONE_WEAK};
  const lane_bits is_soft = LANES_OF(ends->compliance + c) > 0.0;
  const lane_bits inside = (*above > 0.0) & (*below > 0.0);
  const lane_bits strict =
      (inside & (*above > force) & (*below > force)) | (-*above > *beyond) | (-*below > *beyond);
  lanes_choose(state, &is_soft, &slide_state, &stick_state);
  lanes_choose(state, &inside, state, &open_state);
  lanes_choose(state, &strict, state, &weak_state);
}

LANES_INLINE void project_four(qd_cone_workspace *workspace, int c, const double *w,
                               const double *dual, double *z, double *projected, lanes *change) {
  const interval_ends *ends = &workspace->ends;
  const cone_group *group = workspace->product.groups + ends->rows;
  const int at = group->slot + c, cone = group->cone + c;
  const lanes zero = {0.0, 0.0, 0.0, 0.0}, one = {1.0, 1.0, 1.0, 1.0};
  const lanes R = LANES_OF(ends->compliance + c), r = LANES_OF(workspace->polish.split + cone);
  const lanes least = LANES_OF(ends->least + c), most = LANES_OF(ends->most + c);
  const lane_bits is_soft = R > 0.0, is_rigid = ~is_soft;
  lanes own, spring, value, part, root, hard, beyond, state;
  lanes_choose(&own, &is_soft, &R, &one);
  spring = -LANES_OF(w + at) / own;
  value = LANES_OF(dual + at) - r * LANES_OF(w + at);
  lanes_choose(&value, &is_soft, &spring, &value);
  LANES_AT(z + at) = value;
  const lane_bits low = value <= least, high = value >= most, inside = ~(low | high);
  lanes_choose(&part, &low, &least, &value);
  lanes_choose(&part, &high, &most, &part);
  LANES_AT(projected + at) = part;
  const lanes moved = LANES_OF(dual + at) - part, against = -moved;
  lanes_larger(change, &moved, &against);
  *change /= r;
  hard = (lanes){conic_hard_root(workspace, cone), conic_hard_root(workspace, cone + 1),
                 conic_hard_root(workspace, cone + 2), conic_hard_root(workspace, cone + 3)};
  lanes_sqrt(&root, &own);
  root = 1.0 / root;
  lanes_choose(&root, &is_soft, &root, &hard);
  lanes_choose(&root, &inside, &root, &zero);
  LANES_AT(workspace->active.rows.diagonal + cone) = root;
  LANES_AT(workspace->active.stiffness.diagonal + cone) = root * root;
  const lane_bits held = inside & is_rigid;
  lanes_choose(&hard, &held, &one, &zero);
  LANES_AT(workspace->active.hard.diagonal + cone) = hard;
  const lanes length = {1.0, 1.0, 1.0, 1.0}, above = value - least, below = most - value;
  beyond = WEAK * workspace->units.length * length;
  spring = beyond / own;
  beyond *= r;
  lanes_choose(&beyond, &is_soft, &spring, &beyond);
  state_lanes(ends, c, &above, &below, &beyond, WEAK * workspace->units.force, &state);
  for (int k = 0; k < LANE_COUNT; ++k) {
    const int now = (int)state[k];
    workspace->active.changed |= c + k < ends->count && workspace->active.state[cone + k] != now;
    workspace->active.state[cone + k] = now;
  }
}

QD_MULTIVERSION
void conic_ends_project(qd_cone_workspace *workspace, const double *w, const double *dual,
                        double *z, double *projected, double *change) {
  const interval_ends *ends = &workspace->ends;
  lanes worst = {0.0, 0.0, 0.0, 0.0}, own;
  for (int c = 0; c < workspace->product.groups[ends->rows].padded; c += LANE_COUNT) {
    project_four(workspace, c, w, dual, z, projected, &own);
    lanes_larger(&worst, &own, &worst);
  }
  *change = larger(larger(worst[0], worst[1]), larger(worst[2], worst[3]));
}

void conic_ends_hold(const qd_cone_workspace *workspace, const double *projected, double *offset,
                     double *held) {
  const interval_ends *ends = &workspace->ends;
  for (int c = 0; c < ends->count; ++c) {
    const lane_place at = place_of(workspace, c);
    if (workspace->active.stiffness.diagonal[at.row_cone] == 0.0) {
      held[at.row] = projected[at.row];
    } else if (ends->compliance[c] > 0.0) {
      offset[at.row] = held[at.row] = 0.0;
    }
  }
}

void conic_ends_keep(qd_cone_workspace *workspace) {
  const interval_ends *ends = &workspace->ends;
  for (int c = 0; c < ends->count; ++c) {
    const lane_place at = place_of(workspace, c);
    if (ends->compliance[c] > 0.0) {
      workspace->polished.slack[at.row] =
          workspace->newton.slack[at.row] * workspace->polish.split[at.row_cone];
    }
  }
}

void conic_ends_release(qd_cone_workspace *workspace) {
  const interval_ends *ends = &workspace->ends;
  for (int c = 0; c < workspace->product.groups[ends->rows].padded; ++c) {
    const lane_place at = place_of(workspace, c);
    conic_set_stiffness(workspace, at.low_cone, 0.0, 0.0, 0.0, 0, 0);
    conic_set_stiffness(workspace, at.high_cone, 0.0, 0.0, 0.0, 0, 0);
    workspace->active.state[at.low_cone] = workspace->active.state[at.high_cone] = CONE_OPEN;
  }
}

void conic_ends_read_states(qd_cone_workspace *workspace, const double *dual) {
  const interval_ends *ends = &workspace->ends;
  conic_ends_release(workspace);
  for (int c = 0; c < ends->count; ++c) {
    const lane_place at = place_of(workspace, c);
    const double force = WEAK * workspace->units.force;
    const double above = dual[at.row] - ends->least[c], below = ends->most[c] - dual[at.row];
    const cone_state inside = ends->compliance[c] > 0.0 ? CONE_SLIDE : CONE_STICK;
    workspace->active.state[at.row_cone] = (int)(above > force && below > force ? inside
                                                 : above <= 0.0 || below <= 0.0 ? CONE_OPEN
                                                                                : CONE_WEAK);
  }
}

int conic_ends_any_at_end(const qd_cone_workspace *workspace) {
  int any = 0;
  for (int c = 0; c < workspace->ends.count; ++c) {
    any |= workspace->active.state[place_of(workspace, c).row_cone] == CONE_OPEN;
  }
  return any;
}

double conic_ends_error(const qd_cone_workspace *workspace, int c, double w, double move) {
  const interval_ends *ends = &workspace->ends;
  const lane_place at = place_of(workspace, c);
  if (workspace->active.state[at.row_cone] != CONE_OPEN) {
    return fabs(move);
  }
  const double y = workspace->polished.dual[at.row];
  const double sign = ends->has_lower[c] > 0.0 && y == ends->lower[c] ? 1.0 : -1.0;
  const double before = sign * (w + ends->compliance[c] * y), after = before + sign * move;
  return larger(0.0, smaller(before, 0.0) - after);
}

double conic_ends_work(qd_cone_workspace *workspace, const double *d) {
  const interval_ends *ends = &workspace->ends;
  double *move = workspace->work.rhs, work = 0.0;
  conic_zero_slots(workspace, move);
  tiles_multiply(&workspace->system, workspace->system.G, d, move);
  for (int c = 0; c < ends->count; ++c) {
    const lane_place at = place_of(workspace, c);
    if (workspace->active.state[at.row_cone] == CONE_OPEN) {
      work += workspace->polished.dual[at.row] * move[at.row];
    }
  }
  return work;
}

double conic_ends_root(const qd_cone_workspace *workspace, int c, double hard_root) {
  const interval_ends *ends = &workspace->ends;
  switch (workspace->active.state[place_of(workspace, c).row_cone]) {
  case CONE_SLIDE:
    return 1.0 / sqrt(ends->compliance[c]);
  case CONE_STICK:
    return hard_root;
  default:
    return 0.0;
  }
}

void conic_ends_share(const qd_cone_workspace *workspace, int row, double *by_lower,
                      double *by_upper) {
  const interval_ends *ends = &workspace->ends;
  const int c = workspace->program.slot_of[row] - workspace->product.groups[ends->rows].slot;
  const lane_place at = place_of(workspace, c);
  const double *slack = workspace->iterate.slack, *dual = workspace->iterate.dual;
  if (workspace->program.exact) {
    const double y = workspace->polished.dual[at.row];
    const int is_open = workspace->active.state[at.row_cone] == CONE_OPEN;
    *by_lower = is_open && ends->has_lower[c] > 0.0 && y == ends->lower[c];
    *by_upper = is_open && !(*by_lower > 0.0);
    return;
  }
  const double low = ends->has_lower[c] * slack[at.low] / dual[at.low];
  const double high = ends->has_upper[c] * slack[at.high] / dual[at.high];
  const double all = ends->compliance[c] + low + high;
  *by_lower = low / all;
  *by_upper = high / all;
}

double conic_ends_rise(const qd_cone_workspace *workspace, const double *w, double *opening,
                       double *leak) {
  const interval_ends *ends = &workspace->ends;
  double rise = 0.0;
  for (int c = 0; c < ends->count; ++c) {
    const double own = w[place_of(workspace, c).row];
    const double end = own > 0.0 ? ends->least[c] : ends->most[c];
    if (isinf(end)) {
      *leak = larger(*leak, fabs(own));
    } else if (end == 0.0) {
      *opening = larger(*opening, fabs(own));
    } else {
      rise -= end * own;
    }
  }
  return rise;
}

void conic_ends_clear(const qd_cone_workspace *workspace, double *ray) {
  for (int c = 0; c < workspace->product.groups[workspace->ends.rows].padded; ++c) {
    const lane_place at = place_of(workspace, c);
    ray[at.row] = ray[at.low] = ray[at.high] = 0.0;
  }
}
