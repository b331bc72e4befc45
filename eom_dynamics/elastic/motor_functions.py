# SPDX-License-Identifier: Apache-2.0
"""Compiled programs of an arm's motor side: springs, transmission, gears and motors, for arrays of states."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..arguments import all_finite
from ..arrays import Array
from ..codegen.functions import CompiledFunction, compiled_program
from ..codegen.program import Program
from ..exceptions import StateError, StiffnessError
from . import motor_programs as programs
from .motor_side import MotorSide

_SELDOM = ("energies",)
"""Programs called for whole motions only, not worth compilation."""


class MotorFunctions:
    """Motor-side programs of :mod:`.motor_programs` by name, over arrays of states, each compiled at first use.

    Programs of the springs of n joints, driven by m >= n motors, are also methods with defaults.

    Attributes:
        side: the motor side.
    """

    def __init__(self, side: MotorSide, backend: str) -> None:
        self.side, self._backend = side, backend
        self._any_variable = bool(side.variable.any())
        self._functions: dict[tuple[Any, ...], CompiledFunction] = {}
        self._calls: dict[tuple[Any, ...], Callable[..., tuple[Array, ...]]] = {}

    def program(self, name: str, **details: Any) -> Program:
        """Program of the motor side."""
        return getattr(programs, name)(self.side, **details)

    def function(self, name: str, **details: Any) -> CompiledFunction:
        """Compiled function of a program."""
        key = (name, *details.items())
        if key not in self._functions:
            backend = "numpy" if name in _SELDOM else self._backend
            self._functions[key] = compiled_program(self.program(name, **details), backend)
        return self._functions[key]

    def __call__(self, name: str, *arrays: Array, **details: Any) -> tuple[Array, ...]:
        """Results (…, size) of a program for its inputs (…, size); NaN for an input that is not finite."""
        return self.call(name, **details)(*arrays)

    def call(self, name: str, **details: Any) -> Callable[..., tuple[Array, ...]]:
        """Compiled program as a function of arrays."""
        key = (name, *details.items())
        call = self._calls.get(key)
        if call is None:
            function = self.function(name, **details)
            call = self._calls[key] = function.state_call(partial(_of_any_states, function))
        return call

    def commands(self, stiffness: Sequence[Array], state: Array | None, samples: tuple[int, ...]) -> list[Array]:
        """Commanded stiffness and state of damped springs, as far as they are inputs of the motor side."""
        values = self.commanded(stiffness, samples) if self._any_variable else []
        if self.side.damped.any():
            settled = np.full(len(self.side.springs), programs.SETTLED)
            values.append(np.broadcast_to(settled if state is None else state, (*samples, len(settled))))
        return values

    def refuse(self, tau: Array, stiffness: Sequence[Array], results: Array) -> None:
        """Raise StiffnessError if results (…, m) under efforts (…, n) are NaN because a stiffness is out of range.

        Raises:
            StiffnessError: the message names the joint and its range.
        """
        if not self._any_variable or not np.isnan(results).any():
            return
        k = self.commanded(stiffness, tau.shape[:-1])[0]
        for joint, spring in enumerate(self.side.springs):
            if not spring.is_variable:
                continue
            row = np.atleast_1d(k[..., joint])
            low, high = (np.broadcast_to(x, row.shape) for x in spring.stiffness_range(np.atleast_1d(tau[..., joint])))
            outside = ~((row >= low) & (row <= high))
            if outside.any():
                k0, least, most = (float(x[np.argmax(outside)]) for x in (row, low, high))
                name = self.side.joint_names[joint]
                if most == np.inf:
                    raise StiffnessError(
                        f"{name}: stiffness {k0:g} is below {least:g}, the minimum without a slack spring at "
                        "this effort"
                    )
                raise StiffnessError(f"{name}: stiffness {k0:g} is outside the actuator's range {least:g} … {most:g}")

    def require_efforts(self, *, rigid_too: bool) -> None:
        """Raise an error if deflections do not determine the efforts of springs and their rates."""
        side = self.side
        unknown = side.damped if rigid_too else side.damped | side.rigid
        if unknown.any():
            joint = int(np.argmax(unknown))
            raise StateError(
                f"{side.joint_names[joint]}: the deflection of a {side.springs[joint].kind} joint does not determine "
                "the effort and its rate; give them"
            )

    def commanded(self, stiffness: Sequence[Array], samples: tuple[int, ...], orders: int = 3) -> list[Array]:
        """Commanded stiffness k, kd, …, each (n,) or (N, n); by default nominal and constant."""
        shape = (*samples, len(self.side.springs))
        levels = [np.where(self.side.variable, x, 0.0) for x in stiffness[:orders]] or [self.side.nominal_stiffness]
        zero = np.zeros(shape)
        return [np.broadcast_to(x, shape) for x in levels] + [zero] * (orders - len(levels))

    def loads(self, delta: Array, deltad: Array) -> Array:
        """Efforts of the springs at the motors (…, m), N m or N, at nominal stiffness; zero at rigid joints.

        From deflections and their rates, each (…, m).
        """
        return self("loads", delta, deltad, *self._of_one(None, delta.shape[:-1]))[0]

    def plant_efforts(self, *state: Array, stiffness: Array | None = None) -> tuple[Array, ...]:
        """Efforts on links (…, n) and of motors (…, m), and dissipated power (…, 1), see :func:`.plant_efforts`.

        Args:
            state: q, qd (…, n) and motor positions and velocities (…, m).
            stiffness: (n,) commanded stiffness, N m/rad or N/m; by default nominal.
        """
        return self("plant_efforts", *state, *self._of_one(stiffness, state[0].shape[:-1]))

    def tangents(self, delta: Array) -> tuple[Array, Array]:
        """Derivatives of :meth:`loads` with respect to delta and to deltad, each (…, m, m)."""
        m = delta.shape[-1]
        entries = self("tangents", delta, np.zeros_like(delta), *self._of_one(None, delta.shape[:-1]))
        slope, damping = (x.reshape(*delta.shape[:-1], m, m) for x in entries)
        return slope, damping

    @cached_property
    def is_linear(self) -> bool:
        """True if all springs are linear: :meth:`tangents` are constant."""
        return not programs.tangents(self.side).nodes

    def energy(self, delta: Array) -> Array:
        """Energy of all springs (…), J, at nominal stiffness."""
        return self("energies", delta)[0][..., 0]

    def stretch(self, delta: Array) -> Array:
        """Elongation of tension-only springs (…, m), rad or m, negative where slack; infinite for other springs."""
        return self("energies", delta)[1]

    def filtered(
        self, start: Array, before: Sequence[Array] | Array, after: Sequence[Array] | Array, step: float
    ) -> Array:
        """Deflections of damped springs after a step, zero at other joints; see :func:`.motor_programs.filtered`.

        Args:
            start: deflections at the start (…, n).
            before, after: tau, taud, taudd at the start and at the end, each (…, n).
            step: time step, s.
        """
        samples = start.shape[:-1]
        return self("filtered", start, *before, *after, np.full((*samples, 1), step))[0]

    def settled(self, efforts: Sequence[Array] | Array) -> Array:
        """Settled deflections (…, n) of damped springs under tau, taud, taudd (…, n); zero at other joints."""
        return self.filtered(np.zeros_like(efforts[0]), efforts, efforts, -1.0)

    def _of_one(self, stiffness: Array | None, samples: tuple[int, ...]) -> list[Array]:
        """Stiffness as an input for all states."""
        return self.commanded([] if stiffness is None else [stiffness], samples, 1) if self._any_variable else []


def _of_any_states(function: CompiledFunction, *arrays: Array) -> tuple[Array, ...]:
    """Results for arrays with any leading axes."""
    samples = arrays[0].shape[:-1]
    if any(x.shape[:-1] != samples for x in arrays):
        samples = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
    inputs = [
        (x if x.shape[:-1] == samples else np.broadcast_to(x, (*samples, x.shape[-1]))).reshape(-1, x.shape[-1])
        for x in arrays
    ]
    if all_finite(*inputs):
        results = function(*(inputs if samples else [x[0] for x in inputs]))
    else:
        finite = np.all([np.isfinite(x).all(axis=-1) for x in inputs], axis=0)
        results = [np.full((len(finite), *vector.shape), np.nan) for vector in function.signature.results]
        for whole, part in zip(results, function(*(x[finite] for x in inputs)), strict=True):
            whole[finite] = part
    return tuple(x.reshape(*samples, x.shape[-1]) for x in results)
