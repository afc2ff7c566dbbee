/* Internal interface of the cone solver, beside the public qd_cone_* functions. */
#ifndef QD_NUMERICS_CONIC_H
#define QD_NUMERICS_CONIC_H

#include "qdsim/solvers.h"

/* Default limit on iterations. A limit below MEANT_ITERATIONS is deliberate: no fallbacks are
 * tried. */
#define DEFAULT_ITERATIONS 100
#define MEANT_ITERATIONS (DEFAULT_ITERATIONS / 2)

/* Number of variables from which a program counts as large: a factorisation then costs at least
 * three back-solves, and successive rounds of steps continue from one another. */
#define LARGE_PROGRAM 192

/* Sparse rows. Row i has the tiles start[i] .. start[i + 1] - 1, ascending; the entry tiles[t] = k
 * stands for the columns 4k .. 4k + 3, zero where a row has no entry. Rows of one cone have the
 * same tiles. */
typedef struct sparse_rows {
  const int *start;
  const int *tiles;
  const double *values; /* four per tile */
} sparse_rows;

/* Product of row i with x (n). */
static inline double sparse_row_product(const sparse_rows *rows, int i, const double *x, int n) {
  double sum = 0.0;
  for (int t = rows->start[i]; t < rows->start[i + 1]; ++t) {
    for (int k = 0; k < 4 && 4 * rows->tiles[t] + k < n; ++k) {
      sum += rows->values[4 * (size_t)t + (size_t)k] * x[4 * rows->tiles[t] + k];
    }
  }
  return sum;
}

/* Called once during a warm-started solve whose iterate has a relative error of ROUGHLY: x may
 * already show that the caller needs a program with more rows. */
typedef struct stop_callback {
  int (*is_enough)(void *of, const double *x);
  void *of;
  int stopped; /* 1: it returned nonzero; x, slack and dual are the uncertified iterate */
} stop_callback;

/* A program whose matrices may be sparse. NULL for Q, G or C: the matrix stands in the dense
 * program. */
typedef struct conic_program {
  qd_cone_program program;
  const sparse_rows *Q, *G, *C;
  double length; /* typical length of the rows, in their units: violations up to length times the
                    tolerance count as zero. 0: the scale follows from the program's own numbers
                    alone */
  double load;   /* largest magnitude of the terms that b is a sum of, in units of b, where they may
                    cancel; 0: none do */
  int derivatives; /* 1: derivatives follow. Then a warm start is accepted only with a strict active
                      set, and the set is settled (conic_settle) before the solver returns */
  int ordered;     /* number of leading columns to eliminate last, in the given order; 0: none */
  int answer_only; /* 1: derivatives of the solution are not needed */
  int rough;  /* 1: for an exact program, an approximate point of the path is enough (x, slack and
                 dual without a certificate): the caller will add rows to it */
  int midway; /* 1: the warm start is such a point, or the solution with fewer rows */
  stop_callback *look; /* for warm-started paths; NULL: no callback */
} conic_program;

/* Vectors in the caller's units and order: a solution or a warm start. */
typedef struct conic_answer {
  double *x, *slack, *dual, *dual_eq;
} conic_answer;

/* Capacity of a workspace. */
typedef struct conic_size {
  int variables, rows, equalities;
  int largest_cone; /* largest number of rows of a Lorentz cone */
  size_t row_tiles; /* tiles touched by each row of G and C, summed over the rows */
  size_t fill;      /* tiles of the factor, including the diagonal */
  int is_dense;     /* 1: room to rewrite dense programs in tiles or without equalities */
  int compliant;    /* rows with a compliance, including equalities */
  int intervals;    /* rows of intervals */
} conic_size;

/* Capacity for any program with these numbers of variables, rows and equalities. */
conic_size conic_size_dense(int variables, int rows, int equalities);
/* A workspace in memory of the caller: the size in bytes, and its placement. The memory is aligned
 * as an arena (base/arena.h). */
size_t conic_workspace_size(const conic_size *size);
qd_cone_workspace *conic_workspace_place(void *memory, const conic_size *size);
/* 1 if the workspace has room for programs of this size. */
int conic_workspace_serves(const qd_cone_workspace *workspace, const conic_size *size);
/* Tiles of the factor of the last program, including one that did not fit. */
size_t conic_workspace_fill(const qd_cone_workspace *workspace);

/* As qd_cone_solve. Returns QD_OUT_OF_CAPACITY if the factor has more tiles than the workspace has
 * room for. */
qd_status conic_solve(qd_cone_workspace *workspace, const qd_cone_options *options,
                      const conic_program *program, const conic_answer *out, qd_cone_info *info);

/* 1 if the last program has more than one solution: then out (n) is a direction that leads to
 * others. */
int conic_find_free_direction(qd_cone_workspace *workspace, const qd_cone_info *info, double *out);

/* Determines the active set for derivatives of the last solution. No effect if it is already
 * settled. */
void conic_settle(qd_cone_workspace *workspace, const qd_cone_info *info);

/* Prepares derivatives of the last solution, whose active set is settled: factorisation only.
 * Smoothed programs (target_mu > 0) use the implicit function theorem on the central path, exact to
 * rounding. Exact programs use the certified active set if the solve was polished (*exact = 1),
 * else the derivative of the path (*exact = 0). */
qd_status conic_sensitivity_prepare(qd_cone_workspace *workspace, int *exact);

/* `count` perturbations and the changes of the solution. A perturbation is a change, at fixed x and
 * multipliers, of the stationarity residual Qx + b - G'dual - C'dual_eq, of Gx + g and of Cx + c
 * (for compliant rows, of Gx + g + R dual and Cx + c + R dual_eq: a change of R alone gives the
 * perturbation dR dual). */
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
 * The map is symmetric. With d_stationarity = -y and no other perturbation it gives z = dx, mu =
 * d_dual, nu = d_dual_eq, and y'dx = -z'd_stationarity + mu'd_slack + nu'd_equality holds for any
 * perturbation. */
void conic_sensitivity_solve(qd_cone_workspace *workspace, const conic_change *change);

/* Share (m) of a motion of each limit that the row's multiplier follows at fixed x: 0 .. 1, 0 for
 * rows without limits. With e = by_lower d_lower + by_upper d_upper, moving limits change the
 * answer by conic_sensitivity_solve with d_stationarity = -G'e, plus e in d_dual. */
void conic_sensitivity_limits(const qd_cone_workspace *workspace, double *by_lower,
                              double *by_upper);

#endif
