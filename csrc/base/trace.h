/* Writes the rows of a qd_trace. The trace is NULL if the caller wants none; then nothing is
 * written. */
#ifndef QD_BASE_TRACE_H
#define QD_BASE_TRACE_H

#include <math.h>

#include "qdsim/solvers.h"

#if defined(__GNUC__)
#define TRACE_FORMAT __attribute__((format(printf, 4, 5)))
#else
#define TRACE_FORMAT
#endif

/* Removes all rows. */
void trace_clear(qd_trace *trace);
/* Begins a stage and returns its row for trace_close. number > 0: the stage is called "stage
 * number". `reason` is a printf format. Stages that begin before trace_close are nested in this
 * one. This is a macro, so that without a trace its arguments are not evaluated. */
#define trace_open(trace, ...) ((trace) == NULL ? -1 : trace_begin(trace, __VA_ARGS__))
int trace_begin(qd_trace *trace, const char *stage, int number, const char *reason,
                ...) TRACE_FORMAT;
/* Implementations of trace_close and trace_effort for a trace that is not NULL. */
void trace_end(qd_trace *trace, int row, double residual, const char *verdict);
void trace_count(qd_trace *trace, int iterations, int factorizations);

/* Ends a stage. Its row gets the effort counted since trace_open. */
static inline void trace_close(qd_trace *trace, int row, double residual, const char *verdict) {
  if (trace != NULL) {
    trace_end(trace, row, residual, verdict);
  }
}

/* Adds effort to all open stages. */
static inline void trace_effort(qd_trace *trace, int iterations, int factorizations) {
  if (trace != NULL) {
    trace_count(trace, iterations, factorizations);
  }
}

/* Ends a stage with the largest residual in `info`. */
static inline void trace_close_with(qd_trace *trace, int row, const qd_cone_info *info,
                                    qd_status status) {
  if (trace != NULL) {
    const double residual =
        fmax(info->primal_residual, fmax(info->dual_residual, info->complementarity));
    trace_end(trace, row, residual, qd_status_name(status));
  }
}

#endif
