# SPDX-License-Identifier: Apache-2.0
"""A robot that adds efforts itself, and has drives with their own units, through the nodes; the example bridge."""

import runpy
import socket
import struct
from dataclasses import replace

import numpy as np
import pytest
from own_drives import AGES, with_drives
from paths import ROOT
from robot_client import RobotClient
from stopped import stopped

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Motor
from eom_dynamics.control.fields import MOTOR_SETPOINT_FIELDS
from eom_dynamics.robot.model import ModelUncertainty
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import Cosine

ROBOT = with_drives(eom.load_robot("sea_planar_2r"), "gravity", "coriolis", "friction", "payload", ages=AGES)
ARM = eom.ElasticArm(ROBOT)
MOTION = Cosine([0.3, 0.2], [2.0, 1.7])


@pytest.fixture(scope="module")
def node(start_shared, tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.yaml"
    known = replace(ROBOT, uncertainty=ModelUncertainty(0.02, 0.02, 0.02))
    path.write_text(robot_as_yaml(known).text, encoding="utf-8")
    return start_shared("--params-file", path)


def test_the_last_command_is_in_the_units_of_the_drives(node):
    assert "least expected link error by the uncertainty of the robot: flatness (rigid " in node.process.log
    assert node.set_parameter("effort_on_deactivate", "keep") == ""
    for k in (1, 2, 3, 4):
        node.answers_to(node.publish(MOTION.derivatives(1e-3 * k), at=10 * k))
    assert node.transition("deactivate")
    node.wait(lambda: node.motor_setpoint[-1].header == node.feedforward[-1].header, "the last commands")
    node.spin(0.5)
    assert node.values["drive side"] == "motor"
    assert [[*message.drive_side] for message in node.feedforward] == [[1, 1]] * len(node.feedforward)
    feedforward, setpoint = node.feedforward[-1], node.motor_setpoint[-1]
    loop = stopped(ARM, MOTION.derivatives(4e-3), 0.3)
    rest = [loop.setpoint["q"], *np.zeros((4, 2))]
    command = ARM.feedforward(*rest)
    sent = ARM.drive_command(command, *rest[:3])
    np.testing.assert_allclose(feedforward.effort, command.tau, rtol=1e-9)
    np.testing.assert_array_equal(setpoint.position, loop.sent["drive_position"])
    np.testing.assert_allclose(setpoint.position, sent.position, rtol=1e-9)
    np.testing.assert_allclose(setpoint.effort, sent.effort, rtol=1e-9, atol=1e-9)
    assert not np.any(setpoint.velocity) and node.effort_command[-1].data == setpoint.effort


def test_the_simulated_robot_adds_them_and_counts_in_units(start, tmp_path):
    """It rests under sent efforts without gravity: without the efforts of its drives it would sag by 0.02 rad."""
    ideal, q, zero = Actuator(motor=Motor(torque_constant=0.07)), np.array([0.3, -0.2]), np.zeros(2)
    joints = tuple(replace(joint, actuator=ideal, damping=0.0, friction=0.0) for joint in ROBOT.joints)
    arm = eom.ElasticArm(replace(ROBOT, joints=joints))
    (tmp_path / "light.yaml").write_text(robot_as_yaml(arm.robot).text, encoding="utf-8")
    at_q = ("-p", f"initial_position:={q.tolist()}", "-p", "rate:=500.0", "-p", "command_timeout:=0.0")
    robot = start("--params-file", tmp_path / "light.yaml", *at_q, module="simulated_robot_node", client=RobotClient)
    robot.wait(lambda: robot.joints and robot.motors, "states")
    state, rest = robot.motors[-1], arm.feedforward(q, zero, zero)
    motors = arm.drive_state(state.position, state.velocity, state.effort)
    np.testing.assert_allclose(motors.motor_position, rest.motor_position, rtol=0, atol=1e-6)
    np.testing.assert_allclose(motors.motor_effort, rest.motor_effort, rtol=0, atol=1e-3)
    sent = arm.drive_command(rest, q, zero, zero)
    assert np.max(np.abs(arm.drive_state(*sent[:3]).motor_effort)) < 1e-9 < 10 < np.max(rest.motor_effort)
    values = {name: getattr(sent, name).tolist() for name in MOTOR_SETPOINT_FIELDS}
    robot.repeat(lambda: robot.send("motor_setpoint", **values), lambda: robot.values["commands"] != "0", "a command")
    robot.next_states(100)
    assert np.max(np.abs([state.position - q for state in robot.joints[-100:]])) < 1e-6


def test_setpoints_become_packets(ros):
    from rclpy.executors import SingleThreadedExecutor
    from sensor_msgs.msg import JointState

    drives = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    drives.bind(("127.0.0.1", 0))
    drives.setblocking(False)
    kind = runpy.run_path(str(ROOT / "examples/motor_setpoint_bridge.py"))["Bridge"]
    bridge, executor = kind("127.0.0.1", drives.getsockname()[1], ["elbow", "shoulder"]), SingleThreadedExecutor()
    executor.add_node(bridge)
    bridge._on_setpoint(JointState(name=["wrist"], position=[0.0], velocity=[0.0], effort=[0.0]))
    row = {"velocity": [3.0, 4.0], "effort": [5.0, 6.0]}
    bridge._on_setpoint(JointState(name=["shoulder", "elbow"], position=[1.0, float("nan")], **row))
    publisher = bridge.create_publisher(JointState, "motor_setpoint", 1)
    for _ in range(200):
        publisher.publish(JointState(name=["shoulder", "elbow"], position=[1.0, 2.0], **row))
        executor.spin_once(timeout_sec=0.1)
        try:
            packet = drives.recv(1024)
        except BlockingIOError:
            continue
        break
    bridge.destroy_node()
    drives.close()
    assert struct.unpack("<6d", packet) == (2.0, 4.0, 6.0, 1.0, 3.0, 5.0)
