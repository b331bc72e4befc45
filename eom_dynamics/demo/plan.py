# SPDX-License-Identifier: Apache-2.0
"""What the demo plays: a robot, the paper's motion and wrench, a rate and a duration."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..robot import Robot
from ..trajectory import Cosine, paper_motion, paper_wrench

Array = NDArray[np.float64]


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

    @property
    def wrench(self) -> Cosine:
        """Wrenches (6 × number of tools,) in time, moment first, in the tools' frames, N m and N."""
        return paper_wrench(len(self.robot.tools))
