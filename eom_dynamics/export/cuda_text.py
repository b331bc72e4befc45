# SPDX-License-Identifier: Apache-2.0
"""Text of exported CUDA code: prototypes, kernels, and entries of vectors in device memory."""

from __future__ import annotations

from .c_text import prototype
from .project import Function


def host_prototype(function: Function) -> str:
    """Prototype of the function that launches a kernel, without semicolon."""
    inputs = [f"const double *{name}" for name in function.inputs]
    outputs = [f"double *{name}" for name in function.outputs]
    return prototype(
        f"{function.name}_cuda", ["size_t count", *inputs, *outputs, "cudaStream_t stream"], returns="cudaError_t"
    )


def kernel_prototype(inputs: list[str], outputs: list[str]) -> str:
    """Prototype of a kernel, without semicolon."""
    pointers = [f"const double *__restrict__ {name}" for name in inputs]
    pointers += [f"double *__restrict__ {name}" for name in outputs]
    return prototype("__launch_bounds__(THREADS) kernel", ["size_t count", *pointers], returns="__global__ void")


def entry(name: str, index: int) -> str:
    """Entry of a vector of state i."""
    return f"{name}[{index} * count + i]" if index else f"{name}[i]"
