/* _solve_ocp_qp: optimal control problems. Python's qdsim.ocp checks the user's arguments with good
 * messages; the checks here keep memory safe. */
#include "binding/interrupt.h"

#include <time.h>

enum {
  OCP_A,
  OCP_B,
  OCP_C,
  OCP_X_FIRST,
  OCP_U_BEFORE,
  OCP_Q,
  OCP_LINEAR_Q,
  OCP_R,
  OCP_LINEAR_R,
  OCP_S,
  OCP_LINEAR_S,
  OCP_X_LOWER,
  OCP_X_UPPER,
  OCP_U_LOWER,
  OCP_U_UPPER,
  OCP_D_LOWER,
  OCP_D_UPPER,
  OCP_ARRAYS
};

enum {
  OUT_X,
  OUT_U,
  OUT_COSTATE,
  OUT_X_DUAL,
  OUT_U_DUAL,
  OUT_D_DUAL,
  OUT_X_GAIN,
  OUT_U_GAIN,
  OUTS
};

static const char *const ocp_names[] = {
    "A",       "B",       "c",       "x_first", "u_before", "Q",         "q",
    "R",       "r",       "S",       "s",       "x_lower",  "x_upper",   "u_lower",
    "u_upper", "d_lower", "d_upper", "gains",   "repeat",   "tolerance", "iteration_limit"};

typedef struct ocp_call {
  PyArrayObject *in[OCP_ARRAYS];
  PyObject *out[OUTS];
  npy_intp T, nx, nu;
  qd_ocp_workspace *workspace;
} ocp_call;

static void ocp_call_end(ocp_call *call) {
  qd_ocp_workspace_destroy(call->workspace);
  for (int i = 0; i < OCP_ARRAYS; ++i) {
    Py_CLEAR(call->in[i]);
  }
  for (int i = 0; i < OUTS; ++i) {
    Py_CLEAR(call->out[i]);
  }
}

/* Shape of each array: T stages, x states, u inputs. */
static const char *const ocp_shapes[OCP_ARRAYS] = {
    [OCP_A] = "Txx",       [OCP_B] = "Txu",      [OCP_C] = "Tx",        [OCP_X_FIRST] = "x",
    [OCP_U_BEFORE] = "u",  [OCP_Q] = "Txx",      [OCP_LINEAR_Q] = "Tx", [OCP_R] = "Tuu",
    [OCP_LINEAR_R] = "Tu", [OCP_S] = "Tuu",      [OCP_LINEAR_S] = "Tu", [OCP_X_LOWER] = "Tx",
    [OCP_X_UPPER] = "Tx",  [OCP_U_LOWER] = "Tu", [OCP_U_UPPER] = "Tu",  [OCP_D_LOWER] = "Tu",
    [OCP_D_UPPER] = "Tu"};

/* Reads the sizes of a problem from B; the limits keep every product of counts within an int. */
static int ocp_sizes_read(ocp_call *call, PyObject *B) {
  const npy_intp any[3] = {-1, -1, -1}, most = 1 << 13;
  if (!(call->in[OCP_B] = array_read(B, "B", 3, any))) {
    return -1;
  }
  const npy_intp *sizes = PyArray_DIMS(call->in[OCP_B]);
  const npy_intp T = call->T = sizes[0], nx = call->nx = sizes[1], nu = call->nu = sizes[2];
  const int is_empty = T < 1 || nx < 1 || nu < 1, is_long = T > 1 << 20 || nx > most || nu > most;
  if (is_empty || is_long || (double)T * (double)(nx + nu) * (double)(nx + nu) > 1e9) {
    PyErr_SetString(PyExc_ValueError, "B: expected shape (T, nx, nu), none of them zero or huge");
    return -1;
  }
  return 0;
}

static int ocp_read(ocp_call *call, PyObject *const *in) {
  if (ocp_sizes_read(call, in[OCP_B]) < 0) {
    return -1;
  }
  for (int i = 0; i < OCP_ARRAYS; ++i) {
    if (i == OCP_B || in[i] == Py_None) {
      continue;
    }
    npy_intp shape[3];
    int rank = 0;
    for (const char *size = ocp_shapes[i]; *size; size++) {
      shape[rank++] = *size == 'T' ? call->T : *size == 'x' ? call->nx : call->nu;
    }
    if (!(call->in[i] = array_read(in[i], ocp_names[i], rank, shape))) {
      return -1;
    }
  }
  if (call->in[OCP_A]) {
    return 0;
  }
  PyErr_SetString(PyExc_TypeError, "A: expected an array");
  return -1;
}

static int ocp_make_outputs(ocp_call *call, int gains) {
  const npy_intp T = call->T, nx = call->nx, nu = call->nu;
  const npy_intp shapes[OUTS][3] = {{T + 1, nx, 0}, {T, nu, 0}, {T, nx, 0},  {T, nx, 0},
                                    {T, nu, 0},     {T, nu, 0}, {T, nu, nx}, {T, nu, nu}};
  for (int i = 0; i < OUTS; ++i) {
    const int rank = i < OUT_X_GAIN ? 2 : 3;
    if (i >= OUT_X_GAIN && !gains) {
      call->out[i] = Py_NewRef(Py_None);
    } else {
      call->out[i] = PyArray_SimpleNew(rank, (npy_intp *)shapes[i], NPY_DOUBLE);
    }
    if (!call->out[i]) {
      return -1;
    }
  }
  call->workspace = qd_ocp_workspace_create((int)T, (int)nx, (int)nu);
  if (call->workspace) {
    return 0;
  }
  PyErr_NoMemory();
  return -1;
}

static const double *ocp_in(const ocp_call *call, int i) {
  return call->in[i] ? PyArray_DATA(call->in[i]) : NULL;
}

static double *ocp_out(const ocp_call *call, int i) {
  return call->out[i] == Py_None ? NULL : PyArray_DATA((PyArrayObject *)call->out[i]);
}

static qd_status ocp_run(core_state *state, const ocp_call *call, const qd_cone_options *options,
                         int repeat, qd_cone_info *info, double *seconds) {
  const qd_ocp_qp problem = {.horizon = (int)call->T,
                             .state_count = (int)call->nx,
                             .input_count = (int)call->nu,
                             .A = ocp_in(call, OCP_A),
                             .B = ocp_in(call, OCP_B),
                             .c = ocp_in(call, OCP_C),
                             .x_first = ocp_in(call, OCP_X_FIRST),
                             .u_before = ocp_in(call, OCP_U_BEFORE),
                             .Q = ocp_in(call, OCP_Q),
                             .q = ocp_in(call, OCP_LINEAR_Q),
                             .R = ocp_in(call, OCP_R),
                             .r = ocp_in(call, OCP_LINEAR_R),
                             .S = ocp_in(call, OCP_S),
                             .s = ocp_in(call, OCP_LINEAR_S),
                             .x_lower = ocp_in(call, OCP_X_LOWER),
                             .x_upper = ocp_in(call, OCP_X_UPPER),
                             .u_lower = ocp_in(call, OCP_U_LOWER),
                             .u_upper = ocp_in(call, OCP_U_UPPER),
                             .d_lower = ocp_in(call, OCP_D_LOWER),
                             .d_upper = ocp_in(call, OCP_D_UPPER)};
  const qd_ocp_solution solution = {.x = ocp_out(call, OUT_X),
                                    .u = ocp_out(call, OUT_U),
                                    .costate = ocp_out(call, OUT_COSTATE),
                                    .x_dual = ocp_out(call, OUT_X_DUAL),
                                    .u_dual = ocp_out(call, OUT_U_DUAL),
                                    .d_dual = ocp_out(call, OUT_D_DUAL),
                                    .x_gain = ocp_out(call, OUT_X_GAIN),
                                    .u_gain = ocp_out(call, OUT_U_GAIN)};
  struct timespec begin, end;
  interruptible work;
  if (interruptible_begin(&work, state, NULL) != QD_OK) {
    return QD_STOPPED;
  }
  qd_status status = QD_OK;
  qd_cone_options own = *options;
  own.stop = work.stop;
  own.stop_context = &work;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (int i = 0; i < repeat && status != QD_STOPPED; ++i) {
    status = qd_ocp_solve(call->workspace, &own, &problem, &solution, info);
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  interruptible_end(&work);
  status = work.has_raised ? QD_STOPPED : status;
  *seconds =
      ((double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec)) / repeat;
  return status;
}

const char ocp_solve_doc[] =
    "_solve_ocp_qp($module, /, A, B, c, x_first, u_before, Q, q, R, r, S, s, x_lower, x_upper,\n"
    "              u_lower, u_upper, d_lower, d_upper, gains, repeat, tolerance,\n"
    "              iteration_limit)\n--\n\n"
    "(x, u, costate, x_dual, u_dual, d_dual, x_gain, u_gain, info, seconds per solve);\n"
    "qdsim.solve_ocp_qp is the public door.";

PyObject *ocp_solve_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                             PyObject *kwnames) {
  const int count = (int)(sizeof ocp_names / sizeof *ocp_names);
  PyObject *in[sizeof ocp_names / sizeof *ocp_names];
  ocp_call call = {.workspace = NULL};
  qd_cone_options options = qd_cone_options_default();
  int repeat;
  if (arguments_parse("_solve_ocp_qp", ocp_names, count, count, count, args, arg_count, kwnames,
                      in) < 0) {
    return NULL;
  }
  const int gains = PyObject_IsTrue(in[OCP_ARRAYS]);
  if (gains < 0 || int_read(in[OCP_ARRAYS + 1], "repeat", &repeat) < 0 ||
      number_read(in[OCP_ARRAYS + 2], "tolerance", &options.tolerance) < 0 ||
      int_read(in[OCP_ARRAYS + 3], "iteration_limit", &options.iteration_limit) < 0) {
    return NULL;
  }
  PyObject *result = NULL;
  if (ocp_read(&call, in) == 0 && ocp_make_outputs(&call, gains) == 0) {
    core_state *state = PyModule_GetState(module);
    solver_info info = {.row_count = (int)(call.T * (call.nx + 2 * call.nu)),
                        .bounce_share = 1.0,
                        .derivative_exact = -1};
    double seconds = 0.0;
    const qd_status status =
        ocp_run(state, &call, &options, repeat > 0 ? repeat : 1, &info.cone, &seconds);
    PyObject *report = status == QD_OK ? info_create(state, &info)
                                       : status_raise(state, "solve_ocp_qp", status, &info, NULL);
    PyObject **out = call.out;
    if (report) {
      result = Py_BuildValue("(OOOOOOOONd)", out[0], out[1], out[2], out[3], out[4], out[5], out[6],
                             out[7], report, seconds);
    }
  }
  ocp_call_end(&call);
  return result;
}
