/* Rollouts: rows that qdsim.batch has prepared -> qd_rollout_batch. */
#include "binding/batch/batch_call.h"

const char rollout_doc[] =
    "_rollout($module, /, model, options, *, q, v, u, tau, wrench, mocap, parameters, out,\n"
    "         threads, warm_start, start, feedback)\n--\n\n"
    "Rollouts from the rows of q (samples, nq) under u (samples, steps, nu), and tau, wrench and "
    "mocap of\n"
    "that kind or None, rows contiguous; parameters and out (q, status, steps_done) as in _batch.\n"
    "warm_start: whether each step starts from the one before; start: guess for the first ones.\n"
    "feedback: None, or a dict of q_nominal (steps, nq), u_before (nu), x_gain (samples, steps, "
    "nu,\n"
    "nv), lower and upper (samples, steps, nu) as in qd_feedback, and where they are wanted u_gain "
    "(samples, steps, nu, nu),\n"
    "v_nominal (steps, nv) and v_gain like x_gain.\n"
    "v: (samples, nv) of the second-order step, else None.\n"
    "Returns a dict of q (samples, steps + 1, nq), v of that step, status, steps_done, the "
    "commands that feedback\n"
    "gave if there is one, and failure as in _batch.";

/* The arguments of _rollout, borrowed, in the order of ROLLOUT_NAMES. */
typedef struct rollout_job {
  PyObject *model, *options, *q, *v, *u, *tau, *wrench, *mocap, *parameters, *out, *threads,
      *warm_start, *start, *feedback;
} rollout_job;

static const char *const ROLLOUT_NAMES[] = {"model",   "options",    "q",     "v",          "u",
                                            "tau",     "wrench",     "mocap", "parameters", "out",
                                            "threads", "warm_start", "start", "feedback"};
enum { ROLLOUT_ARGUMENTS = sizeof(rollout_job) / sizeof(PyObject *) };

/* Arrays of a feedback, which it keeps alive. */
enum { FEEDBACK_ARRAYS = 8, FEEDBACK_NEEDED = 5 };

typedef struct rollout_feedback {
  PyArrayObject *in[FEEDBACK_ARRAYS];
  qd_feedback values;
} rollout_feedback;

static int feedback_read(rollout_feedback *feedback, batch_call *call, PyObject *object,
                         npy_intp step_count) {
  static const char *const names[] = {"q_nominal", "u_before", "x_gain",    "lower",
                                      "upper",     "u_gain",   "v_nominal", "v_gain"};
  const model_object *model = call->step.model;
  const npy_intp count = (npy_intp)call->input.sample_count, nu = model->nu;
  const npy_intp path[] = {step_count, model->nq}, v_path[] = {step_count, model->nv},
                 rows[] = {count, step_count, nu};
  const npy_intp x_gain[] = {count, step_count, nu, model->nv},
                 u_gain[] = {count, step_count, nu, nu};
  const npy_intp *const shapes[] = {path, &nu, x_gain, rows, rows, u_gain, v_path, x_gain};
  static const int ranks[] = {2, 1, 4, 3, 3, 4, 2, 4};
  if (object == Py_None) {
    return 0;
  }
  if (!PyDict_Check(object)) {
    PyErr_SetString(PyExc_TypeError, "feedback: expected None or a dict of arrays");
    return -1;
  }
  const double *data[FEEDBACK_ARRAYS] = {NULL};
  for (int k = 0; k < FEEDBACK_ARRAYS; k++) {
    PyObject *array = PyDict_GetItemString(object, names[k]);
    if (!array && k >= FEEDBACK_NEEDED) {
      continue;
    }
    if (!array) {
      PyErr_Format(PyExc_ValueError, "feedback: misses %s", names[k]);
      return -1;
    }
    feedback->in[k] = array_read(array, names[k], ranks[k], shapes[k]);
    if (!feedback->in[k]) {
      return -1;
    }
    data[k] = PyArray_DATA(feedback->in[k]);
  }
  if ((data[6] != NULL) != (data[7] != NULL) || (data[6] && !call->input.v)) {
    PyErr_SetString(PyExc_ValueError, "feedback: v_nominal and v_gain come together, with v");
    return -1;
  }
  feedback->values = (qd_feedback){.q_nominal = data[0],
                                   .u_before = data[1],
                                   .x_gain = data[2],
                                   .lower = data[3],
                                   .upper = data[4],
                                   .u_gain = data[5],
                                   .v_nominal = data[6],
                                   .v_gain = data[7]};
  call->input.feedback = &feedback->values;
  return 0;
}

static PyObject *rollout_run(batch_call *call, PyObject *out, npy_intp step_count,
                             rollout_feedback *feedback) {
  const model_object *model = call->step.model;
  npy_intp count = (npy_intp)call->input.sample_count;
  PyObject *results = PyDict_New();
  if (!results) {
    return NULL;
  }
  double *q = result_create(results, out, "q", NPY_DOUBLE, count, step_count + 1, model->nq);
  if (call->input.v) {
    call->input.v_path =
        result_create(results, out, "v", NPY_DOUBLE, count, step_count + 1, model->nv);
  }
  int32_t *statuses = result_create(results, out, "status", NPY_INT32, count, -1, -1);
  int64_t *steps_done = result_create(results, out, "steps_done", NPY_INT64, count, -1, -1);
  if (call->input.feedback) {
    feedback->values.u =
        result_create(results, Py_None, "commands", NPY_DOUBLE, count, step_count, model->nu);
  }
  PyObject *report = NULL;
  if (!PyErr_Occurred()) {
    interruptible work;
    qd_status status = interruptible_begin(&work, call->state, call->batch);
    if (status == QD_OK) {
      status = qd_rollout_batch(call->pool, call->threads, call->batch, &call->step.settings,
                                &call->input, step_count, q, statuses, steps_done, &call->failure);
      interruptible_end(&work);
    }
    report = status == QD_OK ? failure_report(call, 0)
                             : status_raise(call->step.state, call->step.name, status, NULL, NULL);
  }
  return results_finish(results, "failure", report);
}

PyObject *rollout_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                           PyObject *kwnames) {
  PyObject *out = NULL;
  rollout_job job;
  batch_call call;
  rollout_feedback feedback = {{NULL}, {NULL}};
  npy_intp count = -1, step_count;
  if (arguments_parse("_rollout", ROLLOUT_NAMES, ROLLOUT_ARGUMENTS, 2, ROLLOUT_ARGUMENTS, args,
                      arg_count, kwnames, (PyObject **)&job) < 0) {
    return NULL;
  }
  if (batch_begin(&call, PyModule_GetState(module), "rollout", job.model, job.options, job.threads,
                  job.v != Py_None) == 0 &&
      (call.input.q = rows_read(job.q, "q0", &count, call.step.model->nq, &call.input.q_stride)) &&
      velocities_read(&call, job.v, "v0", &count) == 0) {
    call.input.sample_count = count;
    if (courses_read(&call, job.u, job.tau, job.wrench, job.mocap, &step_count) == 0 &&
        parameters_read(&call, job.parameters) == 0 && out_check(job.out) == 0 &&
        (call.input.warm_start = PyObject_IsTrue(job.warm_start)) >= 0 &&
        batch_start_begin(&call.start, &call.step, job.start, &call.input) == 0 &&
        feedback_read(&feedback, &call, job.feedback, step_count) == 0) {
      out = rollout_run(&call, job.out, step_count, &feedback);
    }
  }
  for (int k = 0; k < FEEDBACK_ARRAYS; k++) {
    Py_XDECREF(feedback.in[k]);
  }
  batch_end(&call);
  return out;
}
