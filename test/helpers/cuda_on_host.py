# SPDX-License-Identifier: Apache-2.0
"""Exported CUDA code compiled for the processor: threads run one after the other, in one block."""

from pathlib import Path

_RUNTIME = """
#include <cmath>
#include <cstdlib>
#include <cstring>
#define __global__
#define __device__
#define __launch_bounds__(threads)
typedef int cudaError_t, cudaStream_t, cudaEvent_t, cudaMemcpyKind;
enum { cudaSuccess, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
struct dim3 { unsigned x, y, z; };
static dim3 gridDim = {1, 1, 1}, blockIdx = {0, 0, 0}, threadIdx = {0, 0, 0};
template <typename T> cudaError_t cudaMalloc(T **data, size_t bytes) { *data = (T *)malloc(bytes); return *data == 0; }
inline cudaError_t cudaFree(void *data) { free(data); return 0; }
inline cudaError_t cudaMemset(void *data, int value, size_t bytes) { memset(data, value, bytes); return 0; }
inline cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return 0;
}
inline cudaError_t cudaGetLastError() { (void)gridDim; (void)blockIdx; (void)threadIdx; return 0; }
inline const char *cudaGetErrorString(cudaError_t) { return ""; }
inline cudaError_t cudaEventCreate(cudaEvent_t *) { return 0; }
inline cudaError_t cudaEventRecord(cudaEvent_t) { return 0; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return 0; }
inline cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t, cudaEvent_t) { *milliseconds = 1; return 0; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return 0; }
"""

_LAUNCH = """(void)blocks, (void)stream;
    for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
        kernel"""


def adapt(folder: Path) -> None:
    """Turn the CUDA files of a folder into C++, with fewer states in their test."""
    (folder / "cuda_runtime.h").write_text(_RUNTIME)
    for file in folder.glob("*.cu"):
        text = file.read_text().replace("kernel<<<blocks, THREADS, 0, stream>>>", _LAUNCH)
        text = text.replace("COUNT = 1000003, REPETITIONS = 20", "COUNT = 30 * STATES + 3, REPETITIONS = 1")
        (folder / f"{file.name}.cpp").write_text(text)
