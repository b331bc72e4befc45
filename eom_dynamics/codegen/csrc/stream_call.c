/* SPDX-License-Identifier: Apache-2.0
 *
 * From the bytes of a setpoint to the bytes of its command in one call, for messages of one shape: read, run a cycle of
 * the control loop, write.
 *
 * Messages of a shape have the same names, frame and lengths: only stamp and numbers differ, whose offsets are known. They
 * are those of the middleware in CDR, little-endian. A message of another shape is not read beyond its length and the
 * constant bytes that are compared; nothing in it is taken for a length or an offset. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>

enum { STAMP_SIZE = 8, NANOSECONDS = 1000000000, OUTPUTS = 3 };

/* Of eom/loop.h. */
typedef void (*refer_function)(void *loop, int64_t stamp);
typedef int (*update_function)(void *loop, int64_t now, double period);

/* Offset of a number in a message, and its place in an array; or offset and size of constant bytes. */
typedef struct {
    int32_t at, place;
} Pair;

typedef struct {
    PyObject *bytes;   /* a message with other numbers */
    PyObject *numbers; /* pairs, as bytes */
    Py_ssize_t stamp;  /* its offset, or -1 */
} Message;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    void *loop; /* its memory is an array for the outputs */
    double *given; /* the loop's setpoint to be written */
    refer_function refer;
    update_function update;
    PyObject *initial; /* the given setpoint before a message is read */
    PyObject *constants; /* pairs of the input, as bytes */
    Message input, output[OUTPUTS];
    PyObject *kept; /* owner of the references to the objects above */
    Py_ssize_t first; /* output that a call returns */
    int remarks; /* warnings about the last answered command, bits of eom_loop_update() */
    char stamp_bytes[STAMP_SIZE];
    long long stamp; /* ns */
} StreamCall;

static const Pair *pairs_of(PyObject *bytes, const Pair **end)
{
    const Pair *first = (const Pair *)PyBytes_AS_STRING(bytes);
    *end = first + PyBytes_GET_SIZE(bytes) / (Py_ssize_t)sizeof(Pair);
    return first;
}

/* Reads numbers and stamp; whether the message has the shape and its numbers are finite. The stamp is left alone if not. */
static int read_message(StreamCall *self, PyObject *message)
{
    const PyObject *shape = self->input.bytes;
    if (!PyBytes_CheckExact(message) || PyBytes_GET_SIZE(message) != PyBytes_GET_SIZE(shape))
        return 0;
    const char *bytes = PyBytes_AS_STRING(message), *same = PyBytes_AS_STRING(shape);
    const Pair *end;
    for (const Pair *pair = pairs_of(self->constants, &end); pair < end; ++pair)
        if (memcmp(bytes + pair->at, same + pair->at, (size_t)pair->place) != 0)
            return 0;
    double sum = 0;
    for (const Pair *pair = pairs_of(self->input.numbers, &end); pair < end; ++pair) {
        double number;
        memcpy(&number, bytes + pair->at, sizeof number);
        self->given[pair->place] = number;
        sum += number * 0.0; /* NaN if one of them is not finite */
    }
    if (sum != 0 || sum != sum)
        return 0;
    memcpy(self->stamp_bytes, bytes + self->input.stamp, STAMP_SIZE);
    int32_t seconds;
    uint32_t nanoseconds;
    memcpy(&seconds, self->stamp_bytes, sizeof seconds);
    memcpy(&nanoseconds, self->stamp_bytes + sizeof seconds, sizeof nanoseconds);
    self->stamp = (long long)seconds * NANOSECONDS + nanoseconds;
    return 1;
}

static PyObject *written(const StreamCall *self, Py_ssize_t k)
{
    if (k < 0 || k >= OUTPUTS) {
        PyErr_SetString(PyExc_IndexError, "no such output");
        return NULL;
    }
    const Message *output = self->output + k;
    PyObject *message = PyBytes_FromStringAndSize(PyBytes_AS_STRING(output->bytes), PyBytes_GET_SIZE(output->bytes));
    if (!message)
        return NULL;
    char *bytes = PyBytes_AS_STRING(message);
    if (output->stamp >= 0)
        memcpy(bytes + output->stamp, self->stamp_bytes, STAMP_SIZE);
    const Pair *end;
    for (const Pair *pair = pairs_of(output->numbers, &end); pair < end; ++pair)
        memcpy(bytes + pair->at, (const double *)self->loop + pair->place, sizeof(double));
    return message;
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
    memcpy(self->given, PyBytes_AS_STRING(self->initial), (size_t)PyBytes_GET_SIZE(self->initial));
    if (!read_message(self, args[0]))
        Py_RETURN_NONE;
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

/* Read (bytes, offset of the stamp, pairs) of a message with `size` bytes of numbers. Return 0 on error. */
static int take_message(PyObject *given, Py_ssize_t size, Message *message)
{
    if (!PyArg_ParseTuple(given, "SnS", &message->bytes, &message->stamp, &message->numbers))
        return 0;
    const Py_ssize_t length = PyBytes_GET_SIZE(message->bytes), number = sizeof(double);
    const char *wrong = message->stamp < -1 || message->stamp > length - STAMP_SIZE ? "a stamp lies beyond the message" : NULL;
    const Pair *end;
    for (const Pair *pair = pairs_of(message->numbers, &end); pair < end; ++pair)
        if (pair->at < 0 || pair->at > length - number || pair->place < 0 || pair->place >= size / number)
            wrong = "numbers lie beyond the message or the array";
    if (wrong)
        PyErr_SetString(PyExc_ValueError, wrong);
    return !wrong;
}

static int take_constants(StreamCall *self)
{
    const Py_ssize_t length = PyBytes_GET_SIZE(self->input.bytes);
    const Pair *end;
    for (const Pair *pair = pairs_of(self->constants, &end); pair < end; ++pair)
        if (pair->at < 0 || pair->place < 0 || pair->place > length - pair->at || self->input.stamp < 0) {
            PyErr_SetString(PyExc_ValueError, "a constant, or the stamp, lies beyond the message");
            return 0;
        }
    return 1;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"loop", "size", "given", "refer", "update", "initial", "constants", "input", "outputs", NULL};
    unsigned long long loop, given, refer, update;
    Py_ssize_t size;
    PyObject *initial, *constants, *input, *output[OUTPUTS];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "KnKKKSSO!(O!O!O!)", names, &loop, &size, &given, &refer, &update,
                                     &initial, &constants, &PyTuple_Type, &input, &PyTuple_Type, output, &PyTuple_Type,
                                     output + 1, &PyTuple_Type, output + 2))
        return NULL;
    StreamCall *self = (StreamCall *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = stream_call;
    self->loop = (void *)(uintptr_t)loop;
    self->given = (double *)(uintptr_t)given;
    self->refer = (refer_function)(uintptr_t)refer;
    self->update = (update_function)(uintptr_t)update;
    self->initial = initial;
    self->constants = constants;
    self->kept = PyTuple_Pack(6, initial, constants, input, output[0], output[1], output[2]);
    int good = self->kept && take_message(input, PyBytes_GET_SIZE(initial), &self->input) && take_constants(self);
    for (int k = 0; k < OUTPUTS; ++k)
        good = good && take_message(output[k], size, self->output + k);
    if (!good)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(((StreamCall *)object)->kept);
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
