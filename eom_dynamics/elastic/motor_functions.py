# SPDX-License-Identifier: Apache-2.0
"""Compiled programs of the motor side of an arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..codegen.backends import KERNELS
from ..codegen.functions import CompiledFunction, Signature, Vector
from ..codegen.program import Program
from ..codegen.recipe import recipe_of
from ..robot import Robot
from . import motor_programs
from .motor_side import MotorSide

_OFTEN = ("motors", "deflections", "spring_efforts", "loads", "tangents", "filtered", "drive", "ahead")
"""Programs that are worth a compiler; others are called for whole motions."""


class MotorFunctions:
    """Functions of arrays of states by the name of a program in :mod:`.motor_programs`, each compiled at first use."""

    def __init__(self, robot: Robot, side: MotorSide, backend: str) -> None:
        self._robot, self._side, self._backend = robot, side, backend
        self._kept: dict[tuple[Any, ...], CompiledFunction] = {}

    def program(self, name: str, **details: Any) -> Program:
        """A program of the motor side."""
        program: Program = getattr(motor_programs, name)(self._side, **details)
        return program

    def function(self, name: str, **details: Any) -> CompiledFunction:
        """The function of a program."""
        key = (name, *details.items())
        if key not in self._kept:
            program = self.program(name, **details)
            vectors = [Vector(each, (size,), shared=True) for each, size in program.inputs.items()]
            results = [Vector(each, (size,)) for each, size in program.outputs.items()]
            kernel = KERNELS[self._backend if name in _OFTEN else "numpy"](self._robot, recipe_of(program))
            self._kept[key] = CompiledFunction(Signature(tuple(vectors), tuple(results)), kernel)
        return self._kept[key]

    def __call__(self, name: str, *arrays: Array, **details: Any) -> tuple[Array, ...]:
        """Results (…, size) of a program for the arrays (…, size) of its inputs; NaN where one is not finite."""
        function = self.function(name, **details)
        samples = np.broadcast_shapes(*(np.shape(x)[:-1] for x in arrays))
        inputs = [np.broadcast_to(x, (*samples, x.shape[-1])).reshape(-1, x.shape[-1]) for x in arrays]
        finite = np.all([np.isfinite(x).all(axis=-1) for x in inputs], axis=0)
        if finite.all():
            found = function(*(inputs if samples else [x[0] for x in inputs]))
        else:
            found = [np.full((len(finite), *vector.shape), np.nan) for vector in function.signature.results]
            for whole, part in zip(found, function(*(x[finite] for x in inputs)), strict=True):
                whole[finite] = part
        return tuple(x.reshape(*samples, x.shape[-1]) for x in found)
