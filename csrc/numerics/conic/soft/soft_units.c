/* Scales of a program whose rows give way, in the caller's numbers (qdsim.h). */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/certificate/scales.h"
#include "numerics/conic/soft/soft.h"

/* A row of G, or of C behind those: its numbers and the column of the first one. */
typedef struct row_view {
  const double *values;
  const int *tiles; /* NULL: all numbers */
  int tile_count;
} row_view;

static row_view view_row(const conic_program *source, int i) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, at = i < m ? i : i - m;
  const sparse_rows *tiles = i < m ? source->G : source->C;
  const double *dense = i < m ? program->G : program->C;
  if (!tiles) {
    return (row_view){dense + (size_t)at * (size_t)n, NULL, (n + 3) / 4};
  }
  return (row_view){tiles->values + 4 * (size_t)tiles->start[at], tiles->tiles + tiles->start[at],
                    tiles->start[at + 1] - tiles->start[at]};
}

void soft_add_row(const conic_program *source, int i, double factor, double *out, double *terms) {
  const row_view row = view_row(source, i);
  const int n = source->program.variable_count;
  for (int k = 0; k < row.tile_count; ++k) {
    const int first = 4 * (row.tiles ? row.tiles[k] : k);
    for (int j = first; j < first + 4 && j < n; ++j) {
      const double term = factor * row.values[4 * k + j - first];
      out[j] += term;
      terms[j] = larger(terms[j], fabs(term));
    }
  }
}

double soft_row_norm(const conic_program *source, int i, const double *unit) {
  const row_view row = view_row(source, i);
  const int n = source->program.variable_count;
  double norm = 0.0;
  for (int k = 0; k < row.tile_count; ++k) {
    const int first = 4 * (row.tiles ? row.tiles[k] : k);
    for (int j = first; j < first + 4 && j < n; ++j) {
      norm = hypot(norm, row.values[4 * k + j - first] * unit[j]);
    }
  }
  return norm;
}

/* curvature_j += entry^2 / R, most_j: the largest entry */
static void add_curvature(const conic_program *source, int i, double compliance, double *curvature,
                          double *most) {
  const row_view row = view_row(source, i);
  const int n = source->program.variable_count;
  for (int k = 0; k < row.tile_count; ++k) {
    const int first = 4 * (row.tiles ? row.tiles[k] : k);
    for (int j = first; j < first + 4 && j < n; ++j) {
      const double entry = fabs(row.values[4 * k + j - first]);
      most[j] = larger(most[j], entry);
      curvature[j] += compliance > 0.0 ? entry * entry / compliance : 0.0;
    }
  }
}

soft_scales soft_find_units(const conic_program *source, double *unit, double *most) {
  const qd_cone_program *program = &source->program;
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  soft_scales found = {0.0, 0.0, 0.0};
  double strongest = 0.0;
  memset(most, 0, (size_t)n * sizeof(double));
  for (int j = 0; j < n; ++j) {
    unit[j] = soft_curvature(source, j);
  }
  for (int i = 0; i < m + p; ++i) {
    add_curvature(source, i,
                  i < m ? soft_compliance(program, i) : soft_compliance_eq(program, i - m), unit,
                  most);
  }
  for (int j = 0; j < n; ++j) {
    const int is_curved = unit[j] > 0.0;
    unit[j] = is_curved ? 1.0 / sqrt(unit[j]) : most[j] > 0.0 ? 1.0 / most[j] : 1.0;
    found.free = larger(found.free, is_curved ? fabs(program->b[j]) * unit[j] : 0.0);
  }
  for (int i = 0; i < m + p; ++i) {
    strongest = larger(strongest, soft_row_norm(source, i, unit));
  }
  const double offset = larger(max_norm(program->g, m), max_norm(program->c, p));
  found.offset = strongest > 0.0 ? offset / strongest : 0.0;
  found.reach = OFFSET_SHARE * found.offset;
  if (!soft_is_exact(program)) {
    found.reach = larger(found.reach, found.free);
  } else if (offsets_are_none(found.offset, found.free)) {
    found.reach = FREE_SHARE * found.free;
  }
  return found;
}
