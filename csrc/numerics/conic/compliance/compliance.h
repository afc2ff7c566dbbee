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
#include "numerics/conic/conic.h"

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
  double force;             /* of the answer, ends aside */
  double size;              /* of what the slack is a sum of */
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
  double *largest;      /* (variables) terms of a column's sum */
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

/* 1 if no cone has a target. */
static inline int compliance_is_exact(const qd_cone_program *program) {
  int exact = 1;
  for (int k = 0; program->target_mu && k < program->cone_count; ++k) {
    exact &= program->target_mu[k] == 0.0;
  }
  return exact;
}

/* The size of the rigid program. */
conic_size compliance_rigid_size(const conic_size *size);
void compliance_lay_out(compliant_program *soft, const conic_size *size, arena *a);
/* What derivatives need besides. */
void compliance_lay_out_four(compliant_program *soft, const conic_size *size, arena *a);

static inline double row_compliance_eq(const qd_cone_program *program, int i) {
  return program->compliance_eq ? program->compliance_eq[i] : 0.0;
}
static inline double row_compliance(const qd_cone_program *program, int i) {
  return program->compliance ? program->compliance[i] : 0.0;
}
/* The entries of one of the caller's rows that are not zero, in turn. */
typedef struct row_reader {
  const double *values;
  const int *tiles;     /* of the values, by fours; NULL: all numbers of the row */
  int at, end, columns; /* values so far, in all; variables */
  int column;           /* of the entry at hand */
  double entry;
} row_reader;

static inline row_reader compliance_reader(const double *dense, const sparse_rows *tiles, int n,
                                           int i) {
  if (!tiles) {
    return (row_reader){dense + (size_t)i * (size_t)n, NULL, 0, n, n, 0, 0.0};
  }
  return (row_reader){tiles->values + 4 * (size_t)tiles->start[i],
                      tiles->tiles + tiles->start[i],
                      0,
                      4 * (tiles->start[i + 1] - tiles->start[i]),
                      n,
                      0,
                      0.0};
}
/* Row i of G, or behind those of C. */
static inline row_reader compliance_row_of(const conic_program *source, int i) {
  const qd_cone_program *p = &source->program;
  return i < p->row_count ? compliance_reader(p->G, source->G, p->variable_count, i)
                          : compliance_reader(p->C, source->C, p->variable_count, i - p->row_count);
}
static inline row_reader compliance_row_of_cost(const conic_program *source, int j) {
  return compliance_reader(source->program.Q, source->Q, source->program.variable_count, j);
}
/* 0: there are no more. */
static inline int compliance_next(row_reader *row) {
  while (row->at < row->end) {
    const int k = row->at++;
    row->entry = row->values[k];
    row->column = row->tiles ? 4 * row->tiles[k / 4] + k % 4 : k;
    if (row->entry != 0.0 && row->column < row->columns) {
      return 1;
    }
  }
  return 0;
}
/* Q_jj */
static inline double compliance_curvature(const conic_program *source, int j) {
  row_reader row = compliance_row_of_cost(source, j);
  while (compliance_next(&row)) {
    if (row.column == j) {
      return row.entry;
    }
  }
  return 0.0;
}

/* A multiplier where its interval allows it. */
static inline double compliance_within(double value, double lower, double upper) {
  return value < lower ? lower : value > upper ? upper : value;
}

/* The slack of a row at (x, dual), and the sum of its terms' sizes. */
double compliance_slack(const conic_program *source, const compliant_row *row, int i,
                        const double *x, double dual, double *size);
/* out (variables) += factor times row i of G, or behind those of C. */
static inline void compliance_add_row(const conic_program *source, int i, double factor,
                                      double *out) {
  for (row_reader row = compliance_row_of(source, i); compliance_next(&row);) {
    out[row.column] += factor * row.entry;
  }
}
/* Its norm in units of columns. */
double compliance_row_norm(const conic_program *source, int i, const double *unit);

/* How far a program's numbers say that x might go, in units of columns. */
typedef struct compliance_scales {
  double free;   /* the cost alone, where there is curvature */
  double offset; /* max |g|, |c| over the largest row norm */
  double reach;  /* R without x */
} compliance_scales;

/* Stiffness of each column: of the cost, and of intervals' springs that are not all but rigid
 * beside it. */
void compliance_find_stiffness(const compliant_program *soft, const conic_program *source,
                               double *out);
/* Units of columns as qdsim.h has them (variables), curvature of springs included; `most` likewise
 * is scratch. */
compliance_scales compliance_find_units(const conic_program *source, double *unit, double *most);
/* Multipliers of a verdict that there is no point, as a proof: zero where rows give way or forces
 * have a limit. 1 if it is one in the caller's numbers. */
int compliance_proves(compliant_program *soft, const conic_program *source,
                      const conic_answer *out);
/* Residuals as qd_cone_info has them; 1 if all rows hold. Where the rows are the caller's, the
 * rigid program's certificate stands for most of it, unless `thoroughly`. */
int compliance_measure(compliant_program *soft, const conic_program *source, double tolerance,
                       int thoroughly, const conic_answer *out, qd_cone_info *info);
/* Of exact programs whose rows' slacks are sums with their own multipliers: what these miss, into
 * info. */
void compliance_measure_rows(const qd_cone_program *program, const conic_answer *out,
                             qd_cone_info *info);
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
