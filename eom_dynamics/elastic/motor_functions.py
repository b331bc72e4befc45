# SPDX-License-Identifier: Apache-2.0
"""Compiled programs of the motor side of an arm."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..codegen.functions import CompiledFunction, compiled_program
from ..codegen.program import Program
from ..states import all_finite
from . import motor_programs
from .motor_side import MotorSide

_SELDOM = ("energies",)
"""Programs that are called for whole motions, and not worth a compiler."""


class MotorFunctions:
    """Motor-side programs of :mod:`.motor_programs` by name, over arrays of states, each compiled at first use."""

    def __init__(self, side: MotorSide, backend: str) -> None:
        self._side, self._backend = side, backend
        self._kept: dict[tuple[Any, ...], CompiledFunction] = {}
        self._calls: dict[tuple[Any, ...], Callable[..., tuple[Array, ...]]] = {}

    def program(self, name: str, **details: Any) -> Program:
        """A program of the motor side."""
        return getattr(motor_programs, name)(self._side, **details)

    def function(self, name: str, **details: Any) -> CompiledFunction:
        """Compiled function of a program."""
        key = (name, *details.items())
        if key not in self._kept:
            backend = "numpy" if name in _SELDOM else self._backend
            self._kept[key] = compiled_program(self.program(name, **details), backend)
        return self._kept[key]

    def __call__(self, name: str, *arrays: Array, **details: Any) -> tuple[Array, ...]:
        """Results (…, size) of a program for the arrays (…, size) of its inputs; NaN where one is not finite."""
        return self.call(name, **details)(*arrays)

    def call(self, name: str, **details: Any) -> Callable[..., tuple[Array, ...]]:
        """A compiled program as a function of arrays."""
        key = (name, *details.items())
        call = self._calls.get(key)
        if call is None:
            function = self.function(name, **details)
            call = self._calls[key] = function.state_call(partial(_of_any_states, function))
        return call


def _of_any_states(function: CompiledFunction, *arrays: Array) -> tuple[Array, ...]:
    """Results for arrays with any leading axes."""
    samples = np.broadcast_shapes(*(np.shape(x)[:-1] for x in arrays))
    inputs = [
        (x if x.shape[:-1] == samples else np.broadcast_to(x, (*samples, x.shape[-1]))).reshape(-1, x.shape[-1])
        for x in arrays
    ]
    if all_finite(inputs):
        found = function(*(inputs if samples else [x[0] for x in inputs]))
    else:
        finite = np.all([np.isfinite(x).all(axis=-1) for x in inputs], axis=0)
        found = [np.full((len(finite), *vector.shape), np.nan) for vector in function.signature.results]
        for whole, part in zip(found, function(*(x[finite] for x in inputs)), strict=True):
            whole[finite] = part
    return tuple(x.reshape(*samples, x.shape[-1]) for x in found)
