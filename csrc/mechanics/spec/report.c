#include "mechanics/spec/report.h"

#include <math.h>
#include <stdio.h>

qd_status spec_fail(const report *r, const char *array, int index, const char *reason) {
  if (r->message && r->size > 0) {
    snprintf(r->message, r->size, "%s[%d]: %s", array, index, reason);
  }
  return QD_BAD_ARGUMENT;
}

qd_status spec_finite(const report *r, const char *array, const double *values, int rows,
                      int columns) {
  for (int i = 0; values && i < rows * columns; ++i) {
    if (!isfinite(values[i])) {
      spec_fail(r, array, i / columns, "not finite");
      return QD_NOT_FINITE;
    }
  }
  return QD_OK;
}

qd_status spec_quats(const report *r, const char *array, const double *quats, int count) {
  for (int i = 0; quats && i < count; ++i) {
    const double *q = quats + 4 * i;
    const double norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
    if (!(fabs(norm - 1.0) <= 1e-3)) {
      return spec_fail(r, array, i, "not a unit quaternion");
    }
  }
  return QD_OK;
}

qd_status spec_not_negative(const report *r, const char *array, const double *values, int count) {
  TRY(spec_finite(r, array, values, count, 1));
  for (int i = 0; values && i < count; ++i) {
    if (values[i] < 0.0) {
      return spec_fail(r, array, i, "negative");
    }
  }
  return QD_OK;
}

qd_status spec_row_solver(const report *r, const char *array, const double *values, int count,
                          int width) {
  TRY(spec_finite(r, array, values, count, width));
  for (int i = 0; values && i < count; ++i) {
    const double *row = values + (size_t)width * (size_t)i;
    if (row[0] < 0.0 || row[1] < 0.0) {
      return spec_fail(r, array, i, "negative");
    }
    if (row[2] != 0.0 && row[2] != 1.0 && row[2] != 2.0 && row[2] != 3.0) {
      return spec_fail(r, array, i, "no such kind");
    }
  }
  return QD_OK;
}

int spec_index(const int32_t *values, int i) { return values ? values[i] : -1; }

double spec_value(const double *values, int i) { return values ? values[i] : 0.0; }
