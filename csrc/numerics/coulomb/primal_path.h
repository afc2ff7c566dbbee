/* Coulomb's law by an interior point path in the program's own variables.
 *
 * With w = Gx + g of a contact and its slack v, the path is
 *
 *     Qx + b = G' lambda,   v = w + (|v_tail|^2 / v_head) e,   v o lambda = mu 1,
 *
 * and limits, which are rows without a tail, have v = w. For mu = 0 this is De Saxce's form of the
 * law: contacts that slide under load have v_head = |v_tail|; those without force may have any
 * slack. For mu > 0, lambda_head w_head = mu and lambda_tail = -lambda_head v_tail / v_head:
 * friction grows with the slip until the slip is much larger than the gap, and is smooth also
 * without slip.
 *
 * Newton's matrix has the pattern of the convex program's matrix but is unsymmetric: Q + G' W^-2 T
 * G, with Nesterov-Todd's scaling W and T = dv / dw.
 *
 * The law is not monotone, and its path turns back where a contact state ends. Many states end in a
 * heap that moves by several radii in a step. There mu is reduced at once, and x follows the
 * remaining forces, Q dx = -(Qx + b - G' lambda) dt, in implicit steps, which have Q times 1 + 1/dt
 * in the matrix. This flow reaches the next state in a few steps, from which the path continues;
 * following the path around its turns takes hundreds. */
#ifndef QD_NUMERICS_COULOMB_PRIMAL_PATH_H
#define QD_NUMERICS_COULOMB_PRIMAL_PATH_H

#include "base/arena.h"
#include "numerics/conic/conic.h"
#include "numerics/coulomb/block_lu.h"
#include "numerics/coulomb/work.h"

/* A row that belongs to no contact, with the force load - stiffness w on it. */
typedef struct primal_spring {
  const sparse_rows *rows;
  int row;
  double offset;                   /* w = row x + offset */
  double compliance, lower, upper; /* limits of the multiplier; an equality has none */
  double stiffness;                /* 0: the force is at a limit */
  double load;
  int holds; /* 1: the row is to have w = 0, with the path's stiffness */
} primal_spring;

typedef struct primal_sizes {
  int variables, rows, equalities;
  size_t row_tiles;     /* of G */
  size_t entries, fill; /* limits on the tiles of the matrix, and of its factor below the diagonal;
                           0: no path */
} primal_sizes;

typedef struct primal_path {
  int variables, tiles, cones, rows;
  coulomb_cone *cone; /* (rows) tail: one more than its head's row */
  int springs;
  primal_spring *spring;        /* (rows, equalities) */
  const double *dual, *dual_eq; /* solution that shows which intervals are at their limits */
  char *paired;  /* (rows) 1: this row and the next, head + tail and head - tail, form a cone */
  sparse_rows G; /* with head and tail instead of such pairs */
  const double *g;
  double *own_values, *own_g; /* memory for these */
  block_matrix A;
  size_t entry_room;
  block_lu lu;
  uint64_t *mask;       /* (tiles, words) scratch: pattern of the matrix */
  double *x, *dx, *rhs; /* (4 tiles) */
  double *pull;         /* (4 tiles) G' lambda - Qx - b */
  double *gap;          /* (rows) w + shift - v */
  double *row_tiles;    /* (tiles, 16) scratch */
  double hold;          /* 1 / dt */
  double stiffness;     /* largest entry of Q's diagonal */
  double hard; /* stiffness of held directions in a polish (force per motion); 0: on the path */
} primal_path;

void primal_path_lay_out(primal_path *p, const primal_sizes *sizes, arena *a);

/* Follows the path until mu is at most `accuracy` times the largest force. Returns 1 if a start (or
 * with `from_one` the first one) gets there within `most_factors`: then p->x and the cones hold the
 * point. Returns 0 also if the program has rows that the path does not support, or there is no
 * room. */
int primal_path_follow(primal_path *p, const conic_program *program, double accuracy, int from_one,
                       int most_factors, int *factorizations);

/* ---- primal_polish.c */

/* x and the forces of the current point, in the program's rows. */
void primal_path_read(const primal_path *p, double *x, double *dual, double *dual_eq);
/* Loads the program's pattern and a point; 0 as above. */
int primal_path_load(primal_path *p, const conic_program *program, const double *x,
                     const double *dual);
/* Newton's method on the law from the current point; 1 if it solves the law within `tolerance`, in
 * units of g. */
int primal_polish(primal_path *p, const conic_program *program, double tolerance, int most_factors,
                  int *factorizations);
/* 1 if the equations solved last have a locally unique solution with positive orientation. */
int primal_is_regular(primal_path *p, const conic_program *program);

/* ---- primal_springs.c: intervals and equalities as springs, with the states of p->dual. If the
 * path's end has other intervals at their limits, the subsequent programs find them. */

/* Lists the springs; 0 if rows of contacts or limits are compliant, which the path does not
 * support. */
int primal_springs_list(primal_path *p, const conic_program *program);
/* pull += forces of the springs */
void primal_springs_pull(primal_path *p);
/* A += stiffness of the springs */
void primal_springs_add(primal_path *p);
/* Updates which multipliers are at their limits at the current point; other rigid rows keep their
 * force. */
void primal_springs_choose(primal_path *p);
void primal_springs_read(const primal_path *p, double *dual, double *dual_eq);

/* ---- primal_system.c */

/* Lists the cones and finds the pattern of the matrix; 0 if the program is not supported. */
int primal_system_begin(primal_path *p, const conic_program *program);
/* Computes pull and gap of the point. */
void primal_system_measure(primal_path *p, const conic_program *program);
/* Factors the matrix at the point's scalings; no_contacts: without cones. */
void primal_system_factor(primal_path *p, const conic_program *program, int no_contacts);
/* Computes dx, and the steps of slacks and forces for the cones' aims. */
void primal_system_solve(primal_path *p);
/* y = Q x */
void primal_cost_product(const primal_path *p, const conic_program *program, const double *x,
                         double *y);
/* |v_tail|^2 / v_head of a slack */
double primal_shift(const double *slack, int tails);

#endif
