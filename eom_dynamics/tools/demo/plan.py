# SPDX-License-Identifier: Apache-2.0
"""The setpoints of the demo: the paper's motion and tool wrench, sampled for a robot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array
from ...elastic import ElasticArm, Feedforward
from ...exceptions import StiffnessError
from ...messages.fields import WRENCH_FIELDS
from ...robot import Robot
from ...states import STATE_NAMES
from ...trajectory import Cosine, paper_motion, paper_wrench

# Shares of the paper's wrench, in the order in which they are tried.
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.0)


@dataclass(frozen=True)
class Plan:
    """Setpoints at a fixed rate, sampled from a motion and a tool wrench with exact derivatives.

    Attributes:
        robot: the robot.
        rate: setpoints per second, Hz.
        duration: s; there are ``rate`` times ``duration`` setpoints, the first at time 0.
    """

    robot: Robot
    rate: float
    duration: float

    @cached_property
    def arm(self) -> ElasticArm:
        """The robot with its springs and motors."""
        return ElasticArm(self.robot)

    @property
    def count(self) -> int:
        """Number of setpoints N."""
        return round(self.rate * self.duration)

    @property
    def t(self) -> Array:
        """Times (N,) of the setpoints, s."""
        return np.arange(self.count) / self.rate

    @property
    def motion(self) -> Cosine:
        """Joint variables (n,) as functions of time, rad or m."""
        return paper_motion(self.robot.n)

    @cached_property
    def wrench(self) -> Cosine:
        """Wrenches (6 × number of tools,) as functions of time, moment first, in the tool frames, N m and N.

        The paper's, scaled down where tension-only springs would go slack under it.

        Raises:
            StiffnessError: they go slack even without a wrench.
        """
        whole = paper_wrench(len(self.robot.tools))
        for share in _SHARES:
            wrench = Cosine(share * whole.amplitude, whole.frequency, whole.phase)
            try:
                self._command(self.t, wrench)
            except StiffnessError:
                if share == _SHARES[-1]:
                    raise
            else:
                break
        return wrench

    def command(self, t: ArrayLike) -> Feedforward:
        """Return the feedforward at times (N,), computed in this process."""
        return self._command(t, self.wrench)

    def wrenches(self, t: ArrayLike) -> list[Array]:
        """Return tool wrenches and their two time derivatives at one time or times (N,), as for :class:`Dynamics`."""
        return self._wrenches(t, self.wrench)

    def _command(self, t: ArrayLike, wrench: Cosine) -> Feedforward:
        return self.arm.feedforward(*self.motion.derivatives(t), wrench=self._wrenches(t, wrench))

    def _wrenches(self, t: ArrayLike, wrench: Cosine) -> list[Array]:
        return [W.reshape(*np.shape(t), *self.robot.wrench_shape) for W in wrench.derivatives(t, order=2)]

    def arrays(self) -> dict[str, Any]:
        """Return times and setpoints as arrays, with the names that the player and ``simulate`` read."""
        return {
            "t": self.t,
            "joint_names": np.array(self.robot.joint_names),
            **dict(zip(STATE_NAMES, self.motion.derivatives(self.t), strict=True)),
            **dict(zip(WRENCH_FIELDS, self.wrench.derivatives(self.t, order=2), strict=True)),
        }
