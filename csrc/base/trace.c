#include "base/trace.h"

#include <stdarg.h>
#include <stdio.h>

void trace_clear(qd_trace *trace) {
  if (trace != NULL) {
    trace->count = trace->dropped = trace->level = 0;
    trace->iterations = trace->factorizations = 0;
  }
}

int trace_begin(qd_trace *trace, const char *stage, int number, const char *reason, ...) {
  const int level = trace->level++;
  if (trace->count >= trace->capacity) {
    ++trace->dropped;
    return -1;
  }
  qd_trace_row *row = trace->rows + trace->count;
  *row = (qd_trace_row){.level = level,
                        .iterations = -trace->iterations,
                        .factorizations = -trace->factorizations,
                        .residual = NAN};
  snprintf(row->stage, sizeof row->stage, number > 0 ? "%s %d" : "%s", stage, number);
  va_list values;
  va_start(values, reason);
  vsnprintf(row->reason, sizeof row->reason, reason, values);
  va_end(values);
  return trace->count++;
}

void trace_end(qd_trace *trace, int row, double residual, const char *verdict) {
  --trace->level;
  if (row >= 0) {
    qd_trace_row *at = trace->rows + row;
    at->iterations += trace->iterations;
    at->factorizations += trace->factorizations;
    at->residual = residual;
    snprintf(at->verdict, sizeof at->verdict, "%s", verdict);
  }
}

void trace_count(qd_trace *trace, int iterations, int factorizations) {
  trace->iterations += iterations;
  trace->factorizations += factorizations;
}
