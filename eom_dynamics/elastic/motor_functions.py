# SPDX-License-Identifier: Apache-2.0
"""Compiled programs of the motor side of an arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..codegen.backends import KERNELS, Kernel
from ..codegen.evaluation import evaluate
from ..codegen.program import Program
from ..codegen.recipe import recipe_of
from ..exceptions import StateError
from ..robot import Robot
from . import motor_programs
from .motor_side import MotorSide

_OFTEN = ("motors", "deflections", "spring_efforts", "loads", "tangents", "filtered")
"""Programs that are worth a compiler; others are called for whole motions."""


class MotorFunctions:
    """Functions of arrays of states by the name of a program in :mod:`.motor_programs`, each compiled at first use."""

    def __init__(self, robot: Robot, side: MotorSide, backend: str) -> None:
        self._robot, self._side, self._backend = robot, side, backend
        self._kept: dict[tuple[Any, ...], tuple[Program, Kernel]] = {}

    def program(self, name: str, **details: Any) -> Program:
        """A program of the motor side."""
        program: Program = getattr(motor_programs, name)(self._side, **details)
        return program

    def kernel(self, name: str, **details: Any) -> tuple[Program, Kernel]:
        """A program of the motor side, and its kernel."""
        key = (name, *details.items())
        if key not in self._kept:
            program = self.program(name, **details)
            backend = self._backend if name in _OFTEN else "numpy"
            self._kept[key] = program, KERNELS[backend](self._robot, recipe_of(program))
        return self._kept[key]

    def __call__(self, name: str, *arrays: Array, **details: Any) -> tuple[Array, ...]:
        """Results (…, size) of a program for the arrays (…, size) of its inputs.

        Raises:
            StateError: a number is not finite.
        """
        program, kernel = self.kernel(name, **details)
        samples = np.shape(arrays[0])[:-1]
        flat = samples if len(samples) < 2 else (int(np.prod(samples)),)
        inputs = [np.broadcast_to(x, (*samples, x.shape[-1])).reshape(*flat, x.shape[-1]) for x in arrays]
        found = evaluate(kernel, flat, inputs, [(size,) for size in program.outputs.values()])
        if found is None:
            raise StateError(f"numbers must be finite, for {' and '.join(program.outputs)}")
        return tuple(x.reshape(*samples, x.shape[-1]) for x in found)
