# SPDX-License-Identifier: Apache-2.0
"""An arm that has been stopped, by a loop in Python."""

import numpy as np
from numpy.typing import ArrayLike

from eom_dynamics import ElasticArm
from eom_dynamics.arrays import STATE_NAMES
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.control.settings import Status

PERIOD, START = 1_000_000, 10**18


def stopped(arm: ElasticArm, state: ArrayLike, duration: float) -> ControlLoop:
    """Loop with an arm at rest after a stop from a setpoint (5, n) within a time, s, as limits allow.

    It rests within that time and a cycle, no further than its velocity and acceleration lead, and does not go back.
    """
    state = np.asarray(state, dtype=float)
    loop, positions = ControlLoop(RobotTable(arm)), [state[0]]
    loop.configure(safety="permissive", stop_duration=duration)
    loop.rest()
    for name, row in zip(STATE_NAMES, state, strict=True):
        loop.given[name][:] = row
    loop.refer(START)
    assert loop.update(START) <= 0
    loop.act("stop")
    while loop.status is not Status.HELD:
        assert loop.update(START + len(positions) * PERIOD) <= 0
        assert loop.status in (Status.STOPPING, Status.HELD) and len(positions) <= 1e3 * duration + 2
        positions.append(loop.setpoint["q"].copy())
    assert not any(loop.setpoint[name].any() for name in STATE_NAMES[1:])
    assert (np.diff(positions, axis=0) * np.sign(state[1]) > -1e-12).all()
    assert (np.abs(positions[-1] - state[0]) <= duration * (np.abs(state[1]) + duration / 4 * np.abs(state[2]))).all()
    return loop
