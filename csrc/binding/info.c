/* SolverInfo: the report of the solver, for Python. */

#include "binding/core.h"

typedef struct info_object {
  PyObject_HEAD solver_info info;
} info_object;

PyObject *info_create(const core_state *state, const solver_info *info) {
  info_object *self = (info_object *)state->info_type->tp_alloc(state->info_type, 0);
  if (self) {
    self->info = *info;
    Py_XINCREF(self->info.trace);
  }
  return (PyObject *)self;
}

const solver_info *info_of(PyObject *object) { return &((info_object *)object)->info; }

static void info_dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(((info_object *)self)->info.trace);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject *info_status(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(qd_status_name(info_of(self)->cone.status));
}

static PyObject *info_method(PyObject *self, void *closure) {
  (void)closure;
  return PyUnicode_FromString(qd_cone_method_name(info_of(self)->cone.method));
}

static PyObject *info_polished(PyObject *self, void *closure) {
  (void)closure;
  return PyBool_FromLong(info_of(self)->cone.polished);
}

static PyObject *info_unique(PyObject *self, void *closure) {
  (void)closure;
  const int several = info_of(self)->several;
  if (several > 1) {
    Py_RETURN_NONE;
  }
  return PyBool_FromLong(!several);
}

static PyObject *info_soft_converged(PyObject *self, void *closure) {
  (void)closure;
  return PyBool_FromLong(!info_of(self)->soft_unfinished);
}

static PyObject *info_derivative_exact(PyObject *self, void *closure) {
  (void)closure;
  int exact = info_of(self)->derivative_exact;
  if (exact < 0) {
    Py_RETURN_NONE;
  }
  return PyBool_FromLong(exact);
}

static PyObject *info_trace(PyObject *self, void *closure) {
  (void)closure;
  PyObject *trace = info_of(self)->trace;
  return trace ? Py_NewRef(trace) : PyTuple_New(0);
}

static PyObject *info_repr(PyObject *self) {
  static const char *const names[] = {
      "status",           "iterations",       "polished",        "factorizations",
      "primal_residual",  "dual_residual",    "complementarity", "objective",
      "row_count",        "contact_count",    "missed_pairs",    "dropped_pairs",
      "relaxed_contacts", "derivative_exact", "method",          "tries",
      "softened",         "bounces",          "capped_rows",     "unique",
      "convex_programs",  "law_residual",     "soft_programs",   "soft_converged",
      "bounce_share",     "deep_contacts"};
  PyObject *text = PyUnicode_FromString("SolverInfo(");
  for (size_t i = 0; text && i < sizeof names / sizeof *names; i++) {
    PyObject *value = PyObject_GetAttrString(self, names[i]);
    PyObject *piece =
        value ? PyUnicode_FromFormat("%s%s=%R", i ? ", " : "", names[i], value) : NULL;
    Py_XDECREF(value);
    PyUnicode_AppendAndDel(&text, piece); /* sets text to NULL if piece is NULL */
  }
  PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
  return text;
}

/* Appends ", 3 dropped pairs" if the count is not zero. */
static void append_count(PyObject **text, int count, const char *what) {
  if (count > 0) {
    PyUnicode_AppendAndDel(text, PyUnicode_FromFormat(", %d %s", count, what));
  }
}

/* One line with the most important values; repr has all. */
static PyObject *info_str(PyObject *self) {
  const solver_info *info = info_of(self);
  const qd_cone_info *cone = &info->cone;
  const double residuals[] = {cone->primal_residual, cone->dual_residual, cone->complementarity,
                              info->law_residual};
  double largest = 0.0;
  for (int i = 0; i < 4; ++i) {
    largest = residuals[i] <= largest ? largest : residuals[i]; /* keeps a NaN */
  }
  char size[32];
  PyOS_snprintf(size, sizeof size, "%.2g", largest);
  PyObject *text = PyUnicode_FromFormat("%s by %s in %d iterations, largest residual %s",
                                        qd_status_name(cone->status),
                                        qd_cone_method_name(cone->method), cone->iterations, size);
  append_count(&text, info->contact_count, "contacts");
  append_count(&text, info->missed_pairs, "missed pairs");
  append_count(&text, info->dropped_pairs, "dropped pairs");
  append_count(&text, info->relaxed_contacts, "relaxed contacts");
  append_count(&text, info->deep_contacts, "deep contacts");
  append_count(&text, info->softened, "softened islands");
  append_count(&text, info->bounces, "bounces");
  append_count(&text, info->capped_rows, "capped rows");
  if (info->several) {
    PyUnicode_AppendAndDel(&text, PyUnicode_FromString(", not unique"));
  }
  if (info->soft_unfinished) {
    PyUnicode_AppendAndDel(&text, PyUnicode_FromString(", soft contacts not converged"));
  }
  return text;
}

static PyObject *info_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  core_state *state = core_state_of_type(Py_TYPE(self));
  if (!state) {
    return NULL;
  }
  PyObject *module = PyType_GetModule(Py_TYPE(self));
  PyObject *restore = module ? PyObject_GetAttrString(module, "_restore_info") : NULL;
  if (!restore) {
    return NULL;
  }
  const solver_info *info = info_of(self);
  const qd_cone_info *cone = &info->cone;
  return Py_BuildValue("N(iiiiddddiiiiiiiiiiiiidiidiO)", restore, (int)cone->status,
                       cone->iterations, cone->polished, cone->factorizations,
                       cone->primal_residual, cone->dual_residual, cone->complementarity,
                       cone->objective, info->row_count, info->contact_count, info->missed_pairs,
                       info->dropped_pairs, info->relaxed_contacts, info->derivative_exact,
                       (int)cone->method, cone->tries, info->softened, info->bounces,
                       info->capped_rows, info->convex_programs, info->several, info->law_residual,
                       info->soft_programs, info->soft_unfinished, info->bounce_share,
                       info->deep_contacts, info->trace ? info->trace : Py_None);
}

PyObject *info_restore(PyObject *module, PyObject *args) {
  solver_info info;
  int status, method = QD_METHOD_NONE; /* older pickles do not contain it */
  qd_cone_info *cone = &info.cone;
  cone->tries = info.softened = info.bounces = info.capped_rows = info.convex_programs = 0;
  info.several = info.soft_programs = info.soft_unfinished = 0;
  info.law_residual = 0.0;
  info.bounce_share = 1.0;
  info.deep_contacts = 0;
  PyObject *trace = Py_None;
  if (!PyArg_ParseTuple(
          args, "iiiiddddiiiiii|iiiiiiidiidiO:_restore_info", &status, &cone->iterations,
          &cone->polished, &cone->factorizations, &cone->primal_residual, &cone->dual_residual,
          &cone->complementarity, &cone->objective, &info.row_count, &info.contact_count,
          &info.missed_pairs, &info.dropped_pairs, &info.relaxed_contacts, &info.derivative_exact,
          &method, &cone->tries, &info.softened, &info.bounces, &info.capped_rows,
          &info.convex_programs, &info.several, &info.law_residual, &info.soft_programs,
          &info.soft_unfinished, &info.bounce_share, &info.deep_contacts, &trace)) {
    return NULL;
  }
  if (status < QD_OK || status > QD_LAW_NOT_MET) {
    return PyErr_Format(PyExc_ValueError, "status: %d is not a status", status);
  }
  if (method < QD_METHOD_NONE || method > QD_METHOD_COULOMB) {
    return PyErr_Format(PyExc_ValueError, "method: %d is not a method", method);
  }
  if (trace != Py_None && !PyTuple_Check(trace)) {
    return PyErr_Format(PyExc_TypeError, "trace: expected a tuple, got %s",
                        Py_TYPE(trace)->tp_name);
  }
  info.trace = trace != Py_None ? trace : NULL;
  cone->status = (qd_status)status;
  cone->method = (qd_cone_method)method;
  return info_create(PyModule_GetState(module), &info);
}

#define INFO_MEMBER(name, type, field, doc)                                                        \
  {name, type, offsetof(info_object, info) + offsetof(solver_info, field), READONLY, doc}

static PyMemberDef info_members[] = {
    INFO_MEMBER("iterations", T_INT, cone.iterations,
                "Interior-point iterations; for a step, of all its cone programs."),
    INFO_MEMBER("factorizations", T_INT, cone.factorizations,
                "Number of factorisations; for a step, of all its cone programs."),
    INFO_MEMBER("tries", T_INT, cone.tries,
                "Number of methods tried; for a step, in all its cone programs."),
    INFO_MEMBER("primal_residual", T_DOUBLE, cone.primal_residual,
                "Largest violation of a constraint: the part of Gx + g outside K, and Cx + c."),
    INFO_MEMBER("dual_residual", T_DOUBLE, cone.dual_residual,
                "Largest entry of Qx + b - G'dual - C'dual_eq (units of b; N or Nm in a step)."),
    INFO_MEMBER("complementarity", T_DOUBLE, cone.complementarity,
                "Largest |dual o slack - target_mu e| over the cones (J in a step)."),
    INFO_MEMBER("objective", T_DOUBLE, cone.objective, "1/2 x'Qx + b'x (J in a step)."),
    INFO_MEMBER("row_count", T_INT, row_count, "Rows of the cone program."),
    INFO_MEMBER("contact_count", T_INT, contact_count, "Contacts in the step."),
    INFO_MEMBER("bounces", T_INT, bounces,
                "Contacts that bounced (restitution); 0 in other steps."),
    INFO_MEMBER("bounce_share", T_DOUBLE, bounce_share,
                "Smallest factor of the coefficients of restitution over all islands: 1, or less "
                "if simultaneous\n"
                "bounces of several contacts with friction would have created energy or "
                "contradicted each other."),
    INFO_MEMBER("deep_contacts", T_INT, deep_contacts,
                "Contacts that penetrate by at least 5 % of the smaller shape's radius at q and "
                "that the step\n"
                "corrects at once, however far bodies move (`recovery_speed` limits this)."),
    INFO_MEMBER("capped_rows", T_INT, capped_rows,
                "Contacts, limits and rows of constraints whose violation is not corrected within "
                "this step because\n"
                "of the recovery speed."),
    INFO_MEMBER("convex_programs", T_INT, convex_programs,
                "Under Coulomb's law, number of convex programs of the island with the most, in "
                "the last round in\n"
                "which contacts enter; 0 under the convex law."),
    INFO_MEMBER("law_residual", T_DOUBLE, law_residual,
                "Under Coulomb's law, the error of the law, m: the largest difference between the "
                "sliding of a loaded\n"
                "contact (times friction) and its shift in the program, or penetration of an "
                "unloaded contact. 0 under\n"
                "the convex law."),
    INFO_MEMBER("soft_programs", T_INT, soft_programs,
                "Number of cone programs for soft geometries; 0 if none is in range."),
    INFO_MEMBER("missed_pairs", T_INT, missed_pairs,
                "Pairs beyond the margin that the step would penetrate: added to an exact step, "
                "only counted in a\n"
                "smoothed one."),
    INFO_MEMBER("dropped_pairs", T_INT, dropped_pairs,
                "Missed pairs that an exact step passes through, because with them no motion would "
                "satisfy all\n"
                "constraints. They exert no force and may end at any depth; all other rows hold, "
                "and so does the\n"
                "friction law."),
    INFO_MEMBER("relaxed_contacts", T_INT, relaxed_contacts,
                "Contacts whose penetration is only kept from increasing: penetrations of less "
                "than 5 % of their\n"
                "shapes' size, if no motion would resolve all of them (smoothed steps: they count "
                "as gaps of 0.1 %);\n"
                "and contacts that the normal row alone would open only by a motion of 3 rad "
                "(slides: 3 m) or more,\n"
                "at dead centres of a chain."),
    INFO_MEMBER("softened", T_INT, softened,
                "Contacts, limits and rows of constraints that are violated because no motion "
                "satisfies all of them\n"
                "(Options(infeasible=\"soften\"); without it only nearly consistent constraints, "
                "see there)."),
    {NULL, 0, 0, 0, NULL}};

static PyGetSetDef info_getset[] = {
    {"trace", info_trace, NULL,
     "Record of the solver's attempts with options trace=True, also of a failed step: a tuple of\n"
     "qdsim.trace.TraceRow; str() of it is a table. Empty otherwise, and for batches.",
     NULL},
    {"status", info_status, NULL, "Status of the solution, as a word.", NULL},
    {"method", info_method, NULL,
     "Method that found the answer or verdict: 'separable', 'free minimum', 'warm start', 'cuts', "
     "'rest',\n"
     "'path', 'path end', 'multipliers', 'contradiction', 'envelope' or 'coulomb' (qd_cone_method "
     "in\n"
     "qdsim.h); 'none' for an empty program or if no method had an answer. For a step with several "
     "islands,\n"
     "the last one in this order.",
     NULL},
    {"soft_converged", info_soft_converged, NULL,
     "False if the programs of soft geometries have not converged, or if a step would change a "
     "depth by\n"
     "more than half of the depth of the field, the largest change in one step.",
     NULL},
    {"polished", info_polished, NULL,
     "True: the KKT equations of a certified active set hold to rounding.", NULL},
    {"unique", info_unique, NULL,
     "Whether the motion is the only solution of the step. True: it is (convex law, or no contact "
     "has\n"
     "friction). None: under Coulomb's law, no other solution is close; distant ones are not "
     "excluded.\n"
     "False: another one may be close: the equations of the sliding contacts are singular or have "
     "a negative\n"
     "determinant, or too many contacts slide for this test.",
     NULL},
    {"derivative_exact", info_derivative_exact, NULL,
     "None without a derivative. False: the derivative is that of the central path, or violations "
     "are held\n"
     "constant (relaxed_contacts, softened), or a contact is so close to sliding or opening that "
     "the error\n"
     "of the solution changes the derivative by more than 1e-6 of it. True: exact for the present "
     "set of\n"
     "contacts. A true value does not exclude a nearby discontinuity: resting faces of scanned "
     "meshes may\n"
     "touch at other corners after the smallest rotation.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL}};

static PyMethodDef info_methods[] = {{"__reduce__", info_reduce, METH_NOARGS, NULL},
                                     {NULL, NULL, 0, NULL}};

static PyType_Slot info_slots[] = {
    {Py_tp_doc, (void *)"Report of a solution: status, effort and residuals. Immutable."},
    {Py_tp_dealloc, info_dealloc},
    {Py_tp_repr, info_repr},
    {Py_tp_str, info_str},
    {Py_tp_members, info_members},
    {Py_tp_getset, info_getset},
    {Py_tp_methods, info_methods},
    {0, NULL}};

PyType_Spec info_type_spec = {
    "qdsim._core.SolverInfo", sizeof(info_object), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, info_slots};
