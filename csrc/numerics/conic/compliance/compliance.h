/* Compliant rows, i.e. rows with a compliance or with force limits, as a program of rigid rows with
 * more variables. For a multiplier y and the slack s = w + R y, w = Gx + g:
 *
 *     compliance   a spring variable v with unit curvature: s = w + sqrt(R) v, v = sqrt(R) y
 *     interval     from one end: y = base + sign z, 0 <= z <= width, as an orthant row
 *                  sign s + t >= 0 with multiplier z, and a slip t >= 0 with cost width, whose
 *                  multiplier is width - z. Without a width: no slip. With no end: an equality.
 *
 * The path of a barrier handles scalar rows in its scaling directly (conic/path/box_cone.h). It
 * needs this rewriting only for Lorentz cones and equalities, or after it has failed. */
#ifndef QD_NUMERICS_CONIC_COMPLIANCE_H
#define QD_NUMERICS_CONIC_COMPLIANCE_H

#include "base/arena.h"
#include "numerics/conic/program/rows.h"

/* A matrix while its rows are written, dense or in tiles. */
typedef struct compliance_matrix {
  int rows;
  int columns;        /* numbers per row; 0: in tiles */
  int *start, *tiles; /* as sparse_rows */
  double *values;
  size_t room; /* numbers */
  int is_full; /* 1: a row did not fit */
} compliance_matrix;

/* How a row of the caller's program appears in the rigid program. */
typedef enum compliance_kind {
  COMPLIANT_CONE,     /* unchanged; a compliance becomes a spring */
  COMPLIANT_END,      /* an interval, measured from one end */
  COMPLIANT_EQUALITY, /* an interval without ends */
  COMPLIANT_FORCE,    /* an interval of a single force, y = base */
  COMPLIANT_LIMITED   /* unchanged, for the path of a barrier (conic/path/box_cone.h) */
} compliance_kind;

typedef struct compliant_row {
  compliance_kind kind;
  double compliance;
  double sign, base, width; /* width < 0: there is no other end */
  double lower, upper;      /* of its multiplier */
  int is_interval;
  int is_measured;  /* 1: some row of its cone has a compliance, so its slack is recomputed */
  int row;          /* row or equality of the rigid program; -1: none */
  int spring, slip; /* variables, -1: none */
  int slip_row;
} compliant_row;

/* The rigid program while it is written, and its memory. */
typedef struct compliance_written {
  conic_program rigid;
  compliance_matrix Q, G, C;
  sparse_rows Q_rows, G_rows, C_rows;
  int *kind, *dim;
  double *b, *g, *c, *target;
} compliance_written;

/* Compliance and limits (rows) of a rigid program's interval rows. */
typedef struct compliance_limits {
  double *compliance, *lower, *upper;
} compliance_limits;

typedef struct compliant_program {
  conic_size room; /* capacity for the caller's programs */
  int used;        /* 1: the last program was solved this way */
  int as_it_is;    /* 1: without rewriting */
  int natively;    /* 1: the rigid program has interval rows */
  int variables, rows, equalities;
  compliant_row *row; /* (rows) */
  int *spring_eq;     /* (equalities) variables, -1: none */
  int *row_from;      /* (rows of the rigid program) the caller's row, -1: that of a slip */
  int *equality_from; /* (its equalities) likewise; the caller's equalities follow its rows */
  int first_interval; /* row */
  int plain;          /* number of first rows that are known to be rigid and unchanged */
  int any_between;    /* 1: some rows that are not intervals follow an interval or are compliant */
  double curvature;   /* of springs */
  int next;           /* the next free variable */
  double *term;       /* (variables) */
  conic_program source; /* the caller's program, whose arrays are not copied */
  sparse_rows source_rows[3];
  compliance_written written;
  compliance_limits limits;
  conic_answer found; /* answer of the rigid program */
} compliant_program;

/* 1 if some row of the program may be compliant. */
static inline int compliance_is_wanted(const qd_cone_program *program) {
  return program->compliance || program->compliance_eq || program->lower || program->upper;
}

/* Size of the rigid program. */
conic_size compliance_rigid_size(const conic_size *size);
void compliance_lay_out(compliant_program *soft, const conic_size *size, arena *a);
/* 1 if the last program was solved as another, rigid one. */
static inline int compliance_is_written(const compliant_program *soft) {
  return soft->used && !soft->as_it_is;
}

/* Clamps a multiplier to its interval. */
static inline double compliance_within(double value, double lower, double upper) {
  return value < lower ? lower : value > upper ? upper : value;
}

/* The slack of a row at (x, dual). */
static inline double compliance_slack(const conic_program *source, const compliant_row *row, int i,
                                      const double *x, double dual) {
  double sum = 0.0;
  for (row_reader at = rows_open(source, i); rows_next(&at);) {
    for (int j = 0; j < rows_width(&at); ++j) {
      sum += at.values[j] * x[at.first + j];
    }
  }
  return sum + source->program.g[i] + row->compliance * dual;
}
/* Checks that the program is valid and fits. */
qd_status compliance_check(const compliant_program *soft, const conic_program *source);
/* Sets the kind of each row, independently of the forces. `natively`: interval rows and rows with a
 * compliance stay as they are. */
void compliance_treat_rows(compliant_program *soft, const qd_cone_program *program, int natively);
/* 1 if interval rows follow all other rows, those are rigid, and intervals are treated natively. */
int compliance_rows_can_stay(const compliant_program *soft, const qd_cone_program *program);
/* Writes the rigid program; 0 if there is no room. */
int compliance_write(compliant_program *soft, const conic_program *source);

#endif
