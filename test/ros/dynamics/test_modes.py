# SPDX-License-Identifier: Apache-2.0
"""Modes of the node: each measured sample makes a command; without samples the arm is held, and it says why."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rosbags")
pytest.importorskip("eom_dynamics.msg", reason="the interfaces are not built")

from rclpy.parameter import Parameter
from rclpy.time import Time
from sensor_msgs.msg import JointState
from setpoint_engines import kept_commands, unspun_node

from eom_dynamics import ElasticArm, load_robot
from eom_dynamics.robot.model import Limits
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.ros.diagnostics import Level

START, MS = 1_700_000_000 * 10**9, 10**6


@pytest.mark.usefixtures("ros")
def test_an_arm_that_nothing_has_led_yet_is_held_on_springs_where_it_is() -> None:
    arm, q = ElasticArm(load_robot("sea_planar_2r")), np.array([0.5, -0.2])
    expected = arm.feedforward(q, 0 * q, 0 * q)
    given = {"mode": "impedance", "stiffness": "[300.0]", "effort_command": "motor", "use_sim_time": "true"}
    with unspun_node("/springs", robot_file="sea_planar_2r", **given) as node:
        sent = kept_commands(node)
        for k in range(400):
            node.get_clock().set_ros_time_override(Time(nanoseconds=START + k * MS))
            message = JointState(name=[*arm.motor_names], position=[*expected.motor_position], velocity=[0.0, 0.0])
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(START + k * MS, 10**9)
            node._stream.measured._receive("motor_states", message)
        assert node.report(1.0).message == "mode impedance: efforts are streamed"
        effort = next(x for x in reversed(sent) if isinstance(x, JointState)).effort
        np.testing.assert_allclose(effort, expected.motor_effort, atol=1e-6)


@pytest.mark.usefixtures("ros")
def test_hands_lead_by_samples_of_the_motors_until_these_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm, q = ElasticArm(load_robot("sea_planar_2r")), np.array([0.5, -0.2])
    expected = arm.feedforward(q, 0 * q, 0 * q)
    robot = replace(arm.robot, joints=(replace(arm.robot.joints[0], limits=Limits(-1.0, 0.4)), arm.robot.joints[1]))
    file = tmp_path / "arm.yaml"
    file.write_text(robot_as_yaml(robot).text, encoding="utf-8")
    with unspun_node("/modes", robot_file=str(file), use_sim_time="true", effort_command="motor") as node:
        stream, clock, sent, infos, errors = node._stream, node.get_clock(), kept_commands(node), [], []
        monkeypatch.setattr(node.get_logger(), "info", infos.append)
        monkeypatch.setattr(node.get_logger(), "error", errors.append)

        def tick(k: int, *, measured: bool = True) -> None:
            clock.set_ros_time_override(Time(nanoseconds=START + k * MS))
            if not measured:
                stream.modes._look()
                return
            names = list(arm.motor_names)
            message = JointState(name=names, position=[*expected.motor_position], velocity=[0.0, 0.0])
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(START + k * MS, 10**9)
            stream.measured._receive("motor_states", message)

        tick(0)
        assert not sent and "mode" not in node.report(1.0).values
        (result,) = node.set_parameters([Parameter("mode", value="somebody")])
        assert not result.successful
        (result,) = node.set_parameters([Parameter("mode", value="impedance")])
        assert not result.successful and "set stiffness" in result.reason
        (result,) = node.set_parameters([Parameter("mode", value="gravity_compensation")])
        assert result.successful, result.reason
        for k in range(1, 400):
            tick(k)
        effort = next(x for x in reversed(sent) if isinstance(x, JointState)).effort
        np.testing.assert_allclose(effort, expected.motor_effort, atol=1e-6)
        assert len(sent) >= 3 * 390 and node.report(1.0).values["mode"] == "gravity_compensation"
        assert infos.count("mode: position -> gravity_compensation") == 1
        assert node.report(1.0).message == "joint_1 is led beyond its limits, -1 to 0.4 rad"
        for k in range(400, 900, 20):
            tick(k, measured=False)
        values = node.report(1.0).values
        assert "mode: gravity_compensation -> position" in infos
        assert len(errors) == 1 and errors[0].startswith(
            "mode gravity_compensation has ended, the arm is held by feedforward"
        )
        assert node.report(1.0).level == Level.ERROR and node.report(1.0).message == errors[0]
        assert values["mode"] == "position" and "motor_states is" in values["measured"]
        effort = next(x for x in reversed(sent) if isinstance(x, JointState)).effort
        np.testing.assert_allclose(effort, expected.motor_effort, atol=1e-6)
