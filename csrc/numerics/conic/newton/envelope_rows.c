/* Multipliers of compliant rows at given slacks, four cones at a time. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

static const lanes zero = {0.0, 0.0, 0.0, 0.0};

/* Four cones with the multipliers (head, tail w_1, tail w_2, ..). */
typedef struct four_cones {
  lanes per; /* 1 / |w_1..|, 0 without a tail */
  lanes head, tail;
  lanes part; /* the largest term of the difference that gives the head */
  lane_bits sticks, slides;
} four_cones;

LANES_INLINE void find_states(const envelope *e, int cone, const lanes *w0, const lanes *square,
                              four_cones *of) {
  const lanes across = LANES_OF(e->stiff_across + cone), stuck = -*w0 * LANES_OF(e->stiff + cone);
  const lanes both = LANES_OF(e->stiff_both + cone);
  lanes size, slid, part;
  lanes_sqrt(&size, square);
  const lane_bits opens = size <= *w0, has_tail = size > 0.0;
  of->sticks = stuck > size * across;
  of->slides = ~(of->sticks | opens);
  of->per = 1.0 / size;
  lanes_keep(&of->per, &has_tail, &of->per);
  slid = (size - *w0) * both;
  lanes_keep(&of->head, &of->slides, &slid);
  lanes_choose(&of->head, &of->sticks, &stuck, &of->head);
  of->part = size * both;
  lanes_choose(&of->part, &of->slides, &of->part, &of->head);
  slid = -slid * of->per;
  part = -across;
  lanes_keep(&of->tail, &of->slides, &slid);
  lanes_choose(&of->tail, &of->sticks, &part, &of->tail);
}

/* Multipliers of four linear rows; is_between: where they lie strictly within their limits. */
LANES_INLINE void find_multiplier(const envelope *e, int cone, const lanes *w, lanes *dual,
                                  lane_bits *is_between) {
  const lanes lower = LANES_OF(e->lower + cone), upper = LANES_OF(e->upper + cone);
  const lanes raw = LANES_OF(e->centre + cone) - *w * LANES_OF(e->stiff + cone);
  const lane_bits below = raw < upper;
  *is_between = (raw > lower) & below;
  lanes_choose(dual, &below, &raw, &upper);
  lanes_larger(dual, dual, &lower);
}

QD_MULTIVERSION
void envelope_find_stiffness(envelope *e, int lane_count) {
  for (int c = 0; c < lane_count; c += LANE_COUNT) {
    const lanes R = LANES_OF(e->normal + c), R1 = LANES_OF(e->across + c);
    const lanes stiff = 1.0 / R, both = 1.0 / (R + R1), half = 0.5 * both;
    LANES_AT(e->stiff + c) = stiff;
    LANES_AT(e->stiff_across + c) = 1.0 / R1;
    LANES_AT(e->stiff_both + c) = both;
    lanes_sqrt((lanes *)(e->root + c), &stiff);
    lanes_sqrt((lanes *)(e->root_both + c), &half);
  }
}

/* ------------------------------------------------------------ multipliers and stiffness */

/* Raises *most to the largest squared product of a multiplier and its row's norm. */
LANES_INLINE void note_force(const qd_cone_workspace *workspace, int cone, const lanes *force,
                             lanes *most) {
  const lanes square = *force * *force * LANES_OF(workspace->program.compliance + cone);
  lanes_larger(most, &square, most);
}

/* Stores the states; 1 if one has changed. */
LANES_INLINE int keep_states(int *state, const lane_bits *sticks, const lane_bits *slides) {
  int changed = 0;
  for (int k = 0; k < LANE_COUNT; ++k) {
    const int now = (*sticks)[k] ? CONE_STICK : (*slides)[k] ? CONE_SLIDE : CONE_OPEN;
    changed |= state[k] != now;
    state[k] = now;
  }
  return changed;
}

/* Square root of the stiffness; a sliding cone has (1, -u)(1, -u)' / (R0 + R1) and -tail (1 - u
 * u'). */
LANES_INLINE void set_stiffness(const envelope *e, const cone_operator *rows, int cone,
                                const four_cones *of) {
  const lanes both = LANES_OF(e->root_both + cone), stuck = LANES_OF(e->root + cone);
  const lanes fall = -of->tail;
  lanes diagonal, along, cross, tangent;
  lanes_keep(&diagonal, &of->slides, &both);
  along = diagonal;
  cross = -diagonal;
  lanes_sqrt(&tangent, &fall); /* also for sticking cones */
  lanes_choose(&diagonal, &of->sticks, &stuck, &diagonal);
  lanes_choose(&along, &of->sticks, &tangent, &along);
  LANES_AT(rows->diagonal + cone) = diagonal;
  LANES_AT(rows->along + cone) = along;
  LANES_AT(rows->cross + cone) = cross;
  LANES_AT(rows->tangent + cone) = tangent;
}

LANES_INLINE int respond_cones(qd_cone_workspace *workspace, const cone_group *group, int c,
                               const double *w, double *dual, lanes *most, int dim) {
  const int n = group->padded, at = group->slot + c, cone = group->cone + c;
  const lanes w0 = LANES_OF(w + at);
  lanes square = zero;
  four_cones of;
  for (int i = 1; i < dim; ++i) {
    square += LANES_OF(w + at + i * n) * LANES_OF(w + at + i * n);
  }
  find_states(&workspace->envelope, cone, &w0, &square, &of);
  LANES_AT(dual + at) = of.head;
  for (int i = 1; i < dim; ++i) {
    LANES_AT(dual + at + i * n) = of.tail * LANES_OF(w + at + i * n);
    LANES_AT(workspace->active.rows.u + at + i * n) = of.per * LANES_OF(w + at + i * n);
  }
  set_stiffness(&workspace->envelope, &workspace->active.rows, cone, &of);
  note_force(workspace, cone, &of.part, most);
  return keep_states(workspace->active.state + cone, &of.sticks, &of.slides);
}

LANES_INLINE int respond_rows(qd_cone_workspace *workspace, const cone_group *group, int c,
                              const double *w, double *dual, lanes *most) {
  const cone_operator *rows = &workspace->active.rows;
  const int cone = group->cone + c;
  const lanes at = LANES_OF(w + group->slot + c);
  lanes force, root;
  lane_bits between;
  find_multiplier(&workspace->envelope, cone, &at, &force, &between);
  root = LANES_OF(workspace->envelope.root + cone);
  lanes_keep(&root, &between, &root);
  LANES_AT(dual + group->slot + c) = force;
  LANES_AT(rows->diagonal + cone) = LANES_AT(rows->tangent + cone) = root;
  LANES_AT(rows->along + cone) = root;
  LANES_AT(rows->cross + cone) = zero;
  note_force(workspace, cone, &force, most);
  const lane_bits none = {0, 0, 0, 0};
  return keep_states(workspace->active.state + cone, &between, &none);
}

QD_MULTIVERSION
int envelope_respond(qd_cone_workspace *workspace, const double *w, double *dual, double *force) {
  lanes most = zero;
  int changed = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->padded; c += LANE_COUNT) {
      if (group->kind != GROUP_LORENTZ) {
        changed |= respond_rows(workspace, group, c, w, dual, &most);
      } else if (group->dim == 2) {
        changed |= respond_cones(workspace, group, c, w, dual, &most, 2);
      } else {
        changed |= respond_cones(workspace, group, c, w, dual, &most, group->dim);
      }
    }
  }
  *force = sqrt(max_norm((double *)&most, LANE_COUNT));
  return changed;
}

/* ------------------------------------------------------------ along a line */

LANES_INLINE void add_cone_slopes(const envelope *e, const cone_group *group, int c, double t,
                                  const double *w, const double *dw, lanes *slope, lanes *fall) {
  const int n = group->padded, at = group->slot + c;
  const lanes d0 = LANES_OF(dw + at), w0 = LANES_OF(w + at) + t * d0;
  lanes square = zero, along = zero, moved = zero, stuck, slid;
  four_cones of;
  for (int i = 1; i < group->dim; ++i) {
    const lanes d = LANES_OF(dw + at + i * n), v = LANES_OF(w + at + i * n) + t * d;
    square += v * v;
    along += v * d;
    moved += d * d;
  }
  find_states(e, group->cone + c, &w0, &square, &of);
  *slope += of.head * d0 + of.tail * along;
  const lanes turned = of.per * along, opened = d0 - turned;
  const int cone = group->cone + c;
  stuck = d0 * d0 * LANES_OF(e->stiff + cone) + moved * LANES_OF(e->stiff_across + cone);
  slid = opened * opened * LANES_OF(e->stiff_both + cone) - of.tail * (moved - turned * turned);
  lanes_keep(&slid, &of.slides, &slid);
  lanes_choose(&slid, &of.sticks, &stuck, &slid);
  *fall += slid;
}

LANES_INLINE void add_row_slopes(const envelope *e, const cone_group *group, int c, double t,
                                 const double *w, const double *dw, lanes *slope, lanes *fall) {
  const lanes d = LANES_OF(dw + group->slot + c), v = LANES_OF(w + group->slot + c) + t * d;
  lanes force, stiff = d * d * LANES_OF(e->stiff + group->cone + c);
  lane_bits between;
  find_multiplier(e, group->cone + c, &v, &force, &between);
  *slope += force * d;
  lanes_keep(&stiff, &between, &stiff);
  *fall += stiff;
}

QD_MULTIVERSION
double envelope_slope(const qd_cone_workspace *workspace, double t, const double *w,
                      const double *dw, double *fall) {
  lanes slope = zero, falls = zero;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->padded; c += LANE_COUNT) {
      if (group->kind == GROUP_LORENTZ) {
        add_cone_slopes(&workspace->envelope, group, c, t, w, dw, &slope, &falls);
      } else {
        add_row_slopes(&workspace->envelope, group, c, t, w, dw, &slope, &falls);
      }
    }
  }
  *fall = lanes_sum(&falls);
  return lanes_sum(&slope);
}

/* ------------------------------------------------------------ from multipliers to rows */

/* Rows of a cone for given multipliers. A cone whose tail is as long as its head slides, by as much
 * as w shows. */
static void cone_rows_of(const envelope *e, const cone_group *group, int c, const double *dual,
                         double *w) {
  const int n = group->padded, at = group->slot + c;
  const double R0 = e->normal[group->cone + c], R1 = e->across[group->cone + c], head = dual[at];
  const double load = cone_tail(group, c, dual);
  const int opens = !(head > 0.0), slides = !opens && load >= (1.0 - WEAK) * head;
  const double size = slides ? larger(cone_tail(group, c, w), R1 * load) : 0.0;
  w[at] = opens ? 1.0 : slides ? size - (R0 + R1) * head : -R0 * head;
  for (int i = 1; i < group->dim; ++i) {
    w[at + i * n] = opens ? 0.0 : -dual[at + i * n] * (slides ? size / load : R1);
  }
}

/* Row for a given multiplier; at an end of the interval the row lies beyond it. */
static double row_of(const envelope *e, int cone, double dual) {
  const double lower = e->lower[cone], upper = e->upper[cone];
  const double force = dual <= lower ? lower : dual >= upper ? upper : dual;
  const double beyond = dual <= lower ? 1.0 : dual >= upper ? -1.0 : 0.0;
  return e->normal[cone] * (e->centre[cone] - force) + beyond;
}

void envelope_rows_of(const qd_cone_workspace *workspace, const double *dual, double *w) {
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count; ++c) {
      if (group->kind == GROUP_LORENTZ) {
        cone_rows_of(&workspace->envelope, group, c, dual, w);
      } else {
        w[group->slot + c] = row_of(&workspace->envelope, group->cone + c, dual[group->slot + c]);
      }
    }
  }
}

QD_MULTIVERSION
void envelope_slacks(const qd_cone_workspace *workspace, const double *w, const double *dual,
                     double *slack) {
  const envelope *e = &workspace->envelope;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int i = 0; i < group->dim; ++i) {
      const double *R = (i == 0 ? e->normal : e->across) + group->cone;
      for (int c = 0; c < group->padded; ++c) {
        const int at = group->slot + i * group->padded + c;
        const double centre = i == 0 ? e->centre[group->cone + c] : 0.0;
        slack[at] = w[at] + R[c] * (dual[at] - centre);
      }
    }
  }
}

int envelope_move_centres(qd_cone_workspace *workspace, const double *dual, double far) {
  envelope *e = &workspace->envelope;
  int moved = 0;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group->dim == 1; ++c) {
      const int cone = group->cone + c, at = group->slot + c;
      if (e->rigid[cone] > 0.0) {
        const double size = sqrt(workspace->program.compliance[cone]) * far;
        const double missed = e->normal[cone] * fabs(dual[at] - e->centre[cone]);
        moved |= missed > CANCELLED * larger(size, fabs(workspace->program.g[at]));
        e->centre[cone] = dual[at];
      }
    }
  }
  return moved;
}

/* ------------------------------------------------------------ between states */

static int cone_is_strict(const envelope *e, const cone_group *group, int c, const double *w,
                          double least) {
  const int at = group->slot + c;
  const double R0 = e->normal[group->cone + c], R1 = e->across[group->cone + c];
  const double size = cone_tail(group, c, w);
  return fabs(size - w[at]) / (R0 + R1) > least && fabs(size / R1 + w[at] / R0) > least;
}

static int row_is_strict(const envelope *e, int cone, double w, double least) {
  const double raw = e->centre[cone] - w / e->normal[cone];
  return fabs(raw - e->lower[cone]) > least && fabs(e->upper[cone] - raw) > least;
}

int envelope_is_strict(const qd_cone_workspace *workspace, const double *w, double least) {
  const envelope *e = &workspace->envelope;
  int strict = 1;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && strict; ++c) {
      strict = group->kind == GROUP_LORENTZ
                   ? cone_is_strict(e, group, c, w, least)
                   : row_is_strict(e, group->cone + c, w[group->slot + c], least);
    }
  }
  return strict;
}
