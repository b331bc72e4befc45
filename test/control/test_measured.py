# SPDX-License-Identifier: Apache-2.0
"""Measured positions of the joints, from one publisher or several, and joint tolerances."""

from types import SimpleNamespace

import numpy as np
import pytest
from exported import robot
from refusals import refusals

from eom_dynamics import ElasticArm, StateError, load_robot
from eom_dynamics.control.control_loop import ControlLoop
from eom_dynamics.control.measured import (
    PRESENT,
    JointStates,
    JointTolerances,
    MeasuredMotion,
    measured_joints,
    present_positions,
)
from eom_dynamics.control.robot_table import RobotTable


def state(velocity=(), **positions):
    return SimpleNamespace(name=list(positions), position=list(positions.values()), velocity=velocity, effort=[])


def test_positions_may_come_in_parts_and_with_others():
    states = JointStates()
    states.take(measured_joints(state(b=2.0, finger=0.1), 1))
    with pytest.raises(StateError, match=r"joint_states.*position.*'a'"):
        present_positions(states.joints, ["a", "b"], 2)
    states.take(measured_joints(state(a=1.0, velocity=[0.5]), 2))
    q, age = present_positions(states.joints, ["a", "b"], 3)
    assert q.tolist() == [1.0, 2.0] and age == 2
    assert states.joints["a"][:2] == (1.0, 0.5) and np.isnan(states.joints["b"].velocity)
    states.take(measured_joints(state(finger=0.2), 2 + PRESENT))
    with pytest.raises(StateError, match="the position of 'b' is 1 s old"):
        present_positions(states.joints, ["a", "b"], 2 + PRESENT)


@pytest.mark.parametrize("position", [[np.nan], [np.inf], []])
def test_what_is_no_position_is_left_out(position):
    states = JointStates()
    states.take(measured_joints(SimpleNamespace(name=["a"], position=position, velocity=[], effort=[]), 1))
    assert states.joints == {}


def taken(*messages: tuple[float, float]) -> float:
    """Where a joint is after messages at times, ms."""
    states = JointStates()
    for time, position in messages:
        states.take(measured_joints(state(a=position), round(1e6 * time)))
    return states.joints["a"].position


def test_arm_is_where_two_messages_agree() -> None:
    """A wrong sample does not count; of a longer time between messages, nothing is known."""
    assert taken((0, 0.5), (10, 0.9), (20, 0.5)) == taken((0, 0.5), (10, 0.9)) == 0.5
    assert taken((0, 0.5), (10, 0.9), (20, 7.0), (30, 0.5)) == 0.5
    assert taken((0, 0.5), (10, 0.9), (20, 0.91)) == 0.91
    assert taken((0, 0.5), (200, 0.9)) == 0.9


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


def test_defaults_hold_for_joints_whose_entry_is_zero_or_missing() -> None:
    defaults = {"a": 0.2, "b": 0.3}
    for entries, allowed in (
        ([], [0.2, 0.3]),
        ([entry("a", 0.1)], [0.1, 0.3]),
        ([entry("a", -1.0), entry("b")], [np.inf, 0.3]),
    ):
        found = JointTolerances.read("goal_tolerance", entries, NAMES, defaults)
        np.testing.assert_array_equal(found.allowed, [allowed, [np.inf] * 2, [np.inf] * 2])
    assert not JointTolerances.read("goal_tolerance", [], NAMES, dict.fromkeys(NAMES, 0.0)).any


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


test_wrong_messages_are_named = refusals(
    StateError,
    (signals(["a", "b"], [0.0]), "position has 1 entries, must have 2"),
    (signals(["a", "b"], [0.0, 0.0], velocity=[1.0]), "velocity has 1 entries, must have 2"),
    (signals(["a", "a"], [0.0, 0.0]), "a name is listed twice"),
    call=lambda message: measured_joints(message, 1),
)


def test_a_message_that_the_loop_cannot_use_has_no_effect() -> None:
    loop = ControlLoop(RobotTable(ElasticArm(load_robot("planar_2r"))))
    motion, names = MeasuredMotion(loop, links=True, motors=False), list(loop.arm.robot.joint_names)

    def take(message: SimpleNamespace, time: int) -> bool:
        return motion.take("joint_states", measured_joints(message, time), 1)

    for wrong, reason in (
        (signals(names, [0.0, np.nan]), f"position of {names[1]!r} is nan"),
        (signals(names, [0.0, 0.0], velocity=[]), f"velocity of {names[0]!r} is nan"),
    ):
        with pytest.raises(StateError, match=reason):
            take(wrong, 1)
    assert motion.missing(1) == f"joint_states lacks {', '.join(names)}"
    assert not take(signals(["finger"], [2.0]), 1) and not motion.take("motor_states", {}, 1)
    assert take(signals([names[1], "finger", names[0]], [1.0, 2.0, 3.0]), 1)
    for time, reason in ((1, "repeats or goes back"), (10**12, "its stamp is 1e\\+03 s ahead, at most 0.1 s counts")):
        with pytest.raises(StateError, match=reason):
            take(signals(names[:1], [1.0]), time)
    assert loop.vectors("observed", {"q": 2})["q"].tolist() == [3.0, 1.0]
    assert not motion.missing(1) and "is 0.2 s old, at most 0.1 s counts: clocks" in motion.missing(200_000_001)


def test_samples_are_those_of_drives_at_the_older_time() -> None:
    """Motors in drive units, 0.4 ms newer than the links; the loop has SI units, by drive_state."""
    loop = ControlLoop(RobotTable(ElasticArm(robot("drives"))))
    arm, motion = loop.arm, MeasuredMotion(loop, links=True, motors=True)
    n, m = arm.robot.n, len(arm.motor_names)
    for k in range(3):
        time = (10 + k) * 1_000_000
        links = measured_joints(signals([*arm.robot.joint_names], [0.1] * n), time)
        assert motion.take("joint_states", links, time) == (k > 0)  # at the time of the motors before
        later = time + 400_000
        drives = signals([*arm.motor_names], [5e-9 * later] * m, velocity=[5.0] * m, effort=[2.0] * m)
        assert motion.take("motor_states", measured_joints(drives, later), later)
    wanted = arm.drive_state(np.full(m, 5e-9 * time), np.full(m, 5.0), np.full(m, 2.0))
    found = loop.vectors("observed", dict.fromkeys(wanted._fields, m))
    for row, name in zip(wanted, wanted._fields, strict=True):
        np.testing.assert_allclose(found[name], row, rtol=1e-12, err_msg=name)


def test_a_host_measures_motors_in_drive_units() -> None:
    """The code that converts them is prepared at the first call."""
    loop = ControlLoop(RobotTable(ElasticArm(robot("drives"))))
    loop.restart(np.array([0.3, -0.2]))
    sent = loop.sent["drive_position"].copy()
    loop.measure(motors=np.stack([sent, 0 * sent]))
    loop._library.loop_restart(loop.address, 2**63 - 1)
    assert loop.record.valid
    np.testing.assert_allclose(loop.sent["drive_position"], sent, rtol=1e-9)
