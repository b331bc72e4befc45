/* SPDX-License-Identifier: Apache-2.0
 *
 * From the bytes of a setpoint to the bytes of its command in one call, for messages of one shape: read, compute, check
 * limits, write. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>
#include "shaped_messages.h"

enum { STATES = 5, WRENCHES = 3, EFFORTS = 3, MOTORS = 4 };

typedef void (*kernel_function)(const double *const *in, double *const *out);
typedef void (*motors_function)(const double *state, const double *efforts, double *motors);

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    kernel_function dynamics;
    motors_function motors; /* or NULL */
    Py_ssize_t n, m, size; /* size: of a row q ... qdddd, tau ... taudd, theta ... tau_m */
    Py_ssize_t wrench_size; /* of one of W, Wd, Wdd at all tools */
    Py_buffer scratch, row, lower, upper; /* scratch: a row, then the wrenches */
    Input input; /* the setpoint */
    Py_ssize_t outputs;
    Output *output;
    PyObject *kept; /* objects whose memory is used */
    char limited; /* whether ranges are checked */
    Py_ssize_t first; /* output that a call returns */
    char stamp_bytes[STAMP_SIZE];
    long long stamp, committed_stamp; /* ns */
} StreamCall;

static double *scratch_of(StreamCall *self)
{
    return self->scratch.buf;
}

/* Reads stamp, state and wrench; whether the message has the shape and its numbers are finite. */
static int read_setpoint(StreamCall *self, PyObject *message)
{
    if (!read_message(&self->input, message, scratch_of(self), self->stamp_bytes))
        return 0;
    self->stamp = nanoseconds_of(self->stamp_bytes);
    return 1;
}

/* Whether the command in the scratch is finite and, if limits are checked, within them. */
static int is_plain(StreamCall *self)
{
    const double *values = scratch_of(self);
    double sum = 0;
    for (Py_ssize_t i = STATES * self->n; i < self->size; ++i)
        sum += values[i] * 0.0;
    if (sum != 0 || sum != sum)
        return 0;
    if (self->limited) {
        const double *lower = self->lower.buf, *upper = self->upper.buf;
        int outside = 0;
        for (Py_ssize_t i = 0; i < self->size; ++i)
            outside |= values[i] < lower[i] || values[i] > upper[i];
        return !outside;
    }
    return 1;
}

static void compute_command(StreamCall *self)
{
    double *state = scratch_of(self), *efforts = state + STATES * self->n, *wrench = state + self->size;
    const double *in[STATES + WRENCHES];
    double *out[EFFORTS];
    for (int k = 0; k < STATES; ++k)
        in[k] = state + k * self->n;
    for (int k = 0; k < WRENCHES; ++k)
        in[STATES + k] = wrench + k * self->wrench_size;
    for (int k = 0; k < EFFORTS; ++k)
        out[k] = efforts + k * self->n;
    self->dynamics(in, out);
    self->motors(state, efforts, efforts + EFFORTS * self->n);
}

/* The message of an output with the numbers of the scratch. */
static PyObject *written(StreamCall *self, const Output *output)
{
    return written_message(output, scratch_of(self), self->stamp_bytes);
}

static PyObject *stream_call(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names)
{
    StreamCall *self = (StreamCall *)object;
    if (PyVectorcall_NARGS(nargsf) != 1 || (names && PyTuple_GET_SIZE(names))) {
        PyErr_SetString(PyExc_TypeError, "takes the bytes of one message");
        return NULL;
    }
    if (!self->motors || self->first < 0 || self->first >= self->outputs || !read_setpoint(self, args[0]))
        Py_RETURN_NONE;
    compute_command(self);
    if (!is_plain(self))
        Py_RETURN_NONE;
    return written(self, self->output + self->first);
}

static PyObject *stream_read(PyObject *object, PyObject *message)
{
    return PyBool_FromLong(read_setpoint((StreamCall *)object, message));
}

static PyObject *stream_is_plain(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(is_plain((StreamCall *)object));
}

static PyObject *stream_written(PyObject *object, PyObject *which)
{
    StreamCall *self = (StreamCall *)object;
    Py_ssize_t k = PyLong_AsSsize_t(which);
    if (k == -1 && PyErr_Occurred())
        return NULL;
    if (k < 0 || k >= self->outputs) {
        PyErr_SetString(PyExc_IndexError, "no such output");
        return NULL;
    }
    return written(self, self->output + k);
}

static PyObject *stream_commit(PyObject *object, PyObject *unused)
{
    StreamCall *self = (StreamCall *)object;
    (void)unused;
    memcpy(self->row.buf, self->scratch.buf, (size_t)self->row.len);
    self->committed_stamp = self->stamp;
    Py_RETURN_NONE;
}

/* --- Construction ------------------------------------------------------------------------------------------------- */

static int take_doubles(PyObject *given, Py_buffer *buffer, Py_ssize_t count, int flags)
{
    if (PyObject_GetBuffer(given, buffer, PyBUF_C_CONTIGUOUS | flags))
        return 0;
    if (buffer->len != count * (Py_ssize_t)sizeof(double)) {
        PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
        return 0;
    }
    return 1;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"dynamics", "motors", "n", "m", "tools", "scratch", "row", "lower", "upper", "limited",
                            "length", "stamp", "constants", "inputs", "outputs", NULL};
    unsigned long long dynamics, motors;
    Py_ssize_t n, m, tools, length, stamp;
    int limited;
    PyObject *scratch, *row, *lower, *upper, *constants, *inputs, *outputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KKnnnOOOOpnnO!O!O!", names, &dynamics, &motors, &n, &m, &tools,
                                     &scratch, &row, &lower, &upper, &limited, &length, &stamp, &PyTuple_Type,
                                     &constants, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs))
        return NULL;
    if (n < 1 || m < 1 || tools < 0 || stamp < 0 || stamp > length - STAMP_SIZE) {
        PyErr_SetString(PyExc_ValueError, "sizes must be positive, and the stamp within the message");
        return NULL;
    }
    StreamCall *self = (StreamCall *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = stream_call;
    self->dynamics = (kernel_function)(uintptr_t)dynamics;
    self->motors = (motors_function)(uintptr_t)motors;
    self->n = n;
    self->m = m;
    self->size = (STATES + EFFORTS) * n + MOTORS * m;
    self->wrench_size = 6 * tools;
    self->input.length = length;
    self->input.stamp = stamp;
    self->limited = (char)limited;
    self->kept = PyTuple_Pack(2, constants, outputs);
    const Py_ssize_t all = self->size + WRENCHES * self->wrench_size;
    if (!self->kept || !take_doubles(scratch, &self->scratch, all, PyBUF_WRITABLE) ||
        !take_doubles(row, &self->row, self->size, PyBUF_WRITABLE) ||
        !take_doubles(lower, &self->lower, self->size, 0) || !take_doubles(upper, &self->upper, self->size, 0) ||
        !take_input(constants, inputs, all, &self->input) ||
        !take_outputs(outputs, self->size, &self->outputs, &self->output)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object)
{
    StreamCall *self = (StreamCall *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_buffer *buffers[] = {&self->scratch, &self->row, &self->lower, &self->upper};
    for (int i = 0; i < 4; ++i)
        if (buffers[i]->obj)
            PyBuffer_Release(buffers[i]);
    free_input(&self->input);
    free_outputs(self->output, self->outputs);
    Py_XDECREF(self->kept);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef stream_methods[] = {
    {"read", stream_read, METH_O, "Read a message into the scratch; whether it has the shape and is finite."},
    {"is_plain", stream_is_plain, METH_NOARGS, "Whether the command in the scratch is finite and within limits."},
    {"written", stream_written, METH_O, "Message of an output with the numbers of the scratch."},
    {"commit", stream_commit, METH_NOARGS, "Copy the scratch to the row, and its stamp."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stream_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(StreamCall, vectorcall), READONLY, NULL},
    {"limited", T_BOOL, offsetof(StreamCall, limited), 0, NULL},
    {"first", T_PYSSIZET, offsetof(StreamCall, first), 0, NULL},
    {"stamp", T_LONGLONG, offsetof(StreamCall, stamp), READONLY, NULL},
    {"committed_stamp", T_LONGLONG, offsetof(StreamCall, committed_stamp), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot stream_slots[] = {
    {Py_tp_new, stream_new},         {Py_tp_dealloc, stream_dealloc},   {Py_tp_methods, stream_methods},
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
