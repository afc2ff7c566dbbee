/* Coulomb's law by convex programs.
 *
 * In the convex relaxation of a contact, w = Gx + g in K, a sliding contact separates by its slip.
 * If the head of its cone is raised by a shift s, the contact obeys Coulomb's law where s is the
 * speed of its tail,
 *
 *     w + s e in K,   dual in K,   dual o (w + s e) = 0,   s = |w_tail|
 *
 * (De Saxce; Acary, Cadoux, Lemarechal and Malick 2011). This is a fixed point of s -> |w_tail|,
 * the tail of the solution of the program with s. A pyramid's rows w_j = normal + tail_j >= 0,
 * whose tails sum to zero, are all raised by the largest -tail_j: Stewart and Trinkle's law. The
 * normal of a contact without force must not close, whatever the shift.
 *
 * Newton's method on the fixed point uses the derivative of the programs' solutions by their
 * offsets. Where it fails, the path of the law itself is tried (primal_path.h). The last resort,
 * also if more contacts slide than the dense matrix has room for, is the plain iteration of slips,
 * damped for each contact. */
#ifndef QD_NUMERICS_COULOMB_FIXED_POINT_H
#define QD_NUMERICS_COULOMB_FIXED_POINT_H

#include "base/arena.h"
#include "numerics/conic/conic.h"
#include "numerics/coulomb/primal_path.h"
#include "numerics/dense_qr.h"

/* Largest number of contacts that slide under load for which the matrix is formed. */
#define FIXED_POINT_DENSE 512

/* The rows of one contact in a program. */
typedef struct fixed_point_block {
  int row, count;
  int is_cone; /* 1: a Lorentz cone, whose head comes first; 0: a pyramid */
} fixed_point_block;

/* Contacts of one program, with the data of the law. */
typedef struct fixed_point {
  int block_count;
  fixed_point_block *block;
  double *shift;  /* (blocks) included in g */
  double *offset; /* (rows) g without shifts, which can be so large that g loses digits */
  double *slip;   /* (blocks) slip of the solution: the target of the shift */
  double *miss;   /* (blocks) slip - shift for contacts with force, else 0 */
  double *slope;  /* (rows) of coupled blocks: the slip changes by slope'(d Gx + dg) */
  int undecided;  /* 1: a block slides and touches without load, so that it may lift off or press */
  int coupled_count;      /* number of blocks that slide under load */
  int *coupled;           /* (blocks) */
  int matrix_room;        /* capacity of the matrix in coupled blocks */
  dense_qr matrix;        /* (coupled, coupled) 1 - d slip / d shift */
  double *best_shift;     /* (blocks) with the smallest error */
  double *best_solution;  /* (variables, rows, rows, equalities) with the smallest error */
  double *next;           /* (blocks) shifts to try next */
  double *before, *share; /* (blocks) misses before the last damped step, and damping factors */
  double *four_rows, *four_duals; /* (rows, 4) */
  double *four_stationarity;      /* (variables, 4), likewise */
  double *four_x;
  double *four_equality, *four_dual_eq; /* (equalities, 4) */
  double *four_shift;                   /* (coupled, 4) */
  primal_path path;                     /* for large programs */
} fixed_point;

typedef struct fixed_point_sizes {
  int blocks, rows, variables, equalities;
  size_t row_tiles;     /* of G */
  size_t entries, fill; /* largest numbers of tiles of the program's matrix and of its factor */
} fixed_point_sizes;

/* Outcome of a solve under the law. */
typedef struct fixed_point_report {
  int programs; /* number of convex programs */
  double error; /* largest |slip - shift| of contacts with force, or closing speed of others, in
                   units of g */
  int regular;  /* 1: the equations of the sliding contacts have a locally unique solution and
                   positive orientation; 0: not, or not known */
  int stale;    /* 1: another program was solved after the one that gave the solution */
} fixed_point_report;

typedef struct fixed_point_options {
  double tolerance; /* on the error, in units of g */
  int stop_after; /* > 0: the best solution of this many programs is accepted, whatever its error */
  int guessed;    /* 1: x holds a guess that shows the slips; 0: start from the convex program */
  int hurried;    /* 1: the caller may add rows to a large program, so only methods that are usually
                     fast are tried */
} fixed_point_options;

void fixed_point_lay_out(fixed_point *s, const fixed_point_sizes *sizes, arena *a);

/* Sets all shifts to zero; g is given without shifts. */
void fixed_point_begin(fixed_point *s, const double *g);
/* Sets the shifts of all blocks, also in g; negative ones are set to zero. */
void fixed_point_use(fixed_point *s, double *g, const double *shift);
/* Damped iteration: next = shifts nearer to the slips, with a damping factor for each contact, so
 * that contacts that oscillate or push each other converge. first: 1 at the start of the
 * iteration. */
void fixed_point_step_to_slips(fixed_point *s, int first);

/* Solves the program under the law; its shifts stay in g (rows), to which the program must point.
 * QD_LAW_NOT_MET: no shifts met the tolerance; x and all other results are the best found, with
 * their error in the report. */
qd_status fixed_point_solve(fixed_point *s, qd_cone_workspace *workspace,
                            const qd_cone_options *options, const fixed_point_options *law,
                            const conic_program *program, double *g, const conic_answer *out,
                            qd_cone_info *info, fixed_point_report *report);

/* conic_sensitivity_prepare under the law; `program` as fixed_point_solve left it. */
qd_status fixed_point_sensitivity_prepare(fixed_point *s, qd_cone_workspace *workspace,
                                          const conic_program *program, const double *slack,
                                          const double *dual, const qd_cone_info *info, int *exact);
/* conic_sensitivity_solve under the law. The map is not symmetric: `transposed` is for
 * d_stationarity = -y alone, and gives z, mu and nu of the equation in conic.h. */
void fixed_point_sensitivity_solve(fixed_point *s, qd_cone_workspace *workspace,
                                   const conic_program *program, int transposed,
                                   const conic_change *change);

/* ---- coupled.c */

/* 1 if the law's path supports all contacts: cones, and pyramids of two rows, which are cones as
 * well. */
int fixed_point_fits_path(const fixed_point *s);
/* Marks in the path the first row of each such pyramid; rows: number of rows. */
void fixed_point_tell_pairs(fixed_point *s, int rows);
/* Slips of the solution, and the coupled blocks; returns the error (see above). `length`: typical
 * length of g. */
double fixed_point_read(fixed_point *s, const double *slack, const double *dual, double length);
/* slack = Gx + g for the rows of the blocks */
void fixed_point_slack_at(const fixed_point *s, const conic_program *program, const double *x,
                          const double *g, double *slack);
/* Factors the matrix of the coupled blocks; the workspace is prepared for sensitivities. 0 if there
 * is no room. */
int fixed_point_factor(fixed_point *s, qd_cone_workspace *workspace, const conic_program *program);
/* x = matrix^-1 x, or transposed; (coupled, width). If the matrix is singular, some solution. */
void fixed_point_matrix_solve(const fixed_point *s, int transposed, int width, double *x);
/* rows (., 4) += slope' t, and t = slope' (G x + rows), (coupled, 4) each */
void fixed_point_add_slopes(const fixed_point *s, const double *t, double *rows);
void fixed_point_take_slopes(const fixed_point *s, const conic_program *program, const double *x,
                             const double *rows, double *t);
/* rows (., 4) += shifts t of the coupled blocks, and the transposed map */
void fixed_point_add_shifts(const fixed_point *s, const double *t, double *rows);
void fixed_point_take_shifts(const fixed_point *s, const double *rows, double *t);

#endif
