/* XLA's calls of rollouts and of their pullbacks: typed handlers of its foreign function interface,
 * in plain C. They take no lock of Python and use no Python object.
 *
 * Arguments: q (..., nq), u (..., steps, nu), and those in the attribute `given` (bits of
 * qd_argument), in their order: tau and wrench (..., steps, size), v (..., nv) of second-order
 * steps, parameters (..., size). The pullback also has: the path (..., steps + 1, nq), of
 * second-order steps (..., steps + 1, nq + nv) with the velocities at the end, the status (...) and
 * the cotangent of the path. Leading dimensions are those of q, or such that each row serves the
 * same number of successive samples. Results: the path and the status; or the gradients, in the
 * order of the arguments. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xla/ffi/api/c_api.h>

#include "binding/jax/handle.h"

#define BLOCKS_MAX (4 * QD_ARGUMENT_COUNT + 16)

typedef struct xla_call {
  XLA_FFI_CallFrame *frame;
  jax_handle *handle;
  int64_t given;
  int next; /* index of the next argument */
  int64_t sample_count, step_count;
  qd_batch_input input;
  XLA_FFI_Error *error; /* the first error */
  void *blocks[BLOCKS_MAX];
  int block_count;
} xla_call;

/* ---------------------------------------------------------------- errors and memory */

static void fail(xla_call *call, XLA_FFI_Error_Code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(xla_call *call, XLA_FFI_Error_Code code, const char *format, ...) {
  char message[512];
  va_list arguments;
  if (call->error) {
    return;
  }
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  XLA_FFI_Error_Create_Args args = {
      .struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE, .message = message, .errc = code};
  call->error = call->frame->api->XLA_FFI_Error_Create(&args);
}

static double *doubles_take(xla_call *call, int64_t count) {
  double *block = malloc((size_t)(count > 0 ? count : 1) * sizeof *block);
  if (!block || call->block_count == BLOCKS_MAX) {
    free(block);
    fail(call, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "qdsim.jax: out of memory");
    return NULL;
  }
  call->blocks[call->block_count++] = block;
  return block;
}

static int64_t size_of(const XLA_FFI_Buffer *buffer) {
  int64_t size = 1;
  for (int64_t i = 0; i < buffer->rank; i++) {
    size *= buffer->dims[i];
  }
  return size;
}

/* ---------------------------------------------------------------- numbers in and out */

static const XLA_FFI_Buffer *argument_take(xla_call *call) {
  if (call->next >= call->frame->args.size) {
    fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: too few arguments");
    return NULL;
  }
  return call->frame->args.args[call->next++];
}

static int is_float(const XLA_FFI_Buffer *buffer) {
  return buffer->dtype == XLA_FFI_DataType_F64 || buffer->dtype == XLA_FFI_DataType_F32;
}

/* Copies rows of `size` numbers as doubles, each row `each` times. */
static void rows_widen(const XLA_FFI_Buffer *buffer, int64_t rows, int64_t size, int64_t each,
                       double *out) {
  const double *wide = buffer->dtype == XLA_FFI_DataType_F64 ? buffer->data : NULL;
  const float *narrow = buffer->data;
  for (int64_t i = 0; i < rows * each; i++) {
    const int64_t from = i / each * size;
    for (int64_t k = 0; k < size; k++) {
      out[i * size + k] = wide ? wide[from + k] : (double)narrow[from + k];
    }
  }
}

/* Rows of `size` doubles, one for every sample, or (stride 0) one for all samples. NULL after an
 * error. */
static const double *rows_take(xla_call *call, int64_t size, ptrdiff_t *stride) {
  const XLA_FFI_Buffer *buffer = argument_take(call);
  if (!buffer) {
    return NULL;
  }
  const int64_t total = size_of(buffer), rows = size > 0 ? total / size : call->sample_count;
  if (!is_float(buffer) || rows * size != total || rows < 1 || call->sample_count % rows != 0) {
    fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: argument %d has another shape",
         call->next - 1);
    return NULL;
  }
  *stride = rows == 1 && call->sample_count > 1 ? 0 : (ptrdiff_t)size;
  const int64_t each = rows == 1 ? 1 : call->sample_count / rows;
  if (buffer->dtype == XLA_FFI_DataType_F64 && each == 1) {
    return buffer->data;
  }
  double *out = doubles_take(call, rows * each * size);
  if (out) {
    rows_widen(buffer, rows, size, each, out);
  }
  return out;
}

static XLA_FFI_Buffer *result_take(xla_call *call, int index) {
  if (index >= call->frame->rets.size) {
    fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: too few results");
    return NULL;
  }
  return call->frame->rets.rets[index];
}

/* The memory for a result of `size` doubles: the result itself, or a block that result_put narrows.
 */
static double *result_begin(xla_call *call, int index, int64_t size) {
  XLA_FFI_Buffer *buffer = result_take(call, index);
  if (!buffer) {
    return NULL;
  }
  if (size_of(buffer) != size || !is_float(buffer)) {
    fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: result %d has another shape",
         index);
    return NULL;
  }
  return buffer->dtype == XLA_FFI_DataType_F64 ? buffer->data : doubles_take(call, size);
}

static void result_put(const xla_call *call, int index, const double *numbers, int64_t size) {
  const XLA_FFI_Buffer *buffer = call->frame->rets.rets[index];
  if (buffer->dtype == XLA_FFI_DataType_F32) {
    for (int64_t i = 0; i < size; i++) {
      ((float *)buffer->data)[i] = (float)numbers[i];
    }
  }
}

/* ---------------------------------------------------------------- the call */

static int64_t attribute_read(xla_call *call, const char *name) {
  const XLA_FFI_Attrs *attrs = &call->frame->attrs;
  for (int64_t i = 0; i < attrs->size; i++) {
    const XLA_FFI_Scalar *scalar = attrs->attrs[i];
    if (attrs->names[i]->len == strlen(name) &&
        memcmp(attrs->names[i]->ptr, name, attrs->names[i]->len) == 0 &&
        attrs->types[i] == XLA_FFI_AttrType_SCALAR && scalar->dtype == XLA_FFI_DataType_S64) {
      int64_t value;
      memcpy(&value, scalar->value, sizeof value);
      return value;
    }
  }
  fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: misses the attribute %s", name);
  return 0;
}

/* Number of entries of an argument over all steps of a sample. */
static int64_t argument_size(const xla_call *call, int argument) {
  if (argument == QD_BY_Q) {
    return qd_model_nq(call->handle->model);
  }
  const int64_t size = qd_argument_size(call->handle->model, argument);
  return argument < QD_BY_PARAMETER && argument != QD_BY_V ? call->step_count * size : size;
}

/* Size of a velocity in a path, 0 for quasi-dynamic steps. */
static int64_t path_nv(const xla_call *call) {
  return call->handle->options.dynamic ? qd_model_nv(call->handle->model) : 0;
}

static int is_given(const xla_call *call, int argument) {
  return argument <= QD_BY_U || (call->given >> argument & 1);
}

static void parameter_check(xla_call *call, int k) {
  const qd_batch_input *in = &call->input;
  const int64_t rows = in->parameter_stride[k] == 0 ? 1 : call->sample_count;
  for (int64_t i = 0; i < rows; i++) {
    int index;
    const char *reason;
    if (qd_parameter_check(call->handle->model, (qd_parameter)k,
                           in->parameter[k] + i * in->parameter_stride[k], &index,
                           &reason) != QD_OK) {
      fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT,
           "qdsim.jax: parameters['%s']: sample %lld: element %d: %s",
           qd_parameter_name((qd_parameter)k), (long long)i, index, reason);
      return;
    }
  }
}

static void numbers_check(xla_call *call, const char *name, const double *numbers, int64_t size,
                          ptrdiff_t stride) {
  const int64_t rows = stride == 0 && call->sample_count > 0 ? 1 : call->sample_count;
  for (int64_t i = 0; numbers && i < rows * size; i++) {
    if (!isfinite(numbers[i])) {
      fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT,
           "qdsim.jax: %s: sample %lld: element %lld is %g", name, (long long)(i / size),
           (long long)(i % size), numbers[i]);
      return;
    }
  }
}

static void input_read(xla_call *call, int argument) {
  qd_batch_input *in = &call->input;
  const double **to[QD_BY_PARAMETER] = {&in->q, &in->u, &in->tau, &in->wrench, NULL, &in->v};
  ptrdiff_t *strides[QD_BY_PARAMETER] = {&in->q_stride,      &in->u_stride, &in->tau_stride,
                                         &in->wrench_stride, NULL,          &in->v_stride};
  ptrdiff_t *steps[QD_BY_PARAMETER] = {NULL, &in->u_step, &in->tau_step, &in->wrench_step};
  const int64_t size = argument_size(call, argument);
  if (!to[argument]) {
    fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: %s is no argument of rollouts",
         qd_argument_name(argument));
    return;
  }
  *to[argument] = rows_take(call, size, strides[argument]);
  numbers_check(call, qd_argument_name(argument), *to[argument], size, *strides[argument]);
  if (steps[argument]) {
    *steps[argument] = qd_argument_size(call->handle->model, argument);
  }
}

static void parameter_read(xla_call *call, int argument) {
  qd_batch_input *in = &call->input;
  const int k = argument - QD_BY_PARAMETER;
  in->parameter[k] = rows_take(call, argument_size(call, argument), &in->parameter_stride[k]);
  if (in->parameter[k]) {
    parameter_check(call, k);
  }
}

/* Reads the arguments that both calls have. */
static int call_begin(xla_call *call, XLA_FFI_CallFrame *frame) {
  memset(call, 0, sizeof *call);
  call->frame = frame;
  call->handle = jax_handle_find(attribute_read(call, "handle"));
  call->given = attribute_read(call, "given");
  if (!call->handle || frame->args.size < 2) {
    fail(call, XLA_FFI_Error_Code_NOT_FOUND,
         "qdsim.jax: the program was compiled by another process; compile it again");
    return -1;
  }
  const XLA_FFI_Buffer *q = frame->args.args[0], *u = frame->args.args[1];
  call->sample_count = size_of(q) / qd_model_nq(call->handle->model);
  call->step_count = u->rank >= 2 ? u->dims[u->rank - 2] : 0;
  call->input.sample_count = call->sample_count;
  for (int i = 0; call->sample_count > 0 && i < QD_ARGUMENT_COUNT; i++) {
    if (is_given(call, i)) {
      (i < QD_BY_PARAMETER ? input_read : parameter_read)(call, i);
    }
  }
  return call->error ? -1 : 0;
}

static XLA_FFI_Error *call_end(xla_call *call) {
  for (int i = 0; i < call->block_count; i++) {
    free(call->blocks[i]);
  }
  return call->error;
}

static void failure_report(xla_call *call, qd_status status, const qd_batch_failure *failure) {
  if (status != QD_OK) {
    fail(call, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "qdsim.jax: %s", qd_status_name(status));
  } else if (failure->sample >= 0 && (!call->handle->marks || failure->status == QD_BAD_ARGUMENT)) {
    fail(call,
         failure->status == QD_BAD_ARGUMENT ? XLA_FFI_Error_Code_INVALID_ARGUMENT
                                            : XLA_FFI_Error_Code_FAILED_PRECONDITION,
         failure->status == QD_BAD_ARGUMENT
             ? "qdsim.jax: q: sample %lld (step %lld): a quaternion is not of unit length (%s)"
             : "qdsim.jax: sample %lld, step %lld: %s; qdsim.rollout with the same numbers says "
               "what it failed on",
         (long long)failure->sample, (long long)failure->step, qd_status_name(failure->status));
  }
}

static qd_batch *batch_take(xla_call *call) {
  qd_batch *batch = atomic_exchange(&call->handle->batch, NULL);
  if (!batch) {
    batch = qd_batch_create(call->handle->model);
  }
  if (!batch) {
    fail(call, XLA_FFI_Error_Code_RESOURCE_EXHAUSTED, "qdsim.jax: out of memory");
  }
  return batch;
}

static void batch_give_back(xla_call *call, qd_batch *batch) {
  qd_batch_destroy(atomic_exchange(&call->handle->batch, batch));
}

/* The oldest minor version of XLA's interface in which everything used here is the same as now (jax
 * 0.5). */
#define OLDEST_MINOR 1

/* If XLA asks for the version of its interface that the handler needs, answers and returns 1. XLA
 * refuses handlers of a newer version than its own, and may refuse much older ones, so the answer
 * is XLA's own version, within the range that the handler supports. */
static int metadata_answer(XLA_FFI_CallFrame *frame) {
  if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata) {
    return 0;
  }
  XLA_FFI_Metadata *metadata =
      ((XLA_FFI_Metadata_Extension *)(void *)frame->extension_start)->metadata;
  int minor = frame->api ? frame->api->api_version.minor_version : OLDEST_MINOR;
  minor = minor < XLA_FFI_API_MINOR ? minor : XLA_FFI_API_MINOR;
  metadata->api_version.major_version = XLA_FFI_API_MAJOR;
  metadata->api_version.minor_version = minor > OLDEST_MINOR ? minor : OLDEST_MINOR;
  metadata->traits = 0;
  return 1;
}

/* ---------------------------------------------------------------- paths of states */

/* Rows (nq + nv) from configurations (nq) and velocities (nv). */
static void states_join(double *state, int64_t rows, int64_t nq, int64_t nv, const double *q,
                        const double *v) {
  for (int64_t i = 0; i < rows; i++) {
    memcpy(state + i * (nq + nv), q + i * nq, (size_t)nq * sizeof *q);
    memcpy(state + i * (nq + nv) + nq, v + i * nv, (size_t)nv * sizeof *v);
  }
}

/* The inverse of states_join. */
static void states_split(const double *state, int64_t rows, int64_t nq, int64_t nv, double *q,
                         double *v) {
  for (int64_t i = 0; i < rows; i++) {
    memcpy(q + i * nq, state + i * (nq + nv), (size_t)nq * sizeof *q);
    memcpy(v + i * nv, state + i * (nq + nv) + nq, (size_t)nv * sizeof *v);
  }
}

/* ---------------------------------------------------------------- handlers */

static void rollout_run(xla_call *call) {
  const int64_t count = call->sample_count, nq = qd_model_nq(call->handle->model);
  const int64_t rows = count * (call->step_count + 1), nv = path_nv(call);
  const int64_t size = rows * (nq + nv);
  double *path = result_begin(call, 0, size);
  double *q = nv > 0 ? doubles_take(call, rows * nq) : path;
  call->input.v_path = nv > 0 ? doubles_take(call, rows * nv) : NULL;
  XLA_FFI_Buffer *status = result_take(call, 1);
  int64_t *steps_done = (int64_t *)(void *)doubles_take(call, count);
  qd_batch *batch = !call->error ? batch_take(call) : NULL;
  if (!batch) {
    return;
  }
  qd_batch_failure failure;
  const qd_status done =
      qd_rollout_batch(call->handle->pool, call->handle->threads, batch, &call->handle->options,
                       &call->input, call->step_count, q, status->data, steps_done, &failure);
  batch_give_back(call, batch);
  failure_report(call, done, &failure);
  if (nv > 0) {
    states_join(path, rows, nq, nv, q, call->input.v_path);
  }
  result_put(call, 0, path, size);
}

/* Clears the gradients of failed samples. */
static void clear_failed(const xla_call *call, const int32_t *status, double *gradient,
                         int64_t size) {
  for (int64_t i = 0; i < call->sample_count; i++) {
    if (status[i] != QD_OK) {
      memset(gradient + i * size, 0, (size_t)size * sizeof(double));
    }
  }
}

static void pullback_run(xla_call *call) {
  const int64_t count = call->sample_count, nq = qd_model_nq(call->handle->model);
  const int64_t nv = path_nv(call), rows = count * (call->step_count + 1);
  const int64_t path_size = (call->step_count + 1) * (nq + nv);
  ptrdiff_t stride;
  const double *path = rows_take(call, path_size, &stride);
  const XLA_FFI_Buffer *status_in = argument_take(call);
  const double *cotangent = rows_take(call, path_size, &stride);
  double *gradient[QD_ARGUMENT_COUNT] = {NULL};
  int results = 0;
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    if (is_given(call, i)) {
      gradient[i] = result_begin(call, results++, count * argument_size(call, i));
    }
  }
  double *own_path = doubles_take(call, rows * nq);
  double *v_path = doubles_take(call, rows * nv);
  double *by_q = doubles_take(call, rows * nq), *by_v = doubles_take(call, rows * nv);
  int64_t *steps_done = (int64_t *)(void *)doubles_take(call, count);
  int32_t *status = (int32_t *)(void *)doubles_take(call, count);
  qd_batch *batch =
      !call->error && status_in && size_of(status_in) == count ? batch_take(call) : NULL;
  if (!batch) {
    fail(call, XLA_FFI_Error_Code_INVALID_ARGUMENT, "qdsim.jax: the status has another shape");
    return;
  }
  states_split(path, rows, nq, nv, own_path, v_path);
  states_split(cotangent, rows, nq, nv, by_q, by_v);
  call->input.v_path = nv > 0 ? v_path : NULL;
  memcpy(status, status_in->data, (size_t)count * sizeof *status);
  const qd_rollout_way way = {.options = call->handle->has_way ? &call->handle->way_options : NULL,
                              .ambient = 1,
                              .path_known = 1,
                              .v_cotangent = nv > 0 ? by_v : NULL};
  qd_batch_failure failure;
  const qd_status done = qd_rollout_vjp_batch(
      call->handle->pool, call->handle->threads, batch, &call->handle->options, &call->input,
      call->step_count, &way, by_q, gradient, own_path, status, steps_done, &failure);
  batch_give_back(call, batch);
  failure_report(call, done, &failure);
  results = 0;
  for (int i = 0; i < QD_ARGUMENT_COUNT; i++) {
    if (gradient[i]) {
      const int64_t size = argument_size(call, i);
      clear_failed(call, status, gradient[i], size);
      result_put(call, results++, gradient[i], count * size);
    }
  }
}

static XLA_FFI_Error *handle_call(XLA_FFI_CallFrame *frame, void (*work)(xla_call *call)) {
  if (metadata_answer(frame)) {
    return NULL;
  }
  xla_call call;
  if (call_begin(&call, frame) == 0 && call.sample_count > 0) {
    work(&call);
  }
  return call_end(&call);
}

static XLA_FFI_Error *rollout_handler(XLA_FFI_CallFrame *frame) {
  return handle_call(frame, rollout_run);
}

static XLA_FFI_Error *pullback_handler(XLA_FFI_CallFrame *frame) {
  return handle_call(frame, pullback_run);
}

const char jax_targets_doc[] =
    "_jax_targets($module, /)\n--\n\n"
    "Capsules of XLA's handlers: rollout, and the pullback of a rollout.";

PyObject *jax_targets_function(PyObject *module, PyObject *args) {
  (void)module;
  (void)args;
  /* in ISO C, a pointer to a function is not a void *; in POSIX it is */
  XLA_FFI_Handler *handlers[] = {rollout_handler, pullback_handler};
  void *pointers[2];
  memcpy(pointers, handlers, sizeof pointers);
  PyObject *rollout = PyCapsule_New(pointers[0], "xla._CUSTOM_CALL_TARGET", NULL);
  PyObject *pullback = rollout ? PyCapsule_New(pointers[1], "xla._CUSTOM_CALL_TARGET", NULL) : NULL;
  PyObject *both = pullback ? PyTuple_Pack(2, rollout, pullback) : NULL;
  Py_XDECREF(rollout);
  Py_XDECREF(pullback);
  return both;
}
