/* The factor of a small dense matrix and its solves for many columns, row by row. */
#include "base/lanes.h"
#include "mujoco/parts.h"

/* row -= s other */
LANES_INLINE void subtract(double *row, const double *other, double s, int count) {
  int p = 0;
  for (; p + LANE_COUNT <= count; p += LANE_COUNT) {
    LANES_ANYWHERE(row + p) -= s * LANES_FROM(other + p);
  }
  for (; p < count; ++p) {
    row[p] -= s * other[p];
  }
}

/* k = L'L, from the last row up: leaves of trees come first, so that uncoupled branches stay zero
 * (Featherstone 2008, chapter 6). */
QD_MULTIVERSION
int mj_cholesky(double *k, int n) {
  for (int c = n - 1; c >= 0; --c) {
    double *row = k + (size_t)c * (size_t)n;
    if (!(row[c] > 0.0)) {
      return 0;
    }
    row[c] = sqrt(row[c]);
    const double inverse = 1.0 / row[c];
    for (int i = 0; i < c; ++i) {
      row[i] *= inverse;
    }
    for (int i = 0; i < c; ++i) {
      if (row[i] != 0.0) {
        subtract(k + (size_t)i * (size_t)n, row, row[i], i + 1);
      }
    }
  }
  return 1;
}

/* Columns are solved in panels that fit into registers. Zeros of the factor, due to the trees, are
 * skipped. Each number has the same operations in any panel. */
enum { PANEL = 4 };

/* Solves the first `width` lanes of columns of rows (n, columns). */
LANES_INLINE void panel_solve(const double *k, int n, double *rows, size_t columns, int width) {
  lanes sum[PANEL];
  for (int i = n - 1; i >= 0; --i) {
    double *row = rows + (size_t)i * columns;
    for (int p = 0; p < width; ++p) {
      sum[p] = LANES_FROM(row + p * LANE_COUNT);
    }
    for (int j = n - 1; j > i; --j) {
      const double s = k[(size_t)j * (size_t)n + (size_t)i];
      const double *other = rows + (size_t)j * columns;
      for (int p = 0; s != 0.0 && p < width; ++p) {
        sum[p] -= s * LANES_FROM(other + p * LANE_COUNT);
      }
    }
    for (int p = 0; p < width; ++p) {
      LANES_ANYWHERE(row + p * LANE_COUNT) = sum[p] * (1.0 / k[(size_t)i * (size_t)(n + 1)]);
    }
  }
  for (int i = 0; i < n; ++i) {
    const double *factor = k + (size_t)i * (size_t)n;
    double *row = rows + (size_t)i * columns;
    for (int p = 0; p < width; ++p) {
      sum[p] = LANES_FROM(row + p * LANE_COUNT);
    }
    for (int j = 0; j < i; ++j) {
      const double s = factor[j];
      const double *other = rows + (size_t)j * columns;
      for (int p = 0; s != 0.0 && p < width; ++p) {
        sum[p] -= s * LANES_FROM(other + p * LANE_COUNT);
      }
    }
    for (int p = 0; p < width; ++p) {
      LANES_ANYWHERE(row + p * LANE_COUNT) = sum[p] * (1.0 / factor[i]);
    }
  }
}

LANES_INLINE void column_solve(const double *k, int n, double *rows, size_t columns) {
  for (int i = n - 1; i >= 0; --i) {
    double sum = rows[(size_t)i * columns];
    for (int j = n - 1; j > i; --j) {
      sum -= k[(size_t)j * (size_t)n + (size_t)i] * rows[(size_t)j * columns];
    }
    rows[(size_t)i * columns] = sum * (1.0 / k[(size_t)i * (size_t)(n + 1)]);
  }
  for (int i = 0; i < n; ++i) {
    const double *factor = k + (size_t)i * (size_t)n;
    double sum = rows[(size_t)i * columns];
    for (int j = 0; j < i; ++j) {
      sum -= factor[j] * rows[(size_t)j * columns];
    }
    rows[(size_t)i * columns] = sum * (1.0 / factor[i]);
  }
}

QD_MULTIVERSION
void mj_cholesky_solve(const double *k, int n, double *rows, int columns) {
  const size_t width = (size_t)columns;
  int c = 0;
  for (; c + PANEL * LANE_COUNT <= columns; c += PANEL * LANE_COUNT) {
    panel_solve(k, n, rows + c, width, PANEL);
  }
  for (; c + LANE_COUNT <= columns; c += LANE_COUNT) {
    panel_solve(k, n, rows + c, width, 1);
  }
  for (; c < columns; ++c) {
    column_solve(k, n, rows + c, width);
  }
}
