/* SPDX-License-Identifier: Apache-2.0
 *
 * From the bytes of a setpoint to the bytes of its command in one call, for messages of one shape: read, compute, check
 * limits, write. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <string.h>
#include <structmember.h>
#include "shaped_messages.h"

enum { STATES = 5, EFFORTS = 3, MOTORS = 4, MOST_VECTORS = 24 };

/* LIMIT_POLICIES for a command that exceeds limits: nothing, mark it, leave it to the caller, or mark and clip it. */
enum { IGNORE, WARN, REFUSE, CLIP };

typedef void (*kernel_function)(const double *const *in, double *const *out);

/* A kernel, and the offsets of its vectors in the scratch. */
typedef struct {
    kernel_function kernel;
    Py_ssize_t inputs, outputs;
    Py_ssize_t in[MOST_VECTORS], out[MOST_VECTORS];
} Stage;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t n, m, size; /* size: of a row q ... qdddd, tau ... taudd, theta ... tau_m */
    Py_ssize_t stages, late; /* late: how many of them, the last ones, take the command within limits */
    Stage *stage;
    Py_buffer scratch, committed, lower, upper, most_effort, turn; /* scratch: a row, motor voltages, other vectors */
    /* Of springs with dampers and presliding friction: deflections, states of friction, tau ... taudd, theta, and the
     * stamp in ns of the last setpoint; offsets in the scratch. */
    Py_buffer memory, memory_stamp;
    Py_ssize_t step_at, deflection_at, clipped_at; /* clipped: motor efforts within limits */
    double longest_gap; /* s */
    Py_ssize_t force_at; /* specific force of the base, or -1 */
    double *loads; /* tau ... taudd, theta before any clipping */
    Input input; /* the setpoint */
    Py_ssize_t outputs;
    Output *output;
    PyObject *kept; /* objects whose memory is used */
    int policy;
    char exceeded;
    Py_ssize_t first; /* output that a call returns */
    char stamp_bytes[STAMP_SIZE];
    long long stamp, committed_stamp; /* ns */
} StreamCall;

static double *scratch_of(StreamCall *self)
{
    return self->scratch.buf;
}

/* Reads stamp and numbers; whether the message has the shape and its numbers are finite. */
static int read_setpoint(StreamCall *self, PyObject *message)
{
    if (!read_message(&self->input, message, scratch_of(self), self->stamp_bytes))
        return 0;
    self->stamp = nanoseconds_of(self->stamp_bytes);
    if (self->force_at < 0)
        return 1;
    const double *force = scratch_of(self) + self->force_at;
    return force[0] != 0 || force[1] != 0 || force[2] != 0; /* zero: it was not set */
}

/* Time since the setpoint before, s; negative where the memory begins anew. */
static double step_of(StreamCall *self)
{
    const long long last = *(const int64_t *)self->memory_stamp.buf;
    if (!last || !self->stamp)
        return -1.0;
    const double step = (double)(self->stamp - last) * 1e-9;
    return step >= 0 && step <= self->longest_gap ? step : -1.0;
}

static inline void run_stages(StreamCall *self, Py_ssize_t from, Py_ssize_t to)
{
    double *scratch = scratch_of(self);
    for (Py_ssize_t s = from; s < to; ++s) {
        const Stage *stage = self->stage + s;
        const double *in[MOST_VECTORS];
        double *out[MOST_VECTORS];
        for (Py_ssize_t k = 0; k < stage->inputs; ++k)
            in[k] = scratch + stage->in[k];
        for (Py_ssize_t k = 0; k < stage->outputs; ++k)
            out[k] = scratch + stage->out[k];
        stage->kernel(in, out);
    }
}

/* Whether numbers are finite: zeros sum up to NaN where one is not. */
static int are_finite(const double *values, Py_ssize_t count)
{
    double sum = 0;
    for (Py_ssize_t i = 0; i < count; ++i)
        sum += values[i] * 0.0;
    return sum == 0;
}

static int compute_command(StreamCall *self)
{
    double *scratch = scratch_of(self);
    if (self->memory.obj) {
        scratch[self->step_at] = step_of(self);
        memcpy(scratch + self->step_at + 1, self->memory.buf, (size_t)self->memory.len);
    }
    run_stages(self, 0, self->stages - self->late);
    const double *values = scratch + STATES * self->n;
    memcpy(self->loads, values, (size_t)(EFFORTS * self->n + self->m) * sizeof(double));
    return are_finite(values, self->size - STATES * self->n);
}

/* Whether the command in the scratch is to be published, with its efforts clipped if that is asked for. */
static int is_within_policy(StreamCall *self)
{
    self->exceeded = 0;
    if (self->policy == IGNORE)
        return 1;
    double *values = scratch_of(self);
    const double *lower = self->lower.buf, *upper = self->upper.buf;
    const Py_ssize_t count = self->lower.len / (Py_ssize_t)sizeof(double);
    int outside = 0;
    for (Py_ssize_t i = 0; i < count; ++i)
        outside |= values[i] < lower[i] || values[i] > upper[i];
    if (!outside)
        return 1;
    if (self->policy == REFUSE)
        return 0;
    const double *turn = self->turn.buf;
    for (Py_ssize_t i = 0; i < self->n; ++i)
        if (values[i] < lower[i] - turn[i] || values[i] > upper[i] + turn[i])
            return 0;
    self->exceeded = 1;
    if (self->policy == CLIP) {
        const double *most = self->most_effort.buf;
        double *tau = values + STATES * self->n, *effort = values + self->size - self->m;
        for (Py_ssize_t i = 0; i < self->n; ++i)
            tau[i] = tau[i] > most[i] ? most[i] : tau[i] < -most[i] ? -most[i] : tau[i];
        memcpy(effort, values + self->clipped_at, (size_t)self->m * sizeof(double));
    }
    return 1;
}

/* Computes what drives are sent for the command within limits, which follows the voltages; whether it is finite. */
static int convert_command(StreamCall *self)
{
    if (!self->late)
        return 1;
    run_stages(self, self->stages - self->late, self->stages);
    const Py_ssize_t from = self->size + self->m, to = self->committed.len / (Py_ssize_t)sizeof(double);
    return are_finite(scratch_of(self) + from, to - from);
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
    if (self->first < 0 || self->first >= self->outputs || !read_setpoint(self, args[0]) || !compute_command(self) ||
        !is_within_policy(self) || !convert_command(self))
        Py_RETURN_NONE;
    return written(self, self->output + self->first);
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
    memcpy(self->committed.buf, self->scratch.buf, (size_t)self->committed.len);
    self->committed_stamp = self->stamp;
    if (self->memory.obj) {
        const size_t states = (size_t)(self->n + self->m);
        memcpy(self->memory.buf, scratch_of(self) + self->deflection_at, states * sizeof(double));
        memcpy((double *)self->memory.buf + states, self->loads, (size_t)self->memory.len - states * sizeof(double));
        *(int64_t *)self->memory_stamp.buf = self->stamp;
    }
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

/* Takes the array of a committed row, and of what follows it in the scratch. */
static int take_committed(PyObject *given, Py_ssize_t all, StreamCall *self)
{
    if (PyObject_GetBuffer(given, &self->committed, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE))
        return 0;
    const Py_ssize_t count = self->committed.len / (Py_ssize_t)sizeof(double);
    if (count < self->size || count > all) {
        PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
        return 0;
    }
    return 1;
}

static int take_offsets(PyObject *given, Py_ssize_t size, Py_ssize_t *count, Py_ssize_t *offsets)
{
    *count = PyTuple_Check(given) ? PyTuple_GET_SIZE(given) : MOST_VECTORS + 1;
    if (*count > MOST_VECTORS) {
        PyErr_SetString(PyExc_ValueError, "a kernel has too many vectors");
        return 0;
    }
    for (Py_ssize_t k = 0; k < *count; ++k) {
        offsets[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, k));
        if (offsets[k] == -1 && PyErr_Occurred())
            return 0;
        if (offsets[k] < 0 || offsets[k] >= size) {
            PyErr_SetString(PyExc_ValueError, "a vector is beyond the scratch");
            return 0;
        }
    }
    return 1;
}

/* Takes stages ((address, offsets of inputs, offsets of outputs), ...). */
static int take_stages(PyObject *given, Py_ssize_t size, StreamCall *self)
{
    self->stage = PyMem_Calloc((size_t)PyTuple_GET_SIZE(given) + 1, sizeof *self->stage);
    if (!self->stage) {
        PyErr_NoMemory();
        return 0;
    }
    self->stages = PyTuple_GET_SIZE(given);
    for (Py_ssize_t s = 0; s < self->stages; ++s) {
        unsigned long long address;
        PyObject *in, *out;
        Stage *stage = self->stage + s;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, s), "KOO", &address, &in, &out) ||
            !take_offsets(in, size, &stage->inputs, stage->in) || !take_offsets(out, size, &stage->outputs, stage->out))
            return 0;
        stage->kernel = (kernel_function)(uintptr_t)address;
    }
    return 1;
}

static PyObject *stream_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"n", "m", "stages", "late", "scratch", "committed", "lower", "upper", "most_effort", "turn",
                            "policy", "clipped", "memory", "memory_stamp", "step", "deflection", "longest_gap", "force",
                            "length", "stamp", "constants", "inputs", "outputs", NULL};
    Py_ssize_t n, m, late, length, stamp, clipped, step, deflection, force;
    int policy;
    double longest_gap;
    PyObject *stages, *scratch, *committed, *lower, *upper, *most, *turn, *memory, *memory_stamp, *constants, *inputs;
    PyObject *outputs;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "nnO!nOOOOOOinOOnndnnnO!O!O!", names, &n, &m, &PyTuple_Type, &stages,
                                     &late, &scratch, &committed, &lower, &upper, &most, &turn, &policy, &clipped, &memory,
                                     &memory_stamp, &step, &deflection, &longest_gap, &force, &length, &stamp,
                                     &PyTuple_Type, &constants, &PyTuple_Type, &inputs, &PyTuple_Type, &outputs))
        return NULL;
    if (n < 1 || m < 1 || stamp < 0 || stamp > length - STAMP_SIZE) {
        PyErr_SetString(PyExc_ValueError, "sizes must be positive, and the stamp within the message");
        return NULL;
    }
    StreamCall *self = (StreamCall *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    self->vectorcall = stream_call;
    self->n = n;
    self->m = m;
    self->size = (STATES + EFFORTS) * n + MOTORS * m;
    self->input.length = length;
    self->input.stamp = stamp;
    self->policy = policy;
    self->late = late;
    self->clipped_at = clipped;
    self->step_at = step;
    self->deflection_at = deflection;
    self->longest_gap = longest_gap;
    self->force_at = force;
    self->loads = PyMem_Calloc((size_t)(EFFORTS * n + m), sizeof(double));
    self->kept = PyTuple_Pack(2, constants, outputs);
    const Py_ssize_t remembered = memory == Py_None ? 0 : (1 + EFFORTS) * n + 2 * m;
    if (!self->kept || !self->loads || PyObject_GetBuffer(scratch, &self->scratch, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)) {
        Py_DECREF(self);
        return NULL;
    }
    const Py_ssize_t all = self->scratch.len / (Py_ssize_t)sizeof(double), checked = self->size + m;
    const int fits = all >= checked && clipped >= 0 && clipped + m <= all && step >= 0 && step + 1 + remembered <= all &&
                     deflection >= 0 && deflection + n + m <= all && force + 3 <= all && late >= 0 &&
                     late <= PyTuple_GET_SIZE(stages);
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "a vector is beyond the scratch");
    if (!fits || !take_committed(committed, all, self) ||
        !take_doubles(lower, &self->lower, checked, 0) || !take_doubles(upper, &self->upper, checked, 0) ||
        !take_doubles(most, &self->most_effort, n, 0) || !take_doubles(turn, &self->turn, n, 0) ||
        !take_stages(stages, all, self) ||
        (remembered && (!take_doubles(memory, &self->memory, remembered, PyBUF_WRITABLE) ||
                        !take_doubles(memory_stamp, &self->memory_stamp, 1, PyBUF_WRITABLE))) ||
        !take_input(constants, inputs, all, &self->input) ||
        !take_outputs(outputs, all, &self->outputs, &self->output)) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static void stream_dealloc(PyObject *object)
{
    StreamCall *self = (StreamCall *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_buffer *buffers[] = {&self->scratch,     &self->committed, &self->lower,  &self->upper,
                            &self->most_effort, &self->turn,      &self->memory, &self->memory_stamp};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; ++i)
        if (buffers[i]->obj)
            PyBuffer_Release(buffers[i]);
    PyMem_Free(self->stage);
    PyMem_Free(self->loads);
    free_input(&self->input);
    free_outputs(self->output, self->outputs);
    Py_XDECREF(self->kept);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef stream_methods[] = {
    {"written", stream_written, METH_O, "Message of an output with the numbers of the scratch."},
    {"commit", stream_commit, METH_NOARGS, "Make the computed command the last committed one."},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef stream_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(StreamCall, vectorcall), READONLY, NULL},
    {"policy", T_INT, offsetof(StreamCall, policy), 0, NULL},
    {"exceeded", T_BOOL, offsetof(StreamCall, exceeded), READONLY, NULL},
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
