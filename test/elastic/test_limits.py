# SPDX-License-Identifier: Apache-2.0
"""Limits of joints and motors: checks of states and commands, and violations."""

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
from chains import packaged_parameters

from eom_dynamics import ElasticArm, Feedforward, StateError, load_robot, robot_from_parameters
from eom_dynamics.elastic import LimitCheck, motor_functions
from eom_dynamics.trajectory import Samples, check

LIMITS = {
    **{"lower": -1.0, "upper": 0.8, "velocity": 1.5, "acceleration": 2.0, "jerk": 2.5},
    **{"effort": 30.0, "effort_rate": 60.0},
}
MOTOR = {
    "torque_constant": 0.1,
    "resistance": 0.5,
    "limits": {"torque": 0.5, "speed": 30.0, "current": 4.0, "voltage": 6.0},
}

MIMIC = """<robot name="gripper">
  <link name="base"/>
  <link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="leader" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" velocity="3" effort="20"/></joint>
  <joint name="follower" type="prismatic"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>
    <limit lower="-0.1" upper="0.4" velocity="0.8" effort="20"/>
    <mimic joint="leader" multiplier="-0.5" offset="0.1"/></joint>
</robot>"""


def planar(**changes: Any) -> ElasticArm:
    """A planar arm with limits of every kind at its first joint, and at the motor of its second."""
    first, second = {"limits": LIMITS}, {"actuator": MOTOR | changes, "gear_ratio": 20.0}
    return ElasticArm(robot_from_parameters(packaged_parameters("planar_2r", joint_1=first, joint_2=second)))


@cache
def arm_of(name: str) -> ElasticArm:
    return planar() if name == "planar" else ElasticArm(load_robot(MIMIC if name == "mimic" else name))


def rows(states: np.ndarray, command: Feedforward) -> np.ndarray:
    return np.concatenate((*states, *command), axis=1)


@pytest.mark.parametrize("name", ["planar", "mimic", "panda"])
def test_violations_are_those_of_the_check_of_trajectories(name: str) -> None:
    arm = arm_of(name)
    states = np.random.default_rng(1).normal(size=(5, 300, arm.robot.n)) * 1.5
    command = arm.feedforward(*states)
    found = LimitCheck(arm)
    violated = found.violated(rows(states, command))
    assert 10 < np.count_nonzero(violated) < 300 or name == "panda"
    for k in range(300):
        one = states[:, k]
        expected = {
            (peak.name, peak.quantity.removeprefix("motor_"))
            for peak in check(arm, Samples(np.zeros(1), *one[:, None])).exceeded
        }
        answer = found.violations(one, Feedforward(*(x[k] for x in command)))
        assert {(violation.name, violation.quantity) for violation in answer} == expected
        assert violated[k] == found.violated(rows(states, command)[k]) == bool(expected)


def test_worst_sample_of_a_batch_is_reported_with_its_sign() -> None:
    arm = arm_of("planar")
    states = np.zeros((5, 3, 2))
    states[0, :, 0] = -1.0, -1.45, 0.9
    states[1, :, 0] = 1.5, -3.0, 2.0
    position, velocity = (
        next(v for v in LimitCheck(arm).violations(states, arm.feedforward(*states)) if v.quantity == quantity)
        for quantity in ("position", "velocity")
    )
    assert position[:5] == ("joint_1", "position", -1.45, pytest.approx(-1.0, rel=1e-8), "rad")
    assert position.ratio == pytest.approx(1.5) and position.sample == 1
    assert position.violation == pytest.approx(0.45)
    assert velocity.ratio == pytest.approx(2.0) and velocity.sample == 1
    assert str(velocity) == "joint_1: velocity -3 rad/s, limit -1.5 rad/s"


def test_a_state_at_its_limits_violates_none() -> None:
    arm = arm_of("planar")
    states = np.zeros((5, 1, 2))
    states[:4, 0, 0] = 0.8, -1.5, 0.0, 2.5
    found = {v.quantity for v in LimitCheck(arm).violations(states, arm.feedforward(*states))}
    assert not found & {"position", "velocity", "acceleration", "jerk"}
    # The current limit is below the torque limit.
    assert LimitCheck(arm).ends["motor_effort"][1, -1] == pytest.approx(20.0 * 4.0 * 0.1, rel=1e-8)


def test_nothing_is_compiled_in_a_prepared_check(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = planar()
    found = LimitCheck(arm)
    found.prepare()
    states = np.full((5, arm.robot.n), 1e3)
    command = arm.feedforward(*states)
    monkeypatch.setattr(motor_functions, "compiled_program", lambda *_: pytest.fail("compiled"))
    assert found.violated(np.concatenate((*states, *command)))
    assert found.violations(states, command)


def test_angles_beyond_their_range_by_more_than_a_turn() -> None:
    """Within a turn, without limits, and at lengths, they are not refused; the range of a follower counts."""
    arm, check = arm_of("planar"), LimitCheck(arm_of("planar"))
    turn = 2 * np.pi * (1 - 1e-6)
    for q, far in ((0.8 + turn, False), (-1.0 - turn, False), (0.8 + 6.3, True), (-1.0 - 6.3, True)):
        np.testing.assert_array_equal(check.far(np.array([[q, 1e3]])), [[far, False]])
        check.refuse_far(np.zeros(2))
    assert arm.robot.joint_names[0] == "joint_1"
    words = (
        "position of joint_1 is 90 rad, its range -1 to 0.8 rad, more than a turn beyond its limit: angles are in rad, "
        "not in degrees; set limits to ignore to accept it"
    )
    with pytest.raises(StateError, match=f"^{re.escape(words)}$"):
        check.refuse_far(np.array([90.0, 1e3]))
    # The follower, a length, is within its range from -0.6 to 0.4 rad of the leader.
    np.testing.assert_array_equal(LimitCheck(arm_of("mimic")).far(np.array([[6.6], [6.8]])), [[False], [True]])
    sliding = {"type": "prismatic", "screw": [0.0, 0, 0, 1, 0, 0], "limits": LIMITS}
    slider = LimitCheck(ElasticArm(robot_from_parameters(packaged_parameters("planar_2r", joint_1=sliding))))
    assert slider.any and not slider.far(np.array([90.0, 0.0])).any()
