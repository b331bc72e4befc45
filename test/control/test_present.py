# SPDX-License-Identifier: Apache-2.0
"""Where the arm is: at the last command while commands go on, and after a pause where it is measured."""

from typing import Any

import numpy as np
import pytest

import eom_dynamics as eom
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.online_trajectory import motion_limits
from eom_dynamics.control.robot_table import RobotTable
from eom_dynamics.trajectory import through

MS, START = 1_000_000, 10**12
LIMITS = {"velocity": 2.0, "acceleration": 10.0, "jerk": 500.0, "snap": 1e5}

# Elastic, soft, with a pair of motors, and rigid.
ARMS = ("panda", "sea_planar_2r", "vsa_planar_2r", "leg")


@pytest.fixture(scope="module", params=ARMS)
def table(request: pytest.FixtureRequest) -> RobotTable:
    return RobotTable(eom.ElasticArm(eom.load_robot(request.param)))


class Host:
    """A host that plans itself, and sends a command where there is a new one, or in each cycle."""

    def __init__(self, table: RobotTable, **settings: Any) -> None:
        self.loop, self.now = ControlLoop(table), START
        self.loop.configure(safety="strict", **settings)
        self.loop.limit(motion_limits(table.arm, LIMITS), 1e-3)
        limits = [joint.limits for joint in table.arm.robot.joints]
        middle = np.array([(x.lower + x.upper) / 2 if np.isfinite(x.lower + x.upper) else 0.3 for x in limits])
        self.q = middle[: table.arm.robot.n]
        self.loop.restart(self.q)
        assert self.refer(self.q) == 0

    def refer(self, q: np.ndarray) -> int:
        self.loop.rest()
        self.loop.given["q"][:] = q
        self.loop.refer(self.now)
        return self.cycle()

    def cycle(self, *, run: bool = False) -> int:
        lib = self.loop._library
        code = int((lib.loop_run if run else lib.loop_update)(self.loop.address, self.now, 1e-3))
        self.now += MS
        return code


def test_after_a_pause_an_arm_is_where_it_is_measured(table: RobotTable) -> None:
    host = Host(table)
    loop, moved = host.loop, host.q + 0.06
    host.now += 99 * MS
    assert not loop.locate(host.now, moved) and (loop.setpoint["q"] == host.q).all()
    host.now += 10 * MS
    # Within tolerance the last command counts.
    assert not loop.locate(host.now, host.q + 0.04) and (loop.setpoint["q"] == host.q).all()
    assert not loop.locate(host.now)  # nothing is measured
    assert not loop.locate(host.now, np.full_like(moved, np.nan))
    assert (loop.setpoint["q"] == host.q).all()
    assert not loop.locate(host.now, moved) and (loop.setpoint["q"] == moved).all()
    expected = table.arm.feedforward(moved, *np.zeros((4, len(moved)))).motor_position
    np.testing.assert_allclose(loop.command["motor_position"], expected, atol=1e-9)
    loop.act("release")
    np.testing.assert_array_equal(loop.sent_last["drive_position"], loop.sent["drive_position"])


def test_a_tolerance_of_the_start_above_that_counts(table: RobotTable) -> None:
    host = Host(table, start_tolerance=0.1)
    host.now += 200 * MS
    for distance, holds in ((0.09, 0.0), (0.11, 0.11)):
        host.loop.locate(host.now, host.q + distance)
        np.testing.assert_allclose(host.loop.setpoint["q"], host.q + holds, atol=1e-12)


def test_while_commands_go_on_an_arm_that_does_not_follow_takes_no_target(table: RobotTable) -> None:
    """In each cycle of a controller: at rest for a while, amid which drives may lag behind."""
    host = Host(table)
    loop, moved = host.loop, host.q + 0.06
    rates = np.zeros_like(moved)
    for k in range(250):
        loop.measure(np.stack([moved if k > 20 else host.q, rates]))
        host.cycle(run=True)
        assert (loop.setpoint["q"] == host.q).all()
    refused = loop.number("refused")
    at = np.ascontiguousarray(host.q)
    loop._library.loop_post_target(loop.address, 0, None, 0, at.ctypes.data, None, None)
    host.cycle(run=True)
    assert loop.number("refused") == refused + 1 and not loop.number("aiming")
    loop.send_trajectory(through([0.0, 1.0], [host.q, host.q + 0.01]), host.now)
    host.cycle(run=True)
    assert loop.number("refused") == refused + 2 and not loop.number("playing")
    assert loop.locate(host.now - MS, moved)
    loop.measure(np.stack([host.q, rates]))
    loop._library.loop_post_target(loop.address, 0, None, 0, at.ctypes.data, None, None)
    host.cycle(run=True)
    assert loop.number("aiming")
    # Where all ends, drives must not go back, either.
    for _ in range(250):
        host.cycle(run=True)
    loop.locate(host.now, moved, ends=True)
    assert (loop.setpoint["q"] == moved).all()


def test_a_motion_that_stands_still_goes_on_once_the_arm_follows(table: RobotTable) -> None:
    host = Host(table)
    loop, rates = host.loop, np.zeros_like(host.q)
    end = host.q + 0.02
    loop.send_trajectory(through([0.0, 0.5], [host.q, end]), host.now)
    loop.act("pause")
    for _ in range(200):
        loop.measure(np.stack([host.q, rates]))
        host.cycle(run=True)
    loop.act("resume")
    for _ in range(200):
        loop.measure(np.stack([host.q + 0.06, rates]))
        host.cycle(run=True)
        assert loop.number("playing") and (loop.setpoint["q"] == host.q).all()
    for _ in range(2000):
        loop.measure(np.stack([host.q, rates]))
        host.cycle(run=True)
    np.testing.assert_allclose(loop.setpoint["q"], end, atol=1e-9)
    assert not loop.number("playing")


def test_motors_tell_more_than_links_which_a_push_deflects(table: RobotTable) -> None:
    host = Host(table)
    loop = host.loop
    table.prepare_drive_states()
    host.now += 200 * MS
    motors = loop.sent["drive_position"].copy()
    loop.measure(np.stack([host.q + 0.06, 0 * host.q]), np.stack([motors, 0 * motors]))
    loop._library.loop_locate(loop.address, host.now, 0)
    assert (loop.setpoint["q"] == host.q).all()
