# SPDX-License-Identifier: Apache-2.0
"""Measured positions of the joints, from one publisher or several, and joint tolerances."""

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from exported import robot
from refusals import refusals

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.measured import (
    JointSignals,
    JointStates,
    JointTolerances,
    MeasuredMotion,
    measured_joints,
    positions_of,
)
from eom_dynamics.control.robot_table import RobotTable


def state(velocity=(), **positions):
    return SimpleNamespace(name=list(positions), position=list(positions.values()), velocity=velocity)


def test_positions_may_come_in_parts_and_with_others():
    known = measured_joints(state(b=2.0, finger=0.1), 1)
    with pytest.raises(StateError, match="joint_states: the position of 'a' is not known yet"):
        positions_of(known, ["a", "b"])
    known |= measured_joints(state(a=1.0, velocity=[0.5]), 2)
    np.testing.assert_array_equal(positions_of(known, ["a", "b"]), [1.0, 2.0])
    assert known["a"] == (1.0, 0.5, 2) and np.isnan(known["b"].velocity)


@pytest.mark.parametrize("position", [[np.nan], [np.inf], []])
def test_what_is_no_position_is_left_out(position):
    assert measured_joints(SimpleNamespace(name=["a"], position=position, velocity=[]), 1) == {}


def taken(*messages: tuple[float, float]) -> float:
    """Where a joint is after messages at times, ms."""
    states = JointStates()
    for time, position in messages:
        states.take(state(a=position), round(1e6 * time))
    return states.joints["a"].position


def test_wrong_sample_does_not_count() -> None:
    assert taken((0, 0.5), (10, 0.9), (20, 0.5)) == taken((0, 0.5), (10, 0.9)) == 0.5
    assert taken((0, 0.5), (10, 0.9), (20, 7.0), (30, 0.5)) == 0.5


def test_arm_that_was_moved_is_there_once_two_messages_agree() -> None:
    assert taken((0, 0.5), (10, 0.9), (20, 0.91)) == 0.91
    assert taken((0, 0.5), (200, 0.9)) == 0.9  # of the time between, nothing is known


@pytest.mark.parametrize("period", [1, 10, 50, 90])
def test_fast_motion_does_count(period: int) -> None:
    assert taken(*((period * k, 6e-3 * period * k) for k in range(20))) == pytest.approx(6e-3 * period * 19)


NAMES = ("a", "b")


def entry(name: str, position: float = 0.0, velocity: float = 0.0, acceleration: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(name=name, position=position, velocity=velocity, acceleration=acceleration)


def test_zero_and_negative_values_are_no_tolerance() -> None:
    found = JointTolerances.read("path_tolerance", [entry("b", 0.1, -1.0)], NAMES)
    np.testing.assert_array_equal(found.allowed, [[np.inf, 0.1], [np.inf, np.inf], [np.inf, np.inf]])
    assert found.any and not JointTolerances.read("path_tolerance", [], NAMES).any


test_entries_that_are_refused = refusals(
    StateError,
    (entry("c"), r"path_tolerance\[0\]: the robot has no joint 'c'"),
    (entry("a", velocity=np.nan), r"path_tolerance\[0\]\.velocity \(joint 'a'\) is nan"),
    call=lambda wrong: JointTolerances.read("path_tolerance", [wrong], NAMES),
)


def test_the_worst_violation_is_described() -> None:
    found = JointTolerances.read("goal_tolerance", [entry("a", 0.1), entry("b", 0.1, 0.5)], NAMES)
    unknown = np.full(2, np.nan)
    assert found.violation([np.array([0.1, -0.1]), np.array([9.0, 0.5])]) == ""
    assert found.violation([np.array([0.2, -0.3]), unknown]) == "position of b deviates by 0.3, tolerance 0.1"
    assert found.violation([np.array([0.2, 0.0]), np.array([0.0, 2.0])]) == "velocity of b deviates by 2, tolerance 0.5"


def signals(names: list[str], position: list[float], **others: list[float]) -> SimpleNamespace:
    fields = {"velocity": [0.0] * len(names), "effort": []} | others
    return SimpleNamespace(name=names, position=position, **fields)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (signals(["a", "b"], [0.0]), "position has 1 entries, must have 2"),
        (signals(["a", "b"], [0.0, 0.0], velocity=[]), "velocity has 0 entries, must have 2"),
        (signals(["a", "b"], [0.0, np.nan]), "position of 'b' is nan"),
        (signals(["a", "a"], [0.0, 0.0]), "a name is listed twice"),
    ],
)
def test_a_wrong_message_is_named_and_has_no_effect(message: SimpleNamespace, reason: str) -> None:
    known = JointSignals(NAMES)
    with pytest.raises(StateError, match=reason):
        known.update(message, 1)
    assert known.unknown == ["a", "b"]
    assert known.update(signals(["b", "finger", "a"], [1.0, 2.0, 3.0]), 1)
    with pytest.raises(StateError, match="repeats or goes back"):
        known.update(signals(["b"], [1.0]), 1)
    assert not known.unknown and known.values[0].tolist() == [3.0, 1.0]


def test_samples_are_those_of_drives_at_the_older_time() -> None:
    """Motors in drive units, 0.4 ms newer than the links; the loop has SI units, by drive_state."""
    loop = ControlLoop(RobotTable(ElasticArm(robot("drives"))))
    arm, motion = loop.arm, MeasuredMotion(loop, links=True, motors=True)
    n, m = arm.robot.n, len(arm.motor_names)
    for k in range(3):
        time = (10 + k) * 1_000_000
        motion.links.update(signals([*arm.robot.joint_names], [0.1] * n), time)
        assert motion.sample() == (k > 0)  # at the time of the motors before
        later = time + 400_000
        drives = signals([*arm.motor_names], [5e-9 * later] * m, velocity=[5.0] * m, effort=[2.0] * m)
        motion.motors.update(drives, later)
        assert motion.sample()
    wanted = arm.drive_state(np.full(m, 5e-9 * time), np.full(m, 5.0), np.full(m, 2.0))
    found = loop.vectors("observed", dict.fromkeys(wanted._fields, m))
    for row, name in zip(wanted, wanted._fields, strict=True):
        np.testing.assert_allclose(found[name], row, rtol=1e-12, err_msg=name)


@pytest.mark.parametrize(
    "spoil",
    [lambda q, k: q + 0.1 * (k == 20), lambda q, k: q[::-1], lambda q, k: q if k < 15 else q * 15 / k],
    ids=["jump", "swapped", "stale"],
)
def test_jumps_swapped_and_stale_joints_are_named_and_left_out(spoil: Any) -> None:
    loop = ControlLoop(RobotTable(ElasticArm(load_robot("panda"))))
    motion, names, rates = (
        MeasuredMotion(loop, links=True, motors=False),
        loop.arm.robot.joint_names,
        np.arange(1, 8) / 5,
    )
    found = loop.vectors("observed", {"q": 7})["q"]
    for k in range(100):
        q = spoil(1e-3 * k * rates, k)
        motion.links.update(signals([*names], q.tolist(), velocity=rates.tolist()), k * 1_000_000)
        before = found.copy()
        try:
            motion.sample()
        except StateError as error:
            text = str(error)
            break
        np.testing.assert_array_equal(found, q)
    assert re.match(r"fer_joint\d: position and velocity disagree: a jump, or a stale or swapped", text)
    np.testing.assert_array_equal(found, before)
