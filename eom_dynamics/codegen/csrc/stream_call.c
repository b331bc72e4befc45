/* SPDX-License-Identifier: Apache-2.0
 *
 * From the bytes of a setpoint to the bytes of its command in one call, for messages of one shape: read, run a cycle of
 * the control loop, write. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>
#include "shaped_messages.h"

/* Of eom/loop.h. */
typedef void (*refer_function)(void *loop, int64_t stamp);
typedef int (*update_function)(void *loop, int64_t now, double period);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    void *loop; /* its memory is an array for the outputs */
    double *given; /* the loop's setpoint to be written */
    refer_function refer;
    update_function update;
    PyObject *kept; /* objects whose memory is used, the first of them the given setpoint before a message is read */
    Input input;
    Py_ssize_t outputs;
    Output *output;
    Py_ssize_t first; /* output that a call returns */
    int remarks; /* bits of what is wrong with a command that was answered all the same, of eom_loop_update() */
    char stamp_bytes[STAMP_SIZE];
    long long stamp; /* ns */
} StreamCall;

static PyObject *written(StreamCall *self, Py_ssize_t k)
{
    if (k < 0 || k >= self->outputs) {
        PyErr_SetString(PyExc_IndexError, "no such output");
        return NULL;
    }
    return written_message(self->output + k, self->loop, self->stamp_bytes);
}

static PyObject *stream_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    StreamCall *self = (StreamCall *)object;
    if (PyVectorcall_NARGS(nargsf) != 2 || (names && PyTuple_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "takes the bytes of one message, and the time");
        return NULL;
    }
    const long long now = PyLong_AsLongLong(args[1]);
    if (now == -1 && PyErr_Occurred())
        return NULL;
    PyObject *initial = PyTuple_GET_ITEM(self->kept, 0);
    memcpy(self->given, PyBytes_AS_STRING(initial), (size_t)PyBytes_GET_SIZE(initial));
    if (!read_message(&self->input, args[0], self->given, self->stamp_bytes))
        Py_RETURN_NONE;
    self->stamp = nanoseconds_of(self->stamp_bytes);
    self->refer(self->loop, self->stamp);
    const int refusal = self->update(self->loop, now, 0.0);
    self->remarks = refusal < 0 ? -refusal : 0;
    return refusal > 0 ? PyLong_FromLong(refusal) : written(self, self->first);
}

static PyObject *stream_written(PyObject *object, PyObject *which)
{
    const Py_ssize_t k = PyLong_AsSsize_t(which);
    return k == -1 && PyErr_Occurred() ? NULL : written((StreamCall *)object, k);
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"loop",   "size",  "given",     "initial", "refer",   "update",
                            "length", "stamp", "constants", "inputs",  "outputs", NULL};
    unsigned long long loop, given, refer, update;
    Py_ssize_t size, length, stamp;
    PyObject *initial, *constants, *inputs, *outputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KnKO!KKnnO!O!O!", names, &loop, &size, &given, &PyBytes_Type,
                                     &initial, &refer, &update, &length, &stamp, &PyTuple_Type, &constants,
                                     &PyTuple_Type, &inputs, &PyTuple_Type, &outputs))
        return NULL;
    if (stamp < 0 || stamp > length - STAMP_SIZE) {
        PyErr_SetString(PyExc_ValueError, "the stamp must be within the message");
        return NULL;
    }
    StreamCall *self = (StreamCall *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = stream_call;
    self->loop = (void *)(uintptr_t)loop;
    self->given = (double *)(uintptr_t)given;
    self->refer = (refer_function)(uintptr_t)refer;
    self->update = (update_function)(uintptr_t)update;
    self->input.length = length;
    self->input.stamp = stamp;
    self->kept = PyTuple_Pack(3, initial, constants, outputs);
    const Py_ssize_t numbers = PyBytes_GET_SIZE(initial) / (Py_ssize_t)sizeof(double);
    if (!self->kept || !take_input(constants, inputs, numbers, &self->input) ||
        !take_outputs(outputs, size / (Py_ssize_t)sizeof(double), &self->outputs, &self->output)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object)
{
    StreamCall *self = (StreamCall *)object;
    PyTypeObject *type = Py_TYPE(object);
    free_input(&self->input);
    free_outputs(self->output, self->outputs);
    Py_XDECREF(self->kept);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef stream_methods[] = {
    {"written", stream_written, METH_O, "Message of an output with the numbers of the loop."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stream_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(StreamCall, vectorcall), READONLY, NULL},
    {"remarks", T_INT, offsetof(StreamCall, remarks), READONLY, NULL},
    {"first", T_PYSSIZET, offsetof(StreamCall, first), 0, NULL},
    {"stamp", T_LONGLONG, offsetof(StreamCall, stamp), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_new, stream_new},         {Py_tp_dealloc, stream_dealloc}, {Py_tp_methods, stream_methods},
    {Py_tp_members, stream_members}, {Py_tp_call, PyVectorcall_Call}, {0, NULL},
};

static PyType_Spec stream_spec = {
    .name = "eom_dynamics_stream_call.StreamCall",
    .basicsize = sizeof(StreamCall),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = stream_slots,
};

static struct PyModuleDef stream_module = {PyModuleDef_HEAD_INIT, .m_name = "eom_dynamics_stream_call", .m_size = -1};

PyMODINIT_FUNC PyInit_eom_dynamics_stream_call(void)
{
    PyObject *type = PyType_FromSpec(&stream_spec);
    if (!type)
        return NULL;
    PyObject *module = PyModule_Create(&stream_module);
    if (!module || PyModule_AddObjectRef(module, "StreamCall", type) < 0) {
        Py_XDECREF(module);
        module = NULL;
    }
    Py_DECREF(type);
    return module;
}
