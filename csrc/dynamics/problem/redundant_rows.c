/* Rows of bilateral constraints that other rows of the island imply: what closes a loop of parallel
 * hinges twice, or leads out of its plane. Their numbers come from files, and contradict each other
 * by last digits: taken to the letter, a row of which the others leave 1e-8 turns a joint by a
 * radian to close 1e-9 m, or there is no solution.
 *
 * Gram and Schmidt, from constraint to constraint in their order, so that nothing hangs on which of
 * two rows is longer; among the three rows of a point, or of a turn, the longest remainder first.
 * A remainder of less than IMPLIED of the longest row of its three is no direction: its row goes if
 * its offset agrees with what the others make of it. */
#include "base/lanes.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

/* Of the longest row of a point or turn. More would leave out what holds a mechanism near its dead
 * centre, where it gives way by this share of a motion; less: contradictions of files that have
 * seven digits stay. */
#define IMPLIED 1e-3
/* Of a row's length: with less than that left, what rounding has left of others may count. */
#define CLEARLY_LEFT 0.1

typedef struct row_basis {
  int count, width; /* directions so far; numbers of each, an offset behind them */
  double *row;      /* (count, width) */
  double *rest;     /* (PART, width) of the rows at hand */
} row_basis;

#define PART 3

/* a . b, of rows of `width` numbers whose offsets, in a tile of their own at the end, do not count
 */
LANES_INLINE double dot(const double *a, const double *b, int width) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  for (int j = 0; j + LANE_COUNT < width; j += LANE_COUNT) {
    sum += LANES_OF(a + j) * LANES_OF(b + j);
  }
  return lanes_sum(&sum);
}

/* rest -= (rest . unit) unit, offsets alike */
LANES_INLINE void take_off(double *rest, const double *unit, int width) {
  const double along = dot(rest, unit, width);
  for (int j = 0; j < width && along != 0.0; j += LANE_COUNT) {
    LANES_AT(rest + j) -= along * LANES_OF(unit + j);
  }
}

/* What directions `first` and after leave of a row whose length was `before`; where that is little,
 * once more for what the first time has rounded. Returns its length. */
LANES_INLINE double take_off_all(const row_basis *basis, int first, double *rest, double before) {
  const int width = basis->width;
  double length = before;
  for (int round = 0; round < 2 && (round == 0 || length < CLEARLY_LEFT * before); ++round) {
    for (int b = first; b < basis->count; ++b) {
      take_off(rest, basis->row + (size_t)b * (size_t)width, width);
    }
    length = sqrt(dot(rest, rest, width));
  }
  return length;
}

/* Row i of the island's C with its offset; returns its length. */
LANES_INLINE double open_rest(const problem *p, const island *one, int i, double *rest, int width) {
  const tile_rows *C = &one->C;
  for (int j = 0; j < width; ++j) {
    rest[j] = 0.0;
  }
  for (int k = C->start[i]; k < C->start[i + 1]; ++k) {
    LANES_AT(rest + 4 * C->tiles[k]) = LANES_FROM(C->values + 4 * (size_t)k);
  }
  rest[width - LANE_COUNT] = p->c[one->equality + i];
  return sqrt(dot(rest, rest, width));
}

/* A remainder of this length becomes a direction. */
LANES_INLINE void add_direction(row_basis *basis, const double *rest, double length) {
  const int width = basis->width;
  double *unit = basis->row + (size_t)basis->count++ * (size_t)width;
  const double scale = 1.0 / length;
  for (int j = 0; j < width; j += LANE_COUNT) {
    LANES_AT(unit + j) = LANES_OF(rest + j) * scale;
  }
}

/* Rows `first` to `first + count` of one part of a constraint: implied[i] where a row goes. */
QD_MULTIVERSION
static void look_at_part(const problem *p, const island *one, row_basis *basis, int first,
                         int count, double agrees, int *implied) {
  const int width = basis->width;
  double longest_row = 0.0, length[PART], *rest[PART];
  int known = 0; /* directions that the remainders are without */
  for (int r = 0; r < count; ++r) {
    rest[r] = basis->rest + (size_t)(r * width);
    length[r] = open_rest(p, one, first + r, rest[r], width);
    longest_row = larger(longest_row, length[r]);
    implied[first + r] = 1;
  }
  for (int round = 0; round < count; ++round) {
    int longest = -1;
    for (int r = 0; r < count; ++r) {
      if (implied[first + r]) {
        length[r] = take_off_all(basis, known, rest[r], length[r]);
        longest = longest < 0 || length[r] > length[longest] ? r : longest;
      }
    }
    known = basis->count;
    if (!(length[longest] > IMPLIED * longest_row)) {
      break;
    }
    implied[first + longest] = 0;
    add_direction(basis, rest[longest], length[longest]);
  }
  for (int r = 0; r < count; ++r) {
    implied[first + r] &= fabs(rest[r][width - LANE_COUNT]) <= agrees;
  }
}

/* Rows of a constraint that belong together from row i on: those of a point, a turn, a coupling. */
static int part_of(const problem *p, const island *one, int i) {
  const equality_row *row = p->equality + one->equality + i;
  int count = 1;
  while (i + count < one->equality_count && row[count].constraint == row->constraint &&
         row[count].component / PART == row->component / PART) {
    ++count;
  }
  return count;
}

/* How far an implied row may be off, in its own unit. */
static double tolerance_of(const problem *p, const qd_model *model, const equality_row *row) {
  const constraint_state *s = p->constraint + row->constraint;
  const int is_turn = row->component >= PART;
  const int is_hinge = s->rows == 1 && s->tendon[0] < 0 &&
                       model->joint_type[model->dof_joint[s->dof[0]]] == QD_HINGE;
  return FILE_ROUNDING * (is_turn || is_hinge ? 1.0 : model->smallest_size);
}

/* Of rows i and j of the island's C, which have the same tiles. */
static double product_of(const tile_rows *C, int i, int j) {
  const double *a = C->values + 4 * (size_t)C->start[i], *b = C->values + 4 * (size_t)C->start[j];
  const int width = 4 * (C->start[i + 1] - C->start[i]);
  double sum = 0.0;
  for (int k = 0; k < width; ++k) {
    sum += a[k] * b[k];
  }
  return sum;
}

/* Shares of rows k and l (the same: of one) whose sum is nearest to row i; 1 if it is i. */
static int find_shares(const tile_rows *C, int i, int k, int l, double share[2]) {
  const double kk = product_of(C, k, k), ik = product_of(C, i, k), ii = product_of(C, i, i);
  if (k == l) {
    share[0] = ik / kk;
    share[1] = 0.0;
    return ii - share[0] * ik <= IMPLIED * IMPLIED * larger(ii, kk);
  }
  const double ll = product_of(C, l, l), kl = product_of(C, k, l), il = product_of(C, i, l);
  const double det = kk * ll - kl * kl;
  share[0] = (ik * ll - il * kl) / det;
  share[1] = (il * kk - ik * kl) / det;
  return ii - share[0] * ik - share[1] * il <= IMPLIED * IMPLIED * larger(ii, larger(kk, ll));
}

/* What rows of a part miss that others of it imply, all of it bears alike: offsets of those that
 * stay, with share a and what an implied row misses d, grow by a d / (1 + a.a). So a loop does not
 * close in its plane what it misses across, where world axes lie oblique to it. */
static void share_misses(problem *p, const island *one, int first, int count, const int *implied) {
  double *c = p->c + one->equality, sum = 0.0, squares = 1.0;
  int stays[2], stay_count = 0;
  for (int i = first; i < first + count; ++i) {
    if (!implied[i] && stay_count < 2) {
      stays[stay_count] = i;
    }
    stay_count += !implied[i];
  }
  if (stay_count == 0 || stay_count == count) {
    return;
  }
  const int k = stays[0], l = stays[stay_count - 1];
  const double own[2] = {c[k], c[l]};
  for (int i = first; i < first + count; ++i) {
    double share[2];
    if (!implied[i] || !find_shares(&one->C, i, k, l, share)) {
      continue;
    }
    const double missed = c[i] - share[0] * own[0] - share[1] * own[1];
    if (stay_count == 2) { /* of three: there is no other */
      squares += share[0] * share[0] + share[1] * share[1];
      c[k] += share[0] * missed / squares;
      c[l] += share[1] * missed / squares;
      return;
    }
    sum += share[0] * missed;
    squares += share[0] * share[0];
  }
  c[k] += stay_count == 1 ? sum / squares : 0.0;
}

/* Rows with a mark go, the others close up. */
static void leave_out(problem *p, island *one, const int *implied) {
  tile_rows *C = &one->C;
  int kept = 0, tile = 0;
  for (int i = 0; i < one->equality_count; ++i) {
    const int from = C->start[i], count = C->start[i + 1] - from;
    if (implied[i]) {
      continue;
    }
    memmove(C->tiles + tile, C->tiles + from, (size_t)count * sizeof(int));
    memmove(C->values + 4 * (size_t)tile, C->values + 4 * (size_t)from,
            4 * (size_t)count * sizeof(double));
    p->c[one->equality + kept] = p->c[one->equality + i];
    p->equality[one->equality + kept] = p->equality[one->equality + i];
    C->start[kept++] = tile;
    tile += count;
  }
  C->start[kept] = tile;
  C->count = kept;
  p->equality_count -= one->equality_count - kept;
  one->equality_count = kept;
}

/* Some row gives way: each counts then. */
static int any_gives_way(const problem *p, const qd_model *model, const qd_step_options *options,
                         const island *one) {
  int any = contacts_yield_in_time(options);
  for (int i = 0; i < one->equality_count; ++i) {
    const equality_row *row = p->equality + one->equality + i;
    any |= constraint_row_compliance(model, options, row->constraint, row->component) > 0.0;
  }
  return any;
}

void redundant_rows_leave(problem *p, const qd_model *model, const qd_step_options *options,
                          island *one) {
  const int width = (one->variable_count + 3) / 4 * 4 + LANE_COUNT;
  row_basis basis = {0, width, p->basis + (size_t)PART * (size_t)width, p->basis};
  int implied[IMPLIED_ROWS];
  int any = 0;
  if (one->equality_count < 2 || one->equality_count > IMPLIED_ROWS ||
      any_gives_way(p, model, options, one)) {
    return;
  }
  for (int i = 0, count; i < one->equality_count; i += count) {
    count = part_of(p, one, i);
    look_at_part(p, one, &basis, i, count, tolerance_of(p, model, p->equality + one->equality + i),
                 implied);
    share_misses(p, one, i, count, implied);
  }
  for (int i = 0; i < one->equality_count; ++i) {
    any |= implied[i];
  }
  if (any) {
    leave_out(p, one, implied);
  }
}
