/* Reads a program's rows in the caller's form, dense or in tiles, and derives scales from them:
 * units of columns, including the compliance of rows (qdsim.h), and distances. */
#ifndef QD_NUMERICS_CONIC_ROWS_H
#define QD_NUMERICS_CONIC_ROWS_H

#include "numerics/conic/conic.h"

/* Reader of one of the caller's rows, four numbers at a time. */
typedef struct row_reader {
  const double *values, *next; /* current four numbers, zero behind the last column; next ones */
  int first;                   /* first of the current columns */
  int left, columns;           /* remaining groups of four; variables */
  const int *tiles;            /* of the next numbers; NULL: a dense row */
  double tail[4];              /* last columns of a dense row */
} row_reader;

static inline row_reader rows_reader(const double *dense, const sparse_rows *tiles, int n, int i) {
  row_reader row;
  row.columns = n;
  row.tiles = tiles ? tiles->tiles + tiles->start[i] : NULL;
  row.next = tiles ? tiles->values + 4 * (size_t)tiles->start[i] : dense + (size_t)i * (size_t)n;
  row.left = tiles ? tiles->start[i + 1] - tiles->start[i] : (n + 3) / 4;
  row.first = -4;
  return row;
}
/* Row i: G for i < row_count, else C. */
static inline row_reader rows_open(const conic_program *source, int i) {
  const qd_cone_program *p = &source->program;
  return i < p->row_count ? rows_reader(p->G, source->G, p->variable_count, i)
                          : rows_reader(p->C, source->C, p->variable_count, i - p->row_count);
}
static inline row_reader rows_open_cost(const conic_program *source, int j) {
  return rows_reader(source->program.Q, source->Q, source->program.variable_count, j);
}
/* Advances to the next four numbers; 0 at the end. */
static inline int rows_next(row_reader *row) {
  if (row->left == 0) {
    return 0;
  }
  --row->left;
  row->first = row->tiles ? 4 * *row->tiles++ : row->first + 4;
  row->values = row->next;
  row->next += 4;
  if (!row->tiles && row->columns - row->first < 4) {
    for (int j = 0; j < 4; ++j) {
      row->tail[j] = j < row->columns - row->first ? row->values[j] : 0.0;
    }
    row->values = row->tail;
  }
  return 1;
}
/* How many of the four columns exist. */
static inline int rows_width(const row_reader *row) {
  return row->columns - row->first < 4 ? row->columns - row->first : 4;
}
/* Q_jj */
static inline double rows_curvature(const conic_program *source, int j) {
  row_reader row = rows_open_cost(source, j);
  while (rows_next(&row)) {
    if (j < row.first + 4) {
      return j < row.first ? 0.0 : row.values[j - row.first];
    }
  }
  return 0.0;
}

/* out (variables) += factor times row i (as rows_open) */
static inline void rows_add(const conic_program *source, int i, double factor, double *out) {
  for (row_reader row = rows_open(source, i); rows_next(&row);) {
    for (int j = 0; j < rows_width(&row); ++j) {
      out[row.first + j] += factor * row.values[j];
    }
  }
}
/* R of row i (as rows_open). */
static inline double rows_compliance(const qd_cone_program *program, int i) {
  const int m = program->row_count;
  const double *of = i < m ? program->compliance : program->compliance_eq;
  return of ? of[i < m ? i : i - m] : 0.0;
}
/* Offset of row i (as rows_open). */
static inline double rows_offset(const qd_cone_program *program, int i) {
  return i < program->row_count ? program->g[i] : program->c[i - program->row_count];
}
/* 1 if no cone has a target. */
static inline int rows_are_exact(const qd_cone_program *program) {
  int exact = 1;
  for (int k = 0; program->target_mu && k < program->cone_count; ++k) {
    exact &= program->target_mu[k] == 0.0;
  }
  return exact;
}

/* most (variables): largest entry of each column in any row */
void rows_find_largest(const conic_program *source, double *most);

/* Norm of a row in units of columns. */
double rows_norm(const conic_program *source, int i, const double *unit);

/* Units of columns (variables): 1 / sqrt of the curvature from the cost and the springs, or 1 / the
 * column's largest entry. curvature: that curvature, 0 where it is negligible. Returns how far, in
 * these units, the cost alone moves x in columns with curvature. */
double rows_find_units(const conic_program *source, double *unit, double *curvature);

/* Distance to the offsets in units of columns: the largest offset over the largest row norm. */
double rows_far(const qd_cone_program *program, double strongest);

#endif
