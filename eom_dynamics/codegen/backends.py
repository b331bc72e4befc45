# SPDX-License-Identifier: Apache-2.0
"""Kernels by backend: compiled C, CasADi's virtual machine, or NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from ..arrays import Array
from ..robot import Robot
from ..states import all_finite
from .casadi_function import casadi_function
from .emit_python import python_function
from .native import NativeKernel
from .programs import PROGRAMS


class Kernel(Protocol):
    """A program of one robot, ready to run."""

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states.

        Args:
            count: number of states.
            inputs: one array (count, size) for each input of the program, or (1, size) if all states share it; with
                contiguous rows.
            outputs: one C-contiguous array (count, size) for each output, which is filled.

        Returns:
            Whether all inputs are finite. If not, the outputs of states with such an input, and possibly others, are
            unchanged.
        """


class NumpyKernel:
    """A program as a Python function, over numbers for one state and arrays for a batch."""

    def __init__(self, robot: Robot, name: str) -> None:
        self._function = python_function(PROGRAMS[name](robot))

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states; see :class:`Kernel`."""
        if not all_finite(inputs):
            return False
        if count == 1:
            # Arithmetic on Python's floats takes a third of the time of that on NumPy's scalars.
            entries: list[Any] = [value for array in inputs for value in array[0].tolist()]
        else:
            entries = [column for array in inputs for column in array.T]
        results = iter(self._function(entries))
        for output in outputs:
            for column in output.T:
                column[:] = next(results)
        return True


class CasadiKernel:
    """A program on CasADi's virtual machine."""

    def __init__(self, robot: Robot, name: str) -> None:
        self._function = casadi_function(PROGRAMS[name](robot))
        self._buffer, self._evaluate = self._function.buffer()
        self._buffer_in_use = threading.Lock()

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states; see :class:`Kernel`."""
        if not all_finite(inputs):
            return False
        if count == 1:
            # CasADi's buffer takes a fifth of the time of a call of the function.
            with self._buffer_in_use:
                for k, array in enumerate(inputs):
                    self._buffer.set_arg(k, array.data)
                for k, array in enumerate(outputs):
                    self._buffer.set_res(k, array.data)
                self._evaluate()
            return True
        # Called with matrices, CasADi evaluates the function for each column.
        results = self._function.call([np.broadcast_to(x, (count, x.shape[1])).T for x in inputs])
        for output, result in zip(outputs, results, strict=True):
            output[:] = np.asarray(result).T
        return True


KERNELS: Mapping[str, Callable[[Robot, str], Kernel]] = MappingProxyType(
    {"native": NativeKernel, "casadi": CasadiKernel, "numpy": NumpyKernel}
)
"""Kernels of a robot and the name of a program, by backend, the fastest first."""
