/* Whether a matrix may be a cost: symmetric and positive semidefinite, both up to rounding. */
#include <math.h>

#include "base/lanes.h"
#include "qdsim.h"

/* Relative to the largest entry. */
#define ASYMMETRY 1e-9
/* A shift, times the size, under which singular matrices pass, of one with a unit diagonal. */
#define SHIFT 1e-10

static qd_cost_fault find_asymmetry(const double *Q, int n, int *row, int *column) {
  double worst = 0.0;
  const double largest = max_norm(Q, n * n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      if (Q[i * n + j] == Q[j * n + i]) {
        continue;
      }
      const double difference = fabs(Q[i * n + j] - Q[j * n + i]);
      if (!(difference > worst)) {
        continue;
      }
      worst = difference;
      *row = j;
      *column = i;
    }
  }
  return worst > ASYMMETRY * largest ? QD_COST_NOT_SYMMETRIC : QD_COST_FINE;
}

/* First entry of a row that is not zero, in whole lanes: nothing of the factor stands before it. */
static int first_entry(const double *row, int end) {
  int first = 0;
  while (first < end && row[first] == 0.0) {
    ++first;
  }
  return first / LANE_COUNT * LANE_COUNT;
}

/* Rows of the Cholesky factor L of the matrix with a unit diagonal, shifted; padded with zeros to
 * whole lanes. 1 if there is one. */
QD_CLONES static int has_factor(const double *Q, int n, double *scratch) {
  const int stride = (n + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT;
  double *root = scratch, *L = scratch + stride;
  for (int i = 0; i < n; ++i) {
    root[i] = Q[i * n + i] > 0.0 ? 1.0 / sqrt(Q[i * n + i]) : 1.0;
  }
  for (int i = 0; i < n; ++i) {
    double *own = L + (size_t)i * (size_t)stride;
    const int first = first_entry(Q + (size_t)i * (size_t)n, i);
    for (int k = 0; k < stride; ++k) {
      own[k] = 0.0;
    }
    for (int j = first; j < i; ++j) {
      const double *other = L + (size_t)j * (size_t)stride;
      lanes sum = {0.0, 0.0, 0.0, 0.0};
      for (int k = first; k < j; k += LANE_COUNT) {
        sum += LANES_FROM(own + k) * LANES_FROM(other + k);
      }
      const double entry = Q[i * n + j] * (root[i] * root[j]);
      own[j] = (entry - lanes_sum(&sum)) * other[j]; /* the diagonal holds reciprocals */
    }
    lanes square = {0.0, 0.0, 0.0, 0.0};
    for (int k = first; k < i; k += LANE_COUNT) {
      square += LANES_FROM(own + k) * LANES_FROM(own + k);
    }
    const double pivot = Q[i * n + i] * (root[i] * root[i]) + SHIFT * n - lanes_sum(&square);
    if (!(pivot > 0.0)) {
      return 0;
    }
    own[i] = 1.0 / sqrt(pivot);
  }
  return 1;
}

size_t qd_cost_scratch(int n) {
  const size_t stride = ((size_t)n + LANE_COUNT - 1) / LANE_COUNT * LANE_COUNT;
  return stride * ((size_t)n + 1);
}

qd_cost_fault qd_cost_check(int n, const double *Q, double *scratch, int *row, int *column) {
  if (find_asymmetry(Q, n, row, column) != QD_COST_FINE) {
    return QD_COST_NOT_SYMMETRIC;
  }
  for (int i = 0; i < n; ++i) {
    if (Q[i * n + i] < 0.0) {
      *row = *column = i;
      return QD_COST_NEGATIVE;
    }
  }
  return has_factor(Q, n, scratch) ? QD_COST_FINE : QD_COST_INDEFINITE;
}
