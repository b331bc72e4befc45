# SPDX-License-Identifier: Apache-2.0
"""What runs a program: compiled C, CasADi's virtual machine, or NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..robot import Robot
from ..states import all_finite
from .casadi_function import casadi_function
from .emit_python import python_function
from .native import NativeKernel
from .programs import PROGRAMS

Array = NDArray[np.float64]


class Kernel(Protocol):
    """A program of one robot, ready to run."""

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states.

        Args:
            count: number of states.
            inputs: for each input of the program an array (count, size), or (1, size) where all states share
                it, with its rows' entries next to each other.
            outputs: for each output a C-contiguous array (count, size), to be filled.

        Returns:
            Whether all inputs are finite. If not, some outputs are left as they are, among them those of all
            states with an input that is not.
        """


class NumpyKernel:
    """A program as a Python function, over numbers for one state and over arrays for many."""

    def __init__(self, robot: Robot, name: str) -> None:
        self._function = python_function(PROGRAMS[name](robot))

    def __call__(self, count: int, inputs: Sequence[Array], outputs: Sequence[Array]) -> bool:
        """Compute ``count`` states; see :class:`Kernel`."""
        if not all_finite(inputs):
            return False
        if count == 1:
            # Arithmetic of Python's own floats costs a third of that of NumPy's scalars.
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
            # Through its buffer CasADi takes a state at a fifth of the cost of a call.
            with self._buffer_in_use:
                for k, array in enumerate(inputs):
                    self._buffer.set_arg(k, array.data)
                for k, array in enumerate(outputs):
                    self._buffer.set_res(k, array.data)
                self._evaluate()
            return True
        # A function called with more columns than it was made for runs once for each.
        results = self._function.call([np.broadcast_to(x, (count, x.shape[1])).T for x in inputs])
        for output, result in zip(outputs, results, strict=True):
            output[:] = np.asarray(result).T
        return True


KERNELS: Mapping[str, Callable[[Robot, str], Kernel]] = MappingProxyType(
    {"native": NativeKernel, "casadi": CasadiKernel, "numpy": NumpyKernel}
)
"""The backends by name, the fastest first: each makes a kernel of a robot and the name of a program."""
