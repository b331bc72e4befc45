# SPDX-License-Identifier: Apache-2.0
"""Available implementations of inverse dynamics: our backends, the closed form, Pinocchio."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pinocchio as pin
from pinocchio_model import pinocchio_model
from random_states import RandomStates, one_by_one
from timing import TimedTask

from eom_dynamics.arrays import Array
from eom_dynamics.codegen.backends import KERNELS
from eom_dynamics.dynamics import Dynamics
from eom_dynamics.equations import equations_of_motion
from eom_dynamics.exceptions import KernelError
from eom_dynamics.robot import Robot


@dataclass(frozen=True)
class Way:
    """Implementation to time: a function and its arguments for each state.

    Attributes:
        function: returns tau, or a tuple of tau and some of its derivatives.
        arguments: of one call for each state.
    """

    function: Callable[..., Any]
    arguments: Sequence[tuple[Any, ...]]

    @property
    def task(self) -> TimedTask:
        """Timed task: one call for each state."""
        return one_by_one(self.function, self.arguments)

    def errors(self, states: RandomStates) -> list[float]:
        """Return the errors of tau and its derivatives; see :meth:`RandomStates.errors`."""
        results: Array = np.array([np.atleast_2d(np.array(self.function(*values))) for values in self.arguments])
        return states.errors(list(results.swapaxes(0, 1)))


def own_backends(robot: Robot, states: RandomStates) -> dict[str, Way]:
    """Return the backends that are available here, by name."""
    ways = {}
    for backend in KERNELS:
        try:
            ways[backend] = Way(Dynamics(robot, backend=backend).inverse_dynamics, states.each)
        except KernelError:
            continue
    return ways


def closed_form(robot: Robot, states: RandomStates) -> Way:
    """Return the closed form of the equations of motion."""

    def efforts(*state: Array) -> tuple[Array, ...]:
        return equations_of_motion(robot, *state[:4]).efforts(state[4])

    return Way(efforts, states.each)


def pinocchio_rnea(robot: Robot, states: RandomStates) -> Way:
    """Return Pinocchio's recursive Newton-Euler algorithm, which computes tau."""
    model = pinocchio_model(robot)
    data = model.createData()
    return Way(pin.rnea, [(model, data, *state[:3]) for state in states.each])
