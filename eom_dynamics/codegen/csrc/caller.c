/* SPDX-License-Identifier: Apache-2.0
 *
 * A Python callable that runs kernels one after the other on the arrays of one state or of a small batch, at the cost
 * of a C call, and on blocks of a large batch.
 *
 * call(q, qd, ..., *, wrench=(W, Wd, ...), deflection=d) runs them if all arguments are plain, finite arrays of doubles
 * of the right number and shapes, with contiguous numbers of each state. It passes all other arguments to a Python
 * callable of the same signature, which converts them, computes a large batch or raises an error.
 *
 * Only CompiledFunction makes callers, and checks what they are made of, but for the sizes of tables in caller.h. */
#include "caller.h"

/* Data of a plain array of a shape, or NULL. Inlined, which saves two nanoseconds an array. */
static inline __attribute__((always_inline)) const double *numbers(PyObject *object, const Shape *shape)
{
    if (!PyArray_CheckExact(object))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) != (int)shape->dimensions || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(array))
        return NULL;
    for (int i = 0; i < shape->dimensions; ++i)
        if (PyArray_DIM(array, i) != shape->sizes[i])
            return NULL;
    const double *values = PyArray_DATA(array);
    return all_finite(values, shape->length) ? values : NULL;
}

/* Data of `count` contiguous rows of a shape, and the numbers from one to the next; or NULL. */
static const double *rows(PyObject *object, const Shape *shape, npy_intp count, size_t *stride)
{
    if (!PyArray_CheckExact(object))
        return NULL;
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_NDIM(array) != (int)shape->dimensions + 1 || PyArray_TYPE(array) != NPY_DOUBLE ||
        !PyArray_ISBEHAVED_RO(array) || PyArray_DIM(array, 0) != count || PyArray_STRIDE(array, 0) < 0)
        return NULL;
    npy_intp packed = sizeof(double);
    for (int i = (int)shape->dimensions; i > 0; packed *= shape->sizes[--i])
        if (PyArray_DIM(array, i) != shape->sizes[i - 1] || PyArray_STRIDE(array, i) != packed)
            return NULL;
    const double *values = PyArray_DATA(array);
    *stride = (size_t)PyArray_STRIDE(array, 0) / sizeof(double);
    for (npy_intp i = 0; i < count; ++i)
        if (!all_finite(values + (size_t)i * *stride, shape->length))
            return NULL;
    return values;
}

/* Read a keyword's array: one state if `count` is 0, else one row or `count` rows. Return 0 if it is not plain. */
static inline __attribute__((always_inline)) int keyword_array(Caller *self, PyObject *object, Py_ssize_t k,
                                                               npy_intp count, const double **in, size_t *strides)
{
    in[k] = count ? rows(object, &self->shapes[k], count, &strides[k]) : NULL;
    return in[k] || (in[k] = numbers(object, &self->shapes[k]));
}

/* Read the inputs of one keyword. Return 0 if they are not plain. */
static inline __attribute__((always_inline)) int keyword_arguments(Caller *self, PyObject *name, PyObject *value,
                                                                   npy_intp count, const double **in, size_t *strides)
{
    for (Py_ssize_t k = 0; k < self->keywords; ++k) {
        const Keyword *keyword = &self->keyword[k];
        if (name != keyword->name && PyUnicode_Compare(name, keyword->name) != 0)
            continue;
        const Py_ssize_t first = keyword->first;
        if (keyword->alone)
            return value == Py_None || keyword_array(self, value, first, count, in, strides);
        if (!PyTuple_CheckExact(value) || PyTuple_GET_SIZE(value) > keyword->count)
            return 0;
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i)
            if (!keyword_array(self, PyTuple_GET_ITEM(value, i), first + i, count, in, strides))
                return 0;
        return 1;
    }
    return 0;
}

/* Read the inputs of one state if `count` is 0, else of a batch; set strides that were zero. */
static inline __attribute__((always_inline)) int plain_arguments(Caller *self, PyObject *const *args,
                                                                 Py_ssize_t positional, PyObject *names,
                                                                 npy_intp count, const double **in, size_t *strides)
{
    if (positional > self->positional)
        return 0;
    for (Py_ssize_t k = 0; k < positional; ++k)
        if (!(in[k] = args[k] == Py_None ? self->defaults[k]
                      : count            ? rows(args[k], &self->shapes[k], count, &strides[k])
                                         : numbers(args[k], &self->shapes[k])))
            return 0;
    for (Py_ssize_t k = positional; k < self->inputs; ++k)
        in[k] = self->defaults[k];
    for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); ++k)
        if (!keyword_arguments(self, PyTuple_GET_ITEM(names, k), args[positional + k], count, in, strides))
            return 0;
    for (Py_ssize_t k = positional; k < self->inputs; ++k)
        if (!in[k])
            return 0;
    return 1;
}

/* An array for a result: its part of the array of all results, or an array of its own. */
static inline __attribute__((always_inline)) PyObject *result_array(const Shape *shape, npy_intp count, PyObject *all,
                                                                    double **next)
{
    npy_intp sizes[MOST_DIMENSIONS + 1] = {count}, *first = count ? sizes : sizes + 1;
    const int dimensions = (int)shape->dimensions + (count > 0);
    memcpy(sizes + 1, shape->sizes, sizeof shape->sizes);
    if (!all)
        return PyArray_SimpleNew(dimensions, first, NPY_DOUBLE);
    PyObject *result =
        PyArray_New(&PyArray_Type, dimensions, first, NPY_DOUBLE, NULL, *next, 0, NPY_ARRAY_CARRAY, NULL);
    *next += count ? count * shape->length : shape->length;
    if (result && PyArray_SetBaseObject((PyArrayObject *)result, Py_NewRef(all)))
        Py_CLEAR(result);
    return result;
}

/* Arrays for the results of one state, or of `count` in a batch, as a tuple or alone, and their data. */
static inline __attribute__((always_inline)) PyObject *new_results(Caller *self, npy_intp count, double **vectors)
{
    npy_intp together = count ? count * self->together : self->together;
    PyTypeObject *type = self->result_type;
    PyObject *results = NULL, *all = NULL;
    double *next = NULL;
    if (type) {
        results = type == &PyTuple_Type ? PyTuple_New(self->outputs) : type->tp_alloc(type, self->outputs);
        if (!results)
            return NULL;
#if PY_VERSION_HEX >= 0x030E0000
        ((PyTupleObject *)results)->ob_hash = -1; /* tp_alloc leaves it zero, which is a hash */
#endif
    }
    if (together) {
        all = PyArray_SimpleNew(1, &together, NPY_DOUBLE);
        if (!all) {
            Py_XDECREF(results);
            return NULL;
        }
        next = PyArray_DATA((PyArrayObject *)all);
    }
    for (Py_ssize_t k = 0; k < self->outputs; ++k) {
        PyObject *result = result_array(&self->shapes[self->inputs + k], count, all, &next);
        if (!result) {
            Py_CLEAR(results);
            break;
        }
        if (type)
            PyTuple_SET_ITEM(results, k, result);
        else
            results = result;
        vectors[self->inputs + k] = PyArray_DATA((PyArrayObject *)result);
    }
    Py_XDECREF(all);
    return results;
}

/* Number of states of a batch, by its first argument; 0 for a large one and for other arguments. */
static npy_intp small_batch(const Caller *self, PyObject *const *args, Py_ssize_t positional)
{
    if (!positional || !PyArray_CheckExact(args[0]))
        return 0;
    PyArrayObject *array = (PyArrayObject *)args[0];
    const int leading = PyArray_NDIM(array) == (int)self->shapes[0].dimensions + 1;
    return leading && PyArray_DIM(array, 0) <= BLOCK ? PyArray_DIM(array, 0) : 0;
}

static __attribute__((noinline)) PyObject *call_batch(Caller *self, PyObject *const *args, size_t nargsf,
                                                      PyObject *names)
{
    double *vectors[MOST_VECTORS];
    size_t strides[MOST_VECTORS] = {0};
    const Py_ssize_t positional = PyVectorcall_NARGS(nargsf);
    const npy_intp count = small_batch(self, args, positional);
    if (count && plain_arguments(self, args, positional, names, count, (const double **)vectors, strides)) {
        PyObject *results = new_results(self, count, vectors);
        if (!results)
            return NULL;
        /* The function for one state may have other bits. */
        const int done = count == 1 ? run_state(self, vectors) : run_rows(self, (size_t)count, vectors, strides);
        if (done > 0)
            return results;
        Py_DECREF(results);
        if (done < 0)
            return PyErr_NoMemory();
    }
    return PyObject_Vectorcall(self->general, args, nargsf, names);
}

static PyObject *caller_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    Caller *self = (Caller *)object;
    double *vectors[MOST_VECTORS]; /* no stage writes to inputs */
    if (!plain_arguments(self, args, PyVectorcall_NARGS(nargsf), names, 0, (const double **)vectors, NULL))
        return call_batch(self, args, nargsf, names);
    PyObject *results = new_results(self, 0, vectors);
    if (!results)
        return NULL;
    if (run_state(self, vectors))
        return results;
    Py_DECREF(results);
    return PyObject_Vectorcall(self->general, args, nargsf, names);
}

static PyObject *caller_batch(PyObject *object, PyObject *args)
{
    const Caller *self = (Caller *)object;
    Py_ssize_t start, stop;
    PyObject *arrays;
    if (!PyArg_ParseTuple(args, "nnO!", &start, &stop, &PyTuple_Type, &arrays))
        return NULL;
    double *vectors[MOST_VECTORS];
    size_t strides[MOST_VECTORS];
    for (Py_ssize_t k = 0; k < self->inputs + self->outputs; ++k) {
        PyArrayObject *rows = (PyArrayObject *)PyTuple_GET_ITEM(arrays, k);
        strides[k] = PyArray_DIM(rows, 0) == 1 ? 0 : (size_t)PyArray_STRIDE(rows, 0) / sizeof(double);
        vectors[k] = (double *)PyArray_DATA(rows) + (size_t)start * strides[k];
    }
    const int finite = run_rows(self, (size_t)(stop - start), vectors, strides);
    if (finite < 0)
        return PyErr_NoMemory();
    return PyBool_FromLong(finite);
}

static int caller_traverse(PyObject *object, visitproc visit, void *arg)
{
    Caller *self = (Caller *)object;
    Py_VISIT(self->general);
    Py_VISIT(self->kept);
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
    Caller *self = (Caller *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    Py_CLEAR(self->general);
    Py_CLEAR(self->kept);
    type->tp_free(object);
    Py_DECREF(type);
}

/* Set an exception that makes CompiledFunction work without a caller. Return 0. */
static int too_many(const char *what)
{
    PyErr_Format(PyExc_OverflowError, "too many %s", what);
    return 0;
}

static int take_stages(Caller *self, PyObject *stages)
{
    self->stages = PyTuple_GET_SIZE(stages);
    for (Py_ssize_t k = 0; k < self->stages; ++k) {
        Stage *stage = &self->stage[k];
        unsigned long long state, batch;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(stages, k), "KKy#y#", &state, &batch, &stage->in, &stage->inputs,
                              &stage->out, &stage->outputs))
            return 0;
        if (stage->inputs > MOST_INPUTS || stage->outputs > MOST_OUTPUTS)
            return too_many("inputs or outputs of a stage");
        stage->state = (state_function)(uintptr_t)state;
        stage->batch = (batch_function)(uintptr_t)batch;
    }
    return 1;
}

static int take_keywords(Caller *self, PyObject *keywords)
{
    self->keywords = PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t k = 0, first = self->positional; k < self->keywords; first += self->keyword[k++].count) {
        Keyword *keyword = &self->keyword[k];
        keyword->first = first;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(keywords, k), "Unp", &keyword->name, &keyword->count, &keyword->alone))
            return 0;
    }
    return 1;
}

static int take_defaults(Caller *self, PyObject *arrays)
{
    for (Py_ssize_t k = 0; k < self->inputs; ++k) {
        PyObject *array = PyTuple_GET_ITEM(arrays, k);
        if (array != Py_None && !(self->defaults[k] = numbers(array, &self->shapes[k]))) {
            PyErr_SetString(PyExc_ValueError, "a default must be a finite array of the shape of its input");
            return 0;
        }
    }
    return 1;
}

static PyObject *caller_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"shapes", "positional",  "inputs",         "outputs", "keywords", "defaults",
                            "stages", "result_type", "finite_results", "direct",  "general",  NULL};
    Py_ssize_t positional, inputs, outputs;
    int finite_results, direct;
    PyObject *shapes, *keywords, *defaults, *stages, *result_type, *general;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "SnnnO!O!O!OppO", names, &shapes, &positional, &inputs, &outputs,
                                     &PyTuple_Type, &keywords, &PyTuple_Type, &defaults, &PyTuple_Type, &stages,
                                     &result_type, &finite_results, &direct, &general))
        return NULL;
    const Py_ssize_t vectors = PyBytes_GET_SIZE(shapes) / (Py_ssize_t)sizeof(Shape);
    if (inputs > MOST_INPUTS || outputs > MOST_OUTPUTS || vectors > MOST_VECTORS ||
        PyTuple_GET_SIZE(keywords) > MOST_KEYWORDS || PyTuple_GET_SIZE(stages) > MOST_STAGES) {
        too_many("inputs, outputs, keywords or stages");
        return NULL;
    }
    Caller *self = (Caller *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = caller_call;
    self->positional = positional;
    self->inputs = inputs;
    self->outputs = outputs;
    self->vectors = vectors;
    self->finite_results = finite_results;
    self->direct = direct;
    self->result_type = result_type == Py_None ? NULL : (PyTypeObject *)result_type;
    self->general = Py_NewRef(general);
    self->kept = PyTuple_Pack(4, keywords, defaults, stages, result_type);
    memcpy(self->shapes, PyBytes_AS_STRING(shapes), (size_t)PyBytes_GET_SIZE(shapes));
    for (Py_ssize_t k = inputs + outputs; k < vectors; ++k)
        self->intermediate += self->shapes[k].length;
    for (Py_ssize_t k = inputs; k < inputs + outputs; ++k)
        self->together += self->shapes[k].length;
    /* Results in shared memory take half the time. */
    if (outputs == 1 || self->together > MOST_TOGETHER)
        self->together = 0;
    int good = self->intermediate <= MOST_INTERMEDIATE || too_many("intermediate numbers");
    good = good && self->kept && take_keywords(self, keywords) && take_defaults(self, defaults);
    if (!good || !take_stages(self, stages))
        Py_CLEAR(self);
    return (PyObject *)self;
}

static PyMethodDef caller_methods[] = {
    {"batch", caller_batch, METH_VARARGS,
     "batch(start, stop, arrays): run states start to stop of inputs and results; whether all numbers are finite."},
    {NULL, NULL, 0, NULL},
};

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
    {Py_tp_new, caller_new},         {Py_tp_dealloc, caller_dealloc}, {Py_tp_traverse, caller_traverse},
    {Py_tp_clear, caller_clear},     {Py_tp_members, caller_members}, {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getset, caller_getset},   {Py_tp_methods, caller_methods}, {0, NULL},
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
    if (!type || PyModule_AddObjectRef(module, "Caller", type) < 0) {
        Py_XDECREF(type);
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(type);
    return module;
}
