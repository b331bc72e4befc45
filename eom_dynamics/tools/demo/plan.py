# SPDX-License-Identifier: Apache-2.0
"""The setpoints of the demo: the paper's motion and tool wrench, sampled for a robot."""

from __future__ import annotations

from contextlib import suppress
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
    """Setpoints at ``rate``, Hz, for ``duration``, s, of a motion and a tool wrench with exact derivatives."""

    robot: Robot
    rate: float
    duration: float

    @cached_property
    def arm(self) -> ElasticArm:
        """The robot with its springs and motors."""
        return ElasticArm(self.robot)

    @cached_property
    def t(self) -> Array:
        """Times (N,) of the setpoints, s."""
        return np.arange(round(self.rate * self.duration)) / self.rate

    @property
    def count(self) -> int:
        """Number of setpoints N."""
        return len(self.t)

    @property
    def motion(self) -> Cosine:
        """Joint variables (n,) as functions of time, rad or m."""
        return paper_motion(self.robot.n)

    @cached_property
    def wrench(self) -> Cosine:
        """Wrenches (6 × number of tools,) as functions of time, moment first, in the tool frames, N m and N.

        The paper's, scaled down where tension-only springs would go slack under it; StiffnessError if none fits.
        """
        whole = paper_wrench(len(self.robot.tools))
        for share in _SHARES:
            wrench = Cosine(share * whole.amplitude, whole.frequency, whole.phase)
            with suppress(*[StiffnessError] * (share > 0)):
                self.command(self.t, wrench)
                return wrench
        raise AssertionError  # the last share returns or raises

    def command(self, t: ArrayLike, wrench: Cosine | None = None) -> Feedforward:
        """Return the feedforward at times (N,), computed in this process."""
        return self.arm.feedforward(*self.motion.derivatives(t), wrench=self.wrenches(t, wrench))

    def wrenches(self, t: ArrayLike, wrench: Cosine | None = None) -> list[Array]:
        """Return tool wrenches and their two time derivatives at one time or times (N,), as for :class:`Dynamics`."""
        derivatives = (wrench or self.wrench).derivatives(t, order=2)
        return [W.reshape(*np.shape(t), *self.robot.wrench_shape) for W in derivatives]

    def arrays(self) -> dict[str, Any]:
        """Return times and setpoints as arrays, with the names that the player and ``simulate`` read."""
        return {
            "t": self.t,
            "joint_names": np.array(self.robot.joint_names),
            **dict(zip(STATE_NAMES, self.motion.derivatives(self.t), strict=True)),
            **dict(zip(WRENCH_FIELDS, self.wrench.derivatives(self.t, order=2), strict=True)),
        }
