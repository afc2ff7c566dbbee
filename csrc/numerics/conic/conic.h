/* Cone programs: what the rest of the core needs beside the public qd_cone_* functions. */
#ifndef QD_NUMERICS_CONIC_H
#define QD_NUMERICS_CONIC_H

#include "qdsim/solvers.h"

/* Iterations that callers get who ask for no limit. A far smaller limit is one that the caller
 * means: nothing else is tried. */
#define DEFAULT_ITERATIONS 100
#define MEANT_ITERATIONS (DEFAULT_ITERATIONS / 2)

/* Variables from which on a program counts as large: a factor costs as much as three back-solves
 * and more, and rounds of steps go on from one another. */
#define LARGE_PROGRAM 192

/* Rows with few entries: row i has the tiles start[i] .. start[i + 1] - 1, ascending; tile t holds
 * the columns 4t .. 4t + 3, zero where a row has none. Rows of one cone have the same tiles. */
typedef struct sparse_rows {
  const int *start;
  const int *tiles;
  const double *values; /* four per tile */
} sparse_rows;

/* Row i times x, of n numbers. */
static inline double sparse_row_product(const sparse_rows *rows, int i, const double *x, int n) {
  double sum = 0.0;
  for (int t = rows->start[i]; t < rows->start[i + 1]; ++t) {
    for (int k = 0; k < 4 && 4 * rows->tiles[t] + k < n; ++k) {
      sum += rows->values[4 * (size_t)t + (size_t)k] * x[4 * rows->tiles[t] + k];
    }
  }
  return sum;
}

/* Asked once on the way of a program that goes on from a guess, where its point is known to
 * ROUGHLY: what x shows may be enough to know that a program with more rows is wanted instead.
 */
typedef struct stop_callback {
  int (*is_enough)(void *of, const double *x);
  void *of;
  int stopped; /* 1: it was; x, slack and dual are that point's, without a certificate */
} stop_callback;

/* A program whose matrices may be sparse: NULL here for one that stands in the dense program. */
typedef struct conic_program {
  qd_cone_program program;
  const sparse_rows *Q, *G, *C;
  double length; /* of what the rows are about, in their units: this times the tolerance is zero.
                    0: nothing but the program's own numbers says what is small */
  double load; /* of numbers that b is a sum of, in its units, where they may cancel; 0: none do */
  int derivatives; /* 1: they are asked for next. Of a warm start only a strict active set counts,
                      and the set is settled (conic_settle) before the solver returns */
  int ordered; /* so many columns stand in an order against fill, with what is eliminated together
                  in tiles of its own; 0: in no such order */
  int answer_only; /* 1: nobody will ask for the solution's derivatives */
  int rough;       /* 1: of an exact program, a point of the path from which to go on with more rows
                      will do: x, slack and dual without a certificate */
  int midway;      /* 1: a warm start is such a point, or the solution with fewer rows */
  stop_callback *look; /* on the way from there; NULL: nobody asks */
} conic_program;

/* Vectors in the caller's numbers, of what is asked or of a guess. */
typedef struct conic_answer {
  double *x, *slack, *dual, *dual_eq;
} conic_answer;

/* What a workspace has room for. */
typedef struct conic_size {
  int variables, rows, equalities;
  int largest_cone; /* most rows of a Lorentz cone */
  size_t row_tiles; /* tiles that rows (and equalities) touch, summed over them */
  size_t fill;      /* tiles of the factor, the diagonal's included */
  int is_dense;     /* 1: room to write dense programs anew, in tiles or without equalities */
  int compliant;    /* rows with a compliance, equalities included */
  int intervals;    /* rows of intervals */
} conic_size;

/* Any program of so many variables, rows and equalities. */
conic_size conic_size_dense(int variables, int rows, int equalities);
/* A workspace in memory of the caller, aligned as an arena (base/arena.h), of this many bytes. */
size_t conic_workspace_size(const conic_size *size);
qd_cone_workspace *conic_workspace_place(void *memory, const conic_size *size);
/* 1 if it serves programs of these sizes. */
int conic_workspace_serves(const qd_cone_workspace *workspace, const conic_size *size);
/* Tiles of the factor of the program that was solved last, or that did not fit. */
size_t conic_workspace_fill(const qd_cone_workspace *workspace);

/* qd_cone_solve; QD_OUT_OF_CAPACITY if the factor has more tiles than the workspace has room for.
 */
qd_status conic_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                      const conic_program *program, const conic_answer *out, qd_cone_info *info);

/* 1 if the solution of the program that was solved last is not the only one: then out (n) is a
 * direction that leads to others. */
int conic_find_free_direction(qd_cone_workspace *workspace, const qd_cone_info *info, double *out);

/* Settles the active set that derivatives of the solution are taken on, of a program that was
 * solved without being asked for them; nothing where it is settled. */
void conic_settle(qd_cone_workspace *workspace, const qd_cone_info *info);

/* Differentiates the solution map of the program that was solved last in this workspace, whose
 * active set is settled: factors, no more. Smoothed (target_mu > 0): implicit function theorem on
 * the central path, exact to rounding. Exact: on the certified active set if the solve was
 * polished, else the path's own derivative. *exact: 1, or 0 where the path's derivative stands in.
 */
qd_status conic_sensitivity_prepare(qd_cone_workspace *workspace, int *exact);

/* Perturbations, `count` at once: partial derivatives, at fixed x and multipliers, of the
 * stationarity residual Qx + b - G'dual - C'dual_eq, of Gx + g and of Cx + c; and the changes of
 * the solution that they make. Of rows that give way, of Gx + g + R dual and Cx + c + R dual_eq: a
 * change of R alone is one by dual dR. */
typedef struct conic_change {
  int count;
  const double *d_stationarity; /* (n, count) */
  const double *d_slack;        /* (m, count), NULL: zero */
  const double *d_equality;     /* (p, count), NULL: zero */
  double *dx;                   /* (n, count) */
  double *d_dual, *d_dual_eq;   /* (m, count), (p, count), NULL: not wanted */
} conic_change;

/* Fills dx, d_dual and d_dual_eq.
 *
 * The map is symmetric: with d_stationarity = -y and nothing else it gives z = dx, mu = d_dual, nu
 * = d_dual_eq, and y'dx = -z'd_stationarity + mu'd_slack + nu'd_equality for any perturbation. */
void conic_sensitivity_solve(qd_cone_workspace *workspace, const conic_change *change);

/* How much of a motion of its limits each multiplier takes along, at fixed x: (m) each, 0 .. 1, 0
 * for rows without. With e = by_lower d_lower + by_upper d_upper, limits that move change the
 * answer by what conic_sensitivity_solve makes of d_stationarity = -G'e, and d_dual by e besides.
 */
void conic_sensitivity_limits(const qd_cone_workspace *workspace, double *by_lower,
                              double *by_upper);

#endif
