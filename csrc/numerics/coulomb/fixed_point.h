/* Coulomb's law by convex programs.
 *
 * The convex relaxation of a contact, w = Gx + g in K, lets it part by what it slides. With the
 * head of its cone raised by a shift s it is Coulomb's law where s is the speed of its tail,
 *
 *     w + s e in K,   dual in K,   dual o (w + s e) = 0,   s = |w_tail|
 *
 * (De Saxce; Acary, Cadoux, Lemarechal and Malick 2011): the fixed point of s -> |w_tail|, the tail
 * that the program of s has. A pyramid's rows w_j = normal + tail_j >= 0, whose tails sum to zero,
 * are raised all alike, by the largest -tail_j: Stewart and Trinkle's law. Contacts without force
 * only have to keep their normal from closing, whatever the shift.
 *
 * Newton on the fixed point takes the derivative of the programs' solutions by their offsets; where
 * it does not help, the path of the law itself does (primal_path.h); last, or where more contacts
 * slide than a dense matrix is made for, the slips themselves, of which each contact takes its own
 * share. */
#ifndef QD_NUMERICS_COULOMB_FIXED_POINT_H
#define QD_NUMERICS_COULOMB_FIXED_POINT_H

#include "base/arena.h"
#include "numerics/conic/conic.h"
#include "numerics/coulomb/primal_path.h"
#include "numerics/dense_qr.h"

/* Contacts that slide under load, beyond which there is no matrix. */
#define FIXED_POINT_DENSE 512

/* The rows of one contact in a program. */
typedef struct fixed_point_block {
  int row, count;
  int is_cone; /* 1: the first one is the head of a Lorentz cone; 0: a pyramid's */
} fixed_point_block;

/* One program's contacts, and what the law needs for them. */
typedef struct fixed_point {
  int block_count;
  fixed_point_block *block;
  double *shift;      /* (blocks) in g */
  double *offset;     /* (rows) g without shifts, which may be so large that they would round it */
  double *slip;       /* (blocks) of the solution: what shift should be */
  double *miss;       /* (blocks) slip - shift of those with force, else 0 */
  double *slope;      /* (rows) of blocks that couple: slip changes by slope'(d Gx + dg) */
  int undecided;      /* 1: a block slides and touches without load; it may lift off or press */
  int coupled_count;  /* blocks that slide under load */
  int *coupled;       /* (blocks) */
  int matrix_room;    /* coupled blocks that there is room for in: */
  dense_qr matrix;    /* (coupled, coupled) 1 - d slip / d shift */
  double *best_shift; /* (blocks) of the smallest error */
  double *best_solution;  /* (variables, rows, rows, equalities) likewise */
  double *next;           /* (blocks) shifts to be tried */
  double *before, *share; /* (blocks) misses before the last step to slips, and shares of the way */
  double *four_rows, *four_duals; /* (rows, 4) */
  double *four_stationarity;      /* (variables, 4), likewise */
  double *four_x;
  double *four_equality, *four_dual_eq; /* (equalities, 4) */
  double *four_shift;                   /* (coupled, 4) */
  primal_path path;                     /* of large programs */
} fixed_point;

typedef struct fixed_point_sizes {
  int blocks, rows, variables, equalities;
  size_t row_tiles;     /* of G */
  size_t entries, fill; /* tiles of the program's matrix and its factor, at most */
} fixed_point_sizes;

/* How a program was solved under the law. */
typedef struct fixed_point_report {
  int programs; /* convex ones */
  double error; /* largest |slip - shift| of contacts with force, or closing speed of others, in
                   units of g */
  int regular;  /* 1: the equations of what slides have one solution near by, which does not turn
                   their orientation; 0: not, or not known */
  int stale;    /* 1: another program was solved behind the one that has given it */
} fixed_point_report;

typedef struct fixed_point_options {
  double tolerance; /* on the error, in units of g */
  int stop_after;   /* > 0: the best of so many programs counts whatever its error */
  int guessed;      /* 1: x holds a guess that shows the slips; 0: from the convex program */
  int hurried;      /* 1: of a large program, more rows may come in: only what seldom takes long */
} fixed_point_options;

void fixed_point_lay_out(fixed_point *s, const fixed_point_sizes *sizes, arena *a);

/* No shifts: g is as it is without. */
void fixed_point_begin(fixed_point *s, const double *g);
/* Shifts of all blocks, in g too; none below zero. */
void fixed_point_use(fixed_point *s, double *g, const double *shift);
/* next = shifts nearer to the slips, of which each contact takes its own share: one that keeps
 * going from side to side, or two that push each other, come to rest. first: 1 where nothing of
 * this kind has gone before. */
void fixed_point_step_to_slips(fixed_point *s, int first);

/* Solves the program under the law; its shifts stay in g, (rows) where the program has them.
 * QD_LAW_NOT_MET: no shifts were found that are good to the tolerance; x and all else are the
 * best, the report says how good. */
qd_status fixed_point_solve(fixed_point *s, qd_cone_workspace *workspace,
                            const qd_cone_options *options, const fixed_point_options *law,
                            const conic_program *program, double *g, const conic_answer *out,
                            qd_cone_info *info, fixed_point_report *report);

/* conic_sensitivity_prepare under the law: `program` as fixed_point_solve has left it. */
qd_status fixed_point_sensitivity_prepare(fixed_point *s, qd_cone_workspace *workspace,
                                          const conic_program *program, const double *slack,
                                          const double *dual, const qd_cone_info *info, int *exact);
/* conic_sensitivity_solve under the law. The map is not symmetric: `transposed` is for
 * d_stationarity = -y and nothing else, and gives the z, mu and nu of conic.h's equation. */
void fixed_point_sensitivity_solve(fixed_point *s, qd_cone_workspace *workspace,
                                   const conic_program *program, int transposed,
                                   const conic_change *change);

/* ---- coupled.c */

/* 1 if the path knows the contacts: cones, and pyramids of two rays, which are cones, too. */
int fixed_point_fits_path(const fixed_point *s);
/* Tells it which of so many rows are such pyramids'. */
void fixed_point_tell_pairs(fixed_point *s, int rows);
/* Slips of the solution, and which blocks couple; the error (see above). `length`: what g is
 * about. */
double fixed_point_read(fixed_point *s, const double *slack, const double *dual, double length);
/* slack = rows Gx + g of the blocks */
void fixed_point_slack_at(const fixed_point *s, const conic_program *program, const double *x,
                          const double *g, double *slack);
/* The matrix of the blocks that couple, factored, from a workspace that is prepared for
 * sensitivities. 0 if there is no room for it. */
int fixed_point_factor(fixed_point *s, qd_cone_workspace *workspace, const conic_program *program);
/* x = matrix^-1 x, or transposed; (coupled, width). Of a singular one, some solution. */
void fixed_point_matrix_solve(const fixed_point *s, int transposed, int width, double *x);
/* rows (., 4) += slope' t and t = slope' of (G x + rows), (coupled, 4) each */
void fixed_point_add_slopes(const fixed_point *s, const double *t, double *rows);
void fixed_point_take_slopes(const fixed_point *s, const conic_program *program, const double *x,
                             const double *rows, double *t);
/* rows (., 4) += shifts t of the coupled blocks; t = what the rows say of them */
void fixed_point_add_shifts(const fixed_point *s, const double *t, double *rows);
void fixed_point_take_shifts(const fixed_point *s, const double *rows, double *t);

#endif
