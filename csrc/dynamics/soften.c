#include "dynamics/soften.h"

#include <math.h>

/* Compliances of rows beside what the bodies that they move give way by themselves: of the first
 * program with the first pass, less by a factor with each, down to the last, in schedules that are
 * tried in turn; of the second, tried in turn, too. The less, the nearer a pass comes, and the
 * harder its program is. */
typedef struct schedule {
  double first, last;
} schedule;
static const schedule SCHEDULES[] = {{1e2, 1e-6}, {1e-3, 1e-3}, {1e-1, 1e-1}, {1e-5, 1e-5}};
#define FIRST_MOST 1e4
#define FINER 0.1
static const double SECOND[] = {1e-10, 1e-8, 1e-6, 1e-4};
#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))
/* Rows whose bodies give way by less than this, of the most that any do, set no scale. */
#define HARDLY 1e-4
/* Lengths that the largest force moves a row by, at the scale: times the second program's
 * compliance, what its forces are off by. */
#define GIVES_MOST 1e4
/* Of bilateral constraints, beside contacts and limits: a weld that is out of reach does not press
 * a robot through its table. */
#define CONSTRAINTS_GIVE 1e4
/* Of the length: what equalities may be violated by that hardly know some motion, beside the
 * compliance that this takes. */
#define ROUNDED 1e-4
static const double ALMOST_RIGID = 1e-7;
/* Passes in which the forces of equalities take away what their compliance leaves. */
#define ROUND_PASSES 4
#define SHRINKS 0.5 /* by less with a pass: a contradiction */
/* Passes of the method of multipliers, until violations change by less, in lengths. */
#define PASSES 25
#define SETTLED 1e-6
/* The same, of passes after which the next one fails, or there is none. */
#define NEAR 1e-3
/* Of a bound's force: less from one pass to the next is rounding. */
#define FALLS 1e-7
/* Of the length: gaps that a barrier has between what contradicts itself. */
#define BARRIER_GAP 1e-3

/* ---------------------------------------------------------------- what counts how much */

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

/* Compliances of the rows that give way for one unit of `scale`: lengths 1, angles 1 / length^2,
 * more of bilateral constraints.
 * Rows that give way by themselves, and forces, contradict nothing: as they are. */
static void fill_compliance(const qd_workspace *w, const island *one,
                            const qd_cone_program *program, double scale) {
  const problem *p = &w->problem;
  const double angle = scale / (one->length * one->length);
  double *rows = p->soft_compliance + one->row;
  double *equalities = p->soft_compliance_eq + one->equality;
  for (int r = 0; r < one->row_count; ++r) {
    rows[r] = scale;
  }
  memset(rows + one->row_count, 0, (size_t)one->bound_count * sizeof(double));
  for (int i = one->limit; i < one->limit + one->limit_count; ++i) {
    p->soft_compliance[p->limit[i].row] = limit_is_angle(w, i) ? angle : scale;
  }
  for (int i = 0; i < BALL_ROWS * one->ball_limit_count; ++i) {
    p->soft_compliance[p->ball_limit[one->ball_limit].row + i] = angle;
  }
  for (int i = 0; i < one->equality_count; ++i) {
    equalities[i] = CONSTRAINTS_GIVE * (equality_is_angle(w, one->equality + i) ? angle : scale);
    if (program->compliance_eq != NULL && program->compliance_eq[i] > 0.0) {
      equalities[i] = program->compliance_eq[i];
    }
  }
  for (int i = 0, r = 0; i < program->cone_count; ++i) {
    for (const int end = r + program->cone_dim[i]; r < end; ++r) {
      const double given = program->compliance != NULL ? program->compliance[r] : 0.0;
      if (given > 0.0 || program->cone_kind[i] == QD_INTERVAL) {
        rows[r] = given;
      }
    }
  }
}

/* Extends range[] to what one newton moves rows by, sum_j A_ij^2 / Q_jj, over their compliance. */
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

/* The scale of compliances at which the first row gives way as much as the bodies that it moves,
 * but for rows that hardly move any; or at which the largest force moves one by GIVES_MOST
 * lengths. */
static double body_scale(qd_workspace *w, const island *one, const qd_cone_program *program) {
  problem *p = &w->problem;
  double *diagonal = p->mass_row, largest = 0.0, range[2] = {INFINITY, 0.0};
  for (int i = 0; i < one->variable_count; ++i) {
    const int at = one->Q.start[i];
    diagonal[i] = one->Q.values[4 * (size_t)at + (size_t)(i - 4 * one->Q.tiles[at])];
    largest = fmax(largest, fabs(program->b[i]));
  }
  fill_compliance(w, one, program, 1.0);
  extend_responses(range, &one->G, one->row_count, p->soft_compliance + one->row, diagonal);
  extend_responses(range, &one->C, one->equality_count, p->soft_compliance_eq + one->equality,
                   diagonal);
  if (range[1] == 0.0) { /* no cost of motion: beside its forces */
    return largest > 0.0 ? one->length / largest : 1.0;
  }
  const double scale = fmax(range[0], HARDLY * range[1]);
  return largest > 0.0 ? fmin(scale, GIVES_MOST * one->length / largest) : scale;
}

/* ---------------------------------------------------------------- the two programs */

/* `bounded`: the first, whose motion is bounded and which has no barrier. `again`: from where the
 * last one ended. */
static qd_status solve_compliant(qd_workspace *w, island *one, const qd_cone_options *options,
                                 const conic_program *program, int bounded, int again) {
  problem *p = &w->problem;
  conic_program soft = *program;
  qd_cone_options own = *options;
  own.warm_start = again;
  soft.program.compliance = p->soft_compliance + one->row;
  soft.program.compliance_eq = p->soft_compliance_eq + one->equality;
  if (bounded) {
    soft.answer_only = 1;
    soft.program.target_mu = NULL;
    soft.program.row_count += one->bound_count;
    soft.program.cone_count += 1;
  }
  return conic_solve(one->cone_workspace, &own, &soft, p->x + one->variable, p->slack + one->row,
                     p->dual + one->row, p->dual_eq + one->equality, &one->info);
}

/* A row that gives way here: neither a force nor one that gives way by itself. */
static int row_counts(const qd_cone_program *program, int cone, int row) {
  return program->cone_kind[cone] != QD_INTERVAL &&
         (program->compliance == NULL || program->compliance[row] == 0.0);
}

/* give = R dual - held, and held = R dual, of rows that count; 0 of others. Returns the largest
 * change of a violation, in units of which `scale` is the compliance. */
static double take_give(problem *p, const island *one, const qd_cone_program *program,
                        double scale) {
  double change = 0.0;
  for (int r = 0, cone = 0; cone < program->cone_count; ++cone) {
    for (const int end = r + program->cone_dim[cone]; r < end; ++r) {
      const int i = one->row + r;
      const double now = row_counts(program, cone, r) ? p->soft_compliance[i] * p->dual[i] : 0.0;
      const double give = now - p->soft_held[i];
      change = fmax(change, fabs(give - p->soft_give[i]) * sqrt(scale / p->soft_compliance[i]));
      p->soft_give[i] = give;
      p->soft_held[i] = now;
    }
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    const int own =
        program->compliance_eq != NULL && program->compliance_eq[i - one->equality] > 0.0;
    const double now = own ? 0.0 : p->soft_compliance_eq[i] * p->dual_eq[i];
    const double give = now - p->soft_held_eq[i];
    change = fmax(change, fabs(give - p->soft_give_eq[i]) * sqrt(scale / p->soft_compliance_eq[i]));
    p->soft_give_eq[i] = give;
    p->soft_held_eq[i] = now;
  }
  return change;
}

/* Adds sign times what the arrays hold to g and c. */
static void move_offsets(problem *p, const island *one, double sign, const double *rows,
                         const double *equalities) {
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    p->g[i] += sign * rows[i];
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    p->c[i] += sign * equalities[i];
  }
}

/* Of a barrier, what contradicts itself keeps a gap. */
static void add_gaps(problem *p, const island *one, const qd_cone_program *program) {
  for (int r = one->row, cone = 0; cone < program->cone_count; r += program->cone_dim[cone++]) {
    double give = 0.0;
    for (int k = 0; k < program->cone_dim[cone]; ++k) {
      give = fmax(give, fabs(p->soft_give[r + k]));
    }
    for (int k = 0; give > 0.0 && k < program->cone_dim[cone]; ++k) {
      const int opens = k == 0 || program->cone_kind[cone] == QD_ORTHANT;
      p->soft_give[r + k] += opens ? BARRIER_GAP * one->length : 0.0;
    }
  }
}

/* Forces of bounds that are gone after so many more passes, where each lets go of as much as the
 * last one did: a bound that holds what a growing force is yet to hold. 0: no force of a bound
 * falls. Keeps the forces for the next pass. */
static double passes_until_free(problem *p, const island *one) {
  const double *dual = p->dual + one->row + one->row_count;
  double *before = p->soft_held + one->row + one->row_count;
  double passes = INFINITY;
  for (int i = 0; i < one->bound_count; ++i) {
    const double fall = before[i] - dual[i];
    if (fall > FALLS * before[i]) {
      passes = fmin(passes, dual[i] / fall);
    }
    before[i] = dual[i];
  }
  return isinf(passes) ? 0.0 : passes;
}

/* held = factor held + passes give: multipliers after so many passes that change no violation, of
 * rows whose compliance changes by a factor. */
static void grow_held(problem *p, const island *one, double passes, double factor) {
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    p->soft_held[i] = factor * (p->soft_held[i] + passes * p->soft_give[i]);
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    p->soft_held_eq[i] = factor * (p->soft_held_eq[i] + passes * p->soft_give_eq[i]);
  }
}

static void clear_give(problem *p, const island *one) {
  const size_t rows = (size_t)(one->row_count + one->bound_count) * sizeof(double);
  const size_t equalities = (size_t)one->equality_count * sizeof(double);
  memset(p->soft_give + one->row, 0, rows);
  memset(p->soft_held + one->row, 0, rows);
  memset(p->soft_give_eq + one->equality, 0, equalities);
  memset(p->soft_held_eq + one->equality, 0, equalities);
}

/* The least violations, into soft_give: the method of multipliers, whose multipliers grow by the
 * least violations over the compliance with every pass (Chiche & Gilbert 2016). Violations that
 * have settled are the least unless a bound's force falls: then forces have yet to grow. */
static qd_status find_give(qd_workspace *w, island *one, const qd_cone_options *options,
                           const conic_program *program, double scale, int bounded,
                           const schedule *plan) {
  problem *p = &w->problem;
  double change = INFINITY, compliance = plan->first, least = plan->last;
  int found = 0;
  clear_give(p, one);
  for (int pass = 0; pass < PASSES; ++pass) {
    fill_compliance(w, one, &program->program, compliance * scale);
    move_offsets(p, one, -1.0, p->soft_held, p->soft_held_eq);
    const qd_status status = solve_compliant(w, one, options, program, bounded, found);
    move_offsets(p, one, 1.0, p->soft_held, p->soft_held_eq);
    double wait = 0.0, next = fmax(FINER * compliance, least);
    found = status == QD_OK;
    if (found) {
      change = take_give(p, one, &program->program, compliance * scale);
      wait = bounded ? passes_until_free(p, one) : 0.0;
    } else if (compliance < FIRST_MOST) {
      next = least = fmin(compliance / FINER, FIRST_MOST);
    } else {
      return status;
    }
    const int settled = change <= SETTLED * one->length;
    if (found && settled && wait == 0.0) {
      return QD_OK;
    }
    grow_held(p, one, settled ? wait : 0.0, next / compliance);
    compliance = next;
  }
  return change <= NEAR * one->length ? QD_OK : QD_NUMERICAL_TROUBLE;
}

/* The largest of soft_give, in units of which `scale` is the compliance. */
static double largest_give(const problem *p, const island *one, double scale) {
  double largest = 0.0;
  for (int i = one->row; i < one->row + one->row_count; ++i) {
    if (p->soft_give[i] != 0.0) {
      largest = fmax(largest, fabs(p->soft_give[i]) * sqrt(scale / p->soft_compliance[i]));
    }
  }
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    if (p->soft_give_eq[i] != 0.0) {
      largest = fmax(largest, fabs(p->soft_give_eq[i]) * sqrt(scale / p->soft_compliance_eq[i]));
    }
  }
  return largest;
}

/* Of a program without a proof that it has no solution: QD_OK if violations vanish, however far
 * that is. */
static qd_status find_none(qd_workspace *w, island *one, const qd_cone_options *options,
                           const conic_program *program, double scale) {
  const qd_status status = find_give(w, one, options, program, scale, 0, SCHEDULES);
  fill_compliance(w, one, &program->program, scale);
  const int gone = largest_give(&w->problem, one, scale) <= SETTLED * one->length;
  if (status == QD_OK && gone) {
    clear_give(&w->problem, one);
    return QD_OK;
  }
  return QD_INFEASIBLE;
}

/* The largest violation of an equality, as a length; holds what the multipliers are worth, so that
 * the next pass is left with what contradicts itself. */
static double equality_violation(const qd_workspace *w, const island *one) {
  const problem *p = &w->problem;
  double largest = 0.0;
  for (int i = one->equality; i < one->equality + one->equality_count; ++i) {
    const double arm = equality_is_angle(w, i) ? one->length : 1.0;
    const double held = p->soft_compliance_eq[i] * p->dual_eq[i];
    largest = fmax(largest, arm * fabs(held - p->soft_held_eq[i]));
    p->soft_held_eq[i] = held;
  }
  return largest;
}

qd_status soften_round(qd_workspace *w, island *one, const qd_cone_options *options,
                       const island_program *program) {
  problem *p = &w->problem;
  const qd_cone_program *rows = &program->program.program;
  fill_compliance(w, one, rows, ALMOST_RIGID * body_scale(w, one, rows));
  for (int r = 0; r < one->row_count; ++r) {
    p->soft_compliance[one->row + r] = rows->compliance != NULL ? rows->compliance[r] : 0.0;
  }
  clear_give(p, one);
  double before = INFINITY;
  for (int pass = 0; pass < ROUND_PASSES; ++pass) {
    move_offsets(p, one, -1.0, p->soft_held, p->soft_held_eq);
    const qd_status status = solve_compliant(w, one, options, &program->program, 0, pass > 0);
    move_offsets(p, one, 1.0, p->soft_held, p->soft_held_eq);
    if (status != QD_OK) {
      return pass == 0 ? status : QD_INFEASIBLE;
    }
    const double left = equality_violation(w, one);
    if (left <= ROUNDED * one->length) {
      return QD_OK;
    }
    if (left > SHRINKS * before) {
      return QD_INFEASIBLE;
    }
    before = left;
  }
  return QD_INFEASIBLE;
}

void soften_make_room(island *one, int whole) {
  one->size.compliant = one->size.rows + one->size.equalities;
  if (whole) {
    const int bounds = 2 * one->size.variables;
    one->size.rows += bounds;
    one->size.row_tiles += (size_t)bounds;
    one->G_tiles += (size_t)bounds;
  }
}

/* The step within soft_give. */
static qd_status solve_within(qd_workspace *w, island *one, const qd_cone_options *options,
                              const conic_program *program, double scale) {
  problem *p = &w->problem;
  qd_status status = QD_NUMERICAL_TROUBLE;
  if (program->program.cone_count > 0 && program->program.target_mu[0] > 0.0) {
    add_gaps(p, one, &program->program);
  }
  move_offsets(p, one, 1.0, p->soft_give, p->soft_give_eq);
  for (int try = 0; try < COUNT(SECOND) && status != QD_OK; ++try) {
    fill_compliance(w, one, &program->program, SECOND[try] * scale);
    status = solve_compliant(w, one, options, program, 0, 1);
  }
  move_offsets(p, one, -1.0, p->soft_give, p->soft_give_eq);
  return status;
}

qd_status soften_solve(qd_workspace *w, island *one, const qd_cone_options *options,
                       const island_program *program, int is_proven) {
  const conic_program *rows = &program->program;
  const double scale = body_scale(w, one, &rows->program);
  qd_status status = is_proven ? QD_INFEASIBLE : find_none(w, one, options, rows, scale);
  if (status == QD_OK) {
    status = solve_within(w, one, options, rows, scale);
  }
  for (int i = 0; i < COUNT(SCHEDULES) && status != QD_OK; ++i) {
    status = find_give(w, one, options, rows, scale, 1, SCHEDULES + i);
    if (status == QD_OK) {
      status = solve_within(w, one, options, rows, scale);
    }
  }
  one->softened = status == QD_OK;
  return status;
}

/* ---------------------------------------------------------------- what gave way */

/* What Gx + g has outside its cone: the slack less what it was given. */
static double violation(const problem *p, int row, int rows, int kind) {
  double outside = 0.0, across = 0.0, head = 0.0;
  for (int r = 0; r < rows; ++r) {
    const int i = row + r;
    const double w = p->slack[i] - p->soft_compliance[i] * p->dual[i] - p->soft_give[i];
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
    const double give = p->soft_give_eq[i] + p->soft_compliance_eq[i] * p->dual_eq[i];
    const int own = one->compliant > 0 && p->compliance_eq[i] > 0.0; /* gives way anyway */
    count += !own && arm * fabs(give) > least;
  }
  return count;
}

int soften_mark(qd_workspace *w, double tolerance) {
  int count = 0;
  for (int i = 0; i < w->problem.islands.count; ++i) {
    const island *one = w->problem.islands.island + i;
    count += one->softened ? mark_island(w, one, tolerance) : 0;
  }
  return count;
}
