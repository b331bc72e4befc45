# SPDX-License-Identifier: Apache-2.0
"""Compliant arms: a loop in a mode with measured motors, and a MuJoCo arm with drives that receive its efforts."""

from typing import Any

import numpy as np
from pushed_arm import PushedArm

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.trajectory import Spline

PERIOD = 1_000_000
START = 1_700_000_000_000_000_000


class Complying:
    """A loop in a mode, with measured motors."""

    def __init__(self, arm: ElasticArm, mode: str, table: Any = None, **gains: Any) -> None:
        self.arm, self.loop, self.now = arm, ControlLoop(table or RobotTable(arm)), START
        self.loop.configure(limits="ignore", mode=mode, **gains)

    def cycle(self, motors: Array | None, state: Array | None = None, step: int = PERIOD) -> int:
        """A cycle with positions and velocities of the motors (2, m), and a reference."""
        loop = self.loop
        if state is not None:
            loop.rest()
            for name, row in zip(("q", "qd", "qdd", "qddd", "qdddd"), state, strict=True):
                loop.given[name][:] = row
            loop.refer(self.now)
        loop.measure(None, motors)
        self.now += step
        return loop.update(self.now, 1e-9 * PERIOD)


class HandledArm(PushedArm):
    """Plant with drives that receive the efforts of a loop with measured motors."""

    def __init__(self, host: Complying, push: Any, robot: Any = None, **options: Any) -> None:
        super().__init__(robot or host.arm.robot.name, push, natural_frequency=0.0, **options)
        self.host = host

    def cycled(self, t: float) -> None:
        """After each cycle."""

    def handle(self, q: Array, duration: float) -> tuple[Array, Array]:
        """Positions of the links (T, n), and their last velocities, from rest at q on."""
        host, none = self.host, np.zeros(self.n)
        host.loop.restart(q)

        def command(t: float) -> tuple[Array, Array, Array]:
            host.cycle(self.measured)
            self.cycled(t)
            return host.loop.sent["drive_effort"].copy(), none, none

        rest = Spline([0.0, duration], np.stack([np.stack([q, *np.zeros((4, self.n))])] * 2, axis=1))
        _, links, _ = self.run(command, rest, duration=duration, period=1e-3)
        return links, self.state[1, : self.n]
