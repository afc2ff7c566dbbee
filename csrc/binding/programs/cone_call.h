/* Common code of solve_cone_program and its benchmark. */
#ifndef QD_BINDING_PROGRAMS_CONE_CALL_H
#define QD_BINDING_PROGRAMS_CONE_CALL_H

#include "binding/core.h"
#include "binding/interrupt.h"

enum {
  CONE_Q,
  CONE_B,
  CONE_G,
  CONE_OFFSET,
  CONE_C,
  CONE_EQ,
  CONE_MU,
  CONE_R,
  CONE_R_EQ,
  CONE_LOWER,
  CONE_UPPER,
  CONE_ARRAYS
};

/* A workspace and the sizes for which it is laid out; the module keeps one between calls. */
typedef struct cone_scratch {
  qd_cone_workspace *workspace;
  int variables, rows, equalities;
  int is_soft; /* for one program with compliant rows */
} cone_scratch;

void cone_scratch_destroy(cone_scratch *scratch);

typedef struct cone_call {
  core_state *state;
  PyArrayObject *arrays[CONE_ARRAYS]; /* NULL: not given */
  int *cones;                         /* kinds, then rows */
  double *targets;                    /* one per cone, if one number is given for all */
  double *soft;                       /* compliances and limits of rows, in turn */
  qd_cone_program program;            /* points into these */
  cone_scratch *scratch;
} cone_call;

/* The arguments; from C on they may be None or NULL. cone_call_begin returns -1 with an exception,
 * and then nothing is left to end. */
typedef struct cone_arguments {
  PyObject *Q, *b, *G, *g, *cones, *C, *c, *target_mu;
  PyObject *compliance, *compliance_eq, *lower, *upper;
} cone_arguments;

extern const char *const cone_array_names[CONE_ARRAYS];

/* Whether an optional argument is given. */
static inline int is_given(PyObject *object) { return object && object != Py_None; }

/* Read parts of the program into call->program and its arrays; 0, or -1 with an exception. */
PyArrayObject *cone_vector_read(PyObject *object, const char *name);
int cone_arrays_read(cone_call *call, const cone_arguments *in);
int cone_cost_check(const cone_call *call);
int cone_list_read(cone_call *call, PyObject *object);
int cone_targets_read(cone_call *call, PyObject *object);
int cone_soft_read(cone_call *call, const cone_arguments *in);

int cone_call_begin(cone_call *call, core_state *state, const cone_arguments *in);
void cone_call_end(cone_call *call);

#endif
