/* Checks of programs with compliant rows. */
#include <math.h>

#include "base/lanes.h"
#include "numerics/conic/compliance/compliance.h"
#include "numerics/conic/workspace.h"

/* Checks that a compliance is finite and not negative; counts nonzero ones. */
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

/* Checks the ends of intervals; counts intervals. */
static qd_status check_intervals(const qd_cone_program *program, int *count) {
  for (int k = 0, row = 0; k < program->cone_count; row += program->cone_dim[k++]) {
    for (int i = row; program->cone_kind[k] == QD_INTERVAL && i < row + program->cone_dim[k]; ++i) {
      if (!program->lower || !program->upper) {
        return QD_BAD_ARGUMENT;
      }
      if (isnan(program->lower[i]) || isnan(program->upper[i])) {
        return QD_NOT_FINITE;
      }
      if (program->lower[i] > program->upper[i] || program->lower[i] == HUGE_VAL ||
          program->upper[i] == -HUGE_VAL) {
        return QD_BAD_ARGUMENT;
      }
      ++*count;
    }
  }
  return QD_OK;
}

qd_status compliance_check(const compliant_program *soft, const conic_program *source) {
  const qd_cone_program *program = &source->program;
  const conic_size *room = &soft->room;
  int compliant = 0, intervals = 0;
  if (room->compliant + room->intervals == 0 || (!source->Q) != room->is_dense ||
      !conic_makes_sense(room, source, QD_INTERVAL)) {
    return QD_BAD_ARGUMENT;
  }
  qd_status status = check_intervals(program, &intervals);
  if (status == QD_OK) {
    status = check_compliances(program->compliance, program->row_count, &compliant);
  }
  if (status == QD_OK) {
    status = check_compliances(program->compliance_eq, program->equality_count, &compliant);
  }
  if (status != QD_OK) {
    return status;
  }
  if (intervals > room->intervals || compliant > room->compliant + room->intervals) {
    return QD_BAD_ARGUMENT;
  }
  return all_finite(program->b, program->variable_count) &&
                 all_finite(program->g, program->row_count) &&
                 all_finite(program->c, program->equality_count)
             ? QD_OK
             : QD_NOT_FINITE;
}
