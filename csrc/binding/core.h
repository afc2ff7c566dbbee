/* Common declarations of the extension qdsim._core. The extension checks and converts arguments,
 * releases the GIL during the work and wraps results. It calls the public header only. All mutable
 * data is in objects or in the module state. */
#ifndef QD_BINDING_CORE_H
#define QD_BINDING_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef NPY_NO_DEPRECATED_API
#define NPY_NO_DEPRECATED_API NPY_1_22_API_VERSION
#endif
#define PY_ARRAY_UNIQUE_SYMBOL qdsim_core_array_api
#ifndef BINDING_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <stdatomic.h>
#include <structmember.h>

#include "qdsim.h"

/* Free-threaded builds (3.13 on) protect lazily filled slots by the object's own lock; with the GIL
 * no lock is needed. */
#ifdef Py_GIL_DISABLED
#define OBJECT_LOCK(object) Py_BEGIN_CRITICAL_SECTION(object)
#define OBJECT_UNLOCK() Py_END_CRITICAL_SECTION()
#else
#define OBJECT_LOCK(object) {
#define OBJECT_UNLOCK() }
#endif

/* PyMethodDef stores every calling convention as a PyCFunction. */
#define METHOD_CAST(function) ((PyCFunction)(void (*)(void))(function))

typedef struct core_state {
  PyTypeObject *model_type;
  PyTypeObject *options_type;
  PyTypeObject *info_type;
  PyTypeObject *step_type;
  PyTypeObject *dynamic_step_type;
  PyTypeObject *linearization_type;
  PyTypeObject *differential_type;
  PyObject *solver_error;
  PyObject *default_options;
  PyObject *default_dynamic_options;
  PyArray_Descr *contact_descr;
  _Atomic uint64_t next_serial;                /* of models */
  _Atomic(qd_thread_pool *) thread_pool;       /* NULL before the first batch */
  _Atomic int pool_users;                      /* number of calls that use it */
  _Atomic(struct cone_scratch *) cone_scratch; /* of the last cone program, or NULL */
  _Atomic(struct patch_room *) patch_room;     /* of the last patch, or NULL */
  PyObject *text_native;                       /* interned attribute names */
  PyObject *text_joint_names;
  PyObject *text_body_names;
  PyObject *text_unlike_mujoco;
  PyObject *text_threading;
} core_state;

/* ---------------------------------------------------------------- module.c, state.c */

extern struct PyModuleDef core_module;
core_state *core_state_of_type(PyTypeObject *type);
/* Distributes positional and keyword arguments over out[] (count; NULL: not given). The first
 * `positional` names may be given by position, the first `required` must be given. */
int arguments_parse(const char *function, const char *const *names, int count, int positional,
                    int required, PyObject *const *args, Py_ssize_t arg_count, PyObject *kwnames,
                    PyObject **out);

/* ---------------------------------------------------------------- arrays.c */

/* Borrowed numbers or a new reference to a float64 (int32) array, C-contiguous, of exactly this
 * shape (an entry -1 accepts any length). TypeError or ValueError that begins with `name`
 * otherwise. */
PyArrayObject *array_read(PyObject *object, const char *name, int ndim, const npy_intp *shape);
PyArrayObject *array_read_int(PyObject *object, const char *name, int ndim, const npy_intp *shape);
/* The same into the caller's memory (count), and checks that every number is finite. */
int array_copy_vector(PyObject *object, const char *name, int count, double *out);
/* Likewise (rows, columns). */
int array_copy_matrix(PyObject *object, const char *name, int rows, int columns, double *out);
/* Index of the first NaN or infinity, or -1. */
Py_ssize_t numbers_first_bad(const double *numbers, Py_ssize_t count);
int array_check_finite(PyArrayObject *array, const char *name);
/* array_read, and every number is finite. */
PyArrayObject *array_read_finite(PyObject *object, const char *name, int ndim,
                                 const npy_intp *shape);
/* 1 for an object that represents one number, even if number_read rejects it. */
int number_is(PyObject *object);
/* Numbers of Python and NumPy, or arrays without dimensions; no booleans. Not NaN, but perhaps
 * infinite, also for an integer beyond the range of doubles. */
int number_read(PyObject *object, const char *name, double *out);
/* The same between two ends, both excluded. */
int number_read_between(PyObject *object, const char *name, double above, double below,
                        double *out);
int int_read(PyObject *object, const char *name, int *out);
int int_read_between(PyObject *object, const char *name, int least, int most, int *out);
/* True or False, Python's or NumPy's. */
int flag_read(PyObject *object, const char *name, int *out);
PyObject *array_new_vector(int count);
PyObject *array_new_matrix(int rows, int columns);
/* New read-only vector with a copy of the numbers. */
PyObject *array_from_numbers(const double *numbers, int count);
/* The same as a matrix, row-major. */
PyObject *matrix_from_numbers(const double *numbers, int rows, int columns);
void array_freeze(PyObject *array);

/* ---------------------------------------------------------------- contacts.c */

PyArray_Descr *contact_descr_create(void);
PyObject *contact_array_create(const core_state *state, const qd_contact *contacts, int count);
/* New reference to an array of contacts with exactly our dtype, or NULL with TypeError. */
PyArrayObject *contact_array_read(const core_state *state, PyObject *object);

/* ---------------------------------------------------------------- info.c */

typedef struct solver_info {
  qd_cone_info cone;
  int row_count;
  int contact_count;
  int missed_pairs;
  int dropped_pairs;
  int relaxed_contacts;
  int deep_contacts;
  int softened;
  int bounces, capped_rows;
  double bounce_share;
  int convex_programs;
  int several; /* 0: the only solution; 1: others may be close; 2: others may be distant */
  double law_residual;
  int soft_programs, soft_unfinished;
  int derivative_exact; /* -1: no derivative was asked for */
  PyObject *trace; /* a qdsim.trace.Trace, or NULL; whether it is owned depends on the holder of the
                      struct */
} solver_info;

extern PyType_Spec info_type_spec;
/* New; takes its own reference to the trace. */
PyObject *info_create(const core_state *state, const solver_info *info);
const solver_info *info_of(PyObject *object);
PyObject *info_restore(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- trace.c */

/* Number of rows in a trace. */
#define TRACE_ROWS 1000
/* Allocates rows: -1 with an exception. trace_release frees them. */
int trace_take_room(qd_trace *trace);
void trace_release(qd_trace *trace);
/* New qdsim.trace.Trace, or NULL with an exception. */
PyObject *trace_object(const qd_trace *trace);

/* ---------------------------------------------------------------- errors.c */

/* Raises the exception of a status and returns NULL; `caller` begins the message. culprits: tuple
 * of strings, the causes of a failed step, or NULL. */
PyObject *status_raise(const core_state *state, const char *caller, qd_status status,
                       const solver_info *info, PyObject *culprits);

/* ---------------------------------------------------------------- overflow.c */

/* The largest finite number found, and its origin. */
typedef struct largest_number {
  const char *name; /* NULL: none yet */
  Py_ssize_t index;
  double value;
} largest_number;

void largest_note(largest_number *found, const char *name, const double *numbers, Py_ssize_t count);
/* Tuple of one string, or an empty one. */
PyObject *largest_describe(const largest_number *found);

/* Tuple of one string that names the largest number of a step's arguments, or an empty one.
 * parameters: a sample's own, NULL for those of the model; or NULL. */
PyObject *overflow_describe(const qd_model *model, const qd_step_input *input,
                            const double *const *parameters);

/* ---------------------------------------------------------------- model.c */

typedef struct model_object model_object;

extern PyType_Spec model_type_spec;

/* ---------------------------------------------------------------- options.c */

typedef struct options_object {
  PyObject_HEAD qd_step_options settings; /* held is NULL here, because it depends on the model */
  PyObject *held;                         /* tuple of names */
  PyObject *held_masks;                   /* {serial of a model: bytes (nv)}, filled on demand */
  int trace;                              /* 1: single steps have a trace */
} options_object;

extern PyType_Spec options_type_spec;
/* Defaults of step_dynamic() without options: a new qdsim.DynamicOptions. */
PyObject *options_dynamic_default(const core_state *state);
/* Borrowed from the argument: None, a qdsim.Options (dynamic: DynamicOptions) or a StepOptions of
 * that kind. */
options_object *options_of(const core_state *state, PyObject *argument, int dynamic,
                           PyObject **owner);
/* mask: new reference to the bytes (nv) of held DOFs, or NULL if none is held. */
int options_held_mask(const core_state *state, options_object *options, model_object *model,
                      PyObject **mask);

/* ---------------------------------------------------------------- step.c, linearize.c and their
 * objects */

extern PyType_Spec step_type_spec;
extern PyType_Spec dynamic_step_type_spec;
extern PyType_Spec linearization_type_spec;
extern const char step_doc[];
extern const char linearize_doc[];
PyObject *step_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                        PyObject *kwnames);
PyObject *step_restore(PyObject *module, PyObject *args);
extern const char step_dynamic_doc[];
PyObject *step_dynamic_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                PyObject *kwnames);
PyObject *dynamic_step_restore(PyObject *module, PyObject *args);
PyObject *linearize_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                             PyObject *kwnames);
PyObject *linearization_restore(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- differential.c */

extern PyType_Spec differential_type_spec;
extern const char differential_doc[];
extern const char linearize_dynamic_doc[];
PyObject *linearize_dynamic_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                     PyObject *kwnames);
PyObject *differential_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                PyObject *kwnames);
/* Index of a qd_argument of this name, or -1. */
int argument_find(PyObject *name);

/* ---------------------------------------------------------------- batch/ */

extern const char batch_doc[];
extern const char rollout_doc[];
extern const char rollout_derivative_doc[];
extern const char batch_failure_doc[];
extern const char pair_distances_doc[];
PyObject *pair_distances_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames);
extern const char meetings_doc[];
PyObject *meetings_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                            PyObject *kwnames);
extern const char body_poses_doc[];
PyObject *body_poses_function(PyObject *module, PyObject *args);
extern const char view_create_doc[];
extern const char observe_doc[];
extern const char judge_doc[];
PyObject *view_create_function(PyObject *module, PyObject *args);
PyObject *observe_function(PyObject *module, PyObject *args);
PyObject *judge_function(PyObject *module, PyObject *args);
extern const char parameter_fault_doc[];
PyObject *parameter_fault(PyObject *module, PyObject *args);
PyObject *batch_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                         PyObject *kwnames);
PyObject *rollout_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                           PyObject *kwnames);
PyObject *rollout_derivative_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                      PyObject *kwnames);
PyObject *batch_failure_raise(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- jax/ */

extern const char jax_handle_doc[];
extern const char jax_targets_doc[];
PyObject *jax_handle_function(PyObject *module, PyObject *args);
PyObject *jax_targets_function(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- pressure.c */

extern const char field_create_doc[];
extern const char field_energy_doc[];
extern const char field_patch_doc[];
extern const char pressure_surface_doc[];
void patch_room_destroy(struct patch_room *room);
PyObject *field_create_function(PyObject *module, PyObject *args);
PyObject *field_energy_function(PyObject *module, PyObject *args);
PyObject *field_patch_function(PyObject *module, PyObject *args);
PyObject *pressure_surface_function(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- ocp.c */

extern const char ocp_solve_doc[];
PyObject *ocp_solve_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                             PyObject *kwnames);

/* ---------------------------------------------------------------- mujoco.c */

extern const char mujoco_plan_doc[];
extern const char mujoco_view_doc[];
extern const char mujoco_fits_doc[];
extern const char mujoco_linearize_doc[];
PyObject *mujoco_plan_function(PyObject *module, PyObject *args);
PyObject *mujoco_view_function(PyObject *module, PyObject *data);
PyObject *mujoco_fits_function(PyObject *module, PyObject *args);
PyObject *mujoco_linearize_function(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- complementarity.c */

extern const char lcp_solve_doc[];
extern const char mlcp_solve_doc[];
extern const char coulomb_solve_doc[];
PyObject *lcp_solve_function(PyObject *module, PyObject *args);
PyObject *mlcp_solve_function(PyObject *module, PyObject *args);
PyObject *coulomb_solve_function(PyObject *module, PyObject *args);

/* ---------------------------------------------------------------- cone_program.c, benchmark.c */

extern const char cone_solve_doc[];
extern const char cone_benchmark_doc[];
extern const char step_benchmark_doc[];
extern const char workspace_bytes_doc[];
PyObject *cone_solve_function(PyObject *module, PyObject *const *in, Py_ssize_t count);
PyObject *cone_benchmark_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames);
PyObject *step_benchmark_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                  PyObject *kwnames);
PyObject *workspace_bytes_function(PyObject *module, PyObject *const *args, Py_ssize_t arg_count,
                                   PyObject *kwnames);

#endif
