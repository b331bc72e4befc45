/* SPDX-License-Identifier: Apache-2.0
 *
 * Loops over states in C: what code costs without a call from Python. */
#include <stddef.h>

typedef void (*kernel_function)(const double *const *in, double *const *out);
typedef int (*casadi_function)(const double **in, double **out, long long *iw, double *w, int memory);

enum { MOST_VECTORS = 16 };

/* Input k of state i is at in[k] + i * size[k], output k at out[k]. */
void loop_kernel(kernel_function function, size_t count, size_t inputs, const double *const *in, const size_t *size,
                 double *const *out)
{
    for (size_t i = 0; i < count; ++i) {
        const double *state[MOST_VECTORS];
        for (size_t k = 0; k < inputs; ++k)
            state[k] = in[k] + i * size[k];
        function(state, out);
    }
}

/* The same for C that CasADi generates, with its work vector. */
void loop_casadi(casadi_function function, size_t count, size_t inputs, const double *const *in, const size_t *size,
                 double **out, double *work)
{
    for (size_t i = 0; i < count; ++i) {
        const double *state[MOST_VECTORS];
        for (size_t k = 0; k < inputs; ++k)
            state[k] = in[k] + i * size[k];
        function(state, out, NULL, work, 0);
    }
}
