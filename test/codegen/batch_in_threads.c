/* SPDX-License-Identifier: Apache-2.0
 *
 * Run a batch in threads, a part each, as eom_dynamics.codegen.native does: the thread sanitizer watches. The rows of
 * the parts lie next to each other in shared arrays. With OVERLAP each thread writes one row of the next part, too. */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef OVERLAP
#define OVERLAP 0
#endif

enum { THREADS = 4, ROWS = 1003, REPEATS = 20 };

static const size_t input_sizes[] = {INPUTS}, output_sizes[] = {OUTPUTS};

enum { N_INPUTS = sizeof input_sizes / sizeof *input_sizes, N_OUTPUTS = sizeof output_sizes / sizeof *output_sizes };

size_t BATCH(size_t count, const double *const *in, const size_t *stride, double *const *out);

static double *inputs[N_INPUTS], *outputs[N_OUTPUTS];

static void *run(void *argument)
{
    const size_t part = (size_t)argument, start = ROWS * part / THREADS;
    size_t stop = ROWS * (part + 1) / THREADS;
    if (stop < ROWS)
        stop += OVERLAP;
    const double *in[N_INPUTS];
    double *out[N_OUTPUTS];
    for (size_t k = 0; k < N_INPUTS; ++k)
        in[k] = inputs[k] + start * input_sizes[k];
    for (size_t k = 0; k < N_OUTPUTS; ++k)
        out[k] = outputs[k] + start * output_sizes[k];
    for (int i = 0; i < REPEATS; ++i)
        if (BATCH(stop - start, in, input_sizes, out) != stop - start)
            exit(2);
    return NULL;
}

static double *numbers(size_t size)
{
    double *array = malloc(size * sizeof(double));
    if (!array)
        exit(3);
    for (size_t i = 0; i < size; ++i)
        array[i] = (double)(i % 97) / 97.0 - 0.5;
    return array;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (size_t k = 0; k < N_INPUTS; ++k)
        inputs[k] = numbers(ROWS * input_sizes[k]);
    for (size_t k = 0; k < N_OUTPUTS; ++k)
        outputs[k] = numbers(ROWS * output_sizes[k]);
    for (size_t part = 0; part < THREADS; ++part)
        if (pthread_create(&threads[part], NULL, run, (void *)part))
            return 4;
    for (size_t part = 0; part < THREADS; ++part)
        pthread_join(threads[part], NULL);
    return 0;
}
