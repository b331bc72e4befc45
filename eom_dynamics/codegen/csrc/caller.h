/* SPDX-License-Identifier: Apache-2.0
 *
 * Data of a caller, and execution of its kernels for one state or a batch.
 *
 * Kernels read and write vectors: the inputs (positional arguments, then the entries of keywords), the results, and
 * intermediate vectors. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>

enum {
    MOST_INPUTS = 32,
    MOST_OUTPUTS = 16,
    MOST_VECTORS = 64,
    MOST_STAGES = 4,
    MOST_KEYWORDS = 5,
    MOST_DIMENSIONS = 3,
    MOST_INTERMEDIATE = 4096, /* numbers of the intermediate vectors of one state, which are on the stack */
    MOST_TOGETHER = 256, /* numbers of results that share memory: one reference keeps all */
    BLOCK = 128 /* states; their intermediate vectors stay in the first-level cache */
};

typedef void (*state_function)(const double *const *in, double *const *out);
typedef size_t (*batch_function)(size_t count, const double *const *in, const size_t *stride, double *const *out);

typedef struct {
    npy_intp dimensions, sizes[MOST_DIMENSIONS], length;
    npy_intp passed_on; /* 1 if a stage reads the result of another stage */
} Shape;

typedef struct {
    state_function state;
    batch_function batch;
    Py_ssize_t inputs, outputs;
    const unsigned char *in, *out; /* indices of vectors */
} Stage;

typedef struct {
    PyObject *name; /* interned like the names of calls: equal names are the same object */
    Py_ssize_t first, count; /* its inputs */
    int alone;               /* 1 if the argument is an array, 0 if it is a tuple */
} Keyword;

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    Py_ssize_t positional, inputs, outputs, vectors, keywords, stages;
    Py_ssize_t intermediate; /* numbers of the intermediate vectors of a state */
    Shape shapes[MOST_VECTORS];
    Stage stage[MOST_STAGES];
    Keyword keyword[MOST_KEYWORDS];
    const double *defaults[MOST_INPUTS]; /* of omitted inputs; NULL if they must be given */
    int direct; /* whether the only stage reads the first inputs and writes all results in their order */
    int finite_results;
    npy_intp together; /* numbers of all results, if these are parts of one array; else 0 */
    PyTypeObject *result_type; /* tuple or a subclass; NULL to return the only result */
    PyObject *general;
    PyObject *kept; /* owner of the references to the objects above */
} Caller;

typedef double eight __attribute__((vector_size(64)));

/* Zeros sum up to NaN if a number is not finite. Long arrays have eight sums: additions to one wait for each other. */
static inline __attribute__((always_inline)) int all_finite(const double *values, npy_intp length)
{
    double sum = 0;
    npy_intp i = 0;
    if (length >= 16) {
        eight sums = {0}, part;
        for (; i + 8 <= length; i += 8) {
            memcpy(&part, values + i, sizeof part);
            sums += part * 0.0;
        }
        for (int k = 0; k < 8; ++k)
            sum += sums[k];
    }
    for (; i < length; ++i)
        sum += values[i] * 0.0;
    return sum == 0;
}

/* Runs the stages on one state if `count` is 0, else on a batch; returns whether the numbers that they pass on are finite. */
static int run_stages(const Caller *self, size_t count, double *const *vectors, const size_t *strides)
{
    for (Py_ssize_t s = 0; s < self->stages; ++s) {
        const Stage *stage = &self->stage[s];
        const double *in[MOST_INPUTS];
        size_t stride[MOST_INPUTS];
        double *out[MOST_OUTPUTS];
        for (Py_ssize_t k = 0; k < stage->inputs; ++k) {
            in[k] = vectors[stage->in[k]];
            if (count)
                stride[k] = strides[stage->in[k]];
        }
        for (Py_ssize_t k = 0; k < stage->outputs; ++k)
            out[k] = vectors[stage->out[k]];
        if (count) {
            if (stage->batch(count, in, stride, out) != count)
                return 0;
            continue;
        }
        stage->state(in, out);
        for (Py_ssize_t k = 0; k < stage->outputs; ++k)
            if (self->shapes[stage->out[k]].passed_on && !all_finite(out[k], self->shapes[stage->out[k]].length))
                return 0;
    }
    return 1;
}

/* Return 1 if all results are finite, or need no check. */
static int results_pass(const Caller *self, double *const *vectors, npy_intp states)
{
    for (Py_ssize_t k = self->inputs; self->finite_results && k < self->inputs + self->outputs; ++k)
        if (!all_finite(vectors[k], states * self->shapes[k].length))
            return 0;
    return 1;
}

/* Runs the stages on one state, with intermediate vectors on the stack. */
static __attribute__((noinline)) int run_through(const Caller *self, double **vectors)
{
    double intermediate[self->intermediate + 1], *next = intermediate;
    for (Py_ssize_t k = self->inputs + self->outputs; k < self->vectors; next += self->shapes[k++].length)
        vectors[k] = next;
    return run_stages(self, 0, vectors, NULL);
}

/* Runs the kernels on one state; returns whether it is not refused. */
static inline int run_state(const Caller *self, double **vectors)
{
    if (self->direct) /* which saves some of the time of a small kernel */
        self->stage[0].state((const double *const *)vectors, vectors + self->inputs);
    else if (!run_through(self, vectors))
        return 0;
    return results_pass(self, vectors, 1);
}

/* Runs the kernels on a batch block by block, without the lock; returns -1 if there is no memory, else as run_state. */
static int run_rows(const Caller *self, size_t count, double *const *vectors, size_t *strides)
{
    const Py_ssize_t given = self->inputs + self->outputs;
    for (Py_ssize_t k = self->inputs; k < self->vectors; ++k)
        strides[k] = (size_t)self->shapes[k].length; /* results are packed */
    /* The first and last states of a block are slower: use blocks only if vectors are read again. */
    const size_t block = self->stages > 1 || self->intermediate || self->finite_results ? BLOCK : count;
    double *intermediate = PyMem_RawMalloc(((size_t)self->intermediate * BLOCK + 1) * sizeof(double));
    if (!intermediate)
        return -1;
    int finite = 1;
    Py_BEGIN_ALLOW_THREADS
    for (size_t start = 0; finite && start < count; start += block) {
        const size_t states = count - start < block ? count - start : block;
        double *at[MOST_VECTORS], *next = intermediate;
        for (Py_ssize_t k = 0; k < given; ++k)
            at[k] = vectors[k] + start * strides[k];
        for (Py_ssize_t k = given; k < self->vectors; next += block * strides[k++])
            at[k] = next;
        finite = run_stages(self, states, at, strides) && results_pass(self, at, (npy_intp)states);
    }
    Py_END_ALLOW_THREADS
    PyMem_RawFree(intermediate);
    return finite;
}
