# SPDX-License-Identifier: Apache-2.0
"""Random states for benchmarks, and errors of results against the closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from timing import TimedTask

from eom_dynamics.arrays import Array
from eom_dynamics.equations import equations_of_motion
from eom_dynamics.robot import Robot


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
        return [
            float(np.max(np.abs(np.asarray(actual) - desired)) / np.max(np.abs(desired)))
            for actual, desired in zip(efforts, self.efforts, strict=False)
        ]


def one_by_one(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> TimedTask:
    """Return the task of calling a function once for each tuple of arguments."""

    def run() -> None:
        for values in arguments:
            function(*values)

    return TimedTask(run, len(arguments))
