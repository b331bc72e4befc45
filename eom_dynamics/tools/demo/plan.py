# SPDX-License-Identifier: Apache-2.0
"""Setpoints of the demo, and every number of the answers by two computations of this process.

One is the feedforward that the node computes, too. The other, the closed form of the equations of motion and the laws
of linear springs, shares no code with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays import STATE_NAMES
from ...control.fields import COMMAND_FIELDS, WRENCH_FIELDS
from ...elastic import ElasticArm
from ...equations import equations_of_motion
from ...robot import load_robot
from ...trajectory import paper_motion, paper_wrench

# The paper's motion is up to 1.61 times as fast as the robot may move.
_SLOWED = 1.7

_SAMPLES = 250  # largest number of setpoints with the closed form, which takes a millisecond each


class Plan:
    """Setpoints of the paper's motion, slowed down, and tool wrench for the paper's robot.

    Attributes:
        robot: the iiwa, on linear springs.
        rate: of the setpoints, Hz.
        t: their times (N,), s.
        states: q … qdddd (5, N, n), rad and per s … s⁴.
        wrench: wrenches (3, N, 6) and two derivatives, moment first, in the frame of the tool, N m and N.
        feedforward: fields of the commands (N, n).
        rows: indices (K,) of setpoints with the closed form.
        closed_form: fields of the commands (K, n) at these.
    """

    def __init__(self, rate: float, duration: float) -> None:
        """Sample the motion for ``duration`` s."""
        self.robot, self.rate, self.t = load_robot("iiwa"), rate, np.arange(round(rate * duration)) / rate
        motion = enumerate(paper_motion().derivatives(self.t / _SLOWED))
        self.states = np.stack([x / _SLOWED**k for k, x in motion])
        self.wrench = np.stack(paper_wrench().derivatives(self.t, order=2))
        command = ElasticArm(self.robot).feedforward(*self.states, wrench=tuple(self.wrench))
        self.feedforward = dict(zip(COMMAND_FIELDS, command, strict=True))
        self.rows = np.unique(np.linspace(0, len(self.t) - 1, _SAMPLES).round().astype(int))
        efforts = np.swapaxes([self._efforts(row) for row in self.rows], 0, 1)
        motors = self.states[:3, self.rows] + efforts / self.robot.stiffness
        known = (*efforts, *motors, efforts[0] + self.robot.rotor_inertia * motors[2])
        self.closed_form = dict(zip(COMMAND_FIELDS, known, strict=True))

    def _efforts(self, row: int) -> Any:
        """tau, taud, taudd (3, n) of a setpoint."""
        *motion, qdddd = self.states[:, row]
        return equations_of_motion(self.robot, *motion, wrench=tuple(self.wrench[:, row])).efforts(qdddd)

    def arrays(self) -> dict[str, Any]:
        """Return times and setpoints as arrays, with the names that the player reads."""
        names, values = (*STATE_NAMES, *WRENCH_FIELDS), (*self.states, *self.wrench)
        return {"t": self.t, "joint_names": self.robot.joint_names, **dict(zip(names, values, strict=True))}
