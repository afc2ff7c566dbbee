/* The extension module qdsim._cpu_level: which copy of the core this machine can run. Built where
 * functions cannot have copies of their own (base/multiversion.h), as on Windows. */
#include <Python.h>

/* 3 or 1: the highest level of x86-64 that the core is built for and that the machine has; the
 * compiler's test also asks whether the operating system keeps the wide registers. */
static int cpu_level(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("x86-64-v3") ? 3 : 1;
}

static int add_level(PyObject *module) {
  return PyModule_AddIntConstant(module, "LEVEL", cpu_level());
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)add_level},
#ifdef Py_GIL_DISABLED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_cpu_level",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__cpu_level(void) { return PyModuleDef_Init(&definition); }
