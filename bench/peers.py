# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics of random states by the closed form and by Pinocchio, with errors relative to the closed form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import factorial
from typing import Any

import numpy as np
import pinocchio as pin
from harness import TimedTask, largest_difference, one_by_one
from pinocchio_model import pinocchio_model

from eom_dynamics.arrays import Array
from eom_dynamics.equations import equations_of_motion
from eom_dynamics.robot import Robot

_STEPS = np.logspace(-7, -1, 37)  # candidates for the step of differences, s

# Points of central differences, in steps, and their weights, by their number.
_DIFFERENCES = {2: ((-1, 1), (-1 / 2, 1 / 2)), 4: ((-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12))}


class RandomStates:
    """Reproducible random states of a robot, and their efforts tau, taud, taudd (3, count, n) by the closed form.

    States are q in [-pi, pi] and four derivatives in [-2, 2], each (count, n), or contiguous arrays (n,) of each state.
    """

    def __init__(self, robot: Robot, count: int) -> None:
        rng = np.random.default_rng(0)
        self.states = [rng.uniform(-scale, scale, (count, robot.n)) for scale in (np.pi, 2.0, 2.0, 2.0, 2.0)]
        self.each = [tuple(x.copy() for x in state) for state in zip(*self.states, strict=True)]
        self.efforts: Array = np.array([in_closed_form(robot, *state) for state in self.each]).swapaxes(0, 1)

    def errors(self, efforts: Sequence[Any]) -> list[float]:
        """Largest errors of tau, taud, taudd (count, n), relative to the largest entries."""
        return [largest_difference(*both) for both in zip(efforts, self.efforts, strict=False)]


@dataclass(frozen=True)
class Way:
    """Implementation to time: a function, and its arguments for each state; it returns tau and some derivatives."""

    function: Callable[..., Any]
    arguments: Sequence[tuple[Any, ...]]

    @property
    def task(self) -> TimedTask:
        """Timed task: one call for each state."""
        return one_by_one(self.function, self.arguments)

    def errors(self, states: RandomStates) -> list[float]:
        """Errors of tau and its derivatives; see :meth:`RandomStates.errors`."""
        results: Array = np.array([np.atleast_2d(np.array(self.function(*values))) for values in self.arguments])
        return states.errors(list(results.swapaxes(0, 1)))


def in_closed_form(robot: Robot, *state: Array) -> tuple[Array, ...]:
    """tau, taud and taudd of a state by the closed form of the equations of motion."""
    return equations_of_motion(robot, *state[:4]).efforts(state[4])


def pinocchio_rnea(robot: Robot, states: RandomStates) -> Way:
    """Pinocchio's recursive Newton-Euler algorithm, which computes tau."""
    model = pinocchio_model(robot)
    data = model.createData()
    return Way(pin.rnea, [(model, data, *state[:3]) for state in states.each])


class PinocchioDerivatives:
    """Pinocchio: tau, taud by the partial derivatives of tau, and taudd by differences of taud.

    Steps of differences, s, have the smallest error, by number of points of the central differences, 2 or 4.
    """

    def __init__(self, robot: Robot, states: RandomStates) -> None:
        self.model = pinocchio_model(robot)
        self.data = self.model.createData()
        self._states = states
        self.steps = {points: float(min(_STEPS, key=partial(self.error, points=points))) for points in _DIFFERENCES}

    def error(self, step: float, points: int) -> float:
        """Error of taudd by differences, relative to the largest entry."""
        taudd = self._differences(step, points)
        results = [taudd(np.array(x)) for x in self._states.each]
        return self._states.errors([*self._states.efforts[:2], results])[2]

    def tau_taud(self, q: Array, qd: Array, qdd: Array, qddd: Array) -> tuple[Array, Array]:
        """Exact tau and taud, by one call."""
        dq, dqd, M = pin.computeRNEADerivatives(self.model, self.data, q, qd, qdd)
        return self.data.tau.copy(), dq @ qd + dqd @ qdd + M @ qddd

    def with_differences(self, points: int) -> Callable[[Array], tuple[Array, Array, Array]]:
        """Function of a state (5, n) that returns tau, taud and, by central differences, taudd."""
        taudd = self._differences(self.steps[points], points)
        return lambda state: (*self.tau_taud(*state[:4]), taudd(state))

    def _differences(self, step: float, points: int) -> Callable[[Array], Array]:
        """Function of a state (5, n): taudd by differences of taud along the motion of its Taylor expansion."""
        places, weights = _DIFFERENCES[points]
        motions = [
            np.array([[t ** (k - j) / factorial(k - j) if k >= j else 0.0 for k in range(5)] for j in range(4)])
            for t in (place * step for place in places)
        ]

        def taudd(state: Array) -> Array:
            rates = []
            for motion in motions:
                q, qd, qdd, qddd = motion @ state
                dq, dqd, M = pin.computeRNEADerivatives(self.model, self.data, q, qd, qdd)
                rates.append(dq @ qd + dqd @ qdd + M @ qddd)
            return sum(weight * rate for weight, rate in zip(weights, rates, strict=True)) / step

        return taudd
