/* A program's rows as the caller has them, whole or in tiles, one after the other; units of columns
 * and scales in them, compliance of rows included (qdsim.h). */
#ifndef QD_NUMERICS_CONIC_ROWS_H
#define QD_NUMERICS_CONIC_ROWS_H

#include "numerics/conic/conic.h"

/* The numbers of one of the caller's rows, four at a time. */
typedef struct row_reader {
  const double *values, *next; /* of the columns at hand, zero behind the last; of the next ones */
  int first;                   /* of the columns at hand */
  int left, columns;           /* fours, variables */
  const int *tiles;            /* of the next ones; NULL: all numbers of the row */
  double tail[4];              /* of a row of all numbers */
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
/* Row i of G, or behind those of C. */
static inline row_reader rows_open(const conic_program *source, int i) {
  const qd_cone_program *p = &source->program;
  return i < p->row_count ? rows_reader(p->G, source->G, p->variable_count, i)
                          : rows_reader(p->C, source->C, p->variable_count, i - p->row_count);
}
static inline row_reader rows_open_cost(const conic_program *source, int j) {
  return rows_reader(source->program.Q, source->Q, source->program.variable_count, j);
}
/* 0: there are no more. */
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
/* Of the four columns, those that there are. */
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

/* out (variables) += factor times row i of G, or behind those of C. */
static inline void rows_add(const conic_program *source, int i, double factor, double *out) {
  for (row_reader row = rows_open(source, i); rows_next(&row);) {
    for (int j = 0; j < rows_width(&row); ++j) {
      out[row.first + j] += factor * row.values[j];
    }
  }
}
/* R of row i, or behind those of C. */
static inline double rows_compliance(const qd_cone_program *program, int i) {
  const int m = program->row_count;
  const double *of = i < m ? program->compliance : program->compliance_eq;
  return of ? of[i < m ? i : i - m] : 0.0;
}
/* Its offset. */
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

/* A row's norm in units of columns. */
double rows_norm(const conic_program *source, int i, const double *unit);

/* Units of columns (variables): one over the root of their curvature, of the cost and of springs,
 * or over their largest entry; curvature: that, 0 where there is next to none. Returns how far the
 * cost alone sends x in them, where there is curvature. */
double rows_find_units(const conic_program *source, double *unit, double *curvature);

/* How far offsets are, in units of columns: the largest over the largest norm of a row. */
double rows_far(const qd_cone_program *program, double strongest);

#endif
