# SPDX-License-Identifier: Apache-2.0
"""What the demo plays: a robot, the paper's motion and wrench, a rate and a duration."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..actuators import ElasticArm
from ..exceptions import StiffnessError
from ..robot import Robot
from ..trajectory import Cosine, paper_motion, paper_wrench

Array = NDArray[np.float64]

# Of the paper's wrench, the most that an arm can do.
_SHARES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.0)


@dataclass(frozen=True)
class Plan:
    """Setpoints at a fixed rate, sampled from a motion and a tool wrench known with all their derivatives.

    Attributes:
        robot: the robot that the answers are held against.
        rate: setpoints a second, Hz.
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
        """Joint variables (n,) in time, rad or m."""
        return paper_motion(self.robot.n)

    @cached_property
    def wrench(self) -> Cosine:
        """Wrenches (6 × number of tools,) in time, moment first, in the tools' frames, N m and N.

        The paper's, or less of it where springs that only pull would go slack under it.

        Raises:
            StiffnessError: they go slack without a wrench too.
        """
        whole, motion = paper_wrench(len(self.robot.tools)), self.motion.derivatives(self.t)
        for share in _SHARES:
            wrench = Cosine(share * whole.amplitude, whole.frequency, whole.phase)
            rates = [W.reshape(-1, *self.robot.wrench_shape) for W in wrench.derivatives(self.t, order=2)]
            try:
                self.arm.feedforward(*motion, wrench=rates)
            except StiffnessError:
                if share == _SHARES[-1]:
                    raise
            else:
                break
        return wrench
