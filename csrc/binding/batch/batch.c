/* Batches of steps: rows that qdsim.batch has prepared -> qd_step_batch and qd_linearize_batch. */
#include <string.h>

#include "binding/batch/batch_call.h"

const char batch_doc[] =
    "_batch($module, /, model, options, *, q, v, u, tau, wrench, mocap, parameters, out, threads,\n"
    "       wrt, contacts, warm_start, bristles)\n--\n\n"
    "Steps (wrt -1), or linearizations by the arguments whose bits are set in wrt, of the rows of\n"
    "q, u, tau, wrench and mocap (or None), and v, None of quasi-dynamic steps, with parameters "
    "(None, or a tuple of rows or None). "
    "out: "
    "None,\n"
    "or a dict of arrays of the right size to write results of these names to. warm_start: see\n"
    "batch_start.h. bristles: rows (samples, 6 soft_pair_count) or None; under their law they are "
    "among\n"
    "the results, of that width. Returns a dict of q_next, v_next of the second-order step, delta, "
    "limit_force, "
    "constraint_force, tendon_force, "
    "softened, status; of\n"
    "derivative_exact, and the derivatives (samples, nv, size) as A, B and by the arguments' "
    "names\n"
    "where asked for; of contact_start where asked for, contacts (or None), and failure: None, or "
    "a\n"
    "dict of sample, step, info and culprits of the first one.";

/* The arguments of _batch, borrowed, in the order of BATCH_NAMES. */
typedef struct batch_job {
  PyObject *model, *options, *q, *v, *u, *tau, *wrench, *mocap, *parameters, *out, *threads, *wrt,
      *contacts, *warm_start, *bristles;
} batch_job;

static const char *const BATCH_NAMES[] = {
    "model",      "options", "q",       "v",   "u",        "tau",        "wrench",  "mocap",
    "parameters", "out",     "threads", "wrt", "contacts", "warm_start", "bristles"};
enum { BATCH_ARGUMENTS = sizeof(batch_job) / sizeof(PyObject *) };

/* The name of the derivative by an argument in qdsim.batch. */
static const char *derivative_name(int argument) {
  return argument == QD_BY_Q ? "A" : (argument == QD_BY_U ? "B" : qd_argument_name(argument));
}

static int output_create(PyObject *results, PyObject *given, const batch_call *call, int wrt,
                         int contacts, qd_batch_output *out) {
  const model_object *model = call->step.model;
  const npy_intp count = (npy_intp)call->input.sample_count, nq = model->nq, nv = model->nv;
  memset(out, 0, sizeof *out);
  out->q_next = result_create(results, given, "q_next", NPY_DOUBLE, count, nq, -1);
  if (call->input.v) {
    out->v_next = result_create(results, given, "v_next", NPY_DOUBLE, count, nv, -1);
  }
  if (has_bristles(call)) {
    out->bristle = result_create(results, Py_None, "bristles", NPY_DOUBLE, count,
                                 QD_BRISTLES * model->soft_pair_count, -1);
  }
  out->delta = result_create(results, given, "delta", NPY_DOUBLE, count, nv, -1);
  out->limit_force = result_create(results, given, "limit_force", NPY_DOUBLE, count, nv, -1);
  out->constraint_force = result_create(results, given, "constraint_force", NPY_DOUBLE, count,
                                        model->constraint_count, QD_CONSTRAINT_FORCE);
  out->tendon_force =
      result_create(results, given, "tendon_force", NPY_DOUBLE, count, model->tendon_count, -1);
  out->softened = result_create(results, given, "softened", NPY_INT32, count, -1, -1);
  out->actuator_force =
      result_create(results, given, "actuator_state", NPY_DOUBLE, count, 2, model->nu);
  out->status = result_create(results, given, "status", NPY_INT32, count, -1, -1);
  if (wrt >= 0) {
    out->derivative_exact =
        result_create(results, given, "derivative_exact", NPY_BOOL, count, -1, -1);
  }
  for (int i = 0; wrt >= 0 && i < QD_ARGUMENT_COUNT; i++) {
    if (wrt >> i & 1) {
      out->derivative[i] = result_create(results, given, derivative_name(i), NPY_DOUBLE, count, nv,
                                         qd_argument_size(model->model, i));
    }
  }
  if (contacts) {
    out->contact_start =
        result_create(results, Py_None, "contact_start", NPY_INT64, count + 1, -1, -1);
  }
  return PyErr_Occurred() ? -1 : 0;
}

static PyObject *contacts_collect(batch_call *call, const int64_t *start) {
  if (!start) {
    Py_RETURN_NONE;
  }
  npy_intp shape[1] = {(npy_intp)start[call->input.sample_count]};
  PyArray_Descr *descr = call->step.state->contact_descr;
  Py_INCREF(descr);
  PyObject *array = PyArray_NewFromDescr(&PyArray_Type, descr, 1, shape, NULL, NULL, 0, NULL);
  if (!array) {
    return NULL;
  }
  qd_contact *contacts = PyArray_DATA((PyArrayObject *)array);
  interruptible work;
  if (interruptible_begin(&work, call->state, call->batch) != QD_OK) {
    Py_DECREF(array);
    return NULL;
  }
  qd_batch_contacts(call->pool, call->threads, call->batch, call->input.sample_count, start,
                    contacts);
  interruptible_end(&work);
  return array;
}

static int input_read(batch_call *call, const batch_job *job) {
  const model_object *model = call->step.model;
  qd_batch_input *in = &call->input;
  npy_intp count = -1;
  if (!(in->q = rows_read(job->q, "q", &count, model->nq, &in->q_stride)) ||
      velocities_read(call, job->v, "v", &count) < 0 ||
      !(in->u = rows_read(job->u, "u", &count, model->nu, &in->u_stride)) ||
      (job->tau != Py_None &&
       !(in->tau = rows_read(job->tau, "tau", &count, model->nv, &in->tau_stride))) ||
      (job->wrench != Py_None &&
       !(in->wrench = rows_read(job->wrench, "wrench", &count, 6 * model->body_count,
                                &in->wrench_stride))) ||
      (job->mocap != Py_None &&
       !(in->mocap =
             rows_read(job->mocap, "mocap", &count, 7 * model->mocap_count, &in->mocap_stride))) ||
      bristles_read(call, job->bristles, &count) < 0) {
    return -1;
  }
  in->sample_count = count;
  return 0;
}

static PyObject *batch_run(batch_call *call, PyObject *given, int wrt, int contacts) {
  PyObject *results = PyDict_New();
  if (!results) {
    return NULL;
  }
  qd_batch_output out;
  if (output_create(results, given, call, wrt, contacts, &out) < 0) {
    Py_DECREF(results);
    return NULL;
  }
  interruptible work;
  qd_status status = interruptible_begin(&work, call->state, call->batch);
  if (status == QD_OK) {
    status = (wrt >= 0 ? qd_linearize_batch : qd_step_batch)(call->pool, call->threads, call->batch,
                                                             &call->step.settings, &call->input,
                                                             &out, &call->failure);
    interruptible_end(&work);
  }
  results = results_finish(
      results, "contacts",
      status == QD_OK ? contacts_collect(call, out.contact_start)
                      : status_raise(call->step.state, call->step.name, status, NULL, NULL));
  return results ? results_finish(results, "failure", failure_report(call, wrt >= 0)) : NULL;
}

PyObject *batch_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                         PyObject *kwnames) {
  PyObject *out = NULL;
  int wrt, contacts;
  batch_job job;
  batch_call call;
  if (arguments_parse("_batch", BATCH_NAMES, BATCH_ARGUMENTS, 2, BATCH_ARGUMENTS, args, arg_count,
                      kwnames, (PyObject **)&job) < 0 ||
      int_read(job.wrt, "wrt", &wrt) < 0 || (contacts = PyObject_IsTrue(job.contacts)) < 0) {
    return NULL;
  }
  if (batch_begin(&call, PyModule_GetState(module), wrt >= 0 ? "linearize_batch" : "step_batch",
                  job.model, job.options, job.threads, job.v != Py_None) == 0 &&
      patch_law_check(&call.step, wrt >= 0) == 0 && input_read(&call, &job) == 0 &&
      parameters_read(&call, job.parameters) == 0 && out_check(job.out) == 0 &&
      batch_start_begin(&call.start, &call.step, job.warm_start, &call.input) == 0) {
    out = batch_run(&call, job.out, wrt, contacts);
  }
  batch_end(&call);
  return out;
}
