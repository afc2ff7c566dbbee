/* Tests whether a matrix can be a cost: symmetric and positive semidefinite, both up to
 * rounding. */
#include <math.h>

#include "base/lanes.h"
#include "numerics/conic/tuning.h"
#include "qdsim/solvers.h"

/* Largest number of rows for which the order is kept. */
#define FEW_ROWS 48
/* Rows and columns per patch of the comparison, for the cache. */
#define PATCH 32

/* Raises *worst to |Q_ij - Q_ji| for rows from `row` on and columns from `column` on. */
static void compare_patch(const double *Q, int n, int row, int column, double *worst, int *at) {
  for (int i = row; i < n && i < row + PATCH; ++i) {
    for (int j = column; j < i && j < column + PATCH; ++j) {
      const double a = Q[(size_t)i * (size_t)n + (size_t)j],
                   b = Q[(size_t)j * (size_t)n + (size_t)i];
      if (a != b && fabs(a - b) > *worst) {
        *worst = fabs(a - b);
        at[0] = j;
        at[1] = i;
      }
    }
  }
}

static qd_cost_fault find_asymmetry(const double *Q, int n, int *row, int *column) {
  double worst = 0.0;
  int at[2] = {0, 0};
  for (int i = 0; i < n; i += PATCH) {
    for (int j = 0; j <= i; j += PATCH) {
      compare_patch(Q, n, i, j, &worst, at);
    }
  }
  if (worst == 0.0 || worst <= CALLERS_ROUNDING * max_norm(Q, n * n)) {
    return QD_COST_FINE;
  }
  *row = at[0];
  *column = at[1];
  return QD_COST_NOT_SYMMETRIC;
}

/* ------------------------------------------------------------ order */

/* An order of rows, and its work arrays. */
typedef struct row_order {
  int *row;    /* (n) row at each position */
  int *place;  /* (n) position of each row; -1: not placed */
  int *first;  /* (n) for the row at each position: the position of its first column */
  int *start;  /* (n + 1) into column */
  int *column; /* columns of each row's entries */
} row_order;

static void list_entries(const double *Q, int n, const row_order *order) {
  int end = 0;
  for (int i = 0; i < n; ++i) {
    const double *row = Q + (size_t)i * (size_t)n;
    order->start[i] = end;
    for (int j = 0; j < n; ++j) {
      order->column[end] = j;
      end += row[j] != 0.0;
    }
  }
  order->start[n] = end;
}

static int entries_of(const row_order *order, int row) {
  return order->start[row + 1] - order->start[row];
}

static int lightest_row(int n, const row_order *order) {
  int best = -1;
  for (int i = 0; i < n; ++i) {
    if (order->place[i] < 0 && (best < 0 || entries_of(order, i) < entries_of(order, best))) {
      best = i;
    }
  }
  return best;
}

/* Appends the unplaced neighbours of a row, sorted by their number of entries. */
static int append_neighbours(const row_order *order, int row, int end) {
  const int begin = end;
  for (int k = order->start[row]; k < order->start[row + 1]; ++k) {
    const int next = order->column[k];
    if (order->place[next] >= 0) {
      continue;
    }
    int at = end++;
    for (; at > begin && entries_of(order, order->row[at - 1]) > entries_of(order, next); --at) {
      order->row[at] = order->row[at - 1];
    }
    order->row[at] = next;
    order->place[next] = begin;
  }
  return end;
}

/* Reverse Cuthill-McKee order: neighbours stand close together, and the factor is zero before each
 * row's first entry. */
static void find_order(int n, const row_order *order) {
  for (int i = 0; i < n; ++i) {
    order->place[i] = -1;
  }
  for (int done = 0, end = 0; done < n; ++done) {
    if (done == end) {
      order->row[end] = lightest_row(n, order);
      order->place[order->row[end++]] = done;
    }
    end = append_neighbours(order, order->row[done], end);
  }
  for (int k = 0; k < n / 2; ++k) {
    const int kept = order->row[k];
    order->row[k] = order->row[n - 1 - k];
    order->row[n - 1 - k] = kept;
  }
}

/* Positions and first entries in the order; few rows keep the given order. */
static void find_first(int n, const row_order *order) {
  for (int k = 0; k < n; ++k) {
    order->row[k] = n > FEW_ROWS ? order->row[k] : k;
    order->place[order->row[k]] = k;
  }
  for (int k = 0; k < n; ++k) {
    const int row = order->row[k];
    int first = k;
    for (int e = order->start[row]; e < order->start[row + 1]; ++e) {
      const int place = order->place[order->column[e]];
      first = place < first ? place : first;
    }
    order->first[k] = first / LANE_COUNT * LANE_COUNT;
  }
}

/* ------------------------------------------------------------ factor */

static int padded(int n) { return (n + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT; }

/* 1 if the matrix, scaled to a unit diagonal and shifted, has a Cholesky factor L. Rows of L are
 * padded with zeros to whole lanes from their first entry on. */
QD_MULTIVERSION static int has_factor(const double *Q, int n, const row_order *order,
                                      double *scratch) {
  const int stride = padded(n);
  double *root = scratch, *L = scratch + stride;
  for (int k = 0; k < n; ++k) {
    const double own = Q[(size_t)order->row[k] * (size_t)(n + 1)];
    root[k] = own > 0.0 ? 1.0 / sqrt(own) : 1.0;
  }
  for (int i = 0; i < n; ++i) {
    double *own = L + (size_t)i * (size_t)stride;
    const double *row = Q + (size_t)order->row[i] * (size_t)n;
    for (int k = order->first[i]; k < padded(i + 1); ++k) {
      own[k] = 0.0;
    }
    for (int j = order->first[i]; j < i; ++j) {
      const double *other = L + (size_t)j * (size_t)stride;
      const int first = order->first[i] > order->first[j] ? order->first[i] : order->first[j];
      lanes sum = {0.0, 0.0, 0.0, 0.0};
      for (int k = first; k < j; k += LANE_COUNT) {
        sum += LANES_FROM(own + k) * LANES_FROM(other + k);
      }
      const double entry = row[order->row[j]] * (root[i] * root[j]);
      own[j] = (entry - lanes_sum(&sum)) * other[j]; /* the diagonal holds reciprocals */
    }
    lanes square = {0.0, 0.0, 0.0, 0.0};
    for (int k = order->first[i]; k < i; k += LANE_COUNT) {
      square += LANES_FROM(own + k) * LANES_FROM(own + k);
    }
    const double pivot =
        row[order->row[i]] * (root[i] * root[i]) + PROXIMAL_SHIFT * n - lanes_sum(&square);
    if (!(pivot > 0.0)) {
      return 0;
    }
    own[i] = 1.0 / sqrt(pivot);
  }
  return 1;
}

size_t qd_cost_scratch(int n) {
  /* the factor, the roots, four numbers per row and one more */
  return (size_t)padded(n) * ((size_t)n + 1) + 2 * (size_t)padded(n) + LANE_COUNT;
}

qd_cost_fault qd_cost_check(int n, const double *Q, double *scratch, int *row, int *column) {
  if (find_asymmetry(Q, n, row, column) != QD_COST_FINE) {
    return QD_COST_NOT_SYMMETRIC;
  }
  for (int i = 0; i < n; ++i) {
    if (Q[(size_t)i * (size_t)(n + 1)] < 0.0) {
      *row = *column = i;
      return QD_COST_NEGATIVE;
    }
  }
  int *numbers = (int *)scratch; /* lists of entries share memory with the factor */
  double *factor = scratch + 2 * (size_t)padded(n) + LANE_COUNT;
  const row_order order = {numbers, numbers + n, numbers + 2 * n, numbers + 3 * n, (int *)factor};
  list_entries(Q, n, &order);
  if (n > FEW_ROWS) {
    find_order(n, &order);
  }
  find_first(n, &order);
  return has_factor(Q, n, &order, factor) ? QD_COST_FINE : QD_COST_INDEFINITE;
}
