/* Projection of dual - r slack on the cones, four at a time. Sets each cone's state, and the
 * stiffness of its directions in the Newton step of conic/newton/polish.c. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

/* Parameters shared by four cones. */
typedef struct quad_input {
  double weak_force, length; /* limits below which a state is weak */
  double penalty;            /* of held directions, relative to the compliance */
} quad_input;

static const lanes zero = {0.0, 0.0, 0.0, 0.0};
static const lanes open_state = {CONE_OPEN, CONE_OPEN, CONE_OPEN, CONE_OPEN};
static const lanes stick_state = {CONE_STICK, CONE_STICK, CONE_STICK, CONE_STICK};
static const lanes slide_state = {CONE_SLIDE, CONE_SLIDE, CONE_SLIDE, CONE_SLIDE};
static const lanes weak_state = {CONE_WEAK, CONE_WEAK, CONE_WEAK, CONE_WEAK};

/* Square roots of the penalties of four cones' held rows. */
LANES_INLINE void hard_roots(const double *compliance, double penalty, lanes *out) {
  const lanes one = {1.0, 1.0, 1.0, 1.0};
  lanes soft = LANES_OF(compliance);
  const lane_bits none = ~(soft > 0.0);
  lanes_choose(&soft, &none, &one, &soft);
  soft = penalty / soft;
  lanes_sqrt(out, &soft);
}

/* Writes the states; 1 if one has changed. `real`: number of cones that are not padding. */
LANES_INLINE int set_states(int *state, const lanes *value, int real) {
  int changed = 0;
  for (int k = 0; k < 4; ++k) {
    const int now = (int)(*value)[k];
    changed |= (k < real) & (state[k] != now);
    state[k] = now;
  }
  return changed;
}

/* Sets the operators of four cones from their values along (1, u), along (1, -u) and across;
 * `held_along`, `held_rest`: masks of held directions. */
LANES_INLINE void set_operators(qd_cone_workspace *workspace, int cone, const lanes *along,
                                const lanes *against, const lanes *across,
                                const lane_bits *held_along, const lane_bits *held_rest) {
  const lanes one = {1.0, 1.0, 1.0, 1.0};
  lanes along_held, rest_held;
  lanes_keep(&along_held, held_along, &one);
  lanes_keep(&rest_held, held_rest, &one);
  const lanes along_squared = *along * *along, against_squared = *against * *against;
  LANES_AT(workspace->active.rows.diagonal + cone) = 0.5 * (*along + *against);
  LANES_AT(workspace->active.rows.cross + cone) = 0.5 * (*along - *against);
  LANES_AT(workspace->active.rows.tangent + cone) = *across;
  LANES_AT(workspace->active.stiffness.diagonal + cone) = 0.5 * (along_squared + against_squared);
  LANES_AT(workspace->active.stiffness.cross + cone) = 0.5 * (along_squared - against_squared);
  LANES_AT(workspace->active.stiffness.tangent + cone) = *across * *across;
  LANES_AT(workspace->active.hard.diagonal + cone) = 0.5 * (along_held + rest_held);
  LANES_AT(workspace->active.hard.cross + cone) = 0.5 * (along_held - rest_held);
  LANES_AT(workspace->active.hard.tangent + cone) = rest_held;
}

/* Four Lorentz cones from lane c of the group on; returns the largest change over r of each. */
LANES_INLINE void project_cones(qd_cone_workspace *workspace, const cone_group *group, int c,
                                const quad_input *in, const double *w, const double *dual,
                                double *z, double *projected, lanes *change, int dim) {
  const size_t n = (size_t)group->padded, at = (size_t)(group->slot + c);
  const int cone = group->cone + c, real = group->count - c;
  const lanes r = LANES_OF(workspace->polish.split + cone), weak_length = WEAK * in->length * r;
  lanes sum = zero, size, root, across, along, against, part, moved, state;
  const lanes head = LANES_OF(dual + at) - r * LANES_OF(w + at);
  LANES_AT(z + at) = head;
  for (int i = 1; i < dim; ++i) {
    const size_t row = at + (size_t)i * n;
    const lanes value = LANES_OF(dual + row) - r * LANES_OF(w + row);
    LANES_AT(z + row) = value;
    sum += value * value;
  }
  lanes_sqrt(&size, &sum);
  const lane_bits sticks = head >= size, is_open = ~sticks & (head <= -size);
  const lane_bits slides = ~(sticks | is_open), touches = ~is_open, has_tail = size > 0.0;
  const lanes beta = 0.5 * (head + size), gap = 0.5 * (size - head);
  lanes per = 1.0 / size, ratio = r * beta / gap;
  lanes_keep(&per, &has_tail, &per);
  lanes_keep(&ratio, &slides, &ratio);
  /* heads and tails: unchanged, zero, or (beta, beta u) */
  lanes_keep(&part, &slides, &beta);
  lanes_choose(&part, &sticks, &head, &part);
  LANES_AT(projected + at) = part;
  moved = LANES_OF(dual + at) - part;
  lanes_size(change, &moved);
  for (int i = 1; i < dim; ++i) {
    const size_t row = at + (size_t)i * n;
    const lanes value = LANES_OF(z + row), u = value * per, slid = beta * u;
    LANES_AT(workspace->active.rows.u + row) = u;
    lanes_keep(&part, &slides, &slid);
    lanes_choose(&part, &sticks, &value, &part);
    LANES_AT(projected + row) = part;
    moved = LANES_OF(dual + row) - part;
    lanes_size(&moved, &moved);
    lanes_larger(change, &moved, change);
  }
  *change /= r;
  hard_roots(workspace->program.compliance + cone, in->penalty, &root);
  lanes_keep(&along, &touches, &root);
  lanes_keep(&against, &sticks, &root);
  lanes_sqrt(&across, &ratio);
  lanes_choose(&across, &sticks, &root, &across);
  set_operators(workspace, cone, &along, &against, &across, &touches, &sticks);
  const lane_bits strict = (sticks & (head - size > in->weak_force)) |
                           (is_open & (-head - size > weak_length)) |
                           (slides & (beta > in->weak_force) & (gap > weak_length));
  lanes_choose(&state, &sticks, &stick_state, &slide_state);
  lanes_choose(&state, &is_open, &open_state, &state);
  lanes_choose(&state, &strict, &state, &weak_state);
  workspace->active.changed |= set_states(workspace->active.state + cone, &state, real);
}

/* The same for four rows of an orthant. */
LANES_INLINE void project_rows(qd_cone_workspace *workspace, const cone_group *group, int c,
                               const quad_input *in, const double *w, const double *dual, double *z,
                               double *projected, lanes *change) {
  const size_t at = (size_t)(group->slot + c);
  const int cone = group->cone + c, real = group->count - c;
  const lanes r = LANES_OF(workspace->polish.split + cone), weak_length = WEAK * in->length * r;
  const lanes one = {1.0, 1.0, 1.0, 1.0};
  const lanes value = LANES_OF(dual + at) - r * LANES_OF(w + at);
  const lane_bits sticks = value >= 0.0;
  const lane_bits strict = (sticks & (value > in->weak_force)) | (~sticks & (-value > weak_length));
  lanes root, part, moved, state;
  LANES_AT(z + at) = value;
  lanes_keep(&part, &sticks, &value);
  LANES_AT(projected + at) = part;
  moved = LANES_OF(dual + at) / r;
  lanes_choose(&moved, &sticks, &LANES_OF(w + at), &moved);
  lanes_size(change, &moved);
  hard_roots(workspace->program.compliance + cone, in->penalty, &root);
  lanes_keep(&root, &sticks, &root);
  LANES_AT(workspace->active.rows.diagonal + cone) = root;
  LANES_AT(workspace->active.stiffness.diagonal + cone) = root * root;
  lanes_keep(&part, &sticks, &one);
  LANES_AT(workspace->active.hard.diagonal + cone) = part;
  lanes_choose(&state, &sticks, &stick_state, &open_state);
  lanes_choose(&state, &strict, &state, &weak_state);
  workspace->active.changed |= set_states(workspace->active.state + cone, &state, real);
}

/* Maximum of the changes, without padded lanes. */
LANES_INLINE void note_change(const lanes *change, int real, lanes *worst) {
  const lanes lane = {0.0, 1.0, 2.0, 3.0};
  const lane_bits counts = lane < (double)real;
  lanes own;
  lanes_keep(&own, &counts, change);
  lanes_larger(worst, &own, worst);
}

QD_MULTIVERSION
double conic_project(qd_cone_workspace *workspace, const double *w, const double *dual, double *z,
                     double *projected) {
  double of_ends = 0.0;
  const quad_input in = {WEAK * workspace->units.force, workspace->units.length,
                         workspace->active.hard_penalty};
  lanes worst = zero, change;
  workspace->active.changed = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    if (group->kind == GROUP_INTERVAL) {
      conic_ends_project(workspace, w, dual, z, projected, &of_ends);
    }
    for (int c = 0; c < group->padded && group->kind != GROUP_ENDS && group->kind != GROUP_INTERVAL;
         c += 4) {
      if (group->kind == GROUP_EQUALITY) {
        LANES_AT(projected + group->slot + c) = LANES_OF(dual + group->slot + c);
        lanes_size(&change, &LANES_OF(w + group->slot + c));
      } else if (group->kind == GROUP_ORTHANT) {
        project_rows(workspace, group, c, &in, w, dual, z, projected, &change);
      } else if (group->dim == 3) {
        project_cones(workspace, group, c, &in, w, dual, z, projected, &change, 3);
      } else {
        project_cones(workspace, group, c, &in, w, dual, z, projected, &change, group->dim);
      }
      note_change(&change, group->count - c, &worst);
    }
  }
  return larger(of_ends, larger(larger(worst[0], worst[1]), larger(worst[2], worst[3])));
}
