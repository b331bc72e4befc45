# SPDX-License-Identifier: Apache-2.0
"""Traced programs compiled, and run from C without a call from Python for each state."""

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
from numpy.typing import NDArray

from eom_dynamics.benchmark.timing import Task
from eom_dynamics.kernel.compiler import FLAGS, find_compiler
from eom_dynamics.kernel.emit_c import c_source, core_source, csrc, filled
from eom_dynamics.kernel.program import Program
from eom_dynamics.kernel.straight_line import angles

Array = NDArray[np.float64]

HERE = Path(__file__).parent


@cache
def scratch() -> Path:
    """A folder that goes when the run ends."""
    folder = tempfile.TemporaryDirectory(prefix="eom_dynamics_bench_")
    _kept.append(folder)
    return Path(folder.name)


_kept: list[tempfile.TemporaryDirectory[str]] = []


def shared_object(source: str, flags: Sequence[str] = FLAGS) -> tuple[ctypes.CDLL, float]:
    """C source as a loaded library, and the seconds that the compiler took."""
    file = scratch() / f"source_{len(list(scratch().glob('*.c')))}.c"
    file.write_text(source)
    start = time.perf_counter()
    subprocess.run([*find_compiler(), *flags, str(file), "-o", str(file.with_suffix(".so"))], check=True)
    seconds = time.perf_counter() - start
    return ctypes.CDLL(str(file.with_suffix(".so"))), seconds


@cache
def loops() -> ctypes.CDLL:
    """The loops of loop.c."""
    return shared_object((HERE / "loop.c").read_text())[0]


def pointers(arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
    """Addresses of arrays; the caller keeps the arrays."""
    return (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))


def sizes(numbers: Sequence[int]) -> ctypes.Array[ctypes.c_size_t]:
    """Numbers as size_t."""
    return (ctypes.c_size_t * len(numbers))(*numbers)


class CompiledProgram:
    """A program as the kernel compiles it.

    Attributes:
        compile_seconds: what the compiler took.
    """

    def __init__(self, program: Program, flags: Sequence[str] = FLAGS) -> None:
        self._program = program
        library, self.compile_seconds = shared_object(c_source(program), flags)
        self._one, self._batch = library[program.name], library[f"{program.name}_batch"]

    def state_loop(self, inputs: Sequence[Array]) -> Task:
        """States one by one, in C: each input (count, size)."""
        out = [np.empty(size) for size in self._program.outputs.values()]
        return _loop(loops().loop_kernel, self._one, inputs, out, [])

    def batch(self, inputs: Sequence[Array]) -> tuple[Task, list[Array]]:
        """All states at once on one core, in C, and the arrays that the results go to."""
        count = len(inputs[0])
        out = [np.empty((count, size)) for size in self._program.outputs.values()]
        given, strides, to = pointers(inputs), sizes([x.shape[1] for x in inputs]), pointers(out)
        kept = (inputs, out)

        def run() -> object:
            self._batch(ctypes.c_size_t(count), given, strides, to)
            return kept

        return Task(run, count), out


def casadi_loop(function: Any, inputs: Sequence[Array], out: Sequence[Array], work: int) -> Task:
    """States one by one through a C function that CasADi generated, with ``work`` numbers of work space."""
    return _loop(loops().loop_casadi, function, inputs, out, [np.empty(work + 1)])


def _loop(loop: Any, function: Any, inputs: Sequence[Array], out: Sequence[Array], extra: list[Array]) -> Task:
    count = len(inputs[0])
    arguments = (
        ctypes.cast(function, ctypes.c_void_p),
        ctypes.c_size_t(count),
        ctypes.c_size_t(len(inputs)),
        pointers(inputs),
        sizes([x.shape[1] for x in inputs]),
        pointers(out),
        *(x.ctypes.data_as(ctypes.c_void_p) for x in extra),
    )
    kept = (inputs, out, extra)

    def run() -> object:
        loop(*arguments)
        return kept

    return Task(run, count)


class StraightLine:
    """The arithmetic of a program over lanes, with everything given in the order in which it is read."""

    def __init__(self, program: Program, inputs: Sequence[Array]) -> None:
        self._program = program
        entry = filled(
            (HERE / "straight_line.c.in").read_text(),
            inputs=str(sum(program.inputs.values())),
            angles=str(len(angles(program))),
            outputs=str(len(program.results)),
        )
        source = ["#include <stddef.h>", "#include <stdint.h>", csrc("lanes.h")]
        library, _ = shared_object("\n".join([*source, core_source(program, "lanes", "lanes"), entry]))
        self._run = library["straight_line"]
        self._lanes = int(library["lane_count"]())
        x = np.concatenate(inputs, axis=1)
        angle = np.stack([x[:, a.position] * a.scale + a.shift for a in angles(program)], axis=1)
        self.blocks = len(x) // self._lanes
        self._given = [self._in_lanes(values) for values in (x, np.sin(angle), np.cos(angle))]
        self._out = self._aligned((self.blocks, len(program.results), self._lanes))

    def task(self, start: int, stop: int) -> Task:
        """Blocks from ``start`` to ``stop``."""
        arrays = [values[start:stop] for values in (*self._given, self._out)]
        addresses = [x.ctypes.data_as(ctypes.c_void_p) for x in arrays]

        def run() -> object:
            self._run(ctypes.c_size_t(stop - start), *addresses)
            return arrays

        return Task(run, (stop - start) * self._lanes)

    def results(self) -> list[Array]:
        """The outputs (count, size)."""
        rows = self._out.transpose(0, 2, 1).reshape(-1, len(self._program.results))
        return np.split(rows, np.cumsum(list(self._program.outputs.values()))[:-1], axis=1)

    def _in_lanes(self, values: Array) -> Array:
        blocks = self._aligned((self.blocks, values.shape[1], self._lanes))
        blocks[:] = values[: self.blocks * self._lanes].reshape(self.blocks, self._lanes, -1).transpose(0, 2, 1)
        return blocks

    @staticmethod
    def _aligned(shape: tuple[int, ...]) -> Array:
        """An array that starts where a vector may."""
        numbers = int(np.prod(shape))
        raw = np.zeros(numbers + 8)
        first = -(raw.ctypes.data // 8) % 8
        return raw[first : first + numbers].reshape(shape)
