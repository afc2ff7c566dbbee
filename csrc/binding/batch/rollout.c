/* Rollouts: rows that qdsim.batch has prepared -> qd_rollout_batch. */
#include "binding/batch/batch_call.h"

const char rollout_doc[] =
    "_rollout($module, /, model, options, *, q, v, u, tau, wrench, mocap, parameters, out,\n"
    "         threads, warm_start, start, feedback, bristles)\n--\n\n"
    "Rollouts from the rows of q (samples, nq) under u (samples, steps, nu), and tau, wrench and "
    "mocap of\n"
    "that kind or None, rows contiguous; parameters and out (q, status, steps_done) as in _batch.\n"
    "warm_start: whether each step starts from the one before; start: guess for the first ones.\n"
    "feedback: None, or a dict of q_nominal (steps, nq), u_before (nu), x_gain (samples, steps, "
    "nu,\n"
    "nv), lower and upper (samples, steps, nu) as in qd_feedback, and where they are wanted u_gain "
    "(samples, steps, nu, nu),\n"
    "v_nominal (steps, nv) and v_gain like x_gain.\n"
    "v: (samples, nv) of the second-order step, else None. bristles: as in _batch.\n"
    "Returns a dict of q (samples, steps + 1, nq), v and bristles of that step, status, "
    "steps_done, the "
    "commands that feedback\n"
    "gave if there is one, and failure as in _batch.";

/* The arguments of _rollout, borrowed, in the order of ROLLOUT_NAMES. */
typedef struct rollout_job {
  PyObject *model, *options, *q, *v, *u, *tau, *wrench, *mocap, *parameters, *out, *threads,
      *warm_start, *start, *feedback, *bristles;
} rollout_job;

static const char *const ROLLOUT_NAMES[] = {
    "model",      "options", "q",       "v",          "u",     "tau",      "wrench",  "mocap",
    "parameters", "out",     "threads", "warm_start", "start", "feedback", "bristles"};
enum { ROLLOUT_ARGUMENTS = sizeof(rollout_job) / sizeof(PyObject *) };

static PyObject *rollout_run(batch_call *call, PyObject *out, npy_intp step_count,
                             feedback_arrays *feedback) {
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
  if (has_bristles(call)) {
    call->input.bristle_path = result_create(results, Py_None, "bristles", NPY_DOUBLE, count,
                                             step_count + 1, QD_BRISTLES * model->soft_pair_count);
  }
  int32_t *statuses = result_create(results, out, "status", NPY_INT32, count, -1, -1);
  int64_t *steps_done = result_create(results, out, "steps_done", NPY_INT64, count, -1, -1);
  feedback_commands_create(feedback, call, results, step_count);
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
  feedback_arrays feedback = {.in = {NULL}};
  npy_intp count = -1, step_count;
  if (arguments_parse("_rollout", ROLLOUT_NAMES, ROLLOUT_ARGUMENTS, 2, ROLLOUT_ARGUMENTS, args,
                      arg_count, kwnames, (PyObject **)&job) < 0) {
    return NULL;
  }
  if (batch_begin(&call, PyModule_GetState(module), "rollout", job.model, job.options, job.threads,
                  job.v != Py_None) == 0 &&
      (call.input.q = rows_read(job.q, "q0", &count, call.step.model->nq, &call.input.q_stride)) &&
      velocities_read(&call, job.v, "v0", &count) == 0 &&
      bristles_read(&call, job.bristles, &count) == 0) {
    call.input.sample_count = count;
    if (courses_read(&call, job.u, job.tau, job.wrench, job.mocap, &step_count) == 0 &&
        parameters_read(&call, job.parameters) == 0 && out_check(job.out) == 0 &&
        (call.input.warm_start = PyObject_IsTrue(job.warm_start)) >= 0 &&
        batch_start_begin(&call.start, &call.step, job.start, &call.input) == 0 &&
        feedback_read(&feedback, &call, job.feedback, step_count) == 0) {
      out = rollout_run(&call, job.out, step_count, &feedback);
    }
  }
  feedback_end(&feedback);
  batch_end(&call);
  return out;
}
