# SPDX-License-Identifier: Apache-2.0
"""Compiled programs in loops over states in C, without calls from Python."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from eom_dynamics.arrays import Array
from eom_dynamics.codegen.compiler import FLAGS, find_compiler
from eom_dynamics.codegen.emit_c import c_source, filled
from eom_dynamics.codegen.program import Program
from eom_dynamics.tools.benchmark.timing import TimedTask

HERE = Path(__file__).parent


@cache
def scratch() -> Path:
    """Temporary folder of this process."""
    folder = tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def shared_object(source: str, flags: Sequence[str] = FLAGS) -> tuple[ctypes.CDLL, float]:
    """Shared library of C source, and the compile time in seconds."""
    file = scratch() / f"source_{len(list(scratch().glob('*.c')))}.c"
    file.write_text(source)
    start = time.perf_counter()
    subprocess.run([*find_compiler(), *flags, str(file), "-o", str(file.with_suffix(".so"))], check=True)
    seconds = time.perf_counter() - start
    return ctypes.CDLL(str(file.with_suffix(".so"))), seconds


class CompiledProgram:
    """Kernel of a program.

    Attributes:
        compile_seconds: compile time.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        source = c_source(program) + filled(_LOOP, name=program.name, inputs=str(len(program.inputs)))
        library, self.compile_seconds = shared_object(source)
        self._loop, self._batch = library["loop"], library[f"{program.name}_batch"]

    def state_loop(self, inputs: Sequence[Array]) -> TimedTask:
        """Loop over states in C; each input is (count, size)."""
        return self._task(self._loop, inputs, [np.empty(size) for size in self._program.outputs.values()])

    def batch(self, inputs: Sequence[Array]) -> tuple[TimedTask, list[Array]]:
        """Batch of states on one core in C, and the arrays of its results."""
        out = [np.empty((len(inputs[0]), size)) for size in self._program.outputs.values()]
        return self._task(self._batch, inputs, out), out

    @staticmethod
    def _task(function: Any, inputs: Sequence[Array], out: Sequence[Array]) -> TimedTask:
        count = ctypes.c_size_t(len(inputs[0]))
        given, to = ((ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays)) for arrays in (inputs, out))
        strides = (ctypes.c_size_t * len(inputs))(*(x.shape[1] for x in inputs))
        kept = (inputs, out)

        def run() -> object:
            function(count, given, strides, to)
            return kept

        return TimedTask(run, len(inputs[0]))


# The function for one state, over all of them without calls from Python.
_LOOP = """
void loop(size_t count, const double *const *in, const size_t *stride, double *const *out)
{
    for (size_t i = 0; i < count; ++i) {
        const double *state[@inputs@];
        for (size_t k = 0; k < @inputs@; ++k)
            state[k] = in[k] + i * stride[k];
        @name@(state, out);
    }
}
"""
