/* Rows of bilateral constraints that other rows of the island imply: a second closure of a loop of
 * parallel hinges, or rows out of its plane. Numbers from files make them contradict each other in
 * the last digits. If they were kept, a row with a remainder of 1e-8 would turn a joint by a radian
 * to close 1e-9 m, or the program would be infeasible.
 *
 * Gram-Schmidt, from constraint to constraint in their order, so that the result does not depend on
 * which of two rows is longer; among the three rows of a point, or of a rotation, the longest
 * remainder comes first. A remainder shorter than IMPLIED times the longest row of its three is no
 * direction, and its row is removed if its offset agrees with that implied by the others. */
#include "base/lanes.h"
#include "dynamics/problem/parts.h"
#include "dynamics/problem/yield.h"

/* Relative to the longest row of a point or rotation. Larger: rows that hold a mechanism near a
 * dead centre are removed, where it moves by this share; smaller: contradictions of files with
 * seven digits remain. */
#define IMPLIED 1e-3
/* Relative to a row's length: shorter remainders may consist of rounding errors. */
#define CLEARLY_LEFT 0.1

typedef struct row_basis {
  int count, width; /* number of directions; numbers per row, an offset at the end */
  double *row;      /* (count, width) */
  double *rest;     /* (PART, width) remainders of the current rows */
} row_basis;

#define PART 3

/* a . b of rows of `width` numbers, without their offsets, which are in a tile of their own at the
 * end */
LANES_INLINE double dot(const double *a, const double *b, int width) {
  lanes sum = {0.0, 0.0, 0.0, 0.0};
  for (int j = 0; j + LANE_COUNT < width; j += LANE_COUNT) {
    sum += LANES_OF(a + j) * LANES_OF(b + j);
  }
  return lanes_sum(&sum);
}

/* rest -= (rest . unit) unit, including offsets */
LANES_INLINE void take_off(double *rest, const double *unit, int width) {
  const double along = dot(rest, unit, width);
  for (int j = 0; j < width && along != 0.0; j += LANE_COUNT) {
    LANES_AT(rest + j) -= along * LANES_OF(unit + j);
  }
}

/* Removes directions from `first` on from a row whose length was `before`; a second time if little
 * remains, for rounding errors of the first. Returns its length. */
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
  rest[width - LANE_COUNT] = p->program.c[one->equality + i];
  return sqrt(dot(rest, rest, width));
}

/* Adds a remainder of this length as a direction. */
LANES_INLINE void add_direction(row_basis *basis, const double *rest, double length) {
  const int width = basis->width;
  double *unit = basis->row + (size_t)basis->count++ * (size_t)width;
  const double scale = 1.0 / length;
  for (int j = 0; j < width; j += LANE_COUNT) {
    LANES_AT(unit + j) = LANES_OF(rest + j) * scale;
  }
}

/* Rows first .. first + count - 1, one part of a constraint: sets implied[i] for rows to be
 * removed. */
QD_MULTIVERSION
static void look_at_part(const problem *p, const island *one, row_basis *basis, int first,
                         int count, double agrees, int *implied) {
  const int width = basis->width;
  double longest_row = 0.0, length[PART], *rest[PART];
  int known = 0; /* directions already removed from the remainders */
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

/* Number of rows from row i on that belong together: those of a point, a rotation, a coupling. */
static int part_of(const problem *p, const island *one, int i) {
  const equality_row *row = p->equality + one->equality + i;
  int count = 1;
  while (i + count < one->equality_count && row[count].constraint == row->constraint &&
         row[count].component / PART == row->component / PART) {
    ++count;
  }
  return count;
}

/* Largest deviation of an implied row, in its own unit. */
static double tolerance_of(const problem *p, const equality_row *row) {
  const constraint_state *s = p->constraint + row->constraint;
  const int is_turn = row->component >= PART;
  const int is_hinge = s->rows == 1 && s->tendon[0] < 0 &&
                       p->model->joint.type[p->model->dof.joint[s->dof[0]]] == QD_HINGE;
  return FILE_ROUNDING * (is_turn || is_hinge ? 1.0 : p->model->smallest_size);
}

/* Product of rows i and j of the island's C, which have the same tiles. */
static double product_of(const tile_rows *C, int i, int j) {
  const double *a = C->values + 4 * (size_t)C->start[i], *b = C->values + 4 * (size_t)C->start[j];
  const int width = 4 * (C->start[i + 1] - C->start[i]);
  double sum = 0.0;
  for (int k = 0; k < width; ++k) {
    sum += a[k] * b[k];
  }
  return sum;
}

/* Coefficients of rows k and l (equal: of one row) whose sum is nearest to row i; returns 1 if it
 * is row i. */
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

/* Distributes the error of implied rows over the rows of their part: the offsets of kept rows, with
 * coefficients a and an implied row's error d, grow by a d / (1 + a.a). So a loop does not correct
 * in its plane an error out of the plane, if the world's axes are oblique to it. */
static void share_misses(problem *p, const island *one, int first, int count, const int *implied) {
  double *c = p->program.c + one->equality, sum = 0.0, squares = 1.0;
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
    if (stay_count == 2) { /* two of three are kept, so there is no other implied row */
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

/* Removes marked rows. */
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
    p->program.c[one->equality + kept] = p->program.c[one->equality + i];
    p->equality[one->equality + kept] = p->equality[one->equality + i];
    C->start[kept++] = tile;
    tile += count;
  }
  C->start[kept] = tile;
  C->count = kept;
  p->count.equalities -= one->equality_count - kept;
  one->equality_count = kept;
}

/* Whether a row is compliant; then every row counts. */
static int any_gives_way(const problem *p, const island *one) {
  int any = contacts_yield_in_time(p->options);
  for (int i = 0; i < one->equality_count; ++i) {
    const equality_row *row = p->equality + one->equality + i;
    any |= constraint_row_compliance(p->model, p->options, row->constraint, row->component) > 0.0;
  }
  return any;
}

void redundant_rows_leave(problem *p, island *one) {
  const int width = (one->variable_count + 3) / 4 * 4 + LANE_COUNT;
  row_basis basis = {0, width, p->scratch.basis + (size_t)PART * (size_t)width, p->scratch.basis};
  int implied[IMPLIED_ROWS];
  int any = 0;
  if (one->equality_count < 2 || one->equality_count > IMPLIED_ROWS || any_gives_way(p, one)) {
    return;
  }
  for (int i = 0, count; i < one->equality_count; i += count) {
    count = part_of(p, one, i);
    look_at_part(p, one, &basis, i, count, tolerance_of(p, p->equality + one->equality + i),
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
