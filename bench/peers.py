# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics of random states by the closed form and by Pinocchio, with errors against the former."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import pinocchio as pin
from harness import TimedTask, largest_difference, one_by_one
from pinocchio_model import pinocchio_model

from eom_dynamics.arrays import Array
from eom_dynamics.equations import equations_of_motion
from eom_dynamics.robot import Robot

# Candidates for the step of differences, s.
_STEPS = np.logspace(-7, -1, 37)

# Points of central differences, in steps, and their weights, by their number.
_DIFFERENCES = {2: ((-1, 1), (-1 / 2, 1 / 2)), 4: ((-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12))}


class RandomStates:
    """Reproducible random states of a robot, and their efforts by the closed form.

    Attributes:
        states: q in [-pi, pi] and four derivatives in [-2, 2], each (count, n).
        efforts: tau, taud, taudd (3, count, n).
    """

    def __init__(self, robot: Robot, count: int) -> None:
        rng = np.random.default_rng(0)
        self.states = [rng.uniform(-scale, scale, (count, robot.n)) for scale in (np.pi, 2.0, 2.0, 2.0, 2.0)]
        efforts = [equations_of_motion(robot, *x[:4]).efforts(x[4]) for x in zip(*self.states, strict=True)]
        self.efforts: Array = np.array(efforts).swapaxes(0, 1)

    @property
    def each(self) -> list[tuple[Array, ...]]:
        """Tuple (q, qd, qdd, qddd, qdddd) of each state, contiguous arrays (n,)."""
        return [tuple(x.copy() for x in state) for state in zip(*self.states, strict=True)]

    def errors(self, efforts: Sequence[Any]) -> list[float]:
        """Return the largest errors of the given tau, taud, taudd (count, n), relative to the largest entries."""
        return [largest_difference(*both) for both in zip(efforts, self.efforts, strict=False)]


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


class PinocchioDerivatives:
    """Pinocchio: tau, taud by the partial derivatives of tau, and taudd by differences of taud.

    Attributes:
        steps: of differences with the smallest error, by number of points of the central differences, 2 or 4; s.
    """

    def __init__(self, robot: Robot, states: RandomStates) -> None:
        self.model = pinocchio_model(robot)
        self.data = self.model.createData()
        self._states = states
        self.steps = {
            points: float(min(_STEPS, key=lambda step, points=points: self.error(step, points)))
            for points in _DIFFERENCES
        }

    def error(self, step: float, points: int) -> float:
        """Error of taudd by differences, relative to the largest entry."""
        motions = _motions(step, points)
        results = [self._taudd(motions, np.array(x), step, points) for x in self._states.each]
        return self._states.errors([*self._states.efforts[:2], results])[2]

    def tau_taud(self, q: Array, qd: Array, qdd: Array, qddd: Array) -> tuple[Array, Array]:
        """Exact tau and taud, by one call."""
        dq, dqd, M = pin.computeRNEADerivatives(self.model, self.data, q, qd, qdd)
        return self.data.tau.copy(), dq @ qd + dqd @ qdd + M @ qddd

    def with_differences(self, points: int) -> Callable[[Array], tuple[Array, Array, Array]]:
        """Function of a state (5, n) that returns tau, taud and, by central differences, taudd."""
        step = self.steps[points]
        motions = _motions(step, points)

        def efforts(state: Array) -> tuple[Array, Array, Array]:
            tau, taud = self.tau_taud(state[0], state[1], state[2], state[3])
            return tau, taud, self._taudd(motions, state, step, points)

        return efforts

    def _taudd(self, motions: list[Array], state: Array, step: float, points: int) -> Array:
        rates = []
        for motion in motions:
            q, qd, qdd, qddd = motion @ state
            dq, dqd, M = pin.computeRNEADerivatives(self.model, self.data, q, qd, qdd)
            rates.append(dq @ qd + dqd @ qdd + M @ qddd)
        weights = _DIFFERENCES[points][1]
        return sum(weight * rate for weight, rate in zip(weights, rates, strict=True)) / step


def _motions(step: float, points: int) -> list[Array]:
    """For each point, the matrix (4, 5) that extrapolates q … qddd of a state by its Taylor expansion."""
    return [
        np.array([[t ** (k - j) / factorial(k - j) if k >= j else 0.0 for k in range(5)] for j in range(4)])
        for t in (point * step for point in _DIFFERENCES[points][0])
    ]
