/* Earlier steps as guesses. */
#include "binding/step_call.h"

int step_start_of(const step_call *call, PyObject *warm_start, qd_step_start *out) {
  const int whole = PyObject_TypeCheck(warm_start, call->state->linearization_type);
  return step_start_read(call, whole ? linearization_step(warm_start) : warm_start, out);
}

int step_call_start(step_call *call, PyObject *warm_start) {
  if (!warm_start || warm_start == Py_None) {
    return 0;
  }
  if (step_start_of(call, warm_start, &call->start) < 0) {
    step_call_end(call);
    return -1;
  }
  call->input.start = &call->start;
  return 0;
}
