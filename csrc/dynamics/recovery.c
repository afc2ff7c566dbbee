#include "dynamics/recovery.h"

#include <math.h>

#include "base/rounding.h"
#include "base/trace.h"

/* Compliances of rows, relative to those of the bodies that they move. First program: FIRST in the
 * first pass, multiplied by FINER in each further pass, down to rounding of the caller's numbers;
 * larger again after failed passes, up to MUCH. Second program: from negligible on, a hundred times
 * larger after each failure, below SECOND_MOST. With smaller compliances a pass comes closer to the
 * solution, but its program is harder to solve. */
#define FIRST 1e-2
/* That limit. Also the length by which the largest force moves a row at this scale: times the
 * second program's compliance, the error of its forces. Also the compliance of bilateral
 * constraints relative to contacts and limits: a weld out of reach does not press a robot through
 * its table. */
#define MUCH 1e4
#define FINER 0.1
#define SECOND_MOST 1e-5
/* Largest number of passes until violations change negligibly; after the last one, by less than
 * NEAR_LENGTH. */
#define PASSES 12

/* ---------------------------------------------------------------- weights of violations */

static int is_turn(const qd_workspace *w, int dof) {
  const double *axis = w->kinematics.dof_screw[dof].w;
  return vec3_dot(axis, axis) > 0.0;
}

static int limit_is_angle(const qd_workspace *w, int limit) {
  return is_turn(w, w->problem.limit[limit].dof);
}

static int equality_is_angle(const qd_workspace *w, int equality) {
  const equality_row *row = w->problem.equality + equality;
  const constraint_state *s = w->problem.constraint + row->constraint;
  if (s->tendon[0] >= 0) {
    return 0;
  }
  return s->rows == 1 ? is_turn(w, s->dof[0]) : row->component >= 3;
}

typedef enum giving {
  GIVES_BOUNDED,    /* all rows, with a bounded motion */
  GIVES_ALL,        /* all rows */
  GIVES_CONSTRAINTS /* bilateral constraints only */
} giving;

/* Compliances of rows for one unit of `scale`: lengths 1, angles 1 / length^2, larger for bilateral
 * constraints. Rows with a compliance of their own, and limited forces, cannot be contradictory,
 * and keep theirs. */
static void fill_compliance(const qd_workspace *w, const island *one,
                            const qd_cone_program *program, giving which, double scale) {
  const problem *p = &w->problem;
  const double angle = scale / (one->length * one->length);
  double *rows = p->softened.compliance + one->row;
  double *equalities = p->softened.compliance_eq + one->equality;
  for (int r = 0; r < one->row_count; ++r) {
    rows[r] = scale;
  }
  memset(rows + one->row_count, 0, (size_t)one->bound_count * sizeof(double));
  for (int i = one->limit; i < one->limit + one->limit_count; ++i) {
    p->softened.compliance[p->limit[i].row] = limit_is_angle(w, i) ? angle : scale;
  }
  for (int i = 0; i < BALL_ROWS * one->ball_limit_count; ++i) {
    p->softened.compliance[p->ball_limit[one->ball_limit].row + i] = angle;
  }
  for (int i = 0; i < one->equality_count; ++i) {
    equalities[i] = MUCH * (equality_is_angle(w, one->equality + i) ? angle : scale);
    if (program->compliance_eq != NULL && program->compliance_eq[i] > 0.0) {
      equalities[i] = program->compliance_eq[i];
    }
  }
  for (int i = 0, r = 0; i < program->cone_count; ++i) {
    for (const int end = r + program->cone_dim[i]; r < end; ++r) {
      const double given = program->compliance != NULL ? program->compliance[r] : 0.0;
      if (given > 0.0 || which == GIVES_CONSTRAINTS || program->cone_kind[i] == QD_INTERVAL) {
        rows[r] = given;
      }
    }
  }
}

/* Extends range[] by the motion of rows per newton, sum_j A_ij^2 / Q_jj, relative to their
 * compliance. */
static void extend_responses(double range[2], const tile_rows *A, int rows,
                             const double *compliance, const double *diagonal) {
  for (int r = 0; r < rows; ++r) {
    double response = 0.0;
    for (int k = A->start[r]; k < A->start[r + 1]; ++k) {
      for (int lane = 0; lane < 4; ++lane) {
        const double value = A->values[4 * (size_t)k + (size_t)lane];
        const int column = 4 * A->tiles[k] + lane;
        if (value != 0.0 && diagonal[column] > 0.0) {
          response += value * value / diagonal[column];
        }
      }
    }
    if (response > 0.0 && compliance[r] > 0.0) {
      range[0] = fmin(range[0], response / compliance[r]);
      range[1] = fmax(range[1], response / compliance[r]);
    }
  }
}

/* The scale of compliances at which the first row is as compliant as the bodies that it moves,
 * without rows that hardly move any; or at which the largest force moves a row by MUCH lengths. */
static double body_scale(qd_workspace *w, const island *one, const qd_cone_program *program,
                         giving which) {
  problem *p = &w->problem;
  double *diagonal = p->scratch.variables, largest = 0.0, range[2] = {INFINITY, 0.0};
  for (int i = 0; i < one->variable_count; ++i) {
    const int at = one->Q.start[i];
    diagonal[i] = one->Q.values[4 * (size_t)at + (size_t)(i - 4 * one->Q.tiles[at])];
    largest = fmax(largest, fabs(program->b[i]));
  }
  fill_compliance(w, one, program, which, 1.0);
  extend_responses(range, &one->G, one->row_count, p->softened.compliance + one->row, diagonal);
  extend_responses(range, &one->C, one->equality_count, p->softened.compliance_eq + one->equality,
                   diagonal);
  if (range[1] == 0.0) { /* no cost of motion: relative to its forces */
    return largest > 0.0 ? one->length / largest : 1.0;
  }
  const double scale = fmax(range[0], FILE_ROUNDING * range[1]);
  return largest > 0.0 ? fmin(scale, MUCH * one->length / largest) : scale;
}

/* ---------------------------------------------------------------- the two programs */

/* Solves a program with the present compliances. `again`: from the end of the last one. */
static qd_status solve_compliant(qd_workspace *w, island *one, const qd_cone_options *options,
                                 const conic_program *program, int again) {
  problem *p = &w->problem;
  conic_program soft = *program;
  qd_cone_options own = *options;
  own.warm_start = again;
  soft.program.compliance = p->softened.compliance + one->row;
  soft.program.compliance_eq = p->softened.compliance_eq + one->equality;
  const int row = trace_open(own.trace, "softening", 0, "%s",
                             program->program.c == p->softened.held_eq + one->equality
                                 ? "least violations"
                                 : "the step within them");
  const conic_answer out = answer_of(p, one);
  const qd_status status = conic_solve(one->cone_workspace, &own, &soft, &out, &one->info);
  effort_add(&p->effort, &one->info);
  trace_close_with(own.trace, row, &one->info, status);
  return status;
}

/* Adds sign times the arrays to g and c. */
static void move_offsets(problem *p, const island *one, double sign, const double *rows,
                         const double *equalities) {
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    p->program.g[i] += sign * rows[i];
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    p->program.c[i] += sign * equalities[i];
  }
}

/* With a barrier, violated rows keep a gap. */
static void add_gaps(problem *p, const island *one, const qd_cone_program *program) {
  for (int r = one->row, cone = 0; cone < program->cone_count; r += program->cone_dim[cone++]) {
    double give = 0.0;
    for (int k = 0; k < program->cone_dim[cone]; ++k) {
      give = fmax(give, fabs(p->softened.give[r + k]));
    }
    for (int k = 0; give > 0.0 && k < program->cone_dim[cone]; ++k) {
      const int opens = k == 0 || program->cone_kind[cone] == QD_ORTHANT;
      p->softened.give[r + k] += opens ? NEAR_LENGTH * one->length : 0.0;
    }
  }
}

static void clear_give(problem *p, const island *one) {
  memset(p->softened.give + one->row, 0, (size_t)one->row_count * sizeof(double));
  memset(p->softened.give_eq + one->equality, 0, (size_t)one->equality_count * sizeof(double));
}

/* ---------------------------------------------------------------- the least violation */

/* The role of a row in programs of violations. */
typedef enum row_part {
  ROW_COUNTS,  /* its violation counts */
  ROW_GIVES,   /* a cone with a compliance of its own: no violation */
  ROW_SPRING,  /* a compliant interval: resists the motion of a pass, like masses and stiffnesses */
  ROW_FRICTION /* any other interval: exerts no force here */
} row_part;

static row_part part_of_row(const qd_cone_program *program, int cone, int row) {
  const int gives = program->compliance != NULL && program->compliance[row] > 0.0;
  if (program->cone_kind[cone] == QD_INTERVAL) {
    return gives ? ROW_SPRING : ROW_FRICTION;
  }
  return gives ? ROW_GIVES : ROW_COUNTS;
}

static int equality_gives(const qd_cone_program *program, int equality) {
  return program->compliance_eq != NULL && program->compliance_eq[equality] > 0.0;
}

/* The offsets of the first pass: original ones for rows that count and for bounds. */
static void hold_offsets(problem *p, const island *one, const qd_cone_program *program) {
  for (int r = 0, cone = 0; cone < program->cone_count; ++cone) {
    for (const int end = r + program->cone_dim[cone]; r < end; ++r) {
      const row_part part = part_of_row(program, cone, r);
      const double force = part == ROW_SPRING ? INFINITY : 0.0;
      const int counts = part == ROW_COUNTS || part == ROW_GIVES;
      p->softened.held[one->row + r] = counts ? p->program.g[one->row + r] : 0.0;
      p->program.by_lower[one->row + r] = -force;
      p->program.by_upper[one->row + r] = force;
    }
  }
  for (int i = one->row + one->row_count; i < one->row + one->row_count + one->bound_count; ++i) {
    p->softened.held[i] = p->program.g[i];
  }
  for (int i = 0; i < one->equality_count; ++i) {
    p->softened.held_eq[one->equality + i] =
        equality_gives(program, i) ? 0.0 : p->program.c[one->equality + i];
  }
}

/* Stores the violations of the solved pass, R dual, in recovery_give, and the positions of springs.
 * Returns the largest change of a violation, in units whose compliance is `scale`. */
static double take_give(problem *p, const island *one, const qd_cone_program *program,
                        double scale) {
  double change = 0.0;
  for (int r = 0, cone = 0; cone < program->cone_count; ++cone) {
    for (const int end = r + program->cone_dim[cone]; r < end; ++r) {
      const int i = one->row + r;
      const row_part part = part_of_row(program, cone, r);
      const double moved = p->softened.compliance[i] * p->solution.dual[i];
      if (part == ROW_COUNTS && p->softened.compliance[i] > 0.0) {
        change = fmax(change,
                      fabs(moved - p->softened.give[i]) * sqrt(scale / p->softened.compliance[i]));
        p->softened.give[i] = moved;
      } else if (part == ROW_SPRING) {
        p->softened.held[i] += moved;
      }
    }
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    const double moved = p->softened.compliance_eq[i] * p->solution.dual_eq[i];
    if (equality_gives(program, i - one->equality)) {
      p->softened.held_eq[i] += moved;
      continue;
    }
    change = fmax(change, fabs(moved - p->softened.give_eq[i]) *
                              sqrt(scale / p->softened.compliance_eq[i]));
    p->softened.give_eq[i] = moved;
  }
  return change;
}

/* b = -Q x: the resistance to motion of a pass starts from the end of the last one. */
static void hold_motion(const problem *p, const island *one, double *b) {
  const double *x = p->solution.x + one->variable;
  const sparse_rows Q = tile_rows_view(&one->Q);
  for (int i = 0; i < one->variable_count; ++i) {
    b[i] = -sparse_row_product(&Q, i, x, one->variable_count);
  }
}

/* The program of a pass: violations and resistance to motion, without other forces. */
static conic_program program_of_violations(const problem *p, const island *one,
                                           const conic_program *program, const double *b,
                                           int bounded) {
  conic_program pass = *program;
  pass.answer_only = 1;
  pass.load = 0.0;
  pass.program.b = b;
  pass.program.g = p->softened.held + one->row;
  pass.program.c = p->softened.held_eq + one->equality;
  pass.program.lower = p->program.by_lower + one->row;
  pass.program.upper = p->program.by_upper + one->row;
  pass.program.target_mu = NULL;
  if (bounded) {
    pass.program.row_count += one->bound_count;
    pass.program.cone_count += 1;
  }
  return pass;
}

/* The least violations, in recovery_give, by the proximal point method (Rockafellar 1976) on the
 * sum of their squares. A pass minimises 1/2 (x - x')'Q (x - x') + sum s^2 / 2R from the end x' of
 * the last one, so that no force acts on contradictory rows; the smaller R, the closer it comes. */
static qd_status find_give(qd_workspace *w, island *one, const qd_cone_options *options,
                           const conic_program *program, double scale, giving which) {
  problem *p = &w->problem;
  const double unit = which == GIVES_CONSTRAINTS ? MUCH * scale : scale;
  double *b = p->scratch.variables, change = INFINITY, compliance = FIRST, least = CALLERS_ROUNDING;
  const conic_program violations =
      program_of_violations(p, one, program, b, which == GIVES_BOUNDED);
  int found = 0;
  clear_give(p, one);
  hold_offsets(p, one, &program->program);
  memset(b, 0, (size_t)one->variable_count * sizeof(double));
  for (int pass = 0; pass < PASSES; ++pass) {
    fill_compliance(w, one, &program->program, which, compliance * scale);
    const qd_status status = solve_compliant(w, one, options, &violations, found);
    found = status == QD_OK;
    if (found) {
      change = take_give(p, one, &program->program, compliance * unit);
      hold_motion(p, one, b);
    } else if (compliance < MUCH) {
      least = fmin(compliance / FINER, MUCH);
    } else {
      break;
    }
    if (found && change <= SLIGHT * one->length) {
      return QD_OK;
    }
    compliance = fmax(found ? FINER * compliance : least, least);
  }
  return change <= NEAR_LENGTH * one->length ? QD_OK : QD_NUMERICAL_TROUBLE;
}

/* The largest of recovery_give, in units whose compliance is `scale`. */
static double largest_give(const problem *p, const island *one, double scale) {
  double largest = 0.0;
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    if (p->softened.give[i] != 0.0) {
      largest = fmax(largest, fabs(p->softened.give[i]) * sqrt(scale / p->softened.compliance[i]));
    }
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    if (p->softened.give_eq[i] != 0.0) {
      largest =
          fmax(largest, fabs(p->softened.give_eq[i]) * sqrt(scale / p->softened.compliance_eq[i]));
    }
  }
  return largest;
}

/* For a program that is not proven infeasible: QD_OK if violations vanish, however far the motion
 * is. */
static qd_status find_none(qd_workspace *w, island *one, const qd_cone_options *options,
                           const conic_program *program, double scale) {
  const qd_status status = find_give(w, one, options, program, scale, GIVES_ALL);
  fill_compliance(w, one, &program->program, GIVES_ALL, scale);
  const int gone = largest_give(&w->problem, one, scale) <= SLIGHT * one->length;
  if (status == QD_OK && gone) {
    clear_give(&w->problem, one);
    return QD_OK;
  }
  return QD_INFEASIBLE;
}

void recovery_make_room(island *one, int whole) {
  one->size.compliant = one->size.rows + one->size.equalities;
  if (whole) {
    const int bounds = 2 * one->size.variables;
    one->size.rows += bounds;
    one->size.row_tiles += (size_t)bounds;
    one->G_tiles += (size_t)bounds;
  }
}

/* The step with recovery_give. */
static qd_status solve_within(qd_workspace *w, island *one, const qd_cone_options *options,
                              const conic_program *program, double scale, giving which) {
  problem *p = &w->problem;
  qd_status status = QD_NUMERICAL_TROUBLE;
  if (program->program.cone_count > 0 && program->program.target_mu[0] > 0.0) {
    add_gaps(p, one, &program->program);
  }
  move_offsets(p, one, 1.0, p->softened.give, p->softened.give_eq);
  for (double give = NEGLIGIBLE; give < SECOND_MOST && status != QD_OK; give *= 100.0) {
    fill_compliance(w, one, &program->program, which, give * scale);
    status = solve_compliant(w, one, options, program, 1);
  }
  move_offsets(p, one, -1.0, p->softened.give, p->softened.give_eq);
  return status;
}

/* The largest of recovery_give_eq as a length, including (if the duals are those of the second
 * program) the violation that its compliance adds. */
static double equality_violation(const qd_workspace *w, const island *one, int is_solved) {
  const problem *p = &w->problem;
  double largest = 0.0;
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    const int gives =
        one->compliant > 0 && p->program.compliance_eq[i] > 0.0; /* compliant itself */
    const double left =
        is_solved && !gives ? p->softened.compliance_eq[i] * p->solution.dual_eq[i] : 0.0;
    largest = fmax(largest, (equality_is_angle(w, i) ? one->length : 1.0) *
                                fabs(p->softened.give_eq[i] + left));
  }
  return largest;
}

static qd_status soften_round(qd_workspace *w, island *one, const qd_cone_options *options,
                              const island_program *program) {
  const conic_program *rows = &program->program;
  const double scale = body_scale(w, one, &rows->program, GIVES_CONSTRAINTS);
  qd_status status = find_give(w, one, options, rows, scale, GIVES_CONSTRAINTS);
  if (status != QD_OK || !(equality_violation(w, one, 0) <= FILE_ROUNDING * one->length)) {
    return QD_INFEASIBLE;
  }
  status = solve_within(w, one, options, rows, scale, GIVES_CONSTRAINTS);
  const double violation = equality_violation(w, one, 1);
  one->softened = status == QD_OK && violation > FILE_ROUNDING * one->length;
  one->gave = violation > options->tolerance * one->length;
  return status;
}

/* Largest violation due to the compliance of the second program, as a length. */
static double largest_left(const qd_workspace *w, const island *one,
                           const qd_cone_program *program) {
  const problem *p = &w->problem;
  double largest = 0.0;
  for (int r = 0, cone = 0; cone < program->cone_count; ++cone) {
    for (const int end = r + program->cone_dim[cone]; r < end; ++r) {
      const int i = one->row + r;
      if (part_of_row(program, cone, r) == ROW_COUNTS) {
        largest = fmax(largest, fabs(p->softened.compliance[i] * p->solution.dual[i]));
      }
    }
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    if (!equality_gives(program, i - one->equality)) {
      largest = fmax(largest, fabs(p->softened.compliance_eq[i] * p->solution.dual_eq[i]));
    }
  }
  return largest;
}

static qd_status soften_nothing(qd_workspace *w, island *one, const qd_cone_options *options,
                                const island_program *program) {
  const conic_program *rows = &program->program;
  const double scale = body_scale(w, one, &rows->program, GIVES_ALL);
  if (find_none(w, one, options, rows, scale) != QD_OK ||
      solve_within(w, one, options, rows, scale, GIVES_ALL) != QD_OK) {
    return QD_NUMERICAL_TROUBLE;
  }
  const double left = largest_left(w, one, &rows->program);
  one->softened = left > options->tolerance * one->length;
  return left <= FILE_ROUNDING * one->length ? QD_OK : QD_NUMERICAL_TROUBLE;
}

static qd_status soften_rows(qd_workspace *w, island *one, const qd_cone_options *options,
                             const island_program *program, int is_proven) {
  const conic_program *rows = &program->program;
  const double scale = body_scale(w, one, &rows->program, GIVES_ALL);
  qd_status status = is_proven ? QD_INFEASIBLE : find_none(w, one, options, rows, scale);
  if (status == QD_OK) {
    status = solve_within(w, one, options, rows, scale, GIVES_ALL);
  }
  if (status != QD_OK) {
    status = find_give(w, one, options, rows, scale, GIVES_BOUNDED);
    status = status == QD_OK ? solve_within(w, one, options, rows, scale, GIVES_ALL) : status;
  }
  one->softened = status == QD_OK;
  return status;
}

qd_status recovery_solve(qd_workspace *w, island *one, const qd_cone_options *options,
                         const island_program *program, recovery_how how) {
  switch (how) {
  case RECOVERY_ROUND:
    return soften_round(w, one, options, program);
  case RECOVERY_NOTHING:
    return soften_nothing(w, one, options, program);
  default:
    return soften_rows(w, one, options, program, how == RECOVERY_PROVEN);
  }
}

/* ---------------------------------------------------------------- violated rows */

/* Distance of Gx + g from its cone: from the slack without the violations. */
static double violation(const problem *p, int row, int rows, int kind) {
  double outside = 0.0, across = 0.0, head = 0.0;
  for (int r = 0; r < rows; ++r) {
    const int i = row + r;
    const double w = p->solution.slack[i] - p->softened.compliance[i] * p->solution.dual[i] -
                     p->softened.give[i];
    outside += w < 0.0 ? w * w : 0.0;
    across += r > 0 ? w * w : 0.0;
    head = r == 0 ? w : head;
  }
  across = sqrt(across);
  if (kind == QD_ORTHANT) {
    return sqrt(outside);
  }
  return head <= -across ? hypot(head, across) : fmax(0.0, across - head) * sqrt(0.5);
}

static int mark_island(qd_workspace *w, const island *one, double tolerance) {
  problem *p = &w->problem;
  const double least = tolerance * one->length;
  int count = 0;
  for (int i = one->contact; i < one->contact + one->contact_count; ++i) {
    const int index = p->islands.contact_order[i];
    const contact_block *block = p->block + index;
    const double give = violation(p, block->row, block->rows.count, block->rows.kind);
    if (give > least && !(block->compliance > 0.0)) {
      w->collision.contact[index].softened = give;
      ++count;
    }
  }
  for (int i = one->limit; i < one->limit + one->limit_count; ++i) {
    const double arm = limit_is_angle(w, i) ? one->length : 1.0;
    count += arm * violation(p, p->limit[i].row, 1, QD_ORTHANT) > least;
  }
  for (int i = one->ball_limit; i < one->ball_limit + one->ball_limit_count; ++i) {
    count += one->length * violation(p, p->ball_limit[i].row, BALL_ROWS, QD_LORENTZ) > least;
  }
  for (int i = one->tendon_row; i < one->tendon_row + one->tendon_row_count; ++i) {
    count += p->tendon_row[i].kind == TENDON_LIMIT &&
             violation(p, p->tendon_row[i].row, 1, QD_ORTHANT) > least;
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    const double arm = equality_is_angle(w, i) ? one->length : 1.0;
    const double give =
        p->softened.give_eq[i] + p->softened.compliance_eq[i] * p->solution.dual_eq[i];
    const int own = one->compliant > 0 && p->program.compliance_eq[i] > 0.0; /* compliant itself */
    count += !own && arm * fabs(give) > least;
  }
  return count;
}

int recovery_mark(qd_workspace *w, double tolerance) {
  int count = 0;
  for (int i = 0; i < w->problem.islands.count; ++i) {
    const island *one = w->problem.islands.island + i;
    count += one->softened ? mark_island(w, one, tolerance) : 0;
  }
  return count;
}
