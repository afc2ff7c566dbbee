/* Coulomb's law by an interior point path in a program's own variables.
 *
 * With w = Gx + g of a contact and v its slack the path is
 *
 *     Qx + b = G' lambda,   v = w + (|v_tail|^2 / v_head) e,   v o lambda = mu 1,
 *
 * and limits, rows without a tail, have v = w. For mu = 0 this is De Saxce's form of the law: what
 * slides under load has v_head = |v_tail|, what has no force may have any slack. For mu > 0 it says
 * lambda_head w_head = mu and lambda_tail = -lambda_head v_tail / v_head: friction that grows with
 * the slip until that is much more than the gap, smooth also where nothing slips.
 *
 * Newton's steps have the pattern of the convex program's matrix, unsymmetric: Q + G' W^-2 T G, W
 * Nesterov and Todd's scaling and T = dv / dw.
 *
 * The path of a law that is not monotone turns back where a state ends, and many do in a heap that
 * moves by several radii in a step. There mu falls by a jump, and the bodies go where the forces
 * that are left push them, Q dx = -(Qx + b - G' lambda) dt, in implicit steps: Q in the matrix
 * times 1 + 1/dt. That leads to the next state in few steps, which the path goes on from; following
 * the path around its turns takes hundreds. */
#ifndef QD_NUMERICS_COULOMB_PRIMAL_PATH_H
#define QD_NUMERICS_COULOMB_PRIMAL_PATH_H

#include "base/arena.h"
#include "numerics/conic/conic.h"
#include "numerics/coulomb/block_lu.h"
#include "numerics/coulomb/work.h"

/* A row that is no contact's, as the path knows it: a force load - stiffness w on it. */
typedef struct primal_spring {
  const sparse_rows *rows;
  int row;
  double offset;                   /* w = row x + offset */
  double compliance, lower, upper; /* of the multiplier: 0, infinite: of an equality */
  double stiffness;                /* 0: at a limit */
  double load;
  int holds; /* 1: the row is to have w = 0, and the stiffness is the path's */
} primal_spring;

typedef struct primal_sizes {
  int variables, rows, equalities;
  size_t row_tiles;     /* of G */
  size_t entries, fill; /* tiles of the matrix, and below the diagonal of its factor; 0: no path */
} primal_sizes;

typedef struct primal_path {
  int variables, tiles, cones, rows;
  coulomb_cone *cone; /* (rows) tail: its head's row and one */
  int springs;
  primal_spring *spring;        /* (rows, equalities) */
  const double *dual, *dual_eq; /* of the solution that shows which intervals are at their limits */
  char *paired;  /* (rows) 1: this row and the next, head + tail and head - tail, are a cone */
  sparse_rows G; /* with head and tail in place of such rows */
  const double *g;
  double *own_values, *own_g; /* for that */
  block_matrix A;
  size_t entry_room;
  block_lu lu;
  uint64_t *mask;       /* (tiles, words) scratch: the matrix' pattern */
  double *x, *dx, *rhs; /* (4 tiles) */
  double *pull;         /* (4 tiles) G' lambda - Qx - b */
  double *gap;          /* (rows) w + shift - v */
  double *row_tiles;    /* (tiles, 16) scratch */
  double hold;          /* 1 / dt */
  double stiffness;     /* largest entry of Q's diagonal */
  double hard;          /* force per motion of what a polish holds; 0: on the path */
} primal_path;

void primal_path_lay_out(primal_path *p, const primal_sizes *sizes, arena *a);

/* Follows the path until mu is at most `accuracy` times the largest force; 1 if it gets there
 * within so many factors from some start, or the first alone: then p->x and the cones have the
 * point. 0 also where the program has rows that the path does not know, or no room. */
int primal_path_follow(primal_path *p, const conic_program *program, double accuracy, int from_one,
                       int most_factors, int *factorizations);

/* ---- primal_polish.c */

/* x and the forces of the point at hand, in the program's rows. */
void primal_path_read(const primal_path *p, double *x, double *dual, double *dual_eq);
/* The program's pattern, and a point of it; 0 as above. */
int primal_path_load(primal_path *p, const conic_program *program, const double *x,
                     const double *dual);
/* Newton's method on the law from the point at hand; 1 if that solves it to within `tolerance`, in
 * units of g. */
int primal_polish(primal_path *p, const conic_program *program, double tolerance, int most_factors,
                  int *factorizations);
/* 1 if the equations that it has solved last have one solution near by, which does not turn their
 * orientation. */
int primal_is_regular(primal_path *p, const conic_program *program);

/* ---- primal_springs.c: intervals as they are in p->dual, equalities. The path ends at a point of
 * other limits where that is another set of intervals; the programs behind it find theirs. */

/* 0 where rows of contacts and limits give way, which the path does not know. */
int primal_springs_list(primal_path *p, const conic_program *program);
/* pull += their forces */
void primal_springs_pull(primal_path *p);
/* A += their stiffness */
void primal_springs_add(primal_path *p);
/* Which multipliers are at their limits at the point, and which go on from the force that they
 * have. */
void primal_springs_choose(primal_path *p);
void primal_springs_read(const primal_path *p, double *dual, double *dual_eq);

/* ---- primal_system.c */

/* Cones and the matrix' pattern, in order; 0 where that is not possible. */
int primal_system_begin(primal_path *p, const conic_program *program);
/* pull and gap of the point */
void primal_system_measure(primal_path *p, const conic_program *program);
/* Factors at the point's scalings; of Q alone with no_contacts. */
void primal_system_factor(primal_path *p, const conic_program *program, int no_contacts);
/* dx, and steps of slacks and forces for the cones' aims */
void primal_system_solve(primal_path *p);
/* y = Q x */
void primal_cost_product(const primal_path *p, const conic_program *program, const double *x,
                         double *y);
/* |v_tail|^2 / v_head of a slack */
double primal_shift(const double *slack, int tails);

#endif
