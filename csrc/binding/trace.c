/* Traces of steps: rows in C, a qdsim.trace.Trace in Python. */
#include "binding/core.h"

int trace_take_room(qd_trace *trace) {
  *trace =
      (qd_trace){.rows = PyMem_Calloc(TRACE_ROWS, sizeof(qd_trace_row)), .capacity = TRACE_ROWS};
  if (!trace->rows) {
    PyErr_NoMemory();
    return -1;
  }
  return 0;
}

void trace_release(qd_trace *trace) {
  PyMem_Free(trace->rows);
  trace->rows = NULL;
}

static PyObject *row_object(const qd_trace_row *row) {
  return Py_BuildValue("(ssiidsi)", row->stage, row->reason, row->iterations, row->factorizations,
                       row->residual, row->verdict, row->level);
}

PyObject *trace_object(const qd_trace *trace) {
  PyObject *rows = PyTuple_New(trace->count);
  for (int i = 0; rows && i < trace->count; i++) {
    PyObject *row = row_object(trace->rows + i);
    if (!row) {
      Py_CLEAR(rows);
      break;
    }
    PyTuple_SET_ITEM(rows, i, row);
  }
  PyObject *module = rows ? PyImport_ImportModule("qdsim.trace") : NULL;
  PyObject *out =
      module ? PyObject_CallMethod(module, "_trace_of", "Oi", rows, trace->dropped) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(rows);
  return out;
}
