/* Reads earlier steps as guesses. */
#include "binding/step_call.h"

int step_start_of(const step_call *call, PyObject *warm_start, qd_step_start *out) {
  const core_state *state = call->state;
  PyObject *step = warm_start;
  if (PyObject_TypeCheck(warm_start, state->linearization_type)) {
    step = linearization_step(warm_start);
  } else if (PyObject_TypeCheck(warm_start, state->dynamic_step_type)) {
    step = dynamic_step_step(warm_start);
  }
  return step_start_read(call, step, out);
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
