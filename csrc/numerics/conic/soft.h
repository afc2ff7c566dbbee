/* Rows that give way, by a compliance or beyond a limit of their force, as a program of rigid rows
 * with more variables. Of the multiplier y and the slack s = w + R y, w = Gx + g:
 *
 *     compliance   a spring v of its own with unit curvature: s = w + sqrt(R) v, v = sqrt(R) y
 *     interval     from one end: y = base + sign z, 0 <= z <= width, as a row of an orthant,
 *                  sign s + t >= 0 with the multiplier z, and a slip t >= 0 that costs width, whose
 *                  multiplier is width - z. Without a width: no slip. With no end: an equality.
 */
#ifndef QD_NUMERICS_CONIC_SOFT_H
#define QD_NUMERICS_CONIC_SOFT_H

#include "base/arena.h"
#include "numerics/conic/conic.h"

/* A matrix while its rows are written, all numbers of each or in tiles. */
typedef struct soft_matrix {
  int rows;
  int columns;        /* numbers of a row; 0: in tiles */
  int *start, *tiles; /* as sparse_rows */
  double *values;
  size_t room; /* numbers */
  int is_full; /* a row had no room */
} soft_matrix;

/* How a row of the program at hand stands in the rigid one. */
typedef enum soft_kind {
  SOFT_CONE,     /* as it was; its compliance, if any, by a spring */
  SOFT_END,      /* an interval, from one end */
  SOFT_EQUALITY, /* an interval without ends */
  SOFT_FORCE     /* an interval of one force */
} soft_kind;

typedef struct soft_row {
  soft_kind kind;
  double compliance;
  double sign, base, width; /* width < 0: there is no other end */
  int row;                  /* or equality; -1: it has none */
  int spring, slip;         /* variables, -1: none */
  int slip_row;
} soft_row;

typedef struct soft_program {
  conic_size room; /* of the caller's programs */
  int used;        /* the program that was solved last came this way */
  int variables, rows, equalities;
  soft_row *row;    /* (rows) */
  int *spring_eq;   /* (equalities) variables, -1: none */
  double curvature; /* of springs */
  int next;         /* the first variable that is not taken */
  soft_matrix Q, G, C;
  sparse_rows Q_rows, G_rows, C_rows;
  conic_program rigid;
  int *kind, *dim;
  double *b, *g, *c, *target;
  double *x, *slack, *dual, *dual_eq;
  double *term;                               /* (variables) */
  double *four_x, *four_stationarity;         /* four right-hand sides of a sensitivity */
  double *four_slack, *four_dual;             /* likewise, over rows */
  double *four_equality, *four_dual_equality; /* over equalities */
} soft_program;

/* 1 if some row of the program may give way. */
static inline int soft_is_wanted(const qd_cone_program *program) {
  return program->compliance || program->compliance_eq || program->lower || program->upper;
}

/* The size of the rigid program. */
conic_size soft_rigid_size(const conic_size *size);
void soft_lay_out(soft_program *soft, const conic_size *size, arena *a);

/* Whether the program makes sense and fits. */
qd_status soft_check(const soft_program *soft, const conic_program *source);
/* Writes the rigid program; 0 if there is no room. */
int soft_write(soft_program *soft, const conic_program *source);

#endif
