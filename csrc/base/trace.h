/* Rows of a qd_trace. A trace that nobody asked for is NULL, and nothing is written then. Floor:
 * base. */
#ifndef QD_BASE_TRACE_H
#define QD_BASE_TRACE_H

#include <math.h>

#include "qdsim/solvers.h"

#if defined(__GNUC__)
#define TRACE_FORMAT __attribute__((format(printf, 4, 5)))
#else
#define TRACE_FORMAT
#endif

/* No rows so far. */
void trace_clear(qd_trace *trace);
/* Begins a stage (number > 0: "stage number"; the reason is a format) and returns its row for
 * trace_close. What begins before that is a part of it. A macro, so that steps without a trace do
 * not even gather the arguments. */
#define trace_open(trace, ...) ((trace) == NULL ? -1 : trace_begin(trace, __VA_ARGS__))
int trace_begin(qd_trace *trace, const char *stage, int number, const char *reason,
                ...) TRACE_FORMAT;
/* What the next two do with a trace. */
void trace_end(qd_trace *trace, int row, double residual, const char *verdict);
void trace_count(qd_trace *trace, int iterations, int factorizations);

/* Ends a stage. The row has the effort that was counted in between. */
static inline void trace_close(qd_trace *trace, int row, double residual, const char *verdict) {
  if (trace != NULL) {
    trace_end(trace, row, residual, verdict);
  }
}

/* Counts effort of the stages that are open. */
static inline void trace_effort(qd_trace *trace, int iterations, int factorizations) {
  if (trace != NULL) {
    trace_count(trace, iterations, factorizations);
  }
}

/* Ends a stage with the largest residual of an answer. */
static inline void trace_close_with(qd_trace *trace, int row, const qd_cone_info *info,
                                    qd_status status) {
  if (trace != NULL) {
    const double residual =
        fmax(info->primal_residual, fmax(info->dual_residual, info->complementarity));
    trace_end(trace, row, residual, qd_status_name(status));
  }
}

#endif
