// Stand-in for NeoX's helpers: a module without functions.
#include <Python.h>
static PyModuleDef helpers = {PyModuleDef_HEAD_INIT, "helpers", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_helpers(void) { return PyModule_Create(&helpers); }
