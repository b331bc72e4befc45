# SPDX-License-Identifier: Apache-2.0
"""Pinocchio: tau, taud by the partial derivatives of tau, taudd by differences of taud; and identification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial

import numpy as np
import pinocchio as pin
from pinocchio_model import pinocchio_model
from random_states import RandomStates

from eom_dynamics import Robot
from eom_dynamics.arrays import Array
from eom_dynamics.identification.links.filtering import FilteredSamples
from eom_dynamics.identification.sampling import root_mean_square

# Candidates for the step of differences, s.
STEPS = np.logspace(-7, -1, 37)

# Iterations of the weights of joints.
_ITERATIONS = 5


class PinocchioPeer:
    """Model of a robot, and the steps of differences with the smallest error.

    Attributes:
        steps: by number of points of the central differences, 2 or 4; s.
    """

    def __init__(self, robot: Robot, states: RandomStates) -> None:
        self.model = pinocchio_model(robot)
        self.data = self.model.createData()
        self._states = states
        self.steps = {
            points: float(min(STEPS, key=lambda step, points=points: self.error(step, points)))
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


# Points, in steps, and their weights.
_DIFFERENCES = {2: ((-1, 1), (-1 / 2, 1 / 2)), 4: ((-2, -1, 1, 2), (1 / 12, -8 / 12, 8 / 12, -1 / 12))}


def _motions(step: float, points: int) -> list[Array]:
    """For each point, the matrix (4, 5) that extrapolates q … qddd of a state by its Taylor expansion."""
    times = [point * step for point in _DIFFERENCES[points][0]]
    return [
        np.array([[t ** (k - j) / factorial(k - j) if k >= j else 0.0 for k in range(5)] for j in range(4)])
        for t in times
    ]


def least_squares(
    robot: Robot,
    train: Sequence[FilteredSamples],
    judge: Sequence[FilteredSamples],
    bases: Callable[[FilteredSamples], Sequence[Array]],
) -> Array:
    """RMS residual (n,) of least squares by Pinocchio's regressor and terms of the joints, weighted by joint.

    Args:
        robot: the robot.
        train: samples to identify from.
        judge: samples whose efforts are predicted.
        bases: of the terms, each (N, n).
    """
    model = pinocchio_model(robot)
    data = model.createData()

    def rows(samples: FilteredSamples) -> Array:
        states = zip(samples.q, samples.qd, samples.qdd, strict=True)
        Y = np.array([pin.computeJointTorqueRegressor(model, data, *state).copy() for state in states])
        own = [basis[..., np.newaxis] * np.eye(robot.n) for basis in bases(samples)]
        return np.concatenate([Y, *own], axis=-1)

    Y, tau, used = (np.concatenate(parts) for parts in zip(*((rows(s), s.tau, s.used) for s in train), strict=True))
    weights = np.ones(robot.n)
    for _ in range(_ITERATIONS):
        x = np.linalg.lstsq((Y * weights[:, np.newaxis])[used], (tau * weights)[used], rcond=1e-8)[0]
        residual = np.where(used, Y @ x - tau, 0.0)
        weights = 1 / np.maximum(np.sqrt(np.sum(residual**2, axis=0) / used.sum(axis=0)), 1e-9)
    return root_mean_square(np.concatenate([rows(s) @ x - s.tau for s in judge]))
