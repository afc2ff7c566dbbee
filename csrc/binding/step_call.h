/* Common code of step, linearize and their benchmark: arguments, the work without the GIL, results.
 */
#ifndef QD_BINDING_STEP_CALL_H
#define QD_BINDING_STEP_CALL_H

#include "binding/core.h"
#include "binding/model.h"

typedef struct step_call {
  const core_state *state;
  const char *name;         /* "step" or "linearize", for messages */
  model_object *model;      /* borrowed from the arguments */
  options_object *options;  /* borrowed, or owned through options_owner */
  PyObject *options_owner;  /* strong or NULL */
  PyObject *held;           /* bytes, strong, or NULL */
  workspace_entry *entry;   /* owned until step_call_end */
  qd_step_input input;      /* points into the entry */
  qd_step_start start;      /* points into the warm start's Step, which the caller keeps alive */
  qd_step_options settings; /* the options with this model's held mask */
  qd_step_result result;    /* filled by step_call_run, points into the entry */
  qd_trace trace;           /* its own rows, if the options ask for a trace */
} step_call;

/* Reads only model and options, without a workspace. -1 with an exception, and then nothing is left
 * to end. options may be NULL. */
int step_call_configure(step_call *call, const core_state *state, const char *name, PyObject *model,
                        PyObject *options, int dynamic);
/* -1 with an exception, and then nothing is left to end. options and the following arguments may be
 * NULL; v belongs to the second-order step, and is NULL for the quasi-dynamic step. */
int step_call_begin(step_call *call, const core_state *state, const char *name, PyObject *model,
                    PyObject *q, PyObject *v, PyObject *u, PyObject *options, PyObject *tau,
                    PyObject *wrench, PyObject *mocap);
/* -1 with an exception if derivatives are wanted that the law of patches does not have. */
int patch_law_check(const step_call *call, int derivatives);
/* -1 with an exception, and then nothing is left to end: if there are no derivatives; if bristles
 * (None, NULL: zero) are not an array of the right shape. */
int step_call_derivatives(step_call *call);
int step_call_bristles(step_call *call, PyObject *bristles);
/* One qd_step, or qd_linearize into A and B (NULL: not wanted); grows the workspace as needed.
 * Needs no GIL. */
qd_status step_call_run(step_call *call, int with_derivative, double *A, double *B);
/* The same with qd_differentiate: the step with its factor; and with qd_linearize_dynamic. */
qd_status step_call_differentiate(step_call *call);
qd_status step_call_linearize_dynamic(step_call *call, double *const of_q[QD_ARGUMENT_COUNT],
                                      double *const of_v[QD_ARGUMENT_COUNT]);
/* -1 with an exception unless status is QD_OK and all results are finite. */
int step_call_check(const step_call *call, qd_status status);
/* Its trace is a new reference; -1 with an exception if it cannot be created. */
int step_call_info(const step_call *call, int with_derivative, solver_info *info);
void step_call_end(step_call *call);

/* differential.c: new frozen arrays of d q_next by the arguments whose bit is set (nv, *shape),
 * None for the others. -1 with an exception. */
int step_call_jacobians(step_call *call, int wanted, PyObject *arrays[QD_ARGUMENT_COUNT]);
/* The same file: a bit for each name, NULL: by_default, -1 with an exception; a new dict of the
 * arrays that are not None. */
int wrt_read(PyObject *names, int by_default);
PyObject *derivatives_create(PyObject *arrays[QD_ARGUMENT_COUNT]);
/* body_rows.c: reads (mocap_count, 7) or a mapping from names of mocap bodies to (7) into out,
 * normalised; other bodies keep their poses of the model. -1 with an exception. */
int mocap_read(const model_object *model, PyObject *model_argument, PyObject *mocap, double *out);
/* Reads (body_count, 6) or a mapping from names of bodies to (6) into out (body_count, 6). -1 with
 * an exception. */
int wrench_read(const core_state *state, const model_object *model, PyObject *model_argument,
                PyObject *wrench, double *out);

/* warm_start.c: the Step, or that of a Linearization, as a guess that is used in place. TypeError;
 * ValueError if it belongs to another model. */
int step_start_of(const step_call *call, PyObject *warm_start, qd_step_start *out);
/* The same for this call; NULL, None: none. -1 with an exception, and then nothing is left to end.
 */
int step_call_start(step_call *call, PyObject *warm_start);

/* step_object.c: a Step with copies of the results; the guess in a Step; 1 if all contacts belong
 * to pairs and bodies of the model. */
PyObject *step_create(const step_call *call, int with_derivative);
int step_start_read(const step_call *call, PyObject *step, qd_step_start *out);
/* dynamic_step.c: the same for the second-order step; the Step in it, borrowed. */
PyObject *dynamic_step_create(const step_call *call, int with_derivative);
PyObject *dynamic_step_step(PyObject *dynamic_step);
int contacts_fit(const model_object *model, const qd_contact *contacts, npy_intp count);

/* linearization_object.c: derivatives is a dict without other references; its Step, borrowed. */
PyObject *linearization_create(const core_state *state, PyObject *step, PyObject *A, PyObject *B,
                               PyObject *derivatives);
PyObject *linearization_step(PyObject *linearization);

#endif
