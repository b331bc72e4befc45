/* SPDX-License-Identifier: Apache-2.0
 *
 * From the bytes of a setpoint to the bytes of its command in one call, for messages of one shape: the same names, frame
 * and lengths. Only stamp and numbers differ then, and their places are known.
 *
 * Messages are those of the middleware in CDR, little-endian. A message of another shape is not read beyond its length and
 * the constant bytes that are compared; nothing in it is taken for a length or a place. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>

enum { STATES = 5, WRENCHES = 3, EFFORTS = 3, MOTORS = 4, STAMP_SIZE = 8, NANOSECONDS = 1000000000 };

typedef void (*kernel_function)(const double *const *in, double *const *out);
typedef void (*motors_function)(const double *state, const double *efforts, double *motors);

/* Bytes that are the same in all messages of the shape. */
typedef struct {
    Py_ssize_t at, size;
    const char *bytes;
} Constant;

/* Numbers of a message: their place there, their place among those of the robot, and their order or NULL. */
typedef struct {
    Py_ssize_t at, from, count;
    Py_ssize_t *order;
} Numbers;

typedef struct {
    PyObject *bytes; /* a message with other numbers */
    Py_ssize_t stamp; /* its place, or -1 */
    Py_ssize_t count;
    Numbers *numbers;
} Output;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    kernel_function dynamics;
    motors_function motors; /* or NULL */
    Py_ssize_t n, m, size; /* size: of a row q ... qdddd, tau ... taudd, theta ... tau_m */
    Py_ssize_t wrench_size; /* of one of W, Wd, Wdd at all tools */
    Py_buffer scratch, row, lower, upper; /* scratch: a row, then the wrenches */
    Py_ssize_t length, stamp_place;
    Py_ssize_t constants, inputs, outputs;
    Constant *constant;
    Numbers *input;
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
    if (!PyBytes_CheckExact(message) || PyBytes_GET_SIZE(message) != self->length)
        return 0;
    const char *bytes = PyBytes_AS_STRING(message);
    for (Py_ssize_t i = 0; i < self->constants; ++i)
        if (memcmp(bytes + self->constant[i].at, self->constant[i].bytes, (size_t)self->constant[i].size) != 0)
            return 0;
    double *values = scratch_of(self), sum = 0;
    for (Py_ssize_t i = 0; i < self->inputs; ++i) {
        const Numbers *numbers = self->input + i;
        const char *from = bytes + numbers->at;
        double *to = values + numbers->from;
        for (Py_ssize_t k = 0; k < numbers->count; ++k) {
            const Py_ssize_t place = numbers->order ? numbers->order[k] : k;
            memcpy(to + k, from + place * (Py_ssize_t)sizeof(double), sizeof(double));
            sum += to[k] * 0.0; /* NaN if one of them is not finite */
        }
    }
    if (sum != 0 || sum != sum)
        return 0;
    int32_t seconds;
    uint32_t nanoseconds;
    memcpy(self->stamp_bytes, bytes + self->stamp_place, STAMP_SIZE);
    memcpy(&seconds, self->stamp_bytes, sizeof seconds);
    memcpy(&nanoseconds, self->stamp_bytes + sizeof seconds, sizeof nanoseconds);
    self->stamp = (long long)seconds * NANOSECONDS + nanoseconds;
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
    const double *values = scratch_of(self);
    PyObject *message = PyBytes_FromStringAndSize(PyBytes_AS_STRING(output->bytes), PyBytes_GET_SIZE(output->bytes));
    if (!message)
        return NULL;
    char *bytes = PyBytes_AS_STRING(message);
    if (output->stamp >= 0)
        memcpy(bytes + output->stamp, self->stamp_bytes, STAMP_SIZE);
    for (Py_ssize_t i = 0; i < output->count; ++i) {
        const Numbers *numbers = output->numbers + i;
        const double *from = values + numbers->from;
        char *to = bytes + numbers->at;
        if (!numbers->order)
            memcpy(to, from, (size_t)numbers->count * sizeof(double));
        else
            for (Py_ssize_t k = 0; k < numbers->count; ++k)
                memcpy(to + k * (Py_ssize_t)sizeof(double), from + numbers->order[k], sizeof(double));
    }
    return message;
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

/* --- Construction: from plain tuples, all of whose places are checked --------------------------------------------- */

/* Takes an order, or NULL for None. */
static int take_order(PyObject *given, Py_ssize_t count, Py_ssize_t most, Py_ssize_t **order)
{
    *order = NULL;
    if (given == Py_None)
        return 1;
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != count) {
        PyErr_SetString(PyExc_ValueError, "an order must be a tuple of the length of its numbers");
        return 0;
    }
    *order = PyMem_Calloc((size_t)count, sizeof **order);
    if (!*order) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t k = 0; k < count; ++k) {
        (*order)[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, k));
        if ((*order)[k] == -1 && PyErr_Occurred())
            return 0;
        if ((*order)[k] < 0 || (*order)[k] >= most) {
            PyErr_SetString(PyExc_ValueError, "an order has places beyond its numbers");
            return 0;
        }
    }
    return 1;
}

/* Takes numbers ((place, from, count, order), ...) of a message of a length and an array of a size. */
static int take_numbers(PyObject *given, Py_ssize_t length, Py_ssize_t size, Py_ssize_t *count, Numbers **numbers)
{
    *numbers = PyMem_Calloc((size_t)PyTuple_GET_SIZE(given) + 1, sizeof **numbers);
    if (!*numbers) {
        PyErr_NoMemory();
        return 0;
    }
    *count = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < *count; ++i) {
        Numbers *own = *numbers + i;
        PyObject *order;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "nnnO", &own->at, &own->from, &own->count, &order))
            return 0;
        if (own->at < 0 || own->from < 0 || own->count < 0 || own->count > size - own->from ||
            own->count > (length - own->at) / (Py_ssize_t)sizeof(double)) {
            PyErr_SetString(PyExc_ValueError, "numbers lie beyond the message or the array");
            return 0;
        }
        if (!take_order(order, own->count, own->count, &own->order))
            return 0;
    }
    return 1;
}

static int take_constants(StreamCall *self, PyObject *given)
{
    self->constant = PyMem_Calloc((size_t)PyTuple_GET_SIZE(given) + 1, sizeof *self->constant);
    if (!self->constant) {
        PyErr_NoMemory();
        return 0;
    }
    self->constants = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < self->constants; ++i) {
        Constant *own = self->constant + i;
        PyObject *bytes;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "nO!", &own->at, &PyBytes_Type, &bytes))
            return 0;
        own->bytes = PyBytes_AS_STRING(bytes);
        own->size = PyBytes_GET_SIZE(bytes);
        if (own->at < 0 || own->size > self->length - own->at) {
            PyErr_SetString(PyExc_ValueError, "a constant lies beyond the message");
            return 0;
        }
    }
    return 1;
}

static int take_outputs(StreamCall *self, PyObject *given)
{
    self->output = PyMem_Calloc((size_t)PyTuple_GET_SIZE(given) + 1, sizeof *self->output);
    if (!self->output) {
        PyErr_NoMemory();
        return 0;
    }
    self->outputs = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < self->outputs; ++i) {
        Output *own = self->output + i;
        PyObject *numbers;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "O!nO!", &PyBytes_Type, &own->bytes, &own->stamp,
                              &PyTuple_Type, &numbers))
            return 0;
        const Py_ssize_t length = PyBytes_GET_SIZE(own->bytes);
        if (own->stamp < -1 || own->stamp > length - STAMP_SIZE) {
            PyErr_SetString(PyExc_ValueError, "a stamp lies beyond the message");
            return 0;
        }
        if (!take_numbers(numbers, length, self->size, &own->count, &own->numbers))
            return 0;
    }
    return 1;
}

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
    self->length = length;
    self->stamp_place = stamp;
    self->limited = (char)limited;
    self->kept = PyTuple_Pack(2, constants, outputs);
    const Py_ssize_t all = self->size + WRENCHES * self->wrench_size;
    if (!self->kept || !take_doubles(scratch, &self->scratch, all, PyBUF_WRITABLE) ||
        !take_doubles(row, &self->row, self->size, PyBUF_WRITABLE) ||
        !take_doubles(lower, &self->lower, self->size, 0) || !take_doubles(upper, &self->upper, self->size, 0) ||
        !take_constants(self, constants) || !take_numbers(inputs, length, all, &self->inputs, &self->input) ||
        !take_outputs(self, outputs)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void free_numbers(Numbers *numbers, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; numbers && i < count; ++i)
        PyMem_Free(numbers[i].order);
    PyMem_Free(numbers);
}

static void stream_dealloc(PyObject *object)
{
    StreamCall *self = (StreamCall *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_buffer *buffers[] = {&self->scratch, &self->row, &self->lower, &self->upper};
    for (int i = 0; i < 4; ++i)
        if (buffers[i]->obj)
            PyBuffer_Release(buffers[i]);
    free_numbers(self->input, self->inputs);
    for (Py_ssize_t i = 0; self->output && i < self->outputs; ++i)
        free_numbers(self->output[i].numbers, self->output[i].count);
    PyMem_Free(self->output);
    PyMem_Free(self->constant);
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
