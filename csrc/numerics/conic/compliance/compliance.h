/* Rows that give way, by a compliance or beyond a limit of their force, as a program of rigid rows
 * with more variables. Of the multiplier y and the slack s = w + R y, w = Gx + g:
 *
 *     compliance   a spring v of its own with unit curvature: s = w + sqrt(R) v, v = sqrt(R) y
 *     interval     from one end: y = base + sign z, 0 <= z <= width, as a row of an orthant,
 *                  sign s + t >= 0 with the multiplier z, and a slip t >= 0 that costs width, whose
 *                  multiplier is width - z. Without a width: no slip. With no end: an equality.
 *
 * A barrier's path has rows of one entry in its scaling as they are (conic/path/box_cone.h), and
 * needs this for Lorentz cones and equalities alone, or where it has failed. */
#ifndef QD_NUMERICS_CONIC_COMPLIANCE_H
#define QD_NUMERICS_CONIC_COMPLIANCE_H

#include "base/arena.h"
#include "numerics/conic/program/rows.h"

/* A matrix while its rows are written, all numbers of each or in tiles. */
typedef struct compliance_matrix {
  int rows;
  int columns;        /* numbers of a row; 0: in tiles */
  int *start, *tiles; /* as sparse_rows */
  double *values;
  size_t room; /* numbers */
  int is_full; /* a row had no room */
} compliance_matrix;

/* How a row of the program at hand stands in the rigid one. */
typedef enum compliance_kind {
  COMPLIANT_CONE,     /* as it was; its compliance, if any, by a spring */
  COMPLIANT_END,      /* an interval, from one end */
  COMPLIANT_EQUALITY, /* an interval without ends */
  COMPLIANT_FORCE,    /* an interval of one number: its force, y = base */
  COMPLIANT_LIMITED   /* as it is, for a barrier's path (conic/path/box_cone.h) */
} compliance_kind;

typedef struct compliant_row {
  compliance_kind kind;
  double compliance;
  double sign, base, width; /* width < 0: there is no other end */
  double lower, upper;      /* of its multiplier */
  int is_interval;
  int is_measured;  /* some row of its cone has a compliance: its slack is worked out */
  int row;          /* or equality; -1: it has none */
  int spring, slip; /* variables, -1: none */
  int slip_row;
} compliant_row;

/* The rigid program while it is written, with room for its numbers. */
typedef struct compliance_written {
  conic_program rigid;
  compliance_matrix Q, G, C;
  sparse_rows Q_rows, G_rows, C_rows;
  int *kind, *dim;
  double *b, *g, *c, *target;
} compliance_written;

/* What rows of intervals are, of a rigid program that has such: (rows of it). */
typedef struct compliance_limits {
  double *compliance, *lower, *upper;
} compliance_limits;

/* Four right-hand sides of a sensitivity, over columns, rows and equalities of the rigid program.
 */
typedef struct compliance_four {
  double *x, *stationarity, *slack, *dual, *equality, *dual_equality;
} compliance_four;

typedef struct compliant_program {
  conic_size room; /* of the caller's programs */
  int used;        /* the program that was solved last came this way */
  int as_it_is;    /* without being written anew */
  int natively;    /* the rigid program at hand has rows of intervals */
  int variables, rows, equalities;
  compliant_row *row;   /* (rows) */
  int *spring_eq;       /* (equalities) variables, -1: none */
  int first_interval;   /* row */
  int plain;            /* rows from the first on that are known to be rigid and as they were */
  int any_between;      /* rows that are no intervals stand behind some, or give way */
  double curvature;     /* of springs */
  int next;             /* the first variable that is not taken */
  double *term;         /* (variables) */
  conic_program source; /* the caller's, whose numbers stay where they are */
  sparse_rows source_rows[3];
  compliance_written written;
  compliance_limits limits;
  conic_answer found; /* of the rigid program */
  compliance_four four;
} compliant_program;

/* 1 if some row of the program may give way. */
static inline int compliance_is_wanted(const qd_cone_program *program) {
  return program->compliance || program->compliance_eq || program->lower || program->upper;
}

/* The size of the rigid program. */
conic_size compliance_rigid_size(const conic_size *size);
void compliance_lay_out(compliant_program *soft, const conic_size *size, arena *a);
/* What derivatives need besides. */
void compliance_lay_out_four(compliant_program *soft, const conic_size *size, arena *a);

/* A multiplier where its interval allows it. */
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
/* Whether the program makes sense and fits. */
qd_status compliance_check(const compliant_program *soft, const conic_program *source);
/* What each row stands for, whatever forces will be: the rigid program says all. `natively`: rows
 * of intervals and with a compliance stay what they are. */
void compliance_treat_rows(compliant_program *soft, const qd_cone_program *program, int natively);
/* 1 if rows of intervals stand behind all others, which are rigid, and are treated natively. */
int compliance_rows_can_stay(const compliant_program *soft, const qd_cone_program *program);
/* Writes the rigid program; 0 if there is no room. */
int compliance_write(compliant_program *soft, const conic_program *source);

#endif
