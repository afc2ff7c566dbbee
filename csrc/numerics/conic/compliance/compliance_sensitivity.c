/* Derivatives of programs with compliant rows, through their rigid program. */
#include <math.h>
#include <string.h>

#include "base/lanes.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/workspace.h"

/* Columns first .. first + width of a row of numbers, as four numbers with zeros behind. */
static void gather(const double *from, int first, int width, double factor, double to[4]) {
  for (int k = 0; k < 4; ++k) {
    to[k] = k < width ? factor * from[first + k] : 0.0;
  }
}

static void scatter(double *to, int first, int width, double factor, const double from[4]) {
  for (int k = 0; k < width; ++k) {
    to[first + k] = factor * from[k];
  }
}

/* Position of a row's perturbations and multipliers in the rigid program; NULL: none. */
static double *four_of(const compliant_row *row, double *rows, double *equalities) {
  if (row->row < 0) {
    return NULL;
  }
  return (row->kind == COMPLIANT_EQUALITY ? equalities : rows) + 4 * row->row;
}

static void gather_all(compliant_program *soft, const conic_change *change, int first, int width) {
  const int count = change->count;
  const qd_cone_program *rigid = &soft->written.rigid.program;
  memset(soft->four.stationarity, 0, 4 * (size_t)rigid->variable_count * sizeof(double));
  memset(soft->four.slack, 0, 4 * (size_t)rigid->row_count * sizeof(double));
  memset(soft->four.equality, 0, 4 * (size_t)rigid->equality_count * sizeof(double));
  for (int j = 0; j < soft->variables; ++j) {
    gather(change->d_stationarity + j * count, first, width, 1.0, soft->four.stationarity + 4 * j);
  }
  for (int i = 0; change->d_slack && i < soft->rows; ++i) {
    double *to = four_of(soft->row + i, soft->four.slack, soft->four.equality);
    if (to) {
      gather(change->d_slack + i * count, first, width, soft->row[i].sign, to);
    }
  }
  for (int i = 0; change->d_equality && i < soft->equalities; ++i) {
    gather(change->d_equality + i * count, first, width, 1.0, soft->four.equality + 4 * i);
  }
}

static void scatter_all(compliant_program *soft, const conic_change *change, int first, int width) {
  const int count = change->count;
  static const double zero[4] = {0.0, 0.0, 0.0, 0.0};
  for (int j = 0; j < soft->variables; ++j) {
    scatter(change->dx + j * count, first, width, 1.0, soft->four.x + 4 * j);
  }
  for (int i = 0; change->d_dual && i < soft->rows; ++i) {
    const double *from = four_of(soft->row + i, soft->four.dual, soft->four.dual_equality);
    scatter(change->d_dual + i * count, first, width, soft->row[i].sign, from ? from : zero);
  }
  for (int i = 0; change->d_dual_eq && i < soft->equalities; ++i) {
    scatter(change->d_dual_eq + i * count, first, width, 1.0, soft->four.dual_equality + 4 * i);
  }
}

void conic_sensitivity_solve(qd_cone_workspace *workspace, const conic_change *change) {
  compliant_program *soft = &workspace->soft;
  const compliance_four *four = &soft->four;
  const conic_change rigid = {4,       four->stationarity, four->slack,        four->equality,
                              four->x, four->dual,         four->dual_equality};
  if (!soft->used || soft->as_it_is) {
    conic_perturb(workspace, change);
    return;
  }
  for (int first = 0; first < change->count; first += 4) {
    const int width = change->count - first < 4 ? change->count - first : 4;
    gather_all(soft, change, first, width);
    conic_perturb(workspace, &rigid);
    scatter_all(soft, change, first, width);
  }
}

/* Stiffness of an end's pair: slack / distance. */
static double stiffness(double slack, double distance) {
  return slack > 0.0 ? (distance > 0.0 ? slack / distance : HUGE_VAL) : 0.0;
}

/* Shares of the motions of an interval's ends that its multiplier follows: of the end from which
 * the row is measured, and of the other. */
static void share_motion(const compliant_program *soft, const compliant_row *row, double *own,
                         double *other) {
  const double near = stiffness(soft->found.slack[row->row], soft->found.dual[row->row]);
  const double far = row->slip_row >= 0 ? stiffness(soft->found.slack[row->slip_row],
                                                    soft->found.dual[row->slip_row])
                                        : 0.0;
  const double all = row->compliance + near + far;
  *own = near == HUGE_VAL ? 1.0 : all > 0.0 ? near / all : 0.0;
  *other = far == HUGE_VAL ? 1.0 : all > 0.0 ? far / all : 0.0;
}

void conic_sensitivity_limits(const qd_cone_workspace *workspace, double *by_lower,
                              double *by_upper) {
  const compliant_program *soft = &workspace->soft;
  if (workspace->envelope.used) {
    envelope_share(workspace, &soft->source.program, by_lower, by_upper);
    return;
  }
  for (int i = 0; soft->used && i < soft->rows; ++i) {
    const compliant_row *row = soft->row + i;
    double own = 0.0, other = 0.0;
    if (row->kind == COMPLIANT_FORCE) {
      own = other = 0.5;
    } else if (row->kind == COMPLIANT_END) {
      share_motion(soft, row, &own, &other);
    } else if (row->kind == COMPLIANT_LIMITED && row->is_interval) {
      conic_ends_share(workspace, row->row, &own, &other);
    }
    by_lower[i] = row->sign > 0.0 ? own : other;
    by_upper[i] = row->sign > 0.0 ? other : own;
  }
}

int conic_find_free_direction(qd_cone_workspace *workspace, const qd_cone_info *info, double *out) {
  compliant_program *soft = &workspace->soft;
  if (!soft->used) {
    return conic_find_rigid_direction(workspace, info, out);
  }
  if (!conic_find_rigid_direction(workspace, info, soft->four.x)) {
    return 0;
  }
  memcpy(out, soft->four.x, (size_t)soft->variables * sizeof(double));
  return max_norm(out, soft->variables) > 0.0;
}
