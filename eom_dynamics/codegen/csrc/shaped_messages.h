/* SPDX-License-Identifier: Apache-2.0
 *
 * Serialised messages of one shape: the same names, frame and lengths. Only stamp and numbers differ then, and their
 * offsets are known.
 *
 * Messages are those of the middleware in CDR, little-endian. A message of another shape is not read beyond its length and
 * the constant bytes that are compared; nothing in it is taken for a length or an offset. */

enum { STAMP_SIZE = 8, NANOSECONDS = 1000000000 };

/* Bytes that are the same in all messages of the shape. */
typedef struct {
    Py_ssize_t at, size;
    const char *bytes;
} Constant;

/* Numbers of a message: their offset there, in an array, and their order or NULL. */
typedef struct {
    Py_ssize_t at, from, count;
    Py_ssize_t *order;
} Numbers;

/* A message to read. */
typedef struct {
    Py_ssize_t length, stamp; /* stamp: its offset */
    Py_ssize_t constants, count;
    Constant *constant;
    Numbers *numbers;
} Input;

/* A message to write. */
typedef struct {
    PyObject *bytes; /* a message with other numbers */
    Py_ssize_t stamp; /* its offset, or -1 */
    Py_ssize_t count;
    Numbers *numbers;
} Output;

/* Reads numbers and the bytes of the stamp; whether the message has the shape and its numbers are finite. The stamp is
 * left alone if not. */
static int read_message(const Input *input, PyObject *message, double *values, char *stamp)
{
    if (!PyBytes_CheckExact(message) || PyBytes_GET_SIZE(message) != input->length)
        return 0;
    const char *bytes = PyBytes_AS_STRING(message);
    for (Py_ssize_t i = 0; i < input->constants; ++i)
        if (memcmp(bytes + input->constant[i].at, input->constant[i].bytes, (size_t)input->constant[i].size) != 0)
            return 0;
    double sum = 0;
    for (Py_ssize_t i = 0; i < input->count; ++i) {
        const Numbers *numbers = input->numbers + i;
        const char *from = bytes + numbers->at;
        double *to = values + numbers->from;
        for (Py_ssize_t k = 0; k < numbers->count; ++k) {
            const Py_ssize_t index = numbers->order ? numbers->order[k] : k;
            memcpy(to + k, from + index * (Py_ssize_t)sizeof(double), sizeof(double));
            sum += to[k] * 0.0; /* NaN if one of them is not finite */
        }
    }
    if (sum != 0 || sum != sum)
        return 0;
    memcpy(stamp, bytes + input->stamp, STAMP_SIZE);
    return 1;
}

/* Time of a stamp, ns. */
static long long nanoseconds_of(const char *stamp)
{
    int32_t seconds;
    uint32_t nanoseconds;
    memcpy(&seconds, stamp, sizeof seconds);
    memcpy(&nanoseconds, stamp + sizeof seconds, sizeof nanoseconds);
    return (long long)seconds * NANOSECONDS + nanoseconds;
}

/* The message of an output with these numbers and stamp. */
static PyObject *written_message(const Output *output, const double *values, const char *stamp)
{
    PyObject *message = PyBytes_FromStringAndSize(PyBytes_AS_STRING(output->bytes), PyBytes_GET_SIZE(output->bytes));
    if (!message)
        return NULL;
    char *bytes = PyBytes_AS_STRING(message);
    if (output->stamp >= 0)
        memcpy(bytes + output->stamp, stamp, STAMP_SIZE);
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

/* --- Construction: from plain tuples, all of whose offsets are checked -------------------------------------------- */

/* Sets an error; returns 0. */
static int wrong(const char *what)
{
    PyErr_SetString(PyExc_ValueError, what);
    return 0;
}

/* Zeros for `count` entries, or NULL with an error. */
static void *zeros(Py_ssize_t count, size_t size)
{
    void *entries = PyMem_Calloc((size_t)count + 1, size);
    return entries ? entries : PyErr_NoMemory();
}

/* Takes an order, or NULL for None. */
static int take_order(PyObject *given, Py_ssize_t count, Py_ssize_t **order)
{
    *order = NULL;
    if (given == Py_None)
        return 1;
    if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != count)
        return wrong("an order must be a tuple of the length of its numbers");
    if (!(*order = zeros(count, sizeof **order)))
        return 0;
    for (Py_ssize_t k = 0; k < count; ++k) {
        (*order)[k] = PyLong_AsSsize_t(PyTuple_GET_ITEM(given, k));
        if ((*order)[k] == -1 && PyErr_Occurred())
            return 0;
        if ((*order)[k] < 0 || (*order)[k] >= count)
            return wrong("an order has places beyond its numbers");
    }
    return 1;
}

/* Takes numbers ((offset, from, count, order), ...) of a message of a length and an array of a size. */
static int take_numbers(PyObject *given, Py_ssize_t length, Py_ssize_t size, Py_ssize_t *count, Numbers **numbers)
{
    if (!(*numbers = zeros(PyTuple_GET_SIZE(given), sizeof **numbers)))
        return 0;
    *count = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < *count; ++i) {
        Numbers *own = *numbers + i;
        PyObject *order;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "nnnO", &own->at, &own->from, &own->count, &order))
            return 0;
        if (own->at < 0 || own->from < 0 || own->count < 0 || own->count > size - own->from ||
            own->count > (length - own->at) / (Py_ssize_t)sizeof(double))
            return wrong("numbers lie beyond the message or the array");
        if (!take_order(order, own->count, &own->order))
            return 0;
    }
    return 1;
}

/* Takes constants ((offset, bytes), ...), and numbers as above, of an input of known length. Bytes are borrowed. */
static int take_input(PyObject *constants, PyObject *numbers, Py_ssize_t size, Input *input)
{
    if (!(input->constant = zeros(PyTuple_GET_SIZE(constants), sizeof *input->constant)))
        return 0;
    input->constants = PyTuple_GET_SIZE(constants);
    for (Py_ssize_t i = 0; i < input->constants; ++i) {
        Constant *own = input->constant + i;
        PyObject *bytes;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(constants, i), "nO!", &own->at, &PyBytes_Type, &bytes))
            return 0;
        own->bytes = PyBytes_AS_STRING(bytes);
        own->size = PyBytes_GET_SIZE(bytes);
        if (own->at < 0 || own->size > input->length - own->at)
            return wrong("a constant lies beyond the message");
    }
    return take_numbers(numbers, input->length, size, &input->count, &input->numbers);
}

/* Takes outputs ((bytes, stamp, numbers), ...) with numbers of an array of a size. Bytes are borrowed. */
static int take_outputs(PyObject *given, Py_ssize_t size, Py_ssize_t *count, Output **outputs)
{
    if (!(*outputs = zeros(PyTuple_GET_SIZE(given), sizeof **outputs)))
        return 0;
    *count = PyTuple_GET_SIZE(given);
    for (Py_ssize_t i = 0; i < *count; ++i) {
        Output *own = *outputs + i;
        PyObject *numbers;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(given, i), "O!nO!", &PyBytes_Type, &own->bytes, &own->stamp,
                              &PyTuple_Type, &numbers))
            return 0;
        const Py_ssize_t length = PyBytes_GET_SIZE(own->bytes);
        if (own->stamp < -1 || own->stamp > length - STAMP_SIZE)
            return wrong("a stamp lies beyond the message");
        if (!take_numbers(numbers, length, size, &own->count, &own->numbers))
            return 0;
    }
    return 1;
}

static void free_numbers(Numbers *numbers, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; numbers && i < count; ++i)
        PyMem_Free(numbers[i].order);
    PyMem_Free(numbers);
}

static void free_input(Input *input)
{
    free_numbers(input->numbers, input->count);
    PyMem_Free(input->constant);
}

static void free_outputs(Output *outputs, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; outputs && i < count; ++i)
        free_numbers(outputs[i].numbers, outputs[i].count);
    PyMem_Free(outputs);
}
