/* Report of the checks of a model spec: the first fault, as "array[index]: reason". */
#ifndef QD_MECHANICS_SPEC_REPORT_H
#define QD_MECHANICS_SPEC_REPORT_H

#include <stddef.h>

#include "qdsim.h"

typedef struct report {
  char *message; /* may be NULL */
  size_t size;
} report;

/* Writes the message; returns QD_BAD_ARGUMENT. */
qd_status spec_fail(const report *r, const char *array, int index, const char *reason);

/* Check each element of an array. An array that is NULL is not given and has no fault. */
qd_status spec_finite(const report *r, const char *array, const double *values, int rows,
                      int columns);
qd_status spec_quats(const report *r, const char *array, const double *quats, int count);
qd_status spec_not_negative(const report *r, const char *array, const double *values, int count);
/* Checks rows of `width` numbers; the first three are K, B and a sum of qd_reference_kind. */
qd_status spec_row_solver(const report *r, const char *array, const double *values, int count,
                          int width);

/* Element i of an optional array; -1 or 0 if the array is not given. */
int spec_index(const int32_t *values, int i);
double spec_value(const double *values, int i);

#define TRY(call)                                                                                  \
  do {                                                                                             \
    const qd_status status_ = (call);                                                              \
    if (status_ != QD_OK) {                                                                        \
      return status_;                                                                              \
    }                                                                                              \
  } while (0)

#endif
