# SPDX-License-Identifier: Apache-2.0
"""Modes impedance and gravity_compensation: against their law's reference, and on arms of MuJoCo that are pushed."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compilation import COMPILERS
from exported import robot
from exported_loop import ExportedTable
from reference.impedance import Gains, Impedance
from springs import EVERY_KIND, with_springs

from eom_dynamics import ElasticArm, Robot, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.control_loop import ControlLoop, Refusal
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import MODES
from eom_dynamics.elastic.motor_programs import SETTLED

pytestmark = pytest.mark.skipif(not COMPILERS, reason="no C compiler is installed")

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


ROBOTS: dict[str, Callable[[], Robot]] = {
    kind: lambda spring=spring: with_springs(load_robot("planar_2r"), spring, rotor_inertia=0.1)
    for kind, spring in EVERY_KIND.items()
} | {name: lambda name=name: robot(name) for name in ("iiwa", "sea_planar_2r", "scissors", "carried", "shared")}


def motors_near(arm: ElasticArm, state: Array, away: float, seed: int = 0, **given: Any) -> Array:
    """Positions and velocities of the motors near those of a reference."""
    y, random = arm.feedforward(*state, **given), np.random.default_rng(seed)
    m = len(arm.motor_names)
    return np.stack([y.motor_position, y.motor_velocity]) + away * random.uniform(-1, 1, (2, m)) * [[1.0], [0.3]]


@pytest.mark.parametrize("name", ROBOTS)
def test_loop_is_the_law(name: str) -> None:
    """Efforts in both modes, with springs of joints and of tools, are those of the law by a root finder."""
    arm, random = ElasticArm(ROBOTS[name]()), np.random.default_rng(3)
    n, side = arm.robot.n, arm.side
    state = random.uniform(-0.5, 0.5, (5, n)) * np.array([[1.0], [0.3], [1.0], [5.0], [20.0]])
    settled = {"friction_state": np.full(len(side.motor_joint), SETTLED)} if side.presliding.any() else {}
    motors, still = motors_near(arm, state, 0.004, **settled), state * np.eye(5)[:, :1]
    for gains in (Gains(20.0), Gains(4.0, (60.0, 90.0, 120.0, 6.0, 9.0, 12.0), 0.3)):
        law, free = Impedance(arm, gains), name == "carried"
        for mode in MODES[1 + free :]:
            free, host = mode == MODES[2], Complying(arm, mode, **gains._asdict())
            host.loop.restart(state[0])
            for _ in range(20):  # beyond the blend of the mode
                host.cycle(motors, None if free else state, 20 * PERIOD)
            reference, inertia = still if free else state, law.inertia(state[0], **settled)
            expected = law.comply(reference, motors, state[0], free=free, inertia=inertia, **settled)
            counts = np.bincount(side.motor_joint)[side.motor_joint]
            damping = side.motor_loads(list(expected.damping[side.motor_joint] / counts))
            wants = {"sent_effort": expected.tau + expected.damping}
            if not settled:  # the loop has the state of friction of the reference
                wants["drive_effort"] = expected.motor_effort + damping
            for vector, wanted in wants.items():
                found = host.loop.sent[vector]
                np.testing.assert_allclose(found, wanted, atol=1e-6 * (1 + np.abs(wanted).max()), err_msg=vector)
            assert host.loop.number("mode") == MODES.index(mode) and host.loop.number("unmeasured") == 0
