/* Finds from the path which directions of which cones the exact solution holds.
 *
 * On the path a direction's slack times its multiplier is mu. In held directions the multiplier
 * converges and the slack vanishes with mu; in free directions the reverse. So their ratio grows
 * like 1 / mu or falls like mu, and the gap between the two kinds widens like 1 / mu^2. A ratio has
 * units; times the cone's compliance it is the distance that the multiplier would push the slack,
 * over the slack, comparable between cones. The polish splits the directions in the middle of the
 * widest gap. Tried and dropped: natural units (force over length, the same for all), which are
 * right where slips are about as long as the free motion. A grasp at rest, which creeps by less
 * than a millionth of that, would have to follow the path five iterations longer. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/workspace.h"

#define BINS 512 /* range of powers of two, centred at 1 */

typedef struct histogram {
  int lowest, highest;
  uint64_t found[BINS / 64];
} histogram;

/* e with value < 2^e, from the exponent bits of a positive number; larger for numbers that are not
 * finite. */
static int exponent_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return (int)(bits >> 52 & 0x7ff) - 1022;
}

static void note(histogram *h, double ratio) {
  int bin = exponent_of(ratio) + BINS / 2;
  bin = bin < 0 ? 0 : bin > BINS - 1 ? BINS - 1 : bin;
  h->found[bin / 64] |= (uint64_t)1 << bin % 64;
  h->lowest = bin < h->lowest ? bin : h->lowest;
  h->highest = bin > h->highest ? bin : h->highest;
}

/* Notes the ratios of four cones from c on, by eigenvalues along (1, u) and (1, -u), u the
 * direction of the multiplier. */
LANES_INLINE void note_cones(const qd_cone_workspace *workspace, const cone_group *group, int c,
                             histogram *h) {
  const int n = group->padded, at = group->slot + c, left = group->count - c;
  const int real = left < LANE_COUNT ? left : LANE_COUNT;
  const double *s = workspace->iterate.slack + at, *z = workspace->iterate.dual + at;
  const lanes compliance = LANES_OF(workspace->program.compliance + group->cone + c);
  lanes ss = {0.0, 0.0, 0.0, 0.0}, zz = ss, room, least;
  for (int i = 1; i < group->dim; ++i) {
    ss += LANES_OF(s + i * n) * LANES_OF(s + i * n);
    zz += LANES_OF(z + i * n) * LANES_OF(z + i * n);
  }
  lanes_sqrt(&ss, &ss);
  lanes_sqrt(&zz, &zz);
  room = LANES_OF(s) - ss;
  least = SUM_ROUNDING * LANES_OF(s);
  lanes_larger(&room, &room, &least);
  const lanes along = compliance * (LANES_OF(z) + zz) / room;
  room = LANES_OF(z) - zz;
  least = SUM_ROUNDING * LANES_OF(z);
  lanes_larger(&room, &room, &least);
  const lanes against = compliance * room / (LANES_OF(s) + ss);
  for (int k = 0; k < real; ++k) {
    if (compliance[k] > 0.0) {
      note(h, along[k]);
      if (group->dim > 1) {
        note(h, against[k]);
      }
    }
  }
}

/* The lowest bin from k on with a ratio; there must be one. */
static int next_bin(const histogram *h, int k) {
  uint64_t word = h->found[k / 64] >> k % 64;
  while (word == 0) {
    k += 64 - k % 64;
    word = h->found[k / 64];
  }
  return k + __builtin_ctzll(word);
}

/* Width of the widest gap, and its middle as a power of two. If all ratios lie on one side of 1,
 * where the slack equals the multiplier's push, the gap to 1 counts as well. */
static int widest_gap(const histogram *h, double *middle) {
  const int one = BINS / 2;
  int width = 0, at = one;
  for (int last = h->lowest, next; last < h->highest; last = next) {
    next = next_bin(h, last + 1);
    if (next - last > width) {
      width = next - last;
      at = last + next;
    }
  }
  if (h->lowest - one > width) {
    width = h->lowest - one;
    at = h->lowest + one;
  }
  if (one - h->highest > width) {
    width = one - h->highest;
    at = h->highest + one;
  }
  *middle = 0.5 * (double)at - (double)one;
  return width;
}

QD_MULTIVERSION
int conic_find_split(qd_cone_workspace *workspace, int wanted) {
  histogram h = {.lowest = BINS, .highest = 0};
  double middle;
  for (const cone_group *group = first_group(workspace); group < end_group(workspace); ++group) {
    for (int c = 0; c < group->count && group_is_cone(group); c += LANE_COUNT) {
      note_cones(workspace, group, c, &h);
    }
  }
  if (h.lowest > h.highest) {
    return workspace->polish.split_width = 0;
  }
  workspace->polish.split_width = widest_gap(&h, &middle);
  if (workspace->polish.split_width < wanted) {
    return workspace->polish.split_width;
  }
  middle = exp2(middle);
  const double natural = workspace->units.force / workspace->units.near_length;
  for (int c = 0; c < workspace->program.lane_count; ++c) {
    workspace->polish.split[c] = workspace->program.compliance[c] > 0.0
                                     ? middle / workspace->program.compliance[c]
                                     : natural;
  }
  return workspace->polish.split_width;
}
