/* The factor of a small dense matrix and its solves for many columns, rows by rows. */
#include "mujoco/parts.h"

int mj_cholesky(double *k, int n) {
  for (int j = 0; j < n; ++j) {
    double *row = k + (size_t)j * (size_t)n;
    for (int i = 0; i < j; ++i) {
      const double *other = k + (size_t)i * (size_t)n;
      double sum = row[i];
      for (int p = 0; p < i; ++p) {
        sum -= row[p] * other[p];
      }
      row[i] = sum / other[i];
    }
    double pivot = row[j];
    for (int p = 0; p < j; ++p) {
      pivot -= row[p] * row[p];
    }
    if (!(pivot > 0.0)) {
      return 0;
    }
    row[j] = sqrt(pivot);
  }
  return 1;
}

/* to -= s from */
static void row_subtract(double *restrict to, double s, const double *restrict from, int columns) {
  for (int c = 0; c < columns; ++c) {
    to[c] -= s * from[c];
  }
}

static void row_scale(double *to, double s, int columns) {
  for (int c = 0; c < columns; ++c) {
    to[c] *= s;
  }
}

void mj_cholesky_solve(const double *k, int n, double *rows, int columns) {
  const size_t width = (size_t)columns;
  for (int i = 0; i < n; ++i) {
    const double *factor = k + (size_t)i * (size_t)n;
    double *row = rows + (size_t)i * width;
    for (int j = 0; j < i; ++j) {
      if (factor[j] != 0.0) {
        row_subtract(row, factor[j], rows + (size_t)j * width, columns);
      }
    }
    row_scale(row, 1.0 / factor[i], columns);
  }
  for (int i = n - 1; i >= 0; --i) {
    const double *factor = k + (size_t)i * (size_t)n;
    const double *row = rows + (size_t)i * width;
    row_scale(rows + (size_t)i * width, 1.0 / factor[i], columns);
    for (int j = 0; j < i; ++j) {
      if (factor[j] != 0.0) {
        row_subtract(rows + (size_t)j * width, factor[j], row, columns);
      }
    }
  }
}
