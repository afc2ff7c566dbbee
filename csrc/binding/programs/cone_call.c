/* One call: its program, and a workspace for it. */
#include "binding/programs/cone_call.h"

#include <string.h>

void cone_scratch_destroy(cone_scratch *scratch) {
  if (!scratch) {
    return;
  }
  qd_cone_workspace_destroy(scratch->workspace);
  PyMem_RawFree(scratch);
}

/* The module's workspace, if it is idle and fits exactly; otherwise a new one. */
static cone_scratch *scratch_acquire(core_state *state, const qd_cone_program *program) {
  const int n = program->variable_count, m = program->row_count, p = program->equality_count;
  cone_scratch *scratch = atomic_exchange(&state->cone_scratch, NULL);
  const int is_soft =
      program->compliance || program->compliance_eq || program->lower || program->upper;
  if (scratch && scratch->variables == n && scratch->rows == m && scratch->equalities == p &&
      !is_soft && !scratch->is_soft) {
    return scratch;
  }
  cone_scratch_destroy(scratch);
  if (!(scratch = PyMem_RawMalloc(sizeof *scratch))) {
    return NULL;
  }
  *scratch = (cone_scratch){qd_cone_workspace_create_for(program), n, m, p, is_soft};
  if (scratch->workspace) {
    return scratch;
  }
  cone_scratch_destroy(scratch);
  return NULL;
}

static void scratch_release(core_state *state, cone_scratch *scratch) {
  if (scratch) {
    cone_scratch_destroy(atomic_exchange(&state->cone_scratch, scratch));
  }
}

static const double *numbers_of(const cone_call *call, int i) {
  static const double none = 0.0; /* for a matrix without rows */
  return call->arrays[i] ? PyArray_DATA(call->arrays[i]) : &none;
}

static int call_read(cone_call *call, const cone_arguments *in) {
  if (cone_arrays_read(call, in) < 0) {
    return -1;
  }
  PyArrayObject **arrays = call->arrays;
  const int with_equalities = arrays[CONE_EQ] != NULL;
  call->program = (qd_cone_program){.variable_count = (int)PyArray_DIM(arrays[CONE_B], 0),
                                    .row_count = (int)PyArray_DIM(arrays[CONE_OFFSET], 0),
                                    .equality_count =
                                        with_equalities ? (int)PyArray_DIM(arrays[CONE_EQ], 0) : 0,
                                    .Q = numbers_of(call, CONE_Q),
                                    .b = numbers_of(call, CONE_B),
                                    .G = numbers_of(call, CONE_G),
                                    .g = numbers_of(call, CONE_OFFSET),
                                    .C = numbers_of(call, CONE_C),
                                    .c = numbers_of(call, CONE_EQ)};
  return cone_cost_check(call) < 0 || cone_list_read(call, in->cones) < 0 ||
                 cone_targets_read(call, in->target_mu) < 0 || cone_soft_read(call, in) < 0
             ? -1
             : 0;
}

int cone_call_begin(cone_call *call, core_state *state, const cone_arguments *in) {
  memset(call, 0, sizeof *call);
  call->state = state;
  if (call_read(call, in) == 0) {
    if ((call->scratch = scratch_acquire(state, &call->program))) {
      return 0;
    }
    PyErr_NoMemory();
  }
  cone_call_end(call);
  return -1;
}

void cone_call_end(cone_call *call) {
  scratch_release(call->state, call->scratch);
  PyMem_Free(call->cones);
  PyMem_Free(call->targets);
  PyMem_Free(call->soft);
  for (int i = 0; i < CONE_ARRAYS; ++i) {
    Py_CLEAR(call->arrays[i]);
  }
}
