/* What a program whose rows give way has to be like. */
#include <math.h>

#include "base/lanes.h"
#include "numerics/conic/soft/soft.h"

/* A compliance: finite and not negative; counts those that are not zero. */
static qd_status check_compliances(const double *compliance, int count, int *found) {
  for (int i = 0; compliance && i < count; ++i) {
    if (!isfinite(compliance[i])) {
      return QD_NOT_FINITE;
    }
    if (compliance[i] < 0.0) {
      return QD_BAD_ARGUMENT;
    }
    *found += compliance[i] > 0.0;
  }
  return QD_OK;
}

static qd_status check_interval(const qd_cone_program *program, int row, int dim) {
  if (!program->lower || !program->upper) {
    return QD_BAD_ARGUMENT;
  }
  for (int i = row; i < row + dim; ++i) {
    if (isnan(program->lower[i]) || isnan(program->upper[i])) {
      return QD_NOT_FINITE;
    }
    if (program->lower[i] > program->upper[i] || program->lower[i] == HUGE_VAL ||
        program->upper[i] == -HUGE_VAL) {
      return QD_BAD_ARGUMENT;
    }
  }
  return QD_OK;
}

static qd_status check_cones(const soft_program *soft, const qd_cone_program *program) {
  int row = 0, intervals = 0;
  for (int k = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    const int dim = program->cone_dim[k], kind = program->cone_kind[k];
    if (dim < 1 || dim > program->row_count - row || kind < QD_ORTHANT || kind > QD_INTERVAL ||
        (program->target_mu && program->target_mu[k] < 0.0)) {
      return QD_BAD_ARGUMENT;
    }
    if (kind == QD_INTERVAL) {
      const qd_status status = check_interval(program, row, dim);
      if (status != QD_OK) {
        return status;
      }
      intervals += dim;
    }
  }
  return row == program->row_count && intervals <= soft->room.intervals ? QD_OK : QD_BAD_ARGUMENT;
}

/* What a program of these sizes needs is there. */
static int is_complete(const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const int has_rows =
      (program->G || source->G) && program->g && program->cone_kind && program->cone_dim;
  const int has_equalities = (program->C || source->C) && program->c;
  return (program->Q || source->Q) && program->b && (program->row_count == 0 || has_rows) &&
         (program->equality_count == 0 || has_equalities);
}

static int is_within(int count, int least, int most) { return count >= least && count <= most; }

/* Its sizes are some, and there is room for them. */
static int fits(const conic_size *room, const qd_cone_program *program) {
  return is_within(program->variable_count, 1, room->variables) &&
         is_within(program->row_count, 0, room->rows) &&
         is_within(program->equality_count, 0, room->equalities) && program->cone_count >= 0 &&
         room->compliant + room->intervals > 0;
}

qd_status soft_check(const soft_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const conic_size *room = &soft->room;
  int compliant = 0;
  if (!fits(room, program) || !is_complete(source) || (!source->Q) != room->is_dense) {
    return QD_BAD_ARGUMENT;
  }
  qd_status status = check_cones(soft, program);
  if (status == QD_OK) {
    status = check_compliances(program->compliance, program->row_count, &compliant);
  }
  if (status == QD_OK) {
    status = check_compliances(program->compliance_eq, program->equality_count, &compliant);
  }
  if (status != QD_OK) {
    return status;
  }
  if (compliant > room->compliant + room->intervals) {
    return QD_BAD_ARGUMENT;
  }
  return all_finite(program->b, program->variable_count) &&
                 all_finite(program->g, program->row_count) &&
                 all_finite(program->c, program->equality_count)
             ? QD_OK
             : QD_NOT_FINITE;
}
