# SPDX-License-Identifier: Apache-2.0
"""A robot that adds efforts itself, and whose drives have units of their own, through the nodes."""

from dataclasses import replace

import numpy as np
import pytest
from node_client import status_of
from own_drives import AGES, CIA_402, with_drives
from robot_client import RobotClient

import eom_dynamics as eom
from eom_dynamics.actuators import Actuator, Motor
from eom_dynamics.elastic import LimitCheck
from eom_dynamics.messages.fields import COMMAND_FIELDS, MOTOR_SETPOINT_FIELDS, STATE_FIELDS
from eom_dynamics.robot.model import ModelUncertainty
from eom_dynamics.robot.writers.parameters import robot_as_yaml
from eom_dynamics.trajectory import Cosine
from eom_dynamics.trajectory.rest_to_rest import StopPolynomial

ROBOT = with_drives(eom.load_robot("sea_planar_2r"), "gravity", "coriolis", "friction", "payload", ages=AGES)
ARM = eom.ElasticArm(ROBOT)
MOTION = Cosine([0.3, 0.2], [2.0, 1.7])


@pytest.fixture(scope="module")
def node(start_shared, tmp_path_factory):
    path = tmp_path_factory.mktemp("robot") / "arm.yaml"
    known = replace(ROBOT, uncertainty=ModelUncertainty(0.02, 0.02, 0.02))
    path.write_text(robot_as_yaml(known).text, encoding="utf-8")
    return start_shared("--params-file", path, "-p", "hold_last_command:=always")


@pytest.fixture
def restart(node):
    """The node with parameters, active, as if it had commanded nothing."""

    def with_parameters(**parameters):
        if node.state == "active":
            assert node.transition("deactivate")
        defaults = {"command_lead": 0.0, "effort_command": "motor", "effort_on_deactivate": "zero"}
        assert node.set_parameters(defaults | parameters) == ""
        assert node.transition("activate")
        node.next_diagnostics()  # by then, its last command has arrived
        for answers in (node.feedforward, node.motor_setpoint, node.effort_command):
            answers.clear()
        return node

    return with_parameters


def send(client, k, state=None):
    client.publish(
        at=k, **dict(zip(STATE_FIELDS, MOTION.derivatives(1e-3 * k) if state is None else state, strict=True))
    )


def of_library(k, lead=0.0):
    x = MOTION.derivatives(1e-3 * k)
    later = ARM.ahead(lead, *x)[0] if lead else x
    command = ARM.feedforward(*x, lead=lead)
    return command, ARM.drive_command(command, *later[:3])


@pytest.mark.parametrize("lead", [0.0, 2e-3])
def test_what_the_node_sends_has_the_bits_of_the_library(restart, lead):
    """In the compiled stream and field by field; held commands repeat it, and the model's values stay."""
    client = restart(command_lead=lead)
    assert "least expected link error by the uncertainty of the robot: flatness (rigid " in client.process.log
    for k in range(1, 31):
        send(client, k)
        client.spin(1e-3)
    for k in range(1, 31):
        command, sent = of_library(k, lead)
        feedforward, setpoint, effort = client.answers_to(k)
        for field, values in zip(COMMAND_FIELDS, command, strict=True):
            assert getattr(feedforward, field).tobytes() == values.tobytes()
        for field in MOTOR_SETPOINT_FIELDS:
            assert getattr(setpoint, field).tobytes() == getattr(sent, field).tobytes(), (k, field)
        assert effort.data.tobytes() == sent.effort.tobytes()
    send(client, 31, np.full((5, 2), np.nan))
    feedforward, setpoint, effort = client.answers_to(31)
    assert feedforward.held and setpoint.effort.tobytes() == effort.data.tobytes() == sent.effort.tobytes()
    assert setpoint.position.tobytes() == sent.position.tobytes()


@pytest.mark.parametrize("remain", ["zero", "keep"])
def test_the_last_command_is_in_the_units_of_the_drives(restart, remain):
    client = restart(effort_on_deactivate=remain)
    for k in (1, 2, 3, 4):
        send(client, k)
        client.answers_to(k)
    assert client.transition("deactivate")
    client.wait(lambda: client.motor_setpoint[-1].header == client.feedforward[-1].header, "the last commands")
    client.spin(0.5)
    feedforward, setpoint = client.feedforward[-1], client.motor_setpoint[-1]
    rest = [StopPolynomial(np.array(MOTION.derivatives(4e-3)), 0.3).end, *np.zeros((4, 2))]
    command = ARM.feedforward(*rest)
    sent = ARM.drive_command(command, *rest[:3])
    np.testing.assert_allclose(feedforward.effort, command.tau * (remain != "zero"), rtol=1e-9)
    np.testing.assert_allclose(setpoint.position, sent.position, rtol=1e-9)
    np.testing.assert_allclose(setpoint.effort, sent.effort * (remain != "zero"), rtol=1e-9, atol=1e-9)
    assert not np.any(setpoint.velocity) and client.effort_command[-1].data == setpoint.effort


def test_limits_are_those_of_the_whole_effort_and_numbers_that_drives_cannot_take_are_refused(start, tmp_path):
    """The whole effort is clipped, and what the robot adds then taken out; in both ways of the stream."""
    joints = [replace(joint, limits=replace(joint.limits, effort=3.0), drive=CIA_402) for joint in ROBOT.joints]
    arm = eom.ElasticArm(replace(ROBOT, joints=tuple(joints)))
    (tmp_path / "limited.yaml").write_text(robot_as_yaml(arm.robot).text, encoding="utf-8")
    arguments = ("limits:=clip", "effort_command:=joint", "warning_period:=0.0")
    client = start("--params-file", tmp_path / "limited.yaml", *(word for x in arguments for word in ("-p", x)))
    huge = np.zeros((5, 2))
    huge[0] = 1e305
    for k in range(1, 9):
        send(client, k, huge if k in (1, 6) else None)
    client.answers_to(8)
    reason = "numbers too large: drive_position of motor 'joint_1' would be inf"
    client.wait(lambda: client.process.log.count(f"setpoint refused: {reason}") == 2, "the refusals")
    assert [m.header.stamp.nanosec for m in client.motor_setpoint] == [2, 3, 4, 5, 7, 8]
    for k in (2, 3, 4, 5, 7, 8):
        feedforward, setpoint, effort = client.answers_to(k)
        x = MOTION.derivatives(1e-3 * k)
        command = LimitCheck(arm).clipped(arm.feedforward(*x))
        sent = arm.drive_command(command, *x[:3])
        assert np.max(np.abs(command.tau)) == 3.0 and feedforward.effort.tobytes() == command.tau.tobytes()
        assert effort.data.tobytes() == sent.joint_effort.tobytes()
        assert setpoint.effort.tobytes() == sent.effort.tobytes()
    answered = client.inverse_dynamics(**dict(zip(STATE_FIELDS, huge, strict=True)))
    assert (answered.success, answered.message) == (False, reason)
    send(client, 9, np.zeros((5, 2)))  # at rest, from which the end of the node needs no stop
    client.answers_to(9)


def test_the_simulated_robot_adds_them_and_counts_in_units(start, tmp_path):
    """It stays at rest under sent efforts, which lack gravity: without what its drives add it would sag by 0.02 rad."""
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
    robot.repeat(
        lambda: robot.send("motor_setpoint", **values),
        lambda: status_of(robot.diagnostics[-1])[2]["commands"] != "0",
        "a command",
    )
    robot.next_states(100)
    assert np.max(np.abs([state.position - q for state in robot.joints[-100:]])) < 1e-6
