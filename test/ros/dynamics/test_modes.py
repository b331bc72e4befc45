# SPDX-License-Identifier: Apache-2.0
"""Modes of the node: each measured sample makes a command; without samples the weight is carried, and it says why."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from eom_dynamics.msg import JointTrajectorySetpoint
from rclpy.parameter import Parameter
from rclpy.time import Time
from sensor_msgs.msg import JointState
from setpoint_engines import kept_commands, state_message, unspun_node

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.arrays import Array
from eom_dynamics.control.fields import STATE_FIELDS
from eom_dynamics.robot.model import EffortSpread, Limits
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.ros.diagnostics import Level

START, MS = 1_700_000_000 * 10**9, 10**6


def tick(node: Any, k: int, motors: Array | None) -> None:
    """A millisecond of the clock with measured motors at rest, or without."""
    node.get_clock().set_ros_time_override(Time(nanoseconds=START + k * MS))
    if motors is None:
        node._stream.modes._look()
        return
    names = list(node.arm.motor_names)
    message = JointState(name=names, position=[*motors], velocity=[0.0] * len(names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(START + k * MS, 10**9)
    node._stream.measured._receive("motor_states", message)


def last(sent: list[Any]) -> JointState:
    return next(x for x in reversed(sent) if isinstance(x, JointState))


@pytest.mark.usefixtures("ros")
def test_on_springs_an_arm_gets_the_efforts_of_its_weight_also_when_motors_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """When lost amid a push, efforts fade to those, and go on to be sent, until the mode is asked for."""
    q, given = np.array([0.5, -0.2]), {"stiffness": "[300.0]", "use_sim_time": "true"}
    with unspun_node("/pushed", robot_file="sea_planar_2r", mode="impedance", **given) as node:
        expected, sent, errors = node.arm.feedforward(q, 0 * q, 0 * q), kept_commands(node), []
        monkeypatch.setattr(node.get_logger(), "error", errors.append)
        for k in range(600):
            tick(node, k, expected.motor_position + min(max(k - 400, 0), 100) * 5e-4)
        assert node.report(1.0).message == "mode impedance: efforts are streamed"
        reason = "the arm is in the mode impedance: set the parameter mode to position"
        assert node._stream.objection(node._stream.loop) == reason
        held = node._stream.loop.loop.setpoint["q"].copy()
        assert np.abs(last(sent).effort - node.arm.feedforward(held, 0 * q, 0 * q).motor_effort).min() > 10
        for k in range(620, 1200, 20):
            tick(node, k, None)
            assert last(sent).header.stamp == node.get_clock().now().to_msg()
        assert len(errors) == 1 and node.report(1.0).level == Level.ERROR
        held = node._stream.loop.loop.setpoint["q"].copy()
        weight = node.arm.feedforward(held, 0 * q, 0 * q)
        assert np.abs(held - q).min() > 0.05  # at its pushed position
        np.testing.assert_allclose(last(sent).effort, weight.motor_effort, atol=1e-6)
        tick(node, 1200, weight.motor_position)
        assert node.report(1.0).values["mode"] == "position" and "measured again" in node.report(1.0).message
        node.set_parameters([Parameter("mode", value="impedance")])
        for k in range(1201, 1600):
            tick(node, k, weight.motor_position)
        np.testing.assert_allclose(last(sent).effort, weight.motor_effort, atol=1e-6)
        for k in range(1600, 2000):
            tick(node, k, None)
            node._stream.answer(JointTrajectorySetpoint(**{name: q * (name == "position") for name in STATE_FIELDS}))
        assert len(errors) == 2


@pytest.mark.usefixtures("ros")
def test_hands_lead_by_samples_of_the_motors_until_these_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm, q = ElasticArm(load_robot("sea_planar_2r")), np.array([0.5, -0.2])
    expected = arm.feedforward(q, 0 * q, 0 * q)
    robot = replace(arm.robot, joints=(replace(arm.robot.joints[0], limits=Limits(-1.0, 0.4)), arm.robot.joints[1]))
    file = tmp_path / "arm.yaml"
    file.write_text(robot_as_yaml(robot).text, encoding="utf-8")
    with unspun_node("/modes", robot_file=str(file), use_sim_time="true") as node:
        motors, sent, infos, errors = expected.motor_position, kept_commands(node), [], []
        monkeypatch.setattr(node.get_logger(), "info", infos.append)
        monkeypatch.setattr(node.get_logger(), "error", errors.append)

        tick(node, 0, motors)
        assert not sent and "mode" not in node.report(1.0).values
        (result,) = node.set_parameters([Parameter("mode", value="somebody")])
        assert not result.successful
        (result,) = node.set_parameters([Parameter("mode", value="impedance")])
        assert not result.successful
        assert (
            "deactivate, set stiffness, such as [300.0]" in result.reason and "activate, and set mode" in result.reason
        )
        (result,) = node.set_parameters([Parameter("mode", value="gravity_compensation")])
        assert result.successful, result.reason
        for k in range(1, 400):
            tick(node, k, motors)
        np.testing.assert_allclose(last(sent).effort, expected.motor_effort, atol=1e-6)
        assert len(sent) >= 3 * 390 and node.report(1.0).values["mode"] == "gravity_compensation"
        assert infos.count("mode: position -> gravity_compensation") == 1
        assert node.report(1.0).message == "joint_1 is guided beyond its limits, -1 to 0.4 rad"
        for k in range(400, 900, 20):
            tick(node, k, None)
        values = node.report(1.0).values
        assert "mode: gravity_compensation -> position" in infos
        assert len(errors) == 1 and errors[0].startswith(
            "mode gravity_compensation has ended, feedforward alone carries the arm and does not hold it: motor_states"
        )
        assert node.report(1.0).level == Level.ERROR and node.report(1.0).message[:99] == errors[0][:99]
        assert values["mode"] == "position" and "motor_states is" in values["measured"]
        np.testing.assert_allclose(last(sent).effort, expected.motor_effort, atol=1e-6)
        node.trigger_deactivate()
        (result,) = node.set_parameters([Parameter("stiffness", value=[300.0] * 3)])
        assert (result.successful, result.reason) == (False, "stiffness must have 2 entries, has 3")


@pytest.mark.usefixtures("ros")
def test_hands_that_lead_the_arm_are_no_contact_to_react_to(tmp_path: Path) -> None:
    robot, q = load_robot("sea_planar_2r"), np.array([0.5, -0.2])
    spread = EffortSpread((0.0,), (0.1,), 0.1)
    robot = replace(robot, joints=tuple(replace(joint, effort_spread=spread) for joint in robot.joints))
    (tmp_path / "arm.yaml").write_text(robot_as_yaml(robot).text, encoding="utf-8")
    given = {"external_effort.sensors": "torque", "on_contact": "deactivate"}
    given |= {"robot_file": str(tmp_path / "arm.yaml"), "mode": "gravity_compensation", "use_sim_time": "true"}
    with unspun_node("/led", **given) as node:
        expected, sent = node.arm.feedforward(q, 0 * q, 0 * q), kept_commands(node)
        for k in range(800):
            tick(node, k, expected.motor_position)
            effort = expected.tau - 5.0 * (k >= 400) * np.array([0.0, 1.0])
            message = state_message(node.arm.robot, (q, 0 * q, effort), START + k * MS)
            node._stream.measured._receive("joint_states", message)
        values = node.report(1.0).values
        assert (values["contacts"], values["mode"]) == ("1", "gravity_compensation")
        assert node.active and node._stream.stops.cause == ""
        np.testing.assert_allclose(last(sent).effort, expected.motor_effort, atol=1e-6)
