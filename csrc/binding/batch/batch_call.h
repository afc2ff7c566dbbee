/* Common code of batches of steps, rollouts and distances: rows of samples in, results by name out.
 */
#ifndef QD_BINDING_BATCH_CALL_H
#define QD_BINDING_BATCH_CALL_H

#include "binding/batch/batch_start.h"
#include "binding/interrupt.h"

typedef struct batch_call {
  step_call step; /* model and settings */
  core_state *state;
  qd_thread_pool *pool;
  qd_batch *batch;
  int threads;
  qd_batch_input input;
  qd_batch_failure failure;
  batch_start start;
} batch_call;

/* Threads, and the model's scratch of a batch; simultaneous calls create their own. */
qd_thread_pool *thread_pool_of(core_state *state);
qd_batch *batch_acquire(model_object *model);
void batch_release(model_object *model, qd_batch *batch);

/* Returns -1 with an exception; batch_end must be called in any case. */
int batch_begin(batch_call *call, core_state *state, const char *name, PyObject *model,
                PyObject *options, PyObject *threads, int dynamic);
void batch_end(batch_call *call);

/* 1 if the last dimension is contiguous and the other strides are multiples of a double. Strides of
 * an array without elements do not matter. */
int strides_fit(PyArrayObject *array);
/* Rows (count, width) of doubles. qdsim.batch gives no other arrays. */
const double *rows_read(PyObject *object, const char *name, npy_intp *count, int width,
                        ptrdiff_t *stride);
/* Velocities of the second-order step: rows, or None in the quasi-dynamic step. -1 with an
 * exception. */
int velocities_read(batch_call *call, PyObject *v, const char *name, npy_intp *count);
/* Stretches of bristles: rows, or None. -1 with an exception. */
int bristles_read(batch_call *call, PyObject *bristles, npy_intp *count);
/* Whether the steps have bristles, which are then among the results. */
int has_bristles(const batch_call *call);
/* courses.c: u, and tau, wrench and mocap or None, of rollouts (samples, steps, width). */
int courses_read(batch_call *call, PyObject *u, PyObject *tau, PyObject *wrench, PyObject *mocap,
                 npy_intp *step_count);
/* Parameters of the samples: None, or a tuple with rows or None for each qd_parameter. */
int parameters_read(batch_call *call, PyObject *object);
/* feedback.c: arrays of a feedback, kept alive during the call. */
enum { FEEDBACK_ARRAYS = 8 };

typedef struct feedback_arrays {
  PyArrayObject *in[FEEDBACK_ARRAYS];
  qd_feedback values;
} feedback_arrays;

/* Reads the input's feedback from a dict or None; -1 with an exception. feedback_end must be called
 * in any case. */
int feedback_read(feedback_arrays *feedback, batch_call *call, PyObject *object,
                  npy_intp step_count);
/* Creates the commands among the results, if there is a feedback. */
void feedback_commands_create(feedback_arrays *feedback, const batch_call *call, PyObject *results,
                              npy_intp step_count);
void feedback_end(feedback_arrays *feedback);
/* Checks a dict of arrays for the results, or None; -1 with an exception. */
int out_check(PyObject *out);
/* Puts the array of `out`, or a new one (count, rows, columns; -1: no such dimension), into the
 * dict of results, and returns its data. NULL with an exception, or after an earlier one. */
void *result_create(PyObject *results, PyObject *out, const char *name, int type, npy_intp count,
                    npy_intp rows, npy_intp columns);
/* Adds `value`, whose reference is stolen, to the results. Without a value, returns NULL and
 * releases the results. */
PyObject *results_finish(PyObject *results, const char *name, PyObject *value);
/* A dict of sample, step, info and culprits of the first failed sample, or None. */
PyObject *failure_report(const batch_call *call, int with_derivative);

#endif
