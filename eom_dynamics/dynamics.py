# SPDX-License-Identifier: Apache-2.0
"""Inverse dynamics with two time derivatives, for one state or many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .equations import equations_of_motion
from .robot import Robot
from .states import joint_states, wrenches

Array = NDArray[np.float64]


class Dynamics:
    """Inverse dynamics of one robot.

    Attributes:
        robot: the robot.
        backend: what computes: ``numpy``.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.backend = "numpy"

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        qddd: ArrayLike,
        qdddd: ArrayLike,
        *,
        wrench: Sequence[ArrayLike] = (),
    ) -> tuple[Array, Array, Array]:
        """Joint efforts tau and their time derivatives taud, taudd.

        Args:
            q, qd, qdd, qddd, qdddd: joint variables and their time derivatives, each (n,) or (N, n); rad or
                m, and per s, s², s³, s⁴.
            wrench: (W, Wd, Wdd), the wrench that the robot exerts on its surroundings at the tool body,
                moment first, in the tool body's frame, N m and N, with its time derivatives: each (6,) or
                (N, 6); what is not given is zero.

        Returns:
            tau, taud, taudd: each (n,) or (N, n); N m or N, and per s, s².

        Raises:
            StateError: an argument has the wrong shape or is not finite.
        """
        states = joint_states(self.robot.n, q, qd, qdd, qddd, qdddd)
        if states[0].ndim == 1:
            return self._one(states, wrench)
        tool = wrenches(wrench, 3, samples=len(states[0]))
        efforts: list[Any] = [self._one([x[i] for x in states], [W[i] for W in tool]) for i in range(len(states[0]))]
        tau, taud, taudd = np.asarray(efforts).reshape(-1, 3, self.robot.n).swapaxes(0, 1)
        return tau, taud, taudd

    def _one(self, state: Sequence[Array], wrench: Sequence[ArrayLike]) -> tuple[Array, Array, Array]:
        tau, taud, taudd = equations_of_motion(self.robot, *state[:4], wrench=wrench).efforts(state[4])
        return tau, taud, taudd
