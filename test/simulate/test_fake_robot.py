# SPDX-License-Identifier: Apache-2.0
"""The fake robot without ROS: it holds, follows, stops, and says what the equations say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import deviation
from springs import with_springs

from eom_dynamics import ElasticArm, RobotDescriptionError, load_robot
from eom_dynamics.drivetrain import Actuator, Friction
from eom_dynamics.drivetrain.springs import ExponentialPair, LinearSpring, RigidSpring
from eom_dynamics.simulate import FakeRobot, SimulationError
from eom_dynamics.simulate.fake_robot import torque_controlled

IIWA = load_robot("iiwa")
Q = np.linspace(-1, 1, 7)


def advanced(robot: FakeRobot, steps: int) -> FakeRobot:
    for _ in range(steps):
        robot.advance()
    return robot


@pytest.mark.parametrize(
    "robot",
    [
        IIWA,
        load_robot("ur5e"),
        with_springs(load_robot("planar_2r"), RigidSpring(), LinearSpring(300.0)),
        with_springs(load_robot("planar_2r"), ExponentialPair(50.0, 6.0, 1500.0), rotor_inertia=0.1),
    ],
    ids=["iiwa", "ur5e", "mixed", "pairs"],
)
def test_it_stays_where_it_starts(robot: Any) -> None:
    position = np.linspace(-1, 1, robot.n)
    fake = FakeRobot(ElasticArm(robot), position=position)
    said = advanced(fake, 500).readings()
    np.testing.assert_allclose(said.q, position, rtol=0, atol=1e-9)
    zero = np.zeros(robot.n)
    assert deviation(said.tau, fake.arm.dynamics.effort(position, zero, zero)) < 1e-6


def test_it_follows_a_motor_motion_as_the_links_of_that_motion_move() -> None:
    """All joints swing by 0.6 rad for a second; what is left is that a command is one period old at the end of it."""
    arm = ElasticArm(IIWA)
    fake = FakeRobot(arm, position=Q)
    w, amplitude, errors = 6.0, 0.3, []
    for t in np.arange(1000) * 1e-3:
        # q + amplitude (1 - cos w t), from rest as robots start.
        swings = [-amplitude * w**k * np.cos(w * t + 0.5 * np.pi * k) * np.ones(7) for k in range(5)]
        swings[0] += Q + amplitude
        command = arm.feedforward(*swings)
        fake.follow(command.motor_position, command.motor_velocity, command.motor_effort)
        errors.append(np.max(np.abs(fake.readings().q - swings[0])))
        fake.advance()
    assert max(errors) < 1.2 * 1e-3 * amplitude * w


def test_readings_of_motors_are_what_drives_do() -> None:
    fake = FakeRobot(ElasticArm(IIWA), position=Q, kp=2e3, kd=50.0)
    said = fake.readings()
    fake.follow(said.theta + 0.01, said.thetad + 0.1, np.full(7, 3.0))
    np.testing.assert_allclose(fake.readings().motor_effort, 3.0 + 2e3 * 0.01 + 50.0 * 0.1, rtol=1e-12)
    fake.apply(np.arange(7.0))
    np.testing.assert_array_equal(fake.readings().motor_effort, np.arange(7.0))
    said = advanced(fake, 20).readings()
    np.testing.assert_allclose(said.tau, fake.arm.stiffness * (said.theta - said.q), rtol=1e-9)


def test_hold_keeps_the_last_commanded_position_and_else_that_of_the_motors() -> None:
    fake = FakeRobot(ElasticArm(IIWA), position=Q)
    goal = fake.readings().theta + 0.05
    fake.follow(goal, np.full(7, 0.2), fake.readings().motor_effort)
    advanced(fake, 20).hold()
    np.testing.assert_allclose(advanced(fake, 1500).readings().theta, goal, rtol=0, atol=2e-3)
    fake.apply(fake.readings().motor_effort + 5.0)
    at = advanced(fake, 50).readings().theta
    fake.hold()
    np.testing.assert_allclose(advanced(fake, 1500).readings().theta, at, rtol=0, atol=5e-3)


def test_a_motion_out_of_bounds_ends_at_rest_where_it_was() -> None:
    fake = FakeRobot(ElasticArm(IIWA), position=Q)
    before = advanced(fake, 10).readings()
    fake.apply(np.full(7, 1e12))
    with pytest.raises(SimulationError, match="leaves all bounds"):
        fake.advance()
    said = advanced(fake, 500).readings()
    np.testing.assert_allclose(said.q, before.q, rtol=0, atol=1e-6)
    assert np.max(np.abs(said.qd)) < 1e-3


def test_torque_control_makes_the_effort_that_of_the_links() -> None:
    lossy = with_springs(IIWA, LinearSpring(2e3), actuator=Actuator(friction=Friction(coulomb=3.0, static=3.0)))
    fake = FakeRobot(ElasticArm(torque_controlled(lossy)), position=Q)
    zero = np.zeros(7)
    qdd = np.linspace(2, -2, 7)
    tau = fake.arm.dynamics.effort(Q, zero, qdd)
    fake.apply(tau)
    fake.advance()
    said = fake.readings()
    np.testing.assert_allclose(said.qd, 1e-3 * qdd, rtol=0, atol=1e-6)
    np.testing.assert_allclose(said.tau, tau, rtol=1e-12)


BAD = {
    "position of another length": ({"position": [0.0, 1.0]}, "initial_position must have 1 or 7 entries, has 2"),
    "position not finite": ({"position": np.nan}, "initial_position must be finite, is"),
    "gain negative": ({"kp": [-1.0]}, "kp must be finite and not negative, is"),
    "gain infinite": ({"kd": np.inf}, "kd must be finite and not negative, is"),
}


@pytest.mark.parametrize(("arguments", "reason"), BAD.values(), ids=BAD)
def test_bad_arguments_are_refused_by_name(arguments: Any, reason: str) -> None:
    with pytest.raises(RobotDescriptionError, match=reason):
        FakeRobot(ElasticArm(IIWA), **arguments)
