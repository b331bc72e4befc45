/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python callable that passes the arrays of one state to a kernel, at the cost of a C call.
 *
 * call(q, qd, ..., *, wrench=(W, Wd, ...)) calls the kernel if all arguments are plain, finite, contiguous arrays of
 * doubles of the right number and shapes. It passes all other arguments to a Python callable of the same signature,
 * which converts them, computes a batch or raises an error. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

enum { MOST_INPUTS = 16, MOST_OUTPUTS = 8, MOST_DIMENSIONS = 3 };

typedef void (*kernel_function)(const double *const *in, double *const *out);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    kernel_function kernel;
    Py_ssize_t vectors, wrenches, outputs;
    int wrench_dimensions;
    npy_intp wrench_shape[MOST_DIMENSIONS];
    int input_dimensions[MOST_INPUTS];
    npy_intp inputs[MOST_INPUTS][MOST_DIMENSIONS];
    int dimensions[MOST_OUTPUTS];
    npy_intp shapes[MOST_OUTPUTS][MOST_DIMENSIONS];
    int alone; /* return the only result rather than a tuple */
    double *no_wrench;
    PyObject *general;
} Caller;

/* Data of a plain array of a shape, or NULL. */
static const double *numbers(PyObject *object, int dimensions, const npy_intp *shape)
{
    if (!PyArray_CheckExact(object))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) != dimensions || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(array))
        return NULL;
    npy_intp length = 1;
    for (int i = 0; i < dimensions; ++i) {
        if (PyArray_DIM(array, i) != shape[i])
            return NULL;
        length *= shape[i];
    }
    const double *values = PyArray_DATA(array);
    double sum = 0;
    for (npy_intp i = 0; i < length; ++i)
        sum += values[i] * 0.0; /* NaN if one of them is not finite */
    return sum == 0 ? values : NULL;
}

static int plain_arguments(Caller *self, PyObject *const *args, Py_ssize_t positional, PyObject *names,
                           const double **in)
{
    if (positional != self->vectors)
        return 0;
    for (Py_ssize_t k = 0; k < self->vectors; ++k)
        if (!(in[k] = numbers(args[k], self->input_dimensions[k], self->inputs[k])))
            return 0;
    for (Py_ssize_t k = 0; k < self->wrenches; ++k)
        in[self->vectors + k] = self->no_wrench;
    if (!names || PyTuple_GET_SIZE(names) == 0)
        return 1;
    PyObject *wrench = args[self->vectors];
    if (PyTuple_GET_SIZE(names) != 1 || !PyTuple_CheckExact(wrench) || PyTuple_GET_SIZE(wrench) > self->wrenches ||
        PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), "wrench") != 0)
        return 0;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(wrench); ++k)
        if (!(in[self->vectors + k] = numbers(PyTuple_GET_ITEM(wrench, k), self->wrench_dimensions, self->wrench_shape)))
            return 0;
    return 1;
}

static PyObject *caller_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Caller *self = (Caller *)object;
    const double *in[MOST_INPUTS];
    if (!plain_arguments(self, args, PyVectorcall_NARGS(nargsf), names, in))
        return PyObject_Vectorcall(self->general, args, nargsf, names);
    double *out[MOST_OUTPUTS];
    if (self->alone) {
        PyObject *result = PyArray_SimpleNew(self->dimensions[0], self->shapes[0], NPY_DOUBLE);
        if (!result)
            return NULL;
        out[0] = PyArray_DATA((PyArrayObject *)result);
        self->kernel(in, out);
        return result;
    }
    PyObject *results = PyTuple_New(self->outputs);
    if (!results)
        return NULL;
    for (Py_ssize_t k = 0; k < self->outputs; ++k) {
        PyObject *result = PyArray_SimpleNew(self->dimensions[k], self->shapes[k], NPY_DOUBLE);
        if (!result) {
            Py_DECREF(results);
            return NULL;
        }
        PyTuple_SET_ITEM(results, k, result);
        out[k] = PyArray_DATA((PyArrayObject *)result);
    }
    self->kernel(in, out);
    return results;
}

static int caller_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(((Caller *)object)->general);
    Py_VISIT(Py_TYPE(object));
    return 0;
}

static int caller_clear(PyObject *object)
{
    Py_CLEAR(((Caller *)object)->general);
    return 0;
}

static void caller_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    caller_clear(object);
    PyMem_Free(((Caller *)object)->no_wrench);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Copies a shape; returns 0 with an exception if it is none. */
static int take_shape(PyObject *shape, int *dimensions, npy_intp *sizes)
{
    if (!PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > MOST_DIMENSIONS) {
        PyErr_SetString(PyExc_ValueError, "a shape must be a tuple of at most three sizes");
        return 0;
    }
    *dimensions = (int)PyTuple_GET_SIZE(shape);
    for (int i = 0; i < *dimensions; ++i) {
        sizes[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, i));
        if (sizes[i] == -1 && PyErr_Occurred())
            return 0;
    }
    return 1;
}

static PyObject *caller_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"address", "inputs", "wrenches", "wrench_shape", "shapes", "alone", "general", NULL};
    unsigned long long address;
    Py_ssize_t wrenches, wrench_size = 1;
    int alone;
    PyObject *inputs, *wrench_shape, *shapes, *general;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KO!nO!O!pO", names, &address, &PyTuple_Type, &inputs, &wrenches,
                                     &PyTuple_Type, &wrench_shape, &PyTuple_Type, &shapes, &alone, &general))
        return NULL;
    Py_ssize_t vectors = PyTuple_GET_SIZE(inputs);
    if (vectors + wrenches > MOST_INPUTS || PyTuple_GET_SIZE(shapes) > MOST_OUTPUTS ||
        (alone && PyTuple_GET_SIZE(shapes) != 1)) {
        PyErr_SetString(PyExc_ValueError, "too many inputs or outputs");
        return NULL;
    }
    Caller *self = (Caller *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = caller_call;
    self->kernel = (kernel_function)(uintptr_t)address;
    self->vectors = vectors;
    self->wrenches = wrenches;
    self->outputs = PyTuple_GET_SIZE(shapes);
    self->alone = alone;
    if (!take_shape(wrench_shape, &self->wrench_dimensions, self->wrench_shape)) {
        Py_DECREF(self);
        return NULL;
    }
    for (int i = 0; i < self->wrench_dimensions; ++i)
        wrench_size *= self->wrench_shape[i];
    self->no_wrench = PyMem_Calloc((size_t)wrench_size, sizeof(double));
    if (!self->no_wrench) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    for (Py_ssize_t k = 0; k < self->vectors; ++k)
        if (!take_shape(PyTuple_GET_ITEM(inputs, k), &self->input_dimensions[k], self->inputs[k])) {
            Py_DECREF(self);
            return NULL;
        }
    for (Py_ssize_t k = 0; k < self->outputs; ++k)
        if (!take_shape(PyTuple_GET_ITEM(shapes, k), &self->dimensions[k], self->shapes[k])) {
            Py_DECREF(self);
            return NULL;
        }
    self->general = Py_NewRef(general);
    return (PyObject *)self;
}

static PyMemberDef caller_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Caller, vectorcall), READONLY, NULL},
    {"__wrapped__", T_OBJECT, offsetof(Caller, general), READONLY, NULL}, /* for inspect.signature */
    {NULL, 0, 0, 0, NULL},
};

static PyObject *caller_doc(PyObject *object, void *closure)
{
    (void)closure;
    return PyObject_GetAttrString(((Caller *)object)->general, "__doc__");
}

static PyGetSetDef caller_getset[] = {{"__doc__", caller_doc, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};

static PyType_Slot caller_slots[] = {
    {Py_tp_new, caller_new},           {Py_tp_dealloc, caller_dealloc}, {Py_tp_traverse, caller_traverse},
    {Py_tp_clear, caller_clear},       {Py_tp_members, caller_members}, {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getset, caller_getset},
    {0, NULL},
};

static PyType_Spec caller_spec = {
    .name = "eom_dynamics_caller.Caller",
    .basicsize = sizeof(Caller),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = caller_slots,
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT, .m_name = "eom_dynamics_caller", .m_size = -1,
};

PyMODINIT_FUNC PyInit_eom_dynamics_caller(void)
{
    import_array();
    PyObject *module = PyModule_Create(&module_definition);
    if (!module)
        return NULL;
    PyObject *type = PyType_FromSpec(&caller_spec);
    if (!type || PyModule_AddObjectRef(module, "Caller", type) < 0 || PyModule_AddIntMacro(module, MOST_INPUTS) < 0 ||
        PyModule_AddIntMacro(module, MOST_OUTPUTS) < 0) {
        Py_XDECREF(type);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
