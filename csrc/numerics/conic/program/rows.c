#include "numerics/conic/program/rows.h"

#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/tuning.h"

double rows_norm(const conic_program *source, int i, const double *unit) {
  double sum = 0.0, norm = 0.0;
  for (row_reader row = rows_open(source, i); rows_next(&row);) {
    for (int j = 0; j < rows_width(&row); ++j) {
      const double entry = row.values[j] * unit[row.first + j];
      sum += entry * entry;
    }
  }
  if (squares_are_safe(sum)) {
    return sqrt(sum);
  }
  for (row_reader row = rows_open(source, i); rows_next(&row);) {
    for (int j = 0; j < rows_width(&row); ++j) {
      norm = hypot(norm, row.values[j] * unit[row.first + j]);
    }
  }
  return norm;
}

void rows_find_largest(const conic_program *source, double *most) {
  const int rows = source->program.row_count + source->program.equality_count;
  memset(most, 0, (size_t)source->program.variable_count * sizeof(double));
  for (int i = 0; i < rows; ++i) {
    for (row_reader row = rows_open(source, i); rows_next(&row);) {
      for (int j = 0; j < rows_width(&row); ++j) {
        most[row.first + j] = larger(fabs(row.values[j]), most[row.first + j]);
      }
    }
  }
}

double rows_find_units(const conic_program *source, double *unit, double *curvature) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, rows = program->row_count + program->equality_count;
  double free = 0.0;
  for (int j = 0; j < n || j % LANE_COUNT != 0; ++j) {
    curvature[j] = j < n ? rows_curvature(source, j) : 0.0;
  }
  for (int i = 0; i < rows; ++i) {
    const double R = rows_compliance(program, i);
    if (!(R > 0.0)) {
      continue;
    }
    for (row_reader row = rows_open(source, i); rows_next(&row);) {
      const lanes entry = LANES_FROM(row.values);
      LANES_AT(curvature + row.first) += entry * entry / R;
    }
  }
  const double none = NO_COST * max_norm(curvature, n);
  int bare = 0; /* 1: some columns have no curvature */
  for (int j = 0; j < n; ++j) {
    bare |= !(curvature[j] > none);
  }
  if (bare) {
    rows_find_largest(source, unit);
  }
  for (int j = 0; j < n; ++j) {
    if (curvature[j] > none) {
      unit[j] = 1.0 / sqrt(curvature[j]);
      free = larger(free, fabs(program->b[j]) * unit[j]);
      continue;
    }
    curvature[j] = 0.0;
    unit[j] = unit[j] > 0.0 ? 1.0 / unit[j] : 1.0;
  }
  return free;
}

double rows_far(const qd_cone_program *program, double strongest) {
  const double offset = larger(max_norm(program->g, program->row_count),
                               max_norm(program->c, program->equality_count));
  return strongest > 0.0 ? offset / strongest : 0.0;
}
